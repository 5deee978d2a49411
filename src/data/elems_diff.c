/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of elements: see data/tree_diff.h. The values may be in any of the forms of
 * data/elems.h; unset and repeated elements are compared without memory for them. A vlen or region
 * reference that points outside of its heap is equal to nothing. Items of types that are not plain
 * count against the size of the heaps, so that vlens that share items cannot multiply the work.
 * Recursion is at most DTYPE_MAX_DEPTH deep. Pure; any thread.
 */
#include <data/tree_diff.h>

#include <string.h>

#include <base/cursor.h>

enum { BLOCK = 4096, FLOAT_MAX = 16 /* bytes; of a longer one, all bytes must be equal */ };

/* Elements of one of the two values: of the value itself, from byte `at`, or items in its heap. */
struct view {
	const struct elems *e;
	const uint8_t *items; /* NULL if they are of the value itself */
	uint64_t at;
};
struct pair {
	struct view a, b;
};
struct comparison {
	const uint32_t *map;
	bool exact;	 /* elems_identical() */
	uint64_t budget; /* bytes of items, not of plain types, that may still be compared */
};

static uint64_t first_diff(struct comparison *c, const struct dtype *t, struct pair p, uint64_t n);

static void view_read(const struct view *v, uint64_t at, void *out, size_t n)
{
	if (v->items)
		memcpy(out, v->items + v->at + at, n);
	else
		elems_read(v->e, v->at + at, out, n);
}

static struct pair pair_at(const struct pair *p, uint64_t offset)
{
	struct pair moved = *p;
	moved.a.at += offset;
	moved.b.at += offset;
	return moved;
}

/* Returns the offset of the first block of n bytes that differs, or n if there is none. */
static uint64_t bytes_diff(const struct pair *p, uint64_t n)
{
	uint8_t a[BLOCK], b[BLOCK];
	for (uint64_t done = 0; done < n;) {
		const size_t len = (size_t)min_u64(n - done, BLOCK);
		view_read(&p->a, done, a, len);
		view_read(&p->b, done, b, len);
		if (memcmp(a, b, len) != 0)
			return done;
		done += len;
	}
	return n;
}

static bool bit(const uint8_t *le, uint32_t at)
{
	return le[at / 8] >> (at % 8) & 1;
}

/* bytes are those of one float; this function may reorder them. */
static bool is_nan(const struct dtype *t, uint8_t *bytes)
{
	bool fraction = false;
	for (uint32_t i = 0; t->floating.big_endian && i < t->size / 2; i++) {
		const uint8_t swap = bytes[i];
		bytes[i] = bytes[t->size - 1 - i];
		bytes[t->size - 1 - i] = swap;
	}
	for (uint32_t i = 0; i < t->floating.exp_size; i++)
		if (!bit(bytes, t->floating.exp_loc + i))
			return false;
	/* Without an implied bit, the highest bit of the mantissa is the integer part. */
	const uint32_t hidden = t->floating.norm == DTYPE_NORM_IMPLIED ? 0 : 1;
	for (uint32_t i = 0; i + hidden < t->floating.mant_size; i++)
		fraction = fraction || bit(bytes, t->floating.mant_loc + i);
	return fraction;
}

static bool floats_equal(const struct comparison *c, const struct dtype *t, const struct pair *p)
{
	uint8_t a[FLOAT_MAX], b[FLOAT_MAX];
	if (c->exact || t->size > FLOAT_MAX)
		return bytes_diff(p, t->size) == t->size;
	view_read(&p->a, 0, a, t->size);
	view_read(&p->b, 0, b, t->size);
	return memcmp(a, b, t->size) == 0 ||
	       (t->floating.bit_offset == 0 && is_nan(t, a) && is_nan(t, b));
}

/* A NUL-terminated text ends at its first NUL, and the bytes after it count only if the comparison
 * is exact. */
