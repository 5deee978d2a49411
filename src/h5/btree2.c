/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 2 B-trees (Spec III.A.2). The header, 38 bytes:
 *
 *    +0  "BTHD"                      +16  u64  address of the root, undefined when empty
 *    +4  u8   version, 0             +24  u16  records in the root node
 *    +5  u8   type of record         +26  u64  records in the tree
 *    +6  u32  node size              +34  u32  checksum of the bytes before it
 *   +10  u16  record size
 *   +12  u16  depth, 0: the root is a leaf
 *   +14  u8   split percentage
 *   +15  u8   merge percentage
 *
 * A leaf "BTLF" and an internal node "BTIN" take node size bytes, with zeros after the checksum:
 *
 *    +0  signature, u8 version 0, u8 type of record
 *    +6  the node's records
 *        internal nodes: for each child, one more than records,
 *          u64 address, records in the child, records in the sub-tree of the child (not for
 *          leaves)
 *        u32 checksum of the bytes before it
 *
 * The two counts of a child pointer are as wide as their largest possible value, which depends on
 * the sizes of nodes and records: see shape_init().
 *
 * Encoding. The depth is the least that holds n records. An internal node with m records in its
 * sub-tree has the least number of children, and distributes the records evenly. So every node
 * except for the root is at least half full: with c >= 2 children of capacity cap,
 * c - 1 < (m + 1) / (cap + 1), so each child gets (m - c + 1) / c >= cap / 2 records. libhdf5
 * merges nodes that are less than 40 % full. Nodes follow the header in pre-order.
 *
 * All functions are pure.
 */
#include <h5/btree2.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/addrs.h>
#include <h5/claims.h>

enum {
	HEADER_SIZE = 38, /* with addresses and lengths of 8 bytes */
	ADDR_SIZE = 8,	  /* of encoded trees */
	NODE_PREFIX_SIZE = 6,
	CHECKSUM_SIZE = 4,
	NODE_OVERHEAD = NODE_PREFIX_SIZE + CHECKSUM_SIZE,
	SPLIT_PERCENT = 100, /* as in all such trees of libhdf5 */
	MERGE_PERCENT = 40,
	MAX_DEPTH = 63, /* with two children a node, 2^64 records */
	NODE_SIZE_MAX = 1 << 20,
};

/* Capacities of a level; a function of node size and record size (node info in libhdf5). */
struct level {
	uint64_t max;	       /* records in a node of this level */
	uint64_t cum;	       /* records in a full sub-tree */
	unsigned int cum_size; /* bytes of cum in the child pointer of the parent; 0 of leaves */
};

struct shape {
	uint32_t node_size;
	uint16_t record_size;
	unsigned int addr_size; /* of an address */
	unsigned int nrec_size; /* bytes of the number of records in a node */
	unsigned int depth;
	struct level level[MAX_DEPTH + 1]; /* [0] is that of the leaves */
};

/* Returns the bytes that an integer of at most v takes. */
static unsigned int width_of(uint64_t v)
{
	unsigned int n = 1;
	while (v >>= 8)
		n++;
	return n;
}

static unsigned int pointer_size(const struct shape *s, unsigned int level)
{
	return s->addr_size + s->nrec_size + s->level[level - 1].cum_size;
}

static bool add_level(struct shape *s, unsigned int u)
{
	struct level *level = &s->level[u];
	const struct level *below = &s->level[u - 1];
	uint64_t pointer = pointer_size(s, u);
	if (s->node_size < NODE_OVERHEAD + 2 * pointer + s->record_size)
		return false;
	level->max = (s->node_size - NODE_OVERHEAD - pointer) / (s->record_size + pointer);
	if (!mul_u64(level->max + 1, below->cum, &level->cum) ||
	    !add_u64(level->cum, level->max, &level->cum))
		return false;
	level->cum_size = width_of(level->cum);
	return true;
}

/* Returns false if the sizes are impossible: a node has no room for a record, or a tree of this
 * depth has room for more than 2^64 records. */
static bool shape_init(struct shape *s, unsigned int addr_size, uint32_t node_size,
		       uint16_t record_size, unsigned int depth)
{
	if (record_size == 0 || node_size < NODE_OVERHEAD + (uint32_t)record_size ||
	    depth > MAX_DEPTH)
		return false;
	memset(s, 0, sizeof(*s));
	s->addr_size = addr_size;
	s->node_size = node_size;
	s->record_size = record_size;
	s->level[0].max = (node_size - NODE_OVERHEAD) / record_size;
	s->level[0].cum = s->level[0].max;
	if (s->level[0].max > UINT16_MAX)
		return false;
	s->nrec_size = width_of(s->level[0].max);
	while (s->depth < depth)
		if (!add_level(s, ++s->depth))
			return false;
	return true;
}

