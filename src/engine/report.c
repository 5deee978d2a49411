/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers the counters of the engine's parts, which metrics/ writes as text. They are read one
 * after the other, so a report does not show a single moment: one number may include a read that
 * another one does not include yet. Any thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <metrics/metrics.h>
#include <domain/shard_counts.h>
#include <diskcache/diskcache.h>
#include <s3/s3.h>

#include <drafts/drafts.h>
#include "engine_internal.h"

enum { DOMAINS_MAX = 1000 /* if there are more, those with the most reads are shown */ };

/* ---- domains ---- */

struct collected {
	struct metrics_domain *v;
	size_t n, cap;
};

static struct metrics_domain domain_of(struct snapshot *s)
{
	struct cache_owner_stats c;
	uint64_t index_hits, index_misses;
	image_get_stats(s->image, &c);
	domain_shard_counts(s->domain, &index_hits, &index_misses);
	return (struct metrics_domain){
		.open = atomic_load(&s->use.open),
		.opens = atomic_load(&s->use.opens),
		.reads = atomic_load(&s->use.reads),
		.bytes_read = atomic_load(&s->use.bytes_read),
		.bytes_fetched = image_fetched(s->image),
		.hits = c.hits,
		.misses = c.misses,
		.waits = c.waits,
		.wait_ns = c.wait_ns,
		.loads = c.loads,
		.load_failures = c.failures,
		.index_hits = index_hits,
		.index_misses = index_misses,
		.prefetch = {.started = c.prefetches,
			     .useful = c.prefetch_used,
			     .wasted = c.prefetch_wasted},
	};
}

