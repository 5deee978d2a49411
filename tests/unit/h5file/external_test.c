/* SPDX-License-Identifier: Apache-2.0 */
/* Raw data in external files: pieces of several files, files that are too short, damaged lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <h5file/h5file.h>

#include "small_file.h"

enum { ELEMS = 5, BYTES = 4 * ELEMS, PIECES = 3 };

struct entry {
	uint64_t name, offset, size;
};

/* The names in the heap: "a" is at 1, "bc" at 3. */
static const char heap_names[16] = "\0a\0bc";
static const char content_a[] = "0123456789", content_bc[] = "abc";

struct files {
	struct mem_src a, bc;
};

static int open_name(void *ctx, const char *name, struct source **out, struct err *err)
{
	struct files *files = ctx;
	if (strcmp(name, "a") != 0 && strcmp(name, "bc") != 0)
		return err_set(err, -EOPNOTSUPP, "external file %s: it does not exist", name);
	*out = name[0] == 'a' ? &files->a.source : &files->bc.source;
	return 0;
}

static void add_list(struct small_file *s, const struct entry *entries, uint16_t n)
{
	uint8_t heap[32] = "HEAP";
	const uint64_t names = small_put(s, heap_names, sizeof(heap_names));
	struct emit e = emit_to(heap + 8, sizeof(heap) - 8);
	emit_u64(&e, sizeof(heap_names));
	emit_u64(&e, 1); /* no free block */
	emit_u64(&e, names);
	const uint64_t at = small_put(s, heap, sizeof(heap));
	e = small_body(s);
	emit_u32(&e, 1);
	emit_u16(&e, n);
	emit_u16(&e, n);
	emit_u64(&e, at);
	for (uint16_t i = 0; i < n; i++) {
		emit_u64(&e, entries[i].name);
		emit_u64(&e, entries[i].offset);
		emit_u64(&e, entries[i].size);
	}
	small_message(s, H5_MSG_EXTERNAL_FILES, &e);
}

/* Opens a file with a dataset of ELEMS elements in these pieces. */
static struct h5file *open_with(struct small_file *s, struct files *files,
				const struct entry *entries, bool allowed)
{
	const struct h5file_external external = {.open = open_name, .ctx = files};
	const struct h5file_options opt = {.claim_chunks = true,
					   .external = allowed ? &external : NULL};
	const struct h5_layout layout = {.cls = LAYOUT_CONTIGUOUS, .addr = H5_UNDEF, .size = BYTES};
	const struct dspace space = small_vector(ELEMS);
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	uint16_t n = 0;
	while (n < PIECES && entries[n].size)
		n++;
	mem_src_init(&files->a, (const uint8_t *)content_a, strlen(content_a));
	mem_src_init(&files->bc, (const uint8_t *)content_bc, strlen(content_bc));
	small_begin(s);
	small_object(s);
	small_dataset(s, dtype_integer(s->arena, 4, false, false, NULL), &space, &layout, NULL);
	add_list(s, entries, n);
	const uint64_t d = small_end(s);
	small_object(s);
	small_group(s, false);
	small_link(s, "d", d);
	small_finish(s, small_end(s));
	if (h5file_open(&s->src.source, &opt, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void close_all(struct h5file *f, struct small_file *s, struct files *files)
{
	h5file_close(f);
	small_release(s);
	mem_src_release(&files->a);
	mem_src_release(&files->bc);
}

static int read_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct bytes out = {0};
	struct h5file *f = *(struct h5file **)ctx;
	assert_non_null(chunk->pieces);
	assert_int_equal(h5file_chunk_read(f, chunk, &out, err), 0);
	assert_int_equal(out.len, BYTES);
	memcpy((char *)ctx + sizeof(f), out.data, BYTES);
	bytes_release(&out);
	return 0;
}

static void data(void **state)
{
	static const struct {
		struct entry entries[PIECES];
		const char expected[BYTES + 1];
	} rows[] = {
		{{{1, 0, 10}, {1, 0, 10}}, "01234567890123456789"},
		{{{1, 8, 2}, {3, 1, 2}, {1, 0, UINT64_MAX}}, "89bc0123456789\0\0\0\0\0"},
		{{{3, 0, 100}}, "abc"},
		{{{3, 2, 4}, {1, 3, 16}},
		 "c\0\0\0"
		 "3456789"},
		{{{1, 10, 4}, {1, 99, 4}, {3, 0, 12}},
		 "\0\0\0\0\0\0\0\0"
		 "abc"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct small_file s;
		struct files files;
		struct {
			struct h5file *f;
			char read[BYTES];
		} ctx = {.f = open_with(&s, &files, rows[i].entries, true)};
		assert_int_equal(h5file_problems(ctx.f), 0);
		assert_int_equal(tree_object(h5file_tree(ctx.f), 1)->o.dataset.raw, RAW_STORED);
		assert_int_equal(h5file_dataset(ctx.f, 1)->stored_bytes, BYTES);
		assert_int_equal(h5file_chunks(ctx.f, 1, 0, 9, read_chunk, &ctx, NULL), 0);
		assert_memory_equal(ctx.read, rows[i].expected, BYTES);
		close_all(ctx.f, &s, &files);
	}
}

static void refused(void **state)
{
	static const struct {
		struct entry entries[PIECES];
		enum h5file_severity severity;
		const char *text;
	} rows[] = {
		{{{1, 0, 10}, {3, 0, 9}}, H5FILE_DAMAGED, "room for 19 bytes"},
		{{{100, 0, 20}}, H5FILE_DAMAGED, "external file 1 has no name"},
		{{{4, 0, 20}}, H5FILE_UNSUPPORTED, "external file c: it does not exist"},
		{{{0, 0, 20}}, H5FILE_UNSUPPORTED, "external file : it does not exist"},
		{{{1, UINT64_MAX - 1, 20}}, H5FILE_DAMAGED, "is too large"},
		{{{1, INT64_MAX, 20}}, H5FILE_DAMAGED, "is too large"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct small_file s;
		struct files files;
		struct h5file *f = open_with(&s, &files, rows[i].entries, true);
		assert_true(tree_object(h5file_tree(f), 1)->broken);
		assert_int_equal(h5file_problems_of(f, rows[i].severity), 1);
		if (!strstr(h5file_problem(f, 0)->text, rows[i].text))
			fail_msg("%s", h5file_problem(f, 0)->text);
		close_all(f, &s, &files);
	}
}

static void not_allowed(void **state)
{
	static const struct entry entries[PIECES] = {{1, 0, 20}};
	static struct small_file s;
	struct files files;
	struct err err = ERR_INIT;
	struct h5file *f = open_with(&s, &files, entries, false);
	assert_int_equal(h5file_problems(f), 0);
	assert_int_equal(tree_object(h5file_tree(f), 1)->o.dataset.raw, RAW_EXTERNAL);
	assert_int_equal(h5file_chunks(f, 1, 0, 9, read_chunk, NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "in external files"));
	close_all(f, &s, &files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data),
		cmocka_unit_test(refused),
		cmocka_unit_test(not_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
