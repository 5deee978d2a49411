/* SPDX-License-Identifier: Apache-2.0 */
/* Types, shapes, filters, sizes and paths in words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <data/describe.h>

static int setup(void **state)
{
	*state = arena_new(1 << 20);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static void assert_type(const struct dtype *t, const char *text)
{
	auto_str struct str out = {0};
	assert_non_null(t);
	describe_type(&out, t);
	assert_string_equal(str_text(&out), text);
}

static void every_class_of_types_has_words(void **state)
{
	static const uint32_t dims[] = {2, 3};
	static const char *const names[] = {"no", "yes"};
	static const uint8_t values[] = {0, 1};
	struct arena *a = *state;
	const struct dtype *i1 = dtype_integer(a, 1, false, false, NULL);
	const struct dtype *f8 = dtype_ieee(a, 8, false, NULL);
	const struct dtype *text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	struct dtype time = *i1;
	time.cls = DTYPE_TIME;
	time.size = 4;
	assert_type(i1, "uint8");
	assert_type(dtype_integer(a, 4, true, false, NULL), "int32");
	assert_type(dtype_integer(a, 2, true, true, NULL), "int16 (big-endian)");
	assert_type(f8, "float64");
	assert_type(dtype_ieee(a, 2, true, NULL), "float16 (big-endian)");
	assert_type(&time, "time32");
	assert_type(dtype_string(a, 7, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL), "string[7]");
	assert_type(dtype_bitfield(a, 2, false, NULL), "bitfield16");
	assert_type(dtype_opaque(a, 5, "tag", NULL), "opaque[5]");
	assert_type(dtype_reference(a, DTYPE_REF_OBJECT, NULL), "object reference");
	assert_type(dtype_reference(a, DTYPE_REF_REGION, NULL), "region reference");
	assert_type(dtype_enum(a, i1, 2, names, values, NULL), "enum(2 names) of uint8");
	assert_type(text, "variable-length string");
	assert_type(dtype_vlen(a, f8, NULL), "variable-length float64");
	assert_type(dtype_array(a, f8, 2, dims, NULL), "array[2,3] of float64");
	assert_type(dtype_array(a, text, 1, dims, NULL), "array[2] of variable-length string");
	const struct dtype_member members[] = {{"a", 0, i1}, {"b c", 0, text}};
	const struct dtype *pair = dtype_compound(a, 2, members, 0, NULL);
	const struct dtype_member latin1 = {"T\xb0\n", 0, i1};
	assert_type(dtype_compound(a, 1, &latin1, 0, NULL), "compound{T\\xb0\\x0a: uint8}");
	assert_type(pair, "compound{a: uint8, b c: variable-length string}");
	assert_type(dtype_array(a, pair, 1, dims + 1, NULL),
		    "array[3] of compound{a: uint8, b c: variable-length string}");
}

static void a_long_compound_is_cut(void **state)
{
	struct arena *a = *state;
	struct dtype_member members[18];
	char names[18][8];
	const char *short_text = "compound{m0: uint8, m1: uint8, m2: uint8, m3: uint8, m4: uint8, "
				 "m5: uint8, m6: uint8, m7: uint8, m8: uint8, m9: uint8, "
				 "m10: uint8, m11: uint8, m12: uint8, m13: uint8, m14: uint8, "
				 "m15: uint8";
	char text[256];
	for (unsigned int i = 0; i < 18; i++) {
		snprintf(names[i], sizeof(names[i]), "m%u", i);
		members[i] =
			(struct dtype_member){names[i], 0, dtype_integer(a, 1, false, false, NULL)};
	}
	snprintf(text, sizeof(text), "%s}", short_text);
	assert_type(dtype_compound(a, 16, members, 0, NULL), text);
	snprintf(text, sizeof(text), "%s, … 1 more}", short_text);
	assert_type(dtype_compound(a, 17, members, 0, NULL), text);
	snprintf(text, sizeof(text), "%s, … 2 more}", short_text);
	assert_type(dtype_compound(a, 18, members, 0, NULL), text);
}

static void shapes_show_their_limits(void **state)
{
	static const uint64_t five[] = {5}, dims[] = {0, 4, 5}, max[] = {DSPACE_UNLIMITED, 8, 5};
	static const uint32_t chunk[] = {10, 20};
	static const struct {
		struct dspace space;
		const char *text;
	} rows[] = {
		{{.cls = DSPACE_NULL}, "null"},
		{{.cls = DSPACE_SCALAR}, "scalar"},
		{{.cls = DSPACE_SIMPLE, .rank = 1, .dims = five, .max = five}, "[5]"},
		{{.cls = DSPACE_SIMPLE, .rank = 3, .dims = dims, .max = max}, "[0/inf,4/8,5]"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_str struct str out = {0};
		describe_space(&out, &rows[i].space);
		assert_string_equal(str_text(&out), rows[i].text);
	}
	auto_str struct str out = {0};
	describe_chunk(&out, &(struct grid){.rank = 2, .chunk = chunk});
	assert_string_equal(str_text(&out), "[10,20]");
}

static void filters_have_names(void **state)
{
	auto_str struct str out = {0}, all = {0}, none = {0};
	static const uint32_t six[] = {6};
	static struct pipeline p = {
		.n = 5,
		.f = {{.id = FILTER_SHUFFLE},
		      {.id = FILTER_DEFLATE, .nparams = 1, .params = six},
		      {.id = FILTER_DEFLATE},
		      {.id = 333, .name = "own"},
		      {.id = 334}},
	};
	static struct pipeline known = {
		.n = 9,
		.f = {{.id = FILTER_FLETCHER32},
		      {.id = FILTER_SZIP},
		      {.id = FILTER_NBIT},
		      {.id = FILTER_SCALEOFFSET},
		      {.id = FILTER_LZF, .name = "other"},
		      {.id = FILTER_BLOSC, .nparams = 1, .params = six},
		      {.id = FILTER_LZ4},
		      {.id = FILTER_BITSHUFFLE},
		      {.id = FILTER_ZSTD}},
	};
	describe_filters(&out, &p);
	assert_string_equal(str_text(&out), "shuffle, deflate(6), deflate, own, unnamed");
	describe_filters(&all, &known);
	assert_string_equal(str_text(&all), "fletcher32, szip, nbit, scaleoffset, lzf, blosc, lz4, "
					    "bitshuffle, zstd");
	describe_filters(&none, &(struct pipeline){0});
	assert_string_equal(str_text(&none), "none");
}

static void sizes_have_units(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{0, "0 bytes"},		 {999, "999 bytes"},	{1000, "1.0 kB"},
		{1049, "1.0 kB"},	 {1051, "1.1 kB"},	{999949, "999.9 kB"},
		{999950, "1.0 MB"},	 {18912345, "18.9 MB"}, {1000000000, "1.0 GB"},
		{UINT64_MAX, "18.4 EB"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_str struct str out = {0};
		describe_size(&out, rows[i].bytes);
		assert_string_equal(str_text(&out), rows[i].text);
	}
}

/* ---- paths ---- */

