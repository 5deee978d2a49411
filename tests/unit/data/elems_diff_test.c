/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of elements: NaNs, texts, vlens, references, unset and repeated elements. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <data/tree_diff.h>

struct pair {
	struct arena *arena;
	struct elems a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	p->arena = arena_new(1 << 20);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;
	elems_release(&p->a);
	elems_release(&p->b);
	arena_free(p->arena);
	free(p);
	return 0;
}

static void set(struct elems *e, const void *bytes, size_t n)
{
	elems_release(e);
	*e = (struct elems){0};
	assert_int_equal(bytes_append(&e->fixed, bytes, n), 0);
}

static uint64_t diff(struct pair *p, const struct dtype *t, uint64_t n)
{
	const uint64_t at = elems_diff(t, n, &p->a, &p->b, NULL);
	assert_int_equal(elems_diff(t, n, &p->b, &p->a, NULL), at);
	return at;
}

static void numbers(void **state)
{
	enum { N = 3000 };
	struct pair *p = *state;
	static uint32_t v[N];
	const struct dtype *t = dtype_integer(p->arena, 4, true, false, NULL);
	set(&p->a, v, sizeof(v));
	set(&p->b, v, sizeof(v));
	assert_int_equal(diff(p, t, N), N);
	for (uint32_t i = 0; i < N; i += 499) {
		set(&p->b, v, sizeof(v));
		p->b.fixed.data[4 * i + 3] = 1;
		assert_int_equal(diff(p, t, N), i);
	}
}

static void nans_are_equal(void **state)
{
	struct pair *p = *state;
	double v[600] = {0}, w[600] = {0};
	const struct dtype *t = dtype_ieee(p->arena, 8, false, NULL);
	for (int i = 0; i < 600; i += 3)
		v[i] = NAN;
	for (int i = 0; i < 600; i += 3)
		w[i] = -NAN;
	set(&p->a, v, sizeof(v));
	set(&p->b, w, sizeof(w));
	assert_int_equal(diff(p, t, 600), 600);
	v[597] = INFINITY;
	set(&p->a, v, sizeof(v));
	assert_int_equal(diff(p, t, 600), 597);
	v[301] = 1;
	set(&p->a, v, sizeof(v));
	assert_int_equal(diff(p, t, 600), 301);
	v[299] = -0.0; /* not the same bytes */
	set(&p->a, v, sizeof(v));
	assert_int_equal(diff(p, t, 600), 299);
}

static void big_endian_nans_are_equal(void **state)
{
	struct pair *p = *state;
	const struct dtype *t = dtype_ieee(p->arena, 2, true, NULL);
	set(&p->a, "\x7e\x00\x7e\x00\x7c\x00", 6);
	set(&p->b, "\xfe\x01\x7c\x01\x7e\x00", 6);
	assert_int_equal(diff(p, t, 3), 2); /* 7c00 is infinite */
}

static void texts_end_at_their_nul(void **state)
{
	struct pair *p = *state;
	const enum dtype_cset ascii = DTYPE_CSET_ASCII;
	const struct dtype *term = dtype_string(p->arena, 4, DTYPE_PAD_NULLTERM, ascii, NULL);
	const struct dtype *pad = dtype_string(p->arena, 4, DTYPE_PAD_NULLPAD, ascii, NULL);
	set(&p->a, "ab\0c", 4);
	set(&p->b, "ab\0d", 4);
	assert_int_equal(diff(p, term, 1), 1);
	assert_int_equal(diff(p, pad, 1), 0);
	set(&p->b, "ac\0c", 4);
	assert_int_equal(diff(p, term, 1), 0);
	set(&p->b, "abx", 4);
	assert_int_equal(diff(p, term, 1), 0);
}

static void gaps_of_compounds_do_not_count(void **state)
{
	struct pair *p = *state;
	const struct dtype *i1 = dtype_integer(p->arena, 1, false, false, NULL);
	const struct dtype_member members[] = {{"a", 0, i1}, {"b", 2, i1}};
	const struct dtype *t = dtype_compound(p->arena, 2, members, 4, NULL);
	set(&p->a, "axb.axb.", 8);
	set(&p->b, "aybzaybz", 8);
	assert_int_equal(diff(p, t, 2), 2);
	set(&p->b, "aybzaycz", 8);
	assert_int_equal(diff(p, t, 2), 1);
}

/* Appends a vlen with `n` items of `size` bytes at `items`. */
static void add_slot(struct elems *e, const void *items, uint32_t n, size_t size)
{
	uint8_t elem[DTYPE_VLEN_SIZE];
	uint64_t offset;
	assert_int_equal(elems_heap_add(e, items, n * size, &offset), 0);
	elems_put_vlen(elem, n, offset);
	assert_int_equal(bytes_append(&e->fixed, elem, sizeof(elem)), 0);
}

