/* SPDX-License-Identifier: Apache-2.0 */
/* What changes of names need, and how the garbage that they leave is examined and deleted. Any
 * thread. */
#include "engine_internal.h"

#include <update/update.h>

/* A rename of another process that began less than this ago may be running. */
#define RUNNING_NS (INT64_C(30) * 1000000000)

struct change engine_change(struct engine *e, const atomic_bool *cancelled)
{
	return (struct change){
		.env = &e->bucket.env,
		.store = e->bucket.store,
		.schema = bucket_new_domains(&e->bucket),
		.owner = e->bucket.user,
		.now_ns = env_wall(&e->bucket.env),
		.cancelled = cancelled,
		.renames = e->bucket.renames,
	};
}

static int reads_storage(void *arg, struct snapshot *s)
{
	struct storage storage;
	return atomic_load(&s->use.open) &&
	       schema_storage_of(domain_document(s->domain), &storage) &&
	       same_storage(&storage, arg);
}

/* Out of memory: it may be read. */
/* While the service does not answer, nothing is deleted either. */
static bool is_read(void *ctx, const struct storage *storage)
{
	const struct engine *e = ctx;
	if (store_check(e->bucket.store, NULL))
		return true;
	struct storage wanted = *storage;
	return snapshots_each(e->bucket.snapshots, reads_storage, &wanted) != 0;
}

static int collect(void *ctx, const char *path, const struct change_garbage *g,
		   const atomic_bool *cancelled, struct err *err)
{
	struct engine *e = ctx;
	const struct change c = engine_change(e, cancelled);
	uint64_t deleted;
	return change_collect(&c, path, g, &deleted, err);
}

static int collect_objects(void *ctx, uint32_t number, const atomic_bool *cancelled,
			   struct err *err)
{
	struct engine *e = ctx;
	auto_gc_kept struct gc_kept kept = {.event.path = NULL};
	uint64_t deleted;
	int rc = gc_log_get(e->bucket.gc_log, number, &kept, err);
	return rc ? rc : update_collect(&e->bucket.domains, &kept.event, cancelled, &deleted, err);
}

static int finish_rename(void *ctx, const struct storage *storage, bool is_ours,
			 const atomic_bool *cancelled, struct err *err)
{
	const struct engine *e = ctx;
	const struct change c = engine_change(ctx, cancelled);
	if (store_check(e->bucket.store, NULL))
		return -EBUSY;
	return change_finish_rename(&c, storage, is_ours ? 0 : RUNNING_NS, err);
}

struct garbage_ops change_garbage_ops(struct engine *e)
{
	return (struct garbage_ops){.schema = bucket_new_domains(&e->bucket),
				    .is_read = is_read,
				    .collect = collect,
				    .collect_objects = collect_objects,
				    .judge = garbage_judge,
				    .finish_rename = finish_rename,
				    .note = garbage_note,
				    .forget = garbage_forget,
				    .ctx = e};
}
