/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/message.h>

#include "dtype_vectors.h"
#include "message_cases.h"

enum { ARENA_LIMIT = 64 << 20, NVECTORS = sizeof(dtype_vectors) / sizeof(dtype_vectors[0]) };

static void encode(struct emit *e, const void *t)
{
	h5_dtype_encode(e, t);
}

static int decode_out(struct cursor *c, struct arena *a, void *out, struct err *err)
{
	return h5_dtype_decode(&plain, c, a, out, err);
}

static void encode_out(struct emit *e, const void *out)
{
	h5_dtype_encode(e, *(const struct dtype *const *)out);
}

static bool is_null(const void *out)
{
	return !*(const struct dtype *const *)out;
}

static const struct message_codec codec = {
	.size = sizeof(struct dtype *),
	.decode = decode_out,
	.encode = encode_out,
	.is_empty = is_null,
};

static int decode(const char *hex, struct arena *a, const struct dtype **t, struct err *err)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	struct cursor c = cursor_of(bytes, n);
	int rc = h5_dtype_decode(&plain, &c, a, t, err);
	free(bytes);
	return rc;
}

static const struct dtype *decoded(const char *name, const char *hex, struct arena *a)
{
	struct err err = ERR_INIT;
	const struct dtype *t = NULL;
	if (decode(hex, a, &t, &err))
		fail_msg("%s: %s", name, err.msg);
	return t;
}

