/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <h5/claims.h>
#include <h5/gheap.h>
#include <h5/gheap_cache.h>
#include "mem_src.h"

#include "hex.h"

enum { HEADER = 16 };

struct heap {
	struct h5_gheap_writer w;
	struct mem_src m;
	struct h5_gheap_cache *cache;
	uint64_t *addr;
	uint32_t *index;
	size_t n;
};

static size_t item_size(size_t i)
{
	return i * 37 % 90;
}

/* n items in collections of at most `target` bytes. */
static void heap_init(struct heap *h, size_t n, size_t target)
{
	uint8_t item[90];
	*h = (struct heap){.n = n};
	h->addr = calloc(n, sizeof(*h->addr));
	h->index = calloc(n, sizeof(*h->index));
	assert_true(h->addr && h->index);
	h5_gheap_init(&h->w, 0, target);
	for (size_t i = 0; i < n; i++) {
		memset(item, (int)(i % 251), sizeof(item));
		assert_int_equal(
			h5_gheap_add(&h->w, item, item_size(i), &h->addr[i], &h->index[i], NULL),
			0);
	}
	assert_int_equal(h5_gheap_finish(&h->w, NULL), 0);
	mem_src_init(&h->m, h->w.out.data, h->w.out.len);
}

static void heap_open(struct heap *h)
{
	h->cache = h5_gheap_cache_new(&h->m.file);
	assert_non_null(h->cache);
}

static void heap_release(struct heap *h)
{
	h5_gheap_cache_free(h->cache);
	h5_gheap_release(&h->w);
	mem_src_release(&h->m);
	free(h->addr);
	free(h->index);
}

static void check_item(struct heap *h, size_t i)
{
	const uint8_t *data;
	size_t n;
	struct err err = ERR_INIT;
	if (h5_gheap_cache_get(h->cache, h->addr[i], h->index[i], &data, &n, &err))
		fail_msg("item %zu: %s", i, err.msg);
	assert_int_equal(n, item_size(i));
	for (size_t k = 0; k < n; k++)
		assert_int_equal(data[k], i % 251);
}

static size_t collections(const struct heap *h)
{
	size_t count = 0;
	for (size_t i = 0; i < h->n; i++)
		count += i == 0 || h->addr[i] != h->addr[i - 1];
	return count;
}

/* In any order, each collection of 4 KiB is read once and claimed once. */
static void test_a_collection_is_read_once(void **state)
{
	struct heap h;
	heap_init(&h, 2000, H5_GHEAP_MIN);
	h.m.file.claims = h5_claims_new(NULL);
	heap_open(&h);
	const size_t n = collections(&h);
	assert_in_range(n, 20, H5_GHEAP_CACHED);
	for (size_t k = 0; k < 3 * h.n; k++)
		check_item(&h, k * 7919 % h.n);
	assert_in_range(h.m.source.reads, n, 2 * n);
	assert_in_range(h.m.source.bytes, h.w.out.len, h.w.out.len + n * HEADER);
	assert_int_equal(h5_claims_check(h.m.file.claims, NULL), 0);
	/* The whole region is claimed. */
	h5_claim(h.m.file.claims, h.w.out.len - 1, 1, "other", NULL);
	assert_int_equal(h5_claims_check(h.m.file.claims, NULL), -EIO);
	h5_claims_free(h.m.file.claims);
	heap_release(&h);
}

/* More collections than are kept: in order each is read once; out of order evicted ones are read
 * again, but not claimed again. */
static void test_evicted_collections(void **state)
{
	struct heap h;
	heap_init(&h, 20000, H5_GHEAP_MIN);
	h.m.file.claims = h5_claims_new(NULL);
	heap_open(&h);
	const size_t n = collections(&h);
	assert_true(n > 3 * H5_GHEAP_CACHED);
	for (size_t i = 0; i < h.n; i++)
		check_item(&h, i);
	assert_in_range(h.m.source.reads, n, 2 * n);
	const size_t reads = h.m.source.reads;
	check_item(&h, h.n - 1);
	assert_int_equal(h.m.source.reads, reads);
	check_item(&h, 0);
	assert_true(h.m.source.reads > reads);
	assert_int_equal(h5_claims_check(h.m.file.claims, NULL), 0);
	h5_claims_free(h.m.file.claims);
	heap_release(&h);
}

