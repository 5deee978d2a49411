/* SPDX-License-Identifier: Apache-2.0 */
/* Pure functions. fheap_format.h describes the blocks. */
#include "fheap_format.h"

#include <errno.h>
#include <string.h>

#include <base/checksum.h>

enum {
	CHECKSUM_SIZE = 4,
	BLOCK_PREFIX_SIZE = 4 + 1, /* signature and version */
	ADDRS_IN_HEADER = 3,
	LENS_IN_HEADER = 12,
	TINY_SHORT_MAX = 16, /* largest length in the first byte of an id */
	START_ROWS = 1,	     /* as in heaps of libhdf5 */
	MAX_INDEX = 64,	     /* bits of heap offsets */
	FILTER_MASK_SIZE = 4,
	FILTER_LEN_AT = 7,
	MAX_DIRECT_BITS = 31, /* of the size of direct blocks, as in libhdf5 */
};

static unsigned int log2_floor(uint64_t v)
{
	unsigned int n = 0;
	while (v >>= 1)
		n++;
	return n;
}

static bool is_power_of_2(uint64_t v)
{
	return v && !(v & (v - 1));
}

static unsigned int min_uint(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

int fheap_table_init(struct fheap_table *t, const struct h5_file *f,
		     const struct h5_fheap_params *p, bool checksum, bool filtered, struct err *err)
{
	*t = (struct fheap_table){
		.params = *p, .file = *f, .checksum = checksum, .filtered = filtered};
	if (!is_power_of_2(p->table_width) || !is_power_of_2(p->start_block) ||
	    !is_power_of_2(p->max_direct) || p->start_block > p->max_direct ||
	    p->max_index > MAX_INDEX || p->max_direct >> MAX_DIRECT_BITS > 1)
		return err_set(err, -EIO, "fractal heap: invalid doubling table");
	unsigned int start_bits = log2_floor(p->start_block);
	unsigned int direct_bits = log2_floor(p->max_direct);
	t->row_bits = start_bits + log2_floor(p->table_width);
	if (t->row_bits > p->max_index)
		return err_set(err, -EIO, "fractal heap: a row is larger than the heap");
	t->max_rows = p->max_index - t->row_bits + 1;
	t->direct = direct_bits - start_bits + 2;
	if (t->max_rows > t->direct && t->row_bits > direct_bits + 1)
		return err_set(err, -EIO, "fractal heap: a row is larger than an indirect block");
	t->off_size = (p->max_index + 7U) / 8;
	t->len_size = min_uint((direct_bits + 7) / 8, log2_floor(p->max_managed) / 8 + 1);
	t->prefix = BLOCK_PREFIX_SIZE + f->addr_size + t->off_size + (checksum ? CHECKSUM_SIZE : 0);
	if (p->start_block <= t->prefix || p->max_managed > p->max_direct - t->prefix)
		return err_set(err, -EIO, "fractal heap: the blocks are too small for objects");
	if (p->id_len < 1U + t->off_size + t->len_size)
		return err_set(err, -EIO, "fractal heap: ids of %d bytes are too short", p->id_len);
	/* Sizes of ids of huge and tiny objects, as in H5HF__huge_init() and H5HF__tiny_init(). */
	unsigned int room = p->id_len - 1U, needed = f->addr_size + f->len_size;
	if (filtered)
		needed += FILTER_MASK_SIZE + f->len_size;
	t->huge_direct = room >= needed;
	t->huge_size = min_uint(room, 8);
	t->tiny_extended = room > TINY_SHORT_MAX + 1;
	t->tiny_max = t->tiny_extended ? room - 1 : min_uint(room, TINY_SHORT_MAX);
	return 0;
}

uint64_t fheap_row_size(const struct fheap_table *t, unsigned int row)
{
	return row ? t->params.start_block << (row - 1) : t->params.start_block;
}

uint64_t fheap_row_offset(const struct fheap_table *t, unsigned int row)
{
	return row ? 1ULL << (t->row_bits + row - 1) : 0;
}

struct fheap_entry fheap_entry_at(const struct fheap_table *t, unsigned int row, unsigned int col)
{
	uint64_t size = fheap_row_size(t, row);
	return (struct fheap_entry){row, fheap_row_offset(t, row) + col * size, size};
}

struct fheap_entry fheap_find(const struct fheap_table *t, uint64_t offset)
{
	unsigned int row = offset >> t->row_bits ? log2_floor(offset) - t->row_bits + 1 : 0;
	uint64_t within = offset - fheap_row_offset(t, row);
	return fheap_entry_at(t, row, (unsigned int)(within / fheap_row_size(t, row)));
}

unsigned int fheap_child_rows(const struct fheap_table *t, unsigned int row)
{
	return log2_floor(fheap_row_size(t, row)) - t->row_bits + 1;
}

uint64_t fheap_capacity(const struct fheap_table *t, unsigned int rows)
{
	/* Bytes for objects in a block of each row. An indirect block has those of all its rows. */
	uint64_t room[FHEAP_MAX_ROWS], total = 0;
	for (unsigned int row = 0; row < rows; row++) {
		room[row] = 0;
		if (row < t->direct)
			room[row] = fheap_row_size(t, row) - t->prefix;
		else
			for (unsigned int r = 0; r < fheap_child_rows(t, row); r++)
				room[row] += room[r] * t->params.table_width;
		total += room[row] * t->params.table_width;
	}
	return total;
}

uint64_t fheap_indirect_size(const struct fheap_table *t, unsigned int rows)
{
	const uint64_t entries = (uint64_t)rows * t->params.table_width;
	const uint64_t direct = (uint64_t)min_uint(rows, t->direct) * t->params.table_width;
	const uint64_t more = t->filtered ? t->file.len_size + FILTER_MASK_SIZE : 0;
	return BLOCK_PREFIX_SIZE + t->file.addr_size + t->off_size + entries * t->file.addr_size +
	       direct * more + CHECKSUM_SIZE;
}

void fheap_header_encode(struct emit *e, const struct fheap_header *h)
{
	const struct h5_fheap_params *p = &h->params;
	size_t from = e->pos;
	emit_bytes(e, "FRHP", 4);
	emit_u8(e, 0);
	emit_u16(e, p->id_len);
	emit_u16(e, 0); /* no filters */
	emit_u8(e, h->flags);
	emit_u32(e, p->max_managed);
	emit_u64(e, h->huge_last_id);
	emit_u64(e, h->huge_tree);
	emit_u64(e, h->free_bytes);
	emit_u64(e, H5_UNDEF); /* no free-space manager */
	emit_u64(e, h->managed_bytes);
	emit_u64(e, h->block_bytes);
	emit_u64(e, h->iterator);
	emit_u64(e, h->managed_n);
	emit_u64(e, h->huge_bytes);
	emit_u64(e, h->huge_n);
	emit_u64(e, h->tiny_bytes);
	emit_u64(e, h->tiny_n);
	emit_u16(e, p->table_width);
	emit_u64(e, p->start_block);
	emit_u64(e, p->max_direct);
	emit_u16(e, p->max_index);
	emit_u16(e, START_ROWS);
	emit_u64(e, h->root);
	emit_u16(e, h->root_rows);
	emit_checksum(e, from);
}

size_t fheap_header_size(const struct h5_file *f)
{
	return FHEAP_HEADER_SIZE - ADDRS_IN_HEADER * (8 - (size_t)f->addr_size) -
	       LENS_IN_HEADER * (8 - (size_t)f->len_size);
}

size_t fheap_header_more(const struct h5_file *f, const uint8_t *raw)
{
	struct cursor c = cursor_of(raw, fheap_header_size(f));
	cur_skip(&c, FILTER_LEN_AT);
	const uint16_t filter_len = cur_u16(&c);
	return filter_len ? (size_t)f->len_size + FILTER_MASK_SIZE + filter_len : 0;
}

static void decode_fields(const struct h5_file *f, struct cursor *c, struct fheap_header *h)
{
	struct h5_fheap_params *p = &h->params;
	p->id_len = cur_u16(c);
	h->filter_len = cur_u16(c);
	h->flags = cur_u8(c);
	p->max_managed = cur_u32(c);
	cur_skip(c, f->len_size); /* what is skipped, only writers need */
	h->huge_tree = h5_cur_addr(f, c);
	cur_skip(c, f->len_size);
	h->free_space = h5_cur_addr(f, c);
	h->managed_bytes = h5_cur_len(f, c);
	cur_skip(c, (size_t)7 * f->len_size);
	p->table_width = cur_u16(c);
	p->start_block = h5_cur_len(f, c);
	p->max_direct = h5_cur_len(f, c);
	p->max_index = cur_u16(c);
	cur_skip(c, 2);
	h->root = h5_cur_addr(f, c);
	h->root_rows = cur_u16(c);
}

int fheap_header_decode(const struct h5_file *f, const uint8_t *raw, size_t n,
			struct fheap_header *h, struct cursor *filters, struct err *err)
{
	struct cursor c = cursor_of(raw, n);
	const uint8_t *magic = cur_bytes(&c, 4);
	const uint8_t version = cur_u8(&c);
	*h = (struct fheap_header){.root_stored = 0};
	decode_fields(f, &c, h);
	if (h->filter_len) {
		h->root_stored = h5_cur_len(f, &c);
		h->root_mask = cur_u32(&c);
	}
	*filters = cur_sub(&c, h->filter_len);
	const size_t used = cur_pos(&c);
	const uint32_t stored = cur_u32(&c);
	if (!cur_ok(&c) || memcmp(magic, "FRHP", 4) != 0)
		return err_set(err, -EIO, "fractal heap header: wrong signature");
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "fractal heap: unsupported version %d", version);
	if (stored != checksum_lookup3(raw, used, 0))
		return err_set(err, -EIO, "fractal heap header: wrong checksum");
	return 0;
}

