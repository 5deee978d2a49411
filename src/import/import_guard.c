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

/* Puts the objects that are missing. The root group is the last one: its presence means that the
 * storage is whole. */
static int put_missing(struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	log_warning(opt->env->log,
		    "/%s: another program has deleted what was stored for it; what is missing is "
		    "put again",
		    opt->path);
	key_set_free(im->keys);
	im->keys = NULL;
	im->result->objects = 0;
	im->result->versions.is_known = false;
	im->restores = true;
	int rc = key_set_list(opt->store, opt->env->budget, im->record.storage.prefix,
			      opt->cancelled, &im->keys, err);
	if (!rc)
		rc = import_store(im, err);
	return rc ? rc : import_make_durable(im, err);
}

int import_guard(struct import *im, struct err *err)
{
	if (!import_is_old(im))
		return 0;
	struct err why = ERR_INIT;
	int rc = storage_reclaim(&im->place, &im->record.storage, &why);
	im->is_gone = rc == -ESTALE;
	for (int i = 0; rc == -ESTALE && im->file && i < ATTEMPTS; i++) {
		err_clear(&why);
		rc = put_missing(im, &why);
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
