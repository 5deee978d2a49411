/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a store while its tree is made. The nodes form a trie of names, so that their paths
 * take no memory of their own. The arena of the tree holds what the objects point to. The scratch
 * arena holds what only zarr_model_finish() needs.
 */
#ifndef ZARR_MODEL_INTERNAL_H
#define ZARR_MODEL_INTERNAL_H

/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1

#include <uthash.h>

#include <base/str.h>
#include <codec/chain.h>
#include <json/reader.h>

#include "model.h"

enum {
	ZARR_KEY_MAX = 1024,	     /* bytes of a key below the store */
	ZARR_NAME_MAX = 255,	     /* bytes of the name of a dimension or attribute */
	ZARR_FILL_BYTES = 16,	     /* the largest element */
	ZARR_PIECE_BYTES = 16 << 20, /* of a chunk that is cut, if its shape permits */
	ZARR_CODECS_MAX = 32,	     /* in the chain of an array */
	ZARR_KINDS = ZARR_V2_ATTRS + 1,
	ZARR_STRING_TYPES = 4096, /* types of strings that are shared: those of fewer bytes */
	ZARR_ORDERED_MAX = 65000, /* more attributes have no creation order, which has 16 bits */
};

/* ---- documents ---- */

struct zarr_document {
	char *text; /* n bytes, then a NUL; NULL if the document cannot be used */
	size_t n;
	bool is_dumped; /* Jansson wrote it: its strings are encoded (json/reader.h) already */
	bool in_view;	/* it is known from the consolidated view only */
	char *etag;	/* "" if unknown */
	/* Why the document cannot be used, and the code of the failure; NULL if it can, or has not
	 * been tried. */
	char *refusal;
	int refusal_code;
};

struct zarr_dimension {
	UT_hash_handle hh; /* of its group, by name; iterates in the order of definition */
	const char *name;
	uint64_t length;
	struct zarr_node *group;
	struct zarr_variable *coordinate; /* NULL: no variable has this name */
	uint32_t id;			  /* _Netcdf4Dimid */
	uint32_t number;		  /* of the object that is the scale */
	uint64_t nuses;
	struct zarr_use *uses; /* for REFERENCE_LIST, in the order of variables */
};

struct zarr_use {
	uint32_t number; /* of the variable's object */
	uint32_t axis;
};

/* An array that is shown. */
struct zarr_variable {
	struct zarr_node *node, *group;
	const char *name;      /* of the node; "data" if the store is an array */
	const char *link_name; /* what it is linked as; NULL if it is left out */
	uint32_t number;       /* of its object */
	uint32_t rank;
	const uint64_t *shape;
	const char **names;	      /* of its dimensions; NULL, or NULL for one: anonymous */
	struct zarr_dimension **dims; /* rank of them */
	struct zarr_variable *next;   /* in the order of nodes */
};

struct zarr_node {
	UT_hash_handle hh; /* of the model */
	struct zarr_node *parent;
	struct zarr_document *docs[ZARR_KINDS];
	enum zarr_node_kind v3_kind; /* what zarr.json says; ZARR_NO_NODE if it is damaged */
	struct zarr_node *children, *sibling;
	/* Below here: of zarr_model_finish(). */
	bool is_used; /* it has a document that counts, or a node below it has */
	bool is_shown;
	uint32_t number; /* of the object, if it is shown */
	uint32_t nsorted;
	struct zarr_node **sorted;   /* children that are used, by name */
	struct zarr_dimension *dims; /* of a group */
	struct zarr_variable *variable;
	const char *name; /* in `key`, with a NUL; "" for the root */
	char key[];	  /* the bytes of the pointer to the parent, then the name */
};

struct zarr_object_doc {
	const char *key, *etag;
};

struct zarr_model {
	struct tree *tree;
	enum zarr_document_kind root_kind;
	struct zarr_node *root, *table;
	uint32_t nnodes;
	bool too_many;			 /* there are more nodes than a tree may have objects */
	bool is_consolidated;		 /* there is a consolidated view that can be read */
	char *view_damage;		 /* why a .zmetadata cannot be read, or NULL */
	struct zarr_object_doc *objects; /* by number */
	uint32_t nobjects;
};

/* ---- nodes and documents (store_nodes.c) ---- */

