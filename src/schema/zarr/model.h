/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a tree of the documents of a Zarr store (v2 and v3). The loader adds documents in any
 * order. When it has added all of them, zarr_model_finish() makes the groups, datasets, dimensions
 * and attributes of a netCDF-4 file. A node that cannot be shown is left out with a note in the
 * tree, and everything else is shown. The functions are pure. One thread uses a model at a time. No
 * area of json/reader_memory.h may be active in this thread when it calls one of them.
 *
 * Source: the Zarr v2 and v3 specifications (https://zarr-specs.readthedocs.io). Comments name the
 * programs that write something else.
 */
#ifndef ZARR_MODEL_H
#define ZARR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <data/tree.h>

struct zarr_model;

/* The kind of a document, by the last name of its key. If several documents mark a store, the first
 * in this order counts. */
enum zarr_document_kind {
	ZARR_NONE,	   /* the key is not one of a document */
	ZARR_V3,	   /* zarr.json */
	ZARR_CONSOLIDATED, /* .zmetadata */
	ZARR_V2_GROUP,	   /* .zgroup */
	ZARR_V2_ARRAY,	   /* .zarray */
	ZARR_V2_ATTRS,	   /* .zattrs; it does not mark a store */
};
/* Returns which document has this key, such as "g/a/.zarray". *path_len becomes the length of the
 * path of its node, "g/a". */
enum zarr_document_kind zarr_document_of_key(const char *key, size_t *path_len);
/* Returns the name of a document, such as ".zarray", or NULL for ZARR_NONE. */
const char *zarr_document_name(enum zarr_document_kind kind);

/* Makes a model for a tree to which nothing has been added yet. The parts of the objects are
 * allocated in the arena of the tree. `root` is the kind of the document that marks the store.
 * Returns NULL if out of memory. */
struct zarr_model *zarr_model_new(struct tree *t, enum zarr_document_kind root);
void zarr_model_free(struct zarr_model *m); /* the argument may be NULL */

/* Adds the text of a document with this key, which is relative to the store ("g/a/.zarray"). It
 * replaces a document that was added earlier under this key, so a document that was read counts
 * more than its copy in the consolidated view. The text of .zmetadata, or of a zarr.json with
 * consolidated metadata, at the root of the store adds all documents in it that were not added
 * before. `etag` is the version of the document, or "" if unknown. The text and etag are copied. A
 * damaged document is remembered, and its node is left out. Fails with -EIO or -EOPNOTSUPP and the
 * reason if the document is that of the root and the store cannot be shown without it, and with
 * -ENOMEM. */
int zarr_model_add(struct zarr_model *m, const char *key, const char *etag, const void *text,
		   size_t n, struct err *err);
/* Removes a document of the consolidated view that does not exist in the store. */
void zarr_model_remove(struct zarr_model *m, const char *key);
/* Leaves out the node of a document, if the model has the document. The code of `why` is -EIO or
 * -EOPNOTSUPP. Fails with -ENOMEM. */
int zarr_model_refuse(struct zarr_model *m, const char *key, const struct err *why);
/* Returns whether the store has consolidated metadata that can be read. */
bool zarr_model_is_consolidated(const struct zarr_model *m);
/* Returns whether the model has the document of this key. */
bool zarr_model_has(const struct zarr_model *m, const char *key);
/* Calls fn for each document that is known from the consolidated view only. If fn does not return
 * 0, the calls end with its result. fn may call zarr_model_remove() for this key. */
int zarr_model_consolidated(struct zarr_model *m, int (*fn)(void *ctx, const char *key), void *ctx);

enum zarr_node_kind { ZARR_NO_NODE, ZARR_GROUP, ZARR_ARRAY };
/* Returns what the documents so far make of a path of the store. The path of the root is "". The
 * result is ZARR_NO_NODE if the path has no document. An array wins over a group, and zarr.json
 * over the documents of v2. */
enum zarr_node_kind zarr_model_kind(const struct zarr_model *m, const char *path);

/* How an array finds its chunks: dataset.locator. */
struct zarr_locator {
	/* Path of the array below the store; "" if the store is an array. It is NULL if the dataset
	 * is a dimension without a variable. Then all chunks are absent, and no request is needed
	 * to find that out. */
	const char *path;
	const char *store; /* path of the store in the bucket */
	bool is_default;   /* the key encoding of v3 that begins with "c" */
	char separator;	   /* '.' or '/' */
	/* The array has two dimensions or more, its document does not say which separator the keys
	 * have, and no listing has shown it. It is probably '.'. */
	bool is_guessed;
	uint32_t rank; /* of the array; the dataset may have more dimensions */
	/* The chunk shape of the array, if each of its chunks holds several chunks of the dataset.
	 * Otherwise NULL. */
	const uint64_t *stored_chunk;
	uint32_t elem_size; /* bytes, as stored */
	/* The codecs as stored, in the order of encoding, as text for people: "shuffle(4),
	 * zlib(5)". NULL if there are none. */
	const char *codecs;
};

struct zarr_finish {
	const char *store;   /* path of the store in the bucket; copied */
	int64_t modified_ns; /* of all objects; 0 if unknown */
	/* Called with each object after it was made. If it fails, the object is left out. See
	 * schema_load.accept. */
	int (*accept)(void *ctx, struct object *o, struct err *err);
	void *ctx;
	/* Returns the separator of the chunk keys of an array whose document does not say it: '.',
	 * '/', or 0 if it is not known. This member is NULL if there is no listing. */
	char (*separator)(void *ctx, const char *path);
	void *separator_ctx;
};
/* Makes the tree. May be called once. Fails with -EIO and the reason if the root cannot be shown,
 * with -EOPNOTSUPP if it may be sound, with -E2BIG if there are too many objects, and with -ENOMEM.
 */
int zarr_model_finish(struct zarr_model *m, const struct zarr_finish *f, struct err *err);
/* Returns the key of the document of an object, relative to the store, and stores the document's
 * version in *etag, or "" if unknown. Returns "" and stores NULL if the object has no document,
 * such as a dimension without a variable. Called after zarr_model_finish(). Both texts are borrowed
 * as long as the tree exists. */
const char *zarr_model_object(const struct zarr_model *m, uint32_t number, const char **etag);

#endif
