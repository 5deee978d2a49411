/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global heap collections of chunks: each comes once, also those of nested elements, of members
 * of compounds, and of region references.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <h5/gheap.h>
#include <h5file/h5file.h>

#include "data_file.h"
#include "small_file.h"

enum { COLLECTION = 4096, MAX = 8 };

/* A collection with one item. */
static uint64_t put_item(struct small_file *s, const void *item, size_t n)
{
	struct h5_gheap_writer w;
	uint64_t at = (s->n + 7) & ~(size_t)7, addr;
	uint32_t index;
	h5_gheap_init(&w, at, COLLECTION);
	assert_int_equal(h5_gheap_add(&w, item, n, &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	assert_int_equal(small_put(s, w.out.data, w.out.len), at);
	h5_gheap_release(&w);
	return at;
}

/* Writes a vlen element of the first item of a collection. */
static void put_elem(uint8_t *to, uint32_t count, uint64_t heap)
{
	struct emit e = emit_to(to, DTYPE_VLEN_SIZE);
	emit_u32(&e, count);
	emit_u64(&e, heap);
	emit_u32(&e, 1);
}

static void put_region(uint8_t *to, uint64_t heap)
{
	struct emit e = emit_to(to, DTYPE_REGREF_SIZE);
	emit_u64(&e, heap);
	emit_u32(&e, 1);
}

struct seen {
	uint64_t addr[MAX];
	size_t n;
	int result;
};

static int see(void *ctx, uint64_t addr, uint64_t size)
{
	struct seen *s = ctx;
	assert_true(s->n < MAX);
	assert_int_equal(size, COLLECTION);
	s->addr[s->n++] = addr;
	return s->result;
}

/* The collections of a dataset of n elements in one chunk. */
static int visit(struct small_file *s, const struct dtype *t, const void *data, uint64_t n,
		 struct seen *seen)
{
	const struct dspace space = small_vector(n);
	const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS,
				    .addr = small_put(s, data, (size_t)n * t->size),
				    .size = n * t->size};
	const struct h5file_chunk chunk = {.addr = l.addr, .size = l.size};
	struct bytes stored = {0};
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_object(s);
	small_dataset(s, t, &space, &l, NULL);
	const uint64_t d = small_end(s);
	small_object(s);
	small_group(s, false);
	small_link(s, "d", d);
	small_finish(s, small_end(s));
	assert_int_equal(h5file_open(&s->src.source, NULL, &f, &err), 0);
	assert_int_equal(h5file_chunk_read(f, &chunk, &stored, &err), 0);
	int rc = h5file_chunk_heaps(f, 1, &chunk, &stored, see, seen, &err);
	assert_int_equal(stored.len, l.size); /* not taken over */
	assert_memory_equal(stored.data, data, l.size);
	bytes_release(&stored);
	h5file_close(f);
	small_release(s);
	return rc;
}

static void strings(void **state)
{
	static struct small_file s;
	uint8_t raw[6 * DTYPE_VLEN_SIZE] = {0};
	struct seen seen = {.n = 0};
	small_begin(&s);
	const uint64_t a = put_item(&s, "one", 3), b = put_item(&s, "two", 3);
	put_elem(raw, 3, b);
	put_elem(raw + 16, 3, a);
	put_elem(raw + 32, 2, b);
	put_elem(raw + 48, 3, a);
	put_elem(raw + 64, 0, 12345); /* empty: the reference does not count */
	const struct dtype *t =
		dtype_vlen_string(s.arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	assert_int_equal(visit(&s, t, raw, 6, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.addr[0], b);
	assert_int_equal(seen.addr[1], a);
}

/* A compound with an array of sequences of sequences, and a region reference. */
static void nested(void **state)
{
	static struct small_file s;
	uint8_t element[48] = {0}, items[32] = {0};
	const uint32_t two = 2;
	struct seen seen = {.n = 0};
	small_begin(&s);
	const uint64_t inner = put_item(&s, "abcd", 4), other = put_item(&s, "efgh", 4);
	put_elem(items, 2, inner);
	put_elem(items + 16, 2, other);
	const uint64_t outer = put_item(&s, items, sizeof(items));
	const uint64_t region = put_item(&s, "selection", 9);
	put_elem(element, 2, outer);
	put_elem(element + 16, 1, outer);
	put_region(element + 32, region);
	const struct dtype *u16 = dtype_integer(s.arena, 2, false, false, NULL);
	const struct dtype *lists = dtype_vlen(s.arena, dtype_vlen(s.arena, u16, NULL), NULL);
	const struct dtype_member members[] = {
		{"lists", 0, dtype_array(s.arena, lists, 1, &two, NULL)},
		{"region", 32, dtype_reference(s.arena, DTYPE_REF_REGION, NULL)},
		{"n", 44, u16}};
	const struct dtype *t = dtype_compound(s.arena, 3, members, sizeof(element), NULL);
	assert_non_null(t);
	assert_int_equal(visit(&s, t, element, 1, &seen), 0);
	assert_int_equal(seen.n, 4);
	assert_int_equal(seen.addr[0], outer);
	assert_int_equal(seen.addr[1], inner);
	assert_int_equal(seen.addr[2], other);
	assert_int_equal(seen.addr[3], region);
}

static void without_heaps(void **state)
{
	static struct small_file s;
	const uint64_t refs[] = {96, 0};
	struct seen seen = {.n = 0};
	small_begin(&s);
	assert_int_equal(
		visit(&s, dtype_reference(s.arena, DTYPE_REF_OBJECT, NULL), refs, 2, &seen), 0);
	small_begin(&s);
	assert_int_equal(visit(&s, dtype_integer(s.arena, 8, false, false, NULL), refs, 2, &seen),
			 0);
	assert_int_equal(seen.n, 0);
}

static void the_result_of_the_callback_ends_it(void **state)
{
	static struct small_file s;
	uint8_t raw[2 * DTYPE_VLEN_SIZE];
	struct seen seen = {.result = 5};
	small_begin(&s);
	put_elem(raw, 3, put_item(&s, "one", 3));
	put_elem(raw + 16, 3, put_item(&s, "two", 3));
	const struct dtype *t =
		dtype_vlen_string(s.arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	assert_int_equal(visit(&s, t, raw, 2, &seen), 5);
	assert_int_equal(seen.n, 1);
}

/* No collection at the address; an address outside of the file; an item of a nested element that
 * is too short. */
static void damaged(void **state)
{
	static const uint64_t shifts[] = {8, 1 << 30, 0};
	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		static struct small_file s;
		uint8_t elem[DTYPE_VLEN_SIZE];
		struct seen seen = {.n = 0};
		small_begin(&s);
		put_elem(elem, 3, put_item(&s, "one", 3) + shifts[i]);
		const struct dtype *u8 = dtype_integer(s.arena, 1, false, false, NULL);
		const struct dtype *t = dtype_vlen(s.arena, dtype_vlen(s.arena, u8, NULL), NULL);
		assert_int_equal(visit(&s, t, elem, 1, &seen), -EIO);
	}
}

static int take(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	*(struct h5file_chunk *)ctx = *chunk;
	return 0;
}

/* tests/data/sizes4.h5 has a string, and addresses of 4 bytes, which do not count the user block.
 */
static void addresses_of_four_bytes(void **state)
{
	enum { VLEN = 12 };
	auto_bytes struct bytes b = data_file("sizes4.h5");
	struct mem_src src;
	struct seen seen = {.n = 0};
	struct bytes stored = {0};
	struct h5file *f = NULL;
	uint32_t text = 0;
	mem_src_init(&src, b.data, b.len);
	assert_int_equal(h5file_open(&src.source, NULL, &f, NULL), 0);
	while (strcmp(tree_object(h5file_tree(f), text)->o.id, "/text") != 0)
		assert_true(++text < tree_numbers(h5file_tree(f)));
	struct h5file_chunk chunk = {.size = 0};
	assert_int_equal(h5file_chunks(f, text, 0, 1, take, &chunk, NULL), 0);
	assert_int_equal(chunk.size, VLEN);
	assert_int_equal(h5file_chunk_read(f, &chunk, &stored, NULL), 0);
	assert_int_equal(h5file_chunk_heaps(f, text, &chunk, &stored, see, &seen, NULL), 0);
	assert_int_equal(seen.n, 1);
	assert_memory_equal(b.data + h5file_base(f) + seen.addr[0], "GCOL", 4);
	bytes_release(&stored);
	h5file_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings),
		cmocka_unit_test(nested),
		cmocka_unit_test(without_heaps),
		cmocka_unit_test(the_result_of_the_callback_ends_it),
		cmocka_unit_test(damaged),
		cmocka_unit_test(addresses_of_four_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
