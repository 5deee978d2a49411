/* SPDX-License-Identifier: Apache-2.0 */
/* What a domain cannot hold: one case for each row of the table, and for each type without a
 * stand-in. */
#include "schema_test.h"

#include <codec/chunk.h>
#include <data/chunk_source.h>
#include <data/tree.h>
#include <bucket/schemas.h>

#include "shape_arena.h"
#include "storages.h"

/* A root group, and one object of each kind that has nothing to refuse. */
struct fixture {
	struct tree *tree;
	struct arena *arena;
	struct object *group, *dataset, *type;
	struct attribute *attr; /* of the group */
	struct link *link;	/* of the group */
};

static void fixture_init(struct fixture *f)
{
	static const uint64_t dims[] = {4}, chunk[] = {2};
	uint32_t number;
	*f = (struct fixture){.tree = tree_new(64 << 20)};
	f->arena = tree_arena(f->tree);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(tree_add(f->tree, &number, NULL), 0);
	f->group = tree_edit(f->tree, 0);
	f->dataset = tree_edit(f->tree, 1);
	f->type = tree_edit(f->tree, 2);
	f->dataset->kind = OBJECT_DATASET;
	f->dataset->dataset.committed = OBJECT_NONE;
	f->dataset->dataset.type = dtype_integer(f->arena, 4, true, false, NULL);
	f->dataset->dataset.alloc_time = ALLOC_TIME_LATE;
	dspace_simple(shape_arena(), &f->dataset->dataset.space, 1, dims, NULL, NULL);
	grid_init(shape_arena(), &f->dataset->dataset.grid, 1, dims, chunk, NULL);
	f->type->kind = OBJECT_DATATYPE;
	f->type->datatype = f->dataset->dataset.type;
	f->group->nattrs = 1;
	f->group->attrs = f->attr = arena_alloc(f->arena, sizeof(*f->attr));
	*f->attr = (struct attribute){.name = "attr", .committed = OBJECT_NONE};
	f->attr->type = f->dataset->dataset.type;
	dspace_scalar(&f->attr->space);
	f->group->group.nlinks = 3;
	f->group->group.links = arena_array(f->arena, 3, sizeof(struct link));
	f->group->group.links[0] = (struct link){.name = "dataset", .target = 1};
	f->group->group.links[1] = (struct link){.name = "type", .target = 2};
	f->link = &f->group->group.links[2];
	*f->link = (struct link){.name = "soft", .cls = LINK_SOFT, .path = "/x"};
}

struct found {
	unsigned int n;
	struct schema_refusal last;
	char why[200]; /* of the last */
};

static int note(void *ctx, const struct schema_refusal *r)
{
	struct found *f = ctx;
	f->n++;
	f->last = *r;
	snprintf(f->why, sizeof(f->why), "%s", r->why);
	return 0;
}

static struct found refusals(struct fixture *f)
{
	struct found found = {0};
	assert_int_equal(tree_finish(f->tree, NULL), 0);
	assert_int_equal(schema_all()[0]->writer->refusals(f->tree, note, &found), 0);
	tree_free(f->tree);
	return found;
}

static void an_ordinary_tree_has_none(void **state)
{
	struct fixture f;
	fixture_init(&f);
	assert_int_equal(refusals(&f).n, 0);
}

/* ---- the rows ---- */

static void make_virtual(struct fixture *f)
{
	f->dataset->dataset.raw = RAW_VIRTUAL;
}

static void make_external(struct fixture *f)
{
	f->dataset->dataset.raw = RAW_EXTERNAL;
}

static void make_structured(struct fixture *f)
{
	f->dataset->dataset.raw = RAW_STRUCTURED;
}

static void make_elsewhere(struct fixture *f)
{
	f->dataset->dataset.absence_unknown = "elsewhere";
}

static void make_jpeg(struct fixture *f)
{
	static const struct filter filters[] = {
		{.id = FILTER_SHUFFLE}, {.id = 32022}, {.id = 32019, .name = "jpeg"}};
	f->dataset->dataset.filters = filters;
	f->dataset->dataset.nfilters = 3;
}

static void make_nameless(struct fixture *f)
{
	static const struct filter filters[] = {{.id = 305}};
	f->dataset->dataset.filters = filters;
	f->dataset->dataset.nfilters = 1;
}

static void make_large_chunks(struct fixture *f)
{
	static const uint64_t dims[] = {CHUNK_BYTES_MAX / 4 + 1};
	dspace_simple(shape_arena(), &f->dataset->dataset.space, 1, dims, NULL, NULL);
	grid_init(shape_arena(), &f->dataset->dataset.grid, 1, dims, dims, NULL);
}

