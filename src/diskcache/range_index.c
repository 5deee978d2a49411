/* SPDX-License-Identifier: Apache-2.0 */
/* See range_index.h. */
#include "range_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <store/implement.h>

enum { ITEM = 16, USED_MAX = 128 /* ranges that one read is made of */ };

/* ---- entries of ranges ---- */

void range_entry_key(const char *key, const struct store_range *r,
		     char out[STORE_KEY_MAX + RANGE_TEXT])
{
	snprintf(out, STORE_KEY_MAX + RANGE_TEXT, "%s\n%s%" PRIu64 "+%" PRIu64, key,
		 r->from_end ? "-" : "", r->first, r->length);
}

int range_entry_read(const struct range_index *x, const struct store_range *r,
		     struct store_meta *meta, struct bytes *body)
{
	char key[STORE_KEY_MAX + RANGE_TEXT];
	const struct disk_id id = {x->scope, key};
	uint64_t most, first;
	range_entry_key(x->key, r, key);
	if (!add_u64(r->length, RANGE_HEAD, &most))
		return -ENOENT;
	int rc = disk_dir_read(x->dir, &id, x->version, most, meta, body);
	if (rc == 0) {
		struct cursor c = cursor_of(body->data, body->len);
		meta->size = cur_u64(&c);
		if (!cur_ok(&c) || cur_left(&c) != store_range_clip(r, meta->size, &first))
			rc = -EBADMSG;
		else
			memmove(body->data, body->data + RANGE_HEAD, body->len - RANGE_HEAD);
	}
	if (rc == 0)
		body->len -= RANGE_HEAD;
	if (rc == -EBADMSG) {
		bytes_release(body);
		disk_dir_drop(x->dir, &id);
	}
	return rc;
}

/* ---- the index ---- */

struct item {
	uint64_t first, end;
	bool used;
};

/* Blocks [first, end) of the object. */
struct blocks {
	uint64_t first, end;
};

/* Returns false if the range has no end, or too many blocks. */
static bool find_blocks(const struct store_range *r, struct blocks *out)
{
	uint64_t end;
	if (r->from_end || r->length == 0 || !add_u64(r->first, r->length, &end))
		return false;
	*out = (struct blocks){r->first / RANGE_BLOCK, (end - 1) / RANGE_BLOCK + 1};
	return out->end - out->first <= RANGE_BLOCKS_MAX;
}

static struct disk_id index_id(const struct range_index *x, uint64_t block,
			       char key[STORE_KEY_MAX + RANGE_TEXT])
{
	snprintf(key, STORE_KEY_MAX + RANGE_TEXT, "%s\n@%" PRIu64, x->key, block);
	return (struct disk_id){x->scope, key};
}

/* Appends the index of a block to out. Without an index it appends nothing. */
static void read_index(const struct range_index *x, uint64_t block, struct bytes *out)
{
	char key[STORE_KEY_MAX + RANGE_TEXT];
	const struct disk_id id = index_id(x, block, key);
	auto_bytes struct bytes body = {0};
	struct store_meta meta;
	const int rc = disk_dir_read(x->dir, &id, x->version, RANGE_INDEX_MAX * ITEM, &meta, &body);
	if (rc == -EBADMSG || (rc == 0 && body.len % ITEM))
		disk_dir_drop(x->dir, &id);
	else if (rc == 0)
		bytes_append(out, body.data, body.len); /* it is only a cache */
}

static struct item item_of(const struct bytes *index, size_t i)
{
	struct cursor c = cursor_of(index->data + i * ITEM, ITEM);
	const uint64_t first = cur_u64(&c);
	return (struct item){.first = first, .end = cur_u64(&c)};
}

