/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a new domain: what counts, and what does not. */
#include "schema_test.h"

#include <bucket/schemas.h>
#include <data/tree.h>

#include "shape_arena.h"

#define PREFIX "db/00112233-44556677/"
#define DSET_A "d-00112233-44556677-0001-000002-000003"
#define DSET_B "d-00112233-44556677-0001-000002-000004"

static struct object *add(struct tree *t, enum object_kind kind, const char *id)
{
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	struct object *o = tree_edit(t, number);
	o->kind = kind;
	o->id = id;
	return o;
}

/* A root group, a group, a committed type, and two datasets: of numbers and of strings. */
static struct tree *make_tree(void)
{
	static const uint64_t dims[] = {7};
	struct tree *t = tree_new(1 << 20);
	struct arena *a = tree_arena(t);
	add(t, OBJECT_GROUP, "g-00112233-44556677-8899-aabbcc-ddeeff");
	add(t, OBJECT_GROUP, "g-00112233-44556677-0001-000002-000003");
	add(t, OBJECT_DATATYPE, "t-00112233-44556677-0001-000002-000003");
	for (int i = 0; i < 3; i++) { /* the document of the last one is not put */
		static const char *const ids[] = {DSET_A, DSET_B, NULL};
		struct object *o = add(t, OBJECT_DATASET, ids[i]);
		o->dataset.type =
			i ? dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL)
			  : dtype_integer(a, 4, true, false, NULL);
		dspace_simple(shape_arena(), &o->dataset.space, 1, dims, NULL, NULL);
	}
	return t;
}

static const struct {
	const char *key;
	uint64_t size;
} stored[] = {
	{PREFIX ".group.json", 100},
	{PREFIX "g/0001-000002-000003/.group.json", 10},
	{PREFIX "t/0001-000002-000003/.datatype.json", 20},
	{PREFIX "d/0001-000002-000003/.dataset.json", 30},
	{PREFIX "d/0001-000002-000004/.dataset.json", 40},
	{PREFIX "d/0001-000002-000003/0", 16},
	{PREFIX "d/0001-000002-000003/1", 17},
	{PREFIX "d/0001-000002-000004/0", 5},
	/* These do not count. */
	{PREFIX "g/0001-000002-000004/.group.json", 1000}, /* removed, but not yet deleted */
	{PREFIX "t/0001-000002-000004/.datatype.json", 1000},
	{PREFIX "d/0001-000002-000005/0", 1000},
	{PREFIX ".hsmount-userblock-0", 1000},
	{PREFIX "d/0001-000002-000003/x", 1000},
	{"home/a.h5/.domain.json", 1000},
};

static char *summary_of(const struct tree *t)
{
	const struct schema_tally_ops *ops = schema_all()[0]->writer->tally;
	const struct schema_scan scan = {.bucket = "b", .time_ns = INT64_C(1700000000500000000)};
	struct schema_tally *tally;
	struct bytes text = {0};
	assert_int_equal(ops->begin(t, &tally, NULL), 0);
	for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++)
		ops->add(tally, stored[i].key, stored[i].size);
	ops->link(tally, 3, 3, 99);
	assert_int_equal(ops->emit(tally, &scan, &text, NULL), 0);
	assert_int_equal(bytes_append(&text, "", 1), 0);
	ops->free(tally);
	return (char *)text.data;
}

static void counts_what_a_scan_counts(void **state)
{
	static const char want[] =
		"{\"lastModified\": 1700000000.500000, \"num_groups\": 2, \"num_datatypes\": 1, "
		"\"datasets\": {"
		"\"" DSET_A "\": {\"lastModified\": 1700000000.500000, \"num_chunks\": 2, "
		"\"allocated_bytes\": 33, \"logical_bytes\": 28, \"linked_bytes\": 99, "
		"\"num_linked_chunks\": 3}, "
		"\"" DSET_B "\": {\"lastModified\": 1700000000.500000, \"num_chunks\": 1, "
		"\"allocated_bytes\": 5, \"logical_bytes\": 5, \"linked_bytes\": 0, "
		"\"num_linked_chunks\": 0}}, "
		"\"num_chunks\": 3, \"allocated_bytes\": 38, \"metadata_bytes\": 200, "
		"\"logical_bytes\": 33, \"linked_bytes\": 99, \"num_linked_chunks\": 3, "
		"\"bucket\": \"b\", \"scan_start\": 1700000000.500000, "
		"\"scan_complete\": 1700000000.500000}";
	struct tree *t = make_tree();
	auto_free char *text = summary_of(t);
	struct schema_info info;
	assert_string_equal(text, want);
	assert_int_equal(schema_info_parse(text, strlen(text), &info, NULL), 0);
	assert_int_equal(info.num_objects, 5);
	assert_int_equal(info.num_chunks, 3);
	tree_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_a_scan_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
