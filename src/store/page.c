/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a listing. Items and keys are in the page's arena. The array of items doubles whenever n
 * reaches a power of two, from ITEMS_MIN on. So its capacity follows from n and is not stored.
 */
#include <store/page.h>

#include <errno.h>
#include <string.h>

#include <base/search.h>

enum { ITEMS_MIN = 64 };

/* Enough for about three million items. A page with more fails with -ENOMEM. */
static const size_t arena_limit = (size_t)1 << 30;

int store_page_init(struct store_page *page)
{
	memset(page, 0, sizeof(*page));
	page->arena = arena_new(arena_limit);
	return page->arena ? 0 : -ENOMEM;
}

static int grow(struct store_page *page)
{
	size_t n = page->n;
	if (n != 0 && (n < ITEMS_MIN || (n & (n - 1)) != 0))
		return 0;
	size_t cap = n ? 2 * n : ITEMS_MIN;
	struct store_item *items = arena_array(page->arena, cap, sizeof(*items));
	if (!items)
		return -ENOMEM;
	if (n)
		memcpy(items, page->items, n * sizeof(*items));
	page->items = items;
	return 0;
}

int store_page_add(struct store_page *page, const char *key, const struct store_meta *meta)
{
	char *copy = arena_strndup(page->arena, key, strlen(key));
	if (!copy || grow(page))
		return -ENOMEM;
	struct store_item *item = &page->items[page->n++];
	item->key = copy;
	item->is_prefix = !meta;
	if (meta)
		item->meta = *meta;
	return 0;
}

const struct store_item *store_page_from(const struct store_page *page, const char *key)
{
	return page->items + LOWER_BOUND(i, page->n, strcmp(page->items[i].key, key) < 0);
}

const struct store_item *store_page_find(const struct store_page *page, const char *key)
{
	const struct store_item *item = store_page_from(page, key);
	return item < page->items + page->n && strcmp(item->key, key) == 0 ? item : NULL;
}

void store_page_set_more(struct store_page *page)
{
	page->more = true;
	page->next = page->n ? page->items[page->n - 1].key : NULL;
}

static int by_key(const void *a, const void *b)
{
	const struct store_item *x = a, *y = b;
	return strcmp(x->key, y->key);
}

void store_page_sort(struct store_page *page)
{
	if (page->n > 1)
		qsort(page->items, page->n, sizeof(*page->items), by_key);
}

void store_page_release(struct store_page *page)
{
	if (page->arena)
		arena_free(page->arena);
	memset(page, 0, sizeof(*page));
}
