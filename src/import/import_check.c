/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a file can be stored. Damage always ends the import. What a domain cannot hold
 * ends it, too, or is left out if the user says so: an attribute, a link, a comment, or an object
 * with all links to it.
 *
 * Two sources name what cannot be held: the reader (a structure without a decoder; it has marked
 * the object as broken), and the schema's table of rules.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 20 /* lines about one kind of problem if the import ends */ };

struct refused {
	uint32_t object;
	const char *attribute, *link;
	bool comment;
};

struct check {
	struct import *im;
	struct refused *v;
	size_t n, cap;
	uint64_t lines, listed; /* that were reported, and the limit */
	struct err *err;
};

/* ---- reports ---- */

static void line(struct check *c, const char *path, const char *part, const char *name,
		 const char *why)
{
	if (c->lines++ < c->listed)
		import_note(c->im, "%s%s%s%s%s: %s", *path ? path : import_file_name(c->im),
			    part ? ", " : "", part ? part : "", name ? " " : "", name ? name : "",
			    why);
}

static void report_rest(const struct check *c)
{
	if (c->lines > c->listed)
		import_note(c->im, "and %" PRIu64 " more", c->lines - c->listed);
}

/* ---- damage, and structures without a decoder ---- */

/* Reports the problems of one severity. Returns their number; the reader keeps only some of them.
 */
static uint64_t report_problems(struct check *c, enum h5file_severity severity)
{
	const struct h5file_problem *p;
	const uint64_t n = h5file_problems_of(c->im->file, severity), before = c->lines;
	for (uint64_t i = 0; (p = h5file_problem(c->im->file, i)); i++)
		if (p->severity == severity)
			line(c, p->path, NULL, NULL, p->text);
	c->lines = before + n;
	return n;
}

static int check_damage(struct check *c)
{
	c->listed = LISTED;
	c->lines = 0;
	const uint64_t n = report_problems(c, H5FILE_DAMAGED);
	report_rest(c);
	c->im->result->problems = n;
	if (!n)
		return 0;
	return err_set(c->err, -EIO, "%s: %" PRIu64 " part%s of the file %s damaged",
		       import_file_name(c->im), n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

/* ---- a file that is being written ---- */

static int check_open(const struct check *c)
{
	const struct import_options *opt = c->im->opt;
	const struct h5file_problem *p = h5file_first_problem(c->im->file, H5FILE_OPEN);
	if (!p || opt->ignore_open_flag || opt->commit)
		return 0;
	return err_set(c->err, -EBUSY,
		       "%s: %s; if no program writes it, remove the flags with \"h5clear -s\", or "
		       "use --ignore-open-flag",
		       import_file_name(c->im), p->text);
}

/* Tells what a person should know about the file as a whole. */
static void tell_notes(struct check *c)
{
	c->listed = UINT64_MAX;
	if (c->im->opt->ignore_open_flag)
		report_problems(c, H5FILE_OPEN);
	report_problems(c, H5FILE_NOTE);
}

/* ---- what a domain cannot hold ---- */

static int add(void *ctx, const struct schema_refusal *r)
{
	struct check *c = ctx;
	if (c->n == c->cap) {
		const size_t cap = c->cap ? 2 * c->cap : 16;
		struct refused *v = reallocarray(c->v, cap, sizeof(*v));
		if (!v)
			return err_no_memory(c->err);
		c->v = v;
		c->cap = cap;
	}
	c->v[c->n++] = (struct refused){r->object, r->attribute, r->link, r->comment};
	line(c, import_path(c->im, r->object),
	     r->attribute ? "attribute"
	     : r->link	  ? "link"
	     : r->comment ? "comment"
			  : NULL,
	     r->attribute ? r->attribute : r->link, r->why);
	return 0;
}

/* Only its elements tell whether a revised reference leads to an object. Of such datasets, all data
 * are read. Damaged chunks are reported later, as those of all other datasets. */
struct scan {
	struct check *c;
	uint32_t number;
	struct err why;
};

static int scan_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct scan *s = ctx;
	struct h5file *f = s->c->im->file;
	struct elems elems = {0};
	auto_bytes struct bytes stored = {0};
	int rc = h5file_chunk_read(f, chunk, &stored, err);
	if (rc)
		return rc;
	rc = h5file_chunk_decode(f, s->number, chunk, &stored, &elems, &s->why);
	elems_release(&elems);
	return rc;
}

static int check_references(struct check *c)
{
	const struct tree *t = c->im->tree;
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		struct scan s = {.c = c, .number = tree_nth(t, i), .why = ERR_INIT};
		const struct object *o = &tree_object(t, s.number)->o;
		const struct h5file_dataset *d = h5file_dataset(c->im->file, s.number);
		if (o->kind != OBJECT_DATASET || !d || !o->dataset.type->has_revised ||
		    o->dataset.raw != RAW_STORED)
			continue;
		rc = h5file_chunks(c->im->file, s.number, 0, d->grid.nchunks, scan_chunk, &s,
				   c->err);
		if (rc == -EOPNOTSUPP && s.why.code)
			rc = add(c, &(struct schema_refusal){.object = s.number, .why = s.why.msg});
		else if (rc == -EIO)
			rc = 0;
	}
	return rc;
}

