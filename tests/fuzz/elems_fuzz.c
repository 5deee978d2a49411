/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over elements (data/elems.h). The first bytes of the input describe a datatype; the rest
 * are elements and their heap. Properties: the walk accesses nothing outside of elements and heap,
 * and it makes no more calls than elements and heap have room for slots. If no items overlap, the
 * elements can be copied into a new heap, each slot after its items, and a second walk visits the
 * same values.
 */
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <data/elems.h>

#include "require.h"

enum { MAX_FIXED = 1 << 14, MAX_CALLS = 1 << 12, TYPE_LEVELS = 6 };

static const struct dtype *build(struct arena *a, struct cursor *c, int levels);

static const struct dtype *build_compound(struct arena *a, struct cursor *c, int levels)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct dtype_member m[4] = {0};
	uint32_t n = cur_u8(c) % 4 + 1, end = 0;
	for (uint32_t i = 0; i < n; i++) {
		m[i].name = names[i];
		m[i].type = build(a, c, levels - 1);
		if (!m[i].type)
			return NULL;
		m[i].offset = end + cur_u8(c) % 3;
		end = m[i].offset + m[i].type->size;
	}
	return dtype_compound(a, n, m, end + cur_u8(c) % 3, NULL);
}

static const struct dtype *build(struct arena *a, struct cursor *c, int levels)
{
	uint8_t what = cur_u8(c);
	if (levels == 0)
		what %= 4;
	switch (what % 7) {
	case 0:
		return dtype_integer(a, cur_u8(c) % 8 + 1, true, false, NULL);
	case 1:
		return dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	case 2:
		return dtype_reference(a, DTYPE_REF_REGION, NULL);
	case 3:
		return dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	case 4:
		return dtype_vlen(a, build(a, c, levels - 1), NULL);
	case 5:
		return build_compound(a, c, levels);
	default: {
		uint32_t dims[2] = {cur_u8(c) % 4 + 1, cur_u8(c) % 4 + 1};
		return dtype_array(a, build(a, c, levels - 1), 2, dims, NULL);
	}
	}
}

/* The part of the heap to which a slot points. */
struct range {
	uint64_t start, end;
	bool has_slots;
};

struct walk {
	const uint8_t *fixed, *heap;
	size_t fixed_len, heap_len;
	struct elems *repacked; /* receives the new heap; NULL: nothing is rewritten */
	uint32_t digest;
	size_t calls;
	struct range ranges[MAX_CALLS];
};

static void digest(struct walk *w, uint64_t what, const void *bytes, size_t n)
{
	w->digest = checksum_lookup3(&what, sizeof(what), w->digest);
	w->digest = checksum_lookup3(n ? bytes : "", n, w->digest);
}

static bool inside(const uint8_t *p, size_t n, const uint8_t *all, size_t len)
{
	return p >= all && n <= len && (size_t)(p - all) <= len - n;
}

static void count_call(struct walk *w, const uint8_t *slot, size_t size, struct range range)
{
	require(inside(slot, size, w->fixed, w->fixed_len) ||
		inside(slot, size, w->heap, w->heap_len));
	if (w->calls < MAX_CALLS)
		w->ranges[w->calls] = range;
	w->calls++;
	require(w->calls <= w->fixed_len / DTYPE_OBJREF_SIZE + w->heap_len / DTYPE_OBJREF_SIZE);
}

static int visit_vlen(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
		      size_t items_len, struct err *err)
{
	struct walk *w = ctx;
	struct elems_vlen v = elems_get_vlen(slot);
	bool plain = dtype_is_plain(t->vlen.base);
	uint64_t offset = 0;
	require((items == NULL) == (v.count == 0));
	require(!items || inside(items, items_len, w->heap, w->heap_len));
	require(items_len == (size_t)v.count * t->vlen.base->size);
	count_call(w, slot, DTYPE_VLEN_SIZE,
		   (struct range){v.offset, v.offset + items_len, !plain});
	digest(w, v.count, items, plain ? items_len : 0);
	if (!w->repacked)
		return 0;
	require(elems_heap_add(w->repacked, items, items_len, &offset) == 0);
	elems_put_vlen(slot, v.count, offset);
	return 0;
}

