/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes how domains are stored in a bucket. There is one struct schema_ops for each layout
 * (hsds2, hsds1); the document of a domain decides which one applies. Only the layers of the
 * schemas know the keys, the content of the documents, and which document is needed next.
 *
 * Pure: nothing here reads a store. A function that needs something from the store is a state
 * machine: it describes a request, the caller runs it and calls the function again with the answer.
 * There are three: schema_classify() (what a path is), the loader (makes a tree of a domain's
 * objects), and locate (where a chunk is stored).
 *
 * JSON values are read as leniently as the service reads them (doc/BUCKET.md). Sizes, ids, shapes
 * and depth are checked strictly.
 *
 * Threads: all functions may be called in any thread. A loader belongs to one thread at a time.
 * Errors: functions fail with -EIO and the reason if a document is damaged, and with -ENOMEM. err
 * may be NULL.
 */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/chunk_place.h>
#include <data/domain_info.h>
#include <data/tree.h>
#include <schema/storage_id.h>

enum {
	SCHEMA_KEY_MAX = 1024,
	SCHEMA_DOCUMENT_MAX = 256 << 20, /* bytes of one document */
};

struct object_change;
struct schema_ops;

/* ---- requests and answers ---- */

/* Results of the state machines besides 0 and negative errnos. */
enum {
	SCHEMA_NEEDS_ANSWER = 1, /* the request must be run and answered */
	SCHEMA_NEEDS_RECORD = 2, /* locate() needs a record of a chunk table */
	SCHEMA_NEEDS_INDEX = 3,	 /* locate() refers to the chunk index of an HDF5 file */
	SCHEMA_NEEDS_SHARD = 4,	 /* locate() refers to the index of a shard */
	SCHEMA_ENOUGH = 1,	 /* the other answers of this round are not needed */
	SCHEMA_NOT_TEXT = 1,	 /* chunk_text() was given a chunk that is no text */
};

enum schema_op { SCHEMA_GET, SCHEMA_HEAD, SCHEMA_LIST };

/* A request. The caller sets key and room and zeroes everything else. Strings are valid until the
 * answer has been given. */
struct schema_request {
	enum schema_op op;
	char *key; /* the caller's buffer of `room` bytes; of a LIST, the prefix */
	size_t room;
	/* Of a GET: a version, or NULL. If the object still has it, the answer needs no body. */
	const char *etag;
	const char *listed; /* of a GET: the version that a listing has just shown, or NULL */
	uint64_t length;    /* of a GET: if not 0, only so many bytes are needed */
	uint64_t size;	    /* of a GET: the size that a listing has shown; 0 if unknown */
	/* Of a LIST: the answer has all items if there are at most `limit`, otherwise the code
	 * -E2BIG. If is_page is set, it has only the first items, as many as the store returns at
	 * once. If there are more than `limit`, it then has either -E2BIG or more than `limit`
	 * items. */
	bool delimit, is_page;
	uint32_t limit;
	/* Of a LIST: only keys after `after`, up to `until`. NULL sets no bound. */
	const char *after, *until;
};

struct schema_item {
	const char *key, *etag; /* etag is "" if unknown */
	bool is_prefix;
	uint64_t size;
	int64_t mtime_ns; /* since the epoch; 0 if unknown */
};

struct schema_answer {
	const char *next; /* of a LIST with is_page: more keys follow, after this one; or NULL */
	bool absent;	  /* the store has proved that there is no such object */
	bool unchanged;	  /* the object still has the version `etag` of the request; no body */
	int code;	  /* 0, or the error of the request; its reason is in err */
	const struct err *err;
	const char *etag; /* "" if unknown */
	int64_t mtime_ns; /* of the object, since the epoch; 0 if unknown */
	/* The record that locate() has asked for, as one element of the table. If `absent` is set,
	 * the chunk of the table is not stored. */
	const struct elems *record;
	const void *body; /* len bytes */
	size_t len;
	/* Of a LIST: item() returns the i-th of nitems, in the order of their keys. */
	size_t nitems;
	void (*item)(const void *items, size_t i, struct schema_item *out);
	const void *items;
};

/* Returns whether a domain is loaded without the listing of all its keys if that fails with `code`:
 * there are too many keys, the service refuses listings, or an entry cannot be examined. Such an
 * entry need not belong to the domain. */
