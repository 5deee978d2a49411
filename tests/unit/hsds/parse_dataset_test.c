/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

#define TYPE_I32  "\"type\":\"H5T_STD_I32LE\""
#define SIMPLE(d) "\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":" d "}"
#define SHAPED	  TYPE_I32 "," SIMPLE("[10]") ",\"layout\":{\"dims\":[10]}"
#define PROPS(p)  ",\"creationProperties\":{" p "}"
#define LAYOUT(l) ",\"layout\":" l

static void shapes_and_grids(void **state)
{
	static const struct {
		const char *members;
		enum dspace_class cls;
		uint32_t rank;
		uint64_t nchunks;
	} rows[] = {
		{"\"shape\":{\"class\":\"H5S_NULL\"}", DSPACE_NULL, 0, 0},
		{"\"shape\":\"H5S_NULL\"", DSPACE_NULL, 0, 0},
		{"\"shape\":{\"class\":\"H5S_SCALAR\"}" LAYOUT("{\"dims\":[1]}"), DSPACE_SCALAR, 1,
		 1},
		{SIMPLE("[]"), DSPACE_SCALAR, 1, 1},
		{SIMPLE("[10]") LAYOUT("{\"class\":\"H5D_CHUNKED\",\"dims\":[4]}"), DSPACE_SIMPLE,
		 1, 3},
		{SIMPLE("[10,7]") LAYOUT("{\"dims\":[4,7]}"), DSPACE_SIMPLE, 2, 3},
		{SIMPLE("[10]") LAYOUT("{\"dims\":[100]}"), DSPACE_SIMPLE, 1, 1},
		{SIMPLE("[10]") LAYOUT("{\"dims\":4}"), DSPACE_SIMPLE, 1, 3},
		{SIMPLE("[0]") LAYOUT("{\"dims\":[0]}"), DSPACE_SIMPLE, 1, 0},
		{SIMPLE("[4,0]") LAYOUT("{\"dims\":[2,0]}"), DSPACE_SIMPLE, 2, 0},
		/* a dataset without stored chunks may have no layout */
		{SIMPLE("[4]") LAYOUT("{\"class\":\"H5D_COMPACT\"}"), DSPACE_SIMPLE, 1, 1},
		{SIMPLE("[4]"), DSPACE_SIMPLE, 1, 1},
		/* the stored layout has precedence over the requested one */
		{SIMPLE("[10]") LAYOUT("{\"dims\":[5]}")
			 PROPS("\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[1]}"),
		 DSPACE_SIMPLE, 1, 2},
		{SIMPLE("[10]") PROPS("\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[1]}"),
		 DSPACE_SIMPLE, 1, 10},
		{SIMPLE("[10]") ",\"creationProperties\":null", DSPACE_SIMPLE, 1, 1},
		{SIMPLE("[10]") ",\"creationProperties\":\"BwAAAA==\"", DSPACE_SIMPLE, 1, 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), TYPE_I32 ",%s", rows[i].members);
		struct parsed p = parse_dataset(text);
		if (p.rc)
			fail_msg("%s for: %s", p.err.msg, text);
		assert_int_equal(p.o.dataset.space.cls, rows[i].cls);
		assert_int_equal(p.o.dataset.grid.rank, rows[i].rank);
		assert_int_equal(p.o.dataset.grid.nchunks, rows[i].nchunks);
		assert_true(p.o.dataset.committed == OBJECT_NONE);
		parsed_release(&p);
	}
}

static void maximum_dims(void **state)
{
	struct parsed p = parse_dataset(
		TYPE_I32 ",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[1,2,3,4],\"maxdims\":[0,"
			 "\"H5S_UNLIMITED\",3,9]},\"layout\":{\"dims\":[1,1,1,1]}");
	assert_int_equal(p.rc, 0);
	const struct dspace *s = &p.o.dataset.space;
	assert_true(s->max[0] == DSPACE_UNLIMITED);
	assert_true(s->max[1] == DSPACE_UNLIMITED);
	assert_true(s->max[2] == 3 && s->max[3] == 9);
	parsed_release(&p);
	p = parse_dataset(SHAPED);
	assert_int_equal(p.rc, 0);
	assert_true(p.o.dataset.space.max[0] == 10);
	assert_false(dspace_extendible(&p.o.dataset.space));
	parsed_release(&p);
}

