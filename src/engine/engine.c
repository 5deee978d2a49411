/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes an engine: makes the pool, the stack of stores, the cache, the names and the
 * table of snapshots. Any thread may use an engine between the two.
 */
#include "engine_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <base/thread.h>

#include <diskcache/diskcache.h>
#include <storage/renames.h>
#include <s3/s3.h>

#include <drafts/drafts.h>
#include <bucket/recognise_bucket.h>
#include <snapshots/size_cache.h>
#include <snapshots/sizes.h>
#include <bucket/schemas.h>

enum {
	MAX_WORKERS = 1024,
	CACHE_DISK_MIN = 1 << 20,
	/* Metadata may take this much even if cache_size is smaller: enough for 100,000 objects. */
	METADATA_MIN = 512 << 20,
	IDLE_SHARE = 4, /* images that are not open may take 1/4 of cache_size */
	IDLE_MIN = 16 << 20,
	SIZES_SHARE = 4, /* domains that are planned for stat may take 1/4 of cache_size */
	KEPT_FREE = 16,	 /* 1/16 of the connections is kept free of prefetches */
	WARM_SHARE = 8,	 /* 1/8 of the connections is opened in advance */
};

void engine_options_init(struct engine_options *opt)
{
	*opt = (struct engine_options){
		.workers = 16,
		.cache_size = UINT64_C(256) << 20,
		.cache_disk_size = UINT64_C(10) << 30,
		.metadata_ttl = 1,
		.rename_dir_max = 10000,
		.gc_delay = GARBAGE_DELAY_NS / 1e9,
	};
}

static int check_options(const struct engine_options *opt, struct err *err)
{
	if (!opt->bucket || !opt->bucket[0])
		return err_set(err, -EINVAL, "missing bucket");
	if (opt->write && (!opt->user || !opt->user[0]))
		return err_set(err, -EINVAL, "missing user");
	if (opt->write && (!opt->journal_dir || !opt->journal_dir[0]))
		return err_set(err, -EINVAL, "missing journal_dir");
	if (opt->workers > MAX_WORKERS)
		return err_set(err, -EINVAL, "workers=%u: must be at most %d", opt->workers,
			       MAX_WORKERS);
	if (!(opt->metadata_ttl >= 0 && opt->metadata_ttl <= 1e9) ||
	    !(opt->open_ttl >= 0 && opt->open_ttl <= 1e9))
		return err_set(err, -EINVAL, "metadata_ttl: must be a number of seconds");
	if (!(opt->gc_delay >= 0 && opt->gc_delay <= 1e9))
		return err_set(err, -EINVAL, "gc_delay: must be a number of seconds");
	if (opt->cache_dir && opt->cache_disk_size < CACHE_DISK_MIN)
		return err_set(err, -EINVAL, "cache_disk_size: must be at least 1M");
	return 0;
}

/* Limit of prefetches at the same time: a little less than the store's limit of requests, so that a
 * reader does not queue behind them. */
static unsigned int prefetches_max(const struct engine_options *opt)
{
	const unsigned int connections =
		opt->s3.connections ? opt->s3.connections : STORE_S3_CONNECTIONS;
	const unsigned int n = store_stack_is_s3(opt->bucket) ? connections : opt->workers;
	return n > KEPT_FREE ? n - n / KEPT_FREE : n > 1 ? n - 1 : 1;
}

/* Divides engine_options.root into names. */
static int parse_roots(struct engine *e, const char *list, struct err *err)
{
	size_t n = 0;
	char *rest;
	if (!list)
		return 0;
	e->root_names = strdup(list);
	e->roots = calloc(strlen(list) + 2, sizeof(*e->roots));
	if (!e->root_names || !e->roots)
		return err_no_memory(err);
	for (char *name = strtok_r(e->root_names, ",", &rest); name;
	     name = strtok_r(NULL, ",", &rest)) {
		name += strspn(name, "/");
		size_t len = strlen(name);
		while (len && name[len - 1] == '/')
			name[--len] = '\0';
		if (!names_ok(name, len))
			return err_set(err, -EINVAL,
				       "root=%s: must be names of top-level directories", list);
		e->roots[n++] = name;
	}
	return n ? 0 : err_set(err, -EINVAL, "root=%s: must name a top-level directory", list);
}

