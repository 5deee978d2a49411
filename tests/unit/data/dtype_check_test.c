/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid datatypes: valid ones with one damaged field each. A case is named after its defect. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <data/dtype.h>

/* Valid types, which the cases damage. */
struct sound {
	struct arena *arena;
	const struct dtype *i1, *i4, *f4, *bits, *string, *opaque, *ref, *region, *vlen, *vstring,
		*array, *enumeration, *compound, *deep;
};

static int setup(void **state)
{
	static const char *const symbols[] = {"OFF", "ON"};
	static const uint8_t values[] = {0, 1};
	static const uint32_t dims[] = {2, 3};
	static struct sound s;
	struct arena *a = s.arena = arena_new(64 << 20);
	s.i1 = dtype_integer(a, 1, false, false, NULL);
	s.i4 = dtype_integer(a, 4, true, false, NULL);
	s.f4 = dtype_ieee(a, 4, false, NULL);
	s.bits = dtype_bitfield(a, 1, false, NULL);
	s.string = dtype_string(a, 5, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	s.opaque = dtype_opaque(a, 5, "tag", NULL);
	s.ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	s.region = dtype_reference(a, DTYPE_REF_REGION, NULL);
	s.vlen = dtype_vlen(a, s.i4, NULL);
	s.vstring = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	s.array = dtype_array(a, s.i4, 2, dims, NULL);
	s.enumeration = dtype_enum(a, s.i1, 2, symbols, values, NULL);
	s.compound = dtype_compound(a, 2, (struct dtype_member[]){{"a", 0, s.i4}, {"b", 8, s.f4}},
				    16, NULL);
	s.deep = s.i1;
	for (int i = 1; i < DTYPE_MAX_DEPTH; i++)
		s.deep = dtype_vlen(a, s.deep, NULL);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct sound *s = *state;
	arena_free(s->arena);
	return 0;
}

static void valid_types_are_accepted(void **state)
{
	struct sound *s = *state;
	const struct dtype *all[] = {s->i1,	s->i4,		s->f4,	     s->bits, s->string,
				     s->opaque, s->ref,		s->region,   s->vlen, s->vstring,
				     s->array,	s->enumeration, s->compound, s->deep};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct dtype t = *all[i];
		const struct dtype *copy;
		/* Derived members are computed, not copied from the input. */
		t.depth = 77;
		t.nodes = 77;
		t.nvlens = 77;
		t.has_vlen = !t.has_vlen;
		t.has_ref = !t.has_ref;
		t.has_array = !t.has_array;
		copy = dtype_checked(s->arena, &t, NULL);
		assert_non_null(copy);
		assert_true(dtype_equal(copy, all[i]));
		assert_int_equal(copy->depth, all[i]->depth);
		assert_int_equal(copy->nodes, all[i]->nodes);
		assert_int_equal(copy->nvlens, all[i]->nvlens);
		assert_int_equal(copy->has_vlen, all[i]->has_vlen);
		assert_int_equal(copy->has_ref, all[i]->has_ref);
		assert_int_equal(copy->has_array, all[i]->has_array);
	}
}