static int collect(struct check *c, uint64_t *undecoded)
{
	c->listed = c->im->opt->skip_unsupported ? UINT64_MAX : LISTED;
	c->lines = 0;
	*undecoded = report_problems(c, H5FILE_UNSUPPORTED);
	int rc = c->im->schema->writer->refusals(c->im->tree, add, c);
	if (!rc)
		rc = check_references(c);
	if (!rc)
		report_rest(c);
	return rc;
}

/* ---- leaving things out ---- */

static bool is_refused(const struct check *c, size_t first, size_t n, bool is_link,
		       const char *name)
{
	for (size_t i = first; i < first + n; i++) {
		const char *refused = is_link ? c->v[i].link : c->v[i].attribute;
		if (refused && strcmp(name, refused) == 0)
			return true;
	}
	return false;
}

static void drop_parts(struct check *c, size_t first, size_t n)
{
	struct object *o = tree_edit(c->im->tree, c->v[first].object);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < o->nattrs; i++) {
		if (is_refused(c, first, n, false, o->attrs[i].name))
			elems_release(&o->attrs[i].value);
		else
			o->attrs[kept++] = o->attrs[i];
	}
	o->nattrs = kept;
	for (size_t i = first; i < first + n; i++)
		if (c->v[i].comment)
			o->comment = NULL;
	if (o->kind != OBJECT_GROUP)
		return;
	kept = 0;
	for (uint32_t i = 0; i < o->group.nlinks; i++)
		if (!is_refused(c, first, n, true, o->group.links[i].name))
			o->group.links[kept++] = o->group.links[i];
	o->group.nlinks = kept;
}

static int compare(const void *a, const void *b)
{
	const struct refused *x = a, *y = b;
	return x->object < y->object ? -1 : x->object > y->object;
}

static int drop(struct check *c)
{
	struct tree *t = c->im->tree;
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), compare);
	for (size_t first = 0, end; first < c->n; first = end) {
		const uint32_t number = c->v[first].object;
		bool whole = false;
		for (end = first; end < c->n && c->v[end].object == number; end++)
			whole |= !c->v[end].attribute && !c->v[end].link && !c->v[end].comment;
		if (whole && number == 0)
			return err_set(c->err, -EOPNOTSUPP, "%s: the root group cannot be stored",
				       import_file_name(c->im));
		if (whole)
			tree_break(t, number, tree_object(t, number)->o.id);
		else
			drop_parts(c, first, end - first);
	}
	return c->n ? tree_finish(t, c->err) : 0;
}