static void encode_prefix(struct emit *e, const char *magic, const struct fheap_table *t,
			  uint64_t heap, uint64_t offset)
{
	emit_bytes(e, magic, 4);
	emit_u8(e, 0);
	emit_u64(e, heap);
	emit_uint(e, offset, t->off_size);
}

static int decode_prefix(struct cursor *c, const char *magic, const struct fheap_table *t,
			 uint64_t heap, uint64_t offset, struct err *err)
{
	const uint8_t *found = cur_bytes(c, 4);
	uint8_t version = cur_u8(c);
	uint64_t owner = h5_cur_addr(&t->file, c), at = cur_uint(c, t->off_size);
	if (!cur_ok(c) || memcmp(found, magic, 4) != 0)
		return err_set(err, -EIO, "%s block: wrong signature", magic);
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "%s block: unsupported version %d", magic,
			       version);
	if (owner != heap || at != offset)
		return err_set(err, -EIO, "%s block: wrong heap address or offset", magic);
	return 0;
}

void fheap_direct_encode(struct emit *e, const struct fheap_table *t, uint64_t heap,
			 uint64_t offset, uint64_t size, const uint8_t *data, size_t n)
{
	size_t from = e->pos;
	encode_prefix(e, "FHDB", t, heap, offset);
	size_t sum_at = e->pos;
	if (t->checksum)
		emit_u32(e, 0);
	emit_bytes(e, data, n);
	emit_zero(e, (size_t)size - t->prefix - n);
	if (t->checksum && e->buf && !e->bad)
		emit_patch_u32(e, sum_at, checksum_lookup3(e->buf + from, (size_t)size, 0));
}

