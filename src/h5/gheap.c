/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global heap collections (Spec III.E):
 *
 *    +0  "GCOL"                    then objects:
 *    +4  u8   version, 1             +0  u16  index; 0: free space up to the end
 *    +5  3 bytes 0                   +2  u16  reference count
 *    +8  u64  bytes in all           +4  u32  0
 *                                    +8  u64  bytes of data (free space: including this header)
 *                                   +16  data, padded to a multiple of 8
 *
 * Writing. An object begins a new collection if the open one has at least H5_GHEAP_MIN bytes and
 * the object would exceed the target, or if the open one has the maximum number of objects. So
 * every collection except for the last has at least H5_GHEAP_MIN bytes. An object larger than the
 * target shares a collection only with small objects that were added before it. The last collection
 * is filled up to H5_GHEAP_MIN bytes with an object to which nothing refers. If only 8 bytes are
 * missing, too few for the header of an object, the filler makes the collection 8 bytes larger than
 * that, because libhdf5 takes such a remainder for free space.
 *
 * Reference counts are 1: the specification requires them to be positive. libhdf5 writes 0 and does
 * not check them.
 *
 * All functions are pure. gheap_cache.c reads collections.
 */
#include "gheap_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <h5/gheap.h>

enum {
	COLLECTION_HEADER = 16,
	OBJECT_HEADER = 16,
	SIZE_AT = 8,
	ALIGN = 8,
	VERSION = 1,
};

void h5_gheap_init(struct h5_gheap_writer *w, uint64_t base, size_t target)
{
	*w = (struct h5_gheap_writer){.base = base, .target = target};
}

void h5_gheap_release(struct h5_gheap_writer *w)
{
	bytes_release(&w->out);
}

static size_t open_size(const struct h5_gheap_writer *w)
{
	return w->next ? w->out.len - w->collection : 0;
}

/* Appends the header of an object, its data (zeros if data is NULL) and padding. */
static int append(struct h5_gheap_writer *w, const void *data, size_t n, struct err *err)
{
	size_t need;
	if (__builtin_add_overflow(n, OBJECT_HEADER + ALIGN, &need) || bytes_reserve(&w->out, need))
		return err_set(err, -ENOMEM, "global heap: out of memory");
	size_t from = w->out.len;
	struct emit e = emit_to(w->out.data + from, need);
	emit_u16(&e, (uint16_t)w->next);
	emit_u16(&e, 1);
	emit_u32(&e, 0);
	emit_u64(&e, n);
	if (data)
		emit_bytes(&e, data, n);
	else
		emit_zero(&e, n);
	emit_align(&e, 0, ALIGN);
	w->out.len += e.pos;
	w->next++;
	return 0;
}

static int open_collection(struct h5_gheap_writer *w, struct err *err)
{
	if (bytes_reserve(&w->out, COLLECTION_HEADER))
		return err_set(err, -ENOMEM, "global heap: out of memory");
	struct emit e = emit_to(w->out.data + w->out.len, COLLECTION_HEADER);
	emit_bytes(&e, "GCOL", 4);
	emit_u8(&e, VERSION);
	emit_zero(&e, 3);
	emit_u64(&e, 0); /* set when the collection is closed */
	w->collection = w->out.len;
	w->out.len += COLLECTION_HEADER;
	w->next = 1;
	return 0;
}

int h5_gheap_finish(struct h5_gheap_writer *w, struct err *err)
{
	if (w->next == 0)
		return 0;
	/* There is an index for the filler: 65,535 objects take more than H5_GHEAP_MIN bytes. */
	if (open_size(w) < H5_GHEAP_MIN) {
		const size_t rest = H5_GHEAP_MIN - open_size(w);
		int rc = append(w, NULL, rest < OBJECT_HEADER ? 0 : rest - OBJECT_HEADER, err);
		if (rc)
			return rc;
	}
	struct emit e = emit_to(w->out.data + w->collection + SIZE_AT, sizeof(uint64_t));
	emit_u64(&e, open_size(w));
	w->next = 0;
	return 0;
}

uint64_t h5_gheap_encoded_size(const uint8_t *collection)
{
	struct cursor c = cursor_of(collection + SIZE_AT, COLLECTION_HEADER - SIZE_AT);
	return cur_u64(&c);
}

static bool must_close(const struct h5_gheap_writer *w, size_t n)
{
	size_t size = open_size(w);
	if (w->next > H5_GHEAP_MAX_OBJECTS)
		return true;
	if (size < H5_GHEAP_MIN)
		return false;
	size_t rest = w->target > size ? w->target - size : 0;
	return rest < OBJECT_HEADER || n > rest - OBJECT_HEADER;
}

int h5_gheap_add(struct h5_gheap_writer *w, const void *obj, size_t n, uint64_t *addr,
		 uint32_t *index, struct err *err)
{
	int rc = 0;
	if (w->next && must_close(w, n))
		rc = h5_gheap_finish(w, err);
	if (!rc && w->next == 0)
		rc = open_collection(w, err);
	if (rc)
		return rc;
	uint32_t own = w->next;
	rc = append(w, obj, n, err);
	if (rc)
		return rc;
	*addr = w->base + w->collection;
	*index = own;
	return 0;
}