/* Finds the shape of the least depth that holds n records. */
static void shape_fit(struct shape *s, const struct h5_bt2 *t)
{
	bool ok = shape_init(s, ADDR_SIZE, t->node_size, t->record_size, 0);
	while (ok && s->level[s->depth].cum < t->n)
		ok = s->depth < MAX_DEPTH && add_level(s, ++s->depth);
	assert(ok); /* callers use sizes of libhdf5 */
	(void)ok;
}

/* Distribution of m records over a node and the sub-trees of its children. */
struct spread {
	uint64_t children; /* 0 of a leaf */
	uint64_t each;	   /* records in the sub-tree of each child */
	uint64_t extra;	   /* the first `extra` children have one more */
};

static struct spread spread_of(const struct shape *s, unsigned int u, uint64_t m)
{
	struct spread d = {0};
	if (u == 0)
		return d;
	d.children = div_up_u64(m + 1, s->level[u - 1].cum + 1);
	uint64_t rest = m - (d.children - 1);
	d.each = rest / d.children;
	d.extra = rest % d.children;
	return d;
}

/* Returns the number of nodes of a sub-tree of m records at level u. */
static uint64_t count_nodes(const struct shape *s, unsigned int u, uint64_t m)
{
	if (u == 0)
		return 1;
	struct spread d = spread_of(s, u, m);
	uint64_t n = 1 + (d.children - d.extra) * count_nodes(s, u - 1, d.each);
	if (d.extra)
		n += d.extra * count_nodes(s, u - 1, d.each + 1);
	return n;
}

uint64_t h5_bt2_size(const struct h5_bt2 *t)
{
	if (t->n == 0)
		return HEADER_SIZE;
	struct shape s = {0};
	shape_fit(&s, t);
	return HEADER_SIZE + count_nodes(&s, s.depth, t->n) * t->node_size;
}

static void emit_record(struct emit *e, const struct h5_bt2 *t, uint64_t i)
{
	/* While the emitter counts, t->records may be NULL. */
	if (t->records)
		emit_bytes(e, t->records + i * t->record_size, t->record_size);
	else
		emit_zero(e, t->record_size);
}

static uint16_t own_records(const struct spread *d, unsigned int u, uint64_t m)
{
	return (uint16_t)(u ? d->children - 1 : m);
}

/* Encodes the node at level u that covers records [first, first + m), then its sub-trees. */
static void emit_node(struct emit *e, const struct h5_bt2 *t, const struct shape *s, unsigned int u,
		      uint64_t first, uint64_t m, uint64_t addr)
{
	size_t from = e->pos;
	struct spread d = spread_of(s, u, m);
	emit_bytes(e, u ? "BTIN" : "BTLF", 4);
	emit_u8(e, 0);
	emit_u8(e, (uint8_t)t->type);
	if (u == 0) {
		for (uint64_t i = 0; i < m; i++)
			emit_record(e, t, first + i);
	} else {
		/* The records of this node separate those of its children. */
		uint64_t next = first;
		for (uint64_t i = 0; i + 1 < d.children; i++) {
			next += d.each + (i < d.extra);
			emit_record(e, t, next++);
		}
		uint64_t child = addr + s->node_size;
		for (uint64_t i = 0; i < d.children; i++) {
			uint64_t below = d.each + (i < d.extra);
			struct spread cd = spread_of(s, u - 1, below);
			emit_u64(e, child);
			emit_uint(e, own_records(&cd, u - 1, below), s->nrec_size);
			emit_uint(e, below, s->level[u - 1].cum_size);
			child += count_nodes(s, u - 1, below) * s->node_size;
		}
	}
	emit_checksum(e, from);
	emit_zero(e, s->node_size - (e->pos - from));

	uint64_t next = first, child = addr + s->node_size;
	for (uint64_t i = 0; i < d.children; i++) {
		uint64_t below = d.each + (i < d.extra);
		emit_node(e, t, s, u - 1, next, below, child);
		child += count_nodes(s, u - 1, below) * s->node_size;
		next += below + 1;
	}
}

void h5_bt2_encode(struct emit *e, const struct h5_bt2 *t, uint64_t addr)
{
	struct shape s = {0};
	shape_fit(&s, t);
	struct spread d = spread_of(&s, s.depth, t->n);
	size_t from = e->pos;
	emit_bytes(e, "BTHD", 4);
	emit_u8(e, 0);
	emit_u8(e, (uint8_t)t->type);
	emit_u32(e, t->node_size);
	emit_u16(e, t->record_size);
	emit_u16(e, (uint16_t)s.depth);
	emit_u8(e, SPLIT_PERCENT);
	emit_u8(e, MERGE_PERCENT);
	emit_u64(e, t->n ? addr + HEADER_SIZE : H5_UNDEF);
	emit_u16(e, own_records(&d, s.depth, t->n));
	emit_u64(e, t->n);
	emit_checksum(e, from);
	if (t->n)
		emit_node(e, t, &s, s.depth, 0, t->n, addr + HEADER_SIZE);
}