/* Makes the root. Fails with -ENOMEM. */
int zarr_nodes_init(struct zarr_model *m);
void zarr_nodes_release(struct zarr_model *m);
/* Writes the path of a node, with a NUL. The path of the root is "". */
void zarr_node_path(const struct zarr_node *node, char path[ZARR_KEY_MAX + 1]);
/* Returns the node of a path, and makes it if it does not exist. Returns NULL and sets err on
 * failure: to -EIO if no node can have this path, to -EOPNOTSUPP if it is too long, to -E2BIG if
 * there are too many nodes, and to -ENOMEM. */
struct zarr_node *zarr_node_make(struct zarr_model *m, const char *path, size_t n, struct err *err);
/* Returns the node of a path, or NULL if there is none. */
struct zarr_node *zarr_node_find(const struct zarr_model *m, const char *path, size_t n);
/* Returns the child of this name of a group, or NULL if there is none that is shown. */
struct zarr_node *zarr_shown_child(const struct zarr_model *m, const struct zarr_node *group,
				   const char *name);
/* Returns the kind of the document that decides what the node is, or ZARR_NONE if it has none. */
enum zarr_document_kind zarr_node_document(const struct zarr_model *m,
					   const struct zarr_node *node);
/* Returns whether documents of this kind count in the store. */
bool zarr_model_counts(const struct zarr_model *m, enum zarr_document_kind kind);

/* Makes a document of a copy of a text and its version. Returns NULL if out of memory. */
struct zarr_document *zarr_document_new(const char *etag, const void *text, size_t n);
void zarr_document_free(struct zarr_document *d); /* the argument may be NULL */
/* Replaces the text by that of an object that was parsed. Fails with -ENOMEM. */
int zarr_document_dump(struct zarr_document *d, const json_t *value);
/* Replaces the text by the reason why the document cannot be used. Fails with -ENOMEM. */
int zarr_document_refuse(struct zarr_document *d, const struct err *why);
/* Returns the kind of the problem for which a function failed with -EIO or -EOPNOTSUPP. */
enum tree_problem_kind zarr_problem_of(const struct err *why);
/* Gives a document to its node, which owns it. `v3_kind` is that of struct zarr_node. */
void zarr_document_put(struct zarr_node *node, enum zarr_document_kind kind,
		       struct zarr_document *d, enum zarr_node_kind v3_kind);
/* Adds a member of a consolidated view, unless the document is known. The kind is neither ZARR_NONE
 * nor ZARR_CONSOLIDATED. `value` belongs to an active area. Fails with -ENOMEM. */
int zarr_model_add_viewed(struct zarr_model *m, const char *path, size_t n,
			  enum zarr_document_kind kind, json_t *value, struct err *err);
/* Parses a document that was added. An area must be active. Fails with -EIO if the document is
 * damaged, with the code of zarr_document_refuse(), and with -ENOMEM. */
int zarr_document_load(const struct zarr_document *d, json_t **doc, struct err *err);

/* ---- consolidated metadata (consolidated.c) ---- */

/* Adds the documents of a .zmetadata. Fails with -EIO if it is damaged, and with -ENOMEM. */
int zarr_consolidated2(struct zarr_model *m, const void *text, size_t n, struct err *err);
/* Reads the zarr.json of the root, adds the documents of its view, and removes the view from it. An
 * area must be active. Fails with -EIO if it is no document of a node or its view is damaged, and
 * with -ENOMEM. */
int zarr_consolidated3(struct zarr_model *m, struct zarr_document *d, enum zarr_node_kind *kind,
		       struct err *err);

/* ---- making the tree ---- */

struct zarr_build {
	struct zarr_model *m;
	struct tree *tree;
	struct arena *arena;   /* of the tree */
	struct arena *scratch; /* until the end of zarr_model_finish() */
	const struct zarr_finish *f;
	const char *store;
	struct zarr_shared *shared;	 /* shared_bytes.c */
	const struct codec_chain *chain; /* of the last array, or NULL */
	struct bytes text;		 /* for json_string_decode() */
	bool is_short;			 /* out of memory, where only a truth is returned */
	struct zarr_node **nodes;	 /* that are used, each group before its members */
	uint32_t nnodes;
	struct zarr_variable *variables, **variables_end;
	bool is_little;	 /* numbers are little-endian whatever the documents say */
	bool by_netcdf;	 /* netCDF-C wrote the store */
	bool by_netcdf3; /* its version for Zarr v3, which drops _FillValue */
	struct zarr_types {
		const struct dtype *number[5][5][2]; /* by kind, log2 of the size, byte order */
		uint32_t committed[2][2]; /* complex types: by size, byte order; object numbers */
		bool is_used[2][2];	  /* by a variable that is shown */
		const struct dtype *string[2][ZARR_STRING_TYPES]; /* by character set, size */
		const struct dtype *vlen_string;
	} types;
};

