/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the counters of a mount as a JSON object or in Prometheus' text exposition format 0.0.4.
 * The engine fills in struct metrics. doc/METRICS.md describes each metric. Pure; any thread.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <base/histogram.h>
#include <base/str.h>

enum {
	METRICS_METHODS = 5,
	METRICS_STATUSES = 600,
	METRICS_CALLS = 5,
	METRICS_RESULTS = 21,
	METRICS_FEATURES = 7
};

/* Requests to a server. */
struct metrics_http {
	const char *method[METRICS_METHODS]; /* names, such as "GET" */
	/* By method and status; status 0 is no complete response. */
	uint64_t requests[METRICS_METHODS][METRICS_STATUSES];
	struct histogram_counts seconds[METRICS_METHODS];
	uint64_t retries, bytes_in, bytes_out, connections_opened, connections;
};

/* Calls of the engine to its bucket. */
struct metrics_store {
	const char *call[METRICS_CALLS], *result[METRICS_RESULTS]; /* names; result 0 is "ok" */
	uint64_t results[METRICS_CALLS][METRICS_RESULTS];
	struct histogram_counts seconds[METRICS_CALLS];
	uint64_t range_gets, bytes_in, bytes_out, gets_in_flight_max, moves;
	/* What the service supports, by name; NULL for a directory. */
	const char *feature[METRICS_FEATURES], *support[METRICS_FEATURES];
};

struct metrics_cache {
	uint64_t hits, misses, waits, loads, load_failures, evictions;
	struct histogram_counts waited;
	/* now */
	uint64_t bytes, charged, in_flight, in_flight_max, budget, loading, queued;
};

struct metrics_prefetch {
	uint64_t started, useful, wasted, cancelled;
};

/* Objects on disk; zero without a cache_dir. */
struct metrics_disk {
	uint64_t hits, hit_bytes, revalidated, misses, stored, skipped, dropped, evicted, errors;
	uint64_t bytes; /* now */
};

/* Files that programs write; zero on a mount that is read-only. */
struct metrics_drafts {
	uint64_t commits, commit_failures, scanned_objects, scanned_nodes, bytes_written;
	/* now */
	uint64_t open, failed, left, spool_used, spool_size;
};

/* One live image of a domain. */
struct metrics_domain {
	char *path; /* "/home/u/run"; owned by the caller */
	char version[24];
	uint64_t open, opens, reads, bytes_read, bytes_fetched;
	uint64_t hits, misses, waits, wait_ns, loads, load_failures;
	uint64_t index_hits, index_misses; /* of the indexes of shards */
	struct metrics_prefetch prefetch;
};

struct metrics {
	const char *version, *bucket; /* of the program; the bucket as the user named it */
	uint64_t uptime_ns;
	struct metrics_http http;
	struct metrics_store store;
	uint64_t reads, bytes_read, bytes_fetched;
	double amplification; /* bytes fetched for each byte read */
	struct metrics_cache cache;
	struct metrics_prefetch prefetch;
	struct metrics_disk disk;
	struct metrics_drafts drafts;
	uint64_t images;
	struct metrics_domain *domains;
	size_t ndomains;
};

void metrics_json(const struct metrics *m, struct str *out);
void metrics_prometheus(const struct metrics *m, struct str *out);

#endif
