/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See content.h. The functions know the structures that images have: a superblock of version 0,
 * object headers of version 2, link messages, layout messages of version 3, and chunk indexes that
 * are one node of a version 1 B-tree. Any other structure fails. All offsets are checked against
 * the size of the file. No state.
 */
#include "content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/format.h>

enum {
	NAME_MAX_LEN = 16,
	BLOCKS_MAX = 32,
	/* Offsets in a superblock of version 0. */
	SUPER_END = 40,
	SUPER_ROOT = 64,
	/* A node of a chunk index of rank 1: its entries begin at 24, and have a key and a child.
	 */
	NODE_ENTRIES = 24,
	NODE_KEY = 24,
	NODE_ENTRY = NODE_KEY + 8,
	NODE_MAX = 64,
	CHUNK_BYTES = 8 * CONTENT_CHUNK,
};

struct file {
	uint8_t *p;
	size_t n;
	bool bad; /* a structure was not as expected; the rest is meaningless */
};

static uint64_t get(struct file *f, uint64_t at, unsigned int width)
{
	uint64_t v = 0;
	if (at > f->n || width > f->n - at) {
		f->bad = true;
		return 0;
	}
	for (unsigned int i = 0; i < width; i++)
		v |= (uint64_t)f->p[at + i] << (8 * i);
	return v;
}

static void put(struct file *f, uint64_t at, unsigned int width, uint64_t v)
{
	if (at > f->n || width > f->n - at) {
		f->bad = true;
		return;
	}
	for (unsigned int i = 0; i < width; i++)
		f->p[at + i] = (uint8_t)(v >> (8 * i));
}

static bool has(struct file *f, uint64_t at, const void *bytes, size_t n)
{
	return at <= f->n && n <= f->n - at && memcmp(f->p + at, bytes, n) == 0;
}

/* Appends bytes to the file, and returns their address. The caller has made room. */
static uint64_t append(struct file *f, const void *bytes, size_t n)
{
	const uint64_t at = (f->n + 7) & ~UINT64_C(7);
	memset(f->p + f->n, 0, at - f->n);
	memcpy(f->p + at, bytes, n);
	f->n = at + n;
	put(f, SUPER_END, 8, f->n);
	return at;
}

/* ---- object headers ---- */

struct block {
	uint64_t at, first, end; /* signature, first message, checksum */
	bool has_order;
};

struct message {
	struct block block;
	uint64_t at, body; /* of its type, of its body */
	uint32_t len;
	uint8_t type;
};

static struct block header_of(struct file *f, uint64_t addr)
{
	struct block b = {.at = addr};
	const uint8_t flags = (uint8_t)get(f, addr + 5, 1);
	const unsigned int width = 1u << (flags & 3);
	if (!has(f, addr, "OHDR\2", 5)) {
		f->bad = true;
		return b;
	}
	const uint64_t size_at = addr + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
	b.first = size_at + width;
	b.end = b.first + get(f, size_at, width);
	b.has_order = flags & 4;
	return b;
}

static void seal(struct file *f, const struct block *b)
{
	if (b->end > f->n || b->at > b->end)
		f->bad = true;
	else
		put(f, b->end, 4, checksum_lookup3(f->p + b->at, (size_t)(b->end - b->at), 0));
}

/* m: zeroed, or the message before. */
static bool next(struct file *f, const struct block *b, struct message *m)
{
	const uint64_t at = m->at ? m->body + m->len : b->first;
	const uint32_t head = b->has_order ? 6 : 4;
	if (f->bad || at + head > b->end)
		return false;
	*m = (struct message){.block = *b,
			      .at = at,
			      .body = at + head,
			      .len = (uint32_t)get(f, at + 1, 2),
			      .type = (uint8_t)get(f, at, 1)};
	if (m->body + m->len > b->end)
		f->bad = true;
	return !f->bad;
}

typedef bool (*match_fn)(struct file *f, const struct message *m, const void *arg);

static bool find(struct file *f, uint64_t header, match_fn match, const void *arg,
		 struct message *out)
{
	struct block blocks[BLOCKS_MAX] = {header_of(f, header)};
	unsigned int n = 1;
	for (unsigned int i = 0; i < n; i++) {
		struct message m = {.at = 0};
		while (next(f, &blocks[i], &m)) {
			if (m.type == H5_MSG_CONTINUATION && n < BLOCKS_MAX) {
				const uint64_t at = get(f, m.body, 8);
				blocks[n++] = (struct block){.at = at,
							     .first = at + 4,
							     .end = at + get(f, m.body + 8, 8) - 4,
							     .has_order = blocks[0].has_order};
			} else if (match(f, &m, arg)) {
				*out = m;
				return !f->bad;
			}
		}
	}
	return false;
}

