/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report in Prometheus' text exposition format, version 0.0.4: HELP and TYPE of each metric,
 * then its samples. Pure, any thread.
 */
#include "report.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

/* A label's value: "\", the quote and the end of line are escaped; other control bytes, which
 * readers take differently, are replaced. */
static int add_escaped(struct bytes *out, const char *s)
{
	int rc = 0;
	for (size_t left = strlen(s), n = 0; !rc && left; s += n, left -= n) {
		const unsigned char c = (unsigned char)*s;
		n = 1;
		if (c == '\\' || c == '"')
			rc = text_add(out, "\\%c", c);
		else if (c == '\n')
			rc = text_add(out, "\\n");
		else if (c < 0x20 || c == 0x7f)
			text_character(out, "\xff", 1, &rc);
		else
			n = text_character(out, s, left, &rc);
	}
	return rc;
}

static int add_name(struct bytes *out, const struct report_metric *m, const char *suffix)
{
	return text_add(out, "hsmount_%s_%s%s%s", m->section, m->name,
			m->type == REPORT_COUNTER ? "_total" : "", suffix);
}

static int add_label(struct bytes *out, const char *name, const char *value, bool first)
{
	int rc = text_add(out, "%s%s=\"", first ? "{" : ",", name);
	if (!rc)
		rc = add_escaped(out, value);
	return rc ? rc : text_add(out, "\"");
}

/* {a="x",b="y",le="0.1"}; le may be NULL. Nothing without labels. */
static int add_labels(struct bytes *out, const struct report_metric *m,
		      const struct report_sample *s, const char *le)
{
	int rc = 0, n = 0;
	for (; !rc && n < REPORT_LABELS && m->labels[n]; n++)
		rc = add_label(out, m->labels[n], s->labels[n], n == 0);
	if (!rc && le)
		rc = add_label(out, "le", le, n++ == 0);
	return rc || n == 0 ? rc : text_add(out, "}");
}

/* One line; without a value, which the caller adds. */
static int begin_line(struct bytes *out, const struct report_metric *m,
		      const struct report_sample *s, const char *suffix, const char *le)
{
	int rc = add_name(out, m, suffix);
	if (!rc)
		rc = add_labels(out, m, s, le);
	return rc ? rc : text_add(out, " ");
}

static int add_histogram(struct bytes *out, const struct report_metric *m,
			 const struct report_sample *s)
{
	const struct histogram_counts *h = &s->histogram;
	uint64_t sum = 0;
	int rc = 0;
	for (unsigned int i = 0; !rc && i < HISTOGRAM_BUCKETS; i++) {
		char bound[REPORT_BOUND_MAX];
		sum += h->buckets[i];
		rc = begin_line(out, m, s, "_bucket", report_bound(i, bound));
		if (!rc)
			rc = text_add(out, "%" PRIu64 "\n", sum);
	}
	if (!rc)
		rc = begin_line(out, m, s, "_sum", NULL);
	if (!rc)
		rc = text_seconds(out, h->sum_ns);
	if (!rc)
		rc = text_add(out, "\n");
	if (!rc)
		rc = begin_line(out, m, s, "_count", NULL);
	return rc ? rc : text_add(out, "%" PRIu64 "\n", h->count);
}

static int add_sample(void *arg, const struct report_metric *m, const struct report_sample *s)
{
	struct bytes *out = arg;
	if (m->type == REPORT_HISTOGRAM)
		return add_histogram(out, m, s);
	int rc = begin_line(out, m, s, "", NULL);
	if (rc)
		return rc;
	switch (s->form) {
	case REPORT_SECONDS:
		rc = text_seconds(out, s->n);
		break;
	case REPORT_REAL:
		rc = text_fixed(out, s->real);
		break;
	default:
		rc = text_add(out, "%" PRIu64, s->n);
	}
	return rc ? rc : text_add(out, "\n");
}

static int begin_metric(struct bytes *out, const struct report_metric *m)
{
	static const char *const types[] = {
		[REPORT_COUNTER] = "counter",
		[REPORT_GAUGE] = "gauge",
		[REPORT_INFO] = "gauge",
		[REPORT_HISTOGRAM] = "histogram",
	};
	int rc = text_add(out, "# HELP ");
	if (!rc)
		rc = add_name(out, m, "");
	if (!rc)
		rc = text_add(out, " %s\n# TYPE ", m->help);
	if (!rc)
		rc = add_name(out, m, "");
	return rc ? rc : text_add(out, " %s\n", types[m->type]);
}

int report_prometheus(const struct report *r, struct bytes *out)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < report_nmetrics; i++) {
		rc = begin_metric(out, &report_metrics[i]);
		if (!rc)
			rc = report_samples(&report_metrics[i], r, add_sample, out);
	}
	for (size_t i = 0; !rc && i < report_ndomain_metrics; i++) {
		const struct report_metric *m = &report_domain_metrics[i];
		rc = begin_metric(out, m);
		for (size_t k = 0; !rc && k < r->ndomains; k++) {
			const struct report_sample s = report_domain_sample(m, &r->domains[k]);
			rc = add_sample(out, m, &s);
		}
	}
	return rc;
}
