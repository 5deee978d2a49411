/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <base/checksum.h>
#include <data/filter.h>
#include <h5/btree2.h>
#include <h5/claims.h>
#include <h5/fheap.h>
#include <h5/message.h>
#include "mem_src.h"

#include "fheap_vectors.h"
#include "hex.h"

enum { MAX_OBJECT = 1 << 20, HUGE = 5000, FLETCHER = 4 };

/* The only filter of the files is fletcher32, which adds a checksum of 4 bytes. */
static int unfilter(void *ctx, const struct pipeline *p, uint32_t mask, const void *in, size_t n,
		    size_t max, struct bytes *out, struct err *err)
{
	size_t *calls = ctx;
	(*calls)++;
	assert_int_equal(p->n, 1);
	assert_int_equal(p->f[0].id, FILTER_FLETCHER32);
	assert_int_equal(out->len, 0);
	if (!(mask & 1)) {
		if (n < FLETCHER)
			return err_set(err, -EIO, "fletcher32: too short");
		n -= FLETCHER;
	}
	if (n > max)
		return err_set(err, -EIO, "fletcher32: too long");
	return bytes_append(out, in, n);
}

struct vector {
	const char *name;
	const struct piece_of_file *pieces;
	size_t npieces, size;
	uint8_t addr_size, len_size;
	uint64_t heap, tree; /* tree: of names */
	enum h5_bt2_type type;
	size_t objects, id_at, id_len;
	size_t decodes; /* of blocks and huge objects */
};

#define PIECES(p) p, sizeof(p) / sizeof((p)[0])
static const struct vector vectors[] = {
	{"filtered", PIECES(filtered), FILTERED_SIZE, 8, 8, 503, 669, H5_BT2_LINK_NAME, 46, 4, 7,
	 4},
	{"filtered, one block", PIECES(filtered_small), FILTERED_SMALL_SIZE, 8, 8, 503, 669,
	 H5_BT2_LINK_NAME, 13, 4, 7, 2},
	{"small sizes", PIECES(small_sizes), SMALL_SIZES_SIZE, 2, 4, 749, 829, H5_BT2_ATTR_NAME, 13,
	 0, 8, 0},
};

struct opened {
	const struct vector *v;
	uint8_t *bytes;
	struct mem_src m;
	struct h5_unfilter unfilter;
	size_t decodes;
	struct h5_fheap_reader *r;
	size_t seen;
};

static void load(struct opened *o, const struct vector *v)
{
	*o = (struct opened){.v = v, .bytes = calloc(1, v->size)};
	assert_non_null(o->bytes);
	for (size_t i = 0; i < v->npieces; i++) {
		const struct piece_of_file *p = &v->pieces[i];
		memset(o->bytes + p->at, 'x', p->n);
		if (!p->hex)
			continue;
		size_t n;
		auto_free uint8_t *bytes = hex_bytes(p->hex, &n);
		assert_int_equal(n, p->n);
		memcpy(o->bytes + p->at, bytes, n);
	}
	o->unfilter = (struct h5_unfilter){unfilter, &o->decodes};
	mem_src_init(&o->m, o->bytes, v->size);
	o->m.file.addr_size = v->addr_size;
	o->m.file.len_size = v->len_size;
	o->m.file.unfilter = &o->unfilter;
}

static void release(struct opened *o)
{
	h5_fheap_close(o->r);
	h5_claims_free(o->m.file.claims);
	mem_src_release(&o->m);
	free(o->bytes);
}

static bool contains(const struct bytes *b, const char *text)
{
	const size_t n = strlen(text);
	for (size_t i = 0; i + n <= b->len; i++)
		if (memcmp(b->data + i, text, n) == 0)
			return true;
	return false;
}

/* Links are named link000, …, attributes attr00, …; one of them is huge. */
static void check_object(struct opened *o, const struct bytes *object)
{
	if (contains(object, "huge")) {
		assert_true(object->len > HUGE);
		for (size_t i = 0; i < HUGE; i++)
			assert_int_equal(object->data[object->len - 1 - i], 'x');
		return;
	}
	if (o->v->type == H5_BT2_LINK_NAME) {
		struct cursor c = cursor_of(object->data, object->len);
		struct arena *a = arena_new(1 << 16);
		struct h5_link link;
		char path[32];
		assert_int_equal(h5_link_decode(&o->m.file, &c, a, &link, NULL), 0);
		snprintf(path, sizeof(path), "/target%s", link.name + 4);
		assert_string_equal(link.path, path);
		arena_free(a);
	} else {
		assert_true(contains(object, "attr"));
	}
}