static inline bool schema_listing_is_optional(int code)
{
	return code == -E2BIG || code == -ELOOP || code == -EACCES || code == -ENOLINK;
}

/* Adds n bytes of a listing to a digest of it. */
uint64_t schema_digest(uint64_t so_far, const void *bytes, size_t n);

/* ---- what a path is ---- */

/* The document of a domain or folder. Constant, shared, and in one block of memory. */
struct schema_document {
	atomic_uint refs;
	uint32_t memory; /* bytes of the block */
	const struct schema_ops *schema;
	struct domain_info info;
	const char *etag; /* of the document; "" if unknown */
	uint64_t size;	  /* its bytes, if a listing has shown them; 0 if unknown */
};
/* Makes a copy with one reference, without a schema and a size. Returns NULL if out of memory. */
struct schema_document *schema_document_new(const struct domain_info *info, const char *etag);
struct schema_document *schema_document_ref(struct schema_document *d);
void schema_document_unref(struct schema_document *d); /* the argument may be NULL */

/* The keys below a path that a listing has shown: those directly below it, or those in all
 * levels. */
struct schema_listing {
	/* Returns whether the store has this key, which is directly below the path. */
	bool (*has)(const struct schema_listing *l, const char *key);
	const void *keys;
};

/* The state of schema_classify(). A zeroed state begins with the first schema and without a
 * listing. schema_classify_again() makes the first state for a path whose document is known. */
struct schema_classify {
	unsigned int schema; /* index of the schema whose request is running */
	unsigned int step;
	/* The caller looks for marks itself (struct schema_mark), so the schemas that have marks
	 * are skipped. */
	bool without_marks;
	/* A listing of the path, borrowed until the next call, or NULL. With a listing, a schema
	 * needs no request to find that a document is absent. A caller that lists the path at the
	 * same time as it runs the first request sets this before it gives the answer. */
	const struct schema_listing *listing;
};
/* Finds the document of a path with the first schema that recognises it. `path` has no slash at its
 * ends; "" is the root of the bucket. `schemas` ends with NULL. `answer` is NULL in the first call,
 * and never one with a code. Returns SCHEMA_NEEDS_ANSWER with *req filled in, or 0. Then *out is a
 * reference to the document, or NULL if the path has none. Fails with -EIO if the document is
 * damaged, and with -ENOMEM. */
int schema_classify(const struct schema_ops *const *schemas, const char *path,
		    struct schema_classify *state, const struct schema_answer *answer,
		    struct schema_request *req, struct schema_document **out, struct err *err);
struct schema_classify schema_classify_again(const struct schema_ops *const *schemas,
					     const struct schema_document *known);

/* A domain that a listing shows: the name of an object directly below its path is one of the marks
 * of a schema (schema_ops.marks). The content of the object is not needed to recognise the domain.
 * A zeroed mark is that of no domain. */
struct schema_mark {
	const struct schema_ops *schema; /* NULL if there is none */
	unsigned int rank;		 /* if there are several marks, the lowest rank counts */
};
/* Adds the name of an object that is directly below a path. Returns true if this object is the mark
 * now. */
bool schema_mark_add(const struct schema_ops *const *schemas, const char *name,
		     struct schema_mark *mark);
/* Returns the name of the i-th mark of all schemas, or NULL if there are no more. */
const char *schema_mark_name(const struct schema_ops *const *schemas, unsigned int i);
/* Returns whether an object with this key marks a domain. */
bool schema_is_mark(const struct schema_ops *const *schemas, const char *key);
/* Makes the document of a domain that the object of this name marks. `etag` and mtime_ns are those
 * of the object, and size is as in struct schema_document. Returns NULL if out of memory. */
struct schema_document *schema_mark_document(const struct schema_mark *mark, const char *name,
					     const char *etag, int64_t mtime_ns, uint64_t size);
/* Reads an access control list as JSON, in the form that documents have: an object with a member
 * for each user, whose value has each permission as a boolean, and nothing else. Sets the list of
 * *out, which is in the arena. Fails with -EINVAL and the reason if the list has another form, and
 * with -ENOMEM. */
int schema_acls_parse(const void *text, size_t n, struct arena *a, struct domain_info *out,
		      struct err *err);
/* Return whether the key is that of a document, or of an object that a schema stores. Neither
 * appears as a file. */
