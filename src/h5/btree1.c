/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 B-trees that index chunks (Spec III.A.1). A node:
 *
 *    +0  "TREE"
 *    +4  u8   node type, 1
 *    +5  u8   level, 0 = leaf
 *    +6  u16  entries used, at most 2K
 *    +8  u64  address of the left sibling, undefined if there is none
 *   +16  u64  address of the right sibling
 *   +24  key 0, child 0, key 1, child 1, ... key 2K-1, child 2K-1, key 2K
 *
 * A key describes the first chunk in the sub-tree of its child:
 *
 *    +0  u32  stored bytes of the chunk
 *    +4  u32  filter mask
 *    +8  u64  offset of the chunk's first element in each dimension
 *   ...  u64  0: the offset in the additional dimension, the bytes of an element
 *
 * The last key of a node is the first key of its right neighbour. The last key of a level is the
 * one that libhdf5 writes if chunks are added in order: size and mask are 0, the offset is that of
 * the last chunk plus one chunk in every dimension, and the element size in the additional
 * dimension. (libhdf5 looks up the last key that is not after the offset in row-major order, so any
 * key after the last chunk would be correct for readers. But it asserts that offsets are multiples
 * of the chunk size.)
 *
 * Rendering. With n chunks and F = 2K children per node, level l has c(l) = ceil(n / F^(l+1))
 * nodes; level 0 are the leaves, and the first level with one node is the root. Node j of level l
 * covers chunks [j F^(l+1), min(n, (j+1) F^(l+1))); its i-th child begins with chunk (j F + i) F^l.
 * The root level comes first, so with h levels
 *
 *   address(l, j) = addr + node size * (c(h-1) + ... + c(l+1) + j).
 *
 * Without chunks, the tree is one leaf without entries. libhdf5 writes such a leaf when the last
 * chunk of a dataset is removed.
 *
 * This holds only for rendered trees: libhdf5 changes nodes in place, so the decoder walks the
 * tree.
 *
 * All functions are pure.
 */
#include <h5/btree1.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <h5/claims.h>
#include <h5/siblings.h>

enum {
	NODE_TYPE_CHUNK = 1,
	NODE_HEADER_SIZE = 24,
	KEY_FIXED_SIZE = 8, /* stored bytes, filter mask */
	KEY_MAX_SIZE = KEY_FIXED_SIZE + (DSPACE_MAX_RANK + 1) * 8,
	CHILD_SIZE = 8,
	MAX_LEVELS = 11, /* 64^11 > 2^64 */
};
_Static_assert(H5_BT1_FANOUT == 64, "MAX_LEVELS and spans are for 64 children per node");
_Static_assert(NODE_HEADER_SIZE < KEY_MAX_SIZE + CHILD_SIZE,
	       "a buffer for an entry holds a header");

static size_t key_size(uint32_t rank)
{
	return KEY_FIXED_SIZE + ((size_t)rank + 1) * 8;
}

uint64_t h5_bt1_node_size(uint32_t rank)
{
	return NODE_HEADER_SIZE + (H5_BT1_FANOUT + 1) * key_size(rank) + H5_BT1_FANOUT * CHILD_SIZE;
}

/* Counts the nodes of each level, leaves first. Returns the number of levels. */
static unsigned int count_levels(uint64_t n, uint64_t nodes[MAX_LEVELS])
{
	unsigned int levels = 0;
	do {
		n = n ? div_up_u64(n, H5_BT1_FANOUT) : 1;
		nodes[levels++] = n;
	} while (n > 1);
	return levels;
}

uint64_t h5_bt1_size(uint32_t rank, uint64_t n)
{
	uint64_t nodes[MAX_LEVELS], total = 0, size;
	unsigned int levels = count_levels(n, nodes);
	for (unsigned int l = 0; l < levels; l++)
		total += nodes[l];
	return mul_u64(total, h5_bt1_node_size(rank), &size) ? size : UINT64_MAX;
}

/* One node of the rendered tree. */
struct node {
	const struct h5_bt1 *tree;
	unsigned int level;
	uint64_t index;	   /* of the node in its level */
	uint64_t count;	   /* nodes of its level */
	uint64_t level_at; /* address of the level's first node */
	uint64_t child_at; /* address of the first node of the level below */
	uint64_t first;	   /* first chunk */
	uint64_t span;	   /* chunks below a full child */
	uint64_t entries;
};

