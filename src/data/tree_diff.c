/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of trees: see data/tree_diff.h.
 *
 * First a walk follows the links of both root groups side by side, breadth first, and pairs the
 * objects: the targets of links with the same name. It needs no recursion, and each pair is
 * visited once, so circles of groups do not matter. A second pass pairs the committed types without
 * a link, where they are used first. Then the contents of the pairs are compared, because
 * references and committed types may lead to any object.
 *
 * Time is O(n log n) in the number of links and attributes, and O(n) where both trees have them in
 * the same order. One thread at a time.
 */
#include <data/tree_diff.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/str.h>
#include <data/describe.h>

#include "named.h"

/* Names of one group or object in both trees. */
struct names {
	struct named *a, *b; /* sorted by pair_names() */
	uint32_t na, nb, room;
	uint32_t *pair; /* by index in a: the index in b, or OBJECT_NONE */
};

struct diff {
	const struct tree *a, *b;
	unsigned int flags;
	const struct tree_diff_sink *sink;
	uint32_t *map;	   /* by number in a: the number in b, or OBJECT_NONE */
	uint32_t *reverse; /* the same from b to a */
	uint32_t *queue;   /* numbers in a */
	uint32_t queued;
	struct object_paths *paths; /* in both trees */
	struct names names;
	uint64_t n;
	struct err *err;
};

static const struct object *object_a(const struct diff *d, uint32_t number)
{
	return &tree_object(d->a, number)->o;
}

static const struct object *object_b(const struct diff *d, uint32_t number)
{
	return &tree_object(d->b, number)->o;
}

static int no_memory(struct diff *d)
{
	return err_set(d->err, -ENOMEM, "out of memory: a comparison of %u objects",
		       tree_numbers(d->a));
}

/* Reports a difference of object `number` of a. Takes ownership of the text. */
static int report(struct diff *d, uint32_t number, struct str *text)
{
	auto_str struct str path = {0};
	describe_path(&path, d->paths, number);
	int rc = str_ok(text) && str_ok(&path) ? 0 : no_memory(d);
	d->n++;
	if (!rc && d->sink && d->sink->difference)
		rc = d->sink->difference(d->sink->ctx, str_text(&path), str_text(text));
	str_release(text);
	return rc;
}

/* Makes the beginning of a text about a link or an attribute. */
static struct str about(const char *what, const char *name)
{
	struct str text = {0};
	str_addf(&text, "%s \"", what);
	str_add_printable(&text, name);
	str_add(&text, "\" ");
	return text;
}

/* Reports nothing if what is NULL. */
static int report_named(struct diff *d, uint32_t number, const char *what, const char *name,
			const char *how)
{
	if (!what)
		return 0;
	struct str text = about(what, name);
	str_add(&text, how);
	return report(d, number, &text);
}

/* ---- names ---- */

/* Makes room for na and nb names, and notes these numbers. */
static int reserve_names(struct diff *d, uint32_t na, uint32_t nb)
{
	struct names *v = &d->names;
	const uint32_t n = na > nb ? na : nb, room = n > 2 * v->room ? n : 2 * v->room;
	v->na = na;
	v->nb = nb;
	if (n <= v->room)
		return 0;
	free(v->a);
	free(v->b);
	free(v->pair);
	v->a = calloc(room, sizeof(*v->a));
	v->b = calloc(room, sizeof(*v->b));
	v->pair = calloc(room, sizeof(*v->pair));
	v->room = v->a && v->b && v->pair ? room : 0;
	return v->room ? 0 : no_memory(d);
}

/* Finds the pairs of equal names, and reports the names that only one tree has. If what is NULL, it
 * does not report them. */
