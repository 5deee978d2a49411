/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a fractal heap. An object is appended to the last direct block if it fits. Otherwise the
 * next block of the doubling table that is large enough is added; smaller blocks before it are
 * skipped and stay unused, as in libhdf5.
 *
 * There is no free-space manager. libhdf5 then assumes that no free space is known, and adds blocks
 * at the iterator of the header, which is the end of the last block. Statistics are those that
 * libhdf5 computes; its "free space" includes all blocks that the rows of the root can have.
 *
 * The encoded heap consists, in this order, of
 *
 *   the header
 *   the root: a direct block if one of the starting size is enough, otherwise an indirect block
 *   the other blocks in heap order, an indirect block before its children
 *   if there are huge objects: their B-tree, then the bytes of those that are not "apart"
 *
 * The caller stores an object that is "apart" at an address outside of the encoded heap.
 *
 * Not thread-safe. Encoding the same heap again gives the same bytes.
 */
#include "fheap_format.h"

#include <assert.h>
#include <errno.h>

#include <h5/btree2.h>

enum { HUGE_NODE_SIZE = 512 };

const struct h5_fheap_params h5_fheap_links = {
	.id_len = 7,
	.table_width = 4,
	.start_block = 512,
	.max_direct = 64 * 1024,
	.max_index = 32,
	.max_managed = 4096,
};
const struct h5_fheap_params h5_fheap_attrs = {
	.id_len = 8,
	.table_width = 4,
	.start_block = 1024,
	.max_direct = 64 * 1024,
	.max_index = 40,
	.max_managed = 4096,
};

struct block {
	uint64_t offset; /* in the heap */
	uint64_t size;
	struct bytes objects;
};

struct huge {
	const void *data; /* borrowed; NULL if apart */
	uint64_t n, addr; /* addr is only that of an object that is apart */
};

struct h5_fheap {
	struct fheap_table table;
	struct bytes block_bytes; /* of struct block */
	struct block *blocks;	  /* the same; by offset */
	size_t nblocks;
	unsigned int root_rows; /* of the root indirect block; 0 if the root is direct */
	struct bytes huge_list; /* of struct huge */
	struct huge *huge;	/* the same; object i has id i + 1 */
	size_t nhuge;
	uint64_t managed_n, managed_bytes;
	uint64_t huge_bytes; /* of all huge objects */
	uint64_t tiny_n, tiny_bytes;
};

struct h5_fheap *h5_fheap_new(const struct h5_fheap_params *params)
{
	struct h5_fheap *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	const struct h5_file file = h5_file_of(NULL);
	int rc = fheap_table_init(&h->table, &file, params, true, false, NULL);
	/* Ids that contain addresses are not possible before addresses are known. */
	assert(rc == 0 && !h->table.huge_direct);
	(void)rc;
	return h;
}

void h5_fheap_free(struct h5_fheap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->nblocks; i++)
		bytes_release(&h->blocks[i].objects);
	bytes_release(&h->block_bytes);
	bytes_release(&h->huge_list);
	free(h);
}

static int insert_huge(struct h5_fheap *h, const struct huge *huge, struct emit *id,
		       struct err *err)
{
	unsigned int width = h->table.huge_size;
	if (width < 8 && h->nhuge == (1ULL << (8 * width)) - 1)
		return err_set(err, -E2BIG, "fractal heap: too many huge objects");
	if (bytes_append(&h->huge_list, huge, sizeof(*huge)))
		return err_set(err, -ENOMEM, "fractal heap: out of memory");
	h->huge = (void *)h->huge_list.data;
	h->nhuge++;
	h->huge_bytes += huge->n;
	emit_u8(id, FHEAP_ID_HUGE);
	emit_uint(id, h->nhuge, width);
	return 0;
}

static void insert_tiny(struct h5_fheap *h, const void *obj, size_t n, struct emit *id)
{
	/* Ids that are too short for addresses of huge objects have no room for a second byte. */
	assert(!h->table.tiny_extended);
	emit_u8(id, (uint8_t)(FHEAP_ID_TINY | (n - 1)));
	emit_bytes(id, obj, n);
	h->tiny_n++;
	h->tiny_bytes += n;
}

static uint64_t end_of_blocks(const struct h5_fheap *h)
{
	const struct block *last = h->nblocks ? &h->blocks[h->nblocks - 1] : NULL;
	return last ? last->offset + last->size : 0;
}

/* Sets the rows of the root as libhdf5 does: first as many as needed, then at least twice as many
 * each time. A single block of the starting size needs no indirect root. */
static void grow_root(struct h5_fheap *h, uint64_t offset)
{
	const struct fheap_table *t = &h->table;
	unsigned int needed = fheap_find(t, offset).row + 1;
	if (offset == 0 || needed <= h->root_rows)
		return;
	unsigned int twice = 2 * h->root_rows < t->max_rows ? 2 * h->root_rows : t->max_rows;
	h->root_rows = needed > twice ? needed : twice;
}