/* Finds the node with a number in file order. */
static void find_node(const struct h5_bt1 *t, uint64_t number, struct node *node)
{
	uint64_t nodes[MAX_LEVELS], node_size = h5_bt1_node_size(t->rank);
	unsigned int level = count_levels(t->n, nodes) - 1;
	uint64_t at = t->addr;
	while (number >= nodes[level]) {
		number -= nodes[level];
		at += nodes[level] * node_size;
		level--;
	}
	*node = (struct node){
		.tree = t,
		.level = level,
		.index = number,
		.count = nodes[level],
		.level_at = at,
		.child_at = at + nodes[level] * node_size,
	};
	uint64_t children = level ? nodes[level - 1] : t->n;
	node->entries = min_u64(children - number * H5_BT1_FANOUT, H5_BT1_FANOUT);
	node->span = 1ULL << (6 * level);
	node->first = number * H5_BT1_FANOUT * node->span;
}

static void emit_header(struct emit *e, const struct node *node)
{
	uint64_t node_size = h5_bt1_node_size(node->tree->rank);
	uint64_t at = node->level_at + node->index * node_size;
	emit_bytes(e, "TREE", 4);
	emit_u8(e, NODE_TYPE_CHUNK);
	emit_u8(e, (uint8_t)node->level);
	emit_u16(e, (uint16_t)node->entries);
	emit_u64(e, node->index ? at - node_size : H5_UNDEF);
	emit_u64(e, node->index + 1 < node->count ? at + node_size : H5_UNDEF);
}

/* Emits key i and child i of the node. The last key has no child; the rest of the node is zeros. A
 * tree without chunks has no keys. */
static void emit_entry(struct emit *e, const struct node *node, uint64_t i)
{
	const struct h5_bt1 *t = node->tree;
	uint64_t element = 0;
	struct h5_bt1_chunk chunk = {0};
	if (i > node->entries || t->n == 0)
		return;
	uint64_t number = node->first + i * node->span;
	if (i == node->entries && number >= t->n) {
		t->end(t->ctx, &chunk);
		element = t->elem_size;
	} else {
		t->chunk(t->ctx, number, &chunk);
	}
	emit_u32(e, chunk.size);
	emit_u32(e, chunk.filter_mask);
	for (uint32_t d = 0; d < t->rank; d++)
		emit_u64(e, chunk.offset[d]);
	emit_u64(e, element);
	if (i == node->entries)
		return;
	if (node->level == 0)
		emit_u64(e, chunk.addr);
	else
		emit_u64(e, node->child_at +
				    (node->index * H5_BT1_FANOUT + i) * h5_bt1_node_size(t->rank));
}

/* Renders bytes [offset, offset + n) of one node. */
static void render(const struct node *node, uint64_t offset, uint8_t *out, size_t n)
{
	uint8_t piece[KEY_MAX_SIZE + CHILD_SIZE];
	size_t entry_size = key_size(node->tree->rank) + CHILD_SIZE;
	while (n > 0) {
		/* The header or the entry that contains the byte at offset. */
		bool header = offset < NODE_HEADER_SIZE;
		uint64_t i = header ? 0 : (offset - NODE_HEADER_SIZE) / entry_size;
		uint64_t start = header ? 0 : NODE_HEADER_SIZE + i * entry_size;
		size_t size = header ? NODE_HEADER_SIZE : entry_size;
		memset(piece, 0, size);
		struct emit e = emit_to(piece, size);
		if (header)
			emit_header(&e, node);
		else
			emit_entry(&e, node, i);
		size_t skip = (size_t)(offset - start);
		size_t len = size - skip < n ? size - skip : n;
		memcpy(out, piece + skip, len);
		out += len;
		offset += len;
		n -= len;
	}
}

void h5_bt1_read(const struct h5_bt1 *t, uint64_t offset, void *buf, size_t n)
{
	uint64_t node_size = h5_bt1_node_size(t->rank);
	uint8_t *out = buf;
	while (n > 0) {
		uint64_t within = offset % node_size;
		size_t len = node_size - within < n ? (size_t)(node_size - within) : n;
		struct node node;
		find_node(t, offset / node_size, &node);
		render(&node, within, out, len);
		out += len;
		offset += len;
		n -= len;
	}
}

struct walk {
	const struct h5_file *f;
	uint32_t rank;
	size_t header_size, entry_size; /* bytes, with the size of addresses of the file */
	const struct h5_bt1_range *range;
	const struct h5_bt1_known *known; /* or NULL */
	/* Chunks are in strictly ascending order, so no leaf is visited twice. The size of the file
	 * limits the bytes of all nodes if they overlap. */
	uint64_t bytes_left;
	bool any;
	uint64_t last[DSPACE_MAX_RANK];
	struct h5_siblings siblings; /* only of a strict walk over all nodes */
	h5_bt1_fn fn;
	void *ctx;
};

