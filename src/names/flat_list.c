/* SPDX-License-Identifier: Apache-2.0 */
/* See flat_list.h. The name cache keeps the number of keys with the node of the directory. */
#include "flat_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <store/page.h>

#include "name_cache.h"
#include "rules.h"

enum {
	KEYS_PER_ENTRY = 2,	/* a document, and something else */
	KEYS_MORE = 1000,	/* a page */
	ENTRIES_MAX = 1 << 18,	/* of a directory that is listed in this way */
	MANY_KEYS = UINT32_MAX, /* flat_keys of a directory that has many */
};

void names_flat_note(struct names *ns, const char *dir, size_t entries, bool is_flat)
{
	if (names_cache_get_flat(ns->cache, dir) == MANY_KEYS)
		return;
	is_flat &= entries <= ENTRIES_MAX;
	names_cache_put_flat(ns->cache, dir, is_flat ? (uint32_t)entries : 0);
}

uint32_t names_flat_limit(struct names *ns, const char *dir)
{
	const uint32_t keys = names_cache_get_flat(ns->cache, dir);
	return keys == 0 || keys == MANY_KEYS ? 0 : KEYS_PER_ENTRY * keys + KEYS_MORE;
}

int names_flat_list(struct names *ns, const char *dir, struct store_page *out)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (!req)
		return -ENOMEM;
	snprintf(req->key, req->room, "%s/", dir);
	req->list.whole = true;
	req->list.limit = names_flat_limit(ns, dir);
	store_run(ns->store, req);
	const int rc = store_failure(&req->answer, NULL);
	if (rc == -E2BIG)
		names_cache_put_flat(ns->cache, dir, MANY_KEYS);
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
