/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the metrics in Prometheus' text exposition format, version 0.0.4: HELP and TYPE of each
 * metric, then its samples. Pure; any thread.
 */
#include <metrics/metrics.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "table.h"

/* A label's value. The backslash, the quote and the newline are escaped. Other control bytes are
 * replaced, because parsers differ in how they treat them. */
static void add_escaped(struct str *out, const char *s)
{
	for (size_t left = strlen(s), n = 0; left; s += n, left -= n) {
		const unsigned char c = (unsigned char)*s;
		n = 1;
		if (c == '\\' || c == '"')
			str_addf(out, "\\%c", c);
		else if (c == '\n')
			str_add(out, "\\n");
		else if (c < 0x20 || c == 0x7f)
			str_add_character(out, "\xff", 1);
		else
			n = str_add_character(out, s, left);
	}
}

static void add_name(struct str *out, const struct metrics_row *row, const char *suffix)
{
	str_addf(out, "hsmount_%s_%s%s%s", row->section, row->name,
		 row->type == METRICS_COUNTER ? "_total" : "", suffix);
}

static void add_label(struct str *out, const char *name, const char *value, bool first)
{
	str_addf(out, "%s%s=\"", first ? "{" : ",", name);
	add_escaped(out, value);
	str_add(out, "\"");
}

static void begin_line(struct str *out, const struct metrics_row *row,
		       const struct metrics_sample *s, const char *suffix, const char *le)
{
	add_name(out, row, suffix);
	/* {a="x",b="y",le="0.1"}, or nothing if there are no labels */
	int n = 0;
	for (; n < METRICS_LABELS && row->labels[n]; n++)
		add_label(out, row->labels[n], s->labels[n], n == 0);
	if (le)
		add_label(out, "le", le, n++ == 0);
	if (n)
		str_add(out, "}");
	str_add(out, " ");
}

static void add_histogram(struct str *out, const struct metrics_row *row,
			  const struct metrics_sample *s)
{
	const struct histogram_counts *h = &s->histogram;
	uint64_t sum = 0;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		char bound[METRICS_BOUND_MAX];
		sum += h->buckets[i];
		begin_line(out, row, s, "_bucket", metrics_bound(i, bound));
		str_addf(out, "%" PRIu64 "\n", sum);
	}
	begin_line(out, row, s, "_sum", NULL);
	metrics_add_seconds(out, h->sum_ns);
	str_add(out, "\n");
	begin_line(out, row, s, "_count", NULL);
	str_addf(out, "%" PRIu64 "\n", h->count);
}

static void add_sample(void *arg, const struct metrics_row *row, const struct metrics_sample *s)
{
	struct str *out = arg;
	if (row->type == METRICS_HISTOGRAM) {
		add_histogram(out, row, s);
		return;
	}
	begin_line(out, row, s, "", NULL);
	metrics_add_number(out, s);
	str_add(out, "\n");
}

static void begin_metric(struct str *out, const struct metrics_row *row)
{
	static const char *const types[] = {
		[METRICS_COUNTER] = "counter",
		[METRICS_GAUGE] = "gauge",
		[METRICS_INFO] = "gauge",
		[METRICS_HISTOGRAM] = "histogram",
	};
	str_add(out, "# HELP ");
	add_name(out, row, "");
	str_addf(out, " %s\n# TYPE ", row->help);
	add_name(out, row, "");
	str_addf(out, " %s\n", types[row->type]);
}

void metrics_prometheus(const struct metrics *m, struct str *out)
{
	for (size_t i = 0; i < metrics_nrows; i++) {
		begin_metric(out, &metrics_rows[i]);
		metrics_samples(&metrics_rows[i], m, add_sample, out);
	}
	for (size_t i = 0; i < metrics_ndomain_rows; i++) {
		const struct metrics_row *row = &metrics_domain_rows[i];
		begin_metric(out, row);
		for (size_t k = 0; k < m->ndomains; k++) {
			const struct metrics_sample s = metrics_domain_sample(row, &m->domains[k]);
			add_sample(out, row, &s);
		}
	}
}