static void refuses(void **state)
{
	static const struct {
		const char *members, *why;
	} rows[] = {
		{SIMPLE("[10]"), "type: missing"},
		{TYPE_I32, "shape: missing"},
		{TYPE_I32 "," SIMPLE("[10,1]") LAYOUT("{\"dims\":[1]}"), "layout: dims: 1 dim"},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[0]}"), "layout: dims: dimension 0"},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[-1]}"),
		 "layout: dims: dimension 0"},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[4294967296]}"), "layout: "},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[1073741824]}"),
		 "layout: chunks of"},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[18446744073709551616]}"),
		 "layout: dims: dimension 0"},
		{TYPE_I32 "," SIMPLE("[4294967296]"), "layout: "},
		{TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[1],\"partition_count\":-1}"),
		 "layout: partition_count"},
		{TYPE_I32 ",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[3],\"maxdims\":[2]}",
		 "shape: "},
		{TYPE_I32 ",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[3],\"maxdims\":[3,3]}",
		 "shape: maxdims"},
		{TYPE_I32 ",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[3],\"maxdims\":[\"x\"]}",
		 "shape: maxdims: dimension 0"},
		{TYPE_I32 "," SIMPLE("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
				     "1,1,1]"),
		 "shape: dims: 33 dimensions"},
		{SHAPED PROPS("\"filters\":\"gzip\""), "filters: not a list"},
		{SHAPED PROPS("\"filters\":[{\"class\":\"H5Z_FILTER_X\"}]"),
		 "filters: [0]: unknown"},
		{SHAPED PROPS("\"filters\":[\"gzip\",\"x\"]"),
		 "filters: [1]: unknown filter \"x\""},
		{SHAPED PROPS("\"filters\":[0]"), "filters: [0]: id"},
		{SHAPED PROPS("\"filters\":[{\"id\":1,\"parameters\":[1.5]}]"),
		 "filters: [0]: parameter 0"},
		{SHAPED PROPS(
			 "\"filters\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
			 "1,1,1,1,1]"),
		 "filters: 33 filters"},
		{SHAPED PROPS("\"fillValue\":\"x\""), "fillValue: \"x\" is not a number"},
		{SHAPED PROPS("\"fillValue\":[1,2]"), "fillValue: "},
		{SHAPED PROPS("\"fillValue\":\"AAA=\",\"fillValue_encoding\":\"base64\""),
		 "fillValue: element 0"},
		{SHAPED PROPS("\"initializer\":[\"arange\",\"--step=x\"]"), "initializer: "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_dataset(rows[i].members);
		if (p.rc != -EIO)
			fail_msg("%d for: %s", p.rc, rows[i].members);
		assert_contains(p.err.msg, "dataset " DATASET_ID ": ");
		assert_contains(p.err.msg, rows[i].why);
		parsed_release(&p);
	}
}

