/* SPDX-License-Identifier: Apache-2.0 */
/* Datatypes: construction, derived members, limits, and equality. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <data/dtype.h>

static int setup(void **state)
{
	*state = arena_new(64 << 20);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static void atomic_types(void **state)
{
	struct arena *a = *state;
	const struct dtype *t;
	t = dtype_integer(a, 4, true, false, NULL);
	assert_int_equal(t->cls, DTYPE_INTEGER);
	assert_int_equal(t->size, 4);
	assert_int_equal(t->integer.precision, 32);
	assert_true(t->integer.is_signed);
	assert_int_equal(t->depth, 1);
	assert_int_equal(t->nodes, 1);
	assert_true(dtype_is_plain(t));

	t = dtype_bitfield(a, 2, true, NULL);
	assert_int_equal(t->cls, DTYPE_BITFIELD);
	assert_true(t->integer.big_endian);

	t = dtype_string(a, 7, DTYPE_PAD_SPACEPAD, DTYPE_CSET_UTF8, NULL);
	assert_int_equal(t->size, 7);
	assert_int_equal(t->string.pad, DTYPE_PAD_SPACEPAD);

	assert_string_equal(dtype_opaque(a, 3, NULL, NULL)->opaque.tag, "");
	assert_string_equal(dtype_opaque(a, 3, "tag", NULL)->opaque.tag, "tag");
}

static void ieee_floats(void **state)
{
	static const struct {
		uint32_t size;
		uint8_t sign_loc, exp_loc, exp_size, mant_size;
		uint32_t bias;
	} rows[] = {
		{2, 15, 10, 5, 10, 15},
		{4, 31, 23, 8, 23, 127},
		{8, 63, 52, 11, 52, 1023},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct dtype *t = dtype_ieee(*state, rows[i].size, true, NULL);
		assert_int_equal(t->size, rows[i].size);
		assert_int_equal(t->floating.precision, 8 * rows[i].size);
		assert_int_equal(t->floating.sign_loc, rows[i].sign_loc);
		assert_int_equal(t->floating.exp_loc, rows[i].exp_loc);
		assert_int_equal(t->floating.exp_size, rows[i].exp_size);
		assert_int_equal(t->floating.mant_loc, 0);
		assert_int_equal(t->floating.mant_size, rows[i].mant_size);
		assert_int_equal(t->floating.exp_bias, rows[i].bias);
		assert_int_equal(t->floating.norm, DTYPE_NORM_IMPLIED);
		assert_true(t->floating.big_endian);
	}
}

static void references_and_vlens_have_slots(void **state)
{
	struct arena *a = *state;
	const struct dtype *ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	const struct dtype *region = dtype_reference(a, DTYPE_REF_REGION, NULL);
	const struct dtype *str = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	const struct dtype *seq = dtype_vlen(a, ref, NULL);
	assert_int_equal(ref->size, 8);
	assert_int_equal(region->size, 12);
	assert_true(ref->has_ref && region->has_ref && !ref->has_vlen);
	assert_int_equal(str->size, 16);
	assert_int_equal(str->depth, 2);
	assert_true(str->vlen.is_string && str->has_vlen && !str->has_ref);
	assert_int_equal(str->nvlens, 1);
	assert_true(seq->has_vlen && seq->has_ref && !seq->vlen.is_string);
	assert_false(dtype_is_plain(ref) || dtype_is_plain(str));
}

static void derived_members_of_nested_types(void **state)
{
	static const uint32_t dims[] = {3, 5};
	struct arena *a = *state;
	const struct dtype *i2 = dtype_integer(a, 2, true, false, NULL);
	const struct dtype *str = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	const struct dtype_member inner[] = {{"n", 0, i2}, {"s", 0, str}, {"t", 0, str}};
	const struct dtype *rec = dtype_compound(a, 3, inner, 0, NULL);
	const struct dtype *arr = dtype_array(a, rec, 2, dims, NULL);
	const struct dtype *seq = dtype_vlen(a, arr, NULL);
	const struct dtype_member outer[] = {{"arr", 0, arr}, {"seq", 0, seq}};
	const struct dtype *all = dtype_compound(a, 2, outer, 0, NULL);
	assert_int_equal(rec->size, 34);
	assert_int_equal(rec->compound.members[2].offset, 18);
	assert_int_equal(rec->nvlens, 2);
	assert_int_equal(rec->nodes, 6);
	assert_false(rec->has_array);
	assert_int_equal(arr->size, 15 * 34);
	assert_int_equal(arr->array.nelems, 15);
	assert_int_equal(arr->nvlens, 30);
	assert_int_equal(seq->nvlens, 1);
	assert_int_equal(all->nvlens, 31);
	assert_int_equal(all->depth, 6);
	assert_int_equal(all->nodes, 1 + 7 + 8);
	assert_true(all->has_array && all->has_vlen && !all->has_ref);
	assert_true(rec->has_vstring && seq->has_vstring && all->has_vstring);
	assert_false(dtype_vlen(a, i2, NULL)->has_vstring);
}

static void constructors_copy_their_input(void **state)
{
	struct arena *a = *state;
	char name[] = "member", symbol[] = "RED";
	const char *symbols[] = {symbol};
	uint8_t value[] = {7};
	struct dtype_member m = {name, 0, dtype_integer(a, 1, true, false, NULL)};
	const struct dtype *rec = dtype_compound(a, 1, &m, 4, NULL);
	const struct dtype *colour = dtype_enum(a, m.type, 1, symbols, value, NULL);
	name[0] = symbol[0] = 'x';
	value[0] = 8;
	m.type = NULL;
	symbols[0] = NULL;
	assert_int_equal(rec->size, 4);
	assert_string_equal(rec->compound.members[0].name, "member");
	assert_non_null(rec->compound.members[0].type);
	assert_string_equal(colour->enumeration.names[0], "RED");
	assert_int_equal(colour->enumeration.values[0], 7);
	assert_int_equal(colour->depth, 2);
}

static void the_size_of_compounds_is_limited(void **state)
{
	struct arena *a = *state;
	struct err err = ERR_INIT;
	const struct dtype *half =
		dtype_string(a, DTYPE_MAX_SIZE / 2, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL);
	const struct dtype *i1 = dtype_integer(a, 1, true, false, NULL);
	const struct dtype_member members[] = {{"a", 0, half}, {"b", 0, half}, {"c", 0, i1}};
	const struct dtype *t = dtype_compound(a, 2, members, 0, NULL);
	assert_non_null(t);
	assert_int_equal(t->size, DTYPE_MAX_SIZE);
	assert_null(dtype_compound(a, 3, members, 0, &err));
	assert_int_equal(err.code, -E2BIG);
}

static void depth_is_limited(void **state)
{
	struct err err = ERR_INIT;
	const struct dtype *t = dtype_integer(*state, 1, false, false, NULL);
	for (int i = 1; i < DTYPE_MAX_DEPTH; i++)
		assert_non_null(t = dtype_vlen(*state, t, &err));
	assert_int_equal(t->depth, DTYPE_MAX_DEPTH);
	assert_null(dtype_vlen(*state, t, &err));
	assert_int_equal(err.code, -E2BIG);
}

/* Types that share parts could describe a tree of exponential size: the number of parts is limited.
 */
