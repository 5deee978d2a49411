/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the elements of an HSDS chunk object, which are in C order and packed:
 *
 *   plain       dtype->size bytes
 *   reference   48 bytes of text ("datasets/d-…"), NUL padded; all NUL is the null reference
 *   vlen        +0 int32 LE  number of bytes; 0 for a string that is empty or was never set
 *               +4           text without NUL, or base elements in this form
 *   compound    its members in order
 *   array       its items in order, without a count
 *
 * After the last element, HSDS and the encoder write 4 zero bytes for each array of vlens. The
 * dtype of a compound may have gaps between its members. They are zeros in decoded elements.
 *
 * The decoder reads through a cursor. Each element consumes at least one byte or fails. The depth
 * is that of the type, at most DTYPE_MAX_DEPTH. Before memory is allocated, the object is checked
 * to have enough bytes for the smallest form of its elements. So hostile bytes cost no more memory
 * than a few times their own length. Items of a sequence may have gaps, but an item must not have
 * more than ITEMS_RATIO times its bytes in the object. image/ relies on that limit, too.
 *
 * The encoder first checks all slots of its input, and then follows them without further checks.
 */
#include "elements.h"

#include <errno.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>

#include "pack.h"

enum {
	COUNT_SIZE = 4,
	ARRAY_TRAILER = 4,
	ITEMS_RATIO = 4, /* DTYPE_VLEN_SIZE / COUNT_SIZE */
};

#define STORED_SIZE_MAX (UINT64_C(1) << 40)

bool elements_are_packed(const struct dtype *t)
{
	if (!dtype_is_plain(t))
		return false;
	if (t->cls == DTYPE_ARRAY)
		return elements_are_packed(t->array.base);
	if (t->cls != DTYPE_COMPOUND)
		return true;
	uint32_t end = 0;
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		if (m->offset != end || !elements_are_packed(m->type))
			return false;
		end += m->type->size;
	}
	return end == t->size;
}

/* ---- decoding ---- */

struct walk {
	const struct dtype *type;
	uint64_t nelems;
	const struct object_resolver *resolver;
	struct cursor in;
	struct elems *out;
	struct err *err;
};

static uint64_t saturate(uint64_t n)
{
	return n > STORED_SIZE_MAX ? UINT64_MAX : n;
}