static int add_to_block(const struct range_index *x, const struct env *env, uint64_t block,
			const struct item *new, const struct store_meta *meta)
{
	char key[STORE_KEY_MAX + RANGE_TEXT];
	const struct disk_id id = index_id(x, block, key);
	auto_bytes struct bytes index = {0};
	uint8_t encoded[ITEM];
	struct emit e = emit_to(encoded, sizeof(encoded));
	read_index(x, block, &index);
	for (size_t i = 0; i < index.len / ITEM; i++) {
		const struct item item = item_of(&index, i);
		if (item.first == new->first && item.end == new->end)
			return 0;
	}
	emit_u64(&e, new->first);
	emit_u64(&e, new->end);
	if (bytes_append(&index, encoded, ITEM))
		return -ENOMEM;
	const size_t dropped = index.len > RANGE_INDEX_MAX * ITEM ? ITEM : 0;
	struct store_meta own = *meta;
	own.size = index.len - dropped;
	return disk_dir_write(x->dir, env, &id, &own, index.data + dropped);
}

int range_index_add(const struct range_index *x, const struct env *env, const struct store_range *r,
		    const struct store_meta *meta)
{
	struct blocks blocks;
	int rc = 0;
	if (!find_blocks(r, &blocks))
		return 0;
	const struct item new = {.first = r->first, .end = r->first + r->length};
	for (uint64_t b = blocks.first; !rc && b < blocks.end; b++)
		rc = add_to_block(x, env, b, &new, meta);
	return rc;
}

/* ---- reading ---- */

/* Marks items that contain bytes [at, end). Returns false if some bytes are in none. */
static bool cover(struct item *items, size_t n, uint64_t at, uint64_t end)
{
	while (at < end) {
		struct item *best = NULL;
		for (struct item *i = items; i < items + n; i++)
			if (i->first <= at && i->end > (best ? best->end : at))
				best = i;
		if (!best)
			return false;
		best->used = true;
		at = best->end;
	}
	return true;
}

/* Copies the bytes that an item has of a range. */
static int copy_item(const struct range_index *x, const struct item *i, const struct store_range *r,
		     struct store_meta *meta, struct bytes *out)
{
	auto_bytes struct bytes body = {0};
	const struct store_range whole = {.first = i->first, .length = i->end - i->first};
	const int rc = range_entry_read(x, &whole, meta, &body);
	if (rc)
		return rc;
	if (body.len != whole.length)
		return -ENOENT;
	const uint64_t from = max_u64(i->first, r->first);
	const uint64_t to = min_u64(i->end, r->first + r->length);
	if (from < to)
		memcpy(out->data + (from - r->first), body.data + (from - i->first),
		       (size_t)(to - from));
	return 0;
}

static int copy_items(const struct range_index *x, const struct item *items, size_t n,
		      const struct store_range *r, struct store_meta *meta, struct bytes *body)
{
	size_t used = 0;
	for (size_t i = 0; i < n; i++)
		used += items[i].used;
	if (used == 0 || used > USED_MAX)
		return -ENOENT;
	int rc = bytes_append_zero(body, (size_t)r->length);
	for (size_t i = 0; !rc && i < n; i++)
		if (items[i].used)
			rc = copy_item(x, &items[i], r, meta, body);
	if (!rc && r->first + r->length > meta->size)
		rc = -ENOENT;
	return rc;
}

int range_index_read(const struct range_index *x, const struct store_range *r,
		     const struct store_range *parts, size_t n, struct store_meta *meta,
		     struct bytes *body)
{
	struct blocks blocks;
	auto_bytes struct bytes index = {0};
	if (!x->version || !find_blocks(r, &blocks))
		return -ENOENT;
	for (uint64_t b = blocks.first; b < blocks.end; b++)
		read_index(x, b, &index);
	const size_t nitems = index.len / ITEM;
	auto_free struct item *items = nitems ? calloc(nitems, sizeof(*items)) : NULL;
	if (!items)
		return -ENOENT;
	for (size_t i = 0; i < nitems; i++)
		items[i] = item_of(&index, i);
	for (size_t i = 0; i < n; i++)
		if (!cover(items, nitems, parts[i].first, parts[i].first + parts[i].length))
			return -ENOENT;
	const int rc = copy_items(x, items, nitems, r, meta, body);
	if (rc)
		bytes_release(body);
	return rc;
}
