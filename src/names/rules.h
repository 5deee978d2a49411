/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for names (doc/SEMANTICS.md, "Names"), which look-up and listing share. Names in the
 * mount and paths in the bucket are the same but for one rule: the file of a domain whose last
 * component has no extension (a "bare" domain) is called after it plus ".h5". Such a file never
 * takes a name from anything else: ".h5" is appended until the name is free, at most NAMES_SUFFIXES
 * times. Pure functions.
 */
#ifndef NAMES_RULES_H
#define NAMES_RULES_H

#include <names/names.h>

#define NAMES_SUFFIX ".h5"

enum {
	NAMES_MAX = 255,   /* bytes of one name */
	NAMES_SUFFIXES = 3 /* a bare domain's name may grow by as many suffixes to be unique */
};

/* ---- what a path of the bucket is shown as ---- */

/* What lies beneath it. Where a function returns one as an int, a negative errno instead says that
 * it cannot be listed. */
enum names_children {
	CHILDREN_NONE, /* also: no key can begin like this */
	CHILDREN_DOC,  /* its own document */
	CHILDREN_MORE,
};

enum names_shown {
	SHOWN_NOTHING, /* or, where one has this name, a plain object */
	SHOWN_DIR,
	SHOWN_DOMAIN,
	SHOWN_CLOSED, /* there is something that cannot be looked into: names_closed_kind() */
};

struct names_rule {
	enum names_shown own; /* under this very name */
	bool bare;	      /* and the file of a bare domain, under the name with suffixes */
	/* Neither a document nor what lies beneath can be seen: anything may be there, or nothing.
	 * Only what the listing of its directory shows exists. */
	bool doubtful;
};

/* doc: of this very path. children: an enum names_children, or negative. */
struct names_rule names_rule(enum names_doc_kind doc, const char *path, int children);
/* False: the document alone decides. */
bool names_needs_children(enum names_doc_kind doc, const char *path);
/* What a prefix that cannot be listed is shown as: its document may tell, else its name. */
enum names_kind names_closed_kind(enum names_doc_kind doc, const char *path);
/* The document or another object under this path is storage, not for a user's eyes. */
bool names_is_hidden(const struct schema_ops *const *schemas, const char *path);

/* ---- names and paths; see names/names.h too ---- */

/* The last component. */
const char *names_last(const char *path);
/* A "." after the first character. */
bool names_has_extension(const char *name);
/* Ends with ".h5" and has something in front of it. */
bool names_has_suffix(const char *name);
/* n bytes can be a name in a directory: no "/" or NUL, not "." or "..", not too long. */
bool names_ok(const char *name, size_t n);
/* Heap, NULL without memory. */
char *names_with_suffix(const char *path, unsigned int times);

#endif