/* A node that has been read. */
struct read_node {
	uint64_t addr;
	uint8_t level;
	uint16_t entries;
	uint64_t left, right; /* siblings */
	uint8_t *raw;	      /* to be freed */
	struct cursor keys;   /* the entries */
};

/* Returns the offset in the additional dimension, which is 0 except in the last key of a level. */
static uint64_t read_key(struct cursor *c, uint32_t rank, struct h5_bt1_chunk *chunk)
{
	chunk->size = cur_u32(c);
	chunk->filter_mask = cur_u32(c);
	for (uint32_t d = 0; d < rank; d++)
		chunk->offset[d] = cur_u64(c);
	return cur_u64(c);
}

/* libhdf5 does not find a chunk with another offset there. */
static int check_keys(const struct walk *w, const struct read_node *n, struct err *err)
{
	struct cursor c = n->keys;
	struct h5_bt1_chunk key;
	for (uint16_t i = 0; i < n->entries; i++) {
		if (read_key(&c, w->rank, &key))
			return err_set(err, -EIO,
				       "B-tree node at %" PRIu64
				       ": key %u has an offset within an element",
				       n->addr, i);
		h5_cur_addr(w->f, &c);
	}
	return 0;
}

/* Returns the bytes of a node up to its last entry. */
static size_t used_size(const struct walk *w, unsigned int entries)
{
	return w->header_size + entries * w->entry_size;
}

static size_t full_size(const struct walk *w)
{
	return used_size(w, 2U * w->f->chunk_k) + key_size(w->rank);
}

static int decode_header(const struct walk *w, struct read_node *n, int level, struct err *err)
{
	const uint64_t addr = n->addr;
	struct cursor c = cursor_of(n->raw, w->header_size);
	const uint8_t *magic = cur_bytes(&c, 4);
	uint8_t type = cur_u8(&c);
	n->level = cur_u8(&c);
	n->entries = cur_u16(&c);
	n->left = h5_cur_addr(w->f, &c);
	n->right = h5_cur_addr(w->f, &c);
	if (memcmp(magic, "TREE", 4) != 0 || type != NODE_TYPE_CHUNK)
		return err_set(err, -EIO, "B-tree node at %" PRIu64 ": not a node of a chunk index",
			       addr);
	if (level >= 0 && n->level != level)
		return err_set(err, -EIO, "B-tree node at %" PRIu64 ": level %d instead of %d",
			       addr, n->level, level);
	/* libhdf5 frees empty nodes except for the root. */
	if (n->entries == 0 && (level >= 0 || n->level > 0))
		return err_set(err, -EIO, "B-tree node at %" PRIu64 " is empty", addr);
	return 0;
}

static int read_node(struct walk *w, uint64_t addr, int level, struct read_node *n, struct err *err)
{
	const uint64_t file_size = h5_file_size(w->f);
	const uint64_t left = addr < file_size ? file_size - addr : 0;
	const unsigned int fanout = 2U * w->f->chunk_k;
	const size_t size = (size_t)min_u64(left, full_size(w));
	*n = (struct read_node){.addr = addr};
	if (size < w->header_size)
		return err_set(err, -EIO, "B-tree node at %" PRIu64 ": outside of the file", addr);
	if (size > w->bytes_left)
		return err_set(err, -EIO, "B-tree has more nodes than the file can hold");
	w->bytes_left -= size;
	n->raw = malloc(size);
	if (!n->raw)
		return err_no_memory(err);
	int rc = h5_file_read(w->f, addr, n->raw, size, err);
	if (rc)
		return err_wrap(err, rc, "B-tree node at %" PRIu64, addr);
	rc = decode_header(w, n, level, err);
	if (rc)
		return rc;
	if (n->entries > fanout)
		return err_set(err, -EIO, "B-tree node at %" PRIu64 ": %u entries, more than %u",
			       addr, n->entries, fanout);
	if (used_size(w, n->entries) > size)
		return err_set(err, -EIO,
			       "B-tree node at %" PRIu64
			       ": %u entries extend past the end of the file",
			       addr, n->entries);
	n->keys = cursor_of(n->raw + w->header_size, n->entries * w->entry_size);
	if (w->f->is_strict && !w->range && !w->known) {
		rc = check_keys(w, n, err);
		if (!rc)
			rc = h5_siblings_add(&w->siblings, n->level, addr, n->left, n->right, err);
	}
	if (rc)
		return rc;
	return h5_claim(w->f->claims, addr, size, "B-tree node", err);
}