static bool strings_equal(const struct comparison *c, const struct dtype *t, const struct pair *p)
{
	uint8_t a[BLOCK], b[BLOCK];
	if (c->exact || t->string.pad != DTYPE_PAD_NULLTERM)
		return bytes_diff(p, t->size) == t->size;
	for (uint64_t done = 0; done < t->size;) {
		const size_t len = (size_t)min_u64(t->size - done, BLOCK);
		view_read(&p->a, done, a, len);
		view_read(&p->b, done, b, len);
		const size_t end = strnlen((const char *)a, len);
		if (memcmp(a, b, end < len ? end + 1 : len) != 0)
			return false;
		if (end < len)
			return true;
		done += len;
	}
	return true;
}

/* Returns the items of a vlen, or the bytes of a selection. Their `items` is NULL if they are
 * outside of the heap. */
static struct view items_of(const struct view *v, uint64_t offset, uint64_t len)
{
	static const uint8_t none;
	const struct bytes *heap = &v->e->heap;
	struct view items = {.e = v->e, .items = len ? heap->data : &none};
	if (len && (offset > heap->len || len > heap->len - offset))
		items.items = NULL;
	else if (len)
		items.at = offset;
	return items;
}

static bool vlens_equal(struct comparison *c, const struct dtype *t, const struct pair *p)
{
	const struct dtype *base = t->vlen.base;
	uint8_t a[DTYPE_VLEN_SIZE], b[DTYPE_VLEN_SIZE];
	view_read(&p->a, 0, a, sizeof(a));
	view_read(&p->b, 0, b, sizeof(b));
	const struct elems_vlen va = elems_get_vlen(a), vb = elems_get_vlen(b);
	if (va.count != vb.count || (t->vlen.is_string && va.is_set != vb.is_set))
		return false;
	const uint64_t len = (uint64_t)va.count * base->size; /* 32 bits each */
	const struct pair items = {.a = items_of(&p->a, va.offset, len),
				   .b = items_of(&p->b, vb.offset, len)};
	if (!items.a.items || !items.b.items)
		return false;
	if (!dtype_is_plain(base)) {
		if (len > c->budget)
			return false;
		c->budget -= len;
	}
	return first_diff(c, base, items, va.count) == va.count;
}

/* Returns whether two references, object number + 1 or 0, lead to the same object. */
static bool targets_equal(const struct comparison *c, uint64_t a, uint64_t b)
{
	if (a == 0 || !c->map)
		return a == b;
	const uint32_t target = c->map[a - 1];
	return target == OBJECT_NONE ? b == 0 && !c->exact : (uint64_t)target + 1 == b;
}

static bool selections_equal(const struct comparison *c, const struct pair *p)
{
	enum { OBJECT = DTYPE_OBJREF_SIZE };
	uint8_t a[DTYPE_REGREF_SIZE], b[DTYPE_REGREF_SIZE];
	uint8_t target_a[OBJECT], target_b[OBJECT];
	view_read(&p->a, 0, a, sizeof(a));
	view_read(&p->b, 0, b, sizeof(b));
	struct cursor ca = cursor_of(a, sizeof(a)), cb = cursor_of(b, sizeof(b));
	const uint64_t at_a = cur_u64(&ca), at_b = cur_u64(&cb);
	const uint32_t len = cur_u32(&ca), len_b = cur_u32(&cb);
	if (at_a == 0)
		return at_b == 0;
	const struct pair whole = {.a = items_of(&p->a, at_a - 1, len),
				   .b = items_of(&p->b, at_b - 1, len_b)};
	if (len < OBJECT || !whole.a.items)
		return false;
	view_read(&whole.a, 0, target_a, OBJECT);
	ca = cursor_of(target_a, OBJECT);
	if (at_b == 0)
		return targets_equal(c, cur_u64(&ca), 0);
	if (len != len_b || !whole.b.items)
		return false;
	view_read(&whole.b, 0, target_b, OBJECT);
	const struct pair selection = pair_at(&whole, OBJECT);
	cb = cursor_of(target_b, OBJECT);
	return targets_equal(c, cur_u64(&ca), cur_u64(&cb)) &&
	       bytes_diff(&selection, len - OBJECT) == len - OBJECT;
}

