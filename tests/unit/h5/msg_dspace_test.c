/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"
#include "shape_arena.h"

static void encode(struct emit *e, const void *s)
{
	h5_dspace_encode(e, s);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_dspace_decode(&plain, c, a, out, err);
}

static const struct message_codec codec = {
	.size = sizeof(struct dspace),
	.decode = decode,
	.encode = encode,
};

/* As HDF5 1.10.8 writes them with the version bound 1.8, and by default. */
static const struct vector {
	const char *name;
	const char *v2, *v1;
	enum dspace_class cls;
	uint32_t rank;
	uint64_t dim0, max0;
} vectors[] = {
	{"scalar", "02000000", "0100000000000000", DSPACE_SCALAR, 0, 0, 0},
	{"null", "02000002", NULL, DSPACE_NULL, 0, 0, 0},
	{"one dimension", "0201010103000000000000000300000000000000",
	 "010101000000000003000000000000000300000000000000", DSPACE_SIMPLE, 1, 3, 3},
	{"unlimited", "0202010104000000000000000500000000000000ffffffffffffffff0a00000000000000",
	 "010201000000000004000000000000000500000000000000ffffffffffffffff0a00000000000000",
	 DSPACE_SIMPLE, 2, 4, DSPACE_UNLIMITED},
	{"empty", "0202010100000000000000000300000000000000ffffffffffffffff0300000000000000",
	 "010201000000000000000000000000000300000000000000ffffffffffffffff0300000000000000",
	 DSPACE_SIMPLE, 2, 0, DSPACE_UNLIMITED},
};

static void compare(const char *name, const void *got, const void *expected)
{
	const struct dspace *s = got;
	const struct vector *v = expected;
	assert_int_equal(s->cls, v->cls);
	assert_int_equal(s->rank, v->rank);
	if (s->rank) {
		assert_int_equal(s->dims[0], v->dim0);
		assert_int_equal(s->max[0], v->max0);
	}
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		assert_message(&codec, v->name, v->v2, v->v2, compare, v);
		if (v->v1)
			assert_message(&codec, v->name, v->v1, v->v2, compare, v);
	}
}

static void compare_no_maximum(const char *name, const void *got, const void *expected)
{
	const struct dspace *s = got;
	assert_int_equal(s->max[0], 3);
	assert_int_equal(s->nelems, 3);
}

static void test_no_maximum(void **state)
{
	assert_message(&codec, "no maximum", "020100010300000000000000",
		       "0201010103000000000000000300000000000000", compare_no_maximum, NULL);
}

/* Permutations have never been used, and rank 0 is one element. */
static void test_as_libhdf5_reads(void **state)
{
	static const struct {
		const char *hex;
		enum dspace_class cls;
	} rows[] = {
		{"010103000000000003000000000000000300000000000000", DSPACE_SIMPLE},
		{"02000001", DSPACE_SCALAR},
		{"0100000000000000", DSPACE_SCALAR},
		{"02000002", DSPACE_NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct dspace s;
		assert_int_equal(decode_message(&codec, rows[i].hex, bytes, n, shape_arena(), &s),
				 0);
		assert_int_equal(s.cls, rows[i].cls);
		free(bytes);
	}
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 3", "03000000", -EOPNOTSUPP},
	{"type 3", "02000003", -EIO},
	{"scalar with a dimension", "020100000300000000000000", -EIO},
	{"null with a dimension", "020100020300000000000000", -EIO},
	{"rank 33", "02210001", -EIO},
	{"dimensions cut off", "0201000103000000000000", -EIO},
	{"maximum cut off", "02010101030000000000000003000000000000", -EIO},
	{"maximum below dimension", "0201010103000000000000000200000000000000", -EIO},
	{"unlimited dimension", "02010001ffffffffffffffff", -EOPNOTSUPP},
	{"2^80 elements", "0202000100000000000100000000000000000100", -EOPNOTSUPP},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_no_maximum),
		cmocka_unit_test(test_as_libhdf5_reads),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
