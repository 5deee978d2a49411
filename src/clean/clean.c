/* SPDX-License-Identifier: Apache-2.0 */
/* The order of `hsimage clean`: see clean.h. */
#include "clean.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <engine/parts.h>
#include <storage/storage_deletion.h>
#include <store/store.h>

enum { LOOKS = 3 };

/* Finds out what time it is by the clock of the bucket: the clock of this machine may be wrong. The
 * object is the mark of a deletion of a storage that does not exist. A dry run writes nothing, so
 * it believes this machine, unless the bucket has objects that are newer. */
static int find_time(struct clean *c, struct err *err)
{
	struct storage_deletion d;
	struct store_meta meta = {0};
	uint64_t number;
	c->now_ns = env_wall(c->place.env);
	if (c->opt->dry_run) {
		if (storage_scan_newest(c->scan) > c->now_ns)
			c->now_ns = storage_scan_newest(c->scan);
		return 0;
	}
	c->place.env->random(c->place.env, &number, sizeof(number));
	const struct storage none = schema_storage_of_number(c->place.schema, number);
	int rc = 0;
	/* Another process that cleans the bucket may delete the mark. */
	for (int i = 0; rc == 0 && i < LOOKS; i++) {
		rc = storage_deletion_begin(&c->place, &none, &d, err);
		if (rc)
			return rc;
		rc = store_look(c->place.store, d.key, c->place.cancelled, &meta, err);
		storage_deletion_drop(&c->place, &d);
	}
	c->now_ns = meta.mtime_ns;
	if (rc == 0)
		rc = err_set(err, -EBUSY, "another program cleans the bucket");
	if (rc > 0 && c->now_ns <= 0)
		rc = err_set(err, -EOPNOTSUPP, "the bucket does not say how old its objects are");
	return rc < 0 ? rc : 0;
}

static int find(struct clean *c, struct err *err)
{
	int rc = find_time(c, err);
	if (!rc)
		rc = clean_find_storages(c, err);
	return rc ? rc : clean_find_others(c, err);
}

static uint64_t count(const struct engine_clean_totals *t)
{
	uint64_t n = 0;
	for (int i = 0; i < ENGINE_CLEAN_KINDS; i++)
		n += t->items[i];
	return n;
}

static int show_names(void *ctx, uint64_t documents, struct err *err)
{
	struct clean *c = ctx;
	const struct engine_clean *opt = c->opt;
	int rc = 0;
	if (opt->progress)
		opt->progress(opt->arg, documents, 0);
	for (size_t i = 0; !rc && i < c->nmarks; i++)
		if (c->marks[i].key[0]) {
			/* A mark that another program has replaced does not concern the others. */
			struct err why = ERR_INIT;
			rc = storage_deletion_keep(&c->place, &c->marks[i], &why);
			rc = rc == -EBUSY ? 0 : rc;
			if (rc)
				err_copy(err, &why);
		}
	return rc;
}

static int clean(struct clean *c, struct err *err)
{
	const struct engine_clean *opt = c->opt;
	const struct storage_scan_options scan = {.place = &c->place, .page = show_names, .ctx = c};
	int rc = storage_scan_new(&scan, &c->scan, err);
	if (!rc)
		rc = storage_scan_read(c->scan, err);
	if (rc)
		return err_wrap(err, rc, "nothing is deleted, because not all names can be read");
	rc = find(c, err);
	*c->out = c->found;
	if (rc || opt->dry_run || !count(&c->found))
		return rc;
	rc = opt->ask(opt->arg, &c->found);
	if (rc <= 0)
		return rc;
	*c->out = (struct engine_clean_totals){.kept = c->found.kept};
	rc = clean_delete_storages(c, err);
	if (!rc)
		rc = clean_delete_others(c, err);
	return rc || !c->failed ? rc : err_set(err, c->failed, "not everything could be deleted");
}

int engine_clean(struct engine *e, const struct engine_clean *opt, struct engine_clean_totals *out,
		 struct err *err)
{
	struct err own = ERR_INIT;
	struct clean c = {.e = e,
			  .opt = opt,
			  .place = {.env = &e->bucket.env,
				    .store = e->bucket.store,
				    .schema = bucket_new_domains(&e->bucket),
				    .cancelled = opt->cancelled},
			  .out = out};
	*out = (struct engine_clean_totals){0};
	err = err ? err : &own;
	if (opt->age_s < ENGINE_CLEAN_AGE_MIN_S)
		return err_set(err, -EINVAL, "the age must be at least an hour");
	const int rc = clean(&c, err);
	storage_scan_free(c.scan);
	bytes_release(&c.chosen);
	bytes_release(&c.others);
	return rc;
}