static void filters(void **state)
{
	static const struct {
		const char *filters;
		uint32_t n, id[3], nparams, param0;
	} rows[] = {
		{"[]", 0, {0}, 0, 0},
		{"null", 0, {0}, 0, 0},
		{"[{\"class\":\"H5Z_FILTER_DEFLATE\",\"id\":1,\"level\":9,\"name\":\"gzip\"}]",
		 1,
		 {1},
		 1,
		 9},
		{"[{\"class\":\"H5Z_FILTER_DEFLATE\"}]", 1, {1}, 1, 6},
		{"[{\"class\":\"H5Z_FILTER_DEFLATE\",\"level\":77}]", 1, {1}, 1, 6},
		{"[{\"class\":\"H5Z_FILTER_USER\",\"id\":1,\"name\":\"deflate\"}]", 1, {1}, 1, 6},
		{"[\"gzip\",\"H5Z_FILTER_SHUFFLE\",3]", 3, {1, 2, 3}, 1, 6},
		{"[{\"class\":\"H5Z_FILTER_USER\",\"id\":32001,\"parameters\":[2,2,4],\"name\":"
		 "\"blosclz\"}]",
		 1,
		 {32001},
		 3,
		 2},
		{"[{\"class\":\"H5Z_FILTER_USER\",\"name\":\"lz4hc\"}]", 1, {32005}, 0, 0},
		{"[{\"class\":\"H5Z_FILTER_USER\",\"name\":\"who\",\"id\":40000}]",
		 1,
		 {40000},
		 0,
		 0},
		{"[\"bitshuffle\",\"zstd\"]", 2, {32008, 32015}, 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), SHAPED PROPS("\"filters\":%s"), rows[i].filters);
		struct parsed p = parse_dataset(text);
		assert_int_equal(p.rc, 0);
		const struct dataset *ds = &p.o.dataset;
		assert_int_equal(ds->nfilters, rows[i].n);
		for (uint32_t k = 0; k < ds->nfilters; k++)
			assert_int_equal(ds->filters[k].id, rows[i].id[k]);
		if (ds->nfilters > 0) {
			assert_int_equal(ds->filters[0].nparams, rows[i].nparams);
			assert_int_equal(ds->filters[0].params[0], rows[i].param0);
		}
		parsed_release(&p);
	}
	struct parsed p = parse_dataset(
		SHAPED PROPS("\"filters\":[{\"class\":\"H5Z_FILTER_USER\",\"id\":1,\"name\":"
			     "\"deflate\"},\"gzip\",3]"));
	assert_int_equal(p.o.dataset.nfilters, 3);
	assert_string_equal(p.o.dataset.filters[0].name, "deflate");
	assert_string_equal(p.o.dataset.filters[1].name, "gzip");
	assert_null(p.o.dataset.filters[2].name);
	parsed_release(&p);
}

static void fill_values(void **state)
{
	static const struct {
		const char *type, *props, *hex; /* hex NULL: no fill value is defined */
	} rows[] = {
		{"\"H5T_STD_I32LE\"", "\"x\":1", NULL},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":null", NULL},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":\"None\"", NULL},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":\"\"", NULL},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":0", "00000000"},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":42", "2a000000"},
		{"\"H5T_STD_I32LE\"", "\"fillValue\":[42]", "2a000000"},
		{"\"H5T_STD_I32LE\"",
		 "\"fillValue\":\"KgAAAA==\",\"fillValue_encoding\":\"base64\"", "2a000000"},
		{"\"H5T_IEEE_F32LE\"", "\"fillValue\":NaN", "0000c07f"},
		{"\"H5T_IEEE_F32LE\"", "\"fillValue\":\"nan\"", "0000c07f"},
		{"\"H5T_IEEE_F32LE\"", "\"fillValue\":NaN,\"hsmount\":{\"fillValue\":\"AQDA/w==\"}",
		 "0100c0ff"},
		{"{\"class\":\"H5T_STRING\",\"length\":3}", "\"fillValue\":\"a\"", "610000"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[3],\"base\":\"H5T_STD_I8LE\"}",
		 "\"fillValue\":7", "070707"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[3],\"base\":\"H5T_STD_I8LE\"}",
		 "\"fillValue\":[1,2,3]", "010203"},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"a\",\"type\":\"H5T_STD_"
		 "I16LE\"}"
		 ",{\"name\":\"b\",\"type\":{\"class\":\"H5T_STRING\",\"length\":2}}]}",
		 "\"fillValue\":[999,\"N\"]", "e7034e00"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), "\"type\":%s,%s" PROPS("%s"), rows[i].type,
			 SIMPLE("[10]"), rows[i].props);
		struct parsed p = parse_dataset(text);
		if (p.rc)
			fail_msg("%s for: %s", p.err.msg, text);
		assert_int_equal(p.o.dataset.fill_defined, rows[i].hex != NULL);
		if (rows[i].hex) {
			uint8_t fill[64];
			assert_true(p.o.dataset.type->size <= sizeof(fill));
			elems_read(&p.o.dataset.fill, 0, fill, p.o.dataset.type->size);
			assert_hex(fill, p.o.dataset.type->size, rows[i].hex);
		}
		parsed_release(&p);
	}
}

