/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of collections, of which the one that was used last comes first. A table of items is kept
 * with each, so that an item is found by a binary search. The first read takes FIRST_READ bytes,
 * the size of most collections; only of larger ones it is followed by a second read.
 *
 * Collections that do not fit into the cache are read again, possibly for each item. libhdf5 makes
 * a collection of more than LARGE bytes only for an item of that size, so what is read is limited
 * by the number and the size of the items.
 *
 * A collection that is damaged is kept without its bytes, but with the reason.
 */
#include <h5/gheap_cache.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/search.h>
#include <h5/addrs.h>
#include <h5/claims.h>
#include <h5/gheap.h>

#include "gheap_format.h"

enum {
	FIRST_READ = H5_GHEAP_MIN,
	LARGE = 64 << 10,
	READ_FACTOR = 16,    /* bytes that may be read for each byte of the file */
	READ_MIN = 64 << 20, /* and in addition */
};

struct collection {
	uint64_t addr;
	struct bytes data;
	struct bytes items; /* of struct gheap_item */
	struct err *damage; /* NULL if there is none */
};

struct h5_gheap_cache {
	struct h5_file file;
	struct h5_addrs claimed;			/* addresses of collections */
	struct collection *recent[H5_GHEAP_CACHED + 1]; /* one more while one is added */
	size_t n;
	uint64_t bytes; /* of all collections */
	uint64_t left;	/* bytes that may be read */
	bool is_spent;	/* more bytes were needed; nothing is read any more */
};

static void collection_free(struct collection *g)
{
	if (!g)
		return;
	bytes_release(&g->data);
	bytes_release(&g->items);
	free(g->damage);
	free(g);
}

static uint64_t weight(const struct collection *g)
{
	return sizeof(*g) + g->data.cap + g->items.cap + (g->damage ? sizeof(*g->damage) : 0);
}

struct h5_gheap_cache *h5_gheap_cache_new(const struct h5_file *f)
{
	struct h5_gheap_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->file = *f;
	if (!mul_u64(h5_file_size(f), READ_FACTOR, &c->left) ||
	    !add_u64(c->left, READ_MIN, &c->left))
		c->left = UINT64_MAX;
	return c;
}

void h5_gheap_cache_free(struct h5_gheap_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		collection_free(c->recent[i]);
	h5_addrs_release(&c->claimed);
	free(c);
}

static int append(const struct h5_file *f, uint64_t addr, uint64_t n, struct bytes *out,
		  struct err *err)
{
	if (n > SIZE_MAX || bytes_reserve(out, (size_t)n))
		return err_no_memory(err);
	int rc = h5_file_read(f, addr, out->data + out->len, (size_t)n, err);
	if (!rc)
		out->len += (size_t)n;
	return rc;
}

/* Gets the bytes from the address of a collection to the end of the file. */
static int find_room(const struct h5_file *f, uint64_t addr, uint64_t *room, struct err *err)
{
	const uint64_t file_size = h5_file_size(f);
	if (addr > file_size || file_size - addr < GHEAP_HEADER_SIZE)
		return err_set(err, -EIO, "the address is outside of the file");
	*room = file_size - addr;
	return 0;
}

static int decode_size(const struct h5_file *f, const uint8_t *header, uint64_t room,
		       uint64_t *size, struct err *err)
{
	int rc = gheap_header_decode(f, header, size, err);
	if (rc || *size <= room)
		return rc;
	return err_set(err, -EIO, "its size of %" PRIu64 " bytes passes the end of the file",
		       *size);
}

static int read_collection(const struct h5_file *f, struct collection *g, struct err *err)
{
	uint64_t room = 0, size = 0;
	int rc = find_room(f, g->addr, &room, err);
	if (!rc)
		rc = append(f, g->addr, min_u64(room, FIRST_READ), &g->data, err);
	if (!rc)
		rc = decode_size(f, g->data.data, room, &size, err);
	if (rc)
		return rc;
	if (size > g->data.len)
		rc = append(f, g->addr + g->data.len, size - g->data.len, &g->data, err);
	g->data.len = (size_t)min_u64(g->data.len, size);
	bytes_trim(&g->data);
	if (!rc)
		rc = gheap_items_decode(f, g->data.data, g->data.len, &g->items, err);
	return rc;
}

static int claim(struct h5_gheap_cache *c, const struct collection *g, struct err *err)
{
	if (!c->file.claims)
		return 0;
	int rc = h5_addrs_add(&c->claimed, g->addr, 0);
	if (rc < 0)
		return err_no_memory(err);
	return rc ? h5_claim(c->file.claims, g->addr, g->data.len, "global heap", err) : 0;
}

