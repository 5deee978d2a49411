/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of attributes: strings, nested sequences, region references; heap references that are
 * damaged leave only their attribute out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include <base/cursor.h>
#include <h5/gheap.h>
#include <h5file/h5file.h>

#include "small_file.h"

enum { COLLECTION = 4096, FIRST_ITEM = 16 };

/* A collection at the current end of the file with the items "one", {5, 6, 7} of 2 bytes, and a
 * selection of the object at `object`. */
static uint64_t put_heap(struct small_file *s, uint64_t object)
{
	const uint16_t numbers[] = {5, 6, 7};
	const uint64_t region[] = {object, 0x1122334455667788};
	struct h5_gheap_writer w;
	uint64_t at = (s->n + 7) & ~(size_t)7, addr;
	uint32_t index;
	h5_gheap_init(&w, at, COLLECTION);
	assert_int_equal(h5_gheap_add(&w, "one", 3, &addr, &index, NULL), 0);
	assert_int_equal(index, 1);
	assert_int_equal(h5_gheap_add(&w, numbers, 6, &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_add(&w, region, 16, &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	assert_int_equal(small_put(s, w.out.data, w.out.len), at);
	h5_gheap_release(&w);
	return at;
}

/* Writes the bytes of a vlen element in a file. */
static void put_elem(uint8_t *to, uint32_t count, uint64_t heap, uint32_t index)
{
	struct emit e = emit_to(to, 16);
	emit_u32(&e, count);
	emit_u64(&e, heap);
	emit_u32(&e, index);
}

/* A file whose root group has the attribute "a" of n elements. */
static struct h5file *with_attribute(struct small_file *s, const struct dtype *t, uint64_t n,
				     const void *data)
{
	const struct dspace space = small_vector(n);
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_object(s);
	small_group(s, false);
	small_attr(s, "a", t, &space, data);
	small_finish(s, small_end(s));
	assert_int_equal(h5file_open(&s->src.source, NULL, &f, &err), 0);
	return f;
}

static const struct elems *value(const struct h5file *f)
{
	const struct object *root = &tree_object(h5file_tree(f), 0)->o;
	return root->nattrs ? &root->attrs[0].value : NULL;
}

static void strings(void **state)
{
	static struct small_file s;
	uint8_t raw[3 * 16] = {0};
	small_begin(&s);
	const uint64_t heap = put_heap(&s, 0);
	put_elem(raw, 3, heap, 1);
	put_elem(raw + 32, 0, heap, 1); /* an empty string, not one that is missing */
	struct h5file *f = with_attribute(
		&s, dtype_vlen_string(s.arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL), 3, raw);
	const struct elems *e = value(f);
	struct elems_vlen v = elems_get_vlen(e->fixed.data);
	assert_true(v.is_set);
	assert_int_equal(v.count, 3);
	assert_memory_equal(e->heap.data + v.offset, "one", 3);
	assert_false(elems_get_vlen(e->fixed.data + 16).is_set);
	v = elems_get_vlen(e->fixed.data + 32);
	assert_true(v.is_set);
	assert_int_equal(v.count, 0);
	assert_int_equal(h5file_problems(f), 0);
	h5file_close(f);
	small_release(&s);
}

static void sequences_in_a_compound(void **state)
{
	static struct small_file s;
	uint8_t bytes[24] = {0};
	small_begin(&s);
	const uint64_t heap = put_heap(&s, 0);
	const struct dtype *u16 = dtype_integer(s.arena, 2, false, false, NULL);
	const struct dtype_member members[] = {{"n", 0, u16},
					       {"v", 8, dtype_vlen(s.arena, u16, NULL)}};
	bytes[0] = 9;
	put_elem(bytes + 8, 3, heap, 2);
	struct h5file *f =
		with_attribute(&s, dtype_compound(s.arena, 2, members, 24, NULL), 1, bytes);
	const struct elems *e = value(f);
	const struct elems_vlen v = elems_get_vlen(e->fixed.data + 8);
	uint16_t got[3];
	assert_int_equal(e->fixed.data[0], 9);
	assert_int_equal(v.count, 3);
	memcpy(got, e->heap.data + v.offset, 6);
	assert_int_equal(got[2], 7);
	h5file_close(f);
	small_release(&s);
}

static void regions(void **state)
{
	static struct small_file s;
	uint8_t raw[24] = {0};
	small_begin(&s);
	const uint64_t numbers = small_numbers(&s, 4), heap = put_heap(&s, numbers);
	struct emit e = emit_to(raw, 12);
	emit_u64(&e, heap);
	emit_u32(&e, 3);
	const struct dspace two = small_vector(2);
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "d", numbers);
	small_attr(&s, "a", dtype_reference(s.arena, DTYPE_REF_REGION, NULL), &two, raw);
	small_finish(&s, small_end(&s));
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, &err), 0);
	const struct elems *got = value(f);
	struct cursor c = cursor_of(got->fixed.data, 24);
	const uint64_t at = cur_u64(&c);
	assert_int_equal(cur_u32(&c), 16);
	assert_int_equal(cur_u64(&c), 0); /* the second is null */
	c = cursor_of(got->heap.data + at - 1, 16);
	assert_int_equal(cur_u64(&c), 1 + 1);
	assert_int_equal(cur_u64(&c), 0x1122334455667788);
	assert_int_equal(h5file_problems(f), 0);
	h5file_close(f);
	small_release(&s);
}