/* One value for many elements of an array is stored once. */
static void fill_of_a_large_array(void **state)
{
	struct parsed p =
		parse_dataset("\"type\":{\"class\":\"H5T_ARRAY\",\"dims\":[50000000],\"base\":"
			      "\"H5T_STD_I32BE\"}," SIMPLE("[10]") PROPS("\"fillValue\":7"));
	const struct elems *fill = &p.o.dataset.fill;
	uint8_t end[6];
	assert_int_equal(p.rc, 0);
	assert_true(p.o.dataset.fill_defined);
	assert_int_equal(fill->fixed.cap, 4);
	assert_int_equal(elems_end(fill), 200000000);
	elems_read(fill, 200000000 - 6, end, 6);
	assert_hex(end, 6, "000700000007");
	parsed_release(&p);
}

static void requested_layout_and_times(void **state)
{
	static const struct {
		const char *members;
		enum layout_class requested;
		enum alloc_time alloc;
		enum fill_time fill;
	} rows[] = {
		{LAYOUT("{\"dims\":[10]}"), LAYOUT_CONTIGUOUS, ALLOC_TIME_LATE, FILL_TIME_IFSET},
		{LAYOUT("{\"dims\":[5]}"), LAYOUT_CHUNKED, ALLOC_TIME_INCR, FILL_TIME_IFSET},
		{LAYOUT("{\"dims\":[5]}") PROPS("\"layout\":{\"class\":\"H5D_CONTIGUOUS\"}"),
		 LAYOUT_CONTIGUOUS, ALLOC_TIME_LATE, FILL_TIME_IFSET},
		{LAYOUT("{\"dims\":[10]}")
			 PROPS("\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[5]},"
			       "\"fillTime\":\"H5D_FILL_TIME_NEVER\""),
		 LAYOUT_CHUNKED, ALLOC_TIME_INCR, FILL_TIME_NEVER},
		{LAYOUT("{\"dims\":[10]}") PROPS("\"layout\":{\"class\":\"H5D_COMPACT\"},"
						 "\"fillTime\":\"H5D_FILL_TIME_ALLOC\""),
		 LAYOUT_COMPACT, ALLOC_TIME_EARLY, FILL_TIME_ALLOC},
		{LAYOUT("{\"dims\":[5]}")
			 PROPS("\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[5]},"
			       "\"hsmount\":{\"layout\":\"H5D_CONTIGUOUS\"}"),
		 LAYOUT_CONTIGUOUS, ALLOC_TIME_LATE, FILL_TIME_IFSET},
		{LAYOUT("{\"dims\":[10]}") PROPS("\"layout\":{\"class\":\"H5D_CONTIGUOUS\"},"
						 "\"hsmount\":{\"layout\":\"H5D_COMPACT\"}"),
		 LAYOUT_COMPACT, ALLOC_TIME_EARLY, FILL_TIME_IFSET},
		{LAYOUT("{\"dims\":[10]}") PROPS("\"layout\":{\"class\":\"H5D_CONTIGUOUS\"},"
						 "\"hsmount\":{\"layout\":\"H5D_CHUNKED\"}"),
		 LAYOUT_CONTIGUOUS, ALLOC_TIME_LATE, FILL_TIME_IFSET},
		{PROPS("\"allocTime\":\"H5D_ALLOC_TIME_EARLY\",\"fillTime\":\"?\""),
		 LAYOUT_CONTIGUOUS, ALLOC_TIME_EARLY, FILL_TIME_IFSET},
		{PROPS("\"allocTime\":\"H5D_ALLOC_TIME_INCR\""), LAYOUT_CONTIGUOUS, ALLOC_TIME_INCR,
		 FILL_TIME_IFSET},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), TYPE_I32 "," SIMPLE("[10]") "%s", rows[i].members);
		struct parsed p = parse_dataset(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.dataset.requested, rows[i].requested);
		assert_int_equal(p.o.dataset.alloc_time, rows[i].alloc);
		assert_int_equal(p.o.dataset.fill_time, rows[i].fill);
		parsed_release(&p);
	}
}