static int collect(void *arg, struct snapshot *s)
{
	struct collected *c = arg;
	if (c->n == c->cap) {
		const size_t cap = c->cap ? 2 * c->cap : 16;
		struct metrics_domain *v = reallocarray(c->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->v = v;
		c->cap = cap;
	}
	struct metrics_domain *d = &c->v[c->n];
	*d = domain_of(s);
	snprintf(d->version, sizeof(d->version), "%" PRIu64, s->version);
	if (asprintf(&d->path, "/%s", domain_path(s->domain)) < 0)
		return -ENOMEM;
	c->n++;
	return 0;
}

static int most_reads_first(const void *a, const void *b)
{
	const struct metrics_domain *x = a, *y = b;
	return (x->reads < y->reads) - (x->reads > y->reads);
}

static void free_domains(struct metrics_domain *v, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		free(v[i].path);
}

static int gather_domains(struct engine *e, struct metrics *m)
{
	struct collected c = {0};
	int rc = snapshots_each(e->bucket.snapshots, collect, &c);
	m->domains = c.v;
	m->ndomains = c.n;
	if (rc || c.n == 0)
		return rc;
	qsort(c.v, c.n, sizeof(*c.v), most_reads_first);
	if (c.n > DOMAINS_MAX) {
		free_domains(c.v, DOMAINS_MAX, c.n);
		m->ndomains = DOMAINS_MAX;
	}
	return 0;
}

/* ---- stores and the cache ---- */

_Static_assert((int)METRICS_METHODS == HTTP_METHODS && (int)METRICS_STATUSES == HTTP_STATUSES &&
		       (int)METRICS_CALLS == STORE_OPS && (int)METRICS_RESULTS == STORE_RESULTS &&
		       (int)METRICS_FEATURES == STORE_S3_FEATURES,
	       "gather_http() and gather_store() copy these arrays");

static int gather_http(const struct http_stats *meter, struct metrics_http *out)
{
	/* Heap, because a thread of the front may have a small stack. */
	auto_free struct http_stats_counts *c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	http_stats_read(meter, c);
	*out = (struct metrics_http){
		.bytes_in = c->bytes_in,
		.bytes_out = c->bytes_out,
		.connections_opened = c->connections_opened,
		.connections = c->connections,
	};
	for (int i = 0; i < METRICS_METHODS; i++)
		out->method[i] = http_method_name((enum http_method)i);
	memcpy(out->requests, c->requests, sizeof(out->requests));
	memcpy(out->seconds, c->seconds, sizeof(out->seconds));
	return 0;
}

static void gather_store(struct store *counting, struct metrics_store *out)
{
	struct store_counts c;
	store_count_read(counting, &c);
	*out = (struct metrics_store){
		.range_gets = c.range_gets,
		.bytes_in = c.bytes_in,
		.bytes_out = c.bytes_out,
		.gets_in_flight_max = c.in_flight_max,
		.moves = c.moves,
	};
	for (int i = 0; i < METRICS_CALLS; i++)
		out->call[i] = store_op_name((enum store_op)i);
	for (unsigned int i = 0; i < METRICS_RESULTS; i++)
		out->result[i] = store_result_name(i);
	memcpy(out->results, c.results, sizeof(out->results));
	memcpy(out->seconds, c.seconds, sizeof(out->seconds));
}

static void gather_features(struct store *s3, struct metrics_store *out)
{
	struct store_s3_feature f[STORE_S3_FEATURES];
	store_s3_features(s3, f);
	for (int i = 0; i < METRICS_FEATURES; i++) {
		out->feature[i] = f[i].name;
		out->support[i] = f[i].support;
	}
}

static void gather_disk(struct store *disk, struct metrics_disk *out)
{
	struct store_diskcache_stats d;
	store_diskcache_read(disk, &d);
	*out = (struct metrics_disk){
		.hits = d.hits,
		.hit_bytes = d.hit_bytes,
		.revalidated = d.revalidated,
		.misses = d.misses,
		.stored = d.stored,
		.skipped = d.skipped,
		.dropped = d.dropped,
		.evicted = d.evicted,
		.errors = d.errors,
		.bytes = d.bytes,
	};
}

static void gather_drafts(struct drafts *t, struct metrics_drafts *out)
{
	struct engine_counts c = {0};
	drafts_get_counts(t, &c);
	*out = (struct metrics_drafts){
		.open = c.drafts_open,
		.failed = c.drafts_failed,
		.left = c.drafts_left,
		.bytes_written = c.bytes_written,
		.commits = c.commits,
		.commit_failures = c.commit_failures,
		.scanned_objects = c.scanned_objects,
		.scanned_nodes = c.scanned_nodes,
		.spool_used = c.spool_used,
		.spool_size = c.spool_size,
	};
}

static void gather_cache(struct cache *cache, struct metrics *m)
{
	struct cache_stats c;
	cache_get_stats(cache, &c);
	m->cache = (struct metrics_cache){
		.hits = c.hits,
		.misses = c.misses,
		.waits = c.waits,
		.loads = c.loads,
		.load_failures = c.load_failures,
		.evictions = c.evictions,
		.waited = c.waited,
		.bytes = c.bytes,
		.charged = c.charged,
		.in_flight = c.in_flight,
		.in_flight_max = c.in_flight_max,
		.budget = c.budget,
		.loading = c.loading,
		.queued = c.queued,
	};
	m->prefetch = (struct metrics_prefetch){
		.started = c.prefetches,
		.useful = c.prefetch_used,
		.wasted = c.prefetch_wasted,
		.cancelled = c.cancelled,
	};
}

/* ---- all of them ---- */

/* m is zeroed. */
static int gather(struct engine *e, struct metrics *m)
{
	int rc = gather_http(e->bucket.meter, &m->http);
	if (rc)
		return rc;
	m->version = HSMOUNT_VERSION;
	m->bucket = e->bucket.name;
	m->uptime_ns = env_now(&e->bucket.env) - e->opened_ns;
	m->reads = atomic_load(&e->reads);
	m->bytes_read = atomic_load(&e->bytes_read);
	m->images = snapshots_live(e->bucket.snapshots);
	gather_store(e->bucket.stack.count, &m->store);
	if (e->bucket.stack.s3)
		gather_features(e->bucket.stack.s3, &m->store);
	gather_cache(e->bucket.cache, m);
	if (e->bucket.stack.disk)
		gather_disk(e->bucket.stack.disk, &m->disk);
	gather_drafts(e->drafts, &m->drafts);
	m->http.retries = e->bucket.stack.retry ? store_retry_count(e->bucket.stack.retry) : 0;
	/* Over HTTP, repeated requests are included. */
	m->bytes_fetched = store_stack_is_s3(e->bucket.name) ? m->http.bytes_in : m->store.bytes_in;
	if (m->bytes_read)
		m->amplification = (double)m->bytes_fetched / (double)m->bytes_read;
	return gather_domains(e, m);
}

int engine_report(struct engine *e, enum engine_report kind, char **text, size_t *n,
		  struct err *err)
{
	auto_str struct str out = {0};
	struct metrics *m = calloc(1, sizeof(*m));
	int rc = m ? gather(e, m) : -ENOMEM;
	if (!rc && kind == ENGINE_REPORT_JSON)
		metrics_json(m, &out);
	else if (!rc)
		metrics_prometheus(m, &out);
	if (m) {
		free_domains(m->domains, 0, m->ndomains);
		free(m->domains);
	}
	free(m);
	*n = out.b.len;
	*text = rc ? NULL : str_take(&out);
	return *text ? 0 : err_no_memory(err);
}