static int pair_names(struct diff *d, uint32_t number, const char *what)
{
	struct names *v = &d->names;
	int rc = 0;
	uint32_t i = 0, k = 0;
	named_sort(v->a, v->na, v->b, v->nb);
	while (!rc && (i < v->na || k < v->nb)) {
		int order = i == v->na ? 1 : k == v->nb ? -1 : 0;
		if (order == 0)
			order = strcmp(v->a[i].name, v->b[k].name);
		if (order == 0) {
			v->pair[v->a[i++].index] = v->b[k++].index;
		} else if (order < 0) {
			v->pair[v->a[i].index] = OBJECT_NONE;
			rc = report_named(d, number, what, v->a[i++].name, "is missing");
		} else {
			rc = report_named(d, number, what, v->b[k++].name, "is additional");
		}
	}
	return rc;
}

/* Reports the first pair that changes the order. a has n names; name() gives that of index i. */
static int check_order(struct diff *d, uint32_t number, const char *what, uint32_t n,
		       const char *(*name)(const struct object *o, uint32_t i))
{
	uint32_t last = OBJECT_NONE;
	for (uint32_t i = 0; (d->flags & TREE_DIFF_ORDER) && i < n; i++) {
		const uint32_t k = d->names.pair[i];
		if (k == OBJECT_NONE)
			continue;
		if (last != OBJECT_NONE && k < last)
			return report_named(d, number, what, name(object_a(d, number), i),
					    "is at another position in the creation order");
		last = k;
	}
	return 0;
}

/* ---- links ---- */

static void pair_objects(struct diff *d, uint32_t a, uint32_t b)
{
	d->map[a] = b;
	d->reverse[b] = a;
	d->queue[d->queued++] = a;
}

static int report_other_target(struct diff *d, uint32_t number, const struct link *a,
			       const struct link *b)
{
	struct str text = about("link", a->name);
	if (d->map[a->target] != OBJECT_NONE) {
		str_add(&text, "does not lead to the object ");
		describe_path(&text, d->paths, a->target);
	} else {
		str_add(&text, "leads to the object ");
		describe_path(&text, d->paths, d->reverse[b->target]);
	}
	return report(d, number, &text);
}

/* Returns the name with its article. */
static const char *class_name(enum link_class cls)
{
	switch (cls) {
	case LINK_HARD:
		return "a hard link";
	case LINK_SOFT:
		return "a soft link";
	case LINK_EXTERNAL:
		return "an external link";
	case LINK_USER:
		return "a user-defined link";
	}
	return "an unknown link";
}

static void instead(struct str *text, const char *a, const char *b)
{
	str_add(text, "\"");
	str_add_printable(text, b ? b : "");
	str_add(text, "\" instead of \"");
	str_add_printable(text, a ? a : "");
	str_add(text, "\"");
}

/* Returns whether an external link leads to the file that it must lead to. */
static bool files_equal(const struct diff *d, const char *a, const char *b)
{
	char expected[4096]; /* PATH_MAX */
	if (!d->sink || !d->sink->file_name)
		return texts_equal(a, b);
	return d->sink->file_name(d->sink->ctx, a ? a : "", expected, sizeof(expected)) == 0 &&
	       texts_equal(expected, b);
}

static int compare_link(struct diff *d, uint32_t number, const struct link *a, const struct link *b)
{
	struct str text = about("link", a->name);
	if (a->cls != b->cls) {
		str_addf(&text, "is %s instead of %s", class_name(b->cls), class_name(a->cls));
		return report(d, number, &text);
	}
	if (a->cls != LINK_HARD && !texts_equal(a->path, b->path)) {
		str_add(&text, "leads to ");
		instead(&text, a->path, b->path);
		return report(d, number, &text);
	}
	if (a->cls == LINK_EXTERNAL && !files_equal(d, a->domain, b->domain)) {
		str_add(&text, "leads to the file ");
		instead(&text, a->domain, b->domain);
		return report(d, number, &text);
	}
	str_release(&text);
	if (a->cls != LINK_HARD)
		return 0;
	if (d->map[a->target] == OBJECT_NONE && d->reverse[b->target] == OBJECT_NONE) {
		object_paths_add(d->paths, a->target, number, a->name);
		pair_objects(d, a->target, b->target);
	} else if (d->map[a->target] != b->target) {
		return report_other_target(d, number, a, b);
	}
	return 0;
}