static int get_one(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	struct opened *o = ctx;
	auto_bytes struct bytes object = {0};
	assert_true(record_size >= o->v->id_at + o->v->id_len);
	int rc = h5_fheap_get(o->r, record + o->v->id_at, o->v->id_len, MAX_OBJECT, &object, err);
	if (rc)
		return rc;
	check_object(o, &object);
	o->seen++;
	return 0;
}

static int get_all(struct opened *o, struct err *err)
{
	struct h5_file plain = o->m.file;
	plain.claims = NULL; /* the walk is repeated */
	o->seen = 0;
	return h5_bt2_walk(&plain, o->v->tree, o->v->type, get_one, o, err);
}

static void test_files_of_libhdf5(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct opened o;
		struct err err = ERR_INIT;
		load(&o, &vectors[i]);
		o.m.file.claims = h5_claims_new(NULL);
		if (h5_fheap_open(&o.m.file, o.v->heap, &o.r, &err))
			fail_msg("%s: %s", o.v->name, err.msg);
		/* The second time, the blocks are kept; the huge object is not. */
		for (int k = 0; k < 2; k++) {
			if (get_all(&o, &err))
				fail_msg("%s: %s", o.v->name, err.msg);
			assert_int_equal(o.seen, o.v->objects);
			assert_int_equal(o.decodes, o.v->decodes + (k && o.v->decodes ? 1 : 0));
		}
		if (h5_claims_check(o.m.file.claims, &err))
			fail_msg("%s: %s", o.v->name, err.msg);
		release(&o);
	}
}

static bool is_claimed(const struct opened *o, uint64_t at)
{
	struct h5_fheap_reader *r;
	struct h5_file f = o->m.file;
	f.claims = h5_claims_new(NULL);
	assert_int_equal(h5_fheap_open(&f, o->v->heap, &r, NULL), 0);
	h5_fheap_close(r);
	h5_claim(f.claims, at, 1, "test", NULL);
	const bool result = h5_claims_check(f.claims, NULL) != 0;
	h5_claims_free(f.claims);
	return result;
}

/* The header is at 503, the indirect block at 1891, the free-space manager at 707 with its list at
 * 1851, and the direct blocks are at 8086, 8602 and 9118. */
static void test_claims(void **state)
{
	static const struct {
		uint64_t at;
		bool is_claimed;
	} rows[] = {
		{502, false},	   {503, true},	  {503 + 165, true}, {669, false}, {707 + 81, true},
		{707 + 82, false}, {1850, false}, {1851, true},	     {1890, true}, {1891, true},
		{8085, false},	   {8086, true},  {9633, true},
	};
	struct opened o;
	load(&o, &vectors[0]);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_claimed(&o, rows[i].at) != rows[i].is_claimed)
			fail_msg("byte %d", (int)rows[i].at);
	/* A damaged free-space manager is no obstacle, but it is damage of a strict file. */
	o.bytes[707] = 'X';
	assert_true(is_claimed(&o, 503));
	assert_false(is_claimed(&o, 707));
	struct err err = ERR_INIT;
	o.m.file.is_strict = true;
	o.m.file.claims = h5_claims_new(NULL);
	assert_int_equal(h5_fheap_open(&o.m.file, o.v->heap, &o.r, &err), -EIO);
	assert_non_null(strstr(err.msg, "free-space manager at 707: wrong signature"));
	release(&o);
}

static void test_filters_without_a_decoder(void **state)
{
	struct opened o;
	load(&o, &vectors[0]);
	o.m.file.unfilter = NULL;
	assert_int_equal(h5_fheap_open(&o.m.file, o.v->heap, &o.r, NULL), -EOPNOTSUPP);
	release(&o);
}

static void put_uint(uint8_t *at, uint64_t v, unsigned int n)
{
	struct emit e = emit_to(at, n);
	emit_uint(&e, v, n);
}

static void mend(uint8_t *from, size_t n)
{
	put_uint(from + n, checksum_lookup3(from, n, 0), 4);
}

/* The header of filtered_small has 166 bytes: the stored size of its root block is at +142, the
 * mask at +150, the message at +154. */
enum { SMALL_HEAP = 503, STORED = 142, MASK = 150, MESSAGE = 154, HEADER_SUM = 162 };

