/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of an HSDS chunk object, in C order and packed:
 *
 *   plain       dtype->size bytes
 *   reference   48 bytes of text ("datasets/d-…"), NUL padded; all NUL is the null reference
 *   vlen        +0 int32 LE  number of bytes; 0 for a string that is empty or was never set
 *               +4           text without NUL, or base elements in this form
 *   compound    its members in order
 *   array       its items in order, without a count
 *
 * After the last element HSDS writes 4 zero bytes for each array of vlens. Compounds in the object
 * are packed, and so are their dtypes.
 *
 * The decoder reads through a cursor. Each element consumes at least one byte or fails. The depth
 * is that of the type, at most DTYPE_MAX_DEPTH. No memory is allocated before the object has been
 * checked to have enough bytes for the smallest form of its elements. So hostile bytes cost no more
 * memory than a few times their own length.
 */
#include "elements.h"

#include <errno.h>
#include <string.h>

#include <base/cursor.h>

enum { COUNT_SIZE = 4, ARRAY_TRAILER = 4 };

#define STORED_SIZE_MAX (UINT64_C(1) << 40)

struct walk {
	const struct codec_chunk *chunk;
	struct cursor in;
	struct elems *out;
	struct err *err;
};

static uint64_t saturate(uint64_t n)
{
	return n > STORED_SIZE_MAX ? UINT64_MAX : n;
}

/* Least size of one element: every vlen is empty. */
static uint64_t least_size(const struct dtype *t)
{
	uint64_t sum = 0;
	if (dtype_is_plain(t))
		return t->size;
	switch (t->cls) {
	case DTYPE_REFERENCE:
		return CODEC_REF_TEXT;
	case DTYPE_VLEN:
		return COUNT_SIZE;
	case DTYPE_ARRAY:
		if (!mul_u64(least_size(t->array.base), t->array.nelems, &sum))
			return UINT64_MAX;
		return saturate(sum);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++) {
			uint64_t size = least_size(t->compound.members[i].type);
			if (!add_u64(sum, size, &sum))
				return UINT64_MAX;
		}
		return saturate(sum);
	default:
		return t->size;
	}
}

uint64_t codec_stored_elem_size(const struct dtype *t)
{
	return t->has_vlen ? 0 : saturate(least_size(t));
}

/* Number of arrays with items of variable length in one element. */
static uint64_t vlen_arrays(const struct dtype *t)
{
	uint64_t sum = 0;
	if (!t->has_vlen)
		return 0;
	if (t->cls == DTYPE_ARRAY)
		return 1 + vlen_arrays(t->array.base) * t->array.nelems;
	if (t->cls == DTYPE_COMPOUND)
		for (uint32_t i = 0; i < t->compound.n; i++)
			sum += vlen_arrays(t->compound.members[i].type);
	return sum;
}

static int put(struct walk *w, const struct dtype *t, uint8_t *slot);

static int truncated(struct walk *w)
{
	return err_set(w->err, -EIO, "chunk is truncated at byte %zu", cur_pos(&w->in));
}

static int put_reference(struct walk *w, const struct dtype *t, uint8_t *slot)
{
	const uint8_t *text = cur_bytes(&w->in, CODEC_REF_TEXT);
	uint64_t object = 0;
	if (!text)
		return truncated(w);
	size_t len = strnlen((const char *)text, CODEC_REF_TEXT);
	/* HSDS cannot store region references. They are null references. */
	if (len > 0 && t->reference.kind == DTYPE_REF_OBJECT)
		object = object_resolve(w->chunk->resolver, (const char *)text, len);
	memset(slot, 0, t->size);
	for (size_t i = 0; i < DTYPE_OBJREF_SIZE; i++)
		slot[i] = (uint8_t)(object >> (8 * i));
	return 0;
}

/* Decodes items with slots of their own into *items. */
static int put_items(struct walk *w, const struct dtype *base, struct bytes *items, uint32_t *count)
{
	while (cur_left(&w->in) > 0) {
		int rc = bytes_append_zero(items, base->size);
		if (rc)
			return err_errno(w->err, rc, "sequence");
		rc = put(w, base, items->data + items->len - base->size);
		if (rc)
			return rc;
		++*count;
	}
	return 0;
}

