/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol-table groups. Symbol table message, 0x11 (Spec IV.A.2.r): address of the B-tree, address
 * of the local heap.
 *
 * Node of a group's B-tree (Spec III.A.1):       Symbol table node (Spec III.B):
 *   +0 4    "TREE"                                 +0 4    "SNOD"
 *   +4 u8   node type, 0                           +4 u8   version, 1
 *   +5 u8   level, 0 = above symbol table nodes    +5 u8   reserved
 *   +6 u16  children, at most 2K                   +6 u16  symbols, at most 2K
 *   +8 addr left, right sibling                    +8      entries
 *      len  key 0, addr child 0, … key n
 *
 * Entry (Spec III.C):
 *   +0 len  offset of the name in the local heap
 *      addr object header
 *      u32  type of the scratch pad: 0 none, 1 group, 2 soft link
 *      u32  reserved
 *      16   scratch pad; of a soft link: u32 offset of the path in the local heap
 *
 * A node takes the bytes of 2K entries, also if it has fewer. Names are in strictly ascending order
 * of their bytes in the whole tree. A key is the offset of a name in the local heap: the names of
 * child i come after that of key i, and none of them after that of key i + 1. A walk over all links
 * does not use the keys; a search does.
 *
 * Bounds for damaged files: a node is read once; all nodes together have no more bytes than the
 * file; all names together have no more bytes than the heap. So a walk takes linear time. Claims
 * are made after the walk, because a source may interrupt it, and then it starts again.
 */
#include <h5/symtab.h>

#include <string.h>

#include <h5/addrs.h>
#include <h5/claims.h>
#include <h5/siblings.h>

#include "msg.h"

enum {
	NODE_HEAD = 8,
	ENTRY_FIXED = 4 + 4 + 16, /* bytes of an entry without name and address */
	SCRATCH = 16,
	CACHED_LINK = 2,
	LEVEL_MAX = 63,
	KEY_MAX = 64 << 10, /* a longer name is no key */
	HEAP_ARENA = 65 << 20,
	/* Links may share the bytes of a path, within reason. */
	PATH_BYTES_PER_HEAP_BYTE = 64,
};

int h5_symtab_decode(const struct h5_file *f, struct cursor *c, struct h5_symtab *out,
		     struct err *err)
{
	out->btree = h5_cur_addr(f, c);
	out->heap = h5_cur_addr(f, c);
	int rc = h5_msg_end(c, "symbol table", err);
	if (!rc && (out->btree == H5_UNDEF || out->heap == H5_UNDEF))
		rc = err_set(err, -EIO, "symbol table: an address is undefined");
	return rc;
}

struct node {
	uint64_t addr, size;
	const char *what; /* for claims */
};

struct walk {
	const struct h5_file *f;
	struct h5_lheap heap;
	struct h5_addrs seen;
	struct bytes nodes;  /* of struct node, for claims */
	uint64_t bytes_left; /* of the file, that no node has used */
	uint64_t names_left; /* of the heap, that no name has used */
	uint64_t paths_left;
	const char *last; /* the last name, in the heap */
	const char *only; /* NULL, or the name that is searched */
	/* Of a strict walk: the names below a node come after `low` and not after `high`. NULL for
	 * no limit. */
	const char *low, *high;
	struct h5_siblings siblings;
	h5_symtab_fn fn;
	void *ctx;
	bool stopped; /* fn has ended the walk; its reason stays as it is */
};

/* Reads a node of up to `size` bytes, as far as the file has them. The caller frees *raw. */
static int read_node(struct walk *w, uint64_t addr, uint64_t size, const char *what, uint8_t **raw,
		     struct cursor *c, struct err *err)
{
	const uint64_t left = addr < h5_file_size(w->f) ? h5_file_size(w->f) - addr : 0;
	const struct node node = {.addr = addr, .size = min_u64(size, left), .what = what};
	int rc = h5_addrs_add(&w->seen, addr, 0);
	if (rc < 0 || bytes_append(&w->nodes, &node, sizeof(node)))
		return err_no_memory(err);
	if (rc == 0 || node.size > w->bytes_left)
		return err_set(err, -EIO,
			       rc == 0 ? "two links lead to the node"
				       : "more nodes than the file has room for");
	w->bytes_left -= node.size;
	if (node.size < NODE_HEAD)
		return err_set(err, -EIO, "the node is outside of the file");
	*raw = malloc((size_t)node.size);
	if (!*raw)
		return err_no_memory(err);
	*c = cursor_of(*raw, (size_t)node.size);
	return h5_file_read(w->f, addr, *raw, (size_t)node.size, err);
}

/* Returns the string at an offset in the heap, which takes bytes from *left, or NULL. */
static const char *take_string(const struct walk *w, uint64_t offset, uint64_t *left)
{
	if (offset >= w->heap.n)
		return NULL;
	const char *s = (const char *)w->heap.data + offset;
	const uint64_t most = min_u64(w->heap.n - offset, *left);
	const char *nul = memchr(s, 0, (size_t)most);
	if (!nul)
		return NULL;
	*left -= (uint64_t)(nul - s) + 1;
	return s;
}