static bool has_type(struct file *f, const struct message *m, const void *type)
{
	return m->type == *(const uint8_t *)type;
}

static struct message typed(struct file *f, uint64_t header, uint8_t type)
{
	struct message m = {.at = 0};
	if (!find(f, header, has_type, &type, &m))
		f->bad = true;
	return m;
}

/* ---- attributes ---- */

static bool is_attribute(struct file *f, const struct message *m, const void *name)
{
	const size_t n = strlen(name) + 1;
	if (m->type != H5_MSG_ATTRIBUTE || m->len < 8 + n)
		return false;
	return get(f, m->body + 2, 2) == n &&
	       has(f, m->body + (get(f, m->body, 1) == 3 ? 9 : 8), name, n);
}

/* The last bytes of the message are the value. */
static uint64_t attribute(struct file *f, const char *name)
{
	struct message m;
	if (find(f, get(f, SUPER_ROOT, 8), is_attribute, name, &m))
		return get(f, m.body + m.len - 8, 8);
	f->bad = true;
	return 0;
}

static void set_attribute(struct file *f, const char *name, uint64_t v)
{
	struct message m;
	if (!find(f, get(f, SUPER_ROOT, 8), is_attribute, name, &m)) {
		f->bad = true;
		return;
	}
	put(f, m.body + m.len - 8, 8, v);
	seal(f, &m.block);
}

/* ---- links ---- */

/* Where the name of a link message begins; the target of a hard link follows it. */
static uint64_t link_name(struct file *f, const struct message *m, uint64_t *len)
{
	const uint8_t flags = (uint8_t)get(f, m->body + 1, 1);
	const unsigned int width = 1u << (flags & 3);
	const uint64_t at =
		m->body + 2 + (flags & 8 ? 1 : 0) + (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0);
	*len = get(f, at, width);
	return at + width;
}

static bool is_link(struct file *f, const struct message *m, const void *name)
{
	uint64_t len;
	if (m->type != H5_MSG_LINK)
		return false;
	const uint64_t at = link_name(f, m, &len);
	return len == strlen(name) && has(f, at, name, len);
}

/* Where a link leads, or 0. */
static uint64_t target(struct file *f, uint64_t group, const char *name)
{
	struct message m;
	uint64_t len;
	if (!find(f, group, is_link, name, &m))
		return 0;
	const uint64_t at = link_name(f, &m, &len);
	return get(f, at + len, 8);
}

static uint64_t must_lead(struct file *f, uint64_t group, const char *name)
{
	const uint64_t at = target(f, group, name);
	f->bad = f->bad || !at;
	return at;
}

static void remove_link(struct file *f, uint64_t group, const char *name)
{
	struct message m;
	if (!find(f, group, is_link, name, &m))
		return;
	put(f, m.at, 1, H5_MSG_NIL);
	seal(f, &m.block);
}

static bool can_move(struct file *f, const struct message *m, const void *arg)
{
	const uint32_t head = (uint32_t)(m->body - m->at);
	return m->type != H5_MSG_NIL && m->type != H5_MSG_CONTINUATION &&
	       (m->len == 16 || m->len >= 16 + head) && m->block.at == *(const uint64_t *)arg;
}

/* Adds a message in a continuation block, to which one of the others moves. */
static void add_message(struct file *f, uint64_t header, uint8_t type, const uint8_t *body,
			uint32_t len)
{
	struct message m;
	uint8_t block[1024] = "OCHK";
	if (!find(f, header, can_move, &header, &m) || m.len + len > 512) {
		f->bad = true;
		return;
	}
	const uint32_t head = (uint32_t)(m.body - m.at);
	struct file b = {block, sizeof(block), false};
	size_t n = 4 + head + m.len;
	memcpy(block + 4, f->p + m.at, head + m.len);
	block[n] = type;
	put(&b, n + 1, 2, len);
	memcpy(block + n + head, body, len);
	if (m.block.has_order)
		put(&b, n + 4, 2, 100);
	n += head + len;
	put(&b, n, 4, checksum_lookup3(block, n, 0));
	const uint64_t at = append(f, block, n + 4);
	memset(f->p + m.at, 0, head + m.len);
	put(f, m.at, 1, H5_MSG_CONTINUATION);
	put(f, m.at + 1, 2, 16);
	put(f, m.body, 8, at);
	put(f, m.body + 8, 8, n + 4);
	if (m.len > 16)
		put(f, m.body + 16 + 1, 2, m.len - 16 - head);
	seal(f, &m.block);
}

