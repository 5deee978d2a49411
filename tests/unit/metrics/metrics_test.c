/* SPDX-License-Identifier: Apache-2.0 */
/* Both formats have the same metrics, and doc/METRICS.md describes all of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "metrics/table.h"

/* ---- formats: written from a struct in which every member is set ---- */

enum { GET, PUT = 3, LIST = 2 }; /* indices into the lists of names */

static const struct metrics_http http = {.method = {"GET", "HEAD", "LIST", "PUT", "DELETE"}};
static const struct metrics_store store = {.feature = {"put_if_match"},
					   .support = {"works"},
					   .call = {"get", "head", "list", "put", "delete"},
					   .result = {"ok", "ENOENT"}};

static struct metrics *full(void)
{
	static char first[] = "/a\"b\\c\nd\re\x7f", second[] = "/\xff\xc0\x80 \xe2\x82\xac";
	static struct metrics_domain domains[] = {
		{.path = first, .version = "1", .open = 1, .opens = 2, .reads = 3, .bytes_read = 4},
		{.path = second,
		 .version = "2",
		 .opens = 6,
		 .bytes_read = UINT64_MAX,
		 .bytes_fetched = 7,
		 .hits = 8,
		 .wait_ns = 1500000000,
		 .prefetch = {.wasted = 9}},
	};
	struct metrics *m = calloc(1, sizeof(*m));
	*m = (struct metrics){
		.version = "1.2.3",
		.bucket = "s3://b\\\"\n",
		.uptime_ns = UINT64_C(1500000000),
		.amplification = 1.25,
		.reads = 17,
		.http = http,
		.store = store,
		.cache = {.hits = 11, .in_flight = 12, .queued = 13},
		.domains = domains,
		.ndomains = 2,
	};
	m->http.requests[GET][0] = 1;
	m->http.requests[GET][206] = 40;
	m->http.requests[GET][503] = 2;
	m->http.requests[PUT][599] = 3;
	m->http.seconds[GET] = (struct histogram_counts){
		.buckets = {1, 0, 2, [HISTOGRAM_BOUNDS] = 40}, .count = 43, .sum_ns = 1234567891};
	m->store.results[LIST][1] = 9;
	m->cache.waited = m->http.seconds[GET];
	m->store.seconds[LIST] = m->http.seconds[GET];
	return m;
}

static char *rendered(const struct metrics *m, void (*render)(const struct metrics *, struct str *))
{
	struct str out = {0};
	render(m, &out);
	char *text = str_take(&out);
	assert_non_null(text);
	return text;
}

static json_t *parsed(const struct metrics *m)
{
	json_error_t why;
	auto_free char *text = rendered(m, metrics_json);
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
	if (!j)
		fail_msg("%s at %d in: %s", why.text, why.position, text);
	return j;
}

/* A parsed sample line. */
struct line {
	char name[128];
	unsigned int nlabels;
	char label[3][32], value[3][128];
	double n;
};

static const char *take_name(const char *p, char *out, size_t cap)
{
	size_t n = 0;
	while (isalnum((unsigned char)*p) || *p == '_') {
		assert_true(n + 1 < cap);
		out[n++] = *p++;
	}
	assert_true(n > 0 && !isdigit((unsigned char)out[0]));
	out[n] = '\0';
	return p;
}

static const char *take_value(const char *p, char *out, size_t cap)
{
	size_t n = 0;
	assert_int_equal(*p++, '"');
	for (; *p != '"'; p++) {
		assert_true(n + 1 < cap && *p && *p != '\n');
		if (*p == '\\') {
			p++;
			assert_true(*p == '\\' || *p == '"' || *p == 'n');
			out[n++] = *p == 'n' ? '\n' : *p;
		} else {
			out[n++] = *p;
		}
	}
	out[n] = '\0';
	return p + 1;
}

/* Parses a line strictly; returns a pointer to the text after it. */
static const char *take_line(const char *p, struct line *l)
{
	char *end;
	*l = (struct line){0};
	p = take_name(p, l->name, sizeof(l->name));
	for (char open = '{'; *p == open; open = ',') {
		assert_true(l->nlabels < 3);
		p = take_name(p + 1, l->label[l->nlabels], sizeof(l->label[0]));
		assert_int_equal(*p, '=');
		p = take_value(p + 1, l->value[l->nlabels++], sizeof(l->value[0]));
	}
	if (l->nlabels)
		assert_int_equal(*p++, '}');
	assert_int_equal(*p++, ' ');
	l->n = strtod(p, &end);
	assert_true(end > p && *end == '\n');
	return end + 1;
}