struct walk {
	const struct h5_file *f;
	struct shape shape;
	enum h5_bt2_type type;
	struct h5_addrs seen; /* addresses of the nodes that were read */
	uint64_t nodes_left;  /* the size of the file limits the number of nodes */
	h5_bt2_side_fn side;  /* NULL for all records */
	h5_bt2_fn fn;
	void *ctx;
};

/* A child pointer. */
struct pointer {
	uint64_t addr;
	uint64_t nrec; /* in the node */
	uint64_t all;  /* in the sub-tree */
};

static int damaged(struct err *err, uint64_t addr, const char *what)
{
	return err_set(err, -EIO, "v2 B-tree node at %" PRIu64 ": %s", addr, what);
}

/* Checks signature, type and checksum. raw has the bytes of the node. *c becomes the bytes after
 * the prefix. */
static int check_node(const struct walk *w, const struct pointer *p, unsigned int u,
		      const uint8_t *raw, struct cursor *c, struct err *err)
{
	uint64_t used = NODE_PREFIX_SIZE + p->nrec * w->shape.record_size;
	if (u)
		used += (p->nrec + 1) * pointer_size(&w->shape, u);
	*c = cursor_of(raw, (size_t)used + CHECKSUM_SIZE);
	const uint8_t *magic = cur_bytes(c, 4);
	uint8_t version = cur_u8(c), type = cur_u8(c);
	struct cursor sum = *c;
	cur_skip(&sum, (size_t)used - NODE_PREFIX_SIZE);
	uint32_t stored = cur_u32(&sum);
	if (!cur_ok(&sum) || memcmp(magic, u ? "BTIN" : "BTLF", 4) != 0)
		return damaged(err, p->addr, "wrong signature");
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "v2 B-tree node: unsupported version %d", version);
	if (type != w->type)
		return damaged(err, p->addr, "wrong type");
	if (stored != checksum_lookup3(raw, (size_t)used, 0))
		return damaged(err, p->addr, "wrong checksum");
	return 0;
}

static int read_node(struct walk *w, const struct pointer *p, unsigned int u, uint8_t *raw,
		     struct cursor *c, struct err *err)
{
	if (p->nrec == 0 || p->nrec > w->shape.level[u].max)
		return damaged(err, p->addr, "impossible number of records");
	if (w->nodes_left-- == 0)
		return damaged(err, p->addr, "more nodes than the file has room for");
	int rc = h5_addrs_add(&w->seen, p->addr, 0);
	if (rc < 0)
		return err_set(err, rc, "out of memory");
	if (rc == 0)
		return damaged(err, p->addr, "the node is in the tree twice");
	rc = h5_file_read(w->f, p->addr, raw, w->shape.node_size, err);
	if (rc)
		return err_wrap(err, rc, "v2 B-tree node at %" PRIu64, p->addr);
	rc = check_node(w, p, u, raw, c, err);
	return rc ? rc : h5_claim(w->f->claims, p->addr, w->shape.node_size, "v2 B-tree node", err);
}

static int side_of(const struct walk *w, const uint8_t *record)
{
	return w->side ? w->side(w->ctx, record, w->shape.record_size) : 0;
}

static int visit(const struct walk *w, const uint8_t *record, struct err *err)
{
	if (side_of(w, record) != 0)
		return 0;
	return w->fn(w->ctx, record, w->shape.record_size, err);
}

static int walk_node(struct walk *w, const struct pointer *p, unsigned int u, struct err *err);

/* Announces the reads of the children that walk_children() visits. */
static void advise_children(const struct walk *w, uint64_t nrec, unsigned int u,
			    struct cursor records, struct cursor pointers)
{
	const struct shape *s = &w->shape;
	int before = 0;
	for (uint64_t i = 0; i <= nrec; i++) {
		const uint8_t *next = i < nrec ? cur_bytes(&records, s->record_size) : NULL;
		const int after = next ? side_of(w, next) : 0;
		const uint64_t addr = h5_cur_addr(w->f, &pointers);
		cur_skip(&pointers, pointer_size(s, u) - s->addr_size);
		if (before <= 0 && after >= 0)
			h5_file_advise(w->f, addr, s->node_size);
		before = after;
	}
}

/* Walks the sub-trees of an internal node and the records between them. records and pointers are
 * the two arrays of the node. A sub-tree is not read if the record before it is after the range, or
 * the one after it before the range. */
