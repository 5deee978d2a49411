/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for names (doc/DETAILS.md, "Names"), which look-up and listing share. A path in the
 * mount is the same as the path in the bucket, with one exception: a "bare" domain, whose last
 * component has no extension, is listed as a file with the suffix of its schema appended, such as
 * ".h5". If anything else has that name in the bucket, the bare domain is left out. A look-up of
 * its own name finds it, too, unless a directory or an object has this name. A schema can decide
 * itself which names get its suffix (schema_ops.is_file_name). Pure functions.
 */
#ifndef NAMES_RULES_H
#define NAMES_RULES_H

#include <names/names.h>

enum { NAMES_MAX = 255 /* bytes of one name */ };

/* ---- what a path of the bucket is shown as ---- */

/* Says which keys are below a path. An int for such a value may also be a negative errno: the error
 * of the listing. */
enum names_children {
	CHILDREN_NONE, /* nothing, or no key can begin like this */
	CHILDREN_DOC,  /* only the path's own document */
	CHILDREN_MORE,
	CHILDREN_MANY, /* too many to be listed */
};

enum names_shown {
	SHOWN_NOTHING, /* or the plain object of this name, if there is one */
	SHOWN_DIR,
	SHOWN_DOMAIN,
	SHOWN_UNLISTABLE, /* as names_unlistable_kind() says */
};

struct names_rule {
	enum names_shown own; /* under its own name */
	bool bare;	      /* and as the file of a bare domain; if nothing else is shown under
				 its own name, a look-up finds it there, too */
	bool unlisted;	      /* only a look-up, and no listing, shows it under its own name */
	/* The document and the listing below the path show no key. The path is shown only if the
	 * listing of its directory shows it. */
	bool if_listed;
};

/* doc is the kind of this path's document, but not NAMES_DOC_STORE. children is an enum
 * names_children, or negative. */
struct names_rule names_rule(enum names_doc_kind doc, const char *path, int children);
/* Returns the rule for any document. If the document is NAMES_DOC_STORE, a look-up of the domain's
 * own name finds a directory with its keys, and a listing shows only its file. If its own name is
 * that of its file, there is only the file. */
struct names_rule names_doc_rule(const struct names_doc *doc, const char *path, int children);
/* Returns false if the document alone decides. */
bool names_needs_children(enum names_doc_kind doc, const char *path);
/* Returns how a prefix that cannot be listed is shown: its document decides, and if that cannot be
 * read either, its name. */
enum names_kind names_unlistable_kind(enum names_doc_kind doc, const char *path);
/* Returns whether objects under this path belong to a schema's storage and are not shown. */
bool names_is_hidden(const struct schema_ops *const *schemas, const char *path);

/* ---- names and paths; see names/names.h too ---- */

/* Returns the last component. */
const char *names_last(const char *path);
/* Returns whether the name has a "." after its first character. */
bool names_has_extension(const char *name);
/* Returns one suffix of the schemas after the other, each once, and NULL after the last one. *i is
 * 0 in the first call. */
const char *names_next_suffix(const struct schema_ops *const *schemas, size_t *i);
/* Returns the path of the file of a bare domain with this suffix, on the heap, or NULL if out of
 * memory. */
char *names_with_suffix(const char *path, const char *suffix);
/* Returns whether a domain of this schema is shown under its own name, without a suffix. */
bool names_is_file_name(const struct schema_ops *schema, const char *name);
/* Returns whether the name is usual for a domain that only a listing shows:
 * schema_ops.usual_ending.
 */
bool names_is_probably_marked(const struct schema_ops *const *schemas, const char *path);
/* Finds the bare domain whose file may have this path: "run" for "run.h5". *out is on the heap, or
 * NULL if there is none. Returns -ENOMEM if out of memory. */
int names_bare(const struct schema_ops *const *schemas, const char *path, char **out);
/* Returns the suffix of the file of a bare domain with this document. A document that cannot be
 * read has that of the first schema, which has asked for it. */
const char *names_doc_suffix(const struct schema_ops *const *schemas, const struct names_doc *doc);

#endif