/* Each row: the valid type, the statement that damages t, the error code. */
#define DEFECTS(X)                                                                                 \
	X(unknown_class, i4, t.cls = 11, -EINVAL)                                                  \
	X(size_zero, i4, t.size = 0, -EINVAL)                                                      \
	X(string_size_zero, string, t.size = 0, -EINVAL)                                           \
	X(size_huge, string, t.size = DTYPE_MAX_SIZE + 1, -E2BIG)                                  \
	X(no_bits, i4, t.integer.precision = 0, -EINVAL)                                           \
	X(bits_over_size, i4, t.integer.precision = 33, -EINVAL)                                   \
	X(bits_behind_size, i4, t.integer.bit_offset = 1, -EINVAL)                                 \
	X(signed_bitfield, bits, t.integer.is_signed = true, -EINVAL)                              \
	X(float_bits_over_size, f4, t.size = 3, -EINVAL)                                           \
	X(float_offset, f4, t.floating.bit_offset = 8, -EINVAL)                                    \
	X(sign_outside, f4, t.floating.sign_loc = 32, -EINVAL)                                     \
	X(exponent_outside, f4, t.floating.exp_size = 10, -EINVAL)                                 \
	X(mantissa_outside, f4, t.floating.mant_loc = 255, -EINVAL)                                \
	X(no_exponent, f4, t.floating.exp_size = 0, -EINVAL)                                       \
	X(no_mantissa, f4, t.floating.mant_size = 0, -EINVAL)                                      \
	X(sign_in_exponent, f4, t.floating.sign_loc = 30, -EINVAL)                                 \
	X(sign_in_mantissa, f4, t.floating.sign_loc = 0, -EINVAL)                                  \
	X(mantissa_in_exponent, f4, t.floating.mant_size = 24, -EINVAL)                            \
	X(normalisation, f4, t.floating.norm = 3, -EINVAL)                                         \
	X(padding_bit, f4, t.floating.internal_pad = 2, -EINVAL)                                   \
	X(string_padding, string, t.string.pad = 3, -EINVAL)                                       \
	X(character_set, string, t.string.cset = 2, -EINVAL)                                       \
	X(no_tag, opaque, t.opaque.tag = NULL, -EINVAL)                                            \
	X(long_tag, opaque, t.opaque.tag = long_tag, -E2BIG)                                       \
	X(reference_kind, ref, t.reference.kind = 2, -EINVAL)                                      \
	X(reference_size, ref, t.size = 12, -EINVAL)                                               \
	X(region_size, region, t.size = 8, -EINVAL)                                                \
	X(vlen_size, vlen, t.size = 8, -EINVAL)                                                    \
	X(vlen_no_base, vlen, t.vlen.base = NULL, -EINVAL)                                         \
	X(vlen_deep, vlen, t.vlen.base = s->deep, -E2BIG)                                          \
	X(vlen_string_of_ints, vlen, t.vlen.is_string = true, -EINVAL)                             \
	X(vlen_string_of_vlens, vstring, t.vlen.base = s->vstring, -EINVAL)                        \
	X(vlen_string_padding, vstring, t.vlen.pad = 7, -EINVAL)                                   \
	X(vlen_string_set, vstring, t.vlen.cset = 7, -EINVAL)                                      \
	X(array_no_base, array, t.array.base = NULL, -EINVAL)                                      \
	X(array_rank_0, array, t.array.rank = 0, -EINVAL)                                          \
	X(array_rank_33, array, t.array.rank = 33, -E2BIG)                                         \
	X(array_dimension_0, array, t.array.dims[1] = 0, -EINVAL)                                  \
	X(array_too_large, array, t.array.dims[1] = 1 << 30, -E2BIG)                               \
	X(array_wraps, array, t.array.dims[0] = t.array.dims[1] = UINT32_MAX, -E2BIG)              \
	X(array_size, array, t.size = 25, -EINVAL)                                                 \
	X(array_deep, array, (t.array.base = s->deep, t.size = 6 * 16), -E2BIG)                    \
	X(enum_no_base, enumeration, t.enumeration.base = NULL, -EINVAL)                           \
	X(enum_of_floats, enumeration, (t.enumeration.base = s->f4, t.size = 4), -EINVAL)          \
	X(enum_size, enumeration, t.size = 2, -EINVAL)                                             \
	X(enum_size_zero, enumeration, t.size = 0, -EINVAL)                                        \
	X(enum_empty, enumeration, t.enumeration.n = 0, -EINVAL)                                   \
	X(enum_no_values, enumeration, t.enumeration.values = NULL, -EINVAL)                       \
	X(enum_too_many, enumeration, t.enumeration.n = 65536, -E2BIG)                             \
	X(enum_same_names, enumeration, t.enumeration.names = same, -EINVAL)                       \
	X(enum_no_name, enumeration, t.enumeration.names = unnamed, -EINVAL)                       \
	X(compound_empty, compound, t.compound.n = 0, -EINVAL)                                     \
	X(compound_no_members, compound, t.compound.members = NULL, -EINVAL)                       \
	X(compound_too_many, compound, t.compound.n = 65536, -E2BIG)                               \
	X(compound_size_zero, compound, t.size = 0, -EINVAL)                                       \
	X(member_cut, compound, t.size = 11, -EINVAL)                                              \
	X(member_behind, compound, m[1].offset = 16, -EINVAL)                                      \
	X(member_wraps, compound, m[1].offset = UINT32_MAX, -EINVAL)                               \
	X(members_overlap, compound, m[1].offset = 3, -EINVAL)                                     \
	X(members_coincide, compound, m[1].offset = 0, -EINVAL)                                    \
	X(members_overlap_backwards, compound, m[0].offset = 5, -EINVAL)                           \
	X(member_no_type, compound, m[0].type = NULL, -EINVAL)                                     \
	X(member_deep, compound,                                                                   \
	  (m[1].offset = 4, m[0].offset = 0, m[1].type = s->deep, t.size = 32), -E2BIG)            \
	X(member_no_name, compound, m[1].name = NULL, -EINVAL)                                     \
	X(member_empty_name, compound, m[1].name = "", -EINVAL)                                    \
	X(member_same_name, compound, m[1].name = "a", -EINVAL)

#define DEFINE_DEFECT(name, base, damage, result)                                                  \
	static int defect_##name(struct sound *s, struct err *err)                                 \
	{                                                                                          \
		struct dtype t = *s->base;                                                         \
		struct dtype_member m[2];                                                          \
                                                                                                   \
		if (t.cls == DTYPE_COMPOUND) {                                                     \
			memcpy(m, t.compound.members, sizeof(m));                                  \
			t.compound.members = m;                                                    \
		}                                                                                  \
		damage;                                                                            \
		return dtype_checked(s->arena, &t, err) ? 0 : -1;                                  \
	}

