/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading objects of a fractal heap. Opening reads the header and all indirect blocks, which
 * gives a table of direct blocks by heap offset; an object then costs one read, and the check of
 * its block's checksum the first time. The B-tree of huge objects is read when the first one is
 * asked for.
 *
 * Blocks know their offset in the heap, so a block that stands in the tree twice is damaged; and
 * since blocks do not overlap, the file's size bounds what is read and kept.
 *
 * Not thread-safe: one reader, one thread.
 */
#include "fheap_format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <h5/btree2.h>

struct block {
	uint64_t offset; /* in the heap; rising */
	uint64_t size;
	uint64_t addr;
	bool checked;
};

struct huge {
	uint64_t id; /* rising */
	uint64_t addr, len;
};

struct h5_fheap_reader {
	struct h5_file file;
	uint64_t addr;
	struct fheap_header header;
	struct fheap_table table;
	struct bytes blocks; /* of struct block */
	uint64_t bytes_left; /* of the file, not yet taken by blocks */
	struct bytes huge;   /* of struct huge */
	bool huge_read;
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "fractal heap: out of memory");
}

/* Takes n bytes of the file for a block. */
static int take(struct h5_fheap_reader *r, uint64_t n, struct err *err)
{
	if (n > r->bytes_left)
		return err_set(err, -EIO, "fractal heap: more blocks than the file can hold");
	r->bytes_left -= n;
	return 0;
}

static int add_block(struct h5_fheap_reader *r, uint64_t offset, uint64_t size, uint64_t addr,
		     struct err *err)
{
	struct block b = {.offset = offset, .size = size, .addr = addr};
	int rc = take(r, size, err);
	if (!rc && bytes_append(&r->blocks, &b, sizeof(b)))
		rc = no_memory(err);
	return rc;
}

/* Collects the direct blocks below the indirect block at addr. A child's range is smaller than
 * its parent's, so the depth is bounded. */
static int read_indirect(struct h5_fheap_reader *r, uint64_t addr, uint64_t offset,
			 unsigned int rows, struct err *err)
{
	const struct fheap_table *t = &r->table;
	uint64_t size = fheap_indirect_size(t, rows);
	int rc = take(r, size, err);
	if (rc)
		return rc;
	auto_free uint8_t *raw = malloc((size_t)size);
	if (!raw)
		return no_memory(err);
	struct cursor children;
	rc = h5_file_read(&r->file, addr, raw, (size_t)size, err);
	if (!rc)
		rc = fheap_indirect_decode(t, r->addr, offset, raw, (size_t)size, &children, err);
	for (unsigned int row = 0; row < rows && !rc; row++) {
		for (unsigned int col = 0; col < t->params.table_width && !rc; col++) {
			struct fheap_entry entry = fheap_entry_at(t, row, col);
			uint64_t child = h5_cur_addr(&r->file, &children);
			if (child == H5_UNDEF)
				continue;
			if (row < t->direct)
				rc = add_block(r, offset + entry.offset, entry.size, child, err);
			else
				rc = read_indirect(r, child, offset + entry.offset,
						   fheap_child_rows(t, row), err);
		}
	}
	return rc;
}

