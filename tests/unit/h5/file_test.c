/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All decoders read a file of HDF5 1.10.8 with a user block and addresses and lengths of 4 bytes
 * (tests/data/sizes4.py): once from a source that has all bytes, and once from a source that
 * fetches pages on demand, where each walk is repeated after -EAGAIN.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <h5/btree1.h>
#include <h5/btree2.h>
#include <h5/fheap.h>
#include <h5/file.h>
#include <h5/message.h>
#include <h5/ohdr.h>
#include "data_file.h"
#include "gheap_item.h"
#include "mem_src.h"

#include "shape_arena.h"

enum { USER_BLOCK = 512, LINKS = 62, ATTRS = 10, BIG = 5000, PAGE = 64, ARENA_LIMIT = 64 << 20 };

/* What the decoders find in the file. */
struct walk {
	const struct h5_file *f;
	struct arena *a;
	struct h5_fheap_reader *heap;
	unsigned int links, attrs, chunks;
	uint64_t data, text; /* addresses of headers */
	uint64_t elements;   /* sum of the elements of chunks */
	uint64_t big;	     /* correct bytes of the huge attribute */
	char string[32];
};

static int header(struct walk *w, uint64_t addr, uint8_t type, struct cursor *c, struct err *err)
{
	struct h5_ohdr h;
	int rc = h5_ohdr_decode(w->f, addr, w->a, &h, err);
	for (uint32_t i = 0; !rc && i < h.n; i++) {
		if (h.msgs[i].type == type) {
			*c = cursor_of(h.msgs[i].body, h.msgs[i].len);
			return 0;
		}
	}
	return rc ? rc : err_set(err, -ENOENT, "no message %u", type);
}

static int heap_object(struct walk *w, const uint8_t *id, size_t len, struct bytes *out,
		       struct err *err)
{
	return h5_fheap_get(w->heap, id, len, 1 << 20, out, err);
}

static int add_link(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct walk *w = ctx;
	auto_bytes struct bytes body = {0};
	struct h5_link link;
	int rc = heap_object(w, record + 4, size - 4U, &body, err);
	struct cursor c = cursor_of(body.data, body.len);
	if (!rc)
		rc = h5_link_decode(w->f, &c, w->a, &link, err);
	if (rc)
		return rc;
	w->links++;
	if (link.cls == LINK_HARD && strcmp(link.name, "data") == 0)
		w->data = link.addr;
	else if (link.cls == LINK_HARD && strcmp(link.name, "text") == 0)
		w->text = link.addr;
	return 0;
}

static int walk_links(struct walk *w, struct err *err)
{
	struct cursor c;
	struct h5_linfo info;
	int rc = header(w, w->f->root, H5_MSG_LINK_INFO, &c, err);
	if (!rc)
		rc = h5_linfo_decode(w->f, &c, &info, err);
	if (!rc)
		rc = h5_fheap_open(w->f, info.heap, &w->heap, err);
	return rc ? rc : h5_bt2_walk(w->f, info.names, H5_BT2_LINK_NAME, add_link, w, err);
}

static int add_attr(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct walk *w = ctx;
	auto_bytes struct bytes body = {0};
	struct h5_attr attr;
	int rc = heap_object(w, record, 8, &body, err);
	struct cursor c = cursor_of(body.data, body.len);
	if (!rc)
		rc = h5_attr_decode(w->f, &c, w->a, NULL, &attr, err);
	if (rc)
		return rc;
	w->attrs++;
	for (uint64_t i = 0; attr.data_len == BIG && i < BIG; i++)
		w->big += attr.data[i] == 7;
	return 0;
}

static int walk_attrs(struct walk *w, struct err *err)
{
	struct cursor c;
	struct h5_ainfo info;
	int rc = header(w, w->data, H5_MSG_ATTRIBUTE_INFO, &c, err);
	if (!rc)
		rc = h5_ainfo_decode(w->f, &c, &info, err);
	h5_fheap_close(w->heap);
	w->heap = NULL;
	if (!rc)
		rc = h5_fheap_open(w->f, info.heap, &w->heap, err);
	return rc ? rc : h5_bt2_walk(w->f, info.names, H5_BT2_ATTR_NAME, add_attr, w, err);
}

static int add_chunk(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	struct walk *w = ctx;
	uint8_t raw[32];
	int rc = h5_file_read(w->f, chunk->addr, raw, sizeof(raw), err);
	struct cursor c = cursor_of(raw, sizeof(raw));
	w->chunks++;
	while (!rc && cur_left(&c))
		w->elements += cur_u16(&c);
	return rc;
}

