/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of metrics. Constant. */
#include "report.h"

#include <stdio.h>
#include <string.h>

/* ---- metrics with more than one sample ---- */

static int each_info(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		     void *arg)
{
	const struct report_sample s = {.labels = {r->version, r->bucket}, .n = 1};
	return fn(arg, m, &s);
}

/* Those that came are shown: of six hundred that may. */
static int each_status(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		       void *arg)
{
	int rc = 0;
	for (int method = 0; method < METER_METHODS; method++)
		for (int status = 0; !rc && status < METER_STATUSES; status++) {
			char text[16] = "none";
			if (!r->wire.requests[method][status])
				continue;
			if (status)
				snprintf(text, sizeof(text), "%d", status);
			const struct report_sample s = {
				.labels = {meter_method_name((enum meter_method)method), text},
				.n = r->wire.requests[method][status],
			};
			rc = fn(arg, m, &s);
		}
	return rc;
}

/* label: NULL for a metric without. */
static int give_times(const struct report_metric *m, const char *label,
		      const struct histogram_counts *times, report_sample_fn fn, void *arg)
{
	const struct report_sample s = {.labels = {label}, .histogram = *times};
	return fn(arg, m, &s);
}

static int each_request_time(const struct report_metric *m, const struct report *r,
			     report_sample_fn fn, void *arg)
{
	int rc = 0;
	for (int method = 0; !rc && method < METER_METHODS; method++)
		rc = give_times(m, meter_method_name((enum meter_method)method),
				&r->wire.seconds[method], fn, arg);
	return rc;
}

static int each_result(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		       void *arg)
{
	int rc = 0;
	for (int call = 0; call < STORE_CALLS; call++)
		for (unsigned int i = 0; !rc && i < STORE_RESULTS; i++) {
			const struct report_sample s = {
				.labels = {store_call_name((enum store_call)call),
					   store_result_name(i)},
				.n = r->store.results[call][i],
			};
			/* "ok" always: a rate needs its zero. */
			if (s.n || i == 0)
				rc = fn(arg, m, &s);
		}
	return rc;
}

static int each_call_time(const struct report_metric *m, const struct report *r,
			  report_sample_fn fn, void *arg)
{
	int rc = 0;
	for (int call = 0; !rc && call < STORE_CALLS; call++)
		rc = give_times(m, store_call_name((enum store_call)call), &r->store.seconds[call],
				fn, arg);
	return rc;
}

static int each_wait(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		     void *arg)
{
	return give_times(m, NULL, &r->cache.waited, fn, arg);
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
		.labels = {label1, label2}, .form = REPORT_EACH, .each = each_                     \
	}
#define COUNTER(section, name, member, help)                                                       \
	VALUE(REPORT_COUNTER, REPORT_UINT, section, name, report, member, help)
#define GAUGE(section, name, member, help)                                                         \
	VALUE(REPORT_GAUGE, REPORT_UINT, section, name, report, member, help)

