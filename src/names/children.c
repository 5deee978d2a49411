/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beneath a prefix: see children.h. Any thread. */
#include "children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

void names_children_ask(const char *path, struct store_request *req)
{
	req->op = STORE_LIST;
	snprintf(req->key, req->room, "%s/", path);
	req->list.delimit = true;
	req->list.whole = true;
	req->list.limit = 1;
}

int names_children_found(const struct names *ns, const struct store_request *req)
{
	const struct store_page *page = &req->answer.page;
	const int code = store_failure(&req->answer, NULL);
	switch (code) {
	case 0:
		if (page->n == 0)
			return CHILDREN_NONE;
		return page->n == 1 && schema_is_document(ns->schemas, page->items[0].key)
			       ? CHILDREN_DOC
			       : CHILDREN_MORE;
	case -E2BIG:
		return CHILDREN_MORE; /* two, so one of them is not the document */
	case -EINVAL:
		return CHILDREN_NONE; /* no key can begin like this */
	default:
		return code;
	}
}

static int take(struct names *ns, const struct store_request *req, struct names_children_of *ask)
{
	ask->found = names_children_found(ns, req);
	if (ask->found >= 0)
		return 0;
	if (ask->found == -ENOMEM)
		return -ENOMEM;
	ask->why = strdup(req->answer.err.msg);
	return ask->why ? 0 : -ENOMEM;
}

static int look(struct names *ns, struct names_children_of *asks, size_t n)
{
	struct store_request **reqs = store_requests_new(ns->store, n);
	int rc = 0;
	if (!reqs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		names_children_ask(asks[i].path, reqs[i]);
	store_run_all(ns->store, reqs, n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take(ns, reqs[i], &asks[i]);
	store_requests_free(reqs, n);
	return rc;
}

int names_children_look(struct names *ns, struct names_children_of *asks, size_t n)
{
	enum { AT_ONCE = 64 };
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += AT_ONCE)
		rc = look(ns, asks + i, n - i < AT_ONCE ? n - i : AT_ONCE);
	return rc;
}

int names_dir_answers(struct names *ns, const char *dir, struct err *err)
{
	auto_request struct store_request *req = store_request_new(ns->store, STORE_LIST);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	names_children_ask(dir, req);
	if (!dir[0])
		store_request_key(req, "");
	store_run(ns->store, req);
	int rc = store_failure(&req->answer, err);
	return rc == -E2BIG ? 0 : rc;
}

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

/* Names that begin alike are few. But the right to list may be bound to whole prefixes: "home/" may
 * be listed, "home/x" may not. */
int names_is_listed(struct names *ns, const char *path, struct err *err)
{
	int rc = find_in(ns, path, path, err);
	if (rc != -EACCES)
		return rc;
	auto_free char *dir = strndup(path, (size_t)(names_last(path) - path));
	return dir ? find_in(ns, dir, path, err) : err_set(err, -ENOMEM, "out of memory");
}