static void sequences(void **state)
{
	struct pair *p = *state;
	const struct dtype *i1 = dtype_integer(p->arena, 1, false, false, NULL);
	const struct dtype *t = dtype_vlen(p->arena, i1, NULL);
	const struct dtype *s =
		dtype_vlen_string(p->arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	uint64_t unused;
	assert_int_equal(elems_heap_add(&p->b, "padding", 8, &unused), 0);
	add_slot(&p->a, "abc", 3, 1);
	add_slot(&p->b, "abc", 3, 1);
	add_slot(&p->a, "", 0, 1);
	bytes_append_zero(&p->b.fixed, DTYPE_VLEN_SIZE);
	add_slot(&p->a, "xy", 2, 1);
	add_slot(&p->b, "xz", 2, 1);
	assert_int_equal(diff(p, t, 3), 2);
	assert_int_equal(diff(p, s, 3), 1); /* an empty string is a value */
	assert_int_equal(diff(p, t, 2), 2);
	p->a.fixed.data[0] = 2;
	assert_int_equal(diff(p, t, 2), 0);
}

static void nested_sequences(void **state)
{
	struct pair *p = *state;
	const struct dtype *i1 = dtype_integer(p->arena, 1, false, false, NULL);
	const struct dtype *t = dtype_vlen(p->arena, dtype_vlen(p->arena, i1, NULL), NULL);
	for (int k = 0; k < 2; k++) {
		struct elems *e = k ? &p->b : &p->a;
		struct elems inner = {0};
		add_slot(e, k ? "cd" : "ab", 2, 1);
		assert_int_equal(bytes_append(&inner.fixed, e->fixed.data, 16), 0);
		e->fixed.len = 0;
		add_slot(e, inner.fixed.data, 1, DTYPE_VLEN_SIZE);
		elems_release(&inner);
	}
	assert_int_equal(diff(p, t, 1), 0);
	memcpy(p->b.heap.data, "ab", 2);
	assert_int_equal(diff(p, t, 1), 1);
}

/* Vlens that share items that are vlens would multiply the work. */
static void shared_items_with_slots_are_refused(void **state)
{
	struct pair *p = *state;
	const struct dtype *t = dtype_integer(p->arena, 1, false, false, NULL);
	uint8_t elem[DTYPE_VLEN_SIZE];
	for (int depth = 0; depth < 20; depth++)
		t = dtype_vlen(p->arena, t, NULL);
	for (int k = 0; k < 2; k++) {
		struct elems *e = k ? &p->b : &p->a;
		bytes_append_zero(&e->heap, 16 * DTYPE_VLEN_SIZE);
		for (int i = 0; i < 16; i++)
			elems_put_vlen(e->heap.data + i * DTYPE_VLEN_SIZE, 16, 0);
		elems_put_vlen(elem, 16, 0);
		bytes_append(&e->fixed, elem, sizeof(elem));
	}
	assert_int_equal(diff(p, t, 1), 0);
}

static void items_outside_of_the_heap_are_different(void **state)
{
	struct pair *p = *state;
	const struct dtype *t =
		dtype_vlen(p->arena, dtype_integer(p->arena, 1, false, false, NULL), NULL);
	add_slot(&p->a, "abc", 3, 1);
	add_slot(&p->b, "abc", 3, 1);
	p->b.heap.len = 2;
	assert_int_equal(diff(p, t, 1), 0);
	p->b.heap.len = 3;
	p->b.fixed.data[15] = 0xff;
	assert_int_equal(diff(p, t, 1), 0);
}

static void references_follow_the_map(void **state)
{
	static const uint32_t map[] = {4, OBJECT_NONE, 7};
	struct pair *p = *state;
	const struct dtype *t = dtype_reference(p->arena, DTYPE_REF_OBJECT, NULL);
	set(&p->a, "\3\0\0\0\0\0\0\0", 8);
	set(&p->b, "\10\0\0\0\0\0\0\0", 8);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 1);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, NULL), 0);
	set(&p->b, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
	set(&p->a, "\2\0\0\0\0\0\0\0", 8); /* without a counterpart */
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 1);
	set(&p->b, "\5\0\0\0\0\0\0\0", 8);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
	set(&p->a, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
}