static void the_number_of_parts_is_limited(void **state)
{
	struct err err = ERR_INIT;
	const struct dtype *t = dtype_integer(*state, 1, false, false, NULL);
	int levels = 0;
	for (; t && levels < DTYPE_MAX_DEPTH; levels++) {
		struct dtype_member m[] = {{"a", 0, t}, {"b", 0, t}, {"c", 0, t}, {"d", 0, t}};
		t = dtype_compound(*state, 4, m, 0, &err);
		t = t ? dtype_vlen(*state, t, &err) : NULL;
	}
	assert_null(t);
	assert_int_equal(err.code, -E2BIG);
	assert_in_range(levels, 9, 11); /* 4^10 is 2^20 */
}

static void thousands_of_names_are_checked_quickly(void **state)
{
	enum { N = DTYPE_MAX_MEMBERS };
	static char names[N + 1][8];
	static struct dtype_member m[N + 1];
	const struct dtype *byte = dtype_integer(*state, 1, false, false, NULL);
	struct err err = ERR_INIT;
	const struct dtype *t;
	for (unsigned int i = 0; i <= N; i++) {
		snprintf(names[i], sizeof(names[i]), "m%u", i);
		/* In descending order: the input is not sorted. */
		m[i] = (struct dtype_member){names[i], N - 1 - i % N, byte};
	}
	t = dtype_compound(*state, N, m, N, &err);
	assert_non_null(t);
	assert_string_equal(t->compound.members[N - 1].name, names[N - 1]);
	assert_int_equal(t->compound.members[N - 1].offset, 0);
	assert_null(dtype_compound(*state, N + 1, m, 0, &err));
	assert_int_equal(err.code, -E2BIG);
	m[N / 2].name = names[0];
	assert_null(dtype_compound(*state, N, m, 0, &err));
	assert_int_equal(err.code, -EINVAL);
}

static void an_exhausted_arena_is_reported(void **state)
{
	struct arena *a = arena_new(2 * sizeof(struct dtype));
	struct err err = ERR_INIT;
	assert_non_null(dtype_integer(a, 4, true, false, &err));
	assert_null(dtype_opaque(a, 4,
				 "a tag that does not fit any more ......................"
				 "......................................................."
				 "................................................",
				 &err));
	assert_int_equal(err.code, -ENOMEM);
	arena_free(a);
}

/* Types that all differ from each other. Each call makes new ones. */
enum { KINDS = 28 };

