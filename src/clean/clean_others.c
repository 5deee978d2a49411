/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files of a directory bucket, and uploads in parts. A text of clean.others is a kind, a
 * key and, of an upload, its id; each has a NUL.
 */
#include "clean.h"

#include <errno.h>
#include <string.h>

#include <engine/parts.h>
#include <store/store.h>

struct finding {
	struct clean *c;
	struct err *err;
};

static int choose(struct clean *c, enum engine_clean_kind kind, const char *key, const char *id,
		  struct err *err)
{
	const uint8_t byte = (uint8_t)kind;
	return bytes_append(&c->others, &byte, 1) ||
			       bytes_append(&c->others, key, strlen(key) + 1) ||
			       bytes_append(&c->others, id, strlen(id) + 1)
		       ? err_no_memory(err)
		       : 0;
}

static int take(struct finding *f, const struct engine_clean_item *item, const char *id)
{
	int rc = 0;
	if (!clean_is_meant(f->c, item->key))
		return 0;
	if (!item->stays)
		rc = choose(f->c, item->kind, item->key, id, f->err);
	return rc ? rc : clean_found(f->c, item);
}

static int take_temp(void *ctx, const char *path, const struct store_meta *meta)
{
	struct finding *f = ctx;
	const bool is_old = clean_is_old(f->c, meta->mtime_ns, f->c->now_ns);
	const struct engine_clean_item item = {.kind = ENGINE_CLEAN_TEMP,
					       .key = path,
					       .objects = 1,
					       .bytes = meta->size,
					       .newest_ns = meta->mtime_ns,
					       .stays = is_old ? NULL : "it is younger"};
	return take(f, &item, "");
}

/* Plain objects may be uploaded by any program, which may go on with it. Only this one puts objects
 * of a storage in parts. */
static int take_upload(void *ctx, const struct store_upload *u)
{
	struct finding *f = ctx;
	const struct clean *c = f->c;
	const bool is_ours = c->place.schema->is_storage(u->key);
	const struct engine_clean_item item = {
		.kind = ENGINE_CLEAN_UPLOAD,
		.key = u->key,
		.objects = 1,
		.newest_ns = u->began_ns,
		.stays = !is_ours ? "other programs put such objects, too"
			 : clean_is_old(c, u->began_ns, u->now_ns) ? NULL
								   : "it is younger"};
	return take(f, &item, u->id);
}

int clean_find_others(struct clean *c, struct err *err)
{
	struct finding f = {.c = c, .err = err};
	struct store *dir = c->e->bucket.stack.dir;
	int rc = dir ? store_dir_each_temp(dir, take_temp, &f, err) : 0;
	if (!rc && store_has_uploads(c->place.store))
		rc = store_each_upload(c->place.store, c->opt->prefix ? c->opt->prefix : "",
				       take_upload, &f, err);
	/* Some services have no such listing. */
	if (rc == -EOPNOTSUPP) {
		c->opt->line(c->opt->arg, err->msg);
		err_clear(err);
		rc = 0;
	}
	return rc;
}

int clean_delete_others(struct clean *c, struct err *err)
{
	const char *at = (const char *)c->others.data, *end = at + c->others.len;
	while (at < end) {
		const enum engine_clean_kind kind = (enum engine_clean_kind) * at;
		const char *key = at + 1, *id = key + strlen(key) + 1;
		struct err why = ERR_INIT;
		const int rc = kind == ENGINE_CLEAN_TEMP
				       ? store_dir_remove_temp(c->e->bucket.stack.dir, key, &why)
				       : store_abort_upload(c->place.store, key, id, &why);
		at = id + strlen(id) + 1;
		if (rc == -ENOMEM)
			return err_no_memory(err);
		if (rc)
			clean_keep(c, key, rc, &why);
		c->out->items[kind] += !rc;
		c->out->objects += !rc;
	}
	return 0;
}
