/* SPDX-License-Identifier: Apache-2.0 */
/* See children.h. Any thread. */
#include "children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/* A domain may have several documents, such as catalogs: all of them are no further keys. */
enum { DOCUMENTS_MAX = 64 };

void names_children_prepare(const char *path, struct store_request *req)
{
	req->op = STORE_LIST;
	snprintf(req->key, req->room, "%s/", path);
	req->list.delimit = true;
	req->list.whole = true;
	req->list.limit = DOCUMENTS_MAX;
}

int names_children_in(const struct names *ns, const struct store_request *req)
{
	const struct store_page *page = &req->answer.page;
	const int code = store_failure(&req->answer, NULL);
	switch (code) {
	case 0:
		if (page->n == 0)
			return CHILDREN_NONE;
		for (size_t i = 0; i < page->n; i++)
			if (page->items[i].is_prefix ||
			    !schema_is_document(ns->schemas, page->items[i].key))
				return CHILDREN_MORE;
		return CHILDREN_DOC;
	case -E2BIG:
		return CHILDREN_MORE;
	case -EINVAL:
		return CHILDREN_NONE; /* no key can begin like this */
	default:
		return code;
	}
}

static int take(struct names *ns, const struct store_request *req, struct names_below *b)
{
	b->children = names_children_in(ns, req);
	if (b->children >= 0)
		return 0;
	if (b->children == -ENOMEM)
		return -ENOMEM;
	b->why = strdup(req->answer.err.msg);
	return b->why ? 0 : -ENOMEM;
}

/* Finds at most NAMES_AT_ONCE prefixes. */
static int find_some(struct names *ns, struct names_below *some, size_t n)
{
	struct store_request **reqs = store_requests_new(ns->store, n);
	int rc = 0;
	if (!reqs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		names_children_prepare(some[i].path, reqs[i]);
	store_run_all(ns->store, reqs, n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take(ns, reqs[i], &some[i]);
	store_requests_free(reqs, n);
	return rc;
}

int names_children_find(struct names *ns, struct names_below *all, size_t n)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += NAMES_AT_ONCE)
		rc = find_some(ns, all + i, n - i < NAMES_AT_ONCE ? n - i : NAMES_AT_ONCE);
	return rc;
}

int names_check_listing(struct names *ns, const char *dir, struct err *err)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	names_children_prepare(dir, req);
	if (!dir[0])
		store_request_key(req, "");
	store_run(ns->store, req);
	int rc = store_failure(&req->answer, err);
	return rc == -E2BIG ? 0 : rc;
}

/* What a listing of `prefix` shows of the path. */
static int find_in(struct names *ns, const char *prefix, const char *path, struct err *err)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	const size_t n = strlen(path);
	int found = LISTED_NOT;
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, prefix);
	req->list.delimit = true;
	req->list.complete = true;
	req->list.whole = true;
	req->list.limit = CHILDREN_LISTED_MAX;
	store_run(ns->store, req);
	const struct store_page *page = &req->answer.page;
	int rc = store_failure(&req->answer, err);
	for (size_t i = 0; !rc && i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (strncmp(item->key, path, n) != 0)
			continue;
		if (item->is_prefix && strcmp(item->key + n, "/") == 0)
			return LISTED_PREFIX;
		if (!item->is_prefix && item->key[n] == '\0')
			found = LISTED_OBJECT;
	}
	return rc ? rc : found;
}

/* Lists only the keys that begin with the path, which are few. If a policy allows the listing of
 * "home/" but not of "home/x", lists the whole directory. */
int names_is_listed(struct names *ns, const char *path, struct err *err)
{
	int rc = find_in(ns, path, path, err);
	if (rc != -EACCES)
		return rc;
	auto_free char *dir = strndup(path, (size_t)(names_last(path) - path));
	return dir ? find_in(ns, dir, path, err) : err_set(err, -ENOMEM, "out of memory");
}
