/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements with gaps, and their copies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "codec/pack.h"

struct fixture {
	struct arena *arena;
	const struct dtype *i8, *i16, *i32, *i64, *odd, *text, *ref;
};

static int setup(void **state)
{
	static struct fixture f;
	struct arena *a = f.arena = arena_new(1 << 20);
	f.i8 = dtype_integer(a, 1, true, false, NULL);
	f.i16 = dtype_integer(a, 2, true, false, NULL);
	f.i32 = dtype_integer(a, 4, true, false, NULL);
	f.i64 = dtype_integer(a, 8, true, false, NULL);
	f.odd = dtype_opaque(a, 5, "", NULL);
	f.text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	f.ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	*state = &f;
	return f.ref && f.text && f.odd ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->arena);
	return 0;
}

static const struct dtype *compound(const struct fixture *f, uint32_t size, uint32_t n,
				    const struct dtype *const *types, const uint32_t *offsets)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	struct dtype_member m[5];
	for (uint32_t i = 0; i < n; i++)
		m[i] = (struct dtype_member){names[i], offsets[i], types[i]};
	const struct dtype *t = dtype_compound(f->arena, n, m, size, NULL);
	assert_non_null(t);
	return t;
}

/* Every size of a run, with gaps between them. */
static void copies(void **state)
{
	struct fixture *f = *state;
	const struct dtype *const types[] = {f->i8, f->i16, f->i32, f->i64, f->odd};
	const uint32_t offsets[] = {1, 4, 20, 8, 26};
	const struct dtype *t = compound(f, 33, 5, types, offsets);
	enum { SIZE = 33, PACKED = 20, ELEMS = 3 };
	uint8_t in[ELEMS * SIZE], packed[ELEMS * PACKED], back[ELEMS * SIZE] = {0};
	struct pack p;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	assert_true(pack_init(&p, t));
	assert_int_equal(p.n, 5);
	assert_int_equal(p.size, SIZE);
	assert_int_equal(p.packed, PACKED);
	pack_elems(&p, packed, in, ELEMS);
	unpack_elems(&p, back, packed, ELEMS);
	for (size_t e = 0; e < ELEMS; e++) {
		const uint8_t *from = packed + e * PACKED;
		size_t used = 0;
		for (size_t i = 0; i < 5; i++) {
			const size_t n = types[i]->size;
			assert_memory_equal(from, in + e * SIZE + offsets[i], n);
			assert_memory_equal(back + e * SIZE + offsets[i], from, n);
			from += n;
		}
		for (size_t i = 0; i < SIZE; i++)
			used += back[e * SIZE + i] != 0;
		assert_int_equal(used, PACKED);
	}
}

static void runs(void **state)
{
	struct fixture *f = *state;
	const struct dtype *const pair[] = {f->i16, f->i32};
	const uint32_t together[] = {1, 3}, apart[] = {0, 4}, back[] = {4, 0};
	const uint32_t ten[] = {2, 5}, most[] = {PACK_RUNS}, half[] = {PACK_RUNS / 2},
		       more[] = {PACK_RUNS / 2 + 1};
	const struct dtype *joined = compound(f, 8, 2, pair, together);
	const struct dtype *gap = compound(f, 9, 2, pair, apart);
	const struct {
		const struct dtype *t;
		bool ok;
		uint32_t n;
	} cases[] = {
		{f->i32, true, 1},
		{joined, true, 1},
		{compound(f, 6, 2, pair, back), true, 2},
		{gap, true, 2},
		{dtype_array(f->arena, f->i32, 2, ten, NULL), true, 1},
		{dtype_array(f->arena, joined, 2, ten, NULL), true, 10},
		{dtype_array(f->arena, gap, 2, ten, NULL), true, 20},
		{dtype_array(f->arena, joined, 1, most, NULL), true, PACK_RUNS},
		{dtype_array(f->arena, gap, 1, half, NULL), true, PACK_RUNS},
		{dtype_array(f->arena, gap, 1, more, NULL), false, 0},
		{dtype_array(f->arena, dtype_array(f->arena, gap, 1, half, NULL), 1, ten, NULL),
		 false, 0},
		{f->text, false, 0},
		{f->ref, false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pack p;
		assert_int_equal(pack_init(&p, cases[i].t), cases[i].ok);
		if (cases[i].ok)
			assert_int_equal(p.n, cases[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies),
		cmocka_unit_test(runs),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