static struct names *new_names(const struct engine *e, const struct engine_options *opt,
			       bool has_marks)
{
	const struct names_options names = {
		.env = &e->bucket.env,
		.store = e->bucket.store,
		.disk = e->bucket.stack.disk,
		.schemas = schema_all(),
		.ttl_ns = (uint64_t)llround(opt->metadata_ttl * 1e9),
		.list_ttl_ns = e->bucket.open_ttl_ns,
		.prefixes_have_objects = store_stack_is_s3(opt->bucket),
		.roots = e->roots,
		.has_marks = has_marks,
	};
	return names_new(&names);
}

static struct sizes *new_sizes(struct engine *e, const struct engine_options *opt)
{
	const struct sizes_options sizes = {
		/* Each thread waits for one domain; a directory is read by the workers. */
		.threads =
			opt->workers && e->bucket.stack.s3 ? e->bucket.connections : opt->workers,
		.limit = opt->cache_size / SIZES_SHARE,
	};
	return sizes_new(&e->bucket, &sizes);
}

/* Ends all threads, because a daemon forks after it has opened the engine. The next request starts
 * them again. */
static void stop_threads(struct engine *e)
{
	store_stack_stop_threads(&e->bucket.stack);
	files_stop_threads(e->files);
	pool_stop_threads(e->bucket.pool);
}

static struct store *new_store(struct engine *e, const struct engine_options *opt, const char *only,
			       struct err *err)
{
	const struct engine_world *world = opt->world;
	if (!world)
		return store_stack_new(&e->bucket.env, opt, only, NULL, e->bucket.meter,
				       &e->bucket.stack, err);
	struct store *bottom = world->store(world->ctx, &e->bucket.env, err);
	return bottom ? store_stack_over(bottom, &e->bucket.stack, err) : NULL;
}

static struct env new_env(struct engine *e, const struct engine_world *world)
{
	struct env env = env_real(e->bucket.log, e->bucket.pool);
	if (!world)
		return env;
	env.now = world->now;
	env.boot = NULL;
	env.wall = world->wall;
	env.sleep = world->sleep;
	env.random = world->random;
	env.ctx = world->ctx;
	return env;
}

/* Shows only one name of the root. */
static int set_root(struct engine *e, const char *name, struct err *err)
{
	e->root_names = strdup(name);
	e->roots = calloc(2, sizeof(*e->roots));
	if (!e->root_names || !e->roots)
		return err_no_memory(err);
	e->roots[0] = e->root_names;
	return 0;
}

/* Opens a bucket. If `only` is not NULL, the root has only this name, which is that of a domain
 * that a listing shows. *place becomes what the bucket is; the caller releases it. *out becomes
 * NULL if another bucket must be opened in its place. */