static int decide(struct check *c, uint64_t undecoded)
{
	const uint64_t n = c->n + undecoded;
	c->im->result->problems = c->im->opt->skip_unsupported ? 0 : n;
	if (n && !c->im->opt->skip_unsupported)
		return err_set(c->err, -EOPNOTSUPP,
			       "%s: %" PRIu64 " part%s of the file cannot be stored in a domain; "
			       "to import the rest, use --skip-unsupported",
			       import_file_name(c->im), n, n == 1 ? "" : "s");
	c->im->result->left_out = n;
	return drop(c);
}

/* Attributes of which clients of the service cannot do something. */
struct unserved {
	uint64_t n;
	const char *first, *path;
};

static void count_unserved(struct unserved *u, const struct import *im, uint32_t number,
			   const struct attribute *a, bool is_served)
{
	if (is_served || u->n++)
		return;
	u->first = a->name;
	u->path = import_path(im, number);
}

/* Tells what the domain holds and clients of the service cannot ask for, or cannot read. */
static void tell_unserved(const struct import *im)
{
	struct unserved names = {0}, values = {0};
	for (uint32_t i = 0; i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		const struct object *o = &tree_object(im->tree, number)->o;
		for (uint32_t k = 0; k < o->nattrs; k++) {
			const struct attribute *a = &o->attrs[k];
			count_unserved(&names, im, number, a, schema_is_addressable(a));
			count_unserved(&values, im, number, a, schema_is_served(im->tree, a));
		}
	}
	if (names.n)
		import_note(im,
			    "clients of HSDS cannot ask by name for %" PRIu64 " attribute%s whose "
			    "name contains \"/\", such as %.200s of %s; a mount shows %s",
			    names.n, names.n == 1 ? "" : "s", names.first, names.path,
			    names.n == 1 ? "it" : "them");
	if (values.n)
		import_note(im,
			    "clients of HSDS cannot read the values of %" PRIu64 " attribute%s, "
			    "which JSON cannot hold, such as %.200s of %s; a mount shows them",
			    values.n, values.n == 1 ? "" : "s", values.first, values.path);
}

/* ---- types that become others ---- */

struct changed_types {
	uint64_t n;	  /* of the objects and attributes that have one */
	const char *path; /* of the first */
};

static void count_type(const struct import *im, uint32_t number, bool has, struct changed_types *c)
{
	if (has && !c->n++)
		c->path = import_path(im, number);
}

static void count_types(const struct import *im, uint32_t number, const struct dtype *t,
			struct changed_types *complex, struct changed_types *revised)
{
	count_type(im, number, t->has_complex, complex);
	count_type(im, number, t->has_revised, revised);
}

static void tell_changed(const struct import *im, const struct changed_types *c, const char *what)
{
	if (c->n)
		import_note(im, "%s, %" PRIu64 " in the file, the first in %.200s", what, c->n,
			    c->path);
}

static void tell_types(const struct import *im)
{
	struct changed_types complex = {0}, revised = {0};
	for (uint32_t i = 0; i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		const struct object *o = &tree_object(im->tree, number)->o;
		if (o->kind == OBJECT_DATASET && o->dataset.committed == OBJECT_NONE)
			count_types(im, number, o->dataset.type, &complex, &revised);
		else if (o->kind == OBJECT_DATATYPE)
			count_types(im, number, o->datatype, &complex, &revised);
		for (uint32_t k = 0; k < o->nattrs; k++)
			count_types(im, number, o->attrs[k].type, &complex, &revised);
	}
	tell_changed(im, &complex,
		     "types with complex numbers (H5T_COMPLEX), which become compounds of r and i");
	tell_changed(im, &revised,
		     "types with revised references (H5T_STD_REF), which become object references");
}

int import_check(struct import *im, struct err *err)
{
	struct check c = {.im = im, .err = err};
	uint64_t undecoded = 0;
	int rc = check_open(&c);
	if (!rc)
		rc = check_damage(&c);
	if (!rc)
		rc = collect(&c, &undecoded);
	if (!rc)
		rc = decide(&c, undecoded);
	if (!rc) {
		tell_notes(&c);
		tell_types(im);
		tell_unserved(im);
	}
	free(c.v);
	return rc;
}