/* More elements than the item has; an item that does not exist; a heap outside of the file. */
static void damaged_slots(void **state)
{
	static const struct {
		uint32_t count, index;
		uint64_t shift;
	} rows[] = {{4, 2, 0}, {UINT32_MAX, 2, 0}, {3, 9, 0}, {3, 2, 1 << 30}, {3, 2, 8}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct small_file s;
		uint8_t elem[16];
		small_begin(&s);
		const uint64_t heap = put_heap(&s, 0);
		put_elem(elem, rows[i].count, heap + rows[i].shift, rows[i].index);
		const struct dtype *u16 = dtype_integer(s.arena, 2, false, false, NULL);
		struct h5file *f = with_attribute(&s, dtype_vlen(s.arena, u16, NULL), 1, elem);
		assert_null(value(f));
		assert_int_equal(h5file_problems(f), 1);
		assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_DAMAGED);
		assert_non_null(strstr(h5file_problem(f, 0)->text, "\"a\""));
		h5file_close(f);
		small_release(&s);
	}
}

/* Thousands of vlens that refer to the same item: the items may not add up to more than the file.
 */
static void shared_items_are_limited(void **state)
{
	enum { ELEMS = 3000 };
	static struct small_file s;
	static uint8_t raw[ELEMS * 16], big[4000];
	struct h5_gheap_writer w;
	uint64_t addr;
	uint32_t index;
	small_begin(&s);
	h5_gheap_init(&w, (s.n + 7) & ~(size_t)7, COLLECTION);
	assert_int_equal(h5_gheap_add(&w, big, sizeof(big), &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&w, NULL), 0);
	small_put(&s, w.out.data, w.out.len);
	h5_gheap_release(&w);
	const struct dtype *u8 = dtype_integer(s.arena, 1, false, false, NULL);
	const struct dtype *t = dtype_vlen(s.arena, u8, NULL);
	for (int i = 0; i < ELEMS; i++)
		put_elem(raw + (size_t)i * 16, sizeof(big), addr, index);
	const struct dspace space = small_vector(ELEMS);
	const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS,
				    .addr = small_put(&s, raw, sizeof(raw)),
				    .size = sizeof(raw)};
	small_object(&s);
	small_dataset(&s, t, &space, &l, NULL);
	const uint64_t d = small_end(&s);
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "d", d);
	small_finish(&s, small_end(&s));
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, &err), 0);
	const struct h5file_chunk chunk = {.addr = l.addr, .size = l.size};
	struct bytes stored = {0};
	struct elems out = {0};
	assert_int_equal(h5file_chunk_read(f, &chunk, &stored, &err), 0);
	assert_int_equal(h5file_chunk_decode(f, 1, &chunk, &stored, &out, &err), -EIO);
	assert_null(out.fixed.data);
	assert_null(out.heap.data);
	bytes_release(&stored);
	h5file_close(f);
	small_release(&s);
}

enum { THREADS = 4, ROUNDS = 100, STRINGS = 64 };

static int read_uncounted(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct mem_src *m = ctx;
	memcpy(buf, m->bytes + offset, n);
	return 0;
}

struct decoder {
	struct h5file *f;
	struct h5file_chunk chunk;
	unsigned int wrong;
};

static void *decode_again_and_again(void *ctx)
{
	struct decoder *d = ctx;
	for (int i = 0; i < ROUNDS; i++) {
		struct bytes stored = {0};
		struct elems out = {0};
		int rc = h5file_chunk_read(d->f, &d->chunk, &stored, NULL);
		if (!rc)
			rc = h5file_chunk_decode(d->f, 1, &d->chunk, &stored, &out, NULL);
		for (size_t k = 0; !rc && k < STRINGS; k++) {
			const struct elems_vlen v = elems_get_vlen(out.fixed.data + 16 * k);
			if (v.count != 3 || memcmp(out.heap.data + v.offset, "one", 3) != 0)
				rc = -EIO;
		}
		d->wrong += rc != 0;
		bytes_release(&stored);
		elems_release(&out);
	}
	return NULL;
}

static void any_thread_decodes_chunks(void **state)
{
	static struct small_file s;
	uint8_t raw[16 * STRINGS];
	pthread_t threads[THREADS];
	struct decoder d[THREADS];
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_begin(&s);
	const uint64_t heap = put_heap(&s, 0);
	for (size_t i = 0; i < STRINGS; i++)
		put_elem(raw + 16 * i, 3, heap, 1);
	const struct dspace space = small_vector(STRINGS);
	const struct h5_layout l = {.cls = LAYOUT_CONTIGUOUS,
				    .addr = small_put(&s, raw, sizeof(raw)),
				    .size = sizeof(raw)};
	small_object(&s);
	small_dataset(&s, dtype_vlen_string(s.arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL),
		      &space, &l, NULL);
	const uint64_t addr = small_end(&s);
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "d", addr);
	small_finish(&s, small_end(&s));
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, &err), 0);
	/* The bytes of the test's source do not change, but it counts its reads. */
	s.src.source.read_at = read_uncounted;
	for (int i = 0; i < THREADS; i++) {
		d[i] = (struct decoder){.f = f, .chunk = {.addr = l.addr, .size = l.size}};
		assert_int_equal(pthread_create(&threads[i], NULL, decode_again_and_again, &d[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(d[i].wrong, 0);
	}
	h5file_close(f);
	small_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings),
		cmocka_unit_test(sequences_in_a_compound),
		cmocka_unit_test(regions),
		cmocka_unit_test(damaged_slots),
		cmocka_unit_test(shared_items_are_limited),
		cmocka_unit_test(any_thread_decodes_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
