/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dataset by its path: in all files of tests/data it is the same as in a complete walk, also
 * from a source whose pages arrive one by one. Links of every form, how much is read, and failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <h5file/one.h>

#include "data_file.h"
#include "mem_src.h"

enum { PAGE = 512, RESTARTS = 1000 };

static const char *const names[] = {"paths.h5", "import.h5", "indexes.h5", "sizes4.h5"};

/* Opens, and starts again after each -EAGAIN. */
static int open_one(struct mem_src *m, const char *path, struct h5file_one **out, struct err *err)
{
	for (int i = 0; i < RESTARTS; i++) {
		err_clear(err);
		int rc = h5file_one_open(&m->source, path, out, err);
		if (rc != -EAGAIN)
			return rc;
		mem_src_fetch(m);
	}
	fail_msg("%s: the open does not end", path);
	return 0;
}

static int find(struct mem_src *m, struct h5file_one *one, uint64_t number, bool *stored,
		struct h5file_chunk *out, struct err *err)
{
	for (int i = 0; i < RESTARTS; i++) {
		err_clear(err);
		int rc = h5file_one_chunk(one, number, stored, out, err);
		if (rc != -EAGAIN)
			return rc;
		mem_src_fetch(m);
	}
	fail_msg("chunk %llu: the search does not end", (unsigned long long)number);
	return 0;
}

struct all {
	struct h5file_chunk *chunks; /* size 0: not stored */
};

static int collect(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct all *all = ctx;
	all->chunks[chunk->number] = *chunk;
	return 0;
}

static void same_chunks(struct mem_src *m, struct h5file *f, uint32_t number,
			struct h5file_one *one)
{
	const uint64_t n = h5file_dataset(f, number)->grid.nchunks;
	const uint64_t step = n > 200 ? n / 97 : 1;
	struct all all = {.chunks = calloc((size_t)n + 1, sizeof(struct h5file_chunk))};
	struct err err = ERR_INIT;
	assert_non_null(all.chunks);
	assert_int_equal(h5file_chunks(f, number, 0, UINT64_MAX, collect, &all, &err), 0);
	for (uint64_t i = 0; i < n; i += step) {
		const struct h5file_chunk *want = &all.chunks[i];
		struct h5file_chunk chunk = {0};
		bool stored;
		if (find(m, one, i, &stored, &chunk, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(stored, want->size != 0);
		assert_int_equal(chunk.size, want->size);
		if (!want->data)
			assert_int_equal(chunk.addr, want->addr);
		assert_int_equal(chunk.filter_mask, want->filter_mask);
		assert_int_equal(chunk.is_filtered, want->is_filtered);
		assert_int_equal(!chunk.data, !want->data);
	}
	free(all.chunks);
}

static void same_dataset(struct mem_src *m, struct h5file *f, uint32_t number)
{
	const struct object *o = &tree_object(h5file_tree(f), number)->o;
	const struct h5file_dataset *want = h5file_dataset(f, number);
	struct h5file_one *one = NULL;
	struct err err = ERR_INIT;
	if (open_one(m, o->id, &one, &err))
		fail_msg("%s: %s", o->id, err.msg);
	const struct h5file_dataset *got = h5file_one_dataset(one);
	assert_int_equal(got->header, want->header);
	assert_int_equal(h5file_one_base(one), h5file_base(f));
	assert_int_equal(got->layout, want->layout);
	assert_int_equal(got->grid.nchunks, want->grid.nchunks);
	assert_int_equal(got->grid.chunk_elems, want->grid.chunk_elems);
	assert_int_equal(got->pipeline->n, want->pipeline->n);
	same_chunks(m, f, number, one);
	h5file_one_close(one);
}

static void as_a_complete_walk(void **state)
{
	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		auto_bytes struct bytes b = data_file(names[i / 2]);
		struct mem_src whole, m;
		struct h5file *f = NULL;
		struct err err = ERR_INIT;
		mem_src_init(&whole, b.data, b.len);
		mem_src_init(&m, b.data, b.len);
		if (i % 2)
			mem_src_hide(&m, PAGE);
		if (h5file_open(&whole.source, NULL, &f, &err))
			fail_msg("%s: %s", names[i / 2], err.msg);
		const struct tree *t = h5file_tree(f);
		for (uint32_t k = 0; k < tree_count(t); k++)
			if (tree_object(t, tree_nth(t, k))->o.kind == OBJECT_DATASET)
				same_dataset(&m, f, tree_nth(t, k));
		h5file_close(f);
		mem_src_release(&whole);
		mem_src_release(&m);
	}
}

static void paths(void **state)
{
	static const struct {
		const char *path;
		int code;
		const char *message;
	} rows[] = {
		{"/data", 0, ""},
		{"data", 0, ""},
		{"//data/", 0, ""},
		{"./data", 0, ""},
		{"/old/link 0", 0, ""},
		{"/old/link 299", 0, ""},
		{"/dense/link 0", 0, ""},
		{"/dense/link 299", 0, ""},
		{"/compact/data", 0, ""},
		{"/compact/absolute", 0, ""},
		{"/compact/relative", 0, ""},
		{"/compact/group/link 8", 0, ""},
		{"", -EINVAL, "/ is not a dataset"},
		{"/", -EINVAL, "/ is not a dataset"},
		{"/old", -EINVAL, "/old is not a dataset"},
		{"/compact/group", -EINVAL, "/dense is not a dataset"},
		{"/none", -ENOENT, "/ has no link \"none\""},
		{"/old/link", -ENOENT, "/old has no link \"link\""},
		{"/old/link 999", -ENOENT, "/old has no link \"link 999\""},
		{"/old/a", -ENOENT, "/old has no link \"a\""},
		{"/dense/link 300", -ENOENT, "/dense has no link \"link 300\""},
		{"/compact/dangling", -ENOENT, "/old has no link \"link 300\""},
		{"/data/below", -ENOENT, "/data has no link \"below\""},
		{"/compact/loop", -EIO, "/compact: more than 16 soft links"},
		{"/compact/elsewhere", -EOPNOTSUPP,
		 "/compact: link \"elsewhere\" leads to another file"},
	};
	auto_bytes struct bytes b = data_file("paths.h5");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h5file_one *one;
		struct mem_src m;
		struct err err = ERR_INIT;
		mem_src_init(&m, b.data, b.len);
		int rc = h5file_one_open(&m.source, rows[i].path, &one, &err);
		if (rc != rows[i].code || strcmp(err.msg, rows[i].message) != 0)
			fail_msg("%s: %d %s", rows[i].path, rc, err.msg);
		assert_int_equal(!one, rc != 0);
		h5file_one_close(one);
		mem_src_release(&m);
	}
}

