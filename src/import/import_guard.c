/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an import that goes on with old storage: no name has led to it, so `hsimage clean` may
 * have deleted it, or be about to (storage/storage_deletion.h). The document is there by now, so no
 * deletion begins any more. What one has taken is put again before the import succeeds.
 */
#include "import_internal.h"

#include <errno.h>

#include <storage/storage_deletion.h>

#define HOUR_NS UINT64_C(3600000000000)

enum { ATTEMPTS = 3 };

/* A deletion leaves storage alone whose newest object is younger than an hour. An earlier process
 * may have put the objects of this one at any time. */
bool import_is_old(const struct import *im)
{
	return im->continues || env_boot(im->opt->env) - im->began_ns > HOUR_NS;
}

/* Makes durable what is stored. If that fails, the system does not say which objects are damaged.
 */
int import_make_durable(struct import *im, struct err *err)
{
	struct err ignored = ERR_INIT;
	const int rc = store_sync(im->opt->store, err);
	if (rc && !im->opt->commit && import_distrust(im, &ignored))
		im->is_lost = true;
	return rc;
}

/* Puts the objects that are missing. The root group is the last one. */
static int put_missing(struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	key_set_free(im->keys);
	im->keys = NULL;
	im->result->objects = 0;
	im->restores = true;
	int rc = key_set_list(opt->store, opt->env->budget, im->record.storage.prefix,
			      opt->cancelled, &im->keys, err);
	return rc ? rc : import_store(im, err);
}

static uint64_t count_puts(const struct import *im)
{
	struct put_queue_counts counts;
	put_queue_counts(im->queue, &counts);
	return counts.puts;
}

/* Lists the whole storage. The root group does not prove that it is whole: if this process has
 * slept, another one may have deleted what was put before, and the root group was put after that.
 * The record of an import keeps others from that; a commit has none. */
static int restore(struct import *im, struct err *err)
{
	const struct import_result result = *im->result;
	const uint64_t puts = count_puts(im);
	const bool restores = im->restores;
	int rc = put_missing(im, err);
	if (!rc && count_puts(im) == puts) {
		*im->result = result;
		im->restores = restores;
		return 0;
	}
	im->result->versions.is_known = false;
	log_warning(im->opt->env->log,
		    "/%s: another program has deleted what was stored for it; what was missing is "
		    "put again",
		    im->opt->path);
	return rc ? rc : import_make_durable(im, err);
}

int import_guard(struct import *im, struct err *err)
{
	if (!import_is_old(im))
		return 0;
	struct err why = ERR_INIT;
	int rc = storage_reclaim(&im->place, &im->record.storage, &why);
	im->is_gone = rc == -ESTALE;
	if (!rc && im->file && im->opt->commit)
		rc = restore(im, &why);
	for (int i = 0; rc == -ESTALE && im->file && i < ATTEMPTS; i++) {
		err_clear(&why);
		rc = restore(im, &why);
		if (!rc)
			rc = storage_reclaim(&im->place, &im->record.storage, &why);
	}
	/* The domain itself has not changed. */
	if (rc == -ESTALE)
		rc = why.code = -EBUSY;
	if (rc)
		err_copy(err, &why);
	return rc;
}