/* Collections that are together larger than the cache: the one that is used last is kept. */
static void test_large_collections(void **state)
{
	enum { N = 3, SIZE = 12 << 20 };
	struct heap h = {.n = N};
	uint64_t addr[N];
	uint32_t index;
	const uint8_t *data;
	size_t n;
	auto_free uint8_t *item = malloc(SIZE);
	assert_non_null(item);
	h5_gheap_init(&h.w, 0, H5_GHEAP_MIN);
	for (size_t i = 0; i < N; i++) {
		memset(item, (int)i + 1, SIZE);
		assert_int_equal(h5_gheap_add(&h.w, item, SIZE, &addr[i], &index, NULL), 0);
		assert_int_equal(index, 1);
	}
	assert_int_equal(h5_gheap_finish(&h.w, NULL), 0);
	mem_src_init(&h.m, h.w.out.data, h.w.out.len);
	heap_open(&h);
	for (size_t i = 0; i < 2 * N; i++) {
		const size_t before = h.m.source.reads;
		for (int k = 0; k < 2; k++) {
			assert_int_equal(
				h5_gheap_cache_get(h.cache, addr[i % N], 1, &data, &n, NULL), 0);
			assert_int_equal(n, SIZE);
			assert_int_equal(data[SIZE - 1], i % N + 1);
		}
		assert_int_equal(h.m.source.reads - before, 2);
	}
	heap_release(&h);
}

/* A damaged file has small items in collections that are too large for the cache. */
static void test_collections_that_are_much_larger_than_their_items(void **state)
{
	enum { SIZE = 12 << 20, GETS = 10000 };
	struct mem_src m;
	const uint8_t *data;
	size_t n;
	uint64_t gets = 0;
	struct err err = ERR_INIT;
	uint8_t *file = calloc(2, SIZE);
	assert_non_null(file);
	for (size_t i = 0; i < 2; i++) {
		struct emit e = emit_to(file + i * SIZE, SIZE);
		emit_bytes(&e, "GCOL", 4);
		emit_u32(&e, 1);
		emit_u64(&e, SIZE);
		emit_u64(&e, 1 | 1 << 16); /* index 1, one reference */
		emit_u64(&e, 8);
		emit_u64(&e, 7);
		emit_u64(&e, 0); /* free space */
		emit_u64(&e, SIZE - 40);
	}
	mem_src_init(&m, file, 2 * (size_t)SIZE);
	struct h5_gheap_cache *c = h5_gheap_cache_new(&m.file);
	assert_non_null(c);
	while (gets < GETS && !h5_gheap_cache_get(c, gets % 2 * SIZE, 1, &data, &n, &err))
		gets++;
	assert_in_range(gets, 30, 60);
	assert_int_equal(err.code, -EIO);
	assert_non_null(strstr(err.msg, "too often"));
	const uint64_t bytes = m.source.bytes;
	assert_int_equal(h5_gheap_cache_get(c, SIZE / 2, 1, &data, &n, NULL), -EIO);
	assert_int_equal(m.source.bytes, bytes);
	h5_gheap_cache_free(c);
	free(file);
}