static const char *link_name(const struct object *o, uint32_t i)
{
	return o->group.links[i].name;
}

static int compare_group(struct diff *d, uint32_t number)
{
	const struct object *a = object_a(d, number), *b = object_b(d, d->map[number]);
	struct names *v = &d->names;
	if (a->kind != OBJECT_GROUP || b->kind != OBJECT_GROUP)
		return 0;
	const uint32_t na = a->group.nlinks;
	int rc = reserve_names(d, na, b->group.nlinks);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < na; i++)
		v->a[i] = (struct named){.name = link_name(a, i), .index = i};
	for (uint32_t i = 0; i < v->nb; i++)
		v->b[i] = (struct named){.name = link_name(b, i), .index = i};
	rc = pair_names(d, number, "link");
	for (uint32_t i = 0; !rc && i < na; i++)
		if (v->pair[i] != OBJECT_NONE)
			rc = compare_link(d, number, &a->group.links[i],
					  &b->group.links[v->pair[i]]);
	return rc ? rc : check_order(d, number, "link", na, link_name);
}

/* ---- contents ---- */

/* what ends with a blank. */
static int compare_type(struct diff *d, uint32_t number, const char *what, const struct dtype *a,
			const struct dtype *b)
{
	struct str text = {0};
	if (dtype_equal(a, b))
		return 0;
	str_addf(&text, "%stype: ", what);
	describe_type_diff(&text, a, b);
	return report(d, number, &text);
}

static int compare_committed(struct diff *d, uint32_t number, const char *what, uint32_t a,
			     uint32_t b)
{
	struct str text = {0};
	if (a == OBJECT_NONE && b == OBJECT_NONE)
		return 0;
	if (a != OBJECT_NONE && b != OBJECT_NONE && d->map[a] == b)
		return 0;
	str_addf(&text, "%s%s", what,
		 a == OBJECT_NONE   ? "uses a committed type instead of a type of its own"
		 : b == OBJECT_NONE ? "uses a type of its own instead of a committed type"
				    : "uses another committed type");
	return report(d, number, &text);
}

static int compare_space(struct diff *d, uint32_t number, const char *what, const struct dspace *a,
			 const struct dspace *b)
{
	struct str text = {0};
	if (dspace_equal(a, b))
		return 0;
	str_addf(&text, "%sdataspace: ", what);
	describe_space(&text, b);
	str_add(&text, " instead of ");
	describe_space(&text, a);
	return report(d, number, &text);
}

static int compare_attribute(struct diff *d, uint32_t number, const struct attribute *a,
			     const struct attribute *b)
{
	auto_str struct str of = about("attribute", a->name);
	const char *what = str_text(&of);
	int rc = str_ok(&of) ? compare_type(d, number, what, a->type, b->type) : no_memory(d);
	if (!rc)
		rc = compare_committed(d, number, what, a->committed, b->committed);
	if (!rc)
		rc = compare_space(d, number, what, &a->space, &b->space);
	const uint64_t n = a->space.nelems;
	if (rc || !dtype_equal(a->type, b->type) || n != b->space.nelems)
		return rc;
	const uint64_t at = elems_diff(a->type, n, &a->value, &b->value, d->map);
	if (at == n)
		return 0;
	struct str text = about("attribute", a->name);
	str_addf(&text, "has another value, from element %" PRIu64 " of %" PRIu64 " on", at, n);
	return report(d, number, &text);
}

static const char *attribute_name(const struct object *o, uint32_t i)
{
	return o->attrs[i].name;
}

/* what is as for pair_names(). */
static int pair_attributes(struct diff *d, uint32_t number, const char *what,
			   const struct object *a, const struct object *b)
{
	struct names *v = &d->names;
	const int rc = reserve_names(d, a->nattrs, b->nattrs);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < v->na; i++)
		v->a[i] = (struct named){.name = attribute_name(a, i), .index = i};
	for (uint32_t i = 0; i < v->nb; i++)
		v->b[i] = (struct named){.name = attribute_name(b, i), .index = i};
	return pair_names(d, number, what);
}