/* ---- what arrays share (shared_bytes.c) ---- */

/* Returns a copy of n bytes and a NUL in the arena of the tree, aligned to 16. Equal bytes have the
 * same copy. Returns NULL if out of memory. */
const void *zarr_share(struct zarr_build *b, const void *bytes, size_t n);
void zarr_share_end(struct zarr_build *b);
/* Makes a dataspace whose numbers are shared. Fails as dspace_simple() does. */
int zarr_space(struct zarr_build *b, struct dspace *s, uint32_t rank, const uint64_t *dims,
	       const uint64_t *max, struct err *err);
/* Returns a copy of a chain in the arena of the tree: that of the last array, if they are equal.
 * Returns NULL if out of memory. */
const struct codec_chain *zarr_chain(struct zarr_build *b, const struct codec_chain *c);

/* ---- types (element_type.c) ---- */

enum zarr_kind { ZARR_BOOL, ZARR_INT, ZARR_UINT, ZARR_FLOAT, ZARR_COMPLEX };
struct zarr_element {
	enum zarr_kind kind;
	uint32_t size; /* bytes, as stored */
	bool big_endian;
};
/* Parses the dtype of a v2 array, or the data_type of a v3 array. In v3, the byte order is known
 * only after the codecs. Fails with -EOPNOTSUPP if the type is not known, and with -EIO if there is
 * none. */
int zarr_element_v2(struct zarr_build *b, const json_t *dtype, struct zarr_element *out,
		    struct err *err);
int zarr_element_v3(struct zarr_build *b, const json_t *data_type, struct zarr_element *out,
		    struct err *err);
/* Returns the element as it is shown. Half precision becomes single precision. */
struct zarr_element zarr_element_shown(const struct zarr_element *e);
/* Returns the HDF5 type of elements that are shown. *committed becomes the number of the committed
 * type, or OBJECT_NONE. Returns NULL and sets err to -ENOMEM or -E2BIG on failure. */
const struct dtype *zarr_element_type(struct zarr_build *b, const struct zarr_element *e,
				      uint32_t *committed, struct err *err);

/* ---- values (json_value.c, fill_value.c) ---- */

/* Decodes v, which must be a JSON string. Fails with -ENOMEM. */
int zarr_string(struct zarr_build *b, const json_t *v, struct json_string *out, struct err *err);
/* Appends the compact JSON text of a value, as Python writes it with ensure_ascii=False. */
void zarr_json_text(struct zarr_build *b, const json_t *v, struct str *out);
/* Writes the first 80 bytes of this text to out, for messages, and returns out. */
const char *zarr_json_brief(struct zarr_build *b, const json_t *v, char out[84]);
/* Parses a count: an integer, a real number without a fraction, or a text of digits. Returns false
 * if the value is none of them, or more than 2^63 - 1. */
bool zarr_count(struct zarr_build *b, const json_t *v, uint64_t *out);

/* An integer of a JSON value. */
struct zarr_integer {
	bool negative, fits; /* it fits if the magnitude has at most 64 bits */
	uint64_t magnitude;
};
/* The kinds of JSON numbers. Literals (json/reader.h) are numbers, texts are not. */
enum zarr_number_kind { ZARR_NO_NUMBER, ZARR_INTEGER, ZARR_REAL };
/* Returns which kind of number a JSON value is. Sets *real if it is one, and *i if it is an
 * integer. */
enum zarr_number_kind zarr_number(struct zarr_build *b, const json_t *v, struct zarr_integer *i,
				  double *real);
/* Parses a text as a decimal integer with an optional sign. Returns false if it is none. */
bool zarr_integer_text(const char *s, size_t n, struct zarr_integer *out);

/* Converts a fill value to one element in the form that is shown. *defined becomes false if v is
 * NULL or null. If is_v3 is true, a text such as "0x7fc00000" has the bits of a float. Fails with
 * -EIO if the value does not fit the type. */
int zarr_fill(struct zarr_build *b, const json_t *v, const struct zarr_element *e, bool is_v3,
	      uint8_t out[ZARR_FILL_BYTES], bool *defined, struct err *err);

/* ---- codecs (codecs.c) and shards (shards.c) ---- */

