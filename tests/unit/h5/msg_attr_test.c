/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "message_cases.h"

static void encode(struct emit *e, const void *a)
{
	h5_attr_encode(e, a);
}

static int decode(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_attr_decode(&plain, c, a, NULL, out, err);
}

/* If the datatype is shared, the message does not contain the size of the data. */
static size_t open_end(const void *decoded)
{
	const struct h5_attr *attr = decoded;
	return attr->type ? 0 : attr->data_len;
}

static const struct message_codec codec = {
	.size = sizeof(struct h5_attr),
	.decode = decode,
	.encode = encode,
	.open_end = open_end,
};

/* The same attributes as HDF5 1.10.8 writes them by default (versions 1 and 2, with version 1
 * dataspaces) and with the version bound 1.8 (version 3). */
static const struct vector {
	const char *name;
	const char *old, *v3;
	uint64_t committed;
	uint32_t size; /* of the datatype; 0: it is committed */
	uint64_t nelems, data_len;
} vectors[] = {
	{"plain",
	 "010006000c001800706c61696e000000100800000200000000001000000000000101010000000000030000000"
	 "0"
	 "0000000300000000000000000001000200",
	 "030006000c00140000706c61696e0010080000020000000000100002010101030000000000000003000000000"
	 "0"
	 "0000000001000200",
	 H5_UNDEF, 2, 3, 6},
	{"utf8\xc3\xb8",
	 "010007000c00080075746638c3b80000100800000400000000002000000000000100000000000000"
	 "05000000",
	 "030007000c0004000075746638c3b8001008000004000000000020000200000005000000", H5_UNDEF, 4, 1,
	 4},
	{"nul", "01000400080004006e756c000000000013010000050000000200000200000000",
	 "0300040008000400006e756c00130100000500000002000002", H5_UNDEF, 5, 0, 0},
	{"committed",
	 "02010a000a000800636f6d6d6974746564000202fd04000000000000010000000000000005000000",
	 "03010a000a00040000636f6d6d6974746564000202fd040000000000000200000005000000", 0x4fd, 0, 1,
	 4},
};

static void compare(const char *name, const void *got, const void *expected)
{
	const struct h5_attr *attr = got;
	const struct vector *v = expected;
	assert_string_equal(attr->name, name);
	assert_int_equal(attr->committed, v->committed);
	assert_int_equal(attr->type ? attr->type->size : 0, v->size);
	assert_int_equal(attr->space.nelems, v->nelems);
	assert_int_equal(attr->data_len, v->data_len);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		assert_message(&codec, v->name, v->v3, v->v3, compare, v);
		assert_message(&codec, v->name, v->old, v->v3, compare, v);
	}
}

static void compare_character_set(const char *name, const void *got, const void *expected)
{
	assert_true(((const struct h5_attr *)got)->utf8);
}

static void test_character_set(void **state)
{
	const char *hex = "030004000c0004000163c3b80010080000040000000000200002000002";
	assert_message(&codec, "UTF-8", hex, hex, compare_character_set, NULL);
}

static void test_count_without_data(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	struct h5_attr attr = {
		.name = "big",
		.type = dtype_integer(a, 1, false, false, NULL),
		.committed = H5_UNDEF,
		.data_len = UINT64_C(1) << 40,
	};
	dspace_scalar(&attr.space);
	struct emit e = emit_count();
	h5_attr_encode(&e, &attr);
	assert_false(e.bad);
	assert_int_equal(e.pos, 9 + 4 + 12 + 4 + (UINT64_C(1) << 40));
	arena_free(a);
}

static void test_name_over_64k(void **state)
{
	struct arena *a = arena_new(MESSAGE_ARENA_LIMIT);
	char *name = arena_alloc(a, 65536);
	memset(name, 'n', 65535);
	struct h5_attr attr = {.name = name, .committed = 8};
	dspace_scalar(&attr.space);
	struct emit e = emit_count();
	h5_attr_encode(&e, &attr);
	assert_true(e.bad);
	arena_free(a);
}

static const struct malformed_message malformed[] = {
	{"nothing", "", -EIO},
	{"version 0", "000007000c000400", -EOPNOTSUPP},
	{"version 4", "040007000c000400", -EOPNOTSUPP},
	{"reserved flag",
	 "030407000c0004000075746638c3b8001008000004000000000020000200000005000000", -EIO},
	{"shared dataspace",
	 "030207000c0004000075746638c3b8001008000004000000000020000200000005000000", -EOPNOTSUPP},
	{"character set 2",
	 "030007000c0004000275746638c3b8001008000004000000000020000200000005000000", -EIO},
	{"empty name",
	 "030001000c000400000010080000040000000000200002000000"
	 "05000000",
	 -EIO},
	{"no name",
	 "030000000c0004000010080000040000000000200002000000"
	 "05000000",
	 -EIO},
	{"name without NUL",
	 "030006000c0004000075746638c3b81008000004000000000020000200000005000000", -EIO},
	{"NUL in the name",
	 "030007000c0004000075740038c3b8001008000004000000000020000200000005000000", -EIO},
	{"name longer than the message",
	 "0300ff7f0c0004000075746638c3b8001008000004000000000020000200000005000000", -EIO},
	{"datatype longer than its length",
	 "030007000b0004000075746638c3b80010080000040000000000200200000005000000", -EIO},
	{"dataspace longer than its length",
	 "030007000c0003000075746638c3b80010080000040000000000200002000005000000", -EIO},
	{"data cut off", "030007000c0004000075746638c3b80010080000040000000000200002000000050000",
	 -EIO},
	{"data of 2^63 elements of 4 bytes",
	 "030007000c000c000075746638c3b80010080000040000000000200002010001000000000000008005000000",
	 -EIO},
	{"shared message of version 4",
	 "03010a000a00040000636f6d6d6974746564000402fd040000000000000200000005000000", -EOPNOTSUPP},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_vectors),	   cmocka_unit_test(test_character_set),
		cmocka_unit_test(test_count_without_data), cmocka_unit_test(test_name_over_64k),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
