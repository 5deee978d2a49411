/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of metrics. Constant. */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- metrics with more than one sample ---- */

static void each_info(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		      void *arg)
{
	const struct metrics_sample s = {.labels = {m->version, m->bucket}, .n = 1};
	fn(arg, row, &s);
}

/* Passes only statuses that occurred, because there are 600. */
static void each_status(const struct metrics_row *row, const struct metrics *m,
			metrics_sample_fn fn, void *arg)
{
	for (int method = 0; method < METRICS_METHODS; method++)
		for (int status = 0; status < METRICS_STATUSES; status++) {
			char text[16] = "none";
			const struct metrics_sample s = {
				.labels = {m->http.method[method], text},
				.n = m->http.requests[method][status],
			};
			if (s.n == 0)
				continue;
			if (status)
				snprintf(text, sizeof(text), "%d", status);
			fn(arg, row, &s);
		}
}

/* Passes histograms. `label` is NULL for a metric without labels. */
static void add_times(const struct metrics_row *row, const char *label,
		      const struct histogram_counts *times, metrics_sample_fn fn, void *arg)
{
	const struct metrics_sample s = {.labels = {label}, .histogram = *times};
	fn(arg, row, &s);
}

static void each_request_time(const struct metrics_row *row, const struct metrics *m,
			      metrics_sample_fn fn, void *arg)
{
	for (int method = 0; method < METRICS_METHODS; method++)
		add_times(row, m->http.method[method], &m->http.seconds[method], fn, arg);
}

static void each_result(const struct metrics_row *row, const struct metrics *m,
			metrics_sample_fn fn, void *arg)
{
	for (int call = 0; call < METRICS_CALLS; call++)
		for (int i = 0; i < METRICS_RESULTS; i++) {
			const struct metrics_sample s = {
				.labels = {m->store.call[call], m->store.result[i]},
				.n = m->store.results[call][i],
			};
			/* "ok" is passed even if it is 0, because a rate needs the first value. */
			if (s.n || i == 0)
				fn(arg, row, &s);
		}
}

/* A directory has none. */
static void each_feature(const struct metrics_row *row, const struct metrics *m,
			 metrics_sample_fn fn, void *arg)
{
	for (int i = 0; i < METRICS_FEATURES; i++) {
		const struct metrics_sample s = {
			.labels = {m->store.feature[i], m->store.support[i]}, .n = 1};
		if (s.labels[0])
			fn(arg, row, &s);
	}
}

static void each_call_time(const struct metrics_row *row, const struct metrics *m,
			   metrics_sample_fn fn, void *arg)
{
	for (int call = 0; call < METRICS_CALLS; call++)
		add_times(row, m->store.call[call], &m->store.seconds[call], fn, arg);
}

static void each_wait(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		      void *arg)
{
	add_times(row, NULL, &m->cache.waited, fn, arg);
}

/* ---- the tables ---- */

#define VALUE(type_, form_, section_, name_, of, member, help_)                                    \
	{                                                                                          \
		.section = section_, .name = name_, .help = help_, .type = type_, .form = form_,   \
		.offset = offsetof(struct of, member)                                              \
	}
#define EACH(type_, section_, name_, each_, label1, label2, help_)                                 \
	{                                                                                          \
		.section = section_, .name = name_, .help = help_, .type = type_,                  \
		.labels = {label1, label2}, .form = METRICS_EACH, .each = each_                    \
	}
#define COUNTER(section, name, member, help)                                                       \
	VALUE(METRICS_COUNTER, METRICS_UINT, section, name, metrics, member, help)
#define GAUGE(section, name, member, help)                                                         \
	VALUE(METRICS_GAUGE, METRICS_UINT, section, name, metrics, member, help)