static int compare_attributes(struct diff *d, uint32_t number, const struct object *a,
			      const struct object *b)
{
	const struct names *v = &d->names;
	const uint32_t na = a->nattrs;
	int rc = pair_attributes(d, number, "attribute", a, b);
	for (uint32_t i = 0; !rc && i < na; i++)
		if (v->pair[i] != OBJECT_NONE)
			rc = compare_attribute(d, number, &a->attrs[i], &b->attrs[v->pair[i]]);
	const bool is_ordered = a->attrs_ordered && b->attrs_ordered;
	return rc || !is_ordered ? rc : check_order(d, number, "attribute", na, attribute_name);
}

static int compare_grid(struct diff *d, uint32_t number, const struct grid *a, const struct grid *b)
{
	struct str text = {0};
	if (!(d->flags & TREE_DIFF_GRIDS) || grid_same_chunks(a, b))
		return 0;
	str_add(&text, "chunks: ");
	describe_chunk(&text, b);
	str_add(&text, " instead of ");
	describe_chunk(&text, a);
	return report(d, number, &text);
}

static int compare_filters(struct diff *d, uint32_t number, const struct dataset *a,
			   const struct dataset *b)
{
	struct str text = {0};
	struct pipeline p;
	if (!(d->flags & TREE_DIFF_FILTERS) ||
	    filters_equal(a->filters, a->nfilters, b->filters, b->nfilters))
		return 0;
	str_add(&text, "filters: ");
	dataset_pipeline(b, &p);
	describe_filters(&text, &p);
	str_add(&text, " instead of ");
	dataset_pipeline(a, &p);
	describe_filters(&text, &p);
	return report(d, number, &text);
}

static int compare_fill(struct diff *d, uint32_t number, const struct dataset *a,
			const struct dataset *b)
{
	struct str text = {0};
	if (d->sink && d->sink->has_fill && !d->sink->has_fill(d->sink->ctx, number))
		return 0;
	if (a->fill_defined != b->fill_defined)
		str_addf(&text, "fill value: %s", b->fill_defined ? "is additional" : "is missing");
	else if (!a->fill_defined || !dtype_equal(a->type, b->type) ||
		 elems_diff(a->type, 1, &a->fill, &b->fill, d->map) == 1)
		return 0;
	else
		str_add(&text, "fill value: is another one");
	return report(d, number, &text);
}

static int compare_dataset(struct diff *d, uint32_t number, const struct dataset *a,
			   const struct dataset *b)
{
	struct str text = {0};
	int rc = compare_type(d, number, "", a->type, b->type);
	if (!rc)
		rc = compare_committed(d, number, "", a->committed, b->committed);
	if (!rc)
		rc = compare_space(d, number, "", &a->space, &b->space);
	if (!rc && a->raw != b->raw) {
		str_add(&text, "raw data are stored in another way");
		rc = report(d, number, &text);
	}
	if (!rc)
		rc = compare_grid(d, number, &a->grid, &b->grid);
	if (!rc)
		rc = compare_filters(d, number, a, b);
	return rc ? rc : compare_fill(d, number, a, b);
}

static int compare_time(struct diff *d, uint32_t number, const char *what, int64_t a, int64_t b)
{
	static const int64_t second = 1000000000;
	struct str text = {0};
	const int64_t sa = a / second - (a % second < 0), sb = b / second - (b % second < 0);
	if (!(d->flags & TREE_DIFF_TIMES) || a == 0 || b == 0 || sa == sb)
		return 0;
	str_addf(&text, "time of %s: ", what);
	str_add_time(&text, b);
	str_add(&text, " instead of ");
	str_add_time(&text, a);
	return report(d, number, &text);
}

static int compare_comment(struct diff *d, uint32_t number, const char *a, const char *b)
{
	struct str text = {0};
	if (a && b && strcmp(a, b) == 0)
		return 0;
	if (a && b)
		str_add(&text, "comment: is another one");
	else if (a || b)
		str_addf(&text, "comment: is %s", a ? "missing" : "additional");
	return a || b ? report(d, number, &text) : 0;
}