static int visit_reference(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err)
{
	struct walk *w = ctx;
	struct cursor c = cursor_of(slot, t->size);
	struct emit e = emit_to(slot, t->size);
	uint64_t where = cur_u64(&c), offset = 0;
	uint32_t len = cur_u32(&c);
	if (t->reference.kind == DTYPE_REF_OBJECT || where == 0) {
		count_call(w, slot, t->size, (struct range){0, 0, false});
		digest(w, where, NULL, 0);
		return 0;
	}
	count_call(w, slot, t->size, (struct range){where - 1, where - 1 + len, false});
	digest(w, len, w->heap + where - 1, len);
	if (!w->repacked)
		return 0;
	require(elems_heap_add(w->repacked, w->heap + where - 1, len, &offset) == 0);
	emit_u64(&e, offset + 1);
	return 0;
}

/* Whether items with slots overlap no other items. A walk may rewrite items with slots. */
static bool disjoint(const struct walk *w)
{
	if (w->calls > MAX_CALLS)
		return false;
	for (size_t i = 0; i < w->calls; i++)
		for (size_t j = 0; j < w->calls; j++)
			if (i != j && w->ranges[i].has_slots &&
			    w->ranges[i].start < w->ranges[j].end &&
			    w->ranges[j].start < w->ranges[i].end)
				return false;
	return true;
}

static int run(struct walk *w, const struct dtype *t, uint8_t *fixed, size_t fixed_len,
	       uint8_t *heap, size_t heap_len, struct elems *repacked)
{
	const struct elems_visitor v = {visit_vlen, visit_reference, w};
	w->fixed = fixed;
	w->fixed_len = fixed_len;
	w->heap = heap;
	w->heap_len = heap_len;
	w->repacked = repacked;
	w->calls = 0;
	w->digest = 0;
	return elems_visit(t, fixed, fixed_len / t->size, heap, heap_len, &v, NULL);
}

static void check(struct walk *w, const struct dtype *t, uint8_t *fixed, size_t fixed_len,
		  uint8_t *heap, size_t heap_len)
{
	struct elems repacked = {0};
	uint32_t first;
	if (run(w, t, fixed, fixed_len, heap, heap_len, NULL) != 0 || !disjoint(w))
		return;
	first = w->digest;
	require(run(w, t, fixed, fixed_len, heap, heap_len, &repacked) == 0);
	require(run(w, t, fixed, fixed_len, repacked.heap.data, repacked.heap.len, NULL) == 0);
	require(w->digest == first);
	elems_release(&repacked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	struct arena *arena = arena_new(1 << 20);
	const struct dtype *t = build(arena, &c, TYPE_LEVELS);
	size_t fixed_len = t ? (size_t)t->size * (cur_u8(&c) % 4 + 1) : 0;
	if (t && cur_ok(&c) && fixed_len <= cur_left(&c) && fixed_len <= MAX_FIXED) {
		size_t heap_len = cur_left(&c) - fixed_len;
		/* Blocks of exactly their size, so that address sanitizer detects an overrun. */
		uint8_t *fixed = malloc(fixed_len), *heap = malloc(heap_len ? heap_len : 1);
		struct walk *w = malloc(sizeof(*w));
		require(fixed && heap && w);
		memcpy(fixed, cur_bytes(&c, fixed_len), fixed_len);
		memcpy(heap, cur_bytes(&c, heap_len), heap_len);
		check(w, t, fixed, fixed_len, heap, heap_len);
		free(fixed);
		free(heap);
		free(w);
	}
	arena_free(arena);
	return 0;
}