static const char *const same[] = {"ON", "ON"};
static const char *const unnamed[] = {"ON", ""};
static const char long_tag[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
			       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
			       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
			       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

DEFECTS(DEFINE_DEFECT)

static void damaged_types_are_refused(void **state)
{
#define ROW(name, base, damage, result) {#name, defect_##name, result},
	static const struct {
		const char *name;
		int (*check)(struct sound *s, struct err *err);
		int result;
	} rows[] = {DEFECTS(ROW)};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = ERR_INIT;
		if (rows[i].check(*state, &err) == 0)
			fail_msg("%s was accepted", rows[i].name);
		if (err.code != rows[i].result)
			fail_msg("%s: %d (%s)", rows[i].name, err.code, err.msg);
		assert_true(err.msg[0] != '\0');
	}
}

/* Each part of a float may have the highest bit, and padding bits may be 1. */
static void floats_of_unusual_layouts_are_accepted(void **state)
{
	static const struct {
		uint8_t sign, exp, mant; /* first bits of parts of 1, 5 and 10 bits */
	} rows[] = {{15, 10, 0}, {0, 11, 1}, {10, 11, 0}, {0, 1, 6}, {5, 0, 6}};
	struct sound *s = *state;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dtype t = {.cls = DTYPE_FLOAT, .size = 2};
		t.floating.precision = 16;
		t.floating.sign_loc = rows[i].sign;
		t.floating.exp_loc = rows[i].exp;
		t.floating.exp_size = 5;
		t.floating.mant_loc = rows[i].mant;
		t.floating.mant_size = 10;
		t.floating.lo_pad = t.floating.hi_pad = t.floating.internal_pad = 1;
		if (!dtype_checked(s->arena, &t, &err))
			fail_msg("row %zu: %s", i, err.msg);
	}
}

/* HDF5 gives the names in a type no character set. */
static void names_may_have_any_bytes(void **state)
{
	static const char *const names[] = {"gr\xfcn", "gr\xfc"};
	struct sound *s = *state;
	const struct dtype_member members[] = {{"\xb0", 0, s->i1}, {"\xff\xfe", 1, s->i1}};
	const struct dtype *t = dtype_compound(s->arena, 2, members, 0, NULL);
	assert_non_null(t);
	assert_string_equal(t->compound.members[1].name, "\xff\xfe");
	t = dtype_enum(s->arena, s->i1, 2, names, (const uint8_t *)"\0\1", NULL);
	assert_non_null(t);
	assert_string_equal(t->enumeration.names[0], names[0]);
}

static void arrays_may_have_32_dimensions(void **state)
{
	struct sound *s = *state;
	struct err err = ERR_INIT;
	uint32_t dims[33];
	for (size_t i = 0; i < 33; i++)
		dims[i] = 1;
	assert_non_null(dtype_array(s->arena, s->i1, 32, dims, &err));
	assert_null(dtype_array(s->arena, s->i1, 33, dims, &err));
	assert_int_equal(err.code, -E2BIG);
}

static void constructors_refuse_invalid_types(void **state)
{
	static const uint32_t dims[] = {1 << 15, 1 << 15};
	struct sound *s = *state;
	struct dtype_member none = {"a", 0, NULL};
	struct err err = ERR_INIT;
	assert_null(dtype_integer(s->arena, 0, true, false, &err));
	assert_int_equal(err.code, -EINVAL);
	assert_null(dtype_integer(s->arena, 8192, true, false, &err));
	assert_int_equal(err.code, -E2BIG);
	const struct dtype *largest = dtype_integer(s->arena, 8191, true, false, NULL);
	assert_non_null(largest);
	assert_int_equal(largest->integer.precision, 8 * 8191);
	assert_null(dtype_bitfield(s->arena, 8192, false, &err));
	assert_int_equal(err.code, -E2BIG);
	assert_null(dtype_ieee(s->arena, 3, false, &err));
	assert_int_equal(err.code, -EINVAL);
	assert_null(dtype_vlen(s->arena, NULL, &err));
	assert_null(dtype_array(s->arena, NULL, 2, dims, &err));
	assert_null(dtype_enum(s->arena, NULL, 1, same, (const uint8_t *)"", &err));
	assert_null(dtype_compound(s->arena, 1, &none, 0, &err));
	assert_null(dtype_compound(s->arena, 0, NULL, 0, &err));
	assert_int_equal(err.code, -EINVAL);
	assert_null(dtype_array(s->arena, s->i1, 0, dims, &err));
	assert_string_equal(err.msg, "array type without dimensions");
	assert_non_null(dtype_array(s->arena, s->i1, 2, dims, &err));
	assert_null(dtype_array(s->arena, s->i4, 2, dims, &err));
	assert_int_equal(err.code, -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_types_are_accepted),
		cmocka_unit_test(damaged_types_are_refused),
		cmocka_unit_test(floats_of_unusual_layouts_are_accepted),
		cmocka_unit_test(names_may_have_any_bytes),
		cmocka_unit_test(arrays_may_have_32_dimensions),
		cmocka_unit_test(constructors_refuse_invalid_types),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