static void make_kinds(struct arena *a, const struct dtype **k)
{
	static const uint32_t d23[] = {2, 3}, d32[] = {3, 2}, d6[] = {6};
	static const char *const ab[] = {"a", "b"}, *const ac[] = {"a", "c"};
	static const uint8_t v01[] = {0, 1}, v02[] = {0, 2};
	const struct dtype *i1 = dtype_integer(a, 1, true, false, NULL);
	const struct dtype *i2 = dtype_integer(a, 2, true, false, NULL);
	const struct dtype_member m[] = {
		{"x", 0, i1}, {"y", 4, i2},
		{"x", 0, i1}, {"z", 4, i2},
		{"x", 0, i1}, {"y", 5, i2},
		{"x", 0, i1}, {"y", 4, dtype_bitfield(a, 2, false, NULL)},
	};
	struct dtype odd = *i2;
	int n = 0;
	k[n++] = i1;
	k[n++] = i2;
	k[n++] = dtype_integer(a, 2, false, false, NULL);
	k[n++] = dtype_integer(a, 2, true, true, NULL);
	odd.integer.precision = 12;
	k[n++] = dtype_checked(a, &odd, NULL);
	k[n++] = dtype_bitfield(a, 2, false, NULL);
	k[n++] = dtype_ieee(a, 4, false, NULL);
	k[n++] = dtype_ieee(a, 4, true, NULL);
	k[n++] = dtype_string(a, 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	k[n++] = dtype_string(a, 4, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL);
	k[n++] = dtype_string(a, 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	k[n++] = dtype_opaque(a, 4, "a", NULL);
	k[n++] = dtype_opaque(a, 4, "b", NULL);
	k[n++] = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	k[n++] = dtype_reference(a, DTYPE_REF_REGION, NULL);
	k[n++] = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	k[n++] = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	k[n++] = dtype_vlen(a, i1, NULL);
	k[n++] = dtype_vlen(a, i2, NULL);
	k[n++] = dtype_array(a, i1, 2, d23, NULL);
	k[n++] = dtype_array(a, i1, 2, d32, NULL);
	k[n++] = dtype_array(a, i1, 1, d6, NULL);
	k[n++] = dtype_enum(a, i1, 2, ab, v01, NULL);
	k[n++] = dtype_enum(a, i1, 2, ac, v01, NULL);
	k[n++] = dtype_enum(a, i1, 2, ab, v02, NULL);
	k[n++] = dtype_enum(a, i1, 1, ab, v01, NULL);
	for (int i = 0; i < 2; i++)
		k[n++] = dtype_compound(a, 2, m + 2 * i, 8, NULL);
	assert_int_equal(n, KINDS);
}

static void equality(void **state)
{
	const struct dtype *a[KINDS], *b[KINDS];
	make_kinds(*state, a);
	make_kinds(*state, b);
	for (int i = 0; i < KINDS; i++) {
		assert_non_null(a[i]);
		for (int j = 0; j < KINDS; j++)
			if (dtype_equal(a[i], b[j]) != (i == j))
				fail_msg("kinds %d and %d", i, j);
	}
}

static void equality_looks_inside_compounds(void **state)
{
	struct arena *a = *state;
	const struct dtype *i1 = dtype_integer(a, 1, true, false, NULL);
	const struct dtype *u1 = dtype_integer(a, 1, false, false, NULL);
	const struct dtype_member m[] = {{"x", 0, i1}}, later[] = {{"x", 1, i1}},
				  other[] = {{"x", 0, u1}};
	const struct dtype *t = dtype_compound(a, 1, m, 8, NULL);
	assert_true(dtype_equal(t, dtype_compound(a, 1, m, 8, NULL)));
	assert_false(dtype_equal(t, dtype_compound(a, 1, m, 7, NULL)));
	assert_false(dtype_equal(t, dtype_compound(a, 1, later, 8, NULL)));
	assert_false(dtype_equal(t, dtype_compound(a, 1, other, 8, NULL)));
}

static void equality_ignores_the_base_of_strings(void **state)
{
	const struct dtype *s =
		dtype_vlen_string(*state, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	struct dtype other = *s;
	other.vlen.base = dtype_integer(*state, 1, false, false, NULL);
	assert_true(dtype_equal(s, dtype_checked(*state, &other, NULL)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_types),
		cmocka_unit_test(ieee_floats),
		cmocka_unit_test(references_and_vlens_have_slots),
		cmocka_unit_test(derived_members_of_nested_types),
		cmocka_unit_test(constructors_copy_their_input),
		cmocka_unit_test(the_size_of_compounds_is_limited),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(the_number_of_parts_is_limited),
		cmocka_unit_test(thousands_of_names_are_checked_quickly),
		cmocka_unit_test(an_exhausted_arena_is_reported),
		cmocka_unit_test(equality),
		cmocka_unit_test(equality_looks_inside_compounds),
		cmocka_unit_test(equality_ignores_the_base_of_strings),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