static int open_place(const struct engine_options *opt, const char *only, struct engine **out,
		      struct recognised *place, struct err *err)
{
	*place = (struct recognised){0};
	*out = NULL;
	int rc = check_options(opt, err);
	if (rc)
		return rc;
	struct engine *e = calloc(1, sizeof(*e));
	if (!e)
		return err_no_memory(err);
	e->bucket.log = opt->log;
	e->bucket.no_filters = opt->no_filters;
	e->bucket.writes = opt->write;
	e->bucket.keeps_attributes = opt->keep_attributes;
	e->debug_count = opt->debug_count;
	e->rename_dir_max = opt->rename_dir_max;
	e->bucket.connections = opt->s3.connections ? opt->s3.connections : STORE_S3_CONNECTIONS;
	e->bucket.open_ttl_ns = (uint64_t)llround(opt->open_ttl * 1e9);
	rc = -ENOMEM;
	e->bucket.pool = pool_new(opt->workers);
	if (!e->bucket.pool)
		goto fail;
	e->bucket.env = new_env(e, opt->world);
	e->bucket.env.budget = budget_new(&(struct budget_limits){
		.bytes = opt->cache_size, .metadata_min = METADATA_MIN, .option = "cache_size"});
	if (!e->bucket.env.budget)
		goto fail;
	e->opened_ns = env_now(&e->bucket.env);
	e->started_ns = env_wall(&e->bucket.env);
	e->bucket.name = strdup(opt->bucket);
	e->bucket.meter = http_stats_new();
	if (!e->bucket.name || !e->bucket.meter)
		goto fail;
	struct err why = ERR_INIT;
	e->bucket.store = new_store(e, opt, only, &why);
	if (!e->bucket.store) {
		rc = why.code ? why.code : -ENOMEM;
		if (rc != -ENOMEM)
			err_copy(err, &why);
		goto fail;
	}
	rc = only ? set_root(e, only, err) : parse_roots(e, opt->root, err);
	if (rc)
		goto fail;
	place->has_marks = only;
	if (!only)
		rc = recognise_bucket(opt, &e->bucket.stack, place, err);
	if (!rc && place->above) {
		engine_close(e);
		return 0;
	}
	if (!rc)
		rc = files_new(&e->bucket.env, opt, e->bucket.store, e->bucket.meter, &e->files,
			       err);
	stop_threads(e);
	if (rc)
		goto fail;
	rc = -ENOMEM;
	e->bucket.short_name = files_bucket_name(e->files);
	e->bucket.domains = (struct domain_bucket){
		.env = &e->bucket.env,
		.store = e->bucket.store,
		.disk = e->bucket.stack.disk,
		.schemas = schema_all(),
		.files = files_interface(e->files),
		.changes = &e->bucket.changes,
		.missing_chunks_fail = opt->missing_chunks_fail,
		.forbidden_chunks_absent = opt->forbidden_chunks_absent,
		.keeps_texts = opt->write,
	};
	e->bucket.cache = cache_new(&e->bucket.env, prefetches_max(opt), NULL);
	e->bucket.names = new_names(e, opt, place->has_marks || opt->expects_stores);
	e->bucket.stat_mode = opt->stat;
	e->bucket.size_cache = size_cache_new(e->bucket.stack.disk, e->bucket.env.budget,
					      e->bucket.no_filters ? IMAGE_NO_FILTERS : 0);
	e->sizes = new_sizes(e, opt);
	e->bucket.snapshots =
		snapshots_new(&e->bucket, max_u64(opt->cache_size / IDLE_SHARE, IDLE_MIN));
	if (!e->bucket.cache || !e->bucket.names || !e->bucket.size_cache || !e->sizes ||
	    !e->bucket.snapshots)
		goto fail;
	if (opt->write) {
		const struct garbage_ops ops = change_garbage_ops(e);
		e->bucket.renames = renames_new(&e->bucket.env);
		const struct garbage_options garbage = {
			.delay_ns = (uint64_t)llround(opt->gc_delay * 1e9),
			.all_at_end = opt->gc_at_unmount,
			.threaded = true};
		e->bucket.garbage = garbage_new(&e->bucket.env, &ops, &garbage);
		e->bucket.user = strdup(opt->user);
		if (!e->bucket.garbage || !e->bucket.renames || !e->bucket.user)
			goto fail;
		rc = drafts_new(&e->bucket, opt, &e->drafts, err);
		if (!rc)
			rc = garbage_notes_open(e, drafts_journal(e->drafts), err);
		if (!rc && place->becomes)
			rc = recognise_make(opt, err);
		if (rc)
			goto fail;
	}
	*out = e;
	return 0;
fail:
	engine_close(e);
	return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
}

/* The bucket is a domain that a listing shows. The directory or prefix above it is opened, and
 * shows only this name. */
static int open_above(const struct engine_options *opt, const struct recognised *place,
		      struct engine **out, struct err *err)
{
	struct engine_options above = *opt;
	struct recognised ignored;
	above.bucket = place->above;
	if (opt->write || opt->root)
		return err_set(err, -EINVAL,
			       "%s is a single domain: %s needs a mount of the bucket that has it",
			       opt->bucket, opt->write ? "rw" : "root");
	const int rc = open_place(&above, place->name, out, &ignored, err);
	recognised_release(&ignored);
	return rc;
}

int engine_open(const struct engine_options *opt, struct engine **out, struct err *err)
{
	struct recognised place;
	int rc = open_place(opt, NULL, out, &place, err);
	if (!rc && place.above)
		rc = open_above(opt, &place, out, err);
	recognised_release(&place);
	return rc;
}

