/* SPDX-License-Identifier: Apache-2.0 */
/* The rendered file against the domain: differences of objects and elements are found. */
#include "findings.h"

#include "check/check.h"
#include <h5file/h5file.h>
#include <engine/parts.h>

struct opened {
	struct test_bucket *b;
	struct findings seen;
	struct engine_check_sink sink;
	struct check c;
	struct domain_check dc;
};

/* /data is contiguous for its readers, in two chunks. */
static void make_contiguous(struct test_bucket *b)
{
	bucket_put(b, "db/00000001-00000000/d/1111-222222-000001/.dataset.json",
		   "{\"id\": \"d-00000001-00000000-1111-222222-000001\", \"root\": "
		   "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": "
		   "1, \"type\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_I32LE\"}, "
		   "\"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [8]}, \"attributes\": {}, "
		   "\"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [4]}, "
		   "\"creationProperties\": {\"layout\": {\"class\": \"H5D_CONTIGUOUS\"}}}");
}

/* filters: those of the chunks. NULL: /data is contiguous. */
static void open_domain(struct opened *o, struct test_bucket *b, const char *filters)
{
	const struct bucket_more more = {
		.filters = filters,
		.attributes = "\"a\": {\"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
			      "\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SCALAR\"}, "
			      "\"value\": 1, \"created\": 1}",
	};
	bucket_datasets(b, "x.h5", 2, 1, &more);
	if (!filters)
		make_contiguous(b);
	bucket_chunk(b, 1, "0123456789abcdef");
	bucket_open(b, 1000, 0);
	*o = (struct opened){.b = b};
	o->sink = findings_sink(&o->seen);
	o->c = (struct check){.sink = &o->sink};
	check_begin(&o->c, "/x.h5");
	o->dc = (struct domain_check){.c = &o->c, .e = b->engine};
	assert_int_equal(domain_open(&b->engine->bucket.domains, "x.h5", NULL, &o->dc.d, NULL), 0);
	o->dc.tree = domain_tree(o->dc.d);
	o->dc.paths = object_paths_new(o->dc.tree);
	assert_int_equal(check_image_open(&o->dc, ""), 0);
	assert_non_null(o->dc.image);
}

static void close_domain(struct opened *o)
{
	check_image_close(o->dc.image);
	object_paths_free(o->dc.paths);
	domain_unref(o->dc.d);
	str_release(&o->seen.text);
}

static void compare(struct opened *o, const char *text)
{
	assert_int_equal(check_image_compare(&o->dc), 0);
	assert_string_equal(str_text(&o->seen.text), text);
	str_release(&o->seen.text);
}

/* The tree is constant, except for a test that makes it differ from the file. */
static struct object *object_of(struct opened *o, uint32_t nth)
{
	return tree_edit((struct tree *)(uintptr_t)o->dc.tree, tree_nth(o->dc.tree, nth));
}

static void an_equal_file(void **state)
{
	struct opened o;
	open_domain(&o, *state, "");
	compare(&o, "");
	close_domain(&o);
}

static void other_objects(void **state)
{
	struct opened o;
	open_domain(&o, *state, "");
	int32_t value = 2;
	memcpy(object_of(&o, 0)->attrs[0].value.fixed.data, &value, sizeof(value));
	compare(&o, "error /x.h5 / : the rendered file: attribute \"a\" has another value, from "
		    "element 0 of 1 on\n");
	value = 1;
	memcpy(object_of(&o, 0)->attrs[0].value.fixed.data, &value, sizeof(value));
	object_of(&o, 1)->created_ns += 1000000000;
	compare(&o, "error /x.h5 /data : the rendered file: time of creation: "
		    "1970-01-01T00:00:01.000000Z instead of 1970-01-01T00:00:02.000000Z\n");
	object_of(&o, 1)->created_ns -= 1000000000;
	static const uint32_t other[] = {8};
	object_of(&o, 2)->dataset.grid.chunk = other;
	compare(&o, "error /x.h5 /data1 : the rendered file: the chunks have another shape\n");
	close_domain(&o);
}