/* Remembers a lasting failure, so that the collection is not read for each of its items. */
static int keep_damage(struct collection *g, const struct err *why, struct err *err)
{
	bytes_release(&g->data);
	bytes_release(&g->items);
	g->damage = malloc(sizeof(*g->damage));
	if (!g->damage)
		return err_no_memory(err);
	err_copy(g->damage, why);
	return 0;
}

static int spent(struct err *err)
{
	return err_set(err, -EIO,
		       "the collections are read too often: they are much larger than their items");
}

static int load(struct h5_gheap_cache *c, uint64_t addr, struct collection **out, struct err *err)
{
	struct err why = ERR_INIT;
	struct collection *g = calloc(1, sizeof(*g));
	if (!g)
		return err_no_memory(err);
	g->addr = addr;
	int rc = c->is_spent ? spent(&why) : read_collection(&c->file, g, &why);
	if (!rc && g->data.len > c->left) {
		c->is_spent = true;
		rc = spent(&why);
	}
	c->left -= min_u64(c->left, g->data.len);
	if (!rc)
		rc = claim(c, g, &why);
	if (rc == -EIO || rc == -EOPNOTSUPP)
		rc = keep_damage(g, &why, &why);
	if (rc) {
		collection_free(g);
		if (err)
			err_copy(err, &why);
		return rc;
	}
	*out = g;
	return 0;
}

/* Moves the i-th collection to the front. */
static void use(struct h5_gheap_cache *c, size_t i)
{
	struct collection *g = c->recent[i];
	memmove(c->recent + 1, c->recent, i * sizeof(c->recent[0]));
	c->recent[0] = g;
}

/* Puts the collection at addr in front. */
static int find_collection(struct h5_gheap_cache *c, uint64_t addr, struct err *err)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->recent[i]->addr == addr) {
			use(c, i);
			return 0;
		}
	int rc = load(c, addr, &c->recent[c->n], err);
	if (rc)
		return rc;
	c->bytes += weight(c->recent[c->n]);
	use(c, c->n++);
	while (c->n > 1 && (c->n > H5_GHEAP_CACHED || c->bytes > H5_GHEAP_CACHED_BYTES)) {
		struct collection *last = c->recent[--c->n];
		c->bytes -= weight(last);
		collection_free(last);
	}
	return 0;
}

static const struct gheap_item *find_item(const struct collection *g, uint32_t index)
{
	const struct gheap_item *all = (const void *)g->items.data;
	const size_t n = g->items.len / sizeof(*all);
	const size_t lo = LOWER_BOUND(i, n, all[i].index < index);
	return lo < n && all[lo].index == index ? &all[lo] : NULL;
}

static int get(struct h5_gheap_cache *c, uint64_t addr, uint32_t index, const uint8_t **data,
	       size_t *n, struct err *err)
{
	if (index == 0)
		return err_set(err, -EIO, "object 0 is free space");
	int rc = find_collection(c, addr, err);
	if (rc)
		return rc;
	const struct collection *g = c->recent[0];
	if (g->damage) {
		if (err)
			err_copy(err, g->damage);
		return g->damage->code;
	}
	const struct gheap_item *item = find_item(g, index);
	if (!item)
		return err_set(err, -EIO, "there is no object %u", index);
	*data = g->data.data + item->at;
	*n = item->n;
	if (!add_u64(c->left, LARGE + (uint64_t)*n, &c->left))
		c->left = UINT64_MAX;
	return 0;
}

int h5_gheap_cache_get(struct h5_gheap_cache *c, uint64_t addr, uint32_t index,
		       const uint8_t **data, size_t *n, struct err *err)
{
	int rc = get(c, addr, index, data, n, err);
	return rc ? err_wrap(err, rc, "global heap at %" PRIu64, addr) : 0;
}

int h5_gheap_size(const struct h5_file *f, uint64_t addr, uint64_t *size, struct err *err)
{
	uint8_t header[GHEAP_HEADER_SIZE];
	uint64_t room = 0;
	int rc = find_room(f, addr, &room, err);
	if (!rc)
		rc = h5_file_read(f, addr, header, sizeof(header), err);
	if (!rc)
		rc = decode_size(f, header, room, size, err);
	return rc ? err_wrap(err, rc, "global heap at %" PRIu64, addr) : 0;
}
