/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "hex.h"

static void encode(struct emit *e, const void *f)
{
	h5_fill_encode(e, f);
}

/* As HDF5 1.10.8 writes them by default, and with the version bound 1.8. */
static const struct {
	const char *name;
	const char *v2, *v3;
	enum alloc_time alloc;
	enum fill_time fill;
	uint32_t size;
} vectors[] = {
	{"compact", "0201020100000000", "0309", ALLOC_TIME_EARLY, FILL_TIME_IFSET, 0},
	{"contiguous", "0202020100000000", "030a", ALLOC_TIME_LATE, FILL_TIME_IFSET, 0},
	{"chunked", "0203000100000000", "0303", ALLOC_TIME_INCR, FILL_TIME_ALLOC, 0},
	{"never written", "0201010100000000", "0305", ALLOC_TIME_EARLY, FILL_TIME_NEVER, 0},
	{"int32", "020100010400000003000000", "03210400000003000000", ALLOC_TIME_EARLY,
	 FILL_TIME_ALLOC, 4},
	{"double", "02030001080000000000000000001e40", "0323080000000000000000001e40",
	 ALLOC_TIME_INCR, FILL_TIME_ALLOC, 8},
};

static void check(size_t i, const char *hex)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	struct h5_fill f;
	struct err err = ERR_INIT;
	if (h5_fill_decode(&c, &f, &err))
		fail_msg("%s: %s", vectors[i].name, err.msg);
	assert_int_equal(f.alloc_time, vectors[i].alloc);
	assert_int_equal(f.fill_time, vectors[i].fill);
	assert_true(f.defined);
	assert_int_equal(f.size, vectors[i].size);
	assert_true(!f.size == !f.value);
	assert_encodes(vectors[i].name, encode, &f, vectors[i].v2);
	free(bytes);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		check(i, vectors[i].v2);
		check(i, vectors[i].v3);
	}
}

static void test_undefined(void **state)
{
	const char *const same[] = {"02020200", "031a", "01020200ffffffff", "0102020000000000"};
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(same[i], &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_fill f;
		assert_int_equal(h5_fill_decode(&c, &f, NULL), 0);
		assert_false(f.defined);
		assert_int_equal(f.size, 0);
		assert_encodes(same[i], encode, &f, same[0]);
		free(bytes);
	}
}

static const struct {
	const char *name;
	const char *hex;
	int rc;
} malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 4", "040a", -EOPNOTSUPP},
	{"times cut off", "020202", -EIO},
	{"size cut off", "02020201000000", -EIO},
	{"value cut off", "0202020104000000030000", -EIO},
	{"value of 4 GiB", "02020201ffffffff03000000", -EIO},
	{"version 1 without a size", "01020200", -EIO},
	{"allocation time 0", "0200020100000000", -EIO},
	{"allocation time 4", "0204020100000000", -EIO},
	{"write time 3", "0202030100000000", -EIO},
	{"defined flag 2", "0202020200000000", -EIO},
	{"flags cut off", "03", -EIO},
	{"reserved flag", "034a", -EIO},
	{"undefined with a value", "033a0400000003000000", -EIO},
	{"packed value cut off", "03220400000003", -EIO},
	{"packed write time 3", "030e", -EIO},
};

static void test_malformed(void **state)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(malformed[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_fill f;
		struct err err = ERR_INIT;
		int rc = h5_fill_decode(&c, &f, &err);
		if (rc != malformed[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", malformed[i].name, rc, err.msg);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_undefined),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