bool schema_is_document(const struct schema_ops *const *schemas, const char *key);
bool schema_is_storage(const struct schema_ops *const *schemas, const char *key);

/* ---- is a directory or prefix a bucket? ---- */

/* What the first listings of a place show. It is zeroed at first. */
struct schema_survey {
	struct schema_mark mark; /* the place itself is a domain that a listing shows */
	bool storage;		 /* objects of a schema */
	bool document;		 /* a document of the place itself */
	bool has_root;		 /* that document is that of a domain */
	bool documents;		 /* documents of domains or folders in the place */
	bool marks;		 /* marks of domains in the place: struct schema_mark */
	bool anything;		 /* any key */
};
/* Adds one key, or one prefix with its slash, of a listing. Keys are relative to the place. */
void schema_survey_key(const struct schema_ops *const *schemas, struct schema_survey *s,
		       const char *key);
/* Writes the key of the i-th document by which a schema recognises the domain of a path. i begins
 * with 0. Returns false if there are no more documents, or if the path is too long. */
bool schema_document_key(const struct schema_ops *schema, const char *path, unsigned int i,
			 char *key, size_t room);

enum schema_place {
	SCHEMA_PLACE_BUCKET,
	SCHEMA_PLACE_FOLDER, /* a folder of a bucket */
	SCHEMA_PLACE_DOMAIN, /* a domain of a bucket */
	SCHEMA_PLACE_STORE,  /* a domain that a listing shows; the bucket is the place above */
	SCHEMA_PLACE_EMPTY,
	SCHEMA_PLACE_OTHER,
};
/* Decides what the place is. within_bucket says that a directory or prefix above it is a bucket. */
enum schema_place schema_recognise(const struct schema_survey *s, bool within_bucket);

/* The service's summary of a domain, for estimates before the domain is opened. */
struct schema_info {
	uint64_t num_objects, num_chunks, allocated_bytes, logical_bytes, metadata_bytes;
	int64_t modified_ns;
};

/* ---- a domain's objects ---- */

/* What a listing of all keys of a domain shows. Keys that belong neither to an object nor to a
 * chunk, such as that of the summary, do not count. */
struct schema_listed {
	uint64_t version;    /* a digest of the keys, sizes, times and versions */
	int64_t modified_ns; /* of the newest key; 0 if unknown */
	uint64_t documents;  /* bytes of the documents of all objects */
	/* A digest of the version of the list of names (schema_storage.names); 0 if the storage
	 * has none. It is no part of `version`. */
	uint64_t names;
	/* The next two are no part of `version`. */
	bool has_copy;	  /* the service keeps a copy (schema_storage.copy) */
	uint64_t summary; /* a digest of the version of the summary (info_key()); 0 if there is none
			   */
};

/* What a schema keeps of a loaded domain, such as the document of each object. It is in the
 * arena of the tree, constant, and valid as long as the tree. Each schema has its own struct that
 * begins with this one. */
struct schema_space {
	const struct tree *tree;
	bool listed_whole; /* all keys were listed, and `listed` is set */
	struct schema_listed listed;
	int64_t modified_ns; /* of the newest document */
	/* The version of the one document that was read, if all objects follow from it; else NULL.
	 * It is NULL if the domain was listed whole. */
	const char *only_version;
	struct arena *texts; /* of documents, for the next loader; NULL if none are kept */
};

/* An object whose document this process has put or removed. */
struct schema_put {
	const char *id;
	const char *etag; /* of the document that was put, "" if unknown; NULL if it was removed */
	const void *text; /* of the document, `len` bytes; NULL if it is not kept */
	size_t len;
};

