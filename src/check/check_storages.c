/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is left over in a bucket, as `hsimage clean` does (clean/). Storages to which nothing
 * leads are those of domains whose deletion was interrupted, and of commits that have failed or are
 * running. Temporary files of a directory bucket are those of programs that were killed, or write
 * now. The same applies to uploads in parts.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>

#include <base/str.h>
#include <domain/documents.h>
#include <engine/parts.h>
#include <storage/storage_scan.h>
#include <store/store.h>

/* ---- storages ---- */

static int report_storage(struct check *c, const struct document_place *p,
			  const struct storage *storage)
{
	struct storage_size size;
	struct err why = ERR_INIT;
	auto_str struct str time = {0};
	if (storage_measure(p, storage, &size, &why))
		return check_find_alone(c, "", ENGINE_CHECK_UNCHECKED, storage->prefix,
					"its keys cannot be listed: %s", why.msg);
	if (!size.objects)
		return 0; /* it has just been deleted, or is an empty directory */
	if (size.newest_ns > 0) {
		str_add(&time, ", the last of them put at ");
		str_add_time(&time, size.newest_ns);
	}
	return check_find_alone(c, "", ENGINE_CHECK_NOTE, storage->prefix,
				"no name leads to this storage: it is left over from a domain that "
				"was removed, or from a commit that has failed or is running. It "
				"has %" PRIu64 " objects of %" PRIu64 " bytes%s",
				size.objects, size.bytes, str_text(&time));
}

int check_storages(struct check *c, struct engine *e)
{
	const struct document_place place = {.env = &e->bucket.env,
					     .store = e->bucket.store,
					     .schema = bucket_new_domains(&e->bucket)};
	const struct storage_scan_options opt = {.place = &place};
	struct storage_scan *scan;
	struct err why = ERR_INIT;
	int rc = storage_scan_new(&opt, &scan, &why);
	if (!rc)
		rc = storage_scan_read(scan, &why);
	if (rc == -ENOMEM)
		rc = err_no_memory(c->err);
	else if (rc)
		rc = check_find_alone(c, "", ENGINE_CHECK_UNCHECKED, place.schema->storage->all,
				      "it is not known which storages are left over: %s", why.msg);
	else
		for (size_t i = 0; !rc && i < storage_scan_count(scan); i++) {
			const struct storage storage = storage_scan_left(scan, i);
			rc = report_storage(c, &place, &storage);
		}
	storage_scan_free(scan);
	return rc;
}

/* ---- uploads ---- */

static int report_upload(void *ctx, const struct store_upload *u)
{
	auto_str struct str time = {0};
	str_add_time(&time, u->began_ns);
	return check_find_alone(ctx, "", ENGINE_CHECK_NOTE, u->key,
				"an upload in parts that was begun at %s and is not finished: a "
				"program is writing it, or has left it when it was killed",
				str_text(&time));
}

/* A person may be allowed to read the bucket, but not to list uploads. */
int check_uploads(struct check *c, struct engine *e)
{
	struct err why = ERR_INIT;
	if (!store_has_uploads(e->bucket.store))
		return 0;
	const int rc = store_each_upload(e->bucket.store, "", report_upload, c, &why);
	/* Without a reason, the sink has failed. */
	if (!rc || !why.code)
		return rc;
	log_info(e->bucket.log, "uploads in parts that are not finished: %s", why.msg);
	return 0;
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
