/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that the engine counts, gathered into one struct, and the tables of metrics that both
 * renderings (report_json.c, report_prometheus.c) walk, so that neither can say what the other does
 * not. doc/METRICS.md describes each row.
 *
 * A metric is "section" and "name". JSON: {"section": {"name": value}}, with the values of labels
 * as further levels. Prometheus: hsmount_section_name, with _total behind counters.
 */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/histogram.h>
#include <base/mem.h>
#include <cache/cache.h>
#include <diskcache/diskcache.h>
#include <http/stats.h>
#include <store/store.h>

enum {
	REPORT_DOMAINS_MAX = 1000, /* of more, those with the most reads */
	REPORT_LABELS = 2,
	REPORT_BOUND_MAX = 32,
};

/* One live image of a domain. */
struct report_domain {
	char *path; /* "/home/u/run", heap */
	char version[24];
	uint64_t open, opens, reads, bytes_read, bytes_fetched;
	struct cache_owner_stats chunks;
};

struct report {
	const char *version, *bucket;
	uint64_t uptime_ns;
	struct store_counts store;
	struct http_stats_counts wire;
	uint64_t retries;
	struct cache_stats cache;
	struct store_diskcache_stats disk; /* zero without one */
	uint64_t reads, bytes_read, bytes_fetched;
	double amplification; /* bytes fetched for each byte read */
	uint64_t images;
	struct report_domain *domains;
	size_t ndomains;
};

enum report_type { REPORT_COUNTER, REPORT_GAUGE, REPORT_INFO, REPORT_HISTOGRAM };

/* What kind of member is at a metric's offset. */
enum report_form {
	REPORT_UINT,	/* uint64_t */
	REPORT_SECONDS, /* uint64_t, nanoseconds; shown in seconds */
	REPORT_REAL,	/* double */
	REPORT_EACH,	/* none: several samples, by `each` */
};

struct report_metric;

/* A value; labels are those of the metric, in its order. */
struct report_sample {
	const char *labels[REPORT_LABELS];
	enum report_form form; /* not REPORT_EACH */
	uint64_t n;
	double real;
	struct histogram_counts histogram; /* of a REPORT_HISTOGRAM, nothing else is set then */
};

typedef int (*report_sample_fn)(void *arg, const struct report_metric *m,
				const struct report_sample *s);

struct report_metric {
	const char *section, *name, *help;
	enum report_type type;
	const char *labels[REPORT_LABELS]; /* names; NULL: fewer */
	enum report_form form;
	size_t offset; /* in struct report, or struct report_domain */
	/* Samples with the same first label follow each other. Non-zero from fn ends it. */
	int (*each)(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		    void *arg);
};

/* Metrics of a section follow each other. */
extern const struct report_metric report_metrics[];
extern const size_t report_nmetrics;
/* Each has one sample for each domain. */
extern const struct report_metric report_domain_metrics[];
extern const size_t report_ndomain_metrics;

/* Calls fn for each sample of a metric of the first table. Returns what fn returned. */
int report_samples(const struct report_metric *m, const struct report *r, report_sample_fn fn,
		   void *arg);
/* The one sample of a metric of the second table; its labels are d's. */
struct report_sample report_domain_sample(const struct report_metric *m,
					  const struct report_domain *d);
/* Upper bound of a histogram's bucket in seconds, as text: "0.0001" … "50", "+Inf". */
const char *report_bound(unsigned int bucket, char text[REPORT_BOUND_MAX]);

/* All return 0 or -ENOMEM. */
int report_json(const struct report *r, struct bytes *out);
int report_prometheus(const struct report *r, struct bytes *out);

#endif
