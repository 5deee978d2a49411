/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to vlen elements, to the heap and to repeated bytes, and the walk over all vlens and
 * references of a value.
 *
 * The walk relies on the datatype, whose constructors bound depth and size. It checks each vlen and
 * region reference against the heap before it follows it. Items of types that are not plain count
 * against the size of the heap, so vlens that share items cannot multiply the work: a walk over n
 * bytes of elements and h bytes of heap takes O(n + h). Pure functions; a value belongs to one
 * thread at a time.
 */
#include <data/elems.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>

enum { HEAP_ALIGN = 8, SELECTION_MIN = 8 /* its object reference */ };
static const uint64_t max_heap = UINT64_C(1) << 32;

void elems_release(struct elems *e)
{
	if (e->is_borrowed)
		e->fixed = (struct bytes){0};
	bytes_release(&e->fixed);
	bytes_release(&e->heap);
	e->repeated = 0;
	e->is_borrowed = false;
}

void elems_repeat(uint8_t *out, size_t period, size_t n)
{
	for (size_t done = period; done < n;) {
		const size_t more = (size_t)min_u64(done, n - done);
		memcpy(out + done, out, more);
		done += more;
	}
}

/* Copies n bytes of the repeated part, from its byte `at` on. */
static void read_repeated(const struct elems *e, uint64_t at, uint8_t *out, size_t n)
{
	const uint8_t *pattern = e->fixed.data + e->fixed.len - e->period;
	const size_t first = (size_t)(at % e->period);
	const size_t tail = (size_t)min_u64(e->period - first, n);
	const size_t head = (size_t)min_u64(first, n - tail);
	memcpy(out, pattern + first, tail);
	memcpy(out + tail, pattern, head);
	elems_repeat(out, tail + head, n);
}

void elems_read(const struct elems *e, uint64_t at, void *out, size_t n)
{
	uint8_t *to = out;
	const uint64_t ends[] = {e->fixed.len, elems_end(e)};
	const size_t fixed = at < ends[0] ? (size_t)min_u64(n, ends[0] - at) : 0;
	if (fixed)
		memcpy(to, e->fixed.data + at, fixed);
	at += fixed;
	n -= fixed;
	to += fixed;
	const size_t repeated = at < ends[1] ? (size_t)min_u64(n, ends[1] - at) : 0;
	if (repeated)
		read_repeated(e, at - ends[0], to, repeated);
	if (n > repeated)
		memset(to + repeated, 0, n - repeated);
}

struct elems_vlen elems_get_vlen(const uint8_t *elem)
{
	struct cursor c = cursor_of(elem, DTYPE_VLEN_SIZE);
	struct elems_vlen v;
	v.count = cur_u32(&c);
	v.is_set = cur_u32(&c) != 0;
	v.offset = cur_u64(&c);
	return v;
}

void elems_put_vlen(uint8_t *elem, uint32_t count, uint64_t offset)
{
	struct emit e = emit_to(elem, DTYPE_VLEN_SIZE);
	emit_u32(&e, count);
	emit_u32(&e, 1);
	emit_u64(&e, count ? offset : 0);
}

bool elems_vlen_has_object(const struct dtype *t, const uint8_t *elem)
{
	const struct elems_vlen v = elems_get_vlen(elem);
	return v.count > 0 || (v.is_set && t->vlen.is_string);
}

int elems_heap_add(struct elems *e, const void *items, size_t len, uint64_t *offset)
{
	size_t pad = -e->heap.len & (HEAP_ALIGN - 1);
	int r;
	*offset = 0;
	if (len == 0)
		return 0;
	if (len > max_heap || e->heap.len + pad > max_heap - len)
		return -E2BIG;
	r = bytes_reserve(&e->heap, pad + len);
	if (r < 0)
		return r;
	/* The memory is reserved, so neither call can fail. */
	bytes_append_zero(&e->heap, pad);
	*offset = e->heap.len;
	return bytes_append(&e->heap, items, len);
}

