/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of chunk objects: references, sequences, bytes after the last element, damage. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <codec/chunk.h>

#include "decode_elems.h"

struct fixture {
	struct arena *arena;
	const struct dtype *i16, *i32, *text, *ref, *region;
	const struct dtype *ints;     /* vlen of i16 */
	const struct dtype *refs;     /* vlen of references */
	const struct dtype *nested;   /* vlen of vlen of i16 */
	const struct dtype *texts;    /* array of 2 vlen strings */
	const struct dtype *row;      /* compound {i16, text, ref, ints} */
	const struct dtype *vlen_row; /* vlen of compound {i16, text} */
};

static const struct dtype *compound(struct arena *a, uint32_t n, const struct dtype *const *types)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct dtype_member m[4] = {0};
	for (uint32_t i = 0; i < n; i++) {
		m[i].name = names[i];
		m[i].type = types[i];
	}
	return dtype_compound(a, n, m, 0, NULL);
}

static int setup(void **state)
{
	static struct fixture f;
	struct arena *a = f.arena = arena_new(1 << 20);
	const uint32_t two[] = {2};
	f.i16 = dtype_integer(a, 2, true, true, NULL);
	f.i32 = dtype_integer(a, 4, true, false, NULL);
	f.text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	f.ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	f.region = dtype_reference(a, DTYPE_REF_REGION, NULL);
	f.ints = dtype_vlen(a, f.i16, NULL);
	f.refs = dtype_vlen(a, f.ref, NULL);
	f.nested = dtype_vlen(a, f.ints, NULL);
	f.texts = dtype_array(a, f.text, 1, two, NULL);
	const struct dtype *const row[] = {f.i16, f.text, f.ref, f.ints};
	f.row = compound(a, 4, row);
	const struct dtype *const pair[] = {f.i16, f.text};
	f.vlen_row = dtype_vlen(a, compound(a, 2, pair), NULL);
	*state = &f;
	return f.row && f.vlen_row && f.texts && f.nested && f.refs && f.region ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->arena);
	return 0;
}

/* "datasets/d-N" is object N. */
static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	++*(unsigned int *)ctx;
	if (n < 12 || memcmp(text, "datasets/d-", 11) != 0)
		return 0;
	return (uint64_t)(text[11] - '0') + 1;
}

static int decode(const struct dtype *t, uint64_t nelems, const void *bytes, size_t n,
		  struct elems *out, struct err *err)
{
	unsigned int calls = 0;
	const struct pipeline none = {0};
	const struct object_resolver resolver = {.resolve = resolve, .ctx = &calls};
	struct codec_plan plan;
	const struct codec_chunk c = {
		.chain = &plan.chain, .max_bytes = 1 << 20, .resolver = &resolver};
	codec_plan_object(&plan, t, nelems, &none, OBJECT_SHUFFLED, NULL);
	struct bytes stored = {0};
	assert_int_equal(bytes_append(&stored, bytes, n), 0);
	int rc = decode_elems(&c, &stored, out, err);
	bytes_release(&stored);
	return rc;
}