static bool references_equal(const struct comparison *c, const struct dtype *t,
			     const struct pair *p)
{
	uint8_t a[DTYPE_OBJREF_SIZE], b[DTYPE_OBJREF_SIZE];
	if (t->reference.kind == DTYPE_REF_REGION)
		return selections_equal(c, p);
	view_read(&p->a, 0, a, sizeof(a));
	view_read(&p->b, 0, b, sizeof(b));
	struct cursor ca = cursor_of(a, sizeof(a)), cb = cursor_of(b, sizeof(b));
	return targets_equal(c, cur_u64(&ca), cur_u64(&cb));
}

static bool equal(struct comparison *c, const struct dtype *t, const struct pair *p)
{
	switch (t->cls) {
	case DTYPE_FLOAT:
		return floats_equal(c, t, p);
	case DTYPE_STRING:
		return strings_equal(c, t, p);
	case DTYPE_COMPOUND:
		/* Bytes between members do not count. */
		for (uint32_t i = 0; i < t->compound.n; i++) {
			const struct dtype_member *m = &t->compound.members[i];
			if (first_diff(c, m->type, pair_at(p, m->offset), 1) != 1)
				return false;
		}
		return true;
	case DTYPE_REFERENCE:
		return references_equal(c, t, p);
	case DTYPE_VLEN:
		return vlens_equal(c, t, p);
	case DTYPE_ARRAY:
		return first_diff(c, t->array.base, *p, t->array.nelems) == t->array.nelems;
	default:
		return bytes_diff(p, t->size) == t->size;
	}
}

/* Returns the index of the first of n elements that differs, or n if there is none. Skips plain
 * elements whose bytes are equal. n * t->size does not overflow: the elements are in memory or
 * unset. */
static uint64_t first_diff(struct comparison *c, const struct dtype *t, struct pair p, uint64_t n)
{
	uint64_t same = 0;    /* all bytes before are equal */
	uint64_t checked = 0; /* elements that begin from same to here are compared one by one */
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = i * t->size;
		const struct pair element = pair_at(&p, at);
		if (dtype_is_plain(t) && at >= checked) {
			same = at + bytes_diff(&element, (n - i) * t->size);
			checked = same + BLOCK;
		}
		if (dtype_is_plain(t) && at + t->size <= same)
			i = same / t->size - 1;
		else if (!equal(c, t, &element))
			return i;
	}
	return n;
}

/* Where both values repeat with one period, comparing one period is enough: sets *again to the
 * first element after it, and *tail to the first element after the repetition. Both are n if no
 * element can be skipped. */
static void find_repetition(const struct dtype *t, uint64_t n, const struct elems *a,
			    const struct elems *b, uint64_t *again, uint64_t *tail)
{
	const uint64_t from = div_up_u64(max_u64(a->fixed.len, b->fixed.len), t->size);
	const uint64_t end = min_u64(elems_end(a), elems_end(b)) / t->size;
	*again = *tail = n;
	if (!a->repeated || !b->repeated || a->period != b->period || a->period % t->size != 0)
		return;
	if (from + a->period / t->size >= end || end > n)
		return;
	*again = from + a->period / t->size;
	*tail = end;
}

static uint64_t compare(struct comparison *c, const struct dtype *t, uint64_t n,
			const struct elems *a, const struct elems *b)
{
	const struct pair p = {.a = {.e = a}, .b = {.e = b}};
	/* Beyond the end of both, all elements are unset. */
	const uint64_t set = min_u64(n, div_up_u64(max_u64(elems_end(a), elems_end(b)), t->size));
	uint64_t again, tail;
	find_repetition(t, set, a, b, &again, &tail);
	uint64_t at = first_diff(c, t, p, again);
	if (at == again)
		at = tail + first_diff(c, t, pair_at(&p, tail * t->size), set - tail);
	return at == set ? n : at;
}

uint64_t elems_diff(const struct dtype *t, uint64_t n, const struct elems *a, const struct elems *b,
		    const uint32_t *map)
{
	struct comparison c = {.map = map, .budget = (uint64_t)a->heap.len + b->heap.len};
	return compare(&c, t, n, a, b);
}

bool elems_identical(const struct dtype *t, uint64_t n, const struct elems *a,
		     const struct elems *b, const uint32_t *map)
{
	struct comparison c = {.map = map, .exact = true};
	c.budget = (uint64_t)a->heap.len + b->heap.len;
	return compare(&c, t, n, a, b) == n;
}