const struct report_metric report_metrics[] = {
	EACH(REPORT_INFO, "mount", "info", each_info, "version", "bucket",
	     "Version of the program and the bucket that it shows."),
	VALUE(REPORT_GAUGE, REPORT_SECONDS, "mount", "uptime_seconds", report, uptime_ns,
	      "Time since the bucket was opened."),
	EACH(REPORT_COUNTER, "http", "requests", each_status, "method", "status",
	     "Requests to the server by the status of the answer; none: no complete one came."),
	EACH(REPORT_HISTOGRAM, "http", "request_seconds", each_request_time, "method", NULL,
	     "How long requests to the server took, from the start to the end of the answer."),
	COUNTER("http", "retries", wire.retries, "Requests that were made once more."),
	COUNTER("http", "received_bytes", wire.bytes_in, "Bytes of answers' bodies."),
	COUNTER("http", "sent_bytes", wire.bytes_out, "Bytes of requests' bodies."),
	COUNTER("http", "connections_opened", wire.connections_opened,
		"Connections that were made."),
	GAUGE("http", "connections", wire.connections, "Connections that are open now."),
	EACH(REPORT_COUNTER, "store", "calls", each_result, "call", "result",
	     "Calls of the engine to its bucket, retries within them, by what came of them."),
	EACH(REPORT_HISTOGRAM, "store", "call_seconds", each_call_time, "call", NULL,
	     "How long these calls took, waiting and retries included."),
	COUNTER("store", "range_gets", store.range_gets,
		"Gets that asked for a part of an object."),
	COUNTER("store", "read_bytes", store.bytes_in, "Bytes of objects that gets returned."),
	COUNTER("store", "written_bytes", store.bytes_out, "Bytes of objects that were put."),
	GAUGE("store", "gets_in_flight_max", store.in_flight_max,
	      "Most gets that were under way at once."),
	COUNTER("read", "calls", reads, "Reads of open files."),
	COUNTER("read", "bytes", bytes_read, "Bytes that readers asked for and got."),
	COUNTER("read", "fetched_bytes", bytes_fetched,
		"Bytes that came from the bucket, whatever for."),
	VALUE(REPORT_GAUGE, REPORT_REAL, "read", "amplification_ratio", report, amplification,
	      "Bytes fetched for each byte that readers got; 0 before the first."),
	COUNTER("cache", "hits", cache.hits, "Chunks that were in memory when a reader came."),
	COUNTER("cache", "misses", cache.misses, "Chunks that a reader had to have loaded."),
	COUNTER("cache", "waits", cache.waits, "Readers that joined a load under way."),
	EACH(REPORT_HISTOGRAM, "cache", "wait_seconds", each_wait, NULL, NULL,
	     "How long readers waited for chunks that were not in memory."),
	COUNTER("cache", "loads", cache.loads, "Loads of chunks, for readers and ahead of them."),
	COUNTER("cache", "load_failures", cache.load_failures, "Loads that failed."),
	COUNTER("cache", "evictions", cache.evictions, "Chunks that were dropped for others."),
	GAUGE("cache", "bytes", cache.bytes, "Memory of the chunks that are held."),
	GAUGE("cache", "charged_bytes", cache.charged, "Memory of metadata: images and models."),
	GAUGE("cache", "in_flight_bytes", cache.in_flight, "Memory of the loads under way."),
	GAUGE("cache", "in_flight_max_bytes", cache.in_flight_max,
	      "Most memory that loads took at once."),
	GAUGE("cache", "budget_bytes", cache.budget, "Memory that all of these may take."),
	GAUGE("cache", "loading", cache.loading, "Loads under way."),
	GAUGE("cache", "queued", cache.queued, "Loads that wait for their turn."),
	COUNTER("prefetch", "started", cache.prefetches, "Loads ahead of readers."),
	COUNTER("prefetch", "useful", cache.prefetch_used,
		"Chunks loaded ahead that a reader came for."),
	COUNTER("prefetch", "wasted", cache.prefetch_wasted,
		"Chunks loaded ahead that were dropped unread."),
	COUNTER("prefetch", "cancelled", cache.cancelled, "Loads ahead that were called off."),
	COUNTER("disk", "hits", disk.hits, "Objects that came from disk, nothing being asked."),
	COUNTER("disk", "hit_bytes", disk.hit_bytes, "Bytes of these."),
	COUNTER("disk", "revalidated", disk.revalidated,
		"Objects that came from disk when the bucket had said that they are current."),
	COUNTER("disk", "misses", disk.misses, "Objects that were not there to be used."),
	COUNTER("disk", "stored", disk.stored, "Objects that were written."),
	COUNTER("disk", "skipped", disk.skipped,
		"Objects that were not: too large, too young, or the disk was behind."),
	COUNTER("disk", "dropped", disk.dropped, "Entries that were damaged."),
	COUNTER("disk", "evicted", disk.evicted, "Entries that were dropped for others."),
	COUNTER("disk", "errors", disk.errors, "Failures of the disk."),
	GAUGE("disk", "bytes", disk.bytes, "Disk space that entries took when last looked at."),
	GAUGE("domains", "images", images, "Images of domains in memory, open or kept."),
};
const size_t report_nmetrics = sizeof(report_metrics) / sizeof(report_metrics[0]);