/* A codec sharding_indexed. What it points to is in the scratch arena. */
struct zarr_shard {
	const uint64_t *inner; /* shape of the inner chunks, along the dimensions of the array */
	const uint32_t *order; /* as in struct shard */
	uint32_t nchunks;      /* inner chunks */
	bool at_start, big_endian, has_checksum; /* of the index */
	/* The codecs around the shard, in the order of encoding. */
	uint32_t naround;
	struct codec_array_step around[ZARR_CODECS_MAX];
};

struct zarr_codecs {
	uint32_t n; /* steps in the order of decoding */
	struct codec_array_step steps[2 * ZARR_CODECS_MAX];
	const char *text; /* zarr_locator.codecs */
	uint32_t nshards; /* from the outermost to the innermost */
	struct zarr_shard *shards[SHARD_LEVELS_MAX];
	/* The filters that the file records, in the order of encoding. */
	uint32_t nfilters;
	struct filter filters[2];
};

struct zarr_array {
	struct zarr_element element;
	uint32_t rank;
	/* In the scratch arena. `chunk` is the chunk shape of the dataset, and stored_chunk
	 * that of the array, or NULL if they are the same. */
	const uint64_t *shape, *chunk, *stored_chunk;
	const uint64_t *shard; /* shape of the outermost shards, if there are shards */
	bool is_v3;
	bool is_default; /* see struct zarr_locator */
	char separator;
	bool is_guessed;
	const json_t *fill;
	const json_t *attributes; /* an object, or NULL */
	const json_t *names;	  /* a list, or NULL */
	const char *names_member; /* for messages */
	bool derives_fill;	  /* _FillValue follows from the fill value */
	struct zarr_codecs codecs;
};

/* Read the codecs of an array whose element, rank and chunk are known. Those of v3 set the byte
 * order of the element, and, if there are shards, replace the chunk by an inner chunk. Fail with
 * -EOPNOTSUPP if a codec is not known, with -EIO if the documents are damaged, and with -ENOMEM. */
int zarr_codecs_v2(struct zarr_build *b, struct zarr_array *a, const json_t *doc, struct err *err);
int zarr_codecs_v3(struct zarr_build *b, struct zarr_array *a, const json_t *list, struct err *err);

/* Parses the configuration of a codec sharding_indexed, apart from the codecs of the inner chunks.
 * `shape` is that of the shard as it is stored, whose axis i is dimension order[i] of the array.
 * The shape of an inner chunk replaces it. Adds the shard to a->codecs, and fails as
 * zarr_codecs_v3(). */
int zarr_shard_parse(struct zarr_build *b, struct zarr_array *a, const json_t *configuration,
		     uint64_t *shape, const uint32_t *order, struct err *err);
/* Makes the shards of a dataset whose grid and chain are set. `shape` is that of the outermost
 * shards. Fails with -EOPNOTSUPP if an encoded shard is too large, with -EIO, and with -ENOMEM. */
int zarr_shards(struct zarr_build *b, const struct zarr_array *a, struct dataset *ds,
		struct err *err);

/* ---- arrays (document2.c, document3.c) ---- */

/* Parse the document of an array. `attrs` is the document .zattrs, or NULL. Fail with -EIO if the
 * document is damaged, with -EOPNOTSUPP if it has something that is not known or is over a limit,
 * and with -ENOMEM. */
int zarr_array_v2(struct zarr_build *b, const json_t *doc, const json_t *attrs,
		  struct zarr_array *out, struct err *err);
int zarr_array_v3(struct zarr_build *b, const json_t *doc, struct zarr_array *out, struct err *err);
/* Check the format of a document, and the document of a group. Fail under the same conditions. */
int zarr_format_v2(struct zarr_build *b, const json_t *doc, struct err *err);
int zarr_group_v3(struct zarr_build *b, const json_t *doc, struct err *err);
/* Finds out what a zarr.json is. Fails with -EIO or -EOPNOTSUPP if it is no node of Zarr v3. */
int zarr_v3_kind(const json_t *doc, enum zarr_node_kind *out, struct err *err);
/* Parses a list of at most DSPACE_MAX_RANK counts. The result is in the scratch arena. Fails with
 * -EOPNOTSUPP if there are more, with -EIO if it is no list of counts, and with -ENOMEM. */
int zarr_counts(struct zarr_build *b, const json_t *list, uint32_t *n, const uint64_t **out,
		struct err *err);
/* Gets the name and the configuration of an extension point of v3. Returns NULL if there is no
 * name. *configuration becomes NULL if there is none. */
const char *zarr_extension(const json_t *v, const json_t **configuration);
/* Parses the byte order in the configuration of the codec that makes bytes: little-endian, unless
 * it says something else. Fails with -EIO. */