const struct metrics_row metrics_rows[] = {
	EACH(METRICS_INFO, "mount", "info", each_info, "version", "bucket",
	     "Version of the program and the bucket that it shows."),
	VALUE(METRICS_GAUGE, METRICS_SECONDS, "mount", "uptime_seconds", metrics, uptime_ns,
	      "Time since the bucket was opened."),
	EACH(METRICS_COUNTER, "http", "requests", each_status, "method", "status",
	     "Requests to the server by status; none: no complete response."),
	EACH(METRICS_HISTOGRAM, "http", "request_seconds", each_request_time, "method", NULL,
	     "Duration of requests to the server, until the end of the response."),
	COUNTER("http", "retries", http.retries, "Repeated requests."),
	COUNTER("http", "received_bytes", http.bytes_in, "Bytes of response bodies."),
	COUNTER("http", "sent_bytes", http.bytes_out, "Bytes of request bodies."),
	COUNTER("http", "connections_opened", http.connections_opened, "Connections opened."),
	GAUGE("http", "connections", http.connections, "Connections open now."),
	EACH(METRICS_COUNTER, "store", "calls", each_result, "call", "result",
	     "Calls of the engine to its bucket by result; retries are part of a call."),
	EACH(METRICS_HISTOGRAM, "store", "call_seconds", each_call_time, "call", NULL,
	     "Duration of these calls, with waiting and retries."),
	COUNTER("store", "moves", store.moves, "Objects of a directory given another key."),
	EACH(METRICS_GAUGE, "store", "features", each_feature, "feature", "support",
	     "What the service of the bucket supports: 1."),
	COUNTER("store", "range_gets", store.range_gets, "Gets of a part of an object."),
	COUNTER("store", "read_bytes", store.bytes_in, "Bytes returned by gets."),
	COUNTER("store", "written_bytes", store.bytes_out, "Bytes written by puts."),
	GAUGE("store", "gets_in_flight_max", store.gets_in_flight_max,
	      "Largest number of gets in flight at once."),
	COUNTER("read", "calls", reads, "Reads of open files."),
	COUNTER("read", "bytes", bytes_read, "Bytes returned to readers."),
	COUNTER("read", "fetched_bytes", bytes_fetched,
		"Bytes fetched from the bucket for any purpose."),
	VALUE(METRICS_GAUGE, METRICS_REAL, "read", "amplification_ratio", metrics, amplification,
	      "Bytes fetched per byte returned to readers; 0 before the first."),
	COUNTER("cache", "hits", cache.hits, "Reads of chunks that were in memory."),
	COUNTER("cache", "misses", cache.misses, "Reads of chunks that had to be loaded."),
	COUNTER("cache", "waits", cache.waits, "Reads that joined a load in flight."),
	EACH(METRICS_HISTOGRAM, "cache", "wait_seconds", each_wait, NULL, NULL,
	     "Time that reads waited for chunks that were not in memory."),
	COUNTER("cache", "loads", cache.loads, "Loads of chunks, for reads and as prefetches."),
	COUNTER("cache", "load_failures", cache.load_failures, "Loads that failed."),
	COUNTER("cache", "evictions", cache.evictions, "Chunks evicted from memory."),
	GAUGE("cache", "bytes", cache.bytes, "Memory of cached chunks."),
	GAUGE("cache", "charged_bytes", cache.charged, "Memory of trees, images and drafts."),
	GAUGE("cache", "in_flight_bytes", cache.in_flight, "Memory of the loads in flight."),
	GAUGE("cache", "in_flight_max_bytes", cache.in_flight_max,
	      "Largest memory of loads in flight at once."),
	GAUGE("cache", "budget_bytes", cache.budget, "Limit for all of these."),
	GAUGE("cache", "loading", cache.loading, "Loads in flight."),
	GAUGE("cache", "queued", cache.queued, "Loads in the queue."),
	COUNTER("prefetch", "started", prefetch.started, "Prefetches that started."),
	COUNTER("prefetch", "useful", prefetch.useful, "Prefetched chunks that were read."),
	COUNTER("prefetch", "wasted", prefetch.wasted,
		"Prefetched chunks that were evicted unread."),
	COUNTER("prefetch", "cancelled", prefetch.cancelled,
		"Prefetches that were cancelled before they started."),
	COUNTER("disk", "hits", disk.hits,
		"Objects read from disk without a request to the bucket."),
	COUNTER("disk", "hit_bytes", disk.hit_bytes, "Bytes of these."),
	COUNTER("disk", "revalidated", disk.revalidated,
		"Objects read from disk after the bucket confirmed that they are current."),
	COUNTER("disk", "misses", disk.misses, "Objects that were not on disk, or not usable."),
	COUNTER("disk", "stored", disk.stored, "Objects written to disk."),
	COUNTER("disk", "skipped", disk.skipped,
		"Objects not written: too large, too new, or the disk is too slow."),
	COUNTER("disk", "dropped", disk.dropped, "Damaged entries, which were removed."),
	COUNTER("disk", "evicted", disk.evicted, "Entries evicted from disk."),
	COUNTER("disk", "errors", disk.errors, "Errors of the disk."),
	GAUGE("disk", "bytes", disk.bytes, "Disk space of the entries when last measured."),
	GAUGE("drafts", "open", drafts.open, "Files that programs have open for writing."),
	GAUGE("drafts", "failed", drafts.failed, "Files that could not be stored in the bucket."),
	GAUGE("drafts", "left", drafts.left, "Files in the journal for hsimage recover."),
	COUNTER("drafts", "written_bytes", drafts.bytes_written, "Bytes written to files."),
	COUNTER("drafts", "commits", drafts.commits, "Commits that succeeded."),
	COUNTER("drafts", "commit_failures", drafts.commit_failures, "Commits that failed."),
	COUNTER("drafts", "scanned_objects", drafts.scanned_objects,
		"Objects that commits of changed domains have read from the files."),
	COUNTER("drafts", "scanned_nodes", drafts.scanned_nodes,
		"Nodes of chunk indexes that they have read."),
	GAUGE("drafts", "spool_bytes", drafts.spool_used, "Bytes in the journal."),
	GAUGE("drafts", "spool_size_bytes", drafts.spool_size,
	      "Limit of the bytes in the journal."),
	GAUGE("domains", "images", images, "Images of domains in memory, open or not."),
};
const size_t metrics_nrows = sizeof(metrics_rows) / sizeof(metrics_rows[0]);