int fheap_direct_check(const struct fheap_table *t, uint64_t heap, uint64_t offset, uint8_t *block,
		       size_t size, struct err *err)
{
	struct cursor c = cursor_of(block, size);
	int rc = decode_prefix(&c, "FHDB", t, heap, offset, err);
	if (rc || !t->checksum)
		return rc;
	uint8_t *field = block + cur_pos(&c);
	uint32_t stored = cur_u32(&c);
	if (!cur_ok(&c))
		return err_set(err, -EIO, "FHDB block is too short");
	memset(field, 0, CHECKSUM_SIZE);
	if (stored != checksum_lookup3(block, size, 0))
		return err_set(err, -EIO, "FHDB block: wrong checksum");
	return 0;
}

void fheap_indirect_encode(struct emit *e, const struct fheap_table *t, uint64_t heap,
			   uint64_t offset, unsigned int rows,
			   uint64_t (*child)(void *ctx, const struct fheap_entry *entry), void *ctx)
{
	size_t from = e->pos;
	encode_prefix(e, "FHIB", t, heap, offset);
	for (unsigned int row = 0; row < rows; row++) {
		for (unsigned int col = 0; col < t->params.table_width; col++) {
			struct fheap_entry entry = fheap_entry_at(t, row, col);
			emit_u64(e, child(ctx, &entry));
		}
	}
	emit_checksum(e, from);
}

int fheap_indirect_decode(const struct fheap_table *t, uint64_t heap, uint64_t offset,
			  const uint8_t *raw, size_t size, struct cursor *children, struct err *err)
{
	struct cursor c = cursor_of(raw, size);
	int rc = decode_prefix(&c, "FHIB", t, heap, offset, err);
	if (rc)
		return rc;
	*children = cur_sub(&c, size - cur_pos(&c) - CHECKSUM_SIZE);
	uint32_t stored = cur_u32(&c);
	if (!cur_ok(&c) || stored != checksum_lookup3(raw, size - CHECKSUM_SIZE, 0))
		return err_set(err, -EIO, "FHIB block: wrong checksum");
	return 0;
}

struct fheap_child fheap_child_decode(const struct fheap_table *t, struct cursor *children,
				      unsigned int row)
{
	struct fheap_child child = {.addr = h5_cur_addr(&t->file, children)};
	if (row >= t->direct)
		return child;
	child.stored = fheap_row_size(t, row);
	if (t->filtered) {
		child.stored = h5_cur_len(&t->file, children);
		child.mask = cur_u32(children);
	}
	return child;
}