/* Appends the next direct block with room for n bytes. */
static int add_block(struct h5_fheap *h, size_t n, struct err *err)
{
	const struct fheap_table *t = &h->table;
	uint64_t offset = end_of_blocks(h), size;
	for (;; offset += size) {
		if (offset >> t->params.max_index)
			return err_set(err, -E2BIG, "fractal heap: the heap is full");
		/* Descend to the direct block that begins at the offset. */
		struct fheap_entry entry = fheap_find(t, offset);
		uint64_t within = offset;
		while (entry.row >= t->direct) {
			within -= entry.offset;
			entry = fheap_find(t, within);
		}
		size = entry.size;
		if (size - t->prefix >= n)
			break;
	}
	const struct block block = {.offset = offset, .size = size};
	if (bytes_append(&h->block_bytes, &block, sizeof(block)))
		return err_set(err, -ENOMEM, "fractal heap: out of memory");
	h->blocks = (void *)h->block_bytes.data;
	h->nblocks++;
	grow_root(h, offset);
	return 0;
}

static int insert_managed(struct h5_fheap *h, const void *obj, size_t n, struct emit *id,
			  struct err *err)
{
	const struct fheap_table *t = &h->table;
	const struct block *last = h->nblocks ? &h->blocks[h->nblocks - 1] : NULL;
	const bool fits = last && last->size - t->prefix - last->objects.len >= n;
	int rc = fits ? 0 : add_block(h, n, err);
	if (rc)
		return rc;
	struct block *b = &h->blocks[h->nblocks - 1];
	uint64_t offset = b->offset + t->prefix + b->objects.len;
	if (bytes_append(&b->objects, obj, n))
		return err_set(err, -ENOMEM, "fractal heap: out of memory");
	emit_u8(id, FHEAP_ID_MANAGED);
	emit_uint(id, offset, t->off_size);
	emit_uint(id, n, t->len_size);
	h->managed_n++;
	h->managed_bytes += n;
	return 0;
}

int h5_fheap_insert(struct h5_fheap *h, const void *obj, size_t n, uint8_t *id, struct err *err)
{
	const struct h5_fheap_params *p = &h->table.params;
	struct emit e = emit_to(id, p->id_len);
	int rc = 0;
	assert(n > 0); /* heaps have no empty objects */
	if (n > p->max_managed)
		rc = insert_huge(h, &(struct huge){.data = obj, .n = n}, &e, err);
	else if (n <= h->table.tiny_max)
		insert_tiny(h, obj, n, &e);
	else
		rc = insert_managed(h, obj, n, &e, err);
	if (!rc)
		emit_zero(&e, p->id_len - e.pos);
	return rc;
}

int h5_fheap_insert_apart(struct h5_fheap *h, uint64_t addr, uint64_t n, uint8_t *id,
			  struct err *err)
{
	const struct h5_fheap_params *p = &h->table.params;
	struct emit e = emit_to(id, p->id_len);
	assert(n > p->max_managed);
	int rc = insert_huge(h, &(struct huge){.n = n, .addr = addr}, &e, err);
	if (!rc)
		emit_zero(&e, p->id_len - e.pos);
	return rc;
}

/* Returns the bytes of an indirect block at heap offset `offset` and of all blocks below it. *i is
 * the index of its first direct block; it becomes the index after its last one. */
static uint64_t tree_size(const struct h5_fheap *h, uint64_t offset, unsigned int rows, size_t *i)
{
	const struct fheap_table *t = &h->table;
	uint64_t size = fheap_indirect_size(t, rows), end = offset + fheap_row_offset(t, rows);
	while (*i < h->nblocks && h->blocks[*i].offset < end) {
		struct fheap_entry entry = fheap_find(t, h->blocks[*i].offset - offset);
		if (entry.row < t->direct)
			size += h->blocks[(*i)++].size;
		else
			size += tree_size(h, offset + entry.offset, fheap_child_rows(t, entry.row),
					  i);
	}
	return size;
}

/* Returns the bytes of header and blocks. */
static uint64_t managed_size(const struct h5_fheap *h)
{
	size_t i = 0;
	if (h->nblocks == 0)
		return FHEAP_HEADER_SIZE;
	if (h->root_rows == 0)
		return FHEAP_HEADER_SIZE + h->blocks[0].size;
	return FHEAP_HEADER_SIZE + tree_size(h, 0, h->root_rows, &i);
}

static struct h5_bt2 huge_tree(const struct h5_fheap *h, const uint8_t *records)
{
	return (struct h5_bt2){
		.type = H5_BT2_HUGE,
		.node_size = HUGE_NODE_SIZE,
		.record_size = H5_BT2_HUGE_SIZE,
		.n = h->nhuge,
		.records = records,
	};
}

/* Assigns addresses to the children of an indirect block, in order. */
struct children {
	const struct h5_fheap *h;
	uint64_t offset; /* of the indirect block in the heap */
	uint64_t next;	 /* address of the next child that exists */
	size_t i;	 /* index of its first direct block */
};

