/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading objects of a fractal heap. h5_fheap_open() reads the header and all indirect blocks, and
 * makes a table of direct blocks by heap offset. After that, each object takes one read. The first
 * object of a block takes one more read, to check the block's checksum. The first huge object takes
 * a walk over the B-tree of huge objects.
 *
 * A block contains its offset in the heap, so a block that is in the tree twice is damaged. Blocks
 * do not overlap, so the size of the file limits how much is read and kept.
 *
 * Not thread-safe.
 */
#include "fheap_format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <h5/btree2.h>

struct block {
	uint64_t offset; /* in the heap; ascending */
	uint64_t size;
	uint64_t addr;
	bool checked;
};

struct huge {
	uint64_t id; /* ascending */
	uint64_t addr, len;
};

struct h5_fheap_reader {
	struct h5_file file;
	uint64_t addr;
	struct fheap_header header;
	struct fheap_table table;
	struct bytes blocks; /* of struct block */
	uint64_t bytes_left; /* bytes of the file that no block has used */
	struct bytes huge;   /* of struct huge */
	bool huge_read;	     /* the B-tree of huge objects has been read */
};

static int out_of_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "fractal heap: out of memory");
}

/* Counts n bytes of the file for a block. */
static int use(struct h5_fheap_reader *r, uint64_t n, struct err *err)
{
	if (n > r->bytes_left)
		return err_set(err, -EIO, "fractal heap: more blocks than the file has room for");
	r->bytes_left -= n;
	return 0;
}

static int add_block(struct h5_fheap_reader *r, uint64_t offset, uint64_t size, uint64_t addr,
		     struct err *err)
{
	struct block b = {.offset = offset, .size = size, .addr = addr};
	int rc = use(r, size, err);
	if (!rc && bytes_append(&r->blocks, &b, sizeof(b)))
		rc = out_of_memory(err);
	return rc;
}

/* Adds the direct blocks below the indirect block at addr. The range of a child is smaller than
 * that of its parent, which limits the depth. */
static int read_indirect(struct h5_fheap_reader *r, uint64_t addr, uint64_t offset,
			 unsigned int rows, struct err *err)
{
	const struct fheap_table *t = &r->table;
	uint64_t size = fheap_indirect_size(t, rows);
	int rc = use(r, size, err);
	if (rc)
		return rc;
	auto_free uint8_t *raw = malloc((size_t)size);
	if (!raw)
		return out_of_memory(err);
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
		rc = err_set(err, -EIO, "fractal heap: %d rows, more than the maximum of %u",
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
		return out_of_memory(err);
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

/* Appends bytes [addr, addr + n) of the file to out. */
static int append_from(const struct h5_fheap_reader *r, uint64_t addr, uint64_t n, size_t max,
		       struct bytes *out, struct err *err)
{
	if (n > max)
		return err_set(err, -EIO, "object of %" PRIu64 " bytes, more than %zu", n, max);
	if (n > h5_file_size(&r->file))
		return err_set(err, -EIO, "the object is larger than the file");
	if (bytes_reserve(out, (size_t)n))
		return out_of_memory(err);
	int rc = h5_file_read(&r->file, addr, out->data + out->len, (size_t)n, err);
	if (!rc)
		out->len += (size_t)n;
	return rc;
}

/* Checks prefix and checksum of a direct block, once. */
static int check_block(struct h5_fheap_reader *r, struct block *b, struct err *err)
{
	if (b->checked)
		return 0;
	auto_free uint8_t *raw = malloc((size_t)b->size);
	if (!raw)
		return out_of_memory(err);
	int rc = h5_file_read(&r->file, b->addr, raw, (size_t)b->size, err);
	if (!rc)
		rc = fheap_direct_check(&r->table, r->addr, b->offset, raw, (size_t)b->size, err);
	b->checked = rc == 0;
	return rc;
}

/* The direct block at a heap offset; NULL: there is none. */
static struct block *find_block(const struct h5_fheap_reader *r, uint64_t offset)
{
	struct block *blocks = (struct block *)(void *)r->blocks.data;
	size_t lo = 0, hi = r->blocks.len / sizeof(*blocks);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (blocks[mid].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || offset - blocks[lo - 1].offset >= blocks[lo - 1].size)
		return NULL;
	return &blocks[lo - 1];
}

static int get_managed(struct h5_fheap_reader *r, struct cursor *id, size_t max, struct bytes *out,
		       struct err *err)
{
	uint64_t offset = cur_uint(id, r->table.off_size), len = cur_uint(id, r->table.len_size);
	struct block *b = find_block(r, offset);
	if (!b)
		return err_set(err, -EIO, "there is no block at heap offset %" PRIu64, offset);
	uint64_t within = offset - b->offset;
	if (within < r->table.prefix || len > b->size - within)
		return err_set(err, -EIO, "the object is outside of its block");
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
		return err_set(err, -EIO, "a B-tree record has %d bytes", record_size);
	if (n && all[n - 1].id >= h.id)
		return err_set(err, -EIO, "the huge objects are not in order");
	return bytes_append(&r->huge, &h, sizeof(h)) ? out_of_memory(err) : 0;
}

static int read_huge_tree(struct h5_fheap_reader *r, struct err *err)
{
	if (r->huge_read)
		return 0;
	if (r->header.huge_tree == H5_UNDEF)
		return err_set(err, -EIO, "the heap has no huge objects");
	r->huge.len = 0; /* a failed walk may have left some */
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
		return err_set(err, -EIO, "there is no huge object %" PRIu64, number);
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
		return err_set(err, -EIO, "invalid tiny object of %zu bytes", len);
	return bytes_append(out, data, len) ? out_of_memory(err) : 0;
}

int h5_fheap_get(struct h5_fheap_reader *r, const uint8_t *id, size_t id_len, size_t max,
		 struct bytes *out, struct err *err)
{
	struct cursor c = cursor_of(id, id_len);
	int rc;
	if (id_len != r->table.params.id_len)
		return err_set(err, -EIO, "heap id of %zu bytes instead of %d", id_len,
			       r->table.params.id_len);
	uint8_t flags = cur_u8(&c);
	if (flags & FHEAP_ID_VERSION)
		return err_set(err, -EOPNOTSUPP, "unsupported version %d of a heap id", flags >> 6);
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
		return err_set(err, -EIO, "invalid class 0x%02x of a heap id",
			       flags & FHEAP_ID_CLASS);
	}
	return rc ? err_wrap(err, rc, "fractal heap at %" PRIu64, r->addr) : 0;
}