static int visit(struct walk *w, struct cursor *c, struct err *err)
{
	const uint64_t name = h5_cur_len(w->f, c);
	struct h5_symbol s = {.header = h5_cur_addr(w->f, c)};
	const uint32_t type = cur_u32(c);
	cur_skip(c, 4);
	struct cursor scratch = cur_sub(c, SCRATCH);
	if (!cur_ok(c))
		return err_set(err, -EIO, "more symbols than the node has room for");
	s.name = take_string(w, name, &w->names_left);
	if (!s.name || !s.name[0])
		return err_set(err, -EIO,
			       "the name at offset %" PRIu64 " is not a name in the local heap",
			       name);
	if (w->last && strcmp(w->last, s.name) >= 0)
		return err_set(err, -EIO, "the names are not in order: \"%s\" after \"%s\"", s.name,
			       w->last);
	w->last = s.name;
	if ((w->low && strcmp(s.name, w->low) <= 0) || (w->high && strcmp(s.name, w->high) > 0))
		return err_set(err, -EIO, "\"%s\" is not within the keys of the B-tree", s.name);
	if (w->only && strcmp(w->only, s.name) != 0)
		return 0;
	if (type == CACHED_LINK) {
		const uint32_t path = cur_u32(&scratch);
		s.header = H5_UNDEF;
		s.path = take_string(w, path, &w->paths_left);
		if (!s.path)
			return err_set(err, -EIO,
				       "the path of \"%s\" at offset %" PRIu32
				       " is outside of the local heap",
				       s.name, path);
	} else if (type > CACHED_LINK || s.header == H5_UNDEF) {
		return err_set(err, -EIO, "\"%s\" has type %" PRIu32 " and address 0x%" PRIx64,
			       s.name, type, s.header);
	}
	int rc = w->fn(w->ctx, &s, err);
	w->stopped = rc;
	return rc;
}

static int parse_symbols(struct walk *w, struct cursor *c, struct err *err)
{
	const uint8_t *signature = cur_bytes(c, 4);
	const uint8_t version = cur_u8(c);
	cur_skip(c, 1);
	const uint16_t n = cur_u16(c);
	if (memcmp(signature, "SNOD", 4) != 0)
		return err_set(err, -EIO, "wrong signature");
	if (version != 1)
		return err_set(err, -EOPNOTSUPP, "unsupported version %u", version);
	if (n > 2 * w->f->leaf_k)
		return err_set(err, -EIO, "%u symbols; the limit is %d", n, 2 * w->f->leaf_k);
	int rc = 0;
	for (uint16_t i = 0; !rc && i < n; i++)
		rc = visit(w, c, err);
	return rc;
}

/* Adds the node to the reason of a failure. */
static int wrapped(const struct walk *w, int rc, uint64_t addr, const char *what, struct err *err)
{
	return rc && !w->stopped ? err_wrap(err, rc, "%s at %" PRIu64, what, addr) : rc;
}

static uint64_t tree_node_size(const struct walk *w)
{
	const uint64_t entry = (uint64_t)w->f->len_size + w->f->addr_size;
	return NODE_HEAD + 2 * (uint64_t)w->f->addr_size + 2 * w->f->internal_k * entry +
	       w->f->len_size;
}

static uint64_t symbols_size(const struct walk *w)
{
	const uint64_t entry = (uint64_t)w->f->len_size + w->f->addr_size + ENTRY_FIXED;
	return NODE_HEAD + 2 * w->f->leaf_k * entry;
}

static int walk_symbols(struct walk *w, uint64_t addr, struct err *err)
{
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	int rc = read_node(w, addr, symbols_size(w), "symbol table node", &raw, &c, err);
	if (!rc)
		rc = parse_symbols(w, &c, err);
	return wrapped(w, rc, addr, "symbol table node", err);
}

static int parse_head(struct walk *w, uint64_t addr, struct cursor *c, int level, uint8_t *own,
		      uint16_t *n, struct err *err)
{
	const uint8_t *signature = cur_bytes(c, 4);
	const uint8_t type = cur_u8(c);
	*own = cur_u8(c);
	*n = cur_u16(c);
	const uint64_t left = h5_cur_addr(w->f, c), right = h5_cur_addr(w->f, c);
	if (memcmp(signature, "TREE", 4) != 0 || type != 0)
		return err_set(err, -EIO, "not a node of a group");
	if (level >= 0 ? *own != level : *own > LEVEL_MAX)
		return err_set(err, -EIO, "level %u instead of %d", *own,
			       level >= 0 ? level : LEVEL_MAX);
	if (*n > 2 * w->f->internal_k)
		return err_set(err, -EIO, "%u children; the limit is %d", *n, 2 * w->f->internal_k);
	/* Only the root of an empty group has no children. */
	if (!*n && (level >= 0 || *own))
		return err_set(err, -EIO, "the node is empty");
	return w->f->is_strict && !w->only
		       ? h5_siblings_add(&w->siblings, *own, addr, left, right, err)
		       : 0;
}

