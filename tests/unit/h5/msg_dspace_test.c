/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "hex.h"

static void encode(struct emit *e, const void *s)
{
	h5_dspace_encode(e, s);
}

static int decode(const char *hex, struct dspace *s, struct err *err)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	int rc = h5_dspace_decode(&c, s, err);
	free(bytes);
	return rc;
}

/* As HDF5 1.10.8 writes them with the version bound 1.8, and by default. */
static const struct {
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

static void check(size_t i, const char *hex)
{
	struct dspace s;
	struct err err = ERR_INIT;
	if (decode(hex, &s, &err))
		fail_msg("%s: %s", vectors[i].name, err.msg);
	assert_int_equal(s.cls, vectors[i].cls);
	assert_int_equal(s.rank, vectors[i].rank);
	if (s.rank) {
		assert_int_equal(s.dims[0], vectors[i].dim0);
		assert_int_equal(s.max[0], vectors[i].max0);
	}
	assert_encodes(vectors[i].name, encode, &s, vectors[i].v2);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		check(i, vectors[i].v2);
		if (vectors[i].v1)
			check(i, vectors[i].v1);
	}
}

static void test_no_maximum(void **state)
{
	struct dspace s;
	assert_int_equal(decode("020100010300000000000000", &s, NULL), 0);
	assert_int_equal(s.max[0], 3);
	assert_int_equal(s.nelems, 3);
}

static const struct {
	const char *name;
	const char *hex;
	int rc;
} malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 3", "03000000", -EOPNOTSUPP},
	{"type 3", "02000003", -EIO},
	{"scalar with a dimension", "020100000300000000000000", -EIO},
	{"null with a dimension", "020100020300000000000000", -EIO},
	{"simple without a dimension", "02000001", -EIO},
	{"rank 33", "02210001", -EIO},
	{"permutation", "010103000000000003000000000000000300000000000000", -EOPNOTSUPP},
	{"dimensions cut off", "0201000103000000000000", -EIO},
	{"maximum cut off", "02010101030000000000000003000000000000", -EIO},
	{"maximum below dimension", "0201010103000000000000000200000000000000", -EIO},
	{"unlimited dimension", "02010001ffffffffffffffff", -EOPNOTSUPP},
	{"2^80 elements", "0202000100000000000100000000000000000100", -EOPNOTSUPP},
};

static void test_malformed(void **state)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct dspace s;
		struct err err = ERR_INIT;
		int rc = decode(malformed[i].hex, &s, &err);
		if (rc != malformed[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", malformed[i].name, rc, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_no_maximum),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