/* The value in JSON that corresponds to this line; NULL: there is none. */
static json_t *counterpart(json_t *j, const struct metrics_row *row, const char *suffix,
			   const struct line *l)
{
	json_t *at = json_object_get(json_object_get(j, row->section), row->name);
	for (unsigned int i = 0; i < l->nlabels && strcmp(l->label[i], "le") != 0; i++)
		at = json_object_get(at, l->value[i]);
	if (strcmp(suffix, "_bucket") == 0)
		return json_object_get(json_object_get(at, "buckets"), l->value[l->nlabels - 1]);
	return suffix[0] ? json_object_get(at, suffix + 1) : at;
}

static size_t count_leaves(json_t *j)
{
	const char *key;
	json_t *v;
	size_t n = 0;
	if (!json_is_object(j))
		return 1;
	json_object_foreach(j, key, v) n += count_leaves(v);
	return n;
}

/* Parses the samples of one metric; returns a pointer to the text after them. */
static const char *compare(const char *p, json_t *j, const struct metrics_row *row, size_t *n)
{
	char name[128];
	const int len = snprintf(name, sizeof(name), "hsmount_%s_%s%s", row->section, row->name,
				 row->type == METRICS_COUNTER ? "_total" : "");
	double last = 0;
	while (*p && *p != '#') {
		struct line l;
		p = take_line(p, &l);
		assert_int_equal(strncmp(l.name, name, (size_t)len), 0);
		const char *suffix = l.name + len;
		if (row->type != METRICS_HISTOGRAM)
			assert_string_equal(suffix, "");
		if (strcmp(suffix, "_bucket") == 0) {
			if (strcmp(l.value[l.nlabels - 1], "0.0001") == 0)
				last = 0;
			assert_true(l.n >= last); /* cumulative */
			last = l.n;
		} else if (strcmp(suffix, "_count") == 0) {
			assert_true(l.n == last);
		}
		*n += 1;
		if (row->type == METRICS_INFO)
			continue;
		json_t *v = counterpart(j, row, suffix, &l);
		if (!json_is_number(v) || json_number_value(v) != l.n)
			fail_msg("%s of %s%s %g is not what JSON has", suffix, name,
				 l.nlabels ? l.value[0] : "", l.n);
	}
	return p;
}

static const char *expect_head(const char *p, const struct metrics_row *row)
{
	static const char *const types[] = {"counter", "gauge", "gauge", "histogram"};
	char head[512];
	const char *total = row->type == METRICS_COUNTER ? "_total" : "";
	const int n = snprintf(head, sizeof(head),
			       "# HELP hsmount_%s_%s%s %s\n# TYPE hsmount_%s_%s%s %s\n",
			       row->section, row->name, total, row->help, row->section, row->name,
			       total, types[row->type]);
	if (strncmp(p, head, (size_t)n) != 0)
		fail_msg("%.80s… instead of %s", p, head);
	assert_null(strpbrk(row->help, "\\\n"));
	return p + n;
}

/* Every sample of one format is in the other, with the same number. */
static void both_forms_say_the_same(void **state)
{
	struct metrics *m = full();
	auto_free char *text = rendered(m, metrics_prometheus);
	json_t *j = parsed(m);
	const char *p = text;
	size_t n = 0;
	for (size_t i = 0; i < metrics_nrows; i++)
		p = compare(expect_head(p, &metrics_rows[i]), j, &metrics_rows[i], &n);
	/* version and bucket are two members in JSON and one line here. */
	json_t *domains = json_incref(json_object_get(j, "domain"));
	json_object_del(j, "domain");
	assert_int_equal(count_leaves(j), n + 1);
	for (size_t i = 0; i < metrics_ndomain_rows; i++) {
		const struct metrics_row *row = &metrics_domain_rows[i];
		p = expect_head(p, row);
		for (size_t k = 0; k < m->ndomains; k++) {
			struct line l;
			json_t *d = json_array_get(domains, k);
			p = take_line(p, &l);
			assert_int_equal(l.nlabels, 2);
			assert_string_equal(l.label[0], "domain");
			assert_string_equal(l.value[1],
					    json_string_value(json_object_get(d, "version")));
			assert_true(json_number_value(json_object_get(d, row->name)) == l.n);
		}
	}
	assert_int_equal(*p, '\0');
	assert_int_equal(json_object_size(json_array_get(domains, 0)), 2 + metrics_ndomain_rows);
	json_decref(domains);
	json_decref(j);
	free(m);
}

#define REPLACED "\xef\xbf\xbd"