/*
 * Padding is largest if each object has one byte more than a multiple of 8. Of N objects with S
 * bytes in total, at most M = min(N, S) are not empty, and sum ceil(n_i / 8) = M + sum floor((n_i -
 * 1) / 8) <= M + floor((S - M) / 8). A collection that is closed has H5_GHEAP_MIN bytes or 65,535
 * objects; only the last one gets a filler. If everything fits into the target there is one
 * collection.
 */
uint64_t h5_gheap_bound(uint64_t nobjects, uint64_t nbytes, size_t target)
{
	if (nobjects == 0)
		return 0;
	uint64_t filled_objects = min_u64(nobjects, nbytes);
	uint64_t data = (nbytes - filled_objects) / ALIGN * ALIGN;
	uint64_t objects, starts, bound;
	if (!mul_u64(nobjects, OBJECT_HEADER, &objects) ||
	    !mul_u64(filled_objects, ALIGN, &starts) || !add_u64(objects, starts, &objects) ||
	    !add_u64(objects, data, &objects))
		return UINT64_MAX;
	if (objects <= H5_GHEAP_MIN - COLLECTION_HEADER - OBJECT_HEADER)
		return H5_GHEAP_MIN;
	bool one = nobjects == 1 || (nobjects <= H5_GHEAP_MAX_OBJECTS &&
				     objects <= max_u64(target, H5_GHEAP_MIN) - COLLECTION_HEADER);
	uint64_t collections = 1, filled = 0;
	if (!one) {
		collections += objects / (H5_GHEAP_MIN - COLLECTION_HEADER) +
			       nobjects / H5_GHEAP_MAX_OBJECTS;
		collections = min_u64(collections, nobjects);
		filled = H5_GHEAP_MIN;
	}
	if (!add_u64(objects, collections * COLLECTION_HEADER + filled, &bound))
		return UINT64_MAX;
	return max_u64(bound, H5_GHEAP_MIN + ALIGN);
}

int gheap_header_decode(const struct h5_file *f, const uint8_t *raw, uint64_t *size,
			struct err *err)
{
	struct cursor c = cursor_of(raw, GHEAP_HEADER_SIZE);
	const uint8_t *magic = cur_bytes(&c, 4);
	const uint8_t version = cur_u8(&c);
	cur_skip(&c, 3);
	*size = h5_cur_len(f, &c);
	if (memcmp(magic, "GCOL", 4) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (version != VERSION)
		return err_set(err, -EOPNOTSUPP, "unsupported version %d", version);
	if (*size < GHEAP_HEADER_SIZE)
		return err_set(err, -EIO, "the size of %" PRIu64 " bytes is invalid", *size);
	return 0;
}

static int compare_items(const void *a, const void *b)
{
	const struct gheap_item *x = a, *y = b;
	return (x->index > y->index) - (x->index < y->index);
}

/* libhdf5 gives indexes again that became free, so they need not ascend. */
static int sort_items(struct bytes *items, bool sorted, struct err *err)
{
	const size_t n = items->len / sizeof(struct gheap_item);
	struct gheap_item *all = (void *)items->data;
	if (!sorted)
		qsort(all, n, sizeof(*all), compare_items);
	for (size_t i = 1; i < n; i++)
		if (all[i].index == all[i - 1].index)
			return err_set(err, -EIO, "two objects have the index %d", all[i].index);
	return 0;
}

int gheap_items_decode(const struct h5_file *f, const uint8_t *raw, size_t n, struct bytes *items,
		       struct err *err)
{
	struct cursor c = cursor_of(raw, n);
	bool sorted = true;
	uint16_t last = 0;
	cur_skip(&c, GHEAP_HEADER_SIZE);
	/* A remainder that is too small for a header is free space. */
	while (cur_left(&c) >= GHEAP_OBJECT_HEADER) {
		struct cursor header = cur_sub(&c, GHEAP_OBJECT_HEADER);
		struct gheap_item item = {.at = cur_pos(&c), .index = cur_u16(&header)};
		cur_skip(&header, 6);
		uint64_t size = h5_cur_len(f, &header);
		/* The size of free space includes its header. */
		if (item.index == 0)
			size = size < GHEAP_OBJECT_HEADER ? UINT64_MAX : size - GHEAP_OBJECT_HEADER;
		if (size > cur_left(&c))
			return err_set(err, -EIO, "%s %d extends past the end of the collection",
				       item.index ? "object" : "free space", item.index);
		item.n = (size_t)size;
		/* The last object may have no padding. */
		cur_skip(&c,
			 (size_t)min_u64(item.index ? align_u64(size, ALIGN) : size, cur_left(&c)));
		if (item.index == 0)
			continue;
		sorted = sorted && item.index > last;
		last = item.index;
		if (bytes_append(items, &item, sizeof(item)))
			return err_no_memory(err);
	}
	return sort_items(items, sorted, err);
}