static void add_link(struct file *f, uint64_t group, const char *name, uint64_t to)
{
	uint8_t body[64] = {1, 4};
	struct file b = {body, sizeof(body), false};
	const size_t n = strlen(name);
	put(&b, 2, 8, 1000); /* created after all others */
	body[10] = (uint8_t)n;
	memcpy(body + 11, name, n);
	put(&b, 11 + n, 8, to);
	add_message(f, group, H5_MSG_LINK, body, (uint32_t)(19 + n));
}

/* A new object with the header of another one. */
static uint64_t copy_object(struct file *f, uint64_t header)
{
	const struct block b = header_of(f, header);
	const size_t n = (size_t)(b.end - b.at) + 4;
	if (f->bad || n > 2048 || b.at + n > f->n) {
		f->bad = true;
		return 0;
	}
	uint8_t bytes[2048];
	memcpy(bytes, f->p + header, n);
	return append(f, bytes, n);
}

/* ---- datasets ---- */

static uint64_t dims_at(struct file *f, const struct message *space)
{
	return space->body + (get(f, space->body, 1) == 1 ? 8 : 4);
}

static uint64_t rows_of(struct file *f, uint64_t dataset)
{
	const struct message m = typed(f, dataset, H5_MSG_DATASPACE);
	return get(f, dims_at(f, &m), 8);
}

static void set_rows(struct file *f, uint64_t dataset, uint64_t n)
{
	const struct message m = typed(f, dataset, H5_MSG_DATASPACE);
	put(f, dims_at(f, &m), 8, n);
	seal(f, &m.block);
}

/* The node of the chunk index; 0: there is none. */
static uint64_t index_of(struct file *f, uint64_t dataset)
{
	const struct message m = typed(f, dataset, H5_MSG_LAYOUT);
	if (get(f, m.body, 2) != 0x0203)
		f->bad = true;
	const uint64_t at = get(f, m.body + 3, 8);
	if (at == UINT64_MAX)
		return 0;
	if (!has(f, at, "TREE\1\0", 6))
		f->bad = true;
	return at;
}

/* The place of a chunk in the node, or where it belongs. */
static unsigned int entry_of(struct file *f, uint64_t node, unsigned int chunk, bool *found)
{
	const unsigned int n = (unsigned int)get(f, node + 6, 2);
	unsigned int i = 0;
	while (i < n && get(f, node + NODE_ENTRIES + i * NODE_ENTRY + 8, 8) <
				(uint64_t)chunk * CONTENT_CHUNK)
		i++;
	*found = i < n && get(f, node + NODE_ENTRIES + i * NODE_ENTRY + 8, 8) ==
				  (uint64_t)chunk * CONTENT_CHUNK;
	return i;
}

static void read_chunk(struct file *f, uint64_t dataset, unsigned int chunk, uint64_t *out)
{
	const uint64_t node = index_of(f, dataset);
	bool found = false;
	const unsigned int i = node ? entry_of(f, node, chunk, &found) : 0;
	const uint64_t at = found ? get(f, node + NODE_ENTRIES + i * NODE_ENTRY + NODE_KEY, 8) : 0;
	for (unsigned int k = 0; k < CONTENT_CHUNK; k++)
		out[k] = found ? get(f, at + 8 * k, 8) : 0;
}

/* Adds a chunk to the node. Its last key is that of the end. */
static uint64_t new_chunk(struct file *f, uint64_t node, unsigned int i, unsigned int chunk)
{
	static const uint8_t zeros[CHUNK_BYTES];
	const unsigned int n = (unsigned int)get(f, node + 6, 2);
	const uint64_t entry = node + NODE_ENTRIES + i * NODE_ENTRY;
	const size_t tail = (n - i) * (size_t)NODE_ENTRY + NODE_KEY;
	if (n >= NODE_MAX || entry + NODE_ENTRY + tail > f->n) {
		f->bad = true;
		return 0;
	}
	const uint64_t at = append(f, zeros, sizeof(zeros));
	memmove(f->p + entry + NODE_ENTRY, f->p + entry, tail);
	put(f, entry, 4, CHUNK_BYTES);
	put(f, entry + 4, 4, 0);
	put(f, entry + 8, 8, (uint64_t)chunk * CONTENT_CHUNK);
	put(f, entry + 16, 8, 0);
	put(f, entry + NODE_KEY, 8, at);
	put(f, node + 6, 2, n + 1);
	if (i == n)
		put(f, entry + NODE_ENTRY + 8, 8, (uint64_t)(chunk + 1) * CONTENT_CHUNK);
	return at;
}

