/* SPDX-License-Identifier: Apache-2.0 */
/* See prefix_pages.h. Any thread. */
#include "prefix_pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <store/page.h>

#include "node.h"

enum {
	PREFIXES_MIN = 16,   /* fewer prefixes are listed one by one */
	SHOWN_MIN = 4,	     /* a page that shows fewer prefixes does not pay */
	PAGES_AT_ONCE = 32,  /* a page takes some hundred kilobytes of memory */
	KEPT_MAX = 16 << 20, /* bytes of the keys that are kept */
};

/* All keys below "d/x" follow the text "d/x.", because "." precedes "/". */
static void prepare(const char *dir, const char *first, struct store_request *req)
{
	char after[STORE_KEY_MAX + 2];
	snprintf(after, sizeof(after), "%s.", first);
	snprintf(req->key, req->room, "%s%s", dir, dir[0] ? "/" : "");
	req->list.markers = true;
	req->list.complete = true;
	req->list.max = STORE_PAGE_MAX;
	store_request_start_after(req, after);
}

/* Returns whether a key follows all keys below a path. */
static bool is_behind(const char *key, const char *path)
{
	const size_t n = strlen(path);
	const int order = strncmp(key, path, n);
	return order > 0 || (order == 0 && (unsigned char)key[n] > '/');
}

/* Keeps the keys below a path. If memory is short, they are not kept. */
static void keep_keys(const struct store_page *page, struct names_below *b, uint64_t *room)
{
	const struct store_item *end = page->items + page->n;
	char first[STORE_KEY_MAX + 2];
	const int n = snprintf(first, sizeof(first), "%s/", b->path);
	const struct store_item *from = store_page_from(page, first), *to = from;
	while (to < end && strncmp(to->key, first, (size_t)n) == 0)
		to++;
	b->keys = names_keys_new(from, (size_t)(to - from));
	if (b->keys && b->keys->len > *room) {
		names_keys_free(b->keys);
		b->keys = NULL;
	}
	*room -= b->keys ? b->keys->len : 0;
}

/* Takes what a page shows of n prefixes. Returns how many it shows completely, or -ENOMEM. */
static int take(struct names *ns, const struct store_request *req, struct names_below *all,
		size_t n, uint64_t *room)
{
	const struct store_page *page = &req->answer.page;
	size_t i = 0;
	if (store_failure(&req->answer, NULL) || page->n == 0)
		return 0;
	const char *last = page->items[page->n - 1].key;
	for (; i < n && (!page->more || is_behind(last, all[i].path)); i++) {
		const int rc = names_children_flat(ns, page, &all[i]);
		if (rc)
			return rc;
		all[i].is_listed = true;
		if (all[i].store)
			keep_keys(page, &all[i], room);
	}
	return (int)i;
}

/* Requests pages that begin at every `each`-th of n prefixes; at most PAGES_AT_ONCE. Returns the
 * number of prefixes that they show, or -ENOMEM. */
static int list_some(struct names *ns, const char *dir, struct names_below *all, size_t n,
		     size_t each, uint64_t *room)
{
	const size_t pages = (n - 1) / each + 1;
	struct store_request **reqs = store_requests_new(ns->store, pages);
	int shown = 0, rc = 0;
	if (!reqs)
		return -ENOMEM;
	for (size_t i = 0; i < pages; i++) {
		reqs[i]->op = STORE_LIST;
		prepare(dir, all[i * each].path, reqs[i]);
	}
	store_run_all(ns->store, reqs, pages);
	for (size_t i = 0; rc >= 0 && i < pages; i++) {
		const size_t rest = n - i * each;
		rc = take(ns, reqs[i], all + i * each, rest < each ? rest : each, room);
		shown += rc;
	}
	store_requests_free(reqs, pages);
	return rc < 0 ? rc : shown;
}

int names_prefix_pages(struct names *ns, const char *dir, struct names_below *all, size_t n)
{
	uint64_t room = KEPT_MAX;
	if (n < PREFIXES_MIN)
		return 0;
	int shown = list_some(ns, dir, all, n, n, &room);
	if (shown < SHOWN_MIN)
		return shown < 0 ? shown : 0;
	/* The prefixes that follow may have a few more keys. */
	const size_t each = (size_t)(shown - shown / 4);
	for (size_t done = (size_t)shown, some; done < n; done += some) {
		some = n - done < PAGES_AT_ONCE * each ? n - done : PAGES_AT_ONCE * each;
		shown = list_some(ns, dir, all + done, some, each, &room);
		if (shown < 0)
			return shown;
		if ((size_t)shown < some / 2)
			break;
	}
	return 0;
}