static void selections(void **state)
{
	static const uint32_t map[] = {1, 0};
	struct pair *p = *state;
	const struct dtype *t = dtype_reference(p->arena, DTYPE_REF_REGION, NULL);
	uint64_t at;
	set(&p->a, "\1\0\0\0\0\0\0\0\13\0\0\0", 12);
	set(&p->b, "\1\0\0\0\0\0\0\0\13\0\0\0", 12);
	assert_int_equal(elems_heap_add(&p->a, "\1\0\0\0\0\0\0\0abc", 11, &at), 0);
	assert_int_equal(elems_heap_add(&p->b, "\2\0\0\0\0\0\0\0abc", 11, &at), 0);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 1);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, NULL), 0);
	p->b.heap.data[10] = 'd';
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
	p->b.fixed.data[8] = 0xff; /* longer than the heap */
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
	memset(p->b.fixed.data, 0, 12);
	assert_int_equal(elems_diff(t, 1, &p->a, &p->b, map), 0);
}

static void unset_elements_are_zeros(void **state)
{
	const uint64_t huge = UINT64_C(1) << 60;
	struct pair *p = *state;
	const struct dtype *t = dtype_integer(p->arena, 4, true, false, NULL);
	set(&p->a, "\1\0\0\0\0\0\0\0", 8);
	set(&p->b, "\1\0\0\0", 4);
	assert_int_equal(diff(p, t, huge), huge);
	p->a.fixed.data[7] = 1;
	assert_int_equal(diff(p, t, huge), 1);
}

/* No time for each element of a long repetition. */
static void repeated_elements(void **state)
{
	const uint64_t n = UINT64_C(1) << 58;
	struct pair *p = *state;
	const struct dtype *t = dtype_integer(p->arena, 4, true, false, NULL);
	set(&p->a, "\1\0\0\0\2\0\0\0", 8);
	set(&p->b, "\1\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0", 24);
	p->a.period = p->b.period = 8;
	p->a.repeated = 4 * n - 8;
	p->b.repeated = 4 * n - 24;
	assert_int_equal(diff(p, t, n), n);
	p->b.fixed.data[20] = 3; /* the pattern of b is 1, 3 */
	assert_int_equal(diff(p, t, n), 5);
	p->b.fixed.data[20] = 2;
	p->b.repeated -= 4; /* the last element of b is unset */
	assert_int_equal(diff(p, t, n), n - 1);
	p->a.repeated -= 8; /* the last but one of a, too */
	assert_int_equal(diff(p, t, n), n - 2);
}

static void identical_values(void **state)
{
	static const uint32_t map[] = {4, OBJECT_NONE};
	struct pair *p = *state;
	const struct dtype *f = dtype_ieee(p->arena, 4, false, NULL);
	const struct dtype *s =
		dtype_string(p->arena, 4, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	const struct dtype *r = dtype_reference(p->arena, DTYPE_REF_OBJECT, NULL);
	set(&p->a, "\1\0\xc0\x7f", 4); /* NaNs */
	set(&p->b, "\1\0\xc0\x7f", 4);
	assert_true(elems_identical(f, 1, &p->a, &p->b, NULL));
	set(&p->b, "\2\0\xc0\x7f", 4);
	assert_int_equal(diff(p, f, 1), 1);
	assert_false(elems_identical(f, 1, &p->a, &p->b, NULL));
	set(&p->a, "ab\0c", 4);
	set(&p->b, "ab\0d", 4);
	assert_int_equal(diff(p, s, 1), 1);
	assert_false(elems_identical(s, 1, &p->a, &p->b, NULL));
	set(&p->a, "\1\0\0\0\0\0\0\0", 8);
	set(&p->b, "\5\0\0\0\0\0\0\0", 8);
	assert_true(elems_identical(r, 1, &p->a, &p->b, map));
	set(&p->a, "\2\0\0\0\0\0\0\0", 8); /* without a counterpart */
	set(&p->b, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(elems_diff(r, 1, &p->a, &p->b, map), 1);
	assert_false(elems_identical(r, 1, &p->a, &p->b, map));
	assert_true(elems_identical(r, 1, &p->b, &p->b, map));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(nans_are_equal, setup, teardown),
		cmocka_unit_test_setup_teardown(big_endian_nans_are_equal, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_end_at_their_nul, setup, teardown),
		cmocka_unit_test_setup_teardown(gaps_of_compounds_do_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(sequences, setup, teardown),
		cmocka_unit_test_setup_teardown(nested_sequences, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_items_with_slots_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(items_outside_of_the_heap_are_different, setup,
						teardown),
		cmocka_unit_test_setup_teardown(references_follow_the_map, setup, teardown),
		cmocka_unit_test_setup_teardown(selections, setup, teardown),
		cmocka_unit_test_setup_teardown(unset_elements_are_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(repeated_elements, setup, teardown),
		cmocka_unit_test_setup_teardown(identical_values, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
