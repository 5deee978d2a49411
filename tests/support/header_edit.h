/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a rendered file in a draft as a library would: messages of version 2 object headers get
 * other bytes, are removed, or are added in a continuation block behind the end of the file. Needs
 * cmocka.
 */
#ifndef SUPPORT_HEADER_EDIT_H
#define SUPPORT_HEADER_EDIT_H

#include <stdio.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/format.h>
#include <overlay/draft.h>

enum {
	EDIT_MESSAGE = 4096,	 /* most bytes of a message */
	EDIT_SUPERBLOCK_END = 40 /* offset of the end of the file in a superblock of version 0 */
};

static inline void edit_read(struct draft *d, uint64_t offset, void *buf, size_t n)
{
	size_t got;
	struct err err = ERR_INIT;
	if (draft_read(d, offset, buf, n, &got, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(got, n);
}

static inline void edit_write(struct draft *d, uint64_t offset, const void *buf, size_t n)
{
	struct err err = ERR_INIT;
	if (draft_write(d, offset, buf, n, &err))
		fail_msg("%s", err.msg);
}

static inline uint64_t edit_number(const uint8_t *at, unsigned int n)
{
	uint64_t v = 0;
	for (unsigned int i = 0; i < n; i++)
		v |= (uint64_t)at[i] << (8 * i);
	return v;
}

static inline void edit_put(uint8_t *at, unsigned int n, uint64_t v)
{
	for (unsigned int i = 0; i < n; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

/* Appends bytes to the file, and returns their address. */
static inline uint64_t edit_append(struct draft *d, const void *bytes, size_t n)
{
	uint8_t end[8];
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	const uint64_t at = (stat.size + 7) & ~UINT64_C(7);
	edit_write(d, at, bytes, n);
	edit_put(end, 8, at + n);
	edit_write(d, EDIT_SUPERBLOCK_END, end, 8);
	return at;
}

/* One chunk of a header: its first block, or a continuation block. */
struct edit_block {
	uint64_t at;	/* of the signature */
	uint64_t first; /* of the first message */
	uint64_t end;	/* of the messages; the checksum follows */
	bool has_order; /* messages have their order of creation */
};

static inline struct edit_block edit_header(struct draft *d, uint64_t addr)
{
	uint8_t raw[64];
	edit_read(d, addr, raw, sizeof(raw));
	assert_memory_equal(raw, "OHDR\2", 5);
	const unsigned int width = 1u << (raw[5] & 3);
	const unsigned int skip = 6 + (raw[5] & 0x20 ? 16 : 0) + (raw[5] & 0x10 ? 4 : 0);
	const uint64_t first = addr + skip + width;
	return (struct edit_block){.at = addr,
				   .first = first,
				   .end = first + edit_number(raw + skip, width),
				   .has_order = raw[5] & 4};
}

/* The block has other bytes: it gets its checksum. */
static inline void edit_seal(struct draft *d, const struct edit_block *b)
{
	uint8_t sum[4], bytes[65536];
	const size_t n = (size_t)(b->end - b->at);
	assert_true(n <= sizeof(bytes));
	edit_read(d, b->at, bytes, n);
	edit_put(sum, 4, checksum_lookup3(bytes, n, 0));
	edit_write(d, b->end, sum, 4);
}

struct edit_message {
	struct edit_block block;
	uint64_t at; /* of its type */
	uint32_t head, len;
	uint8_t type;
	uint8_t body[EDIT_MESSAGE];
};

/* m: zeroed, or the one before. False: there are no more in the block. */
static inline bool edit_next(struct draft *d, const struct edit_block *b, struct edit_message *m)
{
	uint8_t head[4];
	const uint64_t at = m->at ? m->at + m->head + m->len : b->first;
	const uint32_t size = b->has_order ? 6 : 4;
	if (at + size > b->end)
		return false;
	edit_read(d, at, head, sizeof(head));
	*m = (struct edit_message){.block = *b, .at = at, .head = size, .type = head[0]};
	m->len = (uint32_t)edit_number(head + 1, 2);
	assert_true(m->len <= sizeof(m->body) && at + size + m->len <= b->end);
	edit_read(d, at + size, m->body, m->len);
	return true;
}

/* Writes the body of a message, which has the same length. */
static inline void edit_replace(struct draft *d, const struct edit_message *m)
{
	edit_write(d, m->at + m->head, m->body, m->len);
	edit_seal(d, &m->block);
}

static inline void edit_remove(struct draft *d, const struct edit_message *m)
{
	static const uint8_t nil = H5_MSG_NIL;
	edit_write(d, m->at, &nil, 1);
	edit_seal(d, &m->block);
}

/* Finds a message in the header and its continuation blocks. */
static inline bool edit_find(struct draft *d, uint64_t header,
			     bool (*is_it)(const struct edit_message *m, const void *arg),
			     const void *arg, struct edit_message *out)
{
	struct edit_block blocks[16] = {edit_header(d, header)};
	unsigned int n = 1;
	for (unsigned int i = 0; i < n; i++) {
		struct edit_message m = {.at = 0};
		while (edit_next(d, &blocks[i], &m)) {
			if (m.type == H5_MSG_CONTINUATION) {
				const uint64_t at = edit_number(m.body, 8);
				assert_true(n < 16);
				blocks[n++] = (struct edit_block){
					.at = at,
					.first = at + 4,
					.end = at + edit_number(m.body + 8, 8) - 4,
					.has_order = blocks[0].has_order};
			} else if (is_it(&m, arg)) {
				*out = m;
				return true;
			}
		}
	}
	return false;
}

static inline bool edit_has_type(const struct edit_message *m, const void *type)
{
	return m->type == *(const uint8_t *)type;
}

static inline struct edit_message edit_typed(struct draft *d, uint64_t header, uint8_t type)
{
	struct edit_message m;
	if (!edit_find(d, header, edit_has_type, &type, &m))
		fail_msg("the header has no message of type %u", type);
	return m;
}

/* A message that can be replaced by a continuation message and a NIL message. */
static inline bool edit_can_move(const struct edit_message *m, const void *arg)
{
	return m->type != H5_MSG_NIL && (m->len == 16 || m->len >= 16 + m->head) &&
	       m->block.at == *(const uint64_t *)arg;
}

/* Adds a message in a continuation block, to which one of the others moves. */
static inline void edit_add(struct draft *d, uint64_t header, uint8_t type, const uint8_t *body,
			    uint32_t len)
{
	struct edit_message m;
	uint8_t block[2 * EDIT_MESSAGE] = "OCHK", rest[EDIT_MESSAGE] = {0};
	if (!edit_find(d, header, edit_can_move, &header, &m))
		fail_msg("the header has no message that can move");
	size_t n = 4 + m.head + m.len;
	edit_read(d, m.at, block + 4, m.head + m.len);
	block[n] = type;
	edit_put(block + n + 1, 2, len);
	memcpy(block + n + m.head, body, len);
	/* The order of creation follows that of the message before. */
	if (m.block.has_order)
		edit_put(block + n + 4, 2, 100);
	n += m.head + len;
	edit_put(block + n, 4, checksum_lookup3(block, n, 0));
	const uint64_t at = edit_append(d, block, n + 4);
	rest[0] = H5_MSG_CONTINUATION;
	rest[1] = 16;
	edit_put(rest + m.head, 8, at);
	edit_put(rest + m.head + 8, 8, n + 4);
	if (m.len > 16)
		edit_put(rest + m.head + 16 + 1, 2, m.len - 16 - m.head);
	edit_write(d, m.at, rest, m.head + m.len);
	edit_seal(d, &m.block);
}

/* ---- links ---- */

/* The parts of a link message: offsets of its name and of what follows the name. */
struct edit_link {
	uint32_t name, len, target;
	bool is_hard;
};

static inline struct edit_link edit_link_of(const uint8_t *body)
{
	const uint8_t flags = body[1];
	const unsigned int width = 1u << (flags & 3);
	const uint32_t type = 2, order = type + (flags & 8 ? 1 : 0);
	const uint32_t cset = order + (flags & 4 ? 8 : 0), len = cset + (flags & 16 ? 1 : 0);
	struct edit_link l = {.name = len + width, .len = (uint32_t)edit_number(body + len, width)};
	l.target = l.name + l.len;
	l.is_hard = !(flags & 8) || body[type] == 0;
	return l;
}

static inline bool edit_is_link(const struct edit_message *m, const void *name)
{
	if (m->type != H5_MSG_LINK)
		return false;
	const struct edit_link l = edit_link_of(m->body);
	return l.len == strlen(name) && memcmp(m->body + l.name, name, l.len) == 0;
}

static inline struct edit_message edit_link(struct draft *d, uint64_t group, const char *name)
{
	struct edit_message m;
	if (!edit_find(d, group, edit_is_link, name, &m))
		fail_msg("the group has no link %s", name);
	return m;
}

static inline void edit_unlink(struct draft *d, uint64_t group, const char *name)
{
	const struct edit_message m = edit_link(d, group, name);
	edit_remove(d, &m);
}

/* Where a hard link leads. */
static inline uint64_t edit_target(struct draft *d, uint64_t group, const char *name)
{
	const struct edit_message m = edit_link(d, group, name);
	return edit_number(m.body + edit_link_of(m.body).target, 8);
}

/* A hard link leads elsewhere. */
static inline void edit_relink(struct draft *d, uint64_t group, const char *name, uint64_t target)
{
	struct edit_message m = edit_link(d, group, name);
	edit_put(m.body + edit_link_of(m.body).target, 8, target);
	edit_replace(d, &m);
}

/* The new name has the length of the old one. */
static inline void edit_rename(struct draft *d, uint64_t group, const char *name, const char *new)
{
	struct edit_message m = edit_link(d, group, name);
	assert_int_equal(strlen(name), strlen(new));
	memcpy(m.body + edit_link_of(m.body).name, new, strlen(new));
	edit_replace(d, &m);
}

/* Adds a hard link. order: of its creation, larger than that of all others. */
static inline void edit_add_link(struct draft *d, uint64_t group, const char *name, uint64_t order,
				 uint64_t target)
{
	uint8_t body[256] = {1, 4};
	const size_t n = strlen(name);
	edit_put(body + 2, 8, order);
	body[10] = (uint8_t)n;
	memcpy(body + 11, name, n);
	edit_put(body + 11 + n, 8, target);
	edit_add(d, group, H5_MSG_LINK, body, (uint32_t)(19 + n));
}

/* The header to which a path of hard links leads. */
static inline uint64_t edit_path(struct draft *d, const char *path)
{
	uint8_t root[8];
	char name[256];
	edit_read(d, 64, root, sizeof(root));
	uint64_t at = edit_number(root, 8);
	while (*path) {
		const size_t n = strcspn(path, "/");
		memcpy(name, path, n);
		name[n] = '\0';
		at = edit_target(d, at, name);
		path += n + (path[n] == '/');
	}
	return at;
}

/* ---- objects ---- */

/* A new object with a header like that of another one, whose messages are in one block. */
static inline uint64_t edit_copy(struct draft *d, uint64_t header)
{
	uint8_t bytes[65536];
	const struct edit_block b = edit_header(d, header);
	const size_t n = (size_t)(b.end - b.at) + 4;
	assert_true(n <= sizeof(bytes));
	edit_read(d, header, bytes, n);
	return edit_append(d, bytes, n);
}

/* The bytes of the current dimensions of a dataset: 8 for each. */
static inline uint32_t edit_dims(const struct edit_message *m)
{
	return m->body[0] == 1 ? 8 : 4;
}

static inline void edit_resize(struct draft *d, uint64_t dataset, uint32_t dimension, uint64_t n)
{
	struct edit_message m = edit_typed(d, dataset, H5_MSG_DATASPACE);
	edit_put(m.body + edit_dims(&m) + 8 * dimension, 8, n);
	edit_replace(d, &m);
}

/* The address in a layout message of version 3: of the raw data or of the chunk index. */
static inline uint32_t edit_place(const struct edit_message *m)
{
	assert_int_equal(m->body[0], 3);
	return m->body[1] == 1 ? 2 : 3;
}

static inline uint64_t edit_data(struct draft *d, uint64_t dataset)
{
	const struct edit_message m = edit_typed(d, dataset, H5_MSG_LAYOUT);
	return edit_number(m.body + edit_place(&m), 8);
}

static inline void edit_set_data(struct draft *d, uint64_t dataset, uint64_t addr)
{
	struct edit_message m = edit_typed(d, dataset, H5_MSG_LAYOUT);
	edit_put(m.body + edit_place(&m), 8, addr);
	edit_replace(d, &m);
}

/* The chunks of a dataset whose index is one node of a version 1 B-tree. */
static inline unsigned int edit_chunks(struct draft *d, uint64_t dataset)
{
	uint8_t head[8];
	edit_read(d, edit_data(d, dataset), head, sizeof(head));
	assert_memory_equal(head, "TREE\1\0", 6);
	return (unsigned int)edit_number(head + 6, 2);
}

static inline void edit_set_chunks(struct draft *d, uint64_t dataset, unsigned int n)
{
	uint8_t used[2];
	edit_put(used, 2, n);
	edit_write(d, edit_data(d, dataset) + 6, used, 2);
}

/* The address of a chunk is at this place. rank: of the dataset. */
static inline uint64_t edit_chunk_at(struct draft *d, uint64_t dataset, uint32_t rank,
				     unsigned int i)
{
	const uint64_t key = 8 + 8 * (rank + 1);
	return edit_data(d, dataset) + 24 + i * (key + 8) + key;
}

static inline uint64_t edit_chunk(struct draft *d, uint64_t dataset, uint32_t rank, unsigned int i)
{
	uint8_t addr[8];
	edit_read(d, edit_chunk_at(d, dataset, rank, i), addr, 8);
	return edit_number(addr, 8);
}

/* The last bytes of an attribute message are its value. */
static inline bool edit_is_attribute(const struct edit_message *m, const void *name)
{
	const size_t n = strlen(name);
	if (m->type != H5_MSG_ATTRIBUTE)
		return false;
	const uint32_t at = m->body[0] == 3 ? 9 : 8;
	return edit_number(m->body + 2, 2) == n + 1 && memcmp(m->body + at, name, n) == 0;
}

static inline bool edit_find_attribute(struct draft *d, uint64_t object, const char *name,
				       struct edit_message *out)
{
	return edit_find(d, object, edit_is_attribute, name, out);
}

#endif