/* Returns -1, 0 or 1 if the offset is before, in or after the range. */
static int side(const struct walk *w, const uint64_t *offset)
{
	if (!w->range)
		return 0;
	if (grid_compare(w->rank, offset, w->range->first) < 0)
		return -1;
	return grid_compare(w->rank, offset, w->range->last) > 0;
}

static int not_in_order(uint64_t node, struct err *err)
{
	return err_set(err, -EIO, "B-tree node at %" PRIu64 ": the chunks are not in order", node);
}

static int visit(struct walk *w, const struct h5_bt1_chunk *chunk, uint64_t node, struct err *err)
{
	if (w->any && grid_compare(w->rank, w->last, chunk->offset) >= 0)
		return not_in_order(node, err);
	w->any = true;
	memcpy(w->last, chunk->offset, w->rank * sizeof(w->last[0]));
	return side(w, chunk->offset) == 0 ? w->fn(w->ctx, chunk, err) : 0;
}

/* A sub-tree, as the keys of its parents describe it. The root has level -1 and no keys. */
struct child {
	uint64_t addr;
	int level;
	const uint64_t *first; /* offset of the first chunk; NULL if not known */
	const uint64_t *end;   /* all chunks are before this offset; NULL if not known */
};

/* Gets the node of the rendered tree that was at an address. Returns false if there was none. */
static bool find_rendered(const struct walk *w, uint64_t addr, struct h5_bt1 *t, struct node *node)
{
	const uint64_t size = h5_bt1_node_size(w->rank);
	*t = (struct h5_bt1){.rank = w->rank, .n = w->known->n, .addr = w->known->addr};
	if (!t->n || addr < t->addr || (addr - t->addr) % size ||
	    addr - t->addr >= h5_bt1_size(w->rank, t->n))
		return false;
	find_node(t, (addr - t->addr) / size, node);
	return true;
}

/* Gets the nodes of one level below a rendered node, which follow each other: [*start, *end). */
static void find_level(const struct node *top, unsigned int level, uint64_t *start, uint64_t *end)
{
	uint64_t nodes[MAX_LEVELS], at = top->tree->addr;
	const uint64_t size = h5_bt1_node_size(top->tree->rank);
	const unsigned int shift = 6 * (top->level - level);
	for (unsigned int l = count_levels(top->tree->n, nodes) - 1; l > level; l--)
		at += nodes[l] * size;
	*start = at + (top->index << shift) * size;
	*end = at + min_u64((top->index + 1) << shift, nodes[level]) * size;
}

/* Returns 1 if a rendered node, or one below it, may have changed, 0 if not, or a negative
 * errno. */
static int is_changed(const struct walk *w, const struct node *top, struct err *err)
{
	int rc = 0;
	for (unsigned int level = 0; !rc && level <= top->level; level++) {
		uint64_t start, end;
		find_level(top, level, &start, &end);
		rc = end > h5_file_size(w->f)
			     ? 1
			     : w->known->is_changed(w->known->ctx, start, end, err);
	}
	return rc;
}

static int claim_levels(const struct walk *w, const struct node *top, struct err *err)
{
	int rc = 0;
	for (unsigned int level = 0; !rc && level <= top->level; level++) {
		uint64_t start, end;
		find_level(top, level, &start, &end);
		rc = h5_claim(w->f->claims, start, end - start, "B-tree node", err);
	}
	return rc;
}

/* The chunks of a sub-tree that has not changed come instead of its nodes. */
static int take_run(struct walk *w, const struct child *c, const struct node *top, struct err *err)
{
	const struct h5_bt1_known *k = w->known;
	uint64_t first[DSPACE_MAX_RANK], last[DSPACE_MAX_RANK];
	const uint64_t end = min_u64((top->index + 1) * H5_BT1_FANOUT * top->span, k->n);
	k->offset(k->ctx, top->first, first);
	k->offset(k->ctx, end - 1, last);
	if ((c->first && grid_compare(w->rank, first, c->first) < 0) ||
	    (c->end && grid_compare(w->rank, last, c->end) >= 0))
		return err_set(err, -EIO,
			       "B-tree node at %" PRIu64 ": the chunks are not within the keys of "
			       "its parent",
			       c->addr);
	if (w->any && grid_compare(w->rank, w->last, first) >= 0)
		return not_in_order(c->addr, err);
	w->any = true;
	memcpy(w->last, last, w->rank * sizeof(w->last[0]));
	const int rc = claim_levels(w, top, err);
	return rc ? rc : k->run(k->ctx, top->first, end, err);
}