/* Frees the images first: they wait for their loads, which need all other parts. */
void engine_close(struct engine *e)
{
	if (!e)
		return;
	if (e->warms_up)
		pthread_join(e->warm_up, NULL);
	drafts_free(e->drafts); /* commits make garbage */
	garbage_free(e->bucket.garbage);
	gc_log_free(e->bucket.gc_log);
	renames_free(e->bucket.renames);
	sizes_free(e->sizes);
	size_cache_free(e->bucket.size_cache);
	snapshots_free(e->bucket.snapshots);
	names_free(e->bucket.names);
	if (e->bucket.cache)
		cache_free(e->bucket.cache);
	files_free(e->files);
	if (e->bucket.store)
		store_free(e->bucket.store);
	http_stats_free(e->bucket.meter);
	pool_free(e->bucket.pool);
	budget_free(e->bucket.env.budget);
	free(e->roots);
	free(e->root_names);
	free(e->bucket.user);
	free(e->bucket.name);
	free(e);
}

/* Requests for names block, so a thread of its own makes them. */
static void *preload(void *names)
{
	names_preload(names);
	return NULL;
}

/* A program usually opens its first file soon after the mount. Until then there is time to open
 * connections and to read the names in the root. Does not wait for these requests. */
static void begin_to_warm_up(struct engine *e)
{
	const unsigned int n = e->bucket.connections;
	store_s3_connect(e->bucket.stack.s3, (n + WARM_SHARE - 1) / WARM_SHARE);
	e->warms_up = thread_start(&e->warm_up, preload, e->bucket.names);
}

void engine_start(struct engine *e)
{
	if (e->bucket.stack.s3)
		begin_to_warm_up(e);
	engine_take_removed(e);
	if (e->drafts)
		drafts_start(e->drafts);
}

/* Programs look at the free space before they write. What they write must fit into the journal. */
bool engine_is_unreachable(struct engine *e)
{
	return store_check(e->bucket.store, NULL) != 0;
}

int engine_space(struct engine *e, uint64_t *free_bytes, uint64_t *total_bytes)
{
	int rc = store_space(e->bucket.store, free_bytes, total_bytes);
	if (rc != -EOPNOTSUPP || !e->drafts)
		return rc;
	struct engine_counts counts;
	drafts_get_counts(e->drafts, &counts);
	*total_bytes = counts.spool_size;
	*free_bytes = counts.spool_size - min_u64(counts.spool_used, counts.spool_size);
	return 0;
}

void engine_get_counts(struct engine *e, struct engine_counts *out)
{
	struct store_counts s;
	struct cache_stats c;
	struct store_diskcache_stats d = {0};
	store_count_read(e->bucket.stack.count, &s);
	cache_get_stats(e->bucket.cache, &c);
	if (e->bucket.stack.disk)
		store_diskcache_read(e->bucket.stack.disk, &d);
	*out = (struct engine_counts){
		.gets = s.calls[STORE_GET],
		.range_gets = s.range_gets,
		.heads = s.calls[STORE_HEAD],
		.lists = s.calls[STORE_LIST],
		.bytes_in = s.bytes_in,
		.failures = s.failures,
		.in_flight_max = s.in_flight_max,
		.cache_hits = c.hits,
		.cache_misses = c.misses,
		.cache_loads = c.loads,
		.cache_bytes = c.bytes,
		.prefetches = c.prefetches,
		.prefetch_used = c.prefetch_used,
		.disk_hits = d.hits,
		.disk_hit_bytes = d.hit_bytes,
		.disk_revalidated = d.revalidated,
		.disk_misses = d.misses,
		.disk_stored = d.stored,
		.disk_skipped = d.skipped,
		.disk_dropped = d.dropped,
		.disk_evicted = d.evicted,
		.disk_errors = d.errors,
		.disk_bytes = d.bytes,
		.images = snapshots_live(e->bucket.snapshots),
		.reads = atomic_load(&e->reads),
		.bytes_read = atomic_load(&e->bytes_read),
	};
	drafts_get_counts(e->drafts, out);
}