static void write_chunk(struct file *f, uint64_t dataset, unsigned int chunk, const uint64_t *v)
{
	const uint64_t node = index_of(f, dataset);
	bool found = false;
	if (!node) {
		f->bad = true;
		return;
	}
	const unsigned int i = entry_of(f, node, chunk, &found);
	const uint64_t at = found ? get(f, node + NODE_ENTRIES + i * NODE_ENTRY + NODE_KEY, 8)
				  : new_chunk(f, node, i, chunk);
	for (unsigned int k = 0; k < CONTENT_CHUNK && !f->bad; k++)
		put(f, at + 8 * k, 8, v[k]);
}

/* The index loses the chunks from this one on. */
static void cut_chunks(struct file *f, uint64_t dataset, unsigned int first)
{
	const uint64_t node = index_of(f, dataset);
	bool found;
	if (node)
		put(f, node + 6, 2, entry_of(f, node, first, &found));
}

/* ---- contents ---- */

static void link_text(unsigned int i, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "n%u", i);
}

const char *content_part_name(enum content_part part)
{
	static const char *const names[] = {"attributes and links of /",
					    "chunk 0 of /x",
					    "chunk 1 of /x",
					    "/rows",
					    "/note",
					    "/words",
					    "/grid",
					    "/g/e0",
					    "/e1",
					    "/g/spare"};
	return names[part];
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ (h >> 32);
}

static uint64_t mix_all(uint64_t h, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = mix(h, v[i]);
	return h;
}

uint64_t content_value(const struct content *c, enum content_part part)
{
	switch (part) {
	case PART_ROOT:
		return mix(mix(mix(1, c->count), c->tag), c->links);
	case PART_X0:
		return mix_all(2, c->x, CONTENT_CHUNK);
	case PART_X1:
		return mix_all(3, c->x + CONTENT_CHUNK, CONTENT_CHUNK);
	case PART_ROWS:
		return mix_all(mix(4, c->nrows), c->rows, c->nrows);
	case PART_NOTE:
		return c->note;
	case PART_WORDS:
		return mix_all(6, c->words, CONTENT_WORDS);
	case PART_GRID:
		return mix_all(mix(mix(7, c->grid.n[0]), c->grid.n[1]), c->grid.value[0],
			       CONTENT_GRID * CONTENT_GRID);
	case PART_E0:
		return c->extras[0];
	case PART_E1:
		return c->extras[1];
	default:
		return c->has_spare ? mix_all(5, c->spare, CONTENT_CELLS) : 0;
	}
}

struct content_chunks content_chunks(const struct content *c, enum content_part part)
{
	static const uint64_t zeros[CONTENT_CHUNK];
	struct content_chunks out = {.n = {c->nrows / CONTENT_CHUNK, 1}};
	if (part == PART_GRID)
		return c->grid;
	for (uint64_t i = 0; i < out.n[0]; i++) {
		const uint64_t *v = c->rows + i * CONTENT_CHUNK;
		if (memcmp(v, zeros, sizeof(zeros)) != 0)
			out.value[i][0] = mix_all(8, v, CONTENT_CHUNK);
	}
	return out;
}

bool content_agrees(const struct content *bytes, const struct content *library)
{
	static const enum content_part parts[] = {PART_ROOT, PART_X0, PART_X1, PART_ROWS,
						  PART_SPARE};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (content_value(bytes, parts[i]) != content_value(library, parts[i]))
			return false;
	return bytes->uid == library->uid;
}

void content_init(struct content *c, uint64_t uid)
{
	*c = (struct content){.uid = uid,
			      .tag = uid,
			      .has_spare = true,
			      .nrows = CONTENT_CHUNK,
			      .grid = {.n = {1, 1}}};
	for (unsigned int i = 0; i < CONTENT_CELLS; i++) {
		c->x[i] = i ? uid : 1;
		c->spare[i] = uid;
	}
	for (unsigned int i = 0; i < CONTENT_CHUNK; i++)
		c->rows[i] = uid;
}

static void read_links(struct file *f, uint64_t root, struct content *out)
{
	for (unsigned int i = 0; i < CONTENT_LINKS; i++) {
		char name[NAME_MAX_LEN];
		link_text(i, name);
		if (target(f, root, name))
			out->links |= 1u << i;
	}
}