/* The input of a loader. Borrowed until the loader is freed. The loader fills the tree. */
struct schema_load {
	const struct schema_document *document;
	const char *path; /* of the domain */
	struct tree *tree;
	const struct schema_space
		*previous; /* that of an earlier load of the same schema, or NULL */
	bool reload;	   /* load the tree even if nothing has changed since `previous` */
	/* What this process has put since `previous`. Each object occurs once. The loader expects
	 * that the domain has these versions, and fetches none of their texts if the store confirms
	 * them. */
	const struct schema_put *puts;
	uint32_t nputs;
	/* `puts` are all objects of the domain, and `previous` is not used. */
	bool puts_all;
	bool puts_few;	     /* with puts_all: the domain has at most list_limit keys */
	uint32_t list_limit; /* if the domain has more keys, they are not all listed */
	struct arena *texts; /* for texts of documents, up to its limit; NULL: keep none */
	/* Load the domain only if all its keys can be listed, and fail with -E2BIG otherwise. */
	bool whole_only;
	/* Of a schema with marks: load the domain only if all objects follow from the document that
	 * marks it, and fail with -E2BIG otherwise. Nothing is listed. */
	bool document_only;
	/* Keys that may divide a listing of the domain into pages, or into other parts. They are
	 * those of an earlier listing, and need not be valid. */
	const char *const *pages;
	uint32_t npages;
	/* Called with each object after it was parsed. If it fails, the object is left out. */
	int (*accept)(void *ctx, struct object *o, struct err *err);
	/* May be NULL. Called when all keys have been listed for the first time, or, with NULL,
	 * when they cannot be listed. A negative errno ends the load and is its result. */
	int (*listed)(void *ctx, const struct schema_listed *listed);
	void *ctx;
};

/* Each schema has its own loader, which begins with this struct. The members after has_many are
 * valid after the last round. */
struct schema_loader {
	struct schema_load load;
	/* The requests of this round are those of the documents of many objects, in the order of
	 * their keys. */
	bool has_many;
	/* All keys were listed, in listings without a delimiter and, in each round, without an
	 * overlap, although the domain does not count as listed whole. */
	bool has_pages;
	struct schema_space *space; /* of the tree; it is valid from the beginning */
	bool same;		    /* nothing has changed since `previous`; the tree is empty */
	/* A document names an object that neither `previous` nor `puts` has. The domain must be
	 * loaded without `puts`, because a listing may show the object. */
	bool incomplete;
	/* Something may have changed between the listing and the documents: a document has another
	 * version than listed, or names an object that was not listed, and that exists or cannot be
	 * asked for. So other objects and chunks may be missing, too, and the domain must be loaded
	 * again, with this load as `previous`. */
	bool is_torn;
	/* The load fails because the root group is absent. Another program may have deleted the
	 * domain after its document was read. */
	bool root_is_absent;
};

/* ---- what the service cannot do ---- */

/* HSDS finds an attribute by its name in the path of a URL, which "/" would divide. Programs that
 * read the documents, as a mount does, find it. */
bool schema_is_addressable(const struct attribute *a);
/* Returns whether JSON can hold the value of an attribute. If not, it is written in base64, which
 * clients of HSDS do not decode. Also false if out of memory. */
bool schema_is_served(const struct tree *t, const struct attribute *a);

/* ---- new domains ---- */

/* Something in a tree that a domain cannot hold. */
struct schema_refusal {
	uint32_t object;       /* number */
	const char *attribute; /* the attribute that cannot be held, or NULL */
	const char *link;      /* the link of the group that cannot be held, or NULL */
	bool comment;	       /* only the comment of the object cannot be held */
	/* The reason is the type, the layout or the filters of the object, which never change. */
	bool is_fixed;
	const char *why; /* such as "a virtual dataset"; valid until the function returns */
};
typedef int (*schema_refusal_fn)(void *ctx, const struct schema_refusal *r);

/* The record of an import that is not finished. It says which storage the import writes, and what
 * it reads. */
struct schema_import {
	struct storage storage;
	const char *path, *file;
	/* The id of the root group of the domain that this import replaces, or NULL. The storage of
	 * that domain is deleted at the end. */
	const char *replaces;
	uint64_t min_chunk; /* chunks are joined to at least this many bytes; 0 if they are not */
	uint64_t size;	    /* of the file, bytes */
	int64_t mtime_ns;   /* of the file */
	int64_t created_ns; /* when the import began: the time of all new documents */
	const char *link;   /* how the domain refers to the file, as a word; NULL if it does not */
	const char *etag;   /* of the file; NULL if not known */
	const char *life;   /* store_life() when the import began; NULL means "" */
};

/* How the document of an object changes. */
struct schema_edit {
	const struct tree *before, *after;  /* the objects of `after` have ids */
	const struct object_change *change; /* of this object, see data/tree_change.h */
	/* A state of the object between the two, in place of that of `after`, or NULL. */
	const struct object *state;
	int64_t now_ns; /* lastModified, and when new links and attributes were made */
};