static void add_group(struct tree *t, const char *const *names, const uint32_t *targets, uint32_t n)
{
	uint32_t number;
	assert_int_equal(tree_add(t, &number, NULL), 0);
	struct link *links = arena_array(tree_arena(t), n ? n : 1, sizeof(*links));
	for (uint32_t i = 0; i < n; i++)
		links[i] = (struct link){
			.name = names[i], .utf8 = true, .cls = LINK_HARD, .target = targets[i]};
	struct object *o = tree_edit(t, number);
	o->kind = OBJECT_GROUP;
	o->id = "g";
	o->group.nlinks = n;
	o->group.links = links;
}

static void assert_path(const struct object_paths *p, uint32_t number, const char *text)
{
	auto_str struct str out = {0};
	describe_path(&out, p, number);
	assert_string_equal(str_text(&out), text);
}

static void an_object_has_the_path_of_its_first_link(void **state)
{
	struct tree *t = tree_new(1 << 20);
	/* 0: a -> 1, b -> 2, self -> 0; 1: c\n -> 2, d -> 3; 2: up -> 1; 3; 4 has no link */
	add_group(t, (const char *const[]){"a", "b", "self"}, (const uint32_t[]){1, 2, 0}, 3);
	add_group(t, (const char *const[]){"c\n", "d\n"}, (const uint32_t[]){2, 3}, 2);
	add_group(t, (const char *const[]){"up"}, (const uint32_t[]){1}, 1);
	add_group(t, NULL, NULL, 0);
	add_group(t, NULL, NULL, 0);
	assert_int_equal(tree_finish(t, NULL), 0);
	struct object_paths *p = object_paths_new(t);
	assert_non_null(p);
	assert_path(p, 0, "/");
	assert_path(p, 1, "/a");
	assert_path(p, 2, "/b");
	assert_path(p, 3, "/a/d\\x0a");
	assert_path(p, 4, "(object 4)");
	object_paths_free(p);
	tree_free(t);
}

static void a_very_long_path_loses_its_beginning(void **state)
{
	enum { DEPTH = 1100, SHOWN = 1024 };
	struct tree *t = tree_new(8 << 20);
	for (uint32_t i = 0; i <= DEPTH; i++)
		add_group(t, (const char *const[]){"n"}, (const uint32_t[]){i + 1}, i < DEPTH);
	assert_int_equal(tree_finish(t, NULL), 0);
	struct object_paths *p = object_paths_new(t);
	auto_str struct str out = {0}, whole = {0};
	describe_path(&out, p, DEPTH);
	assert_int_equal(strncmp(str_text(&out), "/…/n/n", strlen("/…/n/n")), 0);
	assert_int_equal(out.b.len, strlen("/…") + 2 * SHOWN);
	describe_path(&whole, p, SHOWN);
	assert_int_equal(strncmp(str_text(&whole), "/n/n", 4), 0);
	assert_int_equal(whole.b.len, 2 * SHOWN);
	object_paths_free(p);
	tree_free(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_class_of_types_has_words),
		TEST(a_long_compound_is_cut),
		TEST(shapes_show_their_limits),
		TEST(filters_have_names),
		TEST(sizes_have_units),
		TEST(an_object_has_the_path_of_its_first_link),
		TEST(a_very_long_path_loses_its_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