static void give(struct opened *o, uint64_t number, const char *bytes, const char *text)
{
	const struct check_chunk chunk = {
		.dataset = tree_nth(o->dc.tree, 1), .number = number, .size = 16};
	struct chunk_result result = {.absent = !bytes};
	if (bytes)
		assert_int_equal(bytes_append(&result.data.elems.fixed, bytes, 16), 0);
	assert_int_equal(check_image_chunk(&o->dc, &chunk, &result), 0);
	assert_string_equal(str_text(&o->seen.text), text);
	str_release(&o->seen.text);
	elems_release(&result.data.elems);
}

static void elements(void **state)
{
	static const char *const filters[] = {
		NULL, "",
		"{\"class\": \"H5Z_FILTER_DEFLATE\", \"id\": 1, \"level\": 6, \"name\": "
		"\"deflate\"}"};
	for (int i = 0; i < 3; i++) {
		struct opened o;
		if (i) {
			bucket_teardown(state);
			bucket_setup(state);
		}
		open_domain(&o, *state, filters[i]);
		compare(&o, "");
		/* The image loads the chunk that is given, keeps it in its cache … */
		give(&o, 1, "0123456789abcdef", "");
		/* … and so has other elements than these. */
		give(&o, 1, "0123456789abcdeg",
		     "error /x.h5 /data " CHECK_DATA
		     "1: the rendered file: chunk 1 has other elements\n");
		give(&o, 1, NULL,
		     "error /x.h5 /data " CHECK_DATA
		     "1: the rendered file: chunk 1 has other elements\n");
		give(&o, 0, NULL, "");
		close_domain(&o);
	}
}

/* Writes a chunk of strings of variable length, of which only one is not empty. */
static void put_strings(struct test_bucket *b, unsigned int number, size_t n, size_t nth,
			const char *text)
{
	char path[256];
	static const uint32_t empty;
	const uint32_t len = (uint32_t)strlen(text);
	snprintf(path, sizeof(path), "%s/" CHECK_DATA "%u_0", b->dir, number);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++) {
		fwrite(i == nth ? &len : &empty, sizeof(len), 1, f);
		if (i == nth)
			fputs(text, f);
	}
	fclose(f);
}

/* The chunks of a contiguous dataset begin and end elsewhere than the runs in which the check reads
 * the file, and each has other elements. */
static void runs_of_a_contiguous_dataset(void **state)
{
	enum { WIDTH = 4, ROWS = 50000, RUN = H5FILE_CUT / 16, CHUNK = WIDTH * ROWS };
	struct test_bucket *b = *state;
	char json[1024];
	const struct bucket_more more = {0};
	bucket_datasets(b, "x.h5", 1, 1, &more);
	snprintf(json, sizeof(json),
		 "{\"id\": \"d-00000001-00000000-1111-222222-000001\", \"root\": "
		 "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": 1, "
		 "\"type\": {\"class\": \"H5T_STRING\", \"charSet\": \"H5T_CSET_ASCII\", "
		 "\"strPad\": \"H5T_STR_NULLTERM\", \"length\": \"H5T_VARIABLE\"}, "
		 "\"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [%d, %d]}, \"attributes\": {}, "
		 "\"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [%d, %d]}, "
		 "\"creationProperties\": {\"layout\": {\"class\": \"H5D_CONTIGUOUS\"}}}",
		 2 * ROWS, WIDTH, ROWS, WIDTH);
	bucket_put(b, CHECK_DATA ".dataset.json", json);
	assert_in_range(RUN, CHUNK + 1, 2 * CHUNK - 1);
	put_strings(b, 0, CHUNK, 1, "in the first chunk");
	/* The first element of the second run. */
	put_strings(b, 1, CHUNK, RUN - CHUNK, "in the second chunk");
	bucket_open(b, 1000, 0);
	assert_check(b, "x.h5", true, "= sound /x.h5\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_equal_file, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(other_objects, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(elements, bucket_setup, bucket_teardown),
		cmocka_unit_test_setup_teardown(runs_of_a_contiguous_dataset, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
