/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as one JSON object: a member for each section, in it one for each metric, in those
 * with labels one for each value of the first label, then of the second. Domains are an array of
 * objects, which carry their labels as members. Pure, any thread.
 */
#include "report.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

/* ---- punctuation ---- */

/* What stands before a value decides whether a comma is due: nothing but the text is state. */
static int begin_member(struct bytes *out, const char *key)
{
	const char last = out->len ? (char)out->data[out->len - 1] : '{';
	int rc = last == '{' || last == '[' ? 0 : text_add(out, ",");
	if (!rc && key)
		rc = text_json_string(out, key);
	return rc || !key ? rc : text_add(out, ":");
}

static int begin_object(struct bytes *out, const char *key)
{
	int rc = begin_member(out, key);
	return rc ? rc : text_add(out, "{");
}

static int end_object(struct bytes *out)
{
	return text_add(out, "}");
}

/* ---- values ---- */

static int add_number(struct bytes *out, const struct report_sample *s)
{
	switch (s->form) {
	case REPORT_SECONDS:
		return text_seconds(out, s->n);
	case REPORT_REAL:
		return text_fixed(out, s->real);
	default:
		return text_add(out, "%" PRIu64, s->n);
	}
}

static int add_count(struct bytes *out, const char *key, uint64_t n)
{
	int rc = begin_member(out, key);
	return rc ? rc : text_add(out, "%" PRIu64, n);
}

/* {"buckets": {"0.0001": 0, …, "+Inf": 7}, "sum": 0.5, "count": 7}: cumulative, as Prometheus has
 * them. */
static int add_histogram(struct bytes *out, const struct histogram_counts *h)
{
	uint64_t sum = 0;
	int rc = text_add(out, "{\"buckets\":{");
	for (unsigned int i = 0; !rc && i < HISTOGRAM_BUCKETS; i++) {
		char bound[REPORT_BOUND_MAX];
		sum += h->buckets[i];
		rc = add_count(out, report_bound(i, bound), sum);
	}
	if (!rc)
		rc = text_add(out, "},\"sum\":");
	if (!rc)
		rc = text_seconds(out, h->sum_ns);
	if (!rc)
		rc = add_count(out, "count", h->count);
	return rc ? rc : end_object(out);
}

/* Labels as members. */
static int add_label_members(struct bytes *out, const struct report_metric *m,
			     const struct report_sample *s)
{
	int rc = 0;
	for (int i = 0; !rc && i < REPORT_LABELS && m->labels[i]; i++) {
		rc = begin_member(out, m->labels[i]);
		if (!rc)
			rc = text_json_string(out, s->labels[i]);
	}
	return rc;
}

static int add_info(struct bytes *out, const struct report_metric *m, const struct report_sample *s)
{
	int rc = text_add(out, "{");
	if (!rc)
		rc = add_label_members(out, m, s);
	return rc ? rc : end_object(out);
}

static int add_value(struct bytes *out, const struct report_metric *m,
		     const struct report_sample *s)
{
	switch (m->type) {
	case REPORT_INFO:
		return add_info(out, m, s);
	case REPORT_HISTOGRAM:
		return add_histogram(out, &s->histogram);
	default:
		return add_number(out, s);
	}
}

/* ---- metrics ---- */

/* The levels of a metric's labels. first: of the sample before, NULL when there was none. */
struct levels {
	struct bytes *out;
	const char *first;
};

static int add_sample(void *arg, const struct report_metric *m, const struct report_sample *s)
{
	struct levels *l = arg;
	int rc = 0;
	if (m->type == REPORT_INFO || !m->labels[0])
		return add_value(l->out, m, s);
	if (!m->labels[1]) {
		rc = begin_member(l->out, s->labels[0]);
		return rc ? rc : add_value(l->out, m, s);
	}
	const bool same = l->first && strcmp(l->first, s->labels[0]) == 0;
	if (l->first && !same)
		rc = end_object(l->out);
	if (!rc && !same)
		rc = begin_object(l->out, s->labels[0]);
	l->first = s->labels[0];
	if (!rc)
		rc = begin_member(l->out, s->labels[1]);
	return rc ? rc : add_value(l->out, m, s);
}

static int add_metric(struct bytes *out, const struct report_metric *m, const struct report *r)
{
	const bool levels = m->type != REPORT_INFO && m->labels[0];
	struct levels l = {.out = out};
	int rc = levels ? begin_object(out, m->name) : begin_member(out, m->name);
	if (!rc)
		rc = report_samples(m, r, add_sample, &l);
	if (!rc && l.first)
		rc = end_object(out);
	return rc || !levels ? rc : end_object(out);
}

static int add_domain(struct bytes *out, const struct report_domain *d)
{
	int rc = begin_object(out, NULL);
	for (size_t i = 0; !rc && i < report_ndomain_metrics; i++) {
		const struct report_metric *m = &report_domain_metrics[i];
		const struct report_sample s = report_domain_sample(m, d);
		if (i == 0)
			rc = add_label_members(out, m, &s);
		if (!rc)
			rc = begin_member(out, m->name);
		if (!rc)
			rc = add_number(out, &s);
	}
	return rc ? rc : end_object(out);
}

int report_json(const struct report *r, struct bytes *out)
{
	const char *section = "";
	int rc = text_add(out, "{");
	for (size_t i = 0; !rc && i < report_nmetrics; i++) {
		const struct report_metric *m = &report_metrics[i];
		if (strcmp(section, m->section) != 0) {
			if (section[0])
				rc = text_add(out, "},\n");
			if (!rc)
				rc = text_add(out, "\"%s\":{", m->section);
			section = m->section;
		}
		if (!rc)
			rc = add_metric(out, m, r);
	}
	if (!rc)
		rc = text_add(out, "},\n\"domain\":[");
	for (size_t i = 0; !rc && i < r->ndomains; i++)
		rc = add_domain(out, &r->domains[i]);
	return rc ? rc : text_add(out, "]}\n");
}
