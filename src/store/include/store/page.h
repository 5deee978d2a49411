/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a struct store_page. One thread fills a page; afterwards it is read only. */
#ifndef STORE_PAGE_H
#define STORE_PAGE_H

#include <store/store.h>

/* Makes the page empty, with an arena. -ENOMEM. */
int page_init(struct store_page *page);
/* Appends; key is copied; meta is NULL of a prefix. -ENOMEM. */
int page_add(struct store_page *page, const char *key, const struct store_meta *meta);
/* Says that more follows the last item. */
void page_set_more(struct store_page *page);
/* Sorts the items by key, for a store that found them in another order. */
void page_sort(struct store_page *page);

#endif