static void names_cannot_break_the_text(void **state)
{
	struct metrics *m = full();
	auto_free char *text = rendered(m, metrics_prometheus);
	json_t *j = parsed(m), *domains = json_object_get(j, "domain");
	assert_non_null(strstr(text, "{domain=\"/a\\\"b\\\\c\\nd" REPLACED "e" REPLACED
				     "\",version=\"1\"} 1\n"));
	assert_non_null(strstr(text, "{domain=\"/" REPLACED REPLACED REPLACED " \xe2\x82\xac\""));
	assert_non_null(strstr(text, "bucket=\"s3://b\\\\\\\"\\n\"} 1\n"));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(domains, 0), "domain")),
		m->domains[0].path);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(domains, 1), "domain")),
		"/" REPLACED REPLACED REPLACED " \xe2\x82\xac");
	json_decref(j);
	free(m);
}

static void numbers_are_exact(void **state)
{
	struct metrics *m = full();
	auto_free char *text = rendered(m, metrics_prometheus), *json = rendered(m, metrics_json);
	static const char *const lines[] = {
		"hsmount_mount_uptime_seconds 1.500000000\n",
		"hsmount_read_amplification_ratio 1.250000\n",
		"hsmount_http_requests_total{method=\"GET\",status=\"none\"} 1\n",
		"hsmount_http_requests_total{method=\"GET\",status=\"206\"} 40\n",
		"hsmount_http_requests_total{method=\"PUT\",status=\"599\"} 3\n",
		"hsmount_http_request_seconds_bucket{method=\"GET\",le=\"0.0002\"} 1\n",
		"hsmount_http_request_seconds_bucket{method=\"GET\",le=\"0.0005\"} 3\n",
		"hsmount_http_request_seconds_bucket{method=\"GET\",le=\"50\"} 3\n",
		"hsmount_http_request_seconds_bucket{method=\"GET\",le=\"+Inf\"} 43\n",
		"hsmount_http_request_seconds_sum{method=\"GET\"} 1.234567891\n",
		"hsmount_store_calls_total{call=\"list\",result=\"ENOENT\"} 9\n",
		"hsmount_store_features{feature=\"put_if_match\",support=\"works\"} 1\n",
		"} 18446744073709551615\n",
		"hsmount_cache_wait_seconds_bucket{le=\"0.0005\"} 3\n",
		"hsmount_cache_wait_seconds_count 43\n",
		"version=\"2\"} 1.500000000\n",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text, lines[i]))
			fail_msg("%s is not in %s", lines[i], text);
	assert_non_null(strstr(json, "\"requests\":{\"GET\":{\"none\":1,\"206\":40,\"503\":2},"
				     "\"PUT\":{\"599\":3}}"));
	assert_non_null(strstr(json, "\"features\":{\"put_if_match\":{\"works\":1}}"));
	assert_non_null(strstr(json, "\"read_bytes\":18446744073709551615"));
	free(m);
}

/* ---- the document ---- */

static bool is_documented(const char *doc, const struct metrics_row *row)
{
	char line[256];
	snprintf(line, sizeof(line), "\n| `hsmount_%s_%s%s` | `%s.%s` |", row->section, row->name,
		 row->type == METRICS_COUNTER ? "_total" : "", row->section, row->name);
	return strstr(doc, line);
}

/* doc/METRICS.md has a row for each metric, and no other rows. */
static void every_metric_is_documented(void **state)
{
	static char doc[1 << 16];
	const char *root = getenv("HSMOUNT_SOURCE");
	char path[1024];
	size_t rows = 0;
	assert_non_null(root);
	snprintf(path, sizeof(path), "%s/doc/METRICS.md", root);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	const size_t n = fread(doc, 1, sizeof(doc) - 1, f);
	fclose(f);
	assert_in_range(n, 1, sizeof(doc) - 2);
	for (size_t i = 0; i < metrics_nrows; i++)
		if (!is_documented(doc, &metrics_rows[i]))
			fail_msg("%s.%s", metrics_rows[i].section, metrics_rows[i].name);
	for (size_t i = 0; i < metrics_ndomain_rows; i++)
		if (!is_documented(doc, &metrics_domain_rows[i]))
			fail_msg("domain.%s", metrics_domain_rows[i].name);
	for (const char *p = doc; (p = strstr(p, "\n| `hsmount_")); p++)
		rows++;
	assert_int_equal(rows, metrics_nrows + metrics_ndomain_rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_say_the_same),
		cmocka_unit_test(names_cannot_break_the_text),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(every_metric_is_documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
