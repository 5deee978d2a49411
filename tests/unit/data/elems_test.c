/* SPDX-License-Identifier: Apache-2.0 */
/* Elements: vlens, heap, repeated bytes, and the walk over all vlens and references. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <data/elems.h>

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

/* A visitor that records its calls as text, and can stop the walk. */
struct seen {
	char text[1024];
	size_t n;
	int stop_at, calls;
};

static int see_vlen(void *ctx, const struct dtype *t, uint8_t *elem, uint8_t *items,
		    size_t items_len, struct err *err)
{
	struct seen *s = ctx;
	if (!t->vlen.is_string)
		s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "[%u:%zu]",
					 elems_get_vlen(elem).count, items_len);
	else
		s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "'%.*s'",
					 (int)items_len, items ? (const char *)items : "");
	return ++s->calls == s->stop_at ? 42 : 0;
}

static int see_reference(void *ctx, const struct dtype *t, uint8_t *elem, struct err *err)
{
	struct seen *s = ctx;
	s->n += (size_t)snprintf(s->text + s->n, sizeof(s->text) - s->n, "%c%u",
				 t->reference.kind == DTYPE_REF_OBJECT ? 'o' : 'r', elem[0]);
	return ++s->calls == s->stop_at ? 42 : 0;
}

static int walk(const struct dtype *t, struct elems *e, struct seen *seen, struct err *err)
{
	const struct elems_visitor v = {see_vlen, see_reference, seen};
	return elems_visit(t, e->fixed.data, e->fixed.len / t->size, e->heap.data, e->heap.len, &v,
			   err);
}

static uint8_t *add_fixed(struct elems *e, size_t n)
{
	assert_int_equal(bytes_append_zero(&e->fixed, n), 0);
	return e->fixed.data + e->fixed.len - n;
}

static void add_vlen(struct elems *e, uint32_t count, const void *items, size_t len)
{
	uint64_t offset;
	assert_int_equal(elems_heap_add(e, items, len, &offset), 0);
	elems_put_vlen(add_fixed(e, DTYPE_VLEN_SIZE), count, offset);
}