/* Of groups of 300 links and an index of 100 chunks, only a few nodes are read. */
static void reads_what_is_on_the_way(void **state)
{
	static const struct {
		const char *path;
		uint64_t reads, bytes;
	} rows[] = {
		/* The local heap of /old has 4,096 bytes. */
		{"/old/link 150", 20, 9216},
		{"/dense/link 150", 30, 5120},
		{"/data", 15, 3072},
	};
	auto_bytes struct bytes b = data_file("paths.h5");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h5file_one *one;
		struct h5file_chunk chunk;
		struct mem_src m;
		struct err err = ERR_INIT;
		bool stored;
		mem_src_init(&m, b.data, b.len);
		assert_int_equal(h5file_one_open(&m.source, rows[i].path, &one, &err), 0);
		if (m.source.reads > rows[i].reads || m.source.bytes > rows[i].bytes)
			fail_msg("%s: %llu reads of %llu bytes", rows[i].path,
				 (unsigned long long)m.source.reads,
				 (unsigned long long)m.source.bytes);
		const uint64_t reads = m.source.reads;
		assert_int_equal(h5file_one_chunk(one, 70, &stored, &chunk, &err), 0);
		assert_true(stored);
		assert_true(m.source.reads - reads <= 2);
		h5file_one_close(one);
		mem_src_release(&m);
	}
}

/* A file that ends early fails with a message, whatever is missing. */
static void damaged_files(void **state)
{
	auto_bytes struct bytes b = data_file("paths.h5");
	for (size_t cut = 0; cut < b.len; cut += 997) {
		struct h5file_one *one;
		struct mem_src m;
		struct err err = ERR_INIT;
		mem_src_init(&m, b.data, cut);
		int rc = h5file_one_open(&m.source, "/dense/link 150", &one, &err);
		assert_true(rc == 0 || (rc == -EIO && err.msg[0]));
		h5file_one_close(one);
		mem_src_release(&m);
	}
}

/* Each block of groups in turn is damaged. The message names the group that has it. */
static void damaged_groups(void **state)
{
	static const struct {
		const char *path, *signature, *start;
	} rows[] = {{"/old/link 150", "SNOD", "/old: "}, {"/dense/link 150", "BTLF", "/dense: "}};
	auto_bytes struct bytes b = data_file("paths.h5");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *start = rows[i].start;
		uint8_t *at = b.data, *end = b.data + b.len;
		unsigned int named = 0;
		for (; (at = memmem(at, (size_t)(end - at), rows[i].signature, 4)); at++) {
			struct h5file_one *one;
			struct mem_src m;
			struct err err = ERR_INIT;
			*at ^= 1;
			mem_src_init(&m, b.data, b.len);
			const int rc = h5file_one_open(&m.source, rows[i].path, &one, &err);
			assert_true(rc == 0 || rc == -EIO);
			named += rc && strncmp(err.msg, start, strlen(start)) == 0;
			h5file_one_close(one);
			mem_src_release(&m);
			*at ^= 1;
		}
		assert_true(named > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_a_complete_walk),	    cmocka_unit_test(paths),
		cmocka_unit_test(reads_what_is_on_the_way), cmocka_unit_test(damaged_files),
		cmocka_unit_test(damaged_groups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
