/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of metrics. json.c and prometheus.c both write these, so both formats have the same
 * metrics. A row has a section and a name. JSON: {"section": {"name": value}}, with the values of
 * labels as further levels. Prometheus: hsmount_section_name, and for counters
 * hsmount_section_name_total.
 */
#ifndef METRICS_TABLE_H
#define METRICS_TABLE_H

#include <metrics/metrics.h>

enum { METRICS_LABELS = 2, METRICS_BOUND_MAX = 32 };

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_INFO, METRICS_HISTOGRAM };

/* The type of the member at a row's offset. */
enum metrics_form {
	METRICS_UINT,	 /* uint64_t */
	METRICS_SECONDS, /* uint64_t, nanoseconds; shown in seconds */
	METRICS_REAL,	 /* double */
	METRICS_EACH,	 /* no member: `each` produces the samples */
};

struct metrics_row;

/* A value with its labels, in the row's order. */
struct metrics_sample {
	const char *labels[METRICS_LABELS];
	enum metrics_form form; /* not METRICS_EACH */
	uint64_t n;
	double real;
	struct histogram_counts histogram; /* METRICS_HISTOGRAM only, instead of n and real */
};

typedef void (*metrics_sample_fn)(void *arg, const struct metrics_row *row,
				  const struct metrics_sample *s);

struct metrics_row {
	const char *section, *name, *help;
	enum metrics_type type;
	const char *labels[METRICS_LABELS]; /* names; NULL after the last */
	enum metrics_form form;
	size_t offset; /* in struct metrics, or struct metrics_domain */
	/* Samples with the same first label must follow each other. */
	void (*each)(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		     void *arg);
};

/* The rows of a section follow each other. */
extern const struct metrics_row metrics_rows[];
extern const size_t metrics_nrows;
/* Each row has one sample for each domain. */
extern const struct metrics_row metrics_domain_rows[];
extern const size_t metrics_ndomain_rows;

/* Calls fn for each sample of a row of the first table. */
void metrics_samples(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		     void *arg);
/* The sample of a row of the second table for domain d. */
struct metrics_sample metrics_domain_sample(const struct metrics_row *row,
					    const struct metrics_domain *d);

/* Writes a sample that is not a histogram, in the same way for both formats. */
void metrics_add_number(struct str *out, const struct metrics_sample *s);
/* Writes nanoseconds as seconds: 1.500000000. */
void metrics_add_seconds(struct str *out, uint64_t ns);
/* The upper bound of a histogram's bucket in seconds: "0.0001" … "50", "+Inf". */
const char *metrics_bound(unsigned int bucket, char text[METRICS_BOUND_MAX]);

#endif