static int walk_compound(const struct dtype *t, uint8_t *at, const struct elems_walker *w)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < t->compound.n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		r = elems_walk(m->type, at + m->offset, 1, w);
	}
	return r;
}

/* Each recursion walks over a child type, so it is at most DTYPE_MAX_DEPTH deep. */
int elems_walk(const struct dtype *t, uint8_t *fixed, uint64_t n, const struct elems_walker *w)
{
	int r = 0;
	if (dtype_is_plain(t))
		return 0;
	for (; n > 0 && r == 0; n--, fixed += t->size) {
		switch (t->cls) {
		case DTYPE_VLEN:
			r = w->vlen(w->ctx, t, fixed);
			break;
		case DTYPE_REFERENCE:
			r = w->reference(w->ctx, t, fixed);
			break;
		case DTYPE_COMPOUND:
			r = walk_compound(t, fixed, w);
			break;
		case DTYPE_ARRAY:
			r = elems_walk(t->array.base, fixed, t->array.nelems, w);
			break;
		default:
			return 0; /* a plain type */
		}
	}
	return r;
}

struct visit {
	struct elems_walker walker;
	uint8_t *heap;
	size_t heap_len;
	size_t budget; /* bytes of items, not of plain types, that may still be visited */
	const struct elems_visitor *v;
	struct err *err;
};

/* Returns the len bytes at an offset of the heap, or NULL if they are not inside of it. */
static uint8_t *in_heap(const struct visit *w, uint64_t offset, uint64_t len)
{
	if (offset % HEAP_ALIGN != 0 || offset > w->heap_len || len > w->heap_len - offset)
		return NULL;
	return w->heap + offset;
}

static int visit_vlen(void *ctx, const struct dtype *t, uint8_t *elem)
{
	struct visit *w = ctx;
	const struct dtype *base = t->vlen.base;
	struct elems_vlen v = elems_get_vlen(elem);
	uint64_t len = (uint64_t)v.count * base->size; /* 32 bits each */
	uint8_t *items = NULL;
	int r;
	if (v.count > 0) {
		items = in_heap(w, v.offset, len);
		if (!items)
			return err_set(w->err, -EIO,
				       "items of a variable-length element, %" PRIu64
				       " bytes at %" PRIu64 ", are outside of its heap of %zu",
				       len, v.offset, w->heap_len);
	}
	if (items && !dtype_is_plain(base)) {
		if (len > w->budget)
			return err_set(w->err, -EIO, "nested variable-length elements share items");
		w->budget -= len;
		r = elems_walk(base, items, v.count, &w->walker);
		if (r != 0)
			return r;
	}
	return w->v->vlen ? w->v->vlen(w->v->ctx, t, elem, items, (size_t)len, w->err) : 0;
}

static int visit_reference(void *ctx, const struct dtype *t, uint8_t *elem)
{
	struct visit *w = ctx;
	if (t->reference.kind == DTYPE_REF_REGION) {
		struct cursor c = cursor_of(elem, DTYPE_REGREF_SIZE);
		uint64_t offset = cur_u64(&c);
		uint32_t len = cur_u32(&c);
		if (offset != 0 && (len < SELECTION_MIN || !in_heap(w, offset - 1, len)))
			return err_set(w->err, -EIO,
				       "selection of a region reference, %" PRIu32
				       " bytes at %" PRIu64 ", is outside of its heap of %zu",
				       len, offset - 1, w->heap_len);
	}
	return w->v->reference ? w->v->reference(w->v->ctx, t, elem, w->err) : 0;
}

int elems_visit(const struct dtype *t, uint8_t *fixed, uint64_t n, uint8_t *heap, size_t heap_len,
		const struct elems_visitor *v, struct err *err)
{
	struct visit visit = {.walker = {visit_vlen, visit_reference, &visit},
			      .heap = heap,
			      .heap_len = heap_len,
			      .budget = heap_len,
			      .v = v,
			      .err = err};
	return elems_walk(t, fixed, n, &visit.walker);
}