#define DOMAIN(type_, form_, name_, member, help_)                                                 \
	{                                                                                          \
		.section = "domain", .name = name_, .help = help_, .type = type_,                  \
		.labels = {"domain", "version"}, .form = form_,                                    \
		.offset = offsetof(struct metrics_domain, member)                                  \
	}
#define DOMAIN_COUNTER(name, member, help) DOMAIN(METRICS_COUNTER, METRICS_UINT, name, member, help)

const struct metrics_row metrics_domain_rows[] = {
	DOMAIN(METRICS_GAUGE, METRICS_UINT, "open", open, "Open files of this image."),
	DOMAIN_COUNTER("opens", opens, "Opens of this image."),
	DOMAIN_COUNTER("reads", reads, "Reads of this image."),
	DOMAIN_COUNTER("read_bytes", bytes_read, "Bytes returned to its readers."),
	DOMAIN_COUNTER("fetched_bytes", bytes_fetched, "Bytes fetched for its chunks, as stored."),
	DOMAIN_COUNTER("hits", hits, "Reads of its chunks that were in memory."),
	DOMAIN_COUNTER("misses", misses, "Reads of its chunks that had to be loaded."),
	DOMAIN_COUNTER("waits", waits, "Reads that joined a load of its chunks in flight."),
	DOMAIN(METRICS_COUNTER, METRICS_SECONDS, "wait_seconds", wait_ns,
	       "Time that its reads waited for chunks."),
	DOMAIN_COUNTER("loads", loads, "Loads of its chunks."),
	DOMAIN_COUNTER("load_failures", load_failures, "Loads of its chunks that failed."),
	DOMAIN_COUNTER("index_hits", index_hits,
		       "Searches in indexes of shards that were in memory."),
	DOMAIN_COUNTER("index_misses", index_misses,
		       "Searches in indexes of shards that had to be read."),
	DOMAIN_COUNTER("prefetch_started", prefetch.started,
		       "Loads of its chunks that were prefetches."),
	DOMAIN_COUNTER("prefetch_useful", prefetch.useful, "Its prefetched chunks that were read."),
	DOMAIN_COUNTER("prefetch_wasted", prefetch.wasted,
		       "Its prefetched chunks that were evicted unread."),
};
const size_t metrics_ndomain_rows = sizeof(metrics_domain_rows) / sizeof(metrics_domain_rows[0]);

/* ---- samples ---- */

static struct metrics_sample sample_at(const struct metrics_row *row, const void *of)
{
	struct metrics_sample s = {.form = row->form};
	const char *at = (const char *)of + row->offset;
	if (row->form == METRICS_REAL)
		memcpy(&s.real, at, sizeof(s.real));
	else
		memcpy(&s.n, at, sizeof(s.n));
	return s;
}

void metrics_samples(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		     void *arg)
{
	if (row->form == METRICS_EACH) {
		row->each(row, m, fn, arg);
		return;
	}
	const struct metrics_sample s = sample_at(row, m);
	fn(arg, row, &s);
}

struct metrics_sample metrics_domain_sample(const struct metrics_row *row,
					    const struct metrics_domain *d)
{
	struct metrics_sample s = sample_at(row, d);
	s.labels[0] = d->path;
	s.labels[1] = d->version;
	return s;
}

/* ---- as text ---- */

void metrics_add_seconds(struct str *out, uint64_t ns)
{
	enum { NS = 1000000000 };
	str_addf(out, "%" PRIu64 ".%09" PRIu64, ns / NS, ns % NS);
}

/* Writes a value from 0 to 2^43 with six decimals. printf's %f would depend on the locale. */
static void add_real(struct str *out, double value)
{
	enum { PARTS = 1000000 };
	const uint64_t parts = (uint64_t)(value * PARTS + 0.5);
	str_addf(out, "%" PRIu64 ".%06" PRIu64, parts / PARTS, parts % PARTS);
}

void metrics_add_number(struct str *out, const struct metrics_sample *s)
{
	if (s->form == METRICS_SECONDS)
		metrics_add_seconds(out, s->n);
	else if (s->form == METRICS_REAL)
		add_real(out, s->real);
	else
		str_addf(out, "%" PRIu64, s->n);
}

const char *metrics_bound(unsigned int bucket, char text[METRICS_BOUND_MAX])
{
	enum { US = 1000000 };
	if (bucket >= HISTOGRAM_BOUNDS)
		return "+Inf";
	const unsigned int us = (unsigned int)histogram_bound_us(bucket);
	int n = snprintf(text, METRICS_BOUND_MAX, "%u.%06u", us / US, us % US);
	while (n > 0 && text[n - 1] == '0')
		n--;
	if (n > 0 && text[n - 1] == '.')
		n--;
	text[n] = '\0';
	return text;
}