static int walk_children(struct walk *w, const struct pointer *p, unsigned int u,
			 struct cursor records, struct cursor pointers, struct err *err)
{
	const struct shape *s = &w->shape;
	uint64_t all = p->nrec;
	int before = 0; /* the side of the record before the child */
	advise_children(w, p->nrec, u, records, pointers);
	for (uint64_t i = 0; i <= p->nrec; i++) {
		const uint8_t *next = i < p->nrec ? cur_bytes(&records, s->record_size) : NULL;
		const int after = next ? side_of(w, next) : 0;
		struct pointer child;
		child.addr = h5_cur_addr(w->f, &pointers);
		child.nrec = cur_uint(&pointers, s->nrec_size);
		child.all = u > 1 ? cur_uint(&pointers, s->level[u - 1].cum_size) : child.nrec;
		if (!add_u64(all, child.all, &all) || all > p->all)
			return damaged(err, p->addr, "wrong number of records");
		int rc = before > 0 || after < 0 ? 0 : walk_node(w, &child, u - 1, err);
		if (!rc && next)
			rc = visit(w, next, err);
		if (rc)
			return rc;
		before = after;
	}
	return all == p->all ? 0 : damaged(err, p->addr, "wrong number of records");
}

static int walk_node(struct walk *w, const struct pointer *p, unsigned int u, struct err *err)
{
	const struct shape *s = &w->shape;
	auto_free uint8_t *raw = malloc(s->node_size);
	if (!raw)
		return err_no_memory(err);
	struct cursor c;
	int rc = read_node(w, p, u, raw, &c, err);
	if (rc)
		return rc;
	struct cursor records = cur_sub(&c, (size_t)p->nrec * s->record_size);
	if (u)
		return walk_children(w, p, u, records, c, err);
	if (p->all != p->nrec)
		return damaged(err, p->addr, "wrong number of records");
	for (uint64_t i = 0; i < p->nrec && !rc; i++)
		rc = visit(w, cur_bytes(&records, s->record_size), err);
	return rc;
}

static int read_header(struct walk *w, uint64_t addr, struct pointer *root, struct err *err)
{
	uint8_t raw[HEADER_SIZE];
	const size_t size = HEADER_SIZE - 2 * ADDR_SIZE + w->f->addr_size + w->f->len_size;
	int rc = h5_file_read(w->f, addr, raw, size, err);
	if (rc)
		return err_wrap(err, rc, "v2 B-tree at %" PRIu64, addr);
	struct cursor c = cursor_of(raw, size);
	const uint8_t *magic = cur_bytes(&c, 4);
	uint8_t version = cur_u8(&c), type = cur_u8(&c);
	uint32_t node_size = cur_u32(&c);
	uint16_t record_size = cur_u16(&c), depth = cur_u16(&c);
	cur_skip(&c, 2);
	*root = (struct pointer){.addr = h5_cur_addr(w->f, &c)};
	root->nrec = cur_u16(&c);
	root->all = h5_cur_len(w->f, &c);
	uint32_t stored = cur_u32(&c);
	if (memcmp(magic, "BTHD", 4) != 0)
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": wrong signature", addr);
	if (version != 0)
		return err_set(err, -EOPNOTSUPP, "v2 B-tree: unsupported version %d", version);
	if (stored != checksum_lookup3(raw, size - CHECKSUM_SIZE, 0))
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": wrong checksum", addr);
	if (type != w->type)
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": type %d instead of %d", addr,
			       type, w->type);
	if (node_size > NODE_SIZE_MAX ||
	    !shape_init(&w->shape, w->f->addr_size, node_size, record_size, depth))
		return err_set(err, -EIO, "v2 B-tree at %" PRIu64 ": impossible sizes", addr);
	return h5_claim(w->f->claims, addr, size, "v2 B-tree header", err);
}

int h5_bt2_walk_range(const struct h5_file *f, uint64_t addr, enum h5_bt2_type type,
		      h5_bt2_side_fn side, h5_bt2_fn fn, void *ctx, struct err *err)
{
	struct walk w = {.f = f, .type = type, .side = side, .fn = fn, .ctx = ctx};
	struct pointer root;
	int rc = read_header(&w, addr, &root, err);
	if (rc)
		return rc;
	if (root.addr == H5_UNDEF || root.all == 0)
		return root.all == 0 ? 0 : damaged(err, addr, "records without a root");
	w.nodes_left = h5_file_size(f) / w.shape.node_size;
	rc = walk_node(&w, &root, w.shape.depth, err);
	h5_addrs_release(&w.seen);
	return rc;
}

int h5_bt2_walk(const struct h5_file *f, uint64_t addr, enum h5_bt2_type type, h5_bt2_fn fn,
		void *ctx, struct err *err)
{
	return h5_bt2_walk_range(f, addr, type, NULL, fn, ctx, err);
}
