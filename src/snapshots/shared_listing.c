/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_listing.h. */
#include "shared_listing.h"

#include <string.h>

#include <store/page.h>

static bool begins_with(const char *key, const char *prefix)
{
	return strncmp(key, prefix, strlen(prefix)) == 0;
}

/* Takes the keys of a domain from the page. If memory is short, the domain is not listed. */
static void take_keys(const struct store_page *page, struct shared_keys *domain)
{
	const struct store_item *end = page->items + page->n;
	const char *prefix = domain->storage.prefix;
	const struct store_item *item = store_page_from(page, prefix);
	if (store_page_init(&domain->keys))
		return;
	for (; item < end && begins_with(item->key, prefix); item++)
		if (store_page_add(&domain->keys, item->key, &item->meta))
			break;
	/* Keys of this domain may follow the page. */
	domain->is_listed = item < end ? !begins_with(item->key, prefix) : !page->more;
	if (!domain->is_listed)
		store_page_release(&domain->keys);
}

void shared_listing(struct store *store, const atomic_bool *cancelled,
		    struct shared_keys *const *domains, size_t n, struct shared_reach *reach)
{
	const struct storage *first = &domains[0]->storage;
	auto_request struct store_request *req = store_request_new(store, STORE_LIST);
	if (!req)
		return;
	store_request_key(req, first->schema->storage->all);
	req->list.complete = true;
	req->list.max = STORE_PAGE_MAX;
	req->priority = STORE_PREFETCH;
	req->cancelled = cancelled_by(cancelled);
	store_request_start_after(req, first->prefix);
	store_run(store, req);
	if (store_failure(&req->answer, NULL))
		return;
	const struct store_page *page = &req->answer.page;
	/* The next cells are a little smaller than what the page covers, because domains are not
	 * evenly distributed. The last page of the bucket may cover little. */
	const bool is_last = !page->more || page->n == 0;
	const char *last = is_last ? NULL : page->items[page->n - 1].key;
	const uint64_t end = last ? first->schema->storage->number(last) : UINT64_MAX;
	const uint64_t cell = (end - domains[0]->number) / 4 * 3 + 1;
	if (!is_last || cell > reach->cell)
		reach->cell = cell;
	for (size_t i = 0; i < n; i++)
		take_keys(page, domains[i]);
}
