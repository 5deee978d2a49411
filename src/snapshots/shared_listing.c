/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_listing.h. */
#include "shared_listing.h"

#include <string.h>

#include <store/page.h>

/* Prefixes have the order of their numbers. */
struct prefix {
	char text[SCHEMA_KEY_MAX + 1];
	size_t n;
};

static bool get_prefix(const struct schema_ops *schema, uint64_t storage, struct prefix *out)
{
	const int n = schema->storage->prefix(storage, out->text, sizeof(out->text));
	out->n = n < 0 ? 0 : (size_t)n;
	return n > 0;
}

static bool begins_with(const char *key, const struct prefix *prefix)
{
	return strncmp(key, prefix->text, prefix->n) == 0;
}

/* Returns the greatest number, at least `first`, whose prefix is not after the key. */
static uint64_t number_before(const struct schema_ops *schema, const char *key, uint64_t first)
{
	uint64_t low = first, high = UINT64_MAX;
	while (low < high) {
		const uint64_t middle = high - (high - low) / 2;
		struct prefix prefix;
		if (get_prefix(schema, middle, &prefix) && strcmp(prefix.text, key) <= 0)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Notes how far a page reaches. The next cells are a little smaller than what the page covers,
 * because domains are not evenly distributed. The last page of the bucket may cover little. */
static void note_reach(const struct schema_ops *schema, const struct store_page *page,
		       uint64_t first, struct shared_reach *reach)
{
	const bool is_last = !page->more || page->n == 0;
	const uint64_t end =
		is_last ? UINT64_MAX : number_before(schema, page->items[page->n - 1].key, first);
	const uint64_t cell = (end - first) / 4 * 3 + 1;
	if (!is_last || cell > reach->cell)
		reach->cell = cell;
}

/* Takes the keys of a domain from the page. If memory is short, the domain is not listed. */
static void take_keys(const struct schema_ops *schema, const struct store_page *page,
		      struct shared_keys *domain)
{
	const struct store_item *end = page->items + page->n;
	struct prefix prefix;
	if (!get_prefix(schema, domain->storage, &prefix))
		return;
	const struct store_item *item = store_page_from(page, prefix.text);
	if (store_page_init(&domain->keys))
		return;
	for (; item < end && begins_with(item->key, &prefix); item++)
		if (store_page_add(&domain->keys, item->key, &item->meta))
			break;
	/* Keys of this domain may follow the page. */
	domain->is_listed = item < end ? !begins_with(item->key, &prefix) : !page->more;
	if (!domain->is_listed)
		store_page_release(&domain->keys);
}

void shared_listing(struct store *store, const struct schema_ops *schema,
		    const atomic_bool *cancelled, struct shared_keys *const *domains, size_t n,
		    struct shared_reach *reach)
{
	struct prefix first;
	auto_request struct store_request *req = store_request_new(store, STORE_LIST);
	if (!req || !get_prefix(schema, domains[0]->storage, &first))
		return;
	const char *rest = strchr(first.text, '/');
	const size_t common = rest ? (size_t)(rest + 1 - first.text) : 0;
	memcpy(req->key, first.text, common);
	req->key[common] = '\0';
	req->list.complete = true;
	req->list.max = STORE_PAGE_MAX;
	req->priority = STORE_PREFETCH;
	req->cancelled = cancelled_by(cancelled);
	store_request_start_after(req, first.text);
	store_run(store, req);
	if (store_failure(&req->answer, NULL))
		return;
	const struct store_page *page = &req->answer.page;
	note_reach(schema, page, domains[0]->storage, reach);
	for (size_t i = 0; i < n; i++)
		take_keys(schema, page, domains[i]);
}
