/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include <h5/gheap.h>
#include "gheap_item.h"
#include "mem_src.h"

#include "sampling.h"

enum { BASE = 4096, MAX_OBJECT = 1 << 22, HEADER = 16 };

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

struct item {
	uint64_t addr;
	uint32_t index;
};

/* Writes n objects; object i has sizes[i] bytes of value i. Checks the collections and the bound,
 * and reads some objects. */
static size_t check_region(const size_t *sizes, size_t n, size_t target)
{
	struct h5_gheap_writer w;
	struct item *items = calloc(n, sizeof(*items));
	uint8_t *object = malloc(MAX_OBJECT);
	uint64_t total = 0;
	assert_true(items && object);
	h5_gheap_init(&w, BASE, target);
	for (size_t i = 0; i < n; i++) {
		memset(object, (int)(i % 251), sizes[i]);
		total += sizes[i];
		assert_int_equal(
			h5_gheap_add(&w, object, sizes[i], &items[i].addr, &items[i].index, NULL),
			0);
	}
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);

	/* There is nothing between collections, and objects fill each of them. */
	size_t at = 0, region = w.out.len;
	while (at < region) {
		struct cursor c = cursor_of(w.out.data + at, region - at);
		assert_memory_equal(cur_bytes(&c, 8), "GCOL\1\0\0\0", 8);
		uint64_t size = cur_u64(&c);
		assert_true(size >= H5_GHEAP_MIN && size % 8 == 0 && size <= region - at);
		struct cursor objects = cur_sub(&c, (size_t)size - HEADER);
		for (uint32_t index = 1; cur_left(&objects); index++) {
			assert_int_equal(cur_u16(&objects), index);
			assert_int_equal(cur_u16(&objects), 1);
			assert_int_equal(cur_u32(&objects), 0);
			uint64_t len = cur_u64(&objects);
			cur_skip(&objects, (size_t)align_u64(len, 8));
			assert_true(cur_ok(&objects));
		}
		at += (size_t)size;
	}
	uint64_t bound = h5_gheap_bound(n, total, target);
	if (region > bound)
		fail_msg("%zu objects, %llu bytes: %zu bytes, bound %llu", n,
			 (unsigned long long)total, region, (unsigned long long)bound);

	uint8_t *image = calloc(1, BASE + region);
	assert_non_null(image);
	memcpy(image + BASE, w.out.data, region);
	struct mem_src m;
	mem_src_init(&m, image, BASE + region);
	for (size_t i = 0; i < n; i += 1 + n / 97) {
		auto_bytes struct bytes out = {0};
		struct err err = ERR_INIT;
		if (gheap_item(&m.file, items[i].addr, items[i].index, sizes[i], &out, &err))
			fail_msg("object %zu: %s", i, err.msg);
		assert_int_equal(out.len, sizes[i]);
		assert_true(!out.len ||
			    (out.data[0] == i % 251 && out.data[out.len - 1] == i % 251));
	}
	free(image);
	free(object);
	free(items);
	h5_gheap_release(&w);
	return region;
}