int zarr_endian(struct zarr_build *b, const json_t *configuration, bool *big, struct err *err);

/* Checks the chunk shape of an array. Called before its codecs are read. Fails with -EIO if the
 * shape cannot be shown, and with -ENOMEM. */
int zarr_array_chunk(struct zarr_build *b, struct zarr_array *a, struct err *err);
/* Cuts the chunk if it is larger than CHUNK_BYTES_MAX (chunk_cut.c). The codecs are known. Fails
 * with -EOPNOTSUPP if it cannot be cut, and with -ENOMEM. */
int zarr_chunk_fit(struct zarr_build *b, struct zarr_array *a, struct err *err);
/* Fills in the dataset of an object (array_dataset.c), and cuts the chunk of the array if need be.
 * `path` is that of the node, in the arena of the tree. Fails with -EIO or -EOPNOTSUPP if the
 * array cannot be shown, and with -ENOMEM or -E2BIG. */
int zarr_dataset(struct zarr_build *b, struct zarr_array *a, const char *path, struct object *o,
		 struct err *err);

/* ---- attributes (attributes.c, attribute_fill.c, attribute_make.c) ---- */

enum {
	/* Attributes of the netCDF-4 markup, before those of the document and after them. */
	ZARR_MARKUP_BEFORE = 3,
	ZARR_MARKUP_AFTER = 3,
};
/* names ends with NULL. */
bool zarr_is_one_of(const char *name, const char *const *names);
/* Makes the attributes of an object from those of a document, which may be NULL. They are in the
 * scratch arena until zarr_keep_attributes(), with room for the markup before and behind them. `a`
 * is the array, or NULL for a group. `key` is for notes. Fails with -ENOMEM. */
int zarr_attributes(struct zarr_build *b, const json_t *attributes, const struct zarr_array *a,
		    const char *key, struct object *o, struct err *err);
/* Moves the attributes of all objects to the arena of the tree, without the room for markup. If it
 * fails with -ENOMEM, objects whose attributes cannot be moved have none. */
int zarr_keep_attributes(struct zarr_build *b, struct err *err);
/* Makes _FillValue. `stored` is the attribute of the document, or NULL. *done becomes false if
 * there is none. Fails with -EIO if the value does not fit the type, with -EOPNOTSUPP if `stored`
 * is null, and with -ENOMEM or -E2BIG. */
int zarr_fill_attribute(struct zarr_build *b, const json_t *stored, const struct zarr_array *a,
			struct attribute *out, bool *done, struct err *err);
/* Returns the type of fixed-length strings. The types of short strings are shared. Returns NULL if
 * out of memory. */
const struct dtype *zarr_string_type(struct zarr_build *b, size_t size, enum dtype_cset cset,
				     struct err *err);
/* Fill in an attribute of one text, whose length is fixed unless it is long, of n texts, which are
 * then added one by one, or of n plain elements. The name is borrowed. Fail with -ENOMEM. */
int zarr_attribute_text(struct zarr_build *b, struct attribute *a, const char *name,
			const char *text, size_t n, struct err *err);
int zarr_attribute_texts(struct zarr_build *b, struct attribute *a, uint64_t n, struct err *err);
int zarr_attribute_add_text(struct attribute *a, const char *text, size_t n, struct err *err);
int zarr_attribute_plain(struct zarr_build *b, struct attribute *a, const char *name,
			 const struct dtype *type, uint64_t n, bool is_scalar, const void *bytes,
			 struct err *err);

/* ---- dimensions (dimensions.c) and markup (netcdf.c) ---- */

/* Reads the names of the dimensions of a variable. `key` is for notes. Fails with -ENOMEM. */
int zarr_dimension_names(struct zarr_build *b, const struct zarr_array *a, const char *key,
			 struct zarr_variable *v, struct err *err);
/* Gives each variable its dimensions. Fails with -ENOMEM. */
int zarr_dimensions(struct zarr_build *b, struct err *err);
/* Makes the datasets of dimensions without variables, the links, and the markup. Fails with -E2BIG
 * if there are too many objects, and with -ENOMEM. */
int zarr_netcdf(struct zarr_build *b, struct err *err);
/* Adds an object with its id and its document (tree_objects.c). `key` is NULL if it has no
 * document. Fails with -E2BIG or -ENOMEM. */
int zarr_object_add(struct zarr_build *b, const char *id, const char *key, const char *etag,
		    uint32_t *number, struct err *err);

#endif