static int compare_contents(struct diff *d, uint32_t number)
{
	static const char *const kinds[] = {"group", "dataset", "committed datatype"};
	const struct object *a = object_a(d, number), *b = object_b(d, d->map[number]);
	struct str text = {0};
	int rc = 0;
	if (a->kind != b->kind) {
		str_addf(&text, "is a %s instead of a %s", kinds[b->kind], kinds[a->kind]);
		return report(d, number, &text);
	}
	if (a->kind == OBJECT_DATASET)
		rc = compare_dataset(d, number, &a->dataset, &b->dataset);
	else if (a->kind == OBJECT_DATATYPE)
		rc = compare_type(d, number, "", a->datatype, b->datatype);
	if (!rc)
		rc = compare_attributes(d, number, a, b);
	if (!rc)
		rc = compare_comment(d, number, a->comment, b->comment);
	if (!rc)
		rc = compare_time(d, number, "creation", a->created_ns, b->created_ns);
	return rc ? rc : compare_time(d, number, "modification", a->modified_ns, b->modified_ns);
}

/* ---- committed types without a link ---- */

static void pair_type(struct diff *d, uint32_t a, uint32_t b)
{
	if (a != OBJECT_NONE && b != OBJECT_NONE && d->map[a] == OBJECT_NONE &&
	    d->reverse[b] == OBJECT_NONE)
		pair_objects(d, a, b);
}

static bool has_committed_types(const struct object *o)
{
	uint32_t i = 0;
	while (i < o->nattrs && o->attrs[i].committed == OBJECT_NONE)
		i++;
	return i < o->nattrs;
}

/* Pairs the types that an object and its attributes use. */
static int pair_types(struct diff *d, uint32_t number)
{
	const struct object *a = object_a(d, number), *b = object_b(d, d->map[number]);
	if (a->kind != b->kind)
		return 0;
	if (a->kind == OBJECT_DATASET)
		pair_type(d, a->dataset.committed, b->dataset.committed);
	if (!has_committed_types(a))
		return 0;
	const int rc = pair_attributes(d, number, NULL, a, b);
	for (uint32_t i = 0; !rc && i < a->nattrs; i++)
		if (d->names.pair[i] != OBJECT_NONE)
			pair_type(d, a->attrs[i].committed, b->attrs[d->names.pair[i]].committed);
	return rc;
}

static uint32_t *none(uint32_t n)
{
	uint32_t *v = malloc((n ? n : 1) * sizeof(*v));
	for (uint32_t i = 0; v && i < n; i++)
		v[i] = OBJECT_NONE;
	return v;
}

int tree_diff(const struct tree *a, const struct tree *b, unsigned int flags,
	      const struct tree_diff_sink *sink, uint32_t *map, uint64_t *n, struct err *err)
{
	struct diff d = {.a = a, .b = b, .flags = flags, .sink = sink, .err = err};
	d.map = none(tree_numbers(a));
	d.reverse = none(tree_numbers(b));
	d.queue = none(tree_numbers(a));
	d.paths = object_paths_none(tree_numbers(a));
	int rc = d.map && d.reverse && d.queue && d.paths ? 0 : no_memory(&d);
	if (!rc)
		pair_objects(&d, 0, 0);
	for (uint32_t i = 0; !rc && i < d.queued; i++)
		rc = compare_group(&d, d.queue[i]);
	for (uint32_t i = 0; !rc && i < d.queued; i++)
		rc = pair_types(&d, d.queue[i]);
	for (uint32_t i = 0; !rc && i < d.queued; i++)
		rc = compare_contents(&d, d.queue[i]);
	if (!rc && map)
		memcpy(map, d.map, tree_numbers(a) * sizeof(*map));
	*n = d.n;
	free(d.map);
	free(d.reverse);
	free(d.queue);
	object_paths_free(d.paths);
	free(d.names.a);
	free(d.names.b);
	free(d.names.pair);
	return rc;
}
