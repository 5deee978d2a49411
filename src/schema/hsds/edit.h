/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the document of an object that exists: schema_ops.editor->edit_object(). edit.c reads the
 * document and changes its own members, edit_parts.c changes its links and attributes, and
 * edit_extras.c changes its member "hsmount". edit_check.c compares the new document with what it
 * should be. The last three files share the functions of edit_same.c.
 *
 * The old and the new document are parsed with object numbers of their own: each id that one of
 * them names gets a number, in the order in which the ids are found. So links to objects that the
 * domain does not have are read, too, and no time is spent on the other objects of the domain.
 * Pure. The err of a struct edit is never NULL. All functions that return an int may also fail with
 * -ENOMEM.
 */
#ifndef HSDS_EDIT_H
#define HSDS_EDIT_H

#include <schema/schema.h>

#include <data/tree_change.h>

#include "emit_document.h"
#include "hsds_load.h"
#include <json/reader.h>
#include "parse.h"
#include <json/splice.h>

/* The old document or the new one. */
struct edit_document {
	const char *text;
	size_t n;
	json_t *json;
	struct object o;
	uint32_t left_out; /* parts that could not be parsed */
};

struct edit {
	const struct schema_edit *want;
	const struct object *before, *after; /* of the two trees */
	struct arena *arena;
	struct schema_id id, root;
	struct hsds_space ids; /* the numbers of the ids in the documents */
	bool out_of_memory;    /* an id has no number for this reason */
	uint32_t *map; /* edit_same.c: maps numbers of `after` to `ids`; NULL until it is used */
	struct edit_document old;
	struct splice_object members; /* of the old document */
	struct splice splice;
	uint64_t lists; /* bytes of values written as lists, see struct schema_emit */
	struct err *err;
};

/* A link or an attribute: one of the old document, or a new one. */
struct edit_part {
	const char *name;		/* decoded; NULL if it has no valid name */
	const struct splice_member *at; /* NULL if it is new */
	json_t *json;
	uint32_t old; /* index in the old object; UINT32_MAX if it is new or was left out */
	int64_t created_ns;
	const struct part_change *change; /* NULL if it stays */
	bool gone;			  /* its bytes are removed */
	bool placed;			  /* it is in the order */
	bool retimed;			  /* its `created` becomes created_ns */
};

/* The links, or the attributes, of the object. */
struct edit_parts {
	bool links;
	const char *member; /* "links" or "attributes" */
	uint32_t nchanges;
	const struct part_change *changes;
	const struct splice_member *at; /* this member; NULL if the document has none */
	struct splice_object text;
	json_t *json;
	size_t n, nadded;
	struct edit_part *parts;   /* those of the old document, in the order of its text */
	struct edit_part **sorted; /* those with a name, by name, then by position */
	size_t nsorted;
	struct edit_part *added;
	/* The parts that the new document has, in the order of creation. Parts that the file does
	 * not show are not among them. */
	size_t norder;
	struct edit_part **order;
};

/* ---- edit_parts.c ---- */

/* Reads the parts and decides what becomes of each of them. Fails with -EIO if the document has
 * another form than expected or lacks a part, and with -EOPNOTSUPP if a domain cannot hold a
 * part. */
int edit_parts_plan(struct edit *e, bool links, struct edit_parts *p);
/* Adds the replacements to e->splice. */
int edit_parts_write(struct edit *e, struct edit_parts *p);

/* ---- edit_extras.c ---- */

/* Adds the replacements in the member "hsmount" to e->splice. Fails with -EIO if that member has an
 * unusual form, and with -EOPNOTSUPP if a domain cannot hold the comment. */
int edit_extras(struct edit *e);
/* Compares the member "hsmount" of the new document with what it should be. Fails with -EIO if it
 * differs. */
int edit_check_extras(struct edit *e, const struct edit_document *now);

/* ---- edit_same.c ---- */

/* Returns the name of the i-th link or attribute of an object. */
const char *edit_name_in(const struct object *o, bool links, uint32_t i);
/* The first function returns the name that a part has in the new document. The second one returns
 * the link of a part that has changed. */
const char *edit_part_name(const struct edit *e, const struct edit_parts *p,
			   const struct edit_part *part);
struct link edit_link(const struct edit *e, const struct edit_part *part);
/* These functions find out whether a part of a document is the same as the part of the tree
 * `after`. */
int edit_same_attribute(struct edit *e, const struct attribute *doc, const struct attribute *after,
			bool *same);
bool edit_same_link(const struct edit *e, const struct link *doc, const struct link *after);
bool edit_same_text(const char *a, const char *b); /* both may be NULL */

/* Finds a member that is to be changed. *out is NULL if there is none. Fails with -EIO if the
 * object has the member more than once. */
int edit_find_one(struct edit *e, const struct splice_object *o, const char *name,
		  const struct splice_member **out);
/* Returns -EIO, and sets the reason: this member of the new document is not as it should be. */
int edit_differs(const struct edit *e, const char *member);
/* Compares two JSON objects, except for the n members that `without` names. a and b may be NULL. */
int edit_same_json(struct edit *e, json_t *a, json_t *b, const char *const *without, size_t n,
		   bool *same);

/* ---- edit_check.c ---- */

/* Compares the new document with the old one and with the change. Fails with -EIO if the new
 * document is not as it should be. */
int edit_check(struct edit *e, const struct edit_parts *attributes, const struct edit_parts *links,
	       const struct edit_document *now);

/* ---- edit.c: see schema_editor.edit_object() ---- */

int schema_edit_object(const void *text, size_t n, const struct schema_edit *want,
		       struct bytes *out, struct err *err);

#endif