static int setup(void **state)
{
	*state = arena_new(ARENA_LIMIT);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

struct meaning {
	const struct dtype *t;
	size_t described;
};

static void compare(const char *name, const void *got, const void *expected)
{
	const struct dtype *t = *(const struct dtype *const *)got;
	const struct meaning *meaning = expected;
	if (!dtype_equal(t, meaning->t))
		fail_msg("%s: versions decode to different types", name);
	if (t->described != meaning->described)
		fail_msg("%s: described in %u bytes, the library needs %zu", name, t->described,
			 meaning->described);
}

static void test_library_vectors(void **state)
{
	for (size_t i = 0; i < NVECTORS; i++) {
		const struct dtype_vector *v = &dtype_vectors[i];
		/* version 3 is the shortest */
		const struct meaning meaning = {
			.t = decoded(v->name, v->hex, *state),
			.described = strlen(v->v3 ? v->v3 : v->hex) / 2,
		};
		assert_message(&codec, v->name, v->hex, v->hex, compare, &meaning);
		if (v->v3)
			assert_message(&codec, v->name, v->v3, v->hex, compare, &meaning);
	}
}

/* A compound of n arrays of integers with short names. */
static const struct dtype *wide(uint32_t n, struct arena *a)
{
	const uint32_t dims[] = {2};
	const struct dtype *i32 = dtype_integer(a, 4, true, false, NULL);
	const struct dtype *pair = dtype_array(a, i32, 1, dims, NULL);
	struct dtype_member *members = arena_array(a, n, sizeof(*members));
	for (uint32_t i = 0; i < n; i++) {
		char *name = arena_strndup(a, "m0000", 5);
		for (uint32_t k = 4, rest = i; rest; k--, rest /= 10)
			name[k] = (char)('0' + rest % 10);
		members[i] = (struct dtype_member){.name = name, .type = i % 2 ? i32 : pair};
	}
	return dtype_compound(a, n, members, 0, NULL);
}

static void long_types_take_the_short_version(void **state)
{
	static const struct {
		uint32_t members;
		unsigned int version;
	} cases[] = {{2, 2}, {1000, 2}, {1900, 2}, {2000, 3}, {2400, 3}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct dtype *t = wide(cases[i].members, *state), *again = NULL;
		struct emit count = emit_count();
		h5_dtype_encode(&count, t);
		uint8_t *bytes = malloc(count.pos);
		struct emit e = emit_to(bytes, count.pos);
		struct cursor c = cursor_of(bytes, count.pos);
		h5_dtype_encode(&e, t);
		assert_false(e.bad);
		assert_true(count.pos <= DTYPE_MAX_DESCRIBED);
		assert_int_equal(bytes[0] >> 4, cases[i].version);
		if (cases[i].version == 3)
			assert_int_equal(count.pos, t->described);
		assert_int_equal(h5_dtype_decode(&plain, &c, *state, &again, NULL), 0);
		assert_true(dtype_equal(t, again));
		free(bytes);
	}
}

static void assert_vector_is(const char *name, const struct dtype *expected, struct arena *a)
{
	assert_non_null(expected);
	for (size_t i = 0; i < NVECTORS; i++) {
		if (strcmp(dtype_vectors[i].name, name) != 0)
			continue;
		if (!dtype_equal(decoded(name, dtype_vectors[i].hex, a), expected))
			fail_msg("%s: decodes to another type", name);
		assert_encodes(name, encode, expected, dtype_vectors[i].hex);
		return;
	}
	fail_msg("no vector %s", name);
}

static void test_atomic_meaning(void **state)
{
	struct arena *a = *state;
	struct dtype odd = {
		.cls = DTYPE_INTEGER,
		.size = 4,
		.integer = {.is_signed = true, .bit_offset = 3, .precision = 17},
	};
	struct dtype unix_time = {.cls = DTYPE_TIME, .size = 4, .integer = {.precision = 32}};
	assert_vector_is("signed byte", dtype_integer(a, 1, true, false, NULL), a);
	assert_vector_is("int32 big endian", dtype_integer(a, 4, true, true, NULL), a);
	assert_vector_is("uint64 big endian", dtype_integer(a, 8, false, true, NULL), a);
	assert_vector_is("int17", dtype_checked(a, &odd, NULL), a);
	assert_vector_is("u time", dtype_checked(a, &unix_time, NULL), a);
	assert_vector_is("half", dtype_ieee(a, 2, false, NULL), a);
	assert_vector_is("float big endian", dtype_ieee(a, 4, true, NULL), a);
	assert_vector_is("double", dtype_ieee(a, 8, false, NULL), a);
	assert_vector_is("STD B16BE", dtype_bitfield(a, 2, true, NULL), a);
	assert_vector_is("opaque0", dtype_opaque(a, 5, "", NULL), a);
	assert_vector_is("opaque9", dtype_opaque(a, 5, "012345678", NULL), a);
	assert_vector_is("ref obj", dtype_reference(a, DTYPE_REF_OBJECT, NULL), a);
	assert_vector_is("ref reg", dtype_reference(a, DTYPE_REF_REGION, NULL), a);
	assert_vector_is("str sp u 7",
			 dtype_string(a, 7, DTYPE_PAD_SPACEPAD, DTYPE_CSET_UTF8, NULL), a);
	assert_vector_is("str np a v",
			 dtype_vlen_string(a, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL), a);
}

/* The bits of a float outside of its mantissa, exponent and sign. */
static void test_padding_of_floats(void **state)
{
	static const struct {
		const char *hex;
		unsigned int lo, hi, internal;
	} rows[] = {
		{"11221f000400000000002000170800177f000000", 1, 0, 0},
		{"11241f000400000000002000170800177f000000", 0, 1, 0},
		{"11281f000400000000002000170800177f000000", 0, 0, 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct dtype *t = decoded("padding", rows[i].hex, *state);
		assert_int_equal(t->floating.lo_pad, rows[i].lo);
		assert_int_equal(t->floating.hi_pad, rows[i].hi);
		assert_int_equal(t->floating.internal_pad, rows[i].internal);
		assert_encodes("padding", encode, t, rows[i].hex);
	}
}

/* A float of 20 bits at bit 7, in a file of HDF5 1.8: its sign is bit 26 of the element. */
static void test_float_with_an_offset(void **state)
{
	const char *hex = "11201a0004000000070014001406070d1f000000";
	const struct dtype *t = decoded("offset", hex, *state);
	assert_int_equal(t->floating.bit_offset, 7);
	assert_int_equal(t->floating.precision, 20);
	assert_int_equal(t->floating.sign_loc, 26);
	assert_encodes("offset", encode, t, hex);
}

/* Without unused bits, their padding has no meaning. */
static void test_padding_without_unused_bits(void **state)
{
	const struct dtype *t = decoded("padding", "100e00000400000000002000", *state);
	assert_encodes("padding", encode, t, "100800000400000000002000");
}

/* Later versions of what version 3 has, and arrays of version 1 as old programs wrote them. */
static void test_other_versions(void **state)
{
	static const char *const rows[][2] = {
		{"400800000400000000002000", "100800000400000000002000"},
		{"500800000400000000002000", "100800000400000000002000"},
		{"4602000005000000610000100800000400000000002000620004101000000100000000000800",
		 "3602000005000000610000100800000400000000002000620004101000000100000000000800"},
		{"1a0000000c000000010000000300000000000000100800000400000000002000",
		 "2a0000000c000000010000000300000000000000100800000400000000002000"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(dtype_equal(decoded("other", rows[i][0], *state),
					decoded("same", rows[i][1], *state)));
}

/* Types of newer libraries that become older ones. */
static void test_changed_types(void **state)
{
	const struct dtype *t = decoded(
		"complex", "5b0100000800000011201f000400000000002000170800177f000000", *state);
	const struct dtype *base = dtype_ieee(*state, 4, false, NULL);
	const struct dtype_member parts[] = {{"r", 0, base}, {"i", 4, base}};
	assert_true(dtype_equal(t, dtype_compound(*state, 2, parts, 8, NULL)));
	assert_true(t->has_complex && !t->has_revised);
	assert_int_equal(h5_dtype_file_size(&plain, t), 8);
	/* A sequence of arrays of 2 references. */
	t = decoded("references", "49000000100000004a0000002400000001020000004712000012000000",
		    *state);
	assert_true(t->has_revised && !t->has_complex);
	assert_int_equal(h5_dtype_file_size(&plain, t), 16);
	assert_int_equal(h5_dtype_file_size(&plain, t->vlen.base), 36);
	assert_int_equal(t->vlen.base->size, 16);
	assert_true(dtype_equal(t->vlen.base->array.base,
				dtype_reference(*state, DTYPE_REF_OBJECT, NULL)));
}

/* What the reader refuses has a name in the message. */
static void test_refused_by_name(void **state)
{
	static const struct {
		const char *hex, *word;
	} rows[] = {
		{"5b0000000800000011201f000400000000002000170800177f000000", "H5T_COMPLEX"},
		{"5b01000008000000100800000400000000002000", "H5T_COMPLEX"},
		{"4b0100000800000011201f000400000000002000170800177f000000", "class 11"},
		{"11611f000400000000002000170800177f000000", "VAX"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(rows[i].hex, &n);
		struct cursor c = cursor_of(bytes, n);
		struct err err = ERR_INIT;
		const struct dtype *t;
		assert_int_equal(h5_dtype_decode(&plain, &c, *state, &t, &err), -EOPNOTSUPP);
		if (!strstr(err.msg, rows[i].word))
			fail_msg("%s is not in: %s", rows[i].word, err.msg);
		free(bytes);
	}
}

static void test_nested_meaning(void **state)
{
	struct arena *a = *state;
	const struct dtype *i32 = dtype_integer(a, 4, true, false, NULL);
	const struct dtype_member members[] = {
		{"a", 0, i32},
		{"longer_name", 4, dtype_ieee(a, 8, false, NULL)},
	};
	const char *const names[] = {"RED", "GREEN_7", "BLUE_LONGER"};
	const uint8_t values[] = {0, 0, 0xff, 0xff, 0x2c, 0x01};
	const uint32_t three = 3, dims[] = {2, 3, 4};
	const struct dtype *c1 = dtype_compound(a, 2, members, 12, NULL);
	const struct dtype *e =
		dtype_enum(a, dtype_integer(a, 2, true, false, NULL), 3, names, values, NULL);
	const struct dtype *arr = dtype_array(a, i32, 1, &three, NULL);
	const struct dtype_member mixed[] = {{"a", 0, arr}, {"e", 12, e}, {"c", 16, c1}};
	const char *const latin_names[] = {"gr\xfcn", "a"};
	const struct dtype *u8 = dtype_integer(a, 1, false, false, NULL);
	const struct dtype_member latin[] = {
		{"T (\xb0"
		 "C)",
		 0, u8},
		{"\xff", 1, dtype_enum(a, u8, 2, latin_names, (const uint8_t *)"\1\2", NULL)}};
	assert_vector_is("latin-1", dtype_compound(a, 2, latin, 0, NULL), a);
	assert_vector_is("c1", c1, a);
	assert_vector_is("enum", e, a);
	assert_vector_is("arr1", arr, a);
	assert_vector_is("arr2", dtype_array(a, dtype_ieee(a, 4, true, NULL), 3, dims, NULL), a);
	assert_vector_is("vlen vlen", dtype_vlen(a, dtype_vlen(a, i32, NULL), NULL), a);
	assert_vector_is("c arr after", dtype_compound(a, 3, mixed, 64, NULL), a);
}

/* In version 3 the offset of a member has as many bytes as the size of the compound needs. */
static void test_width_of_offsets(void **state)
{
	static const struct {
		uint32_t size;
		unsigned int width;
	} rows[] = {{255, 1}, {256, 2}, {65535, 2}, {65536, 3}, {0xffffff, 3}, {0x1000000, 4}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena *a = arena_new(1 << 20);
		const struct dtype *t;
		struct err err = ERR_INIT;
		uint8_t body[64];
		struct emit e = emit_to(body, sizeof(body));
		emit_u8(&e, 3 << 4 | DTYPE_COMPOUND);
		emit_u24(&e, 1); /* members */
		emit_u32(&e, rows[i].size);
		emit_bytes(&e, "a", 2);
		emit_uint(&e, rows[i].size - 1, rows[i].width);
		emit_u8(&e, 3 << 4 | DTYPE_INTEGER);
		emit_u24(&e, 0);
		emit_u32(&e, 1);
		emit_u16(&e, 0);
		emit_u16(&e, 8);
		struct cursor c = cursor_of(body, e.pos);
		if (h5_dtype_decode(&plain, &c, a, &t, &err))
			fail_msg("%u bytes: %s", rows[i].size, err.msg);
		assert_int_equal(cur_left(&c), 0);
		assert_int_equal(t->compound.members[0].offset, rows[i].size - 1);
		arena_free(a);
	}
}

/* A member of version 1 with dimensions becomes an array. */
static void test_member_with_dims(void **state)
{
	const struct dtype *t = decoded("dims",
					"1601000018000000"
					"6100000000000000"
					"00000000"
					"02000000"
					"0000000000000000"
					"0200000003000000"
					"0000000000000000"
					"100800000400000000002000",
					*state);
	assert_int_equal(t->compound.n, 1);
	const struct dtype *m = t->compound.members[0].type;
	assert_int_equal(m->cls, DTYPE_ARRAY);
	assert_int_equal(m->array.rank, 2);
	assert_int_equal(m->array.dims[1], 3);
	assert_int_equal(m->size, 24);
}

/* A tag of 249 to 255 bytes is written without padding: its padded length does not fit in 8 bits.
 */
static void test_longest_tag(void **state)
{
	struct arena *a = *state;
	char tag[256];
	memset(tag, 't', 255);
	tag[255] = 0;
	const struct dtype *t = dtype_opaque(a, 9, tag, NULL);
	assert_non_null(t);
	struct emit e = emit_count();
	h5_dtype_encode(&e, t);
	assert_int_equal(e.pos, 8 + 255);
	uint8_t buf[8 + 255];
	e = emit_to(buf, sizeof(buf));
	h5_dtype_encode(&e, t);
	struct cursor c = cursor_of(buf, sizeof(buf));
	const struct dtype *back;
	assert_int_equal(h5_dtype_decode(&plain, &c, a, &back, NULL), 0);
	assert_true(dtype_equal(t, back));
}

static void test_nesting_is_bounded(void **state)
{
	struct arena *a = *state;
	uint8_t bytes[8 * 4096];
	struct emit e = emit_to(bytes, sizeof(bytes));
	for (int i = 0; i < 4096; i++) {
		emit_u32(&e, 0x19); /* vlen of ... */
		emit_u32(&e, 16);
	}
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	const struct dtype *t;
	assert_int_equal(h5_dtype_decode(&plain, &c, a, &t, NULL), -EOPNOTSUPP);
}

static const struct malformed_message malformed[] = {
	{"version 0", "000800000400000000002000", -EOPNOTSUPP},
	{"version 6", "600800000400000000002000", -EOPNOTSUPP},
	{"class 11", "1b0800000400000000002000", -EOPNOTSUPP},
	{"integer of no bytes", "100800000000000000000000", -EIO},
	{"integer of no bits", "100800000400000000000000", -EIO},
	{"more bits than bytes", "100800000400000001002000", -EIO},
	{"integer padded with ones", "100c00000400000000001100", -EOPNOTSUPP},
	{"VAX float", "11611f000400000000002000170800177f000000", -EOPNOTSUPP},
	{"float of reserved normalisation", "11301f000400000000002000170800177f000000", -EIO},
	{"float with exponent over mantissa", "11201f000400000000002000160800177f000000", -EIO},
	{"string of no bytes", "1301000000000000", -EIO},
	{"string of reserved padding", "1303000004000000", -EIO},
	{"string of reserved character set", "1320000004000000", -EIO},
	{"reference of a later kind", "1705000008000000", -EOPNOTSUPP},
	{"object reference of 4 bytes", "1700000004000000", -EIO},
	{"vlen of 8 bytes", "190000000800000010080000040000000000200000000000", -EIO},
	{"vlen of reserved kind", "1902000010000000100800000400000000002000", -EIO},
	{"vlen string of int32", "1901000010000000100800000400000000002000", -EIO},
	{"array of rank 33", "3a0000000c00000021", -EIO},
	{"array of rank 0", "3a0000000400000000100800000400000000002000", -EIO},
	{"array with a zero dimension", "3a000000000000000100000000100800000400000000002000", -EIO},
	{"array whose size is not the product",
	 "3a000000100000000103000000100800000400000000002000", -EIO},
	{"array of 2^34 bytes", "3a00000000000000020000010000000100100800000400000000002000",
	 -EOPNOTSUPP},
	{"compound without members", "3600000004000000", -EIO},
	{"compound of no bytes", "3601000000000000610000100800000400000000002000", -EIO},
	{"compound with more members than bytes", "36ffff0004000000610000100800000400000000002000",
	 -EIO},
	{"member outside of its compound", "3601000004000000610001100800000400000000002000", -EIO},
	{"member without a name", "36010000040000000000100800000400000000002000", -EIO},
	{"members overlap",
	 "3602000006000000"
	 "610000100800000400000000002000"
	 "620002100800000400000000002000",
	 -EIO},
	{"members of one name",
	 "3602000008000000"
	 "610000100800000400000000002000"
	 "610004100800000400000000002000",
	 -EIO},
	{"member of 5 dimensions",
	 "160100000400000061000000000000000000000005000000000000000000000001000000010000000100"
	 "000001000000100800000400000000002000",
	 -EIO},
	{"enumeration without members", "3800000004000000100800000400000000002000", -EIO},
	{"enumeration of floats",
	 "380100000400000011201f000400000000002000170800177f000000"
	 "410000000000",
	 -EIO},
	{"enumeration of another size", "3801000002000000100800000400000000002000410000000000",
	 -EIO},
};

static void test_malformed(void **state)
{
	assert_malformed(&codec, malformed, sizeof(malformed) / sizeof(malformed[0]));
}

static void test_no_memory(void **state)
{
	struct arena *tiny = arena_new(64);
	assert_non_null(tiny);
	struct err err = ERR_INIT;
	const struct dtype *t = NULL;
	for (size_t i = 0; i < NVECTORS; i++)
		if (!strcmp(dtype_vectors[i].name, "c1"))
			assert_int_equal(decode(dtype_vectors[i].hex, tiny, &t, &err), -ENOMEM);
	assert_int_equal(err.code, -ENOMEM);
	arena_free(tiny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_library_vectors, setup, teardown),
		cmocka_unit_test_setup_teardown(long_types_take_the_short_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_atomic_meaning, setup, teardown),
		cmocka_unit_test_setup_teardown(test_padding_of_floats, setup, teardown),
		cmocka_unit_test_setup_teardown(test_float_with_an_offset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_padding_without_unused_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed_types, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested_meaning, setup, teardown),
		cmocka_unit_test(test_width_of_offsets),
		cmocka_unit_test_setup_teardown(test_member_with_dims, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_tag, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nesting_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
