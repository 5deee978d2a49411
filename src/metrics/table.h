/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of metrics that both renderings (json.c, prometheus.c) walk, so that neither can say
 * what the other does not. A row is "section" and "name". JSON: {"section": {"name": value}}, with
 * the values of labels as further levels. Prometheus: hsmount_section_name, with _total behind
 * counters.
 */
#ifndef METRICS_TABLE_H
#define METRICS_TABLE_H

#include <metrics/metrics.h>

enum { METRICS_LABELS = 2, METRICS_BOUND_MAX = 32 };

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_INFO, METRICS_HISTOGRAM };

/* What kind of member is at a row's offset. */
enum metrics_form {
	METRICS_UINT,	 /* uint64_t */
	METRICS_SECONDS, /* uint64_t, nanoseconds; shown in seconds */
	METRICS_REAL,	 /* double */
	METRICS_EACH,	 /* none: several samples, by `each` */
};

struct metrics_row;

/* A value; labels are those of the row, in its order. */
struct metrics_sample {
	const char *labels[METRICS_LABELS];
	enum metrics_form form; /* not METRICS_EACH */
	uint64_t n;
	double real;
	struct histogram_counts histogram; /* of a METRICS_HISTOGRAM, nothing else is set then */
};

typedef void (*metrics_sample_fn)(void *arg, const struct metrics_row *row,
				  const struct metrics_sample *s);

struct metrics_row {
	const char *section, *name, *help;
	enum metrics_type type;
	const char *labels[METRICS_LABELS]; /* names; NULL: fewer */
	enum metrics_form form;
	size_t offset; /* in struct metrics, or struct metrics_domain */
	/* Samples with the same first label follow each other. */
	void (*each)(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		     void *arg);
};

/* Rows of a section follow each other. */
extern const struct metrics_row metrics_rows[];
extern const size_t metrics_nrows;
/* Each has one sample for each domain. */
extern const struct metrics_row metrics_domain_rows[];
extern const size_t metrics_ndomain_rows;

/* Calls fn for each sample of a row of the first table. */
void metrics_samples(const struct metrics_row *row, const struct metrics *m, metrics_sample_fn fn,
		     void *arg);
/* The one sample of a row of the second table; its labels are d's. */
struct metrics_sample metrics_domain_sample(const struct metrics_row *row,
					    const struct metrics_domain *d);

/* A sample that is no histogram, as both forms write it. */
void metrics_add_number(struct str *out, const struct metrics_sample *s);
/* Nanoseconds as seconds: 1.500000000. */
void metrics_add_seconds(struct str *out, uint64_t ns);
/* Upper bound of a histogram's bucket in seconds, as text: "0.0001" … "50", "+Inf". */
const char *metrics_bound(unsigned int bucket, char text[METRICS_BOUND_MAX]);

#endif