static void make_large_texts(struct fixture *f)
{
	static const uint64_t dims[] = {CHUNK_BYTES_MAX / OBJECT_REF_TEXT + 1};
	make_large_chunks(f);
	grid_init(shape_arena(), &f->dataset->dataset.grid, 1, dims, dims, NULL);
	f->dataset->dataset.type = dtype_reference(f->arena, DTYPE_REF_OBJECT, NULL);
}

static void make_large_dims(struct fixture *f)
{
	static const uint64_t dims[] = {4}, max[] = {DSPACE_UNLIMITED - 1};
	dspace_simple(shape_arena(), &f->dataset->dataset.space, 1, dims, max, NULL);
}

static void make_other_grid(struct fixture *f)
{
	dspace_scalar(&f->dataset->dataset.space);
	f->dataset->dataset.grid.rank = 0;
}

static void make_large_values(struct fixture *f)
{
	static const uint64_t dims[] = {97 << 18};
	dspace_simple(shape_arena(), &f->attr->space, 1, dims, NULL, NULL);
}

static void make_many_links(struct fixture *f)
{
	enum { N = 4300 };
	char *path = arena_alloc(f->arena, 60001);
	struct link *links = arena_array(f->arena, N, sizeof(*links));
	memset(path, 'x', 60000);
	memcpy(links, f->group->group.links, 2 * sizeof(*links));
	for (uint32_t i = 2; i < N; i++)
		links[i] = (struct link){.name = "l", .cls = LINK_SOFT, .path = path};
	f->group->group.links = links;
	f->group->group.nlinks = N;
}

static void make_lone_bytes(struct fixture *f)
{
	f->attr->name = "\xe9";
}

static void make_large_shape(struct fixture *f)
{
	static const uint64_t dims[] = {0}, max[] = {UINT64_C(1) << 63};
	dspace_simple(shape_arena(), &f->attr->space, 1, dims, max, NULL);
}

static void make_user_link(struct fixture *f)
{
	f->link->cls = LINK_USER;
}

static void make_dot(struct fixture *f)
{
	f->link->name = ".";
}

static void make_no_path(struct fixture *f)
{
	f->link->path = "";
}

static void make_no_file(struct fixture *f)
{
	f->link->cls = LINK_EXTERNAL;
	f->link->domain = "";
}

/* Only the comment cannot be held. */
static void a_long_comment(void **state)
{
	static char comment[65002];
	for (size_t n = 65000; n <= 65001; n++) {
		struct fixture f;
		fixture_init(&f);
		memset(comment, 'c', n);
		f.dataset->comment = comment;
		const struct found found = refusals(&f);
		assert_int_equal(found.n, n > 65000);
		if (!found.n)
			continue;
		assert_true(found.last.comment && !found.last.is_fixed);
		assert_int_equal(found.last.object, 1);
		assert_string_equal(found.why, "a comment of more than 65,000 bytes");
	}
}