/* Returns the least size of one element, in which every vlen is empty. */
static uint64_t least_size(const struct dtype *t)
{
	uint64_t sum = 0;
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

/* Returns the number of arrays with items of variable length in one element. */
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

static int check_items(const struct dtype *t, struct err *err)
{
	uint64_t most = 0;
	int rc = 0;
	if (!t->has_vlen)
		return 0;
	if (t->cls == DTYPE_ARRAY)
		return check_items(t->array.base, err);
	if (t->cls == DTYPE_VLEN) {
		const struct dtype *base = t->vlen.base;
		if (mul_u64(least_size(base), ITEMS_RATIO, &most) && base->size > most)
			return err_set(err, -EOPNOTSUPP,
				       "items of a sequence have %u bytes, of which at most %llu "
				       "are used",
				       base->size, (unsigned long long)most / ITEMS_RATIO);
		return check_items(base, err);
	}
	for (uint32_t i = 0; i < t->compound.n && rc == 0; i++)
		rc = check_items(t->compound.members[i].type, err);
	return rc;
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
	/* HSDS cannot store region references. They are decoded to null references. */
	if (len > 0 && t->reference.kind == DTYPE_REF_OBJECT)
		object = object_resolve(w->resolver, (const char *)text, len);
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
	if (elements_are_packed(base)) {
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
	if (elements_are_packed(t)) {
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
	uint64_t trailer = vlen_arrays(w->type) * ARRAY_TRAILER;
	if (!mul_u64(trailer, w->nelems, &allowed))
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
	const struct dtype *t = c->chain->type;
	const uint64_t nelems = c->chain->nelems;
	struct walk w = {.type = t,
			 .nelems = nelems,
			 .resolver = c->resolver,
			 .in = cursor_of(in, n),
			 .out = out,
			 .err = err};
	uint64_t least = 0, size = 0;
	int rc = check_items(t, err);
	if (rc)
		return rc;
	if (!mul_u64(least_size(t), nelems, &least) || least > n)
		return err_set(err, -EIO, "chunk has %zu bytes, %llu elements need at least %llu",
			       n, (unsigned long long)nelems, (unsigned long long)least);
	if (!mul_u64(nelems, t->size, &size) || size > SIZE_MAX)
		return err_set(err, -ENOMEM, "out of memory: chunk of %llu elements",
			       (unsigned long long)nelems);
	rc = bytes_append_zero(&out->fixed, (size_t)size);
	struct pack pack;
	if (rc == 0 && pack_init(&pack, t)) {
		unpack_elems(&pack, out->fixed.data, in, nelems);
		cur_skip(&w.in, (size_t)least);
		return check_trailer(&w);
	}
	for (uint64_t i = 0; i < nelems && rc == 0; i++)
		rc = put(&w, t, out->fixed.data + i * t->size);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "chunk of %llu elements", (unsigned long long)nelems);
	return rc ? rc : check_trailer(&w);
}

/* ---- checking ---- */

/* Moves over one element. Returns false if there is no valid element at the cursor. */
static bool skip(struct cursor *in, const struct dtype *t)
{
	const struct dtype *base = t->cls == DTYPE_VLEN ? t->vlen.base : NULL;
	if (t->cls == DTYPE_REFERENCE || elements_are_packed(t)) {
		cur_skip(in, t->cls == DTYPE_REFERENCE ? CODEC_REF_TEXT : t->size);
		return cur_ok(in);
	}
	if (t->cls == DTYPE_VLEN) {
		const uint32_t len = cur_u32(in);
		struct cursor inside = cur_sub(in, len);
		if (!cur_ok(in) || elements_are_packed(base))
			return cur_ok(in) && len % base->size == 0;
		while (cur_left(&inside) > 0)
			if (!skip(&inside, base))
				return false;
		return true;
	}
	if (t->cls == DTYPE_ARRAY) {
		for (uint64_t i = 0; i < t->array.nelems; i++)
			if (!skip(in, t->array.base))
				return false;
		return true;
	}
	for (uint32_t i = 0; i < t->compound.n; i++)
		if (!skip(in, t->compound.members[i].type))
			return false;
	return t->cls == DTYPE_COMPOUND;
}

bool elements_fit(const struct dtype *t, uint64_t nelems, const uint8_t *in, size_t n)
{
	struct walk w = {.type = t, .nelems = nelems, .in = cursor_of(in, n)};
	uint64_t least;
	if (!mul_u64(least_size(t), nelems, &least) || least > n)
		return false;
	for (uint64_t i = 0; i < nelems; i++)
		if (!skip(&w.in, t))
			return false;
	return check_trailer(&w) == 0;
}

/* ---- encoding ---- */

struct encoding {
	const struct object_namer *namer;
	const uint8_t *heap;
	struct bytes *out;
	struct err *err;
};

static int get(struct encoding *e, const struct dtype *t, const uint8_t *slot);

static int too_long(struct encoding *e)
{
	return err_set(e->err, -EFBIG, "chunk is encoded to more than %llu bytes",
		       (unsigned long long)ELEMENTS_ENCODED_MAX);
}

static int append(struct encoding *e, const void *bytes, uint64_t n)
{
	if (n > ELEMENTS_ENCODED_MAX - e->out->len)
		return too_long(e);
	const int rc = bytes_append(e->out, bytes, (size_t)n);
	return rc ? err_errno(e->err, rc, "chunk") : 0;
}

static int get_reference(struct encoding *e, const uint8_t *slot)
{
	char text[CODEC_REF_TEXT] = {0};
	struct cursor c = cursor_of(slot, DTYPE_OBJREF_SIZE);
	const uint64_t ref = cur_u64(&c);
	if (ref != 0 && e->namer && e->namer->name)
		e->namer->name(e->namer->ctx, ref, text);
	return append(e, text, sizeof(text));
}

static int get_vlen(struct encoding *e, const struct dtype *t, const uint8_t *slot)
{
	static const uint8_t no_count[COUNT_SIZE];
	const struct dtype *base = t->vlen.base;
	const struct elems_vlen v = elems_get_vlen(slot);
	const uint8_t *items = v.count ? e->heap + v.offset : NULL;
	const size_t at = e->out->len;
	int rc = append(e, no_count, COUNT_SIZE);
	if (rc == 0 && v.count > 0 && elements_are_packed(base))
		rc = append(e, items, (uint64_t)v.count * base->size);
	else
		for (uint32_t i = 0; i < v.count && rc == 0; i++)
			rc = get(e, base, items + (size_t)i * base->size);
	if (rc)
		return rc;
	/* The count is at most ELEMENTS_ENCODED_MAX - COUNT_SIZE, so int32 can hold it. */
	struct emit count = emit_to(e->out->data + at, COUNT_SIZE);
	emit_u32(&count, (uint32_t)(e->out->len - at - COUNT_SIZE));
	return 0;
}

/* Encodes the element at slot. */
static int get(struct encoding *e, const struct dtype *t, const uint8_t *slot)
{
	int rc = 0;
	if (elements_are_packed(t))
		return append(e, slot, t->size);
	switch (t->cls) {
	case DTYPE_REFERENCE:
		return get_reference(e, slot);
	case DTYPE_VLEN:
		return get_vlen(e, t, slot);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n && rc == 0; i++)
			rc = get(e, t->compound.members[i].type,
				 slot + t->compound.members[i].offset);
		return rc;
	case DTYPE_ARRAY:
		for (uint64_t i = 0; i < t->array.nelems && rc == 0; i++)
			rc = get(e, t->array.base, slot + i * t->array.base->size);
		return rc;
	default:
		return err_set(e->err, -EIO, "a type of class %d has no slots", (int)t->cls);
	}
}

static bool has_region(const struct dtype *t)
{
	if (!t->has_ref)
		return false;
	if (t->cls == DTYPE_REFERENCE)
		return t->reference.kind == DTYPE_REF_REGION;
	if (t->cls == DTYPE_ARRAY)
		return has_region(t->array.base);
	if (t->cls == DTYPE_VLEN)
		return has_region(t->vlen.base);
	for (uint32_t i = 0; i < t->compound.n; i++)
		if (has_region(t->compound.members[i].type))
			return true;
	return false;
}

static int check_input(const struct codec_encode *c, const struct elems *in, struct err *err)
{
	static const struct elems_visitor none;
	uint64_t size = 0;
	if (has_region(c->chain->type))
		return err_set(err, -EOPNOTSUPP,
			       "region references cannot be stored in a chunk object");
	if (!mul_u64(c->chain->nelems, c->chain->type->size, &size) || size != in->fixed.len)
		return err_set(err, -EIO, "%zu bytes are not %llu elements of %u bytes",
			       in->fixed.len, (unsigned long long)c->chain->nelems,
			       c->chain->type->size);
	return elems_visit(c->chain->type, in->fixed.data, c->chain->nelems, in->heap.data,
			   in->heap.len, &none, err);
}

int elements_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		    struct err *err)
{
	const struct dtype *t = c->chain->type;
	struct encoding e = {.namer = c->namer, .heap = in->heap.data, .out = out, .err = err};
	int rc = check_input(c, in, err);
	if (rc == 0)
		rc = check_items(t, err);
	if (rc)
		return rc;
	uint64_t least = 0, trailer = 0;
	if (!mul_u64(least_size(t), c->chain->nelems, &least) ||
	    !mul_u64(vlen_arrays(t) * ARRAY_TRAILER, c->chain->nelems, &trailer) ||
	    !add_u64(least, trailer, &least) || least > ELEMENTS_ENCODED_MAX)
		return too_long(&e);
	rc = bytes_reserve(out, (size_t)least);
	if (rc)
		return err_errno(err, rc, "chunk");
	struct pack pack;
	if (pack_init(&pack, t)) {
		pack_elems(&pack, out->data, in->fixed.data, c->chain->nelems);
		out->len = (size_t)least;
		return 0;
	}
	for (uint64_t i = 0; i < c->chain->nelems && rc == 0; i++)
		rc = get(&e, t, in->fixed.data + i * t->size);
	if (rc == 0 && trailer > ELEMENTS_ENCODED_MAX - out->len)
		rc = too_long(&e);
	if (rc == 0 && bytes_append_zero(out, (size_t)trailer))
		rc = err_errno(err, -ENOMEM, "chunk");
	return rc;
}