/* ---- the tables of a schema ----
 *
 * A schema is three tables: struct schema_ops, with which its domains are read, and two that it may
 * lack, schema_editor and schema_writer. Two small groups in schema_ops say what the names and the
 * removal of domains need to know: schema_documents and schema_storage. */

/* The document at a path, which gives a domain or folder its name there. domain/documents.h and
 * storage/ call it for folders, names and access control lists. A schema without it has no document
 * that can be put, edited and deleted apart from the data, so its domains cannot be renamed or
 * removed, and get no access control list. */
struct schema_documents {
	/* Writes the key of the document. Returns its length, or -ENAMETOOLONG. */
	int (*key)(const char *path, char *key, size_t room);
	/* Appends a new document. */
	int (*emit)(const struct domain_info *info, struct bytes *out, struct err *err);
	/* Appends the document with another access control list. All other bytes stay as they are.
	 * Fails with -EIO if the document is damaged. */
	int (*edit_acls)(const void *text, size_t n, const struct domain_info *acls,
			 struct bytes *out, struct err *err);
};

/* How a schema names the storages of its domains. storage/, the journal, listings of whole domains
 * and checks call it. A schema without it stores the objects of a domain under keys of other forms:
 * these are never deleted, and the domain has no list of names. */
struct schema_storage {
	/* Sets the prefix of the storage of a domain with this root group. Fails with -EIO if
	 * `root` is not the id of a root group of this schema. */
	int (*of_root)(const char *root, struct storage *out, struct err *err);
	/* Each storage has a number. Those of new domains are random, and their prefixes have the
	 * order of their numbers. The first function sets the prefix for a number. The second
	 * one returns the number of the storage that has a key; for a key of none, that of one
	 * which is next to it in the order of keys. */
	void (*of_number)(uint64_t number, struct storage *out);
	uint64_t (*number)(const char *key);
	/* The prefix of all storages, which are the prefixes below it in a listing. */
	const char *all;
	/* Names of the objects of this program below the prefix of a storage. The service ignores
	 * these objects. `names` is the name of the list of the names of the domain. The name of
	 * the mark of a deletion begins with `deletion`, and those of the objects of user blocks
	 * with `user_blocks`. All these names begin with `own`, as does that of the document of the
	 * root group. */
	const char *own, *names, *deletion, *user_blocks;
	/* The name of a copy of the documents and small values of the domain that a later version
	 * of the service keeps and answers from. It does not notice changes by others, who must
	 * delete the copy before they change an object. */
	const char *copy;
};

/* How existing domains are changed. update/ calls it. Domains of a schema without it cannot be
 * changed in place, only replaced. A schema with it also has a storage, and a writer, which makes
 * the documents and keys of new objects. */
struct schema_editor {
	/* Appends the document of an object with the members of the change replaced, inserted or
	 * removed, and lastModified. All other bytes stay as they are: unknown members, forms of
	 * numbers, the order, attributes that have not changed. A replaced or renamed link or
	 * attribute keeps its `created`, and new ones follow all others, in the order of `after`.
	 * If the change says "reordered", the times become those of the order of `after`. The
	 * result is parsed and compared before it is returned. Fails with -EIO if the document is
	 * damaged, or has a form that cannot be edited safely, with -EOPNOTSUPP if a domain cannot
	 * hold something, and with -ENOMEM. The message names the member or the thing. */
	int (*edit_object)(const void *text, size_t n, const struct schema_edit *edit,
			   struct bytes *out, struct err *err);
	/* Gives ids to the objects of a tree that have none (id NULL), as objects of an existing
	 * domain, with a locator for datasets, and the times that schema_writer.adopt() gives. The
	 * other objects stay as they are; the first one, the root group, must have its id.
	 * The same seed gives the same ids, and different seeds give different ones. No id is that
	 * of another object of the tree. Fails with -EINVAL if the root group has none, and with
	 * -ENOMEM. */
	int (*adopt_new)(struct tree *t, uint64_t seed, int64_t now_ns, struct err *err);
	/* Returns a copy of dataset.locator in an arena, or NULL if out of memory. */
	const void *(*copy_locator)(const void *locator, struct arena *a);
	/* Writes the key of the document of an object with this id, in the domain with this root
	 * group, or of the object of a user block with this name (user_block.object). *folder is
	 * the length of the part of the key with which the keys of all chunks of a dataset begin,
	 * or 0 if the object has no chunks. Returns the length of the key. Fails with -EINVAL if
	 * `id` is neither the id of an object of this domain other than the root group, nor such a
	 * name, and with -ENAMETOOLONG. */
	int (*key_of_id)(const char *root, const char *id, char *key, size_t room, size_t *folder);
};

