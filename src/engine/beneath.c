/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beneath a prefix: see beneath.h. Any thread. */
#include "beneath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int beneath_of_page(const struct engine *e, int code, const struct store_page *page)
{
	size_t len;
	switch (code) {
	case 0:
		if (page->n == 0)
			return BENEATH_NOTHING;
		return page->n == 1 && e->schema->is_domain_key(page->items[0].key, &len)
			       ? BENEATH_DOC
			       : BENEATH_MORE;
	case -E2BIG:
		return BENEATH_MORE; /* two, so one of them is not the document */
	case -EINVAL:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return BENEATH_NOTHING; /* no key can begin like this */
	default:
		return code;
	}
}

static int take(struct engine *e, struct store_list_job *job, struct beneath_ask *ask)
{
	ask->found = beneath_of_page(e, job->code, &job->page);
	store_page_release(&job->page);
	if (ask->found >= 0)
		return 0;
	if (ask->found == -ENOMEM)
		return -ENOMEM;
	ask->why = strdup(job->err.msg);
	return ask->why ? 0 : -ENOMEM;
}

static int look(struct engine *e, struct beneath_ask *asks, size_t n)
{
	auto_free struct store_list_job *jobs = calloc(n, sizeof(*jobs));
	auto_free char **prefixes = calloc(n, sizeof(char *));
	bool ready = jobs && prefixes;
	for (size_t i = 0; ready && i < n; i++) {
		prefixes[i] = names_join(asks[i].path, "");
		ready = prefixes[i] != NULL;
		jobs[i] = (struct store_list_job){
			.prefix = prefixes[i], .how = STORE_DELIMIT, .limit = 1};
	}
	int rc = ready ? store_list_many(e->store, jobs, n) : -ENOMEM;
	for (size_t i = 0; ready && i < n; i++) {
		int taken = rc ? 0 : take(e, &jobs[i], &asks[i]);
		rc = rc ? rc : taken;
		store_page_release(&jobs[i].page);
	}
	for (size_t i = 0; prefixes && i < n; i++)
		free(prefixes[i]);
	return rc;
}

int beneath_look(struct engine *e, struct beneath_ask *asks, size_t n)
{
	enum { AT_ONCE = 64 };
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i += AT_ONCE)
		rc = look(e, asks + i, n - i < AT_ONCE ? n - i : AT_ONCE);
	return rc;
}

int beneath_dir_answers(struct engine *e, const char *dir, struct err *err)
{
	auto_page struct store_page page = {0};
	auto_free char *prefix = dir[0] ? names_join(dir, "") : strdup("");
	if (!prefix)
		return err_set(err, -ENOMEM, "no memory");
	int rc = store_list_all(e->store, prefix, STORE_DELIMIT, 1, &page, err);
	return rc == -E2BIG ? 0 : rc;
}

static int find_in(struct engine *e, const char *prefix, const char *path, struct err *err)
{
	auto_page struct store_page page = {0};
	const size_t n = strlen(path);
	int found = LISTED_NOT;
	int rc = store_list_all(e->store, prefix, STORE_DELIMIT | STORE_COMPLETE,
				BENEATH_LISTED_MAX, &page, err);
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
int beneath_is_listed(struct engine *e, const char *path, struct err *err)
{
	int rc = find_in(e, path, path, err);
	if (rc != -EACCES)
		return rc;
	auto_free char *dir = strndup(path, (size_t)(names_last(path) - path));
	return dir ? find_in(e, dir, path, err) : err_set(err, -ENOMEM, "no memory");
}

/* A document that can be read is not a file's: that would have been shown by now, or is shown
 * beside the directory. Where there is none, there is no file. */
enum engine_kind beneath_closed_kind(const char *path, const struct doc *doc)
{
	return doc->kind == DOC_BROKEN && names_is_hdf5(names_last(path)) ? ENGINE_DOMAIN
									  : ENGINE_DIR;
}
