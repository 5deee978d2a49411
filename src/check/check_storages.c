/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is left over in a bucket. Storages to which no name leads are those of domains whose
 * deletion was interrupted, and of commits that have failed or are running: a check of the whole
 * bucket has seen the documents of all domains, and compares their storages with a listing.
 * Temporary files of a directory bucket are those of programs that were killed, or write now.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/str.h>
#include <engine/parts.h>
#include <schema/schema.h>
#include <store/store.h>

/* ---- the storages that are known ---- */

int check_note_storage(struct check *c, const struct storage *storage)
{
	return bytes_append(&c->storages, storage, sizeof(*storage)) ? err_no_memory(c->err) : 0;
}

int check_note_document(struct check *c, const struct schema_document *d)
{
	struct storage storage;
	return schema_storage_of(d, &storage) ? check_note_storage(c, &storage) : 0;
}

/* Makes a sorted array of the prefixes of the noted storages. Fails with -ENOMEM. */
static int sort_known(const struct check *c, struct arena *a, const char ***out, size_t *n)
{
	const struct storage *storages = (const void *)c->storages.data;
	*n = c->storages.len / sizeof(*storages);
	*out = arena_array(a, *n + 1, sizeof(**out));
	for (size_t i = 0; *out && i < *n; i++)
		(*out)[i] = storages[i].prefix;
	if (*out && *n)
		qsort(*out, *n, sizeof(**out), str_compare);
	return *out ? 0 : -ENOMEM;
}

/* ---- those of the bucket ---- */

static int report_unknown(struct check *c, const struct store_page *page)
{
	const char **known = NULL;
	size_t n = 0;
	struct arena *a = arena_new(SIZE_MAX);
	int rc = a && !sort_known(c, a, &known, &n) ? 0 : err_no_memory(c->err);
	for (size_t i = 0; !rc && i < page->n; i++) {
		const char *prefix = page->items[i].key;
		if (page->items[i].is_prefix &&
		    !bsearch(&prefix, known, n, sizeof(*known), str_compare))
			rc = check_find_alone(
				c, "", ENGINE_CHECK_NOTE, prefix,
				"no name leads to this storage: it is left over from a "
				"domain that was removed, or from a commit that has "
				"failed or is running");
	}
	arena_free(a);
	return rc;
}

int check_storages(struct check *c, struct engine *e)
{
	auto_request struct store_request *req = store_request_new(e->bucket.store, STORE_LIST);
	struct err why = ERR_INIT;
	const struct schema_storage *of = bucket_new_domains(&e->bucket)->storage;
	if (!req)
		return err_no_memory(c->err);
	store_request_key(req, of->all);
	req->list.delimit = true;
	req->list.whole = true;
	store_run(e->bucket.store, req);
	if (store_failure(&req->answer, &why))
		return check_find_alone(c, "", ENGINE_CHECK_UNCHECKED, of->all,
					"storages cannot be listed: %s", why.msg);
	return report_unknown(c, &req->answer.page);
}

/* ---- temporary files ---- */

static int report_temp(void *ctx, const char *path, const struct store_meta *meta)
{
	auto_str struct str time = {0};
	str_add_time(&time, meta->mtime_ns);
	return check_find_alone(ctx, "", ENGINE_CHECK_NOTE, path,
				"a temporary file of %" PRIu64 " bytes, last written at %s: a "
				"program is writing it, or has left it when it was killed",
				meta->size, str_text(&time));
}

int check_temps(struct check *c, struct engine *e)
{
	struct err why = ERR_INIT;
	struct store *dir = e->bucket.stack.dir;
	const int rc = dir ? store_dir_each_temp(dir, report_temp, c, &why) : 0;
	/* Without a reason, the sink has failed. */
	return rc && why.code
		       ? check_find_alone(c, "", ENGINE_CHECK_UNCHECKED, NULL,
					  "temporary files cannot be searched for: %s", why.msg)
		       : rc;
}
