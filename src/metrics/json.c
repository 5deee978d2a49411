/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the metrics as one JSON object. It has a member for each section, which has a member for
 * each metric. A metric with labels is an object with a member for each value of the first label,
 * then of the second. Domains are an array of objects, with their labels as members. Pure; any
 * thread.
 */
#include <metrics/metrics.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "table.h"

/* ---- punctuation ---- */

/* Adds a comma if the last character written requires one, so there is no other state. */
static void begin_member(struct str *out, const char *key)
{
	const char last = out->b.len ? (char)out->b.data[out->b.len - 1] : '{';
	if (last != '{' && last != '[')
		str_add(out, ",");
	if (key) {
		str_add_json(out, key);
		str_add(out, ":");
	}
}

static void begin_object(struct str *out, const char *key)
{
	begin_member(out, key);
	str_add(out, "{");
}

static void end_object(struct str *out)
{
	str_add(out, "}");
}

/* ---- values ---- */

static void add_count(struct str *out, const char *key, uint64_t n)
{
	begin_member(out, key);
	str_addf(out, "%" PRIu64, n);
}

/* {"buckets": {"0.0001": 0, …, "+Inf": 7}, "sum": 0.5, "count": 7}; the buckets are cumulative, as
 * in Prometheus' format. */
static void add_histogram(struct str *out, const struct histogram_counts *h)
{
	uint64_t sum = 0;
	str_add(out, "{\"buckets\":{");
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		char bound[METRICS_BOUND_MAX];
		sum += h->buckets[i];
		add_count(out, metrics_bound(i, bound), sum);
	}
	str_add(out, "},\"sum\":");
	metrics_add_seconds(out, h->sum_ns);
	add_count(out, "count", h->count);
	end_object(out);
}

static void add_label_members(struct str *out, const struct metrics_row *row,
			      const struct metrics_sample *s)
{
	for (int i = 0; i < METRICS_LABELS && row->labels[i]; i++) {
		begin_member(out, row->labels[i]);
		str_add_json(out, s->labels[i]);
	}
}

static void add_value(struct str *out, const struct metrics_row *row,
		      const struct metrics_sample *s)
{
	switch (row->type) {
	case METRICS_INFO:
		str_add(out, "{");
		add_label_members(out, row, s);
		end_object(out);
		break;
	case METRICS_HISTOGRAM:
		add_histogram(out, &s->histogram);
		break;
	default:
		metrics_add_number(out, s);
	}
}

/* ---- metrics ---- */

/* `first` is the first label of the previous sample, or NULL. */
struct levels {
	struct str *out;
	const char *first;
};

static void add_sample(void *arg, const struct metrics_row *row, const struct metrics_sample *s)
{
	struct levels *l = arg;
	if (row->type != METRICS_INFO && row->labels[1]) {
		const bool same = l->first && strcmp(l->first, s->labels[0]) == 0;
		if (l->first && !same)
			end_object(l->out);
		if (!same)
			begin_object(l->out, s->labels[0]);
		l->first = s->labels[0];
		begin_member(l->out, s->labels[1]);
	} else if (row->type != METRICS_INFO && row->labels[0]) {
		begin_member(l->out, s->labels[0]);
	}
	add_value(l->out, row, s);
}

static void add_metric(struct str *out, const struct metrics_row *row, const struct metrics *m)
{
	const bool levels = row->type != METRICS_INFO && row->labels[0];
	struct levels l = {.out = out};
	begin_member(out, row->name);
	if (levels)
		str_add(out, "{");
	metrics_samples(row, m, add_sample, &l);
	if (l.first)
		end_object(out);
	if (levels)
		end_object(out);
}

static void add_domain(struct str *out, const struct metrics_domain *d)
{
	begin_object(out, NULL);
	for (size_t i = 0; i < metrics_ndomain_rows; i++) {
		const struct metrics_row *row = &metrics_domain_rows[i];
		const struct metrics_sample s = metrics_domain_sample(row, d);
		if (i == 0)
			add_label_members(out, row, &s);
		begin_member(out, row->name);
		metrics_add_number(out, &s);
	}
	end_object(out);
}

void metrics_json(const struct metrics *m, struct str *out)
{
	const char *section = "";
	str_add(out, "{");
	for (size_t i = 0; i < metrics_nrows; i++) {
		const struct metrics_row *row = &metrics_rows[i];
		if (strcmp(section, row->section) != 0)
			str_addf(out, "%s\"%s\":{", section[0] ? "},\n" : "", row->section);
		section = row->section;
		add_metric(out, row, m);
	}
	str_add(out, "},\n\"domain\":[");
	for (size_t i = 0; i < m->ndomains; i++)
		add_domain(out, &m->domains[i]);
	str_add(out, "]}\n");
}