/* The service's summary of a domain that this program has stored or changed. */
struct schema_tally;
struct schema_scan {
	const char *bucket; /* its name, or NULL */
	int64_t time_ns;    /* of the domain and of the scan */
};
struct schema_tally_ops {
	/* Begins to count the objects of a tree, which have ids. The tree is borrowed. Fails with
	 * -ENOMEM. */
	int (*begin)(const struct tree *t, struct schema_tally **out, struct err *err);
	/* Counts an object of the storage. Each key is counted once. Keys that are neither those of
	 * documents nor those of chunks do not count, nor do those of objects that are not in the
	 * tree. */
	void (*add)(struct schema_tally *c, const char *key, uint64_t size);
	/* Counts the chunks of a dataset that stay in an HDF5 file. */
	void (*link)(struct schema_tally *c, uint32_t dataset, uint64_t chunks, uint64_t bytes);
	/* Takes the type and the shape of a dataset from another description than that of the tree.
	 * It is borrowed. */
	void (*describe)(struct schema_tally *c, uint32_t dataset, const struct dataset *ds);
	/* Appends the summary. Fails with -ENOMEM. */
	int (*emit)(const struct schema_tally *c, const struct schema_scan *scan, struct bytes *out,
		    struct err *err);
	void (*free)(struct schema_tally *c); /* the argument may be NULL */
};

/* How objects are stored that no loader has read: those of new domains, and new ones of existing
 * domains. import/ and update/ call it. No new domains are made in a schema without it. A schema
 * with it has documents and a storage. */
struct schema_writer {
	/* Calls fn for everything in the tree that a domain cannot hold. What it does not report is
	 * emitted completely. Unread datasets are not checked. If fn returns non-zero, the walk
	 * stops and returns that value. */
	int (*refusals)(const struct tree *t, schema_refusal_fn fn, void *ctx);
	/* Gives each object of a new domain an id, and times to its links and attributes, which are
	 * distinct and increase in their order. The same storage gives the same ids. now_ns is the
	 * time of objects that have none. The caller calls this before the functions below. */
	int (*adopt)(struct tree *t, const struct storage *storage, int64_t now_ns,
		     struct err *err);
	/* Appends the document of an object to *out. Reads the tree's ids, grids and filters. */
	int (*emit_object)(const struct tree *t, uint32_t number, struct bytes *out,
			   struct err *err);
	/* Write the key of the document of an object, and of a chunk of a dataset. They return its
	 * length, or -ENAMETOOLONG. They fail with -EINVAL if the object has no id, or if there is
	 * no such chunk. */
	int (*object_key)(const struct tree *t, uint32_t number, char *key, size_t room);
	int (*chunk_key)(const struct tree *t, uint32_t number, uint64_t chunk, char *key,
			 size_t room);
	/* Writes the text of a reference to an object, see struct object_namer. */
	void (*ref_text)(const struct tree *t, uint64_t ref, char *text);
	/* Write the key of the record of an unfinished import to this path, append its text, and
	 * read it. The strings of *out are in the arena, and out->storage gets its prefix only. The
	 * keys of all records begin with the prefix. */
	const char *import_prefix;
	int (*import_key)(const char *path, char *key, size_t room);
	int (*import_emit)(const struct schema_import *i, struct bytes *out, struct err *err);
	int (*import_parse)(const void *text, size_t n, struct arena *a, struct schema_import *out,
			    struct err *err);
	const struct schema_tally_ops *tally; /* NULL if the service has no summaries */
};

/* How domains are read. names/ calls it to find out what a path is, domain/ to load a domain and to
 * find its chunks and its user block, and check/ to compare it with a listing. Every schema has
 * it. */
