/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See flat_list.h. The name cache keeps the number of keys with the node of the directory.
 *
 * The record of a directory in the cache on disk:
 *
 *   +0 4  number of entries, little-endian; 0 if the directory is not listed in this way
 *
 * A wrong number costs a few pages of a listing at most.
 */
#include "flat_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <diskcache/diskcache.h>
#include <store/page.h>

#include "name_cache.h"
#include "rules.h"

enum {
	KEYS_PER_ENTRY = 2,	/* a document, and something else */
	KEYS_MORE = 1000,	/* a page */
	ENTRIES_MAX = 1 << 18,	/* of a directory that is listed in this way */
	MANY_KEYS = UINT32_MAX, /* flat_keys of a directory that has many */
};

/* ---- records ---- */

enum { RECORD = 4, NAME_MAX_BYTES = STORE_KEY_MAX + 16 };
static const char record_version[] = "1";

static void name_record(const char *dir, char name[NAME_MAX_BYTES])
{
	snprintf(name, NAME_MAX_BYTES, "flat\n%s", dir);
}

static uint32_t recall(struct names *ns, const char *dir)
{
	char name[NAME_MAX_BYTES];
	auto_bytes struct bytes record = {0};
	name_record(dir, name);
	if (!ns->disk || store_diskcache_recall(ns->disk, name, record_version, RECORD, &record))
		return 0;
	struct cursor c = cursor_of(record.data, record.len);
	const uint32_t entries = cur_u32(&c);
	return cur_ok(&c) && cur_left(&c) == 0 && entries <= ENTRIES_MAX ? entries : 0;
}

static void remember(struct names *ns, const char *dir, uint32_t entries)
{
	char name[NAME_MAX_BYTES];
	uint8_t record[RECORD];
	struct emit e = emit_to(record, sizeof(record));
	emit_u32(&e, entries);
	name_record(dir, name);
	if (ns->disk)
		store_diskcache_remember(ns->disk, name, record_version, 0, record, sizeof(record));
}

/* ---- listings ---- */

void names_flat_note(struct names *ns, const char *dir, size_t entries, bool is_flat)
{
	const uint32_t known = names_cache_get_flat(ns->cache, dir);
	if (known == MANY_KEYS)
		return;
	const uint32_t keys = is_flat && entries <= ENTRIES_MAX ? (uint32_t)entries : 0;
	names_cache_put_flat(ns->cache, dir, keys);
	if (keys != known)
		remember(ns, dir, keys);
}

uint32_t names_flat_limit(struct names *ns, const char *dir)
{
	uint32_t keys = names_cache_get_flat(ns->cache, dir);
	if (keys == 0 && (keys = recall(ns, dir)))
		names_cache_put_flat(ns->cache, dir, keys);
	return keys == 0 || keys == MANY_KEYS ? 0 : KEYS_PER_ENTRY * keys + KEYS_MORE;
}

int names_flat_list(struct names *ns, const char *dir, struct store_page *out)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (!req)
		return -ENOMEM;
	snprintf(req->key, req->room, "%s/", dir);
	req->list.markers = true;
	req->list.whole = true;
	req->list.limit = names_flat_limit(ns, dir);
	store_run(ns->store, req);
	const int rc = store_failure(&req->answer, NULL);
	if (rc == -E2BIG) {
		names_cache_put_flat(ns->cache, dir, MANY_KEYS);
		remember(ns, dir, 0);
	}
	if (rc)
		return rc;
	*out = req->answer.page;
	req->answer.page = (struct store_page){0};
	return 0;
}

/* The keys are in order, so the keys of one prefix are adjacent. */
int names_flat_group(const struct store_page *flat, const char *dir, struct store_page *out)
{
	const size_t skip = strlen(dir) + 1;
	const char *prefix = NULL;
	size_t n = 0;
	int rc = store_page_init(out);
	for (size_t i = 0; !rc && i < flat->n; i++) {
		const struct store_item *item = &flat->items[i];
		const char *slash = strchr(item->key + skip, '/');
		char key[STORE_KEY_MAX + 1];
		if (!item->key[skip])
			continue; /* the marker of the directory itself */
		if (!slash) {
			rc = store_page_add(out, item->key, &item->meta);
			continue;
		}
		if (prefix && strncmp(prefix, item->key, n) == 0)
			continue;
		prefix = item->key;
		n = (size_t)(slash + 1 - item->key);
		snprintf(key, sizeof(key), "%.*s", (int)n, item->key);
		rc = store_page_add(out, key, NULL);
	}
	return rc;
}