static int walk_chunks(struct walk *w, struct err *err)
{
	struct cursor c;
	struct dspace space;
	struct h5_layout layout;
	int rc = header(w, w->data, H5_MSG_DATASPACE, &c, err);
	if (!rc)
		rc = h5_dspace_decode(w->f, &c, shape_arena(), &space, err);
	if (!rc && (space.rank != 2 || space.dims[0] != 10 || space.max[0] != DSPACE_UNLIMITED))
		rc = err_set(err, -EBADMSG, "another dataspace");
	if (!rc)
		rc = header(w, w->data, H5_MSG_LAYOUT, &c, err);
	if (!rc)
		rc = h5_layout_decode(w->f, &c, &layout, err);
	return rc ? rc : h5_bt1_walk_range(w->f, layout.addr, layout.rank, NULL, add_chunk, w, err);
}

/* An element of a variable-length string: u32 length, address of a collection, u32 index. */
static int read_string(struct walk *w, struct err *err)
{
	struct cursor c;
	struct h5_layout layout;
	uint8_t raw[12];
	auto_bytes struct bytes text = {0};
	int rc = header(w, w->text, H5_MSG_LAYOUT, &c, err);
	if (!rc)
		rc = h5_layout_decode(w->f, &c, &layout, err);
	if (!rc && layout.size != sizeof(raw))
		rc = err_set(err, -EBADMSG, "another layout");
	if (!rc)
		rc = h5_file_read(w->f, layout.addr, raw, sizeof(raw), err);
	if (rc)
		return rc;
	c = cursor_of(raw + 4, sizeof(raw) - 4);
	const uint64_t addr = h5_cur_addr(w->f, &c);
	const uint32_t index = cur_u32(&c);
	rc = gheap_item(w->f, addr, index, sizeof(w->string) - 1, &text, err);
	if (!rc)
		memcpy(w->string, text.data, text.len);
	return rc;
}

static int walk_all(struct h5_file *f, struct source *s, struct walk *w, struct err *err)
{
	*w = (struct walk){.f = f, .a = arena_new(ARENA_LIMIT)};
	assert_non_null(w->a);
	int rc = h5_file_open(f, s, err);
	if (!rc)
		rc = walk_links(w, err);
	if (!rc)
		rc = walk_attrs(w, err);
	if (!rc)
		rc = walk_chunks(w, err);
	if (!rc)
		rc = read_string(w, err);
	h5_fheap_close(w->heap);
	arena_free(w->a);
	return rc;
}

static void assert_all(const struct h5_file *f, const struct walk *w)
{
	assert_int_equal(f->base, USER_BLOCK);
	assert_int_equal(f->addr_size, 4);
	assert_int_equal(f->len_size, 4);
	assert_int_equal(f->root, 111);
	assert_int_equal(f->sohm, 81);
	assert_int_equal(w->links, LINKS);
	assert_int_equal(w->attrs, ATTRS);
	assert_int_equal(w->big, BIG);
	assert_int_equal(w->chunks, 9);
	assert_int_equal(w->elements, 99 * 100 / 2);
	assert_string_equal(w->string, "in a global heap");
}

static void test_whole_file(void **state)
{
	auto_bytes struct bytes file = data_file("sizes4.h5");
	struct mem_src m;
	struct walk w;
	struct err err = ERR_INIT;
	mem_src_init(&m, file.data, file.len);
	if (walk_all(&m.file, &m.source, &w, &err))
		fail_msg("%s", err.msg);
	assert_all(&m.file, &w);
}

/* A walk that needs a missing page fails with -EAGAIN, and its results are dropped. */
static void test_pages_on_demand(void **state)
{
	auto_bytes struct bytes file = data_file("sizes4.h5");
	struct mem_src m;
	struct walk w;
	struct err err = ERR_INIT;
	size_t rounds = 0, fetched = 0;
	int rc;
	mem_src_init(&m, file.data, file.len);
	mem_src_hide(&m, PAGE);
	while ((rc = walk_all(&m.file, &m.source, &w, &err)) == -EAGAIN) {
		mem_src_fetch(&m);
		assert_true(m.fetched > fetched); /* a page is requested once */
		fetched = m.fetched;
		rounds++;
	}
	if (rc)
		fail_msg("%s", err.msg);
	assert_all(&m.file, &w);
	assert_true(rounds > 20);
	assert_true(fetched < file.len / PAGE);
	mem_src_release(&m);
}

