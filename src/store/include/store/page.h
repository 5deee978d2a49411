/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that fill in a struct store_page. One thread fills a page; then it is read-only. */
#ifndef STORE_PAGE_H
#define STORE_PAGE_H

#include <store/store.h>

/* Makes an empty page with a new arena. Fails with -ENOMEM. */
int store_page_init(struct store_page *page);
/* Appends an item. key is copied. meta is NULL for a prefix. Fails with -ENOMEM. */
int store_page_add(struct store_page *page, const char *key, const struct store_meta *meta);
/* For a page whose items are in order. The first function returns the first item whose key is not
 * before `key`, or the end of the items; the second one the item of a key, or NULL. */
const struct store_item *store_page_from(const struct store_page *page, const char *key);
const struct store_item *store_page_find(const struct store_page *page, const char *key);
/* Notes that more items follow the last one. */
void store_page_set_more(struct store_page *page);
/* Sorts the items by key, for a store that finds them in another order. */
void store_page_sort(struct store_page *page);

#endif