static int walk_entries(struct walk *w, const struct child *c, struct read_node *n,
			struct err *err);

/* The level of the root, at most 255, limits the depth of the recursion. With K = 1, libhdf5 makes
 * trees of more than 100 levels. */
static int walk_node(struct walk *w, const struct child *c, struct err *err)
{
	struct read_node n;
	struct h5_bt1 rendered;
	struct node top;
	const bool is_rendered = w->known && find_rendered(w, c->addr, &rendered, &top) &&
				 (c->level < 0 || (unsigned int)c->level == top.level);
	int rc = is_rendered ? is_changed(w, &top, err) : 1;
	if (rc <= 0)
		return rc ? rc : take_run(w, c, &top, err);
	rc = read_node(w, c->addr, c->level, &n, err);
	if (!rc)
		rc = walk_entries(w, c, &n, err);
	free(n.raw);
	return rc;
}

/* Returns true if the children below an entry are all before the range. next is the next key, or
 * NULL. */
static bool is_before(const struct walk *w, const struct h5_bt1_chunk *next)
{
	return w->range && next && grid_compare(w->rank, next->offset, w->range->first) <= 0;
}

/* Announces the reads of the children in the range. */
static void advise_children(const struct walk *w, const struct read_node *n)
{
	struct cursor c = n->keys;
	struct h5_bt1_chunk entry, next;
	read_key(&c, w->rank, &entry);
	for (uint16_t i = 0; i < n->entries && side(w, entry.offset) <= 0; i++, entry = next) {
		const bool last = i + 1 == n->entries;
		const uint64_t child = h5_cur_addr(w->f, &c);
		next = entry;
		if (!last)
			read_key(&c, w->rank, &next);
		if (!is_before(w, last ? NULL : &next))
			h5_file_advise(w->f, child, full_size(w));
	}
}

/* The chunks below an entry are not before its key, and before the next key. The key after the last
 * entry is not used, because libhdf5 does not keep it true. */
static int walk_entries(struct walk *w, const struct child *c, struct read_node *n, struct err *err)
{
	int rc = 0;
	struct h5_bt1_chunk entry, next = {0};
	if (n->level && !w->known)
		advise_children(w, n);
	read_key(&n->keys, w->rank, &entry);
	for (uint16_t i = 0; i < n->entries && !rc; i++, entry = next) {
		const bool last = i + 1 == n->entries;
		entry.addr = h5_cur_addr(w->f, &n->keys);
		if (!last)
			read_key(&n->keys, w->rank, &next);
		if (n->level == 0) {
			rc = visit(w, &entry, n->addr, err);
			continue;
		}
		if (!last && grid_compare(w->rank, entry.offset, next.offset) >= 0)
			return not_in_order(n->addr, err);
		if (side(w, entry.offset) > 0)
			return 0;
		if (is_before(w, last ? NULL : &next))
			continue;
		const struct child below = {.addr = entry.addr,
					    .level = n->level - 1,
					    .first = entry.offset,
					    .end = last ? c->end : next.offset};
		rc = walk_node(w, &below, err);
	}
	return rc;
}

static int walk(const struct h5_file *f, uint64_t addr, struct walk *w, struct err *err)
{
	const struct child root = {.addr = addr, .level = -1};
	if (w->rank == 0 || w->rank > DSPACE_MAX_RANK)
		return err_set(err, -EIO, "chunk index: invalid rank %u", w->rank);
	w->f = f;
	w->header_size = NODE_HEADER_SIZE - 2 * (CHILD_SIZE - (size_t)f->addr_size);
	w->entry_size = key_size(w->rank) + f->addr_size;
	w->bytes_left = h5_file_size(f);
	const int rc = walk_node(w, &root, err);
	return rc ? rc : h5_siblings_end(&w->siblings, err);
}

int h5_bt1_walk_range(const struct h5_file *f, uint64_t addr, uint32_t rank,
		      const struct h5_bt1_range *range, h5_bt1_fn fn, void *ctx, struct err *err)
{
	struct walk w = {.rank = rank, .range = range, .fn = fn, .ctx = ctx};
	return walk(f, addr, &w, err);
}

int h5_bt1_walk_known(const struct h5_file *f, uint64_t addr, uint32_t rank,
		      const struct h5_bt1_known *known, h5_bt1_fn fn, void *ctx, struct err *err)
{
	const bool is_rendered = f->addr_size == CHILD_SIZE && f->chunk_k == H5_BT1_K;
	struct walk w = {.rank = rank, .known = is_rendered ? known : NULL, .fn = fn, .ctx = ctx};
	return walk(f, addr, &w, err);
}