#define DOMAIN(type_, form_, name_, member, help_)                                                 \
	{                                                                                          \
		.section = "domain", .name = name_, .help = help_, .type = type_,                  \
		.labels = {"domain", "version"}, .form = form_,                                    \
		.offset = offsetof(struct report_domain, member)                                   \
	}
#define DOMAIN_COUNTER(name, member, help) DOMAIN(REPORT_COUNTER, REPORT_UINT, name, member, help)

const struct report_metric report_domain_metrics[] = {
	DOMAIN(REPORT_GAUGE, REPORT_UINT, "open", open, "Times that this image is open now."),
	DOMAIN_COUNTER("opens", opens, "Times that it was opened."),
	DOMAIN_COUNTER("reads", reads, "Reads of it."),
	DOMAIN_COUNTER("read_bytes", bytes_read, "Bytes that its readers asked for and got."),
	DOMAIN_COUNTER("fetched_bytes", bytes_fetched, "Bytes of its chunks, as they are stored."),
	DOMAIN_COUNTER("hits", chunks.hits, "Its chunks that were in memory when a reader came."),
	DOMAIN_COUNTER("misses", chunks.misses, "Its chunks that a reader had to have loaded."),
	DOMAIN_COUNTER("waits", chunks.waits, "Readers that joined a load of it."),
	DOMAIN(REPORT_COUNTER, REPORT_SECONDS, "wait_seconds", chunks.wait_ns,
	       "Time that its readers waited for chunks."),
	DOMAIN_COUNTER("loads", chunks.loads, "Loads of its chunks."),
	DOMAIN_COUNTER("load_failures", chunks.failures, "Loads of its chunks that failed."),
	DOMAIN_COUNTER("prefetch_started", chunks.prefetches,
		       "Of its loads, those ahead of readers."),
	DOMAIN_COUNTER("prefetch_useful", chunks.prefetch_used,
		       "Its chunks loaded ahead that a reader came for."),
	DOMAIN_COUNTER("prefetch_wasted", chunks.prefetch_wasted,
		       "Its chunks loaded ahead that were dropped unread."),
};
const size_t report_ndomain_metrics =
	sizeof(report_domain_metrics) / sizeof(report_domain_metrics[0]);

/* ---- samples ---- */

static struct report_sample sample_at(const struct report_metric *m, const void *of)
{
	struct report_sample s = {.form = m->form};
	const char *at = (const char *)of + m->offset;
	if (m->form == REPORT_REAL)
		memcpy(&s.real, at, sizeof(s.real));
	else
		memcpy(&s.n, at, sizeof(s.n));
	return s;
}

int report_samples(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		   void *arg)
{
	if (m->form == REPORT_EACH)
		return m->each(m, r, fn, arg);
	const struct report_sample s = sample_at(m, r);
	return fn(arg, m, &s);
}

struct report_sample report_domain_sample(const struct report_metric *m,
					  const struct report_domain *d)
{
	struct report_sample s = sample_at(m, d);
	s.labels[0] = d->path;
	s.labels[1] = d->version;
	return s;
}

const char *report_bound(unsigned int bucket, char text[REPORT_BOUND_MAX])
{
	enum { US = 1000000 };
	if (bucket >= HISTOGRAM_BOUNDS)
		return "+Inf";
	const unsigned int us = (unsigned int)histogram_bound_us(bucket);
	int n = snprintf(text, REPORT_BOUND_MAX, "%u.%06u", us / US, us % US);
	while (n > 0 && text[n - 1] == '0')
		n--;
	if (n > 0 && text[n - 1] == '.')
		n--;
	text[n] = '\0';
	return text;
}
