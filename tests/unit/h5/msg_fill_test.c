/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static void encode(struct emit *e, const void *f)
{
	h5_fill_encode(e, f);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_fill_decode(c, out, err);
}

static const struct message_codec codec = {
	.size = sizeof(struct h5_fill),
	.decode = decode,
	.encode = encode,
};

/* As HDF5 1.10.8 writes them by default, and with the version bound 1.8. */
static const struct vector {
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

static void compare(const char *name, const void *got, const void *expected)
{
	const struct h5_fill *f = got;
	const struct vector *v = expected;
	assert_int_equal(f->alloc_time, v->alloc);
	assert_int_equal(f->fill_time, v->fill);
	assert_true(f->defined);
	assert_int_equal(f->size, v->size);
	assert_true(!f->size == !f->value);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		assert_message(&codec, v->name, v->v2, v->v2, compare, v);
		assert_message(&codec, v->name, v->v3, v->v2, compare, v);
	}
}

static void compare_undefined(const char *name, const void *got, const void *expected)
{
	const struct h5_fill *f = got;
	assert_false(f->defined);
	assert_int_equal(f->size, 0);
}

static void test_undefined(void **state)
{
	const char *const same[] = {"02020200", "031a", "01020200ffffffff", "0102020000000000"};
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_message(&codec, same[i], same[i], same[0], compare_undefined, NULL);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 4", "040a", -EOPNOTSUPP},
	{"times cut off", "020202", -EIO},
	{"size cut off", "02020201000000", -EIO},
	{"value cut off", "0202020104000000030000", -EIO},
	{"value of 2 GiB", "02020201ffffff7f03000000", -EIO},
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
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

/* The old message has no times; libhdf5 assumes them. */
static void test_old_message(void **state)
{
	static const struct {
		const char *hex;
		bool defined;
		uint32_t size;
		int rc;
	} rows[] = {{"040000000700000000000000", true, 4, 0},
		    {"00000000", false, 0, 0},
		    {"ffffffff", false, 0, 0},
		    {"0400000007000000", true, 4, 0},
		    {"04000000070000", false, 0, -EIO},
		    {"040000", false, 0, -EIO}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct h5_fill f;
		assert_int_equal(h5_fill_old_decode(&c, &f, NULL), rows[i].rc);
		if (!rows[i].rc) {
			assert_int_equal(f.defined, rows[i].defined);
			assert_int_equal(f.size, rows[i].size);
			assert_int_equal(f.alloc_time, ALLOC_TIME_LATE);
			assert_int_equal(f.fill_time, FILL_TIME_IFSET);
		}
		if (f.size && !rows[i].rc)
			assert_int_equal(f.value[0], 7);
		free(bytes);
	}
}

/* A negative size means that there is no value. */
static void test_negative_size(void **state)
{
	const uint8_t body[] = {2, 2, 2, 1, 0xff, 0xff, 0xff, 0xff};
	struct cursor c = cursor_of(body, sizeof(body));
	struct h5_fill f;
	assert_int_equal(h5_fill_decode(&c, &f, NULL), 0);
	assert_false(f.defined);
	assert_int_equal(f.size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors), cmocka_unit_test(test_undefined),
		cmocka_unit_test(test_malformed),	cmocka_unit_test(test_old_message),
		cmocka_unit_test(test_negative_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