static void test_one_object(void **state)
{
	static const struct {
		size_t n, region;
	} rows[] = {
		{1, 4096},    {4040, 4096}, {4048, 4096}, /* a filler without data */
		{4049, 4104},				  /* 8 bytes are too few for one */
		{4056, 4104}, {4057, 4096}, {4064, 4096}, {4065, 4104}, {100000, 100032},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(check_region(&rows[i].n, 1, H5_GHEAP_TARGET_DATA), rows[i].region);
}

static void test_any_sizes(void **state)
{
	enum { N = 3000 };
	static const size_t targets[] = {1, H5_GHEAP_MIN, H5_GHEAP_TARGET_ATTRS,
					 H5_GHEAP_TARGET_DATA, 1 << 24};
	size_t *sizes = calloc(N, sizeof(sizes[0]));
	uint32_t seed = 7;
	assert_non_null(sizes);
	for (unsigned int round = 0; round < 300 / sampling_step(10); round++) {
		size_t n = 1 + next_random(&seed) % (round % 2 ? 40 : N);
		unsigned int shape = next_random(&seed) % 6, scale = next_random(&seed) % 12;
		for (size_t i = 0; i < n; i++) {
			size_t size = 1 + next_random(&seed) % (1U << scale);
			if (shape == 1)
				size = size / 8 * 8 + 1;
			else if (shape == 2 && next_random(&seed) % 50 == 0)
				size += 60000;
			else if (shape == 3 && i % 2)
				size = H5_GHEAP_MIN - 40;
			else if (shape == 4 && i % 7)
				size = 0;
			sizes[i] = size;
		}
		check_region(sizes, n, targets[next_random(&seed) % 5]);
	}
	free(sizes);
}

/* The worst case: each object has one byte more than a multiple of 8. */
static void test_bound_is_tight(void **state)
{
	enum { N = 20000 };
	static const size_t worst[] = {1, 9, 25, 201, 2001};
	size_t *sizes = calloc(N, sizeof(sizes[0]));
	assert_non_null(sizes);
	for (size_t k = 0; k < sizeof(worst) / sizeof(worst[0]); k++) {
		for (size_t i = 0; i < N; i++)
			sizes[i] = worst[k];
		size_t region = check_region(sizes, N, H5_GHEAP_TARGET_DATA);
		uint64_t bound = h5_gheap_bound(N, N * worst[k], H5_GHEAP_TARGET_DATA);
		assert_true(bound <= region + region / 50);
	}
	free(sizes);
	assert_int_equal(h5_gheap_bound(0, 0, H5_GHEAP_TARGET_DATA), 0);
	assert_int_equal(h5_gheap_bound(1, 1, H5_GHEAP_TARGET_DATA), H5_GHEAP_MIN);
	assert_int_equal(h5_gheap_bound(1, 1000000, H5_GHEAP_TARGET_DATA), 1000032);
	assert_true(h5_gheap_bound(UINT64_MAX, UINT64_MAX, 1) == UINT64_MAX);
	assert_true(h5_gheap_bound(1, UINT64_MAX, 1) == UINT64_MAX);
	assert_true(h5_gheap_bound(UINT64_MAX / 24, UINT64_MAX, 1) == UINT64_MAX);
}

/* Fewer or smaller objects never need more than the bound. */
static void test_bound_rises(void **state)
{
	uint32_t seed = 3;
	for (unsigned int i = 0; i < 200000 / sampling_step(10); i++) {
		unsigned int scale = next_random(&seed) % 20;
		uint64_t n = 1 + next_random(&seed) % (1U << scale);
		uint64_t bytes = next_random(&seed) % (1U << scale) * (1 + i % 100);
		uint64_t bound = h5_gheap_bound(n, bytes, H5_GHEAP_TARGET_DATA);
		assert_true(bound <= h5_gheap_bound(n, bytes + 1, H5_GHEAP_TARGET_DATA));
		assert_true(bound <= h5_gheap_bound(n + 1, bytes + 1, H5_GHEAP_TARGET_DATA));
		assert_true(bound <= h5_gheap_bound(n + 1, bytes, H5_GHEAP_TARGET_DATA));
	}
}

static void test_indexes_run_out(void **state)
{
	enum { N = 140000 };
	size_t *sizes = calloc(N, sizeof(sizes[0]));
	assert_non_null(sizes);
	for (size_t i = 0; i < N; i++)
		sizes[i] = 1;
	/* Two full collections and a third one. */
	assert_int_equal(check_region(sizes, N, 1 << 24), N * 24 + 3 * HEADER);
	free(sizes);
}

/* Empty strings are objects with a header. A million of them take little more than the headers. */
static void test_empty_objects(void **state)
{
	enum { N = 1000000, ALL = N * HEADER };
	size_t *sizes = calloc(N, sizeof(sizes[0]));
	assert_non_null(sizes);
	assert_int_equal(check_region(sizes, 1, H5_GHEAP_TARGET_DATA), H5_GHEAP_MIN);
	assert_in_range(check_region(sizes, N, H5_GHEAP_TARGET_DATA), ALL, ALL + ALL / 1000);
	assert_in_range(h5_gheap_bound(N, 0, H5_GHEAP_TARGET_DATA), ALL, ALL + ALL / 200);
	/* Indexes have 16 bits. */
	assert_int_equal(check_region(sizes, 140000, 1 << 24), 140000 * HEADER + 3 * HEADER);
	free(sizes);
}

static void test_small_collections_stay_open(void **state)
{
	/* Small and large objects alternate: only the last collection has a filler. */
	size_t sizes[40], sum = 0;
	for (size_t i = 0; i < 40; i++) {
		sizes[i] = i % 2 ? 80000 : 8;
		sum += 16 + sizes[i];
	}
	size_t region = check_region(sizes, 40, H5_GHEAP_TARGET_DATA);
	assert_true(region >= sum + 20 * HEADER && region <= sum + 21 * HEADER);
}

static void test_malformed(void **state)
{
	enum { SIZE = 8, INDEX = HEADER, LEN = HEADER + 8 };
	static const struct {
		const char *defect;
		size_t at, n;
		uint64_t value;
		uint32_t index;
		int rc;
	} rows[] = {
		{"none", 0, 1, 'G', 2, 0},
		{"signature", 0, 1, 'X', 2, -EIO},
		{"version", 4, 1, 2, 2, -EOPNOTSUPP},
		{"size 0", SIZE, 8, 0, 2, -EIO},
		{"size past the end of file", SIZE, 8, 1 << 20, 2, -EIO},
		{"size of 2^64 - 1", SIZE, 8, UINT64_MAX, 2, -EIO},
		{"object past the end", LEN, 8, 1 << 20, 2, -EIO},
		{"object of 2^64 - 1 bytes", LEN, 8, UINT64_MAX, 2, -EIO},
		{"object larger than max", LEN, 8, 24, 1, -EIO},
		{"free space of no bytes", INDEX, 2, 0, 2, -EIO},
		{"the index of free space", 0, 1, 'G', 0, -EIO},
		{"no such object", 0, 1, 'G', 4, -EIO},
		{"index over 16 bits", 0, 1, 'G', 0x10002, -EIO},
	};
	struct h5_gheap_writer w;
	struct item p;
	h5_gheap_init(&w, 0, H5_GHEAP_TARGET_ATTRS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(h5_gheap_add(&w, "12345678", 8, &p.addr, &p.index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	uint8_t *bad = malloc(w.out.len);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mem_src m;
		struct err err = ERR_INIT;
		auto_bytes struct bytes out = {0};
		memcpy(bad, w.out.data, w.out.len);
		struct emit e = emit_to(bad + rows[i].at, 8);
		emit_uint(&e, rows[i].value, (unsigned int)rows[i].n);
		mem_src_init(&m, bad, w.out.len);
		int rc = gheap_item(&m.file, 0, rows[i].index, 16, &out, &err);
		if (rc != rows[i].rc || (rc && (out.len || !err.msg[0])))
			fail_msg("%s: %d %s", rows[i].defect, rc, err.msg);
	}
	struct mem_src m;
	auto_bytes struct bytes out = {0};
	mem_src_init(&m, bad, w.out.len);
	assert_int_equal(gheap_item(&m.file, w.out.len - 8, 1, 16, &out, NULL), -EIO);
	assert_int_equal(gheap_item(&m.file, H5_UNDEF, 1, 16, &out, NULL), -EIO);
	free(bad);
	h5_gheap_release(&w);
}

/* The objects are present, but not the size of their collection. */
static void test_a_missing_header(void **state)
{
	struct h5_gheap_writer w;
	struct item p;
	struct mem_src m;
	auto_bytes struct bytes out = {0};
	h5_gheap_init(&w, 0, H5_GHEAP_TARGET_ATTRS);
	assert_int_equal(h5_gheap_add(&w, "12345678", 8, &p.addr, &p.index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	mem_src_init(&m, w.out.data, w.out.len);
	mem_src_hide(&m, HEADER);
	memset(m.present + 1, true, w.out.len / HEADER);
	assert_int_equal(gheap_item(&m.file, 0, p.index, 16, &out, NULL), -EAGAIN);
	mem_src_release(&m);
	h5_gheap_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_object),
		cmocka_unit_test(test_any_sizes),
		cmocka_unit_test(test_bound_is_tight),
		cmocka_unit_test(test_bound_rises),
		cmocka_unit_test(test_indexes_run_out),
		cmocka_unit_test(test_empty_objects),
		cmocka_unit_test(test_small_collections_stay_open),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_a_missing_header),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