static void good(const struct dtype *t, uint64_t nelems, const void *bytes, size_t n,
		 struct elems *out)
{
	struct err err = ERR_INIT;
	if (decode(t, nelems, bytes, n, out, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(out->fixed.len, nelems * t->size);
}

static void bad(const struct dtype *t, uint64_t nelems, const void *bytes, size_t n,
		const char *word)
{
	struct elems out;
	struct err err = ERR_INIT;
	int rc = decode(t, nelems, bytes, n, &out, &err);
	if (rc != -EIO || !strstr(err.msg, word))
		fail_msg("%d \"%s\" instead of \"%s\"", rc, err.msg, word);
	assert_null(out.fixed.data);
	assert_null(out.heap.data);
}

static void expect_items(const struct elems *e, const uint8_t *slot, uint32_t count,
			 const void *items, size_t n)
{
	struct elems_vlen v = elems_get_vlen(slot);
	assert_int_equal(v.count, count);
	assert_int_equal(v.offset % 8, 0);
	assert_true(v.offset + n <= e->heap.len);
	assert_memory_equal(e->heap.data + v.offset, items, n);
}

static void sizes(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(codec_stored_elem_size(f->i32), 4);
	assert_int_equal(codec_stored_elem_size(f->ref), 48);
	assert_int_equal(codec_stored_elem_size(f->region), 48);
	assert_int_equal(codec_stored_elem_size(f->text), 0);
	assert_int_equal(codec_stored_elem_size(f->row), 0);
	const struct dtype *const members[] = {f->i16, f->ref};
	const struct dtype *pair = compound(f->arena, 2, members);
	const uint32_t dims[] = {3, 5};
	assert_int_equal(codec_stored_elem_size(pair), 50);
	assert_int_equal(codec_stored_elem_size(dtype_array(f->arena, pair, 2, dims, NULL)), 750);
}

static void references_become_numbers(void **state)
{
	struct fixture *f = *state;
	char stored[4][48] = {"datasets/d-6", "", "groups/g-1", "datasets/d-0"};
	static const uint8_t numbers[32] = {7, [24] = 1};
	struct elems out;
	good(f->ref, 4, stored, sizeof(stored), &out);
	assert_memory_equal(out.fixed.data, numbers, sizeof(numbers));
	elems_release(&out);
	good(f->region, 4, stored, sizeof(stored), &out);
	for (size_t i = 0; i < out.fixed.len; i++)
		assert_int_equal(out.fixed.data[i], 0);
	elems_release(&out);
	bad(f->ref, 4, stored, sizeof(stored) - 1, "191 bytes, its shape needs 192");
	/* A reference of 48 bytes without a NUL is read to its end and no further. */
	memset(stored[0], 'x', 48);
	good(f->ref, 1, stored, 48, &out);
	elems_release(&out);
}

static void sequences(void **state)
{
	struct fixture *f = *state;
	static const uint8_t raw[] = {4, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 2, 0, 0, 0, 5, 6};
	struct elems out;
	good(f->ints, 3, raw, sizeof(raw), &out);
	expect_items(&out, out.fixed.data, 2, "\1\2\3\4", 4);
	expect_items(&out, out.fixed.data + 16, 0, "", 0);
	expect_items(&out, out.fixed.data + 32, 1, "\5\6", 2);
	elems_release(&out);
	good(f->text, 3, raw, sizeof(raw), &out);
	expect_items(&out, out.fixed.data, 4, "\1\2\3\4", 4);
	/* A count of 0 is the empty string, not an unset value. */
	assert_true(elems_get_vlen(out.fixed.data + 16).is_set);
	elems_release(&out);
}

static void sequences_of_references(void **state)
{
	struct fixture *f = *state;
	uint8_t raw[4 + 96] = {96, 0, 0, 0};
	memcpy(raw + 4, "datasets/d-3", 12);
	struct elems out;
	good(f->refs, 1, raw, sizeof(raw), &out);
	expect_items(&out, out.fixed.data, 2, "\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	elems_release(&out);
	raw[0] = 95;
	bad(f->refs, 1, raw, sizeof(raw) - 1, "truncated");
}

static void sequences_nest(void **state)
{
	struct fixture *f = *state;
	static const uint8_t raw[] = {14, 0, 0, 0, 2, 0, 0, 0, 7, 8, 4, 0, 0, 0, 1, 2, 3, 4};
	struct elems out;
	good(f->nested, 1, raw, sizeof(raw), &out);
	struct elems_vlen v = elems_get_vlen(out.fixed.data);
	assert_int_equal(v.count, 2);
	expect_items(&out, out.heap.data + v.offset, 1, "\7\10", 2);
	expect_items(&out, out.heap.data + v.offset + 16, 2, "\1\2\3\4", 4);
	elems_release(&out);

	static const uint8_t rows[] = {13, 0, 0, 0, 1, 1, 1, 0, 0, 0, 'x', 2, 2, 0, 0, 0, 0};
	good(f->vlen_row, 1, rows, sizeof(rows), &out);
	v = elems_get_vlen(out.fixed.data);
	assert_int_equal(v.count, 2);
	assert_memory_equal(out.heap.data + v.offset, "\1\1", 2);
	expect_items(&out, out.heap.data + v.offset + 2, 1, "x", 1);
	assert_memory_equal(out.heap.data + v.offset + 18, "\2\2", 2);
	elems_release(&out);
}

static void members_follow_each_other(void **state)
{
	struct fixture *f = *state;
	uint8_t raw[2 + 4 + 3 + 48 + 4 + 2] = {9, 8, 3, 0, 0, 0, 'a', 'b', 'c'};
	memcpy(raw + 9, "datasets/d-1", 12);
	memcpy(raw + 57, "\2\0\0\0\6\6", 6);
	struct elems out;
	good(f->row, 1, raw, sizeof(raw), &out);
	assert_int_equal(f->row->size, 2 + 16 + 8 + 16);
	assert_memory_equal(out.fixed.data, "\11\10", 2);
	expect_items(&out, out.fixed.data + 2, 3, "abc", 3);
	assert_memory_equal(out.fixed.data + 18, "\2\0\0\0\0\0\0\0", 8);
	expect_items(&out, out.fixed.data + 26, 1, "\6\6", 2);
	elems_release(&out);
}

static void zeros_behind_arrays_of_sequences(void **state)
{
	struct fixture *f = *state;
	uint8_t raw[40] = {1, 0, 0, 0, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'b'};
	struct elems out;
	for (size_t n = 18; n <= 26; n++) {
		good(f->texts, 2, raw, n, &out);
		expect_items(&out, out.fixed.data, 1, "a", 1);
		expect_items(&out, out.fixed.data + 48, 1, "b", 1);
		elems_release(&out);
	}
	bad(f->texts, 2, raw, 27, "9 bytes after the last element");
	raw[20] = 1;
	bad(f->texts, 2, raw, 26, "8 bytes after the last element");
	bad(f->text, 4, raw, 22, "4 bytes after the last element");

	/* An array of two arrays is three arrays. */
	const uint32_t two[] = {2};
	const struct dtype *arrays = dtype_array(f->arena, f->texts, 1, two, NULL);
	uint8_t zeros[4 * 4 + 3 * 4 + 1] = {0};
	good(arrays, 1, zeros, sizeof(zeros) - 1, &out);
	elems_release(&out);
	bad(arrays, 1, zeros, sizeof(zeros), "13 bytes after the last element");
}

static void malformed(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *name;
		uint8_t raw[12];
		size_t n;
		uint64_t nelems;
		bool ints;
		const char *word;
	} cases[] = {
		{"empty", {0}, 0, 1, false, "0 bytes, 1 elements need at least 4"},
		{"count is truncated", {0, 0, 0, 0, 1}, 5, 2, false, "need at least 8"},
		{"a later count is truncated", {2, 0, 0, 0, 1, 1, 0, 0}, 8, 2, false, "are left"},
		{"count over the remaining bytes",
		 {5, 0, 0, 0, 1, 2, 3, 4},
		 8,
		 1,
		 false,
		 "states 5 bytes"},
		{"count negative", {255, 255, 255, 255}, 4, 1, false, "states -1 bytes"},
		{"half an item",
		 {3, 0, 0, 0, 1, 2, 3},
		 7,
		 1,
		 true,
		 "3 bytes are not a multiple of the item size 2"},
		{"one too many", {1, 0, 0, 0, 'a', 'b'}, 6, 1, false, "after the last"},
		{"more elements than bytes", {0}, 12, UINT64_MAX / 2, false, "12 bytes"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].name);
		bad(cases[i].ints ? f->ints : f->text, cases[i].nelems, cases[i].raw, cases[i].n,
		    cases[i].word);
	}
	static const uint8_t inner[] = {6, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4};
	bad(f->nested, 1, inner, sizeof(inner), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(references_become_numbers),
		cmocka_unit_test(sequences),
		cmocka_unit_test(sequences_of_references),
		cmocka_unit_test(sequences_nest),
		cmocka_unit_test(members_follow_each_other),
		cmocka_unit_test(zeros_behind_arrays_of_sequences),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