/* level is the one that the parent requires, or -1 for the root. Levels limit the depth of the
 * recursion. *inner becomes true if the failure is that of a child, whose address the reason
 * has. */
static int walk_tree(struct walk *w, uint64_t addr, int level, struct err *err);

/* Returns the name of a key, or NULL if it is none. */
static const char *key_name(const struct walk *w, uint64_t offset)
{
	uint64_t left = KEY_MAX;
	return take_string(w, offset, &left);
}

/* Returns true if the names of a child may include the one that is searched. A key that is no name
 * of the heap excludes nothing. */
static bool is_wanted(const struct walk *w, uint64_t before, uint64_t last)
{
	if (!w->only)
		return true;
	const char *from = key_name(w, before), *to = key_name(w, last);
	return (!from || strcmp(w->only, from) > 0) && (!to || strcmp(w->only, to) <= 0);
}

/* Narrows the limits of the names to those between two keys. A name that is too long for a key
 * limits nothing. */
static int narrow(struct walk *w, uint64_t before, uint64_t last, struct err *err)
{
	if (before >= w->heap.n || last >= w->heap.n)
		return err_set(err, -EIO, "the key %" PRIu64 " is outside of the local heap",
			       before >= w->heap.n ? before : last);
	const char *low = key_name(w, before), *high = key_name(w, last);
	if (low && (!w->low || strcmp(low, w->low) > 0))
		w->low = low;
	if (high && (!w->high || strcmp(high, w->high) < 0))
		w->high = high;
	return 0;
}

static int walk_child(struct walk *w, uint64_t child, int level, struct err *err)
{
	return level ? walk_tree(w, child, level - 1, err) : walk_symbols(w, child, err);
}

static int walk_children(struct walk *w, struct cursor *c, uint16_t n, int level, bool *inner,
			 struct err *err)
{
	int rc = 0;
	struct cursor ahead = *c;
	for (uint16_t i = 0; !w->only && i < n; i++) {
		cur_skip(&ahead, w->f->len_size);
		h5_file_advise(w->f, h5_cur_addr(w->f, &ahead),
			       level ? tree_node_size(w) : symbols_size(w));
	}
	uint64_t key = h5_cur_len(w->f, c);
	for (uint16_t i = 0; !rc && i < n; i++) {
		const uint64_t before = key, child = h5_cur_addr(w->f, c);
		if (!cur_ok(c))
			return err_set(err, -EIO, "more children than the node has room for");
		key = h5_cur_len(w->f, c);
		if (cur_ok(c) && !is_wanted(w, before, key))
			continue;
		const char *low = w->low, *high = w->high;
		if (w->f->is_strict && !w->only)
			rc = narrow(w, before, key, err);
		if (rc)
			return rc;
		rc = walk_child(w, child, level, err);
		*inner = rc;
		w->low = low;
		w->high = high;
	}
	return rc;
}

static int walk_tree(struct walk *w, uint64_t addr, int level, struct err *err)
{
	auto_free uint8_t *raw = NULL;
	struct cursor c;
	uint8_t own = 0;
	uint16_t n = 0;
	bool inner = false;
	int rc = read_node(w, addr, tree_node_size(w), "B-tree of a group", &raw, &c, err);
	if (!rc)
		rc = parse_head(w, addr, &c, level, &own, &n, err);
	if (!rc)
		rc = walk_children(w, &c, n, own, &inner, err);
	return inner ? rc : wrapped(w, rc, addr, "B-tree node", err);
}

static int walk_all(struct walk *w, const struct h5_symtab *t, struct arena *a, struct err *err)
{
	struct h5_file unclaimed = *w->f;
	unclaimed.claims = NULL;
	int rc = a ? h5_lheap_read(&unclaimed, t->heap, a, &w->heap, err)
		   : err_set(err, -ENOMEM, "symbol table: out of memory");
	if (rc)
		return rc;
	w->names_left = w->heap.n;
	w->paths_left = w->heap.n * (uint64_t)PATH_BYTES_PER_HEAP_BYTE;
	rc = walk_tree(w, t->btree, -1, err);
	if (!rc)
		rc = h5_siblings_end(&w->siblings, err);
	if (!rc)
		rc = h5_lheap_claim(w->f, t->heap, err);
	const struct node *nodes = (const void *)w->nodes.data;
	for (size_t i = 0; !rc && i < w->nodes.len / sizeof(*nodes); i++)
		rc = h5_claim(w->f->claims, nodes[i].addr, nodes[i].size, nodes[i].what, err);
	return rc;
}

int h5_symtab_find(const struct h5_file *f, const struct h5_symtab *t, const char *name,
		   h5_symtab_fn fn, void *ctx, struct err *err)
{
	struct walk w = {.f = f, .bytes_left = h5_file_size(f), .only = name, .fn = fn, .ctx = ctx};
	struct arena *a = arena_new(HEAP_ARENA);
	int rc = walk_all(&w, t, a, err);
	bytes_release(&w.nodes);
	h5_addrs_release(&w.seen);
	arena_free(a);
	return rc;
}
