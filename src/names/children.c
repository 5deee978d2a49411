/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beneath a prefix: see children.h. Any thread. */
#include "children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

int names_children_of_page(const struct names *ns, int code, const struct store_page *page)
{
	size_t len;
	switch (code) {
	case 0:
		if (page->n == 0)
			return CHILDREN_NONE;
		return page->n == 1 && ns->schema->is_domain_key(page->items[0].key, &len)
			       ? CHILDREN_DOC
			       : CHILDREN_MORE;
	case -E2BIG:
		return CHILDREN_MORE; /* two, so one of them is not the document */
	case -EINVAL:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return CHILDREN_NONE; /* no key can begin like this */
	default:
		return code;
	}
}

static int take(struct names *ns, struct store_list_job *job, struct names_children_ask *ask)
{
	ask->found = names_children_of_page(ns, job->code, &job->page);
	store_page_release(&job->page);
	if (ask->found >= 0)
		return 0;
	if (ask->found == -ENOMEM)
		return -ENOMEM;
	ask->why = strdup(job->err.msg);
	return ask->why ? 0 : -ENOMEM;
}

static int look(struct names *ns, struct names_children_ask *asks, size_t n)
{
	auto_free struct store_list_job *jobs = calloc(n, sizeof(*jobs));
	auto_free char **prefixes = calloc(n, sizeof(char *));
	bool ready = jobs && prefixes;
	for (size_t i = 0; ready && i < n; i++) {
		prefixes[i] = names_join(asks[i].path, "");
		ready = prefixes[i] != NULL;
		jobs[i] =
			(struct store_list_job){.prefix = prefixes[i], .delimit = true, .limit = 1};
	}
	int rc = ready ? store_list_many(ns->store, jobs, n) : -ENOMEM;
	for (size_t i = 0; ready && i < n; i++) {
		int taken = rc ? 0 : take(ns, &jobs[i], &asks[i]);
		rc = rc ? rc : taken;
		store_page_release(&jobs[i].page);
	}
	for (size_t i = 0; prefixes && i < n; i++)
		free(prefixes[i]);
	return rc;
}

int names_children_look(struct names *ns, struct names_children_ask *asks, size_t n)
{
	enum { AT_ONCE = 64 };
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += AT_ONCE)
		rc = look(ns, asks + i, n - i < AT_ONCE ? n - i : AT_ONCE);
	return rc;
}

int names_dir_answers(struct names *ns, const char *dir, struct err *err)
{
	auto_page struct store_page page = {0};
	auto_free char *prefix = dir[0] ? names_join(dir, "") : strdup("");
	if (!prefix)
		return err_set(err, -ENOMEM, "no memory");
	int rc = store_list_all(ns->store, prefix, true, 1, &page, err);
	return rc == -E2BIG ? 0 : rc;
}

static int find_in(struct names *ns, const char *prefix, const char *path, struct err *err)
{
	auto_page struct store_page page = {0};
	const size_t n = strlen(path);
	int found = LISTED_NOT;
	int rc = store_list_all(ns->store, prefix, true, CHILDREN_LISTED_MAX, &page, err);
	for (size_t i = 0; !rc && i < page.n; i++) {
		const struct store_item *item = &page.items[i];
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
	return dir ? find_in(ns, dir, path, err) : err_set(err, -ENOMEM, "no memory");
}