struct schema_ops {
	const char *name; /* "hsds2" */
	/* What a mount appends to the name of a domain without an extension, such as ".h5". */
	const char *suffix;
	/* Returns whether a domain of this name is shown under this name, so that the suffix is not
	 * appended. If this member is NULL, a name with an extension is. */
	bool (*is_file_name)(const char *name);
	/* The names of the objects that mark a domain, in the order of preference: struct
	 * schema_mark. The array ends with NULL. This member is NULL if the schema has no marks. */
	const char *const *marks;
	/* How the names of domains with marks usually end, or NULL. A prefix of such a name is
	 * listed before its document is requested. */
	const char *usual_ending;
	bool (*is_document)(const char *key);
	bool (*is_storage)(const char *key);
	/* Does the same as schema_classify(), for one schema. `listing` is that of the state. May
	 * set the schema of the document. In the first call for a path whose document is known,
	 * *step is the result of again(). This member is NULL if the schema before this one also
	 * finds the documents of this one. */
	int (*classify)(const char *path, const struct schema_listing *listing, unsigned int *step,
			const struct schema_answer *answer, struct schema_request *req,
			struct schema_document **out, struct err *err);
	/* Returns the *step with which classify() begins for a path whose document is known. If
	 * this member is NULL, it begins with 0. */
	unsigned int (*again)(const struct schema_document *known);
	/* Adds what a key of the listing of a place, or a prefix with its slash, shows of this
	 * schema. Sets all members but mark, has_root and anything. */
	void (*survey)(struct schema_survey *s, const char *key);
	/* Reads the place's own document, and sets has_root if it has a root group. A damaged
	 * document has none. This member is NULL if the schema has marks, or if `classify` is NULL.
	 */
	void (*survey_document)(struct schema_survey *s, const void *text, size_t n);
	/* Writes the key of the summary. Returns its length, or 0 if the domain has none. */
	int (*info_key)(const struct schema_document *d, char *key, size_t room);
	/* Parses the summary. Fails with -EIO if it is damaged. */
	int (*info_parse)(const void *text, size_t n, struct schema_info *out, struct err *err);

	/* A loader works in rounds. round() starts the next one and returns its number of requests
	 * in *n; the number is 0 if the load is complete. request() describes the i-th request; if
	 * it returns false, no request is needed, and answer() gets NULL as the answer. answer()
	 * gets the answers in the order of the requests; SCHEMA_ENOUGH ends the round. If a part of
	 * a document is damaged, that part is left out with a note in the tree. A temporary
	 * failure, or damage that affects the whole domain, is an error. */
	int (*loader_new)(const struct schema_load *load, struct schema_loader **out,
			  struct err *err);
	int (*round)(struct schema_loader *l, uint32_t *n, struct err *err);
	bool (*request)(struct schema_loader *l, uint32_t i, struct schema_request *req);
	int (*answer)(struct schema_loader *l, uint32_t i, const struct schema_answer *answer,
		      struct err *err);
	void (*loader_free)(struct schema_loader *l); /* the argument may be NULL */

	/* Writes the key of the document of an object, and stores its version in *etag, "" if
	 * unknown. Returns the length of the key, 0 if the object has no document, or
	 * -ENAMETOOLONG. */
	int (*object_key)(const struct schema_space *s, uint32_t number, char *key, size_t room,
			  const char **etag);
	/* Returns the text of this version of the document, *len bytes, or NULL if it is not kept.
	 * The text is borrowed. */
	const void *(*object_text)(const struct schema_space *s, uint32_t number, size_t *len);
	/* Forgets the texts, whose arena the caller then frees. Nothing else may use the space. */
	void (*drop_texts)(struct schema_space *s);
	/* Returns the number + 1 of the object of a reference in a chunk, or 0 for the null
	 * reference and for unknown objects. */
	uint64_t (*resolve)(const struct schema_space *s, const char *text, size_t n);

