/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static void encode(struct emit *e, const void *p)
{
	h5_pipeline_encode(e, p);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_pipeline_decode(c, a, out, err);
}

static bool is_empty(const void *out)
{
	return ((const struct pipeline *)out)->n == 0;
}

static const struct message_codec codec = {
	.size = sizeof(struct pipeline),
	.decode = decode,
	.encode = encode,
	.is_empty = is_empty,
};

/* As HDF5 1.10.8 writes them by default, and with the version bound latest. */
static const struct vector {
	const char *name;
	const char *v1, *v2;
	struct pipeline p;
} vectors[] = {
	{"deflate",
	 "010100000000000001000800010001006465666c617465000400000000000000",
	 "020101000100010004000000",
	 {.n = 1, .f = {{FILTER_DEFLATE, "deflate", 1, (const uint32_t[]){4}}}}},
	{"shuffle, deflate, fletcher32",
	 "0103000000000000"
	 "020008000100010073687566666c65000200000000000000"
	 "01000800010001006465666c617465000900000000000000"
	 "0300100000000000666c6574636865723332000000000000",
	 "02030200010001000200000001000100010009000000030000000000",
	 {.n = 3,
	  .f = {{FILTER_SHUFFLE, "shuffle", 1, (const uint32_t[]){2}},
		{FILTER_DEFLATE, "deflate", 1, (const uint32_t[]){9}},
		{FILTER_FLETCHER32, "fletcher32", 0, NULL}}}},
	{"lzf",
	 "0101000000000000007d0800010003006c7a6600000000000400000005010000e803000000000000",
	 "0201007d0400010003006c7a66000400000005010000e8030000",
	 {.n = 1, .f = {{FILTER_LZF, "lzf", 3, (const uint32_t[]){4, 0x105, 1000}}}}},
};

static void compare(const char *name, const void *got, const void *expected)
{
	const struct pipeline *p = got, *e = expected;
	assert_int_equal(p->n, e->n);
	for (uint32_t k = 0; k < p->n; k++) {
		const struct filter *f = &p->f[k], *ef = &e->f[k];
		assert_int_equal(f->id, ef->id);
		assert_string_equal(f->name, ef->name);
		assert_int_equal(f->nparams, ef->nparams);
		for (uint32_t i = 0; i < f->nparams; i++)
			assert_int_equal(f->params[i], ef->params[i]);
	}
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		assert_message(&codec, v->name, v->v1, v->v1, compare, &v->p);
		assert_message(&codec, v->name, v->v2, v->v1, compare, &v->p);
	}
}

/* The encoder ignores the name that a domain gives to a filter of libhdf5. */
static void test_builtin_names(void **state)
{
	const struct pipeline p = {
		.n = 1,
		.f = {{FILTER_DEFLATE, "H5Z_FILTER_DEFLATE", 1, (const uint32_t[]){4}}},
	};
	assert_encodes("name", encode, &p, vectors[0].v1);
}

static void compare_nameless(const char *name, const void *got, const void *expected)
{
	const struct pipeline *p = got;
	assert_int_equal(p->f[0].id, FILTER_LZ4);
	assert_null(p->f[0].name);
}

static void test_nameless_filter(void **state)
{
	const char *hex = "0101000000000000047d000001000000";
	assert_message(&codec, "nameless", hex, hex, compare_nameless, NULL);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "0001000000000000", -EOPNOTSUPP},
	{"version 3", "0301000000000000", -EOPNOTSUPP},
	{"no filters", "0100000000000000", -EIO},
	{"33 filters", "0221", -EIO},
	{"no filter after the count", "0101000000000000", -EIO},
	{"second filter cut off", "0202010001000100040000000200010001000200", -EIO},
	{"name longer than the message",
	 "010100000000000001000002010001006465666c617465000400000000000000", -EIO},
	{"name length of 3 in version 1",
	 "0101000000000000007d0300010001006c7a66000400000000000000", -EIO},
	{"65,535 client values in 8 bytes", "020101000100ffff0400000004000000", -EIO},
	{"client values cut off", "020101000100020004000000", -EIO},
	{"padding value cut off", "010100000000000001000800010001006465666c6174650004000000", -EIO},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
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