static int put_vlen(struct walk *w, const struct dtype *t, uint8_t *slot)
{
	const struct dtype *base = t->vlen.base;
	size_t at = cur_pos(&w->in);
	uint32_t len = cur_u32(&w->in);
	struct bytes own auto_bytes = {0};
	if (!cur_ok(&w->in) || len > cur_left(&w->in))
		return err_set(w->err, -EIO, "sequence at byte %zu states %d bytes, %zu are left",
			       at, (int)len, cur_left(&w->in));

	struct cursor behind = w->in;
	struct cursor inside = cur_sub(&behind, len);
	const uint8_t *items = NULL;
	size_t items_len = len;
	uint32_t count = 0;
	if (dtype_is_plain(base)) {
		if (len % base->size != 0)
			return err_set(
				w->err, -EIO,
				"sequence at byte %zu: %u bytes are not a multiple of the item "
				"size %u",
				at, len, base->size);
		count = len / base->size;
		items = cur_bytes(&inside, len);
	} else {
		w->in = inside;
		int rc = put_items(w, base, &own, &count);
		if (rc)
			return rc;
		items = own.data;
		items_len = own.len;
	}
	w->in = behind;

	uint64_t offset = 0;
	if (count > 0) {
		int rc = elems_heap_add(w->out, items, items_len, &offset);
		if (rc)
			return err_errno(w->err, rc, "sequence at byte %zu", at);
	}
	elems_put_vlen(slot, count, offset);
	return 0;
}

static int put_compound(struct walk *w, const struct dtype *t, uint8_t *slot)
{
	int rc = 0;
	for (uint32_t i = 0; i < t->compound.n && rc == 0; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		rc = put(w, m->type, slot + m->offset);
	}
	return rc;
}

static int put_array(struct walk *w, const struct dtype *t, uint8_t *slot)
{
	const struct dtype *base = t->array.base;
	int rc = 0;
	for (uint64_t i = 0; i < t->array.nelems && rc == 0; i++)
		rc = put(w, base, slot + i * base->size);
	return rc;
}

/* Decodes one element at the cursor into slot, which has t->size bytes. */
static int put(struct walk *w, const struct dtype *t, uint8_t *slot)
{
	if (dtype_is_plain(t)) {
		const uint8_t *bytes = cur_bytes(&w->in, t->size);
		if (!bytes)
			return truncated(w);
		memcpy(slot, bytes, t->size);
		return 0;
	}
	switch (t->cls) {
	case DTYPE_REFERENCE:
		return put_reference(w, t, slot);
	case DTYPE_VLEN:
		return put_vlen(w, t, slot);
	case DTYPE_COMPOUND:
		return put_compound(w, t, slot);
	case DTYPE_ARRAY:
		return put_array(w, t, slot);
	default:
		return err_set(w->err, -EIO, "a type of class %d has no slots", (int)t->cls);
	}
}

/* Checks the bytes after the last element. */
static int check_trailer(struct walk *w)
{
	size_t left = cur_left(&w->in);
	uint64_t allowed = 0;
	if (left == 0)
		return 0;
	uint64_t trailer = vlen_arrays(w->chunk->type) * ARRAY_TRAILER;
	if (!mul_u64(trailer, w->chunk->nelems, &allowed))
		allowed = UINT64_MAX;
	size_t at = cur_pos(&w->in);
	bool zeros = left <= allowed;
	while (zeros && cur_left(&w->in) > 0)
		zeros = cur_u8(&w->in) == 0;
	if (!zeros)
		return err_set(w->err, -EIO, "%zu bytes after the last element, at byte %zu", left,
			       at);
	return 0;
}

int elements_decode(const struct codec_chunk *c, const uint8_t *in, size_t n, struct elems *out,
		    struct err *err)
{
	struct walk w = {.chunk = c, .in = cursor_of(in, n), .out = out, .err = err};
	const struct dtype *t = c->type;
	uint64_t least = 0, size = 0;
	if (!mul_u64(least_size(t), c->nelems, &least) || least > n)
		return err_set(err, -EIO, "chunk has %zu bytes, %llu elements need at least %llu",
			       n, (unsigned long long)c->nelems, (unsigned long long)least);
	if (!mul_u64(c->nelems, t->size, &size) || size > SIZE_MAX)
		return err_set(err, -ENOMEM, "out of memory: chunk of %llu elements",
			       (unsigned long long)c->nelems);
	int rc = bytes_append_zero(&out->fixed, (size_t)size);
	for (uint64_t i = 0; i < c->nelems && rc == 0; i++)
		rc = put(&w, t, out->fixed.data + i * t->size);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "chunk of %llu elements", (unsigned long long)c->nelems);
	return rc ? rc : check_trailer(&w);
}