/* The shape that the creator requested is a hint: a damaged one counts as none. */
static void requested_chunks(void **state)
{
	static const struct {
		const char *layout, *hsmount;
		uint32_t chunk; /* 0: as stored */
	} rows[] = {
		{"5", "{}", 0},
		{"2", "{}", 2},
		{"5", "{\"chunk\":[2]}", 2},
		{"5", "{\"chunk\":[5]}", 0},
		{"5", "{\"chunk\":[0]}", 0},
		{"5", "{\"chunk\":[-2]}", 0},
		{"5", "{\"chunk\":[2,2]}", 0},
		{"5", "{\"chunk\":\"2\"}", 0},
		{"5", "{\"chunk\":[4294967296]}", 0},
		{"5", "[2]", 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text),
			 TYPE_I32 "," SIMPLE("[10]") LAYOUT("{\"dims\":[5]}")
				 PROPS("\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[%s]},"
				       "\"hsmount\":%s"),
			 rows[i].layout, rows[i].hsmount);
		struct parsed p = parse_dataset(text);
		assert_int_equal(p.rc, 0);
		const struct dataset *ds = &p.o.dataset;
		assert_int_equal(ds->grid.chunk[0], 5);
		assert_int_equal(ds->requested_chunk ? ds->requested_chunk[0] : 0, rows[i].chunk);
		parsed_release(&p);
	}
}

static void initializers(void **state)
{
	struct parsed p = parse_dataset(SHAPED PROPS(
		"\"initializer\":[\"arange\",\"--start=5\",\"--step=3\",\"--stop=9\"]"));
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.dataset.initializer, INITIALIZER_ARANGE);
	assert_true(p.o.dataset.arange_start == 5 && p.o.dataset.arange_step == 3);
	assert_null(p.o.dataset.absence_unknown);
	parsed_release(&p);
	p = parse_dataset(SHAPED PROPS("\"initializer\":[\"arange\"]"));
	assert_true(p.o.dataset.arange_start == 0 && p.o.dataset.arange_step == 1);
	parsed_release(&p);
	p = parse_dataset(SHAPED PROPS("\"initializer\":[\"chunklocator\",\"--h5path=/x\"]"));
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.dataset.initializer, INITIALIZER_NONE);
	assert_contains(p.o.dataset.absence_unknown, "chunk table");
	char prefix[SCHEMA_KEY_MAX];
	assert_int_equal(hsds2_chunk_prefix(&p.o, prefix, sizeof(prefix)), -EOPNOTSUPP);
	parsed_release(&p);
}

static void chunks_in_an_unknown_layout(void **state)
{
	char key[SCHEMA_KEY_MAX];
	unsigned int step = 0;
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	struct err err = ERR_INIT;
	struct parsed p = parse_dataset(SHAPED PROPS(
		"\"layout\":{\"class\":\"H5D_SCATTERED_REF\",\"file_uri\":\"b/x.h5\"}"));
	assert_int_equal(p.rc, 0);
	assert_int_equal(hsds2_locate(&p.o, NULL, 0, &step, NULL, &place, &err), -EOPNOTSUPP);
	assert_contains(err.msg, "another file");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_and_grids),
		cmocka_unit_test(maximum_dims),
		cmocka_unit_test(refuses),
		cmocka_unit_test(filters),
		cmocka_unit_test(fill_values),
		cmocka_unit_test(fill_of_a_large_array),
		cmocka_unit_test(requested_layout_and_times),
		cmocka_unit_test(requested_chunks),
		cmocka_unit_test(initializers),
		cmocka_unit_test(chunks_in_an_unknown_layout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