int content_read(const uint8_t *bytes, size_t n, struct content *out, struct err *err)
{
	union {
		const uint8_t *in;
		uint8_t *p;
	} same = {bytes}; /* get() only */
	struct file f = {same.p, n, false};
	const uint64_t root = get(&f, SUPER_ROOT, 8);
	*out = (struct content){.uid = attribute(&f, "uid"),
				.count = attribute(&f, "count"),
				.tag = attribute(&f, "tag")};
	read_links(&f, root, out);
	const uint64_t x = must_lead(&f, root, "x"), rows = must_lead(&f, root, "rows");
	const uint64_t g = must_lead(&f, root, "g"), spare = f.bad ? 0 : target(&f, g, "spare");
	if (f.bad)
		return err_set(err, -EIO, "the file lacks an attribute or an object");
	out->nrows = rows_of(&f, rows);
	if (out->nrows > CONTENT_ROWS || out->nrows % CONTENT_CHUNK)
		return err_set(err, -EIO, "/rows has %zu rows", (size_t)out->nrows);
	for (unsigned int i = 0; i < CONTENT_CELLS / CONTENT_CHUNK; i++)
		read_chunk(&f, x, i, out->x + i * CONTENT_CHUNK);
	for (unsigned int i = 0; i < out->nrows / CONTENT_CHUNK; i++)
		read_chunk(&f, rows, i, out->rows + i * CONTENT_CHUNK);
	out->has_spare = spare;
	for (unsigned int i = 0; spare && i < CONTENT_CELLS / CONTENT_CHUNK; i++)
		read_chunk(&f, spare, i, out->spare + i * CONTENT_CHUNK);
	return f.bad ? err_set(err, -EIO, "a structure of the file is not as expected") : 0;
}

static void change_root(struct file *f, uint64_t root, const struct content *from,
			const struct content *to)
{
	if (from->uid != to->uid)
		set_attribute(f, "uid", to->uid);
	if (from->count != to->count)
		set_attribute(f, "count", to->count);
	if (from->tag != to->tag)
		set_attribute(f, "tag", to->tag);
	for (unsigned int i = 0; i < CONTENT_LINKS && !f->bad; i++) {
		char name[NAME_MAX_LEN];
		const unsigned int bit = 1u << i;
		link_text(i, name);
		if (from->links & bit & ~to->links)
			remove_link(f, root, name);
		else if (to->links & bit & ~from->links)
			add_link(f, root, name,
				 copy_object(f, must_lead(f, must_lead(f, root, "g"), "empty")));
	}
}

/* from, to: NULL-terminated by n elements; only chunks that differ are written. */
static void change_chunks(struct file *f, uint64_t dataset, const uint64_t *from, uint64_t nfrom,
			  const uint64_t *to, uint64_t nto)
{
	for (unsigned int i = 0; i * CONTENT_CHUNK < nto && !f->bad; i++) {
		const uint64_t *v = to + i * CONTENT_CHUNK;
		static const uint64_t zeros[CONTENT_CHUNK];
		const uint64_t *old = i * CONTENT_CHUNK < nfrom ? from + i * CONTENT_CHUNK : zeros;
		if (memcmp(old, v, CHUNK_BYTES) != 0)
			write_chunk(f, dataset, i, v);
	}
}

static void change_rows(struct file *f, uint64_t rows, const struct content *from,
			const struct content *to)
{
	if (to->nrows < from->nrows)
		cut_chunks(f, rows, (unsigned int)(to->nrows / CONTENT_CHUNK));
	if (to->nrows != from->nrows)
		set_rows(f, rows, to->nrows);
	change_chunks(f, rows, from->rows, from->nrows, to->rows, to->nrows);
}

int content_change(uint8_t *bytes, size_t *n, const struct content *from, const struct content *to,
		   struct err *err)
{
	struct file f = {bytes, *n, false};
	const uint64_t root = get(&f, SUPER_ROOT, 8);
	change_root(&f, root, from, to);
	const uint64_t x = must_lead(&f, root, "x"), rows = must_lead(&f, root, "rows");
	const uint64_t g = must_lead(&f, root, "g");
	if (!f.bad)
		change_chunks(&f, x, from->x, CONTENT_CELLS, to->x, CONTENT_CELLS);
	if (!f.bad)
		change_rows(&f, rows, from, to);
	if (!f.bad && from->has_spare && to->has_spare)
		change_chunks(&f, must_lead(&f, g, "spare"), from->spare, CONTENT_CELLS, to->spare,
			      CONTENT_CELLS);
	if (!f.bad && from->has_spare && !to->has_spare)
		remove_link(&f, g, "spare");
	*n = f.n;
	return f.bad ? err_set(err, -EIO, "a structure of the file is not as expected") : 0;
}