static void slots_have_the_documented_layout(void **state)
{
	uint8_t elem[16];
	struct elems_vlen v;
	memset(elem, 0xee, sizeof(elem));
	elems_put_vlen(elem, 0x04030201, UINT64_C(0x1817161514131211));
	assert_memory_equal(elem, "\x01\x02\x03\x04\1\0\0\0\x11\x12\x13\x14\x15\x16\x17\x18", 16);
	v = elems_get_vlen(elem);
	assert_int_equal(v.count, 0x04030201);
	assert_true(v.offset == UINT64_C(0x1817161514131211));
	assert_true(v.is_set);
	elems_put_vlen(elem, 0, 99);
	assert_memory_equal(elem, "\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_true(elems_get_vlen(elem).is_set);
	memset(elem, 0, sizeof(elem));
	assert_false(elems_get_vlen(elem).is_set);
}

/* The empty string has an object in the file. An empty sequence and a vlen without a value have
 * none.
 */
static void only_strings_have_empty_objects(void **state)
{
	struct arena *a = *state;
	const struct dtype *str = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	const struct dtype *seq = dtype_vlen(a, dtype_integer(a, 4, true, false, NULL), NULL);
	uint8_t elem[DTYPE_VLEN_SIZE] = {0};
	assert_false(elems_vlen_has_object(str, elem));
	assert_false(elems_vlen_has_object(seq, elem));
	elems_put_vlen(elem, 0, 0);
	assert_true(elems_vlen_has_object(str, elem));
	assert_false(elems_vlen_has_object(seq, elem));
	elems_put_vlen(elem, 1, 0);
	assert_true(elems_vlen_has_object(str, elem));
	assert_true(elems_vlen_has_object(seq, elem));
}

static void heap_is_aligned(void **state)
{
	struct elems e = {0};
	uint64_t offset = 99;
	assert_int_equal(elems_heap_add(&e, NULL, 0, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(e.heap.len, 0);
	assert_int_equal(elems_heap_add(&e, "abc", 3, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(elems_heap_add(&e, "0123456789", 10, &offset), 0);
	assert_int_equal(offset, 8);
	assert_int_equal(elems_heap_add(&e, "x", 1, &offset), 0);
	assert_int_equal(offset, 24);
	assert_int_equal(e.heap.len, 25);
	assert_memory_equal(e.heap.data,
			    "abc\0\0\0\0\0"
			    "0123456789\0\0\0\0\0\0x",
			    25);
	assert_int_equal(elems_heap_add(&e, "x", (UINT64_C(1) << 32) - 31, &offset), -E2BIG);
	assert_int_equal(elems_heap_add(&e, "x", SIZE_MAX, &offset), -E2BIG);
	assert_int_equal(e.heap.len, 25);
	elems_release(&e);
	assert_null(e.heap.data);
}

/* The heap may have 4 GiB. The memory is reserved, but only its last page is used. */
static void heap_is_full(void **state)
{
	const size_t most = (size_t)1 << 32;
	uint64_t offset = 0;
	uint8_t *all = mmap(NULL, most, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct elems e = {.heap = {.data = all, .len = most - 15, .cap = most}};
	assert_ptr_not_equal(all, MAP_FAILED);
	assert_int_equal(elems_heap_add(&e, "123456789", 9, &offset), -E2BIG);
	assert_int_equal(e.heap.len, most - 15);
	assert_int_equal(elems_heap_add(&e, "12345678", 8, &offset), 0);
	assert_int_equal(offset, most - 8);
	assert_int_equal(e.heap.len, most);
	assert_memory_equal(all + offset, "12345678", 8);
	assert_int_equal(elems_heap_add(&e, "x", 1, &offset), -E2BIG);
	munmap(all, most);
}

static void types_without_slots_are_not_walked(void **state)
{
	const struct dtype *t = dtype_integer(*state, 4, true, false, NULL);
	/* The walk does not read the elements: the pointer is NULL. */
	assert_int_equal(elems_visit(t, NULL, UINT64_MAX, NULL, 0, NULL, NULL), 0);
}

static void slots_are_visited_in_order(void **state)
{
	static const uint32_t two[] = {2};
	struct arena *a = *state;
	const struct dtype *str = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	const struct dtype *ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	const struct dtype *i4 = dtype_integer(a, 4, true, false, NULL);
	const struct dtype_member m[] = {
		{"i", 0, i4}, {"r", 0, ref}, {"s", 0, dtype_array(a, str, 1, two, NULL)}};
	const struct dtype *t = dtype_compound(a, 3, m, 0, NULL);
	struct elems e = {0};
	struct seen seen = {0};
	for (uint8_t i = 1; i <= 2; i++) {
		add_fixed(&e, 4 + 8)[4] = i;
		add_vlen(&e, 3, i == 1 ? "abc" : "def", 3);
		add_vlen(&e, 0, NULL, 0);
	}
	assert_int_equal(walk(t, &e, &seen, NULL), 0);
	assert_string_equal(seen.text, "o1'abc'''o2'def'''");
	/* The result of a callback stops the walk. */
	for (int i = 1; i <= 6; i++) {
		seen = (struct seen){.stop_at = i};
		assert_int_equal(walk(t, &e, &seen, NULL), 42);
		assert_int_equal(seen.calls, i);
	}
	elems_release(&e);
}

static void items_are_visited_before_their_slot(void **state)
{
	struct arena *a = *state;
	const struct dtype *str = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	const struct dtype *t = dtype_vlen(a, dtype_vlen(a, str, NULL), NULL);
	struct elems e = {0}, words = {0}, lists = {0};
	struct seen seen = {0};
	/* [["a", "bc"], ["d"]]: the walk visits the innermost items first. */
	add_vlen(&words, 1, "a", 1);
	add_vlen(&words, 2, "bc", 2);
	add_vlen(&words, 1, "d", 1);
	assert_int_equal(bytes_append(&e.heap, words.heap.data, words.heap.len), 0);
	lists.heap = e.heap;
	add_vlen(&lists, 2, words.fixed.data, 32);
	add_vlen(&lists, 1, words.fixed.data + 32, 16);
	e.heap = lists.heap;
	add_vlen(&e, 2, lists.fixed.data, 32);
	assert_int_equal(walk(t, &e, &seen, NULL), 0);
	assert_string_equal(seen.text, "'a''bc'[2:32]'d'[1:16][2:32]");

	bytes_release(&lists.fixed);
	elems_release(&words);
	elems_release(&e);
}

static void items_outside_of_the_heap_are_refused(void **state)
{
	static const struct {
		const char *name;
		uint32_t count;
		uint64_t offset;
		int result;
	} rows[] = {
		{"all", 6, 0, 0},
		{"none", 0, 0, 0},
		{"none, whatever the offset", 0, UINT64_MAX, 0},
		{"last", 2, 16, 0},
		{"one too many", 7, 0, -EIO},
		{"last and one more", 3, 16, -EIO},
		{"at the end", 1, 24, -EIO},
		{"after the end", 1, 32, -EIO},
		{"end wraps", 2, UINT64_MAX - 7, -EIO},
		{"count wraps 32 bits", 0x40000001, 0, -EIO},
		{"largest", UINT32_MAX, 0, -EIO},
		{"not aligned", 1, 4, -EIO},
	};
	const struct dtype *t =
		dtype_vlen(*state, dtype_integer(*state, 4, true, false, NULL), NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct elems e = {0};
		struct seen seen = {0};
		struct err err = ERR_INIT;
		int r;
		assert_int_equal(bytes_append_zero(&e.heap, 24), 0);
		elems_put_vlen(add_fixed(&e, 16), rows[i].count, 0);
		memcpy(e.fixed.data + 8, &rows[i].offset, 8);
		r = walk(t, &e, &seen, &err);
		if (r != rows[i].result)
			fail_msg("%s: %d (%s)", rows[i].name, r, err.msg);
		assert_int_equal(err.code, r);
		assert_int_equal(seen.calls, r == 0);
		elems_release(&e);
	}
}

static void selections_outside_of_the_heap_are_refused(void **state)
{
	static const struct {
		const char *name;
		uint64_t offset_and_one;
		uint32_t len;
		int result;
	} rows[] = {
		{"null", 0, 0, 0},
		{"all", 1, 24, 0},
		{"last", 17, 8, 0},
		{"too long", 1, 25, -EIO},
		{"after the end", 33, 8, -EIO},
		{"wraps", UINT64_MAX - 6, 16, -EIO},
		{"not aligned", 2, 8, -EIO},
		{"no room for the object", 1, 7, -EIO},
	};
	const struct dtype *t = dtype_reference(*state, DTYPE_REF_REGION, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct elems e = {0};
		struct seen seen = {0};
		struct err err = ERR_INIT;
		uint8_t *elem = add_fixed(&e, 12);
		int r;
		assert_int_equal(bytes_append_zero(&e.heap, 24), 0);
		memcpy(elem, &rows[i].offset_and_one, 8);
		memcpy(elem + 8, &rows[i].len, 4);
		r = walk(t, &e, &seen, &err);
		if (r != rows[i].result)
			fail_msg("%s: %d (%s)", rows[i].name, r, err.msg);
		assert_int_equal(seen.calls, r == 0);
		elems_release(&e);
	}
}

static void plain_items_may_be_shared(void **state)
{
	const struct dtype *t =
		dtype_vlen_string(*state, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	struct elems e = {0};
	struct seen seen = {0};
	assert_int_equal(bytes_append(&e.heap, "fill", 4), 0);
	for (int i = 0; i < 3; i++)
		elems_put_vlen(add_fixed(&e, 16), 4, 0);
	assert_int_equal(walk(t, &e, &seen, NULL), 0);
	assert_string_equal(seen.text, "'fill''fill''fill'");
	elems_release(&e);
}

/* The 16 vlens of each level have the same 16 vlens as their items: without a limit the walk would
 * make 16^20 visits. */
static void nested_items_cannot_be_shared(void **state)
{
	enum { LEVELS = 20, WIDTH = 16, LEVEL_SIZE = WIDTH * DTYPE_VLEN_SIZE };
	const struct dtype *t = dtype_integer(*state, 1, false, false, NULL);
	struct elems e = {0};
	const struct elems_visitor nothing = {0};
	struct err err = ERR_INIT;
	for (int i = 0; i < LEVELS; i++)
		assert_non_null(t = dtype_vlen(*state, t, NULL));
	assert_int_equal(bytes_append_zero(&e.heap, LEVELS * LEVEL_SIZE), 0);
	for (uint64_t level = 0; level + 1 < LEVELS; level++)
		for (int i = 0; i < WIDTH; i++)
			elems_put_vlen(e.heap.data + level * LEVEL_SIZE + i * DTYPE_VLEN_SIZE,
				       WIDTH, (level + 1) * LEVEL_SIZE);
	elems_put_vlen(add_fixed(&e, 16), WIDTH, 0);
	assert_int_equal(elems_visit(t, e.fixed.data, 1, e.heap.data, e.heap.len, &nothing, &err),
			 -EIO);
	assert_string_equal(err.msg, "nested variable-length elements share items");
	elems_release(&e);
}

static void callbacks_may_be_missing(void **state)
{
	struct arena *a = *state;
	const struct dtype *t = dtype_vlen(a, dtype_reference(a, DTYPE_REF_OBJECT, NULL), NULL);
	struct elems e = {0};
	struct seen seen = {0};
	const struct elems_visitor refs = {.reference = see_reference, .ctx = &seen};
	const struct elems_visitor vlens = {.vlen = see_vlen, .ctx = &seen};
	add_vlen(&e, 2, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0", 16);
	assert_int_equal(elems_visit(t, e.fixed.data, 1, e.heap.data, e.heap.len, &refs, NULL), 0);
	assert_int_equal(elems_visit(t, e.fixed.data, 1, e.heap.data, e.heap.len, &vlens, NULL), 0);
	assert_string_equal(seen.text, "o5o6[2:16]");
	elems_release(&e);
}

/* Ranges of a value with fixed bytes, repetitions and zeros: every offset and every length. */
static void values_are_read_by_range(void **state)
{
	static const struct {
		size_t fixed, period, repeated;
	} cases[] = {{0, 0, 0}, {5, 0, 0}, {5, 1, 9}, {5, 5, 13}, {7, 3, 1}, {7, 3, 11}};
	enum { LEN = 30 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elems e = {.period = (uint32_t)cases[i].period,
				  .repeated = cases[i].repeated};
		uint8_t expected[LEN] = {0}, got[LEN + 1];
		for (size_t k = 0; k < cases[i].fixed; k++)
			expected[k] = (uint8_t)(k + 1);
		for (size_t k = cases[i].fixed; k < cases[i].fixed + cases[i].repeated; k++)
			expected[k] = expected[k - cases[i].period];
		assert_int_equal(bytes_append(&e.fixed, expected, cases[i].fixed), 0);
		assert_int_equal(elems_end(&e), cases[i].fixed + cases[i].repeated);
		for (size_t at = 0; at <= LEN; at++) {
			for (size_t n = 0; at + n <= LEN; n++) {
				memset(got, 0xee, sizeof(got));
				elems_read(&e, at, got, n);
				assert_memory_equal(got, expected + at, n);
				assert_int_equal(got[n], 0xee);
			}
		}
		elems_release(&e);
		assert_int_equal(elems_end(&e), 0);
	}
}

static void borrowed_bytes_are_not_freed(void **state)
{
	uint8_t bytes[4] = {1, 2, 3, 4}, out[6];
	struct elems e = {.fixed = {.data = bytes, .len = sizeof(bytes)}, .is_borrowed = true};
	elems_read(&e, 1, out, sizeof(out));
	assert_memory_equal(out, "\2\3\4\0\0\0", sizeof(out));
	elems_release(&e);
	assert_null(e.fixed.data);
	assert_int_equal(elems_end(&e), 0);
	assert_false(e.is_borrowed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_have_the_documented_layout),
		cmocka_unit_test(only_strings_have_empty_objects),
		cmocka_unit_test(heap_is_aligned),
		cmocka_unit_test(heap_is_full),
		cmocka_unit_test(types_without_slots_are_not_walked),
		cmocka_unit_test(slots_are_visited_in_order),
		cmocka_unit_test(items_are_visited_before_their_slot),
		cmocka_unit_test(items_outside_of_the_heap_are_refused),
		cmocka_unit_test(selections_outside_of_the_heap_are_refused),
		cmocka_unit_test(plain_items_may_be_shared),
		cmocka_unit_test(nested_items_cannot_be_shared),
		cmocka_unit_test(callbacks_may_be_missing),
		cmocka_unit_test(values_are_read_by_range),
		cmocka_unit_test(borrowed_bytes_are_not_freed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