/* The source reports the range of the read. Its offset includes the user block. */
static void test_wanted_range(void **state)
{
	auto_bytes struct bytes file = data_file("sizes4.h5");
	struct mem_src m;
	struct err err = ERR_INIT;
	uint8_t buf[10];
	mem_src_init(&m, file.data, file.len);
	m.file.base = USER_BLOCK;
	mem_src_hide(&m, PAGE);
	assert_int_equal(h5_file_read(&m.file, 111, buf, sizeof(buf), &err), -EAGAIN);
	assert_int_equal(err.code, -EAGAIN);
	assert_int_equal(m.source.missing_offset, USER_BLOCK + 111);
	assert_int_equal(m.source.missing_length, sizeof(buf));
	mem_src_fetch(&m);
	assert_int_equal(h5_file_read(&m.file, 111, buf, sizeof(buf), NULL), 0);
	assert_memory_equal(buf, "OHDR", 4);
	mem_src_release(&m);
}

static void test_no_file(void **state)
{
	static const uint8_t zeros[5000];
	struct mem_src m;
	for (size_t n = 0; n < sizeof(zeros); n += 511) {
		mem_src_init(&m, zeros, n);
		assert_int_equal(h5_file_open(&m.file, &m.source, NULL), -EIO);
	}
}

static int check_chunk(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	return *(uint64_t *)ctx == chunk->addr ? 0 : err_set(err, -EBADMSG, "another chunk");
}

/* A file may end after the last entry of a node. */
static void test_file_ends_behind_a_node(void **state)
{
	static const uint8_t node[] = {
		'T', 'R', 'E', 'E', 1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		/* bytes, mask, offset of the chunk and in the element, address */
		8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0};
	uint64_t addr = 0x201;
	struct mem_src m;
	mem_src_init(&m, node, sizeof(node));
	m.file.addr_size = 4;
	assert_int_equal(h5_bt1_walk_range(&m.file, 0, 1, NULL, check_chunk, &addr, NULL), 0);
	mem_src_init(&m, node, sizeof(node) - 1);
	m.file.addr_size = 4;
	assert_int_equal(h5_bt1_walk_range(&m.file, 0, 1, NULL, check_chunk, &addr, NULL), -EIO);
}

/* Addresses that overflow when the base is added, and files that end in the user block. */
static void test_outside(void **state)
{
	auto_bytes struct bytes file = data_file("sizes4.h5");
	struct mem_src m;
	uint8_t buf[8];
	mem_src_init(&m, file.data, file.len);
	m.file.base = USER_BLOCK;
	assert_int_equal(h5_file_size(&m.file), file.len - USER_BLOCK);
	assert_int_equal(h5_file_read(&m.file, UINT64_MAX, buf, 1, NULL), -EIO);
	assert_int_equal(h5_file_read(&m.file, file.len - USER_BLOCK - 4, buf, 5, NULL), -EIO);
	assert_int_equal(m.reads, 0);
	m.file.base = file.len + 1;
	assert_int_equal(h5_file_size(&m.file), 0);
	for (size_t n = 0; n < file.len; n += 97) {
		struct walk w;
		uint8_t *part = malloc(n ? n : 1);
		assert_non_null(part);
		memcpy(part, file.data, n);
		mem_src_init(&m, part, n);
		assert_int_equal(walk_all(&m.file, &m.source, &w, NULL), -EIO);
		free(part);
	}
}

/* What is read counts, and nothing is read behind the limit. */
static void test_limit_of_work(void **state)
{
	static const uint8_t bytes[100];
	struct h5_work work = {.left = 150};
	struct mem_src m;
	struct err err = ERR_INIT;
	uint8_t buf[100];
	mem_src_init(&m, bytes, sizeof(bytes));
	m.file.work = &work;
	assert_int_equal(h5_file_read(&m.file, 1, buf, 100, NULL), -EIO); /* outside */
	assert_int_equal(work.left, 150);
	assert_int_equal(h5_file_read(&m.file, 0, buf, 100, NULL), 0);
	assert_int_equal(h5_file_spend(&m.file, 40, NULL), 0);
	assert_int_equal(work.left, 10);
	assert_int_equal(h5_file_read(&m.file, 0, buf, 11, &err), -EIO);
	assert_non_null(strstr(err.msg, "overlap"));
	assert_int_equal(h5_file_read(&m.file, 0, buf, 1, NULL), -EIO);
	assert_int_equal(m.reads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_of_work),
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_pages_on_demand),
		cmocka_unit_test(test_wanted_range),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_file_ends_behind_a_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
