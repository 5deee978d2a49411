/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: fill values, filters, layouts and spaces that contradict each other, external files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5file/h5file.h>

#include "small_file.h"

static struct h5file *open_with(struct small_file *s)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	const uint64_t d = small_end(s);
	small_object(s);
	small_group(s, false);
	small_link(s, "d", d);
	small_finish(s, small_end(s));
	if (h5file_open(&s->src.source, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static const struct dataset *dataset(const struct h5file *f)
{
	return &tree_object(h5file_tree(f), 1)->o.dataset;
}

static const struct h5_layout none = {.cls = LAYOUT_CONTIGUOUS, .addr = H5_UNDEF};

static void a_fill_value(void **state)
{
	static struct small_file s;
	const struct dspace space = small_vector(3);
	small_begin(&s);
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 4, false, true, NULL), &space, &none, "\1\2\3\4");
	struct h5file *f = open_with(&s);
	assert_true(dataset(f)->fill_defined);
	assert_memory_equal(dataset(f)->fill.fixed.data, "\1\2\3\4", 4);
	assert_int_equal(dataset(f)->fill_time, FILL_TIME_IFSET);
	assert_int_equal(dataset(f)->alloc_time, ALLOC_TIME_LATE);
	assert_int_equal(h5file_dataset(f, 1)->stored_bytes, 0);
	assert_int_equal(h5file_problems(f), 0);
	h5file_close(f);
	small_release(&s);
}

/* Each is broken, with a problem, and the rest of the file stays. */
static void contradictions(void **state)
{
	static const struct {
		struct h5_layout layout;
		uint32_t skip; /* type of a message that is missing */
		const char *text;
	} rows[] = {
		{{.cls = LAYOUT_CHUNKED,
		  .rank = 2,
		  .chunk = {1, 1},
		  .elem_size = 4,
		  .addr = H5_UNDEF},
		 0,
		 "2 dimensions"},
		{{.cls = LAYOUT_CHUNKED, .rank = 1, .chunk = {1}, .elem_size = 8, .addr = H5_UNDEF},
		 0,
		 "elements of 8 bytes"},
		{{.cls = LAYOUT_CONTIGUOUS, .addr = H5_UNDEF}, H5_MSG_LAYOUT, "no layout"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct small_file s;
		const struct dspace space = small_vector(3);
		small_begin(&s);
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &space,
			      &rows[i].layout, NULL);
		for (uint32_t m = 0; m < s.header.n; m++)
			if (rows[i].skip && s.msgs[m].type == rows[i].skip)
				s.msgs[m].type = H5_MSG_GROUP_INFO;
		struct h5file *f = open_with(&s);
		assert_true(tree_object(h5file_tree(f), 1)->broken);
		assert_null(h5file_dataset(f, 1));
		assert_int_equal(h5file_problems(f), 1);
		assert_string_equal(h5file_problem(f, 0)->path, "/d");
		assert_non_null(strstr(h5file_problem(f, 0)->text, rows[i].text));
		h5file_close(f);
		small_release(&s);
	}
}

static void a_fill_value_of_another_size(void **state)
{
	static struct small_file s;
	const struct dspace space = small_vector(3);
	const struct h5_fill fill = {.alloc_time = ALLOC_TIME_LATE,
				     .defined = true,
				     .size = 3,
				     .value = (const uint8_t *)"abc"};
	small_begin(&s);
	small_object(&s);
	small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &space, &none, NULL);
	struct emit e = small_body(&s);
	h5_fill_encode(&e, &fill);
	small_message(&s, H5_MSG_FILL, &e);
	s.msgs[2].type = H5_MSG_GROUP_INFO; /* the first fill value */
	struct h5file *f = open_with(&s);
	assert_non_null(strstr(h5file_problem(f, 0)->text, "3 bytes instead of 4"));
	h5file_close(f);
	small_release(&s);
}

static void equal_filters_are_shared(void **state)
{
	static struct small_file s;
	static const uint32_t six[] = {6};
	const struct pipeline p = {
		.n = 1,
		.f = {{.id = FILTER_DEFLATE, .name = "deflate", .nparams = 1, .params = six}}};
	const struct dspace space = small_vector(3);
	const struct h5_layout l = {
		.cls = LAYOUT_CHUNKED, .rank = 1, .chunk = {2}, .elem_size = 4, .addr = H5_UNDEF};
	uint64_t d[3];
	small_begin(&s);
	for (int i = 0; i < 3; i++) {
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &space, &l, NULL);
		if (i < 2) {
			struct emit e = small_body(&s);
			h5_pipeline_encode(&e, &p);
			small_message(&s, H5_MSG_PIPELINE, &e);
		}
		d[i] = small_end(&s);
	}
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "a", d[0]);
	small_link(&s, "b", d[1]);
	small_link(&s, "c", d[2]);
	small_finish(&s, small_end(&s));
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, &err), 0);
	assert_ptr_equal(h5file_dataset(f, 1)->pipeline, h5file_dataset(f, 2)->pipeline);
	assert_int_equal(h5file_dataset(f, 1)->pipeline->f[0].params[0], 6);
	assert_int_equal(h5file_dataset(f, 3)->pipeline->n, 0);
	assert_int_equal(dataset(f)->nfilters, 1);
	assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, 2);
	h5file_close(f);
	small_release(&s);
}

static void scalar_and_empty(void **state)
{
	const struct dspace spaces[] = {small_scalar(), small_vector(0)};
	for (int i = 0; i < 2; i++) {
		static struct small_file s;
		small_begin(&s);
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &spaces[i], &none,
			      NULL);
		struct h5file *f = open_with(&s);
		assert_int_equal(h5file_dataset(f, 1)->grid.rank, 1);
		assert_int_equal(h5file_dataset(f, 1)->grid.nchunks, i == 0);
		assert_int_equal(h5file_dataset(f, 1)->grid.chunk_elems, 1);
		assert_int_equal(h5file_problems(f), 0);
		h5file_close(f);
		small_release(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fill_value),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(a_fill_value_of_another_size),
		cmocka_unit_test(equal_filters_are_shared),
		cmocka_unit_test(scalar_and_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