static uint64_t child_address(void *ctx, const struct fheap_entry *entry)
{
	struct children *c = ctx;
	const struct h5_fheap *h = c->h;
	uint64_t offset = c->offset + entry->offset, addr = c->next;
	if (c->i == h->nblocks || h->blocks[c->i].offset >= offset + entry->size)
		return H5_UNDEF;
	if (entry->row < h->table.direct)
		c->next += h->blocks[c->i++].size;
	else
		c->next += tree_size(h, offset, fheap_child_rows(&h->table, entry->row), &c->i);
	return addr;
}

/* Encodes the indirect block at addr, then its children. A child has fewer rows than its parent,
 * which limits the depth. */
static void encode_tree(struct emit *e, const struct h5_fheap *h, uint64_t heap, uint64_t addr,
			uint64_t offset, unsigned int rows, size_t *i)
{
	const struct fheap_table *t = &h->table;
	size_t from = e->pos;
	uint64_t end = offset + fheap_row_offset(t, rows);
	struct children children = {h, offset, addr + fheap_indirect_size(t, rows), *i};
	fheap_indirect_encode(e, t, heap, offset, rows, child_address, &children);
	while (*i < h->nblocks && h->blocks[*i].offset < end) {
		const struct block *b = &h->blocks[*i];
		struct fheap_entry entry = fheap_find(t, b->offset - offset);
		if (entry.row < t->direct) {
			fheap_direct_encode(e, t, heap, b->offset, b->size, b->objects.data,
					    b->objects.len);
			(*i)++;
		} else {
			encode_tree(e, h, heap, addr + (e->pos - from), offset + entry.offset,
				    fheap_child_rows(t, entry.row), i);
		}
	}
}

static void encode_huge(struct emit *e, const struct h5_fheap *h, uint64_t addr)
{
	struct h5_bt2 tree = huge_tree(h, NULL);
	auto_bytes struct bytes records = {0};
	if (e->buf) {
		uint64_t at = addr + h5_bt2_size(&tree);
		size_t size = h->nhuge * H5_BT2_HUGE_SIZE;
		if (bytes_append_zero(&records, size)) {
			e->bad = true; /* out of memory is reported like a full emitter */
			return;
		}
		struct emit r = emit_to(records.data, size);
		for (size_t i = 0; i < h->nhuge; i++) {
			const struct huge *huge = &h->huge[i];
			emit_u64(&r, huge->data ? at : huge->addr);
			emit_u64(&r, huge->n);
			emit_u64(&r, i + 1);
			at += huge->data ? huge->n : 0;
		}
		tree.records = records.data;
	}
	h5_bt2_encode(e, &tree, addr);
	for (size_t i = 0; i < h->nhuge; i++)
		if (h->huge[i].data)
			emit_bytes(e, h->huge[i].data, (size_t)h->huge[i].n);
}

static void encode_header(struct emit *e, const struct h5_fheap *h, uint64_t addr)
{
	const struct fheap_table *t = &h->table;
	struct fheap_header header = {
		.params = t->params,
		.flags = FHEAP_CHECKSUM_BLOCKS,
		.huge_last_id = h->nhuge,
		.huge_tree = h->nhuge ? addr + managed_size(h) : H5_UNDEF,
		.managed_n = h->managed_n,
		.huge_bytes = h->huge_bytes,
		.huge_n = h->nhuge,
		.tiny_bytes = h->tiny_bytes,
		.tiny_n = h->tiny_n,
		.root = h->nblocks ? addr + FHEAP_HEADER_SIZE : H5_UNDEF,
		.root_rows = (uint16_t)h->root_rows,
	};
	for (size_t i = 0; i < h->nblocks; i++)
		header.block_bytes += h->blocks[i].size;
	if (h->root_rows) {
		header.managed_bytes = fheap_row_offset(t, h->root_rows);
		header.free_bytes = fheap_capacity(t, h->root_rows) - h->managed_bytes;
		header.iterator = end_of_blocks(h);
	} else if (h->nblocks) {
		/* libhdf5 sets the iterator when it creates an indirect root. */
		header.managed_bytes = h->blocks[0].size;
		header.free_bytes = h->blocks[0].size - t->prefix - h->managed_bytes;
	}
	fheap_header_encode(e, &header);
}

void h5_fheap_encode(struct emit *e, const struct h5_fheap *h, uint64_t addr)
{
	size_t i = 0;
	encode_header(e, h, addr);
	if (h->nblocks && h->root_rows == 0)
		fheap_direct_encode(e, &h->table, addr, 0, h->blocks[0].size,
				    h->blocks[0].objects.data, h->blocks[0].objects.len);
	else if (h->nblocks)
		encode_tree(e, h, addr, addr + FHEAP_HEADER_SIZE, 0, h->root_rows, &i);
	if (h->nhuge)
		encode_huge(e, h, addr + managed_size(h));
}