static void test_a_block_that_is_not_filtered(void **state)
{
	struct opened o;
	struct err err = ERR_INIT;
	load(&o, &vectors[1]);
	put_uint(o.bytes + SMALL_HEAP + STORED, 512, 8);
	put_uint(o.bytes + SMALL_HEAP + MASK, 1, 4);
	mend(o.bytes + SMALL_HEAP, HEADER_SUM);
	assert_int_equal(h5_fheap_open(&o.m.file, SMALL_HEAP, &o.r, NULL), 0);
	if (get_all(&o, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(o.seen, 13);
	release(&o);
}

static void test_malformed_filtered_heaps(void **state)
{
	/* The B-tree of huge objects has its leaf at 1339. */
	enum { LEAF = 1339, RECORD = LEAF + 6, LEAF_SUM = 6 + 36 };
	static const struct {
		const char *defect;
		size_t at, n;
		uint64_t value;
		int open, read;
	} rows[] = {
		{"none", 0, 1, 0x89, 0, 0},
		{"no bytes of the block", SMALL_HEAP + STORED, 8, 0, 0, -EIO},
		{"fewer bytes of the block", SMALL_HEAP + STORED, 8, 515, 0, -EIO},
		{"more bytes of the block", SMALL_HEAP + STORED, 8, 517, 0, -EIO},
		{"more bytes than the file has", SMALL_HEAP + STORED, 8, 1 << 20, -EIO, 0},
		{"2^64 - 1 bytes", SMALL_HEAP + STORED, 8, UINT64_MAX, -EIO, 0},
		{"unfiltered block with a checksum", SMALL_HEAP + MASK, 4, 1, 0, -EIO},
		{"version of the filters", SMALL_HEAP + MESSAGE, 1, 9, -EOPNOTSUPP, 0},
		{"number of filters", SMALL_HEAP + MESSAGE + 1, 1, 200, -EIO, 0},
		{"message longer than its bytes", SMALL_HEAP + MESSAGE + 6, 2, 100, -EIO, 0},
		{"huge object outside of the file", RECORD, 8, 1 << 20, 0, -EIO},
		{"huge object larger than the file", RECORD + 8, 8, 1 << 20, 0, -EIO},
		{"huge object of other stored size", RECORD + 8, 8, 5000, 0, -EIO},
		{"mask of the huge object", RECORD + 16, 4, 1, 0, -EIO},
		{"size of the huge object", RECORD + 20, 8, 5009, 0, -EIO},
		{"huge object larger than the limit", RECORD + 20, 8, MAX_OBJECT + 1, 0, -EIO},
		{"number of the huge object", RECORD + 28, 8, 2, 0, -EIO},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct opened o;
		struct err err = ERR_INIT;
		load(&o, &vectors[1]);
		assert_memory_equal(o.bytes + LEAF, "BTLF", 4);
		put_uint(o.bytes + rows[i].at, rows[i].value, (unsigned int)rows[i].n);
		mend(o.bytes + SMALL_HEAP, HEADER_SUM);
		mend(o.bytes + LEAF, LEAF_SUM);
		int rc = h5_fheap_open(&o.m.file, SMALL_HEAP, &o.r, &err);
		if (rc != rows[i].open || (rc && !err.msg[0]))
			fail_msg("%s: open says %d %s", rows[i].defect, rc, err.msg);
		if (!rc) {
			rc = get_all(&o, &err);
			if (rc != rows[i].read || (rc && !err.msg[0]))
				fail_msg("%s: get says %d %s", rows[i].defect, rc, err.msg);
			/* A damaged block or tree is not read again. The names take two reads, and
			 * a huge object takes one. */
			const size_t reads = o.m.source.reads;
			assert_int_equal(get_all(&o, NULL), rc);
			assert_true(!rc || o.m.source.reads - reads <= 3);
		}
		release(&o);
	}
}

/* Blocks of 2^start bytes, behind filters. */
static int open_with_blocks(unsigned int start)
{
	enum { START = 112, MAX_DIRECT = 120 };
	struct opened o;
	load(&o, &vectors[1]);
	put_uint(o.bytes + SMALL_HEAP + START, UINT64_C(1) << start, 8);
	put_uint(o.bytes + SMALL_HEAP + MAX_DIRECT, UINT64_C(2) << start, 8);
	mend(o.bytes + SMALL_HEAP, HEADER_SUM);
	int rc = h5_fheap_open(&o.m.file, SMALL_HEAP, &o.r, NULL);
	release(&o);
	return rc;
}

static void test_a_filtered_heap_that_is_too_large(void **state)
{
	assert_int_equal(open_with_blocks(16), 0);
	assert_int_equal(open_with_blocks(26), 0);
	assert_int_equal(open_with_blocks(27), -EOPNOTSUPP);
}

/* Many ids of one huge object must not keep a reader busy. */
static void test_huge_objects_are_decoded_a_limited_time(void **state)
{
	enum { LIMIT = 256 << 20, OBJECT = 5010 };
	struct opened o;
	size_t n = 0;
	int rc;
	load(&o, &vectors[1]);
	assert_int_equal(h5_fheap_open(&o.m.file, SMALL_HEAP, &o.r, NULL), 0);
	do {
		auto_bytes struct bytes out = {0};
		rc = h5_fheap_get(o.r, (const uint8_t *)"\x10\1\0\0\0\0\0", 7, OBJECT, &out, NULL);
		n += rc == 0;
	} while (!rc);
	assert_int_equal(rc, -EOPNOTSUPP);
	assert_int_equal(n, LIMIT / OBJECT);
	release(&o);
}

/* libhdf5 does not write ids that are so long. The test changes the length of ids in a header. */
static void test_filtered_objects_in_ids(void **state)
{
	enum { ID = 40, DATA = 4, SIZE = 100 };
	struct opened o;
	uint8_t id[ID] = {0x10};
	auto_bytes struct bytes out = {0};
	load(&o, &vectors[1]);
	put_uint(o.bytes + SMALL_HEAP + 5, ID, 2);
	mend(o.bytes + SMALL_HEAP, HEADER_SUM);
	assert_int_equal(h5_fheap_open(&o.m.file, SMALL_HEAP, &o.r, NULL), 0);
	struct emit e = emit_to(id + 1, ID - 1);
	emit_u64(&e, DATA);
	emit_u64(&e, SIZE + FLETCHER);
	emit_u32(&e, 0);
	emit_u64(&e, SIZE);
	assert_int_equal(h5_fheap_get(o.r, id, ID, SIZE - 1, &out, NULL), -EIO);
	assert_int_equal(h5_fheap_get(o.r, id, ID, SIZE, &out, NULL), 0);
	assert_int_equal(out.len, SIZE);
	assert_memory_equal(out.data, o.bytes + DATA, SIZE);
	release(&o);
}

/* A restarted reader gets the same objects, when pages of the file arrive one by one. */
static void test_missing_pages(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct opened o;
		struct err err = ERR_INIT;
		size_t restarts = 0;
		int rc;
		load(&o, &vectors[i]);
		mem_src_hide(&o.m, 512);
		do {
			err_clear(&err);
			mem_src_fetch(&o.m);
			h5_fheap_close(o.r);
			o.r = NULL;
			rc = h5_fheap_open(&o.m.file, o.v->heap, &o.r, &err);
			if (!rc)
				rc = get_all(&o, &err);
			assert_true(++restarts < 40);
		} while (rc == -EAGAIN);
		if (rc)
			fail_msg("%s: %s", o.v->name, err.msg);
		assert_int_equal(o.seen, o.v->objects);
		assert_in_range(restarts, 5, 40);
		release(&o);
	}
}

/* A heap with more bytes than the reader keeps: whatever the order is, each block is read once,
 * and each object of a block that is not kept takes one read more. */
static void test_a_heap_larger_than_the_cache(void **state)
{
	enum { N = 6000, SIZE = 4000, BLOCK = 64 << 10 };
	struct h5_fheap *h = h5_fheap_new(&h5_fheap_attrs);
	auto_free uint8_t *object = calloc(1, SIZE), *ids = calloc(N, 8);
	assert_true(h && object && ids);
	for (uint32_t i = 0; i < N; i++) {
		put_uint(object, i, 4);
		assert_int_equal(h5_fheap_insert(h, object, SIZE, ids + 8 * i, NULL), 0);
	}
	struct emit e = emit_count();
	h5_fheap_encode(&e, h, 0);
	const size_t size = e.pos, blocks = size / BLOCK + 40;
	auto_free uint8_t *image = malloc(size);
	assert_non_null(image);
	e = emit_to(image, size);
	h5_fheap_encode(&e, h, 0);
	h5_fheap_free(h);

	struct mem_src m;
	struct h5_fheap_reader *r;
	mem_src_init(&m, image, size);
	assert_int_equal(h5_fheap_open(&m.file, 0, &r, NULL), 0);
	for (uint32_t i = 0; i < 2 * N; i++) {
		const uint32_t k = i * 7919 % N;
		auto_bytes struct bytes out = {0};
		assert_int_equal(h5_fheap_get(r, ids + 8 * k, 8, SIZE, &out, NULL), 0);
		struct cursor c = cursor_of(out.data, out.len);
		assert_int_equal(cur_u32(&c), k);
	}
	/* A third of the objects is in blocks that are not kept. */
	assert_in_range(m.source.reads, blocks / 2, blocks + 2 * N / 2);
	assert_in_range(m.source.bytes, size - BLOCK, size + SIZE * N + BLOCK);
	h5_fheap_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_of_libhdf5),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_filters_without_a_decoder),
		cmocka_unit_test(test_a_block_that_is_not_filtered),
		cmocka_unit_test(test_malformed_filtered_heaps),
		cmocka_unit_test(test_a_filtered_heap_that_is_too_large),
		cmocka_unit_test(test_huge_objects_are_decoded_a_limited_time),
		cmocka_unit_test(test_filtered_objects_in_ids),
		cmocka_unit_test(test_missing_pages),
		cmocka_unit_test(test_a_heap_larger_than_the_cache),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
