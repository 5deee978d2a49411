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
 * Reading walks over the object headers of one collection and caches nothing.
 */
#include <h5/gheap.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum {
	COLLECTION_HEADER = 16,
	OBJECT_HEADER = 16,
	SIZE_AT = 8,
	ALIGN = 8,
	VERSION = 1,
	WINDOW = 4096, /* bytes that a scan reads at a time */
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

/* Appends the header of an object, its data (NULL: zeros) and padding. */
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

/* Bytes of data of the object that fills up a collection of `size` bytes; -1: none is needed. */
static int filler(size_t size)
{
	if (size >= H5_GHEAP_MIN)
		return -1;
	size_t rest = H5_GHEAP_MIN - size;
	return rest < OBJECT_HEADER ? 0 : (int)(rest - OBJECT_HEADER);
}

int h5_gheap_finish(struct h5_gheap_writer *w, struct err *err)
{
	if (w->next == 0)
		return 0;
	/* There is an index for the filler: 65,535 objects take more than H5_GHEAP_MIN bytes. */
	int fill = filler(open_size(w));
	int rc = fill < 0 ? 0 : append(w, NULL, (size_t)fill, err);
	if (rc)
		return rc;
	struct emit e = emit_to(w->out.data + w->collection + SIZE_AT, sizeof(uint64_t));
	emit_u64(&e, open_size(w));
	w->next = 0;
	return 0;
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

struct scan {
	const struct h5_file *f;
	uint64_t end; /* of the collection */
	uint64_t at;  /* address of the window */
	size_t len;
	uint8_t window[WINDOW];
};

/* A cursor over n bytes at address pos, which are inside of the collection. */
static int peek(struct scan *s, uint64_t pos, size_t n, struct cursor *c, struct err *err)
{
	if (pos < s->at || pos + n > s->at + s->len) {
		size_t len = (size_t)min_u64(WINDOW, s->end - pos);
		int rc = h5_file_read(s->f, pos, s->window, len, err);
		if (rc)
			return rc;
		s->at = pos;
		s->len = len;
	}
	*c = cursor_of(s->window + (pos - s->at), n);
	return 0;
}

static int read_header(struct scan *s, uint64_t addr, struct err *err)
{
	struct cursor c;
	const uint64_t size_of_file = h5_file_size(s->f);
	if (addr > size_of_file || size_of_file - addr < COLLECTION_HEADER)
		return err_set(err, -EIO, "the address is outside of the file");
	s->end = size_of_file;
	int rc = peek(s, addr, COLLECTION_HEADER, &c, err);
	if (rc)
		return rc;
	const uint8_t *magic = cur_bytes(&c, 4);
	uint8_t version = cur_u8(&c);
	cur_skip(&c, 3);
	uint64_t size = h5_cur_len(s->f, &c);
	if (memcmp(magic, "GCOL", 4) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (version != VERSION)
		return err_set(err, -EOPNOTSUPP, "unsupported version %d", version);
	if (size < COLLECTION_HEADER || size > size_of_file - addr)
		return err_set(err, -EIO, "the size of %" PRIu64 " bytes is invalid", size);
	s->end = addr + size;
	return 0;
}

/* Finds the data of an object: n bytes at address pos. */
static int find(struct scan *s, uint64_t addr, uint32_t index, uint64_t *pos, uint64_t *n,
		struct err *err)
{
	uint64_t at = addr + COLLECTION_HEADER;
	while (s->end - at >= OBJECT_HEADER) {
		struct cursor c;
		int rc = peek(s, at, OBJECT_HEADER, &c, err);
		if (rc)
			return rc;
		uint16_t found = cur_u16(&c);
		cur_skip(&c, 6);
		uint64_t size = h5_cur_len(s->f, &c), rest = s->end - at - OBJECT_HEADER;
		if (found == 0) {
			/* The size of free space includes its header. */
			if (size < OBJECT_HEADER || size - OBJECT_HEADER > rest)
				return err_set(err, -EIO,
					       "free space extends past the end of the collection");
			at += size;
			continue;
		}
		if (size > rest)
			return err_set(err, -EIO,
				       "object %d extends past the end of the collection", found);
		*pos = at + OBJECT_HEADER;
		*n = size;
		if (found == index)
			return 0;
		/* The last object may have no padding. */
		at += OBJECT_HEADER + min_u64(align_u64(size, ALIGN), rest);
	}
	return err_set(err, -EIO, "there is no object %u", index);
}

int h5_gheap_get(const struct h5_file *f, uint64_t addr, uint32_t index, size_t max,
		 struct bytes *out, struct err *err)
{
	struct scan s = {.f = f};
	uint64_t pos = 0, n = 0;
	int rc = index ? read_header(&s, addr, err) : err_set(err, -EIO, "object 0 is free space");
	if (!rc)
		rc = find(&s, addr, index, &pos, &n, err);
	if (!rc && n > max)
		rc = err_set(err, -EIO, "object %u has %" PRIu64 " bytes, more than %zu", index, n,
			     max);
	if (!rc && bytes_reserve(out, (size_t)n))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (!rc)
		rc = h5_file_read(f, pos, out->data + out->len, (size_t)n, err);
	if (rc)
		return err_wrap(err, rc, "global heap at %" PRIu64, addr);
	out->len += (size_t)n;
	return 0;
}
