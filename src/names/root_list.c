/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root is listed page by page. As soon as a page shows objects of a schema, the rest is listed
 * in up to 256 ranges in parallel, one for each pair of hexadecimal digits with which the keys of
 * such objects begin. Range i has the keys after pair i, up to and including pair i + 1; the last
 * one has no end. So each key is in exactly one range, whatever it begins with. A million keys take
 * about 1,024 requests in four rounds.
 *
 * The objects of schemas are dropped from each page, so memory is needed for the other keys and for
 * one round of pages only.
 */
#include "root_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <store/page.h>

#include "children.h"
#include "rules.h"

enum { RANGES = 256 };

struct range {
	char *after; /* the next page begins after this key; NULL if the range is complete */
	char end[3]; /* "": no end */
};

struct root {
	struct names *ns;
	struct store_page *out;
	bool has_storage; /* a page has shown objects of a schema */
	struct range ranges[RANGES];
	size_t n;
};

/* Adds the items of a page up to and including `end`. *passed says whether an item comes after
 * it. */
static int add_items(struct root *r, const struct store_page *page, const char *end, bool *passed)
{
	*passed = false;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (end[0] && strcmp(item->key, end) > 0) {
			*passed = true;
			break;
		}
		if (!item->is_prefix && schema_is_storage(r->ns->schemas, item->key)) {
			r->has_storage = true;
			continue;
		}
		if (r->out->n == CHILDREN_LISTED_MAX)
			return -E2BIG;
		if (store_page_add(r->out, item->key, item->is_prefix ? NULL : &item->meta))
			return -ENOMEM;
	}
	return 0;
}

static void prepare(struct store_request *req, const char *after)
{
	store_request_key(req, "");
	req->list.delimit = true;
	req->list.max = UINT32_MAX; /* a directory gives all at once */
	if (after)
		store_request_start_after(req, after);
}

/* Takes the answer to a request for a page of a range. */
static int take(struct root *r, struct range *range, const struct store_request *req,
		struct err *err)
{
	const struct store_page *page = &req->answer.page;
	bool passed;
	int rc = store_failure(&req->answer, err);
	if (rc)
		return rc;
	rc = add_items(r, page, range->end, &passed);
	free(range->after);
	range->after = NULL;
	if (!rc && !passed && page->more) {
		range->after = strdup(page->next);
		rc = range->after ? 0 : -ENOMEM;
	}
	return rc == -E2BIG    ? err_set(err, rc, "more than %d entries", CHILDREN_LISTED_MAX)
	       : rc == -ENOMEM ? err_set(err, rc, "out of memory")
			       : rc;
}

/* Lists page by page until a page shows objects of a schema. */
static int list_head(struct root *r, struct range *all, struct err *err)
{
	int rc;
	do {
		auto_request struct store_request *req =
			store_request_new(r->ns->store, STORE_LIST);
		if (!req)
			return err_no_memory(err);
		prepare(req, all->after);
		store_run(r->ns->store, req);
		rc = take(r, all, req, err);
	} while (!rc && all->after && !r->has_storage);
	return rc;
}

/* Divides the keys after `after` into ranges. Takes ownership of it. */
static int divide(struct root *r, char *after)
{
	char pair[3] = "";
	r->ranges[r->n++].after = after;
	for (unsigned int i = 0; i < RANGES; i++) {
		snprintf(pair, sizeof(pair), "%02x", i);
		if (strcmp(pair, after) <= 0)
			continue;
		if (r->n == RANGES)
			break;
		memcpy(r->ranges[r->n - 1].end, pair, sizeof(pair));
		r->ranges[r->n].after = strdup(pair);
		if (!r->ranges[r->n++].after)
			return -ENOMEM;
	}
	return 0;
}

/* Requests one page of each range that is not complete. *n is their number. */
static int list_round(struct root *r, size_t *n, struct err *err)
{
	struct range *open[RANGES];
	*n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (r->ranges[i].after)
			open[(*n)++] = &r->ranges[i];
	if (*n == 0)
		return 0;
	struct store_request **reqs = store_requests_new(r->ns->store, *n);
	int rc = 0;
	if (!reqs)
		return err_no_memory(err);
	for (size_t i = 0; i < *n; i++) {
		store_request_reset(reqs[i], STORE_LIST);
		prepare(reqs[i], open[i]->after);
	}
	store_run_all(r->ns->store, reqs, *n);
	for (size_t i = 0; !rc && i < *n; i++)
		rc = take(r, open[i], reqs[i], err);
	store_requests_free(reqs, *n);
	return rc;
}

static int list_ranges(struct root *r, char *after, struct err *err)
{
	size_t open = 1;
	int rc = divide(r, after);
	if (rc)
		err_set(err, rc, "out of memory");
	while (!rc && open)
		rc = list_round(r, &open, err);
	for (size_t i = 0; i < r->n; i++)
		free(r->ranges[i].after);
	store_page_sort(r->out);
	return rc;
}

static int list_given(const struct names *ns, struct store_page *page)
{
	int rc = 0;
	for (size_t i = 0; !rc && ns->roots[i]; i++) {
		char prefix[NAMES_MAX + 2];
		snprintf(prefix, sizeof(prefix), "%s/", ns->roots[i]);
		rc = store_page_add(page, prefix, NULL);
	}
	store_page_sort(page);
	return rc;
}

int names_root_list(struct names *ns, struct store_page *page, bool *is_wide, struct err *err)
{
	struct range all = {0};
	*is_wide = false;
	struct root *r = calloc(1, sizeof(*r));
	int rc = r ? store_page_init(page) : -ENOMEM;
	if (!rc && ns->roots)
		rc = list_given(ns, page);
	if (rc)
		err_set(err, rc, "out of memory");
	if (!rc && !ns->roots) {
		r->ns = ns;
		r->out = page;
		rc = list_head(r, &all, err);
		*is_wide = !rc && all.after;
		if (*is_wide)
			rc = list_ranges(r, all.after, err);
		else
			free(all.after);
	}
	free(r);
	return rc;
}

static bool is_root(const struct names *ns, const char *name, size_t n)
{
	for (size_t i = 0; ns->roots[i]; i++)
		if (strlen(ns->roots[i]) == n && memcmp(ns->roots[i], name, n) == 0)
			return true;
	return false;
}

bool names_is_below_roots(const struct names *ns, const char *path)
{
	if (!ns->roots || !path[0] || is_root(ns, path, strcspn(path, "/")))
		return true;
	auto_free char *marked = NULL;
	return !strchr(path, '/') && !names_marked(ns->schemas, path, &marked) && marked &&
	       is_root(ns, marked, strlen(marked));
}