/* What a caller gets who fetches missing pages and asks again. */
static void test_missing_pages(void **state)
{
	struct heap h;
	const uint8_t *data;
	size_t n, restarts = 0;
	heap_init(&h, 500, H5_GHEAP_TARGET_ATTRS);
	mem_src_hide(&h.m, 1024);
	heap_open(&h);
	for (size_t i = 0; i < h.n; i++) {
		struct err err = ERR_INIT;
		while (h5_gheap_cache_get(h.cache, h.addr[i], h.index[i], &data, &n, &err)) {
			assert_int_equal(err.code, -EAGAIN);
			assert_true(++restarts <= 2 * collections(&h));
			mem_src_fetch(&h.m);
			err_clear(&err);
		}
		check_item(&h, i);
	}
	assert_true(restarts > 0);
	heap_release(&h);
}

/* A collection of a file with lengths of 4 bytes: headers still have 16 bytes. Its items are not
 * in the order of their indexes, and the last one has no padding. */
static void test_order_and_sizes(void **state)
{
	static const char text[] = "47434f4c01000000" /* GCOL, version 1 */
				   "4f00000000000000" /* 79 bytes */
				   "0300010000000000"
				   "0200000000000000"
				   "6162000000000000"
				   "0000000000000000" /* free space of 16 bytes */
				   "1000000000000000"
				   "0100010000000000"
				   "0700000000000000"
				   "4142434445464700";
	size_t n, len;
	const uint8_t *data;
	auto_free uint8_t *file = hex_bytes(text, &n);
	struct mem_src m;
	struct err err = ERR_INIT;
	assert_int_equal(n, 80);
	mem_src_init(&m, file, n);
	m.file.len_size = 4;
	struct h5_gheap_cache *c = h5_gheap_cache_new(&m.file);
	assert_non_null(c);
	if (h5_gheap_cache_get(c, 0, 1, &data, &len, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(len, 7);
	assert_memory_equal(data, "ABCDEFG", 7);
	assert_int_equal(h5_gheap_cache_get(c, 0, 3, &data, &len, NULL), 0);
	assert_int_equal(len, 2);
	assert_memory_equal(data, "ab", 2);
	assert_int_equal(h5_gheap_cache_get(c, 0, 2, &data, &len, NULL), -EIO);
	h5_gheap_cache_free(c);
}

static void test_malformed(void **state)
{
	enum { SIZE = 8, INDEX_1 = HEADER, LEN_1 = HEADER + 8, INDEX_2 = INDEX_1 + 24 };
	static const struct {
		const char *defect;
		size_t at, n;
		uint64_t value;
		uint32_t index;
		int rc;
		const char *reason;
	} rows[] = {
		{"none", 0, 1, 'G', 2, 0, NULL},
		{"signature", 0, 1, 'X', 2, -EIO, "wrong signature"},
		{"version", 4, 1, 2, 2, -EOPNOTSUPP, "unsupported version 2"},
		{"size 0", SIZE, 8, 0, 2, -EIO, "the size of 0 bytes is invalid"},
		{"size past the end of the file", SIZE, 8, 4097, 2, -EIO,
		 "its size of 4097 bytes passes the end of the file"},
		{"size of 2^64 - 1", SIZE, 8, UINT64_MAX, 2, -EIO,
		 "its size of 18446744073709551615 bytes passes the end of the file"},
		{"size cuts an object", SIZE, 8, 60, 2, -EIO,
		 "object 2 extends past the end of the collection"},
		{"object longer than the collection", LEN_1, 8, 4065, 2, -EIO,
		 "object 1 extends past the end of the collection"},
		{"object of 2^64 - 1 bytes", LEN_1, 8, UINT64_MAX, 2, -EIO,
		 "object 1 extends past the end of the collection"},
		{"free space of no bytes", INDEX_1, 10, 0, 2, -EIO,
		 "free space 0 extends past the end of the collection"},
		{"two objects with one index", INDEX_2, 2, 1, 1, -EIO,
		 "two objects have the index 1"},
		{"the index of free space", 0, 1, 'G', 0, -EIO, "object 0 is free space"},
		{"no such object", 0, 1, 'G', 4, -EIO, "there is no object 4"},
		{"index over 16 bits", 0, 1, 'G', 0x10002, -EIO, "there is no object 65538"},
	};
	struct h5_gheap_writer w;
	uint64_t addr;
	uint32_t index;
	h5_gheap_init(&w, 0, H5_GHEAP_TARGET_ATTRS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(h5_gheap_add(&w, "12345678", 8, &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	auto_free uint8_t *bad = malloc(w.out.len);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mem_src m;
		struct err err = ERR_INIT;
		const uint8_t *data;
		size_t n;
		char expected[200];
		memcpy(bad, w.out.data, w.out.len);
		struct emit e = emit_to(bad + rows[i].at, rows[i].n);
		emit_uint(&e, rows[i].value, rows[i].n < 8 ? (unsigned int)rows[i].n : 8);
		emit_zero(&e, rows[i].n > 8 ? rows[i].n - 8 : 0);
		mem_src_init(&m, bad, w.out.len);
		struct h5_gheap_cache *c = h5_gheap_cache_new(&m.file);
		assert_non_null(c);
		/* The second time it fails with the same reason, and reads nothing. */
		for (int k = 0; k < 2; k++) {
			int rc = h5_gheap_cache_get(c, 0, rows[i].index, &data, &n, &err);
			if (rc != rows[i].rc)
				fail_msg("%s: %d %s", rows[i].defect, rc, err.msg);
			assert_in_range(m.reads, rows[i].index != 0, rows[i].index != 0);
			if (!rc)
				continue;
			snprintf(expected, sizeof(expected), "global heap at 0: %s",
				 rows[i].reason);
			assert_string_equal(err.msg, expected);
			err_clear(&err);
		}
		h5_gheap_cache_free(c);
	}
	h5_gheap_release(&w);
}

static void test_addresses_outside(void **state)
{
	static const uint64_t addrs[] = {H5_GHEAP_MIN - 15, H5_GHEAP_MIN, 1 << 20, H5_UNDEF - 1,
					 H5_UNDEF};
	struct heap h;
	const uint8_t *data;
	size_t n;
	heap_init(&h, 3, H5_GHEAP_MIN);
	heap_open(&h);
	assert_int_equal(h.w.out.len, H5_GHEAP_MIN);
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
		assert_int_equal(h5_gheap_cache_get(h.cache, addrs[i], 1, &data, &n, NULL), -EIO);
	assert_int_equal(h.m.reads, 0);
	heap_release(&h);
	h5_gheap_cache_free(NULL);
}

/* The size takes one read of the header. */
static void test_size(void **state)
{
	struct heap h;
	uint64_t size, at = 0;
	size_t n = 0;
	heap_init(&h, 1000, 2 * H5_GHEAP_MIN);
	for (; at < h.w.out.len; at += size, n++)
		assert_int_equal(h5_gheap_size(&h.m.file, at, &size, NULL), 0);
	assert_int_equal(at, h.w.out.len);
	assert_int_equal(n, collections(&h));
	assert_int_equal(h.m.reads, n);
	assert_int_equal(h5_gheap_size(&h.m.file, 8, &size, NULL), -EIO);
	assert_int_equal(h5_gheap_size(&h.m.file, h.w.out.len - 8, &size, NULL), -EIO);
	assert_int_equal(h5_gheap_size(&h.m.file, H5_UNDEF, &size, NULL), -EIO);
	assert_int_equal(h5_gheap_size(&h.m.file, 0, &size, NULL), 0);
	h.m.source.size = size - 1;
	assert_int_equal(h5_gheap_size(&h.m.file, 0, &size, NULL), -EIO);
	heap_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_collection_is_read_once),
		cmocka_unit_test(test_evicted_collections),
		cmocka_unit_test(test_large_collections),
		cmocka_unit_test(test_collections_that_are_much_larger_than_their_items),
		cmocka_unit_test(test_missing_pages),
		cmocka_unit_test(test_order_and_sizes),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_addresses_outside),
		cmocka_unit_test(test_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
