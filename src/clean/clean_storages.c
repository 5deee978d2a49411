/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storages to which nothing leads (storage/storage_scan.h). They are deleted in batches:
 *
 *   1  PUT the mark of a deletion below each storage of the batch (storage/storage_deletion.h)
 *   2  read all names and records of imports again; the marks are rewritten meanwhile
 *   3  for each storage: has no name been found? Is its newest object still old, compared with the
 *      mark, whose time is that of the same clock? Then look at its list of names, and delete it;
 *      otherwise delete the mark only
 *
 * A program that is killed in between leaves marks, which no later run counts as objects.
 */
#include "clean.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <storage/storage_deletion.h>

enum {
	BATCH = 512,		    /* storages */
	BATCH_OBJECTS = 200 * 1000, /* so that the marks are rewritten in time */
};

/* ---- finding ---- */

static const char *reason(const struct clean *c, const struct storage_size *size, int64_t now_ns)
{
	if (size->is_empty)
		return NULL;
	if (size->is_timeless)
		return "the time of an object is not known";
	return clean_is_old(c, size->newest_ns, now_ns) ? NULL : "it is younger";
}

static int take_storage(struct clean *c, const struct storage *storage, struct err *err)
{
	struct storage_size size;
	const int rc = storage_measure(&c->place, storage, &size, err);
	if (rc || !size.objects)
		return rc; /* a directory may be empty */
	const struct engine_clean_item item = {.kind = ENGINE_CLEAN_STORAGE,
					       .key = storage->prefix,
					       .objects = size.objects,
					       .bytes = size.bytes,
					       .newest_ns = size.newest_ns,
					       .stays = reason(c, &size, c->now_ns)};
	const struct clean_storage chosen = {
		.storage = *storage, .objects = size.objects, .bytes = size.bytes};
	if (!item.stays && bytes_append(&c->chosen, &chosen, sizeof(chosen)))
		return err_no_memory(err);
	return clean_found(c, &item);
}

int clean_find_storages(struct clean *c, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < storage_scan_count(c->scan); i++) {
		const struct storage storage = storage_scan_left(c->scan, i);
		if (clean_is_meant(c, storage.prefix))
			rc = take_storage(c, &storage, err);
	}
	return rc;
}

/* ---- deleting ---- */

static void drop(struct clean *c, struct storage_deletion *d)
{
	struct document_place place = c->place;
	place.cancelled = NULL;
	if (d->key[0])
		storage_deletion_drop(&place, d);
	d->key[0] = '\0';
}

/* Looks at a storage once more. Returns 0 if it may be deleted. */
static int judge(struct clean *c, const struct storage *storage, struct err *err)
{
	struct storage_size size;
	if (!storage_scan_is_left(c->scan, storage))
		return err_set(err, -EBUSY, "a domain leads to it now");
	const int rc = storage_measure(&c->place, storage, &size, err);
	const char *why = rc ? NULL : reason(c, &size, size.mark_ns);
	return why ? err_set(err, -EBUSY, "%s", why) : rc;
}

static int delete_one(struct clean *c, const struct clean_storage *s, struct storage_deletion *d)
{
	struct err why = ERR_INIT;
	uint64_t deleted = 0;
	int rc = judge(c, &s->storage, &why);
	if (rc) {
		drop(c, d);
	} else {
		rc = storage_deletion_end(&c->place, NULL, d, &deleted, &why);
		if (rc > 0)
			rc = err_set(&why, -EBUSY, "a domain that was renamed leads to it");
		d->key[0] = '\0';
	}
	c->out->objects += deleted;
	if (rc == -ECANCELED || rc == -ENOMEM)
		return rc;
	if (rc)
		clean_keep(c, s->storage.prefix, rc, &why);
	c->out->items[ENGINE_CLEAN_STORAGE] += !rc;
	c->out->bytes += rc ? 0 : s->bytes;
	if (c->opt->progress)
		c->opt->progress(c->opt->arg, c->out->objects, c->found.objects);
	return 0;
}

static int delete_batch(struct clean *c, const struct clean_storage *v, size_t n, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		struct storage_deletion *d = &c->marks[i];
		rc = storage_deletion_begin(&c->place, &v[i].storage, d, err);
		c->nmarks = i + 1; /* a put that failed may have arrived */
	}
	if (!rc)
		rc = storage_scan_read(c->scan, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = delete_one(c, &v[i], &c->marks[i]);
	for (size_t i = 0; i < c->nmarks; i++)
		drop(c, &c->marks[i]);
	c->nmarks = 0;
	if (rc == -ECANCELED)
		err_set(err, rc, "interrupted");
	return rc;
}

int clean_delete_storages(struct clean *c, struct err *err)
{
	const struct clean_storage *v = (const void *)c->chosen.data;
	const size_t all = c->chosen.len / sizeof(*v);
	int rc = 0;
	c->marks = all ? calloc(BATCH, sizeof(*c->marks)) : NULL;
	if (all && !c->marks)
		return err_no_memory(err);
	for (size_t done = 0, n; !rc && done < all; done += n) {
		uint64_t objects = v[done].objects;
		for (n = 1; n < BATCH && done + n < all; n++) {
			objects += v[done + n].objects;
			if (objects > BATCH_OBJECTS)
				break;
		}
		rc = delete_batch(c, v + done, n, err);
	}
	free(c->marks);
	c->marks = NULL;
	return rc;
}
