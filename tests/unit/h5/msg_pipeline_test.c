/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "hex.h"

enum { ARENA_LIMIT = 1 << 20 };

static void encode(struct emit *e, const void *p)
{
	h5_pipeline_encode(e, p);
}

/* As HDF5 1.10.8 writes them by default, and with the version bound latest. */
static const struct {
	const char *name;
	const char *v1, *v2;
	struct pipeline p;
} vectors[] = {
	{"deflate",
	 "010100000000000001000800010001006465666c617465000400000000000000",
	 "020101000100010004000000",
	 {.n = 1, .f = {{FILTER_DEFLATE, "deflate", 1, {4}}}}},
	{"shuffle, deflate, fletcher32",
	 "0103000000000000"
	 "020008000100010073687566666c65000200000000000000"
	 "01000800010001006465666c617465000900000000000000"
	 "0300100000000000666c6574636865723332000000000000",
	 "02030200010001000200000001000100010009000000030000000000",
	 {.n = 3,
	  .f = {{FILTER_SHUFFLE, "shuffle", 1, {2}},
		{FILTER_DEFLATE, "deflate", 1, {9}},
		{FILTER_FLETCHER32, "fletcher32", 0, {0}}}}},
	{"lzf",
	 "0101000000000000007d0800010003006c7a6600000000000400000005010000e803000000000000",
	 "0201007d0400010003006c7a66000400000005010000e8030000",
	 {.n = 1, .f = {{FILTER_LZF, "lzf", 3, {4, 0x105, 1000}}}}},
};

static void check(size_t i, const char *hex, struct arena *a)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	struct pipeline p;
	struct err err = ERR_INIT;
	if (h5_pipeline_decode(&c, a, &p, &err))
		fail_msg("%s: %s", vectors[i].name, err.msg);
	assert_int_equal(p.n, vectors[i].p.n);
	for (uint32_t k = 0; k < p.n; k++) {
		const struct filter *got = &p.f[k], *expected = &vectors[i].p.f[k];
		assert_int_equal(got->id, expected->id);
		assert_string_equal(got->name, expected->name);
		assert_int_equal(got->nparams, expected->nparams);
		assert_memory_equal(got->params, expected->params, sizeof(got->params));
	}
	assert_encodes(vectors[i].name, encode, &p, vectors[i].v1);
	free(bytes);
}

static void test_library_vectors(void **state)
{
	struct arena *a = arena_new(ARENA_LIMIT);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		check(i, vectors[i].v1, a);
		check(i, vectors[i].v2, a);
	}
	arena_free(a);
}

/* What another schema calls the library's filters does not reach the file. */
static void test_builtin_names(void **state)
{
	const struct pipeline p = {
		.n = 1,
		.f = {{FILTER_DEFLATE, "H5Z_FILTER_DEFLATE", 1, {4}}},
	};
	assert_encodes("name", encode, &p, vectors[0].v1);
}

static void test_nameless_filter(void **state)
{
	struct arena *a = arena_new(ARENA_LIMIT);
	const char *hex = "0101000000000000047d000001000000";
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	struct pipeline p;
	assert_int_equal(h5_pipeline_decode(&c, a, &p, NULL), 0);
	assert_int_equal(p.f[0].id, FILTER_LZ4);
	assert_null(p.f[0].name);
	assert_encodes("nameless", encode, &p, hex);
	free(bytes);
	arena_free(a);
}

static const struct {
	const char *name;
	const char *hex;
	int rc;
} malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 3", "0301000000000000", -EOPNOTSUPP},
	{"no filters", "0100000000000000", -EIO},
	{"33 filters", "0221", -EIO},
	{"no filter behind the count", "0101000000000000", -EIO},
	{"second filter cut off", "0202010001000100040000000200010001000200", -EIO},
	{"name longer than the message",
	 "010100000000000001000002010001006465666c617465000400000000000000", -EIO},
	{"name length of 3 in version 1",
	 "0101000000000000007d0300010001006c7a66000400000000000000", -EIO},
	{"33 client values", "02010100010021000400000004000000", -EOPNOTSUPP},
	{"client values cut off", "020101000100020004000000", -EIO},
	{"padding value cut off", "010100000000000001000800010001006465666c6174650004000000", -EIO},
};

static void test_malformed(void **state)
{
	struct arena *a = arena_new(ARENA_LIMIT);
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(malformed[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct pipeline p;
		struct err err = ERR_INIT;
		int rc = h5_pipeline_decode(&c, a, &p, &err);
		if (rc != malformed[i].rc || err.code != rc || p.n)
			fail_msg("%s: %d (%s)", malformed[i].name, rc, err.msg);
		free(bytes);
	}
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),
		cmocka_unit_test(test_builtin_names),
		cmocka_unit_test(test_nameless_filter),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