static void every_row_is_reported(void **state)
{
	static const struct {
		void (*make)(struct fixture *f);
		const char *why;
		uint32_t object;
		const char *attribute, *link;
	} rows[] = {
		{make_virtual, "a virtual dataset", 1, NULL, NULL},
		{make_external, "raw data in external files, which --allow-external reads", 1, NULL,
		 NULL},
		{make_structured, "structured chunks", 1, NULL, NULL},
		{make_elsewhere, "raw data in another HDF5 file", 1, NULL, NULL},
		{make_jpeg, "a filter without a decoder: 32019 (jpeg)", 1, NULL, NULL},
		{make_nameless, "a filter without a decoder: 305", 1, NULL, NULL},
		{make_large_chunks, "chunks of more than 256 MiB", 1, NULL, NULL},
		{make_large_texts, "chunks of more than 256 MiB", 1, NULL, NULL},
		{make_large_dims, "a dimension of 2^63 or more", 1, NULL, NULL},
		{make_other_grid, "a chunk grid of another rank", 1, NULL, NULL},
		{make_large_values, "attribute values of more than 96 MiB", 0, NULL, NULL},
		{make_many_links, "more links than fit into a document", 0, NULL, NULL},
		{make_lone_bytes, "empty, too long or not UTF-8", 0, "\xe9", NULL},
		{make_large_shape, "a dimension of 2^63 or more", 0, "attr", NULL},
		{make_user_link, "a user-defined link", 0, NULL, "soft"},
		{make_dot, "a link name", 0, NULL, "."},
		{make_no_path, "an empty or too long path", 0, NULL, "soft"},
		{make_no_file, "an empty or too long path", 0, NULL, "soft"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;
		struct found found;
		fixture_init(&f);
		rows[i].make(&f);
		found = refusals(&f);
		if (found.n != 1)
			fail_msg("row %zu: %u refusals", i, found.n);
		assert_contains(found.why, rows[i].why);
		assert_int_equal(found.last.object, rows[i].object);
		assert_int_equal(!found.last.attribute, !rows[i].attribute);
		assert_int_equal(!found.last.link, !rows[i].link);
	}
}

/* ---- types ---- */

static const struct dtype *region(struct arena *a)
{
	return dtype_reference(a, DTYPE_REF_REGION, NULL);
}

static const struct dtype *text(struct arena *a)
{
	return dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
}

static const struct dtype *pair(struct arena *a, const struct dtype *t)
{
	const struct dtype_member m[] = {{"a", 0, dtype_integer(a, 4, true, false, NULL)},
					 {"b", 0, t}};
	return dtype_compound(a, 2, m, 0, NULL);
}

static const struct dtype *two(struct arena *a, const struct dtype *t)
{
	static const uint32_t dims[] = {2};
	return dtype_array(a, t, 1, dims, NULL);
}

static const struct dtype *many_texts(struct arena *a)
{
	static const uint32_t dims[] = {25, 41};
	return dtype_array(a, text(a), 2, dims, NULL);
}

static const struct dtype *array_of_pairs(struct arena *a)
{
	return pair(a, two(a, pair(a, text(a))));
}

static const struct dtype *referring_sequence(struct arena *a)
{
	return dtype_vlen(a, pair(a, dtype_reference(a, DTYPE_REF_OBJECT, NULL)), NULL);
}

static const struct dtype *regions_in_pairs(struct arena *a)
{
	return dtype_vlen(a, pair(a, region(a)), NULL);
}

static void types_without_a_stand_in_are_reported(void **state)
{
	static const struct {
		const struct dtype *(*make)(struct arena *a);
		const char *why;
	} rows[] = {
		{region, "a region reference"},
		{regions_in_pairs, "a region reference"},
		{many_texts, "an array type of more than 1024 references or variable-length items"},
		{array_of_pairs, "an array of compounds with references or variable-length"},
		{referring_sequence, "a sequence of items that contain references"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int where = 0; where < 3; where++) {
			struct fixture f;
			struct found found;
			fixture_init(&f);
			const struct dtype *t = rows[i].make(f.arena);
			assert_non_null(t);
			if (where == 0)
				f.attr->type = t;
			else if (where == 1)
				f.dataset->dataset.type = t;
			else
				f.type->datatype = t;
			found = refusals(&f);
			assert_int_equal(found.n, 1);
			assert_contains(found.why, rows[i].why);
			assert_int_equal(found.last.object, where);
			assert_int_equal(!found.last.attribute, where != 0);
		}
}

static int stop(void *ctx, const struct schema_refusal *r)
{
	++*(int *)ctx;
	return -EINTR;
}

static void the_callback_can_stop(void **state)
{
	struct fixture f;
	int n = 0;
	fixture_init(&f);
	make_lone_bytes(&f);
	make_virtual(&f);
	assert_int_equal(tree_finish(f.tree, NULL), 0);
	assert_int_equal(schema_all()[0]->writer->refusals(f.tree, stop, &n), -EINTR);
	assert_int_equal(n, 1);
	tree_free(f.tree);
}

/* A refused thing is never emitted as something else. */
static void what_is_refused_is_not_emitted(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture f;
		struct bytes out = {0};
		struct err err = ERR_INIT;
		fixture_init(&f);
		if (i == 0)
			f.attr->type = region(f.arena);
		else
			make_user_link(&f);
		assert_int_equal(tree_finish(f.tree, NULL), 0);
		assert_int_equal(schema_all()[0]->writer->adopt(f.tree, STORAGE(1), 1, &err), 0);
		assert_int_equal(schema_all()[0]->writer->emit_object(f.tree, 0, &out, &err),
				 -EOPNOTSUPP);
		assert_contains(err.msg, i ? "a user-defined link" : "a region reference");
		assert_int_equal(out.len, 0);
		bytes_release(&out);
		tree_free(f.tree);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_tree_has_none),
		cmocka_unit_test(every_row_is_reported),
		cmocka_unit_test(a_long_comment),
		cmocka_unit_test(types_without_a_stand_in_are_reported),
		cmocka_unit_test(the_callback_can_stop),
		cmocka_unit_test(what_is_refused_is_not_emitted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