static int read_header(struct h5_fheap_reader *r, struct err *err)
{
	uint8_t raw[FHEAP_HEADER_SIZE];
	const size_t size = fheap_header_size(&r->file);
	int rc = h5_file_read(&r->file, r->addr, raw, size, err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(raw, size);
	rc = fheap_header_decode(&r->file, &c, &r->header, err);
	if (rc)
		return rc;
	rc = fheap_table_init(&r->table, &r->file, &r->header.params,
			      r->header.flags & FHEAP_CHECKSUM_BLOCKS, err);
	if (!rc && r->header.root_rows > r->table.max_rows)
		rc = err_set(err, -EIO, "fractal heap: %d rows, at most %u are possible",
			     r->header.root_rows, r->table.max_rows);
	return rc;
}

static int read_heap(struct h5_fheap_reader *r, struct err *err)
{
	int rc = read_header(r, err);
	if (rc || r->header.root == H5_UNDEF)
		return rc;
	if (r->header.root_rows == 0)
		return add_block(r, 0, r->table.params.start_block, r->header.root, err);
	return read_indirect(r, r->header.root, 0, r->header.root_rows, err);
}

int h5_fheap_open(const struct h5_file *f, uint64_t addr, struct h5_fheap_reader **out,
		  struct err *err)
{
	struct h5_fheap_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return no_memory(err);
	r->file = *f;
	r->addr = addr;
	r->bytes_left = h5_file_size(f);
	int rc = read_heap(r, err);
	if (rc) {
		h5_fheap_close(r);
		return err_wrap(err, rc, "fractal heap at %" PRIu64, addr);
	}
	*out = r;
	return 0;
}

void h5_fheap_close(struct h5_fheap_reader *r)
{
	if (!r)
		return;
	bytes_release(&r->blocks);
	bytes_release(&r->huge);
	free(r);
}

/* Appends [addr, addr + n) of the file to out. */
static int append_from(const struct h5_fheap_reader *r, uint64_t addr, uint64_t n, size_t max,
		       struct bytes *out, struct err *err)
{
	if (n > max)
		return err_set(err, -EIO, "object of %" PRIu64 " bytes where at most %zu are due",
			       n, max);
	if (n > h5_file_size(&r->file))
		return err_set(err, -EIO, "object is larger than the file");
	if (bytes_reserve(out, (size_t)n))
		return no_memory(err);
	int rc = h5_file_read(&r->file, addr, out->data + out->len, (size_t)n, err);
	if (!rc)
		out->len += (size_t)n;
	return rc;
}

/* Prefix and checksum of a direct block, once. */
static int check_block(struct h5_fheap_reader *r, struct block *b, struct err *err)
{
	if (b->checked)
		return 0;
	auto_free uint8_t *raw = malloc((size_t)b->size);
	if (!raw)
		return no_memory(err);
	int rc = h5_file_read(&r->file, b->addr, raw, (size_t)b->size, err);
	if (!rc)
		rc = fheap_direct_check(&r->table, r->addr, b->offset, raw, (size_t)b->size, err);
	b->checked = rc == 0;
	return rc;
}

/* The direct block that holds a heap offset, or NULL. */
static struct block *find_block(const struct h5_fheap_reader *r, uint64_t offset)
{
	struct block *blocks = (struct block *)(void *)r->blocks.data;
	size_t lo = 0, hi = r->blocks.len / sizeof(*blocks);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (blocks[mid].offset + blocks[mid].size <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	bool found = lo < r->blocks.len / sizeof(*blocks) && blocks[lo].offset <= offset;
	return found ? &blocks[lo] : NULL;
}

static int get_managed(struct h5_fheap_reader *r, struct cursor *id, size_t max, struct bytes *out,
		       struct err *err)
{
	uint64_t offset = cur_uint(id, r->table.off_size), len = cur_uint(id, r->table.len_size);
	struct block *b = find_block(r, offset);
	if (!b)
		return err_set(err, -EIO, "no block at offset %" PRIu64, offset);
	uint64_t within = offset - b->offset;
	if (within < r->table.prefix || len > b->size - within)
		return err_set(err, -EIO, "object is not inside of its block");
	int rc = check_block(r, b, err);
	return rc ? rc : append_from(r, b->addr + within, len, max, out, err);
}

static int add_huge(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	struct h5_fheap_reader *r = ctx;
	struct cursor c = cursor_of(record, record_size);
	struct huge h;
	h.addr = h5_cur_addr(&r->file, &c);
	h.len = h5_cur_len(&r->file, &c);
	h.id = h5_cur_len(&r->file, &c);
	const struct huge *all = (const void *)r->huge.data;
	size_t n = r->huge.len / sizeof(h);
	if (!cur_ok(&c))
		return err_set(err, -EIO, "record of %d bytes", record_size);
	if (n && all[n - 1].id >= h.id)
		return err_set(err, -EIO, "huge objects are not in order");
	return bytes_append(&r->huge, &h, sizeof(h)) ? no_memory(err) : 0;
}

static int read_huge_tree(struct h5_fheap_reader *r, struct err *err)
{
	if (r->huge_read)
		return 0;
	if (r->header.huge_tree == H5_UNDEF)
		return err_set(err, -EIO, "heap has no huge objects");
	r->huge.len = 0; /* of an attempt that failed */
	int rc = h5_bt2_walk(&r->file, r->header.huge_tree, H5_BT2_HUGE, add_huge, r, err);
	r->huge_read = rc == 0;
	return rc;
}

static int get_huge(struct h5_fheap_reader *r, struct cursor *id, size_t max, struct bytes *out,
		    struct err *err)
{
	if (r->table.huge_direct) {
		uint64_t addr = h5_cur_addr(&r->file, id), len = h5_cur_len(&r->file, id);
		return append_from(r, addr, len, max, out, err);
	}
	uint64_t number = cur_uint(id, r->table.huge_size);
	int rc = read_huge_tree(r, err);
	if (rc)
		return rc;
	const struct huge *all = (const void *)r->huge.data;
	size_t lo = 0, n = r->huge.len / sizeof(*all), hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (all[mid].id < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == n || all[lo].id != number)
		return err_set(err, -EIO, "no huge object %" PRIu64, number);
	return append_from(r, all[lo].addr, all[lo].len, max, out, err);
}

static int get_tiny(const struct h5_fheap_reader *r, uint8_t flags, struct cursor *id, size_t max,
		    struct bytes *out, struct err *err)
{
	size_t len = flags & 0x0f;
	if (r->table.tiny_extended)
		len = len << 8 | cur_u8(id);
	len++;
	const uint8_t *data = cur_bytes(id, len);
	if (!data || len > max)
		return err_set(err, -EIO, "tiny object of %zu bytes", len);
	return bytes_append(out, data, len) ? no_memory(err) : 0;
}

int h5_fheap_get(struct h5_fheap_reader *r, const uint8_t *id, size_t id_len, size_t max,
		 struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(id, id_len);
	int rc;
	if (id_len != r->table.params.id_len)
		return err_set(err, -EIO, "heap id of %zu bytes where %d are due", id_len,
			       r->table.params.id_len);
	uint8_t flags = cur_u8(&c);
	if (flags & FHEAP_ID_VERSION)
		return err_set(err, -EOPNOTSUPP, "heap id version %d", flags >> 6);
	switch (flags & FHEAP_ID_CLASS) {
	case FHEAP_ID_MANAGED:
		rc = get_managed(r, &c, max, out, err);
		break;
	case FHEAP_ID_HUGE:
		rc = get_huge(r, &c, max, out, err);
		break;
	case FHEAP_ID_TINY:
		rc = get_tiny(r, flags, &c, max, out, err);
		break;
	default:
		return err_set(err, -EIO, "heap id of class 0x%02x", flags & FHEAP_ID_CLASS);
	}
	return rc ? err_wrap(err, rc, "fractal heap at %" PRIu64, r->addr) : 0;
}