	/* Finds where chunk `number` of a dataset is stored. `table` is the object
	 * o->dataset.reference->table, or NULL if there is none. The caller sets key and room of
	 * *place and zeroes everything else. `answer` is NULL in the first call, and never one with
	 * a code. *step is 0 in the first call. Returns:
	 *
	 *   0                    *place is that of the chunk
	 *   SCHEMA_NEEDS_ANSWER  the caller reads what *place describes, and calls again with the
	 *                        answer
	 *   SCHEMA_NEEDS_RECORD  the caller reads place->record of place->table, and calls again
	 *                        with answer->record, or with answer->absent
	 *   SCHEMA_NEEDS_INDEX   the caller looks the coordinates of the chunk up in the chunk
	 *                        index of the dataset place->file->h5path of place->file
	 *   SCHEMA_NEEDS_SHARD   the caller finds the chunk in the shard o->dataset.shard, which is
	 *                        the object of *place
	 *   -EOPNOTSUPP          the chunk is in a place that cannot be read; err has the reason
	 *   -EIO                 the record is damaged, or the table is no chunk table of this
	 *                        dataset
	 *   -ENAMETOOLONG        the key of the chunk would be too long
	 */
	int (*locate)(const struct object *o, const struct object *table, uint64_t number,
		      unsigned int *step, const struct schema_answer *answer,
		      struct chunk_place *place, struct err *err);
	/* Writes the prefix whose listing shows which chunks of a dataset are stored, and returns
	 * its length, or 0 if the dataset never has chunks. Fails with -EOPNOTSUPP if no listing
	 * shows that. */
	int (*chunk_prefix)(const struct object *o, char *prefix, size_t room);
	/* Recognises the key of a chunk in a listing. Returns false if it is not that of a chunk of
	 * this dataset. If the object has several chunks, *number is that of the first. */
	bool (*chunk_of_key)(const struct object *o, const char *key, uint64_t *number);
	/* If objects have several chunks of this dataset and no index, sets the members of a zeroed
	 * *place that say which part of its object a chunk is, from `offset` on. Otherwise returns
	 * false. Such chunks have no codec of bytes. This member and the next two are not NULL if
	 * the schema has marks. */
	bool (*chunk_part)(const struct object *o, uint64_t number, struct chunk_place *place);
	/* For such a dataset, or one with shards: replaces the number of a chunk by that of the
	 * next chunk that is a part of the same object. Returns false if it was the last one. */
	bool (*next_part)(const struct object *o, uint64_t *number);
	/* Returns whether a key in such a domain is that of a document. */
	bool (*is_domain_document)(const char *key);

	/* Returns a text that says how the chunks of a dataset are encoded in the bucket, or NULL
	 * if they are not encoded. If this member is NULL, the recorded filters say it. */
	const char *(*codecs)(const struct object *o);

	/* Converts a chunk of variable length that is stored as text to the bytes in which the
	 * schema stores such chunks otherwise, without filters, and appends them to *out. `text` is
	 * the first n of the object's `size` bytes. Returns 0, or SCHEMA_NOT_TEXT if the chunk is
	 * no text. Fails with -EAGAIN if the chunk may be text and all its bytes are needed, with
	 * -EIO if the text is not that of a chunk of this dataset, and with -ENOMEM. Any thread may
	 * call this. This member is NULL if the schema has no such chunks. */
	int (*chunk_text)(const struct schema_space *s, const struct object *o, const void *text,
			  size_t n, uint64_t size, struct bytes *out, struct err *err);

	/* Writes the key of the object that has the user block of a domain, or that gets it.
	 * Returns its length, or 0 if the document of the root group has the block, or if there is
	 * none. This member is NULL if no domain of this schema has such an object. */
	int (*user_block_key)(const struct tree *t, char *key, size_t room);
	/* Gives a tree the bytes of this object. Fails with -EIO if they are not those that the
	 * document names, and with -ENOMEM. This member is NULL if user_block_key is NULL. */
	int (*take_user_block)(struct tree *t, const void *bytes, size_t n, struct err *err);

	const struct schema_documents *documents; /* may be NULL, see there */
	const struct schema_storage *storage;	  /* may be NULL, see there */
	const struct schema_editor *editor; /* NULL if its domains cannot be changed in place */
	const struct schema_writer *writer; /* NULL if no new domains are made in it */
};

/* Returns the schema of new domains, which is the first one that has a writer, or NULL. `schemas`
 * ends with NULL. */
const struct schema_ops *schema_of_new_domains(const struct schema_ops *const *schemas);
/* Get the storage of a domain with this root group, and the one with this number: see struct
 * schema_storage. The schema must have one. */
int schema_storage_of_root(const struct schema_ops *schema, const char *root, struct storage *out,
			   struct err *err);
struct storage schema_storage_of_number(const struct schema_ops *schema, uint64_t number);
/* Gets the storage with this prefix. Returns false if the schema has no such storage. */
bool schema_storage_of_prefix(const struct schema_ops *schema, const char *prefix,
			      struct storage *out);
/* Gets the storage of the domain with this document. Returns false, with no storage, if d is NULL
 * or the document of a folder, or if the domain has no storage of its own. */
bool schema_storage_of(const struct schema_document *d, struct storage *out);

#endif
