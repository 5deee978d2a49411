/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine says of itself: the numbers, both forms of them, and that the forms agree. */
#include "bucket.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>

#include <jansson.h>

#include "report.h"

static char *text_of(struct engine *e, enum engine_report kind)
{
	struct err err = ERR_INIT;
	char *text = NULL;
	size_t n = 0;
	if (engine_report(e, kind, &text, &n, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(strlen(text), n);
	return text;
}

static json_t *json_of(struct engine *e)
{
	json_error_t why;
	auto_free char *text = text_of(e, ENGINE_REPORT_JSON);
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		fail_msg("%s at %d in: %s", why.text, why.position, text);
	return j;
}

/* ---- numbers ---- */

static json_int_t number(json_t *j, const char *section, const char *name)
{
	json_t *v = json_object_get(json_object_get(j, section), name);
	if (!json_is_integer(v))
		fail_msg("%s.%s is no whole number", section, name);
	return json_integer_value(v);
}

static json_int_t of_domain(json_t *j, size_t i, const char *name)
{
	json_t *v = json_object_get(json_array_get(json_object_get(j, "domain"), i), name);
	if (!json_is_integer(v))
		fail_msg("domain %zu has no %s", i, name);
	return json_integer_value(v);
}

static void read_domain(struct engine *e, const char *path, unsigned int times, size_t n)
{
	struct engine_file *f = NULL;
	char buf[256];
	assert_int_equal(engine_file_open(e, path, &f, NULL), 0);
	for (unsigned int i = 0; i < times; i++)
		assert_int_equal(engine_pread(f, buf, n, 0, NULL, NULL), n);
	engine_file_close(f);
}

static void what_happened_is_counted(void **state)
{
	struct bucket *b = *state;
	struct engine_counts counts;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/once.h5");
	bucket_domain(b, 2, "home/often.h5");
	struct engine *e = bucket_open(b, 10, 0);
	json_t *before = json_of(e);
	assert_int_equal(number(before, "read", "calls"), 0);
	assert_int_equal(json_array_size(json_object_get(before, "domain")), 0);
	json_decref(before);

	read_domain(e, "home/once.h5", 1, 100);
	read_domain(e, "home/often.h5", 3, 50);
	engine_get_counts(e, &counts);
	json_t *j = json_of(e);
	assert_int_equal(number(j, "read", "calls"), 4);
	assert_int_equal(number(j, "read", "bytes"), 250);
	assert_int_equal(number(j, "store", "read_bytes"), counts.bytes_in);
	assert_int_equal(number(j, "read", "fetched_bytes"), counts.bytes_in);
	assert_int_equal(number(j, "domains", "images"), 2);
	assert_int_equal(number(j, "cache", "budget_bytes"), 256 << 20);
	/* The most read one first. */
	assert_int_equal(json_array_size(json_object_get(j, "domain")), 2);
	assert_int_equal(of_domain(j, 0, "reads"), 3);
	assert_int_equal(of_domain(j, 0, "read_bytes"), 150);
	assert_int_equal(of_domain(j, 0, "opens"), 1);
	assert_int_equal(of_domain(j, 0, "open"), 0);
	assert_int_equal(of_domain(j, 1, "reads"), 1);
	json_decref(j);
}

static void what_is_open_is_told(void **state)
{
	struct bucket *b = *state;
	struct engine_file *f = NULL, *again = NULL;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	struct engine *e = bucket_open(b, 10, 0);
	assert_int_equal(engine_file_open(e, "home/a.h5", &f, NULL), 0);
	assert_int_equal(engine_file_open(e, "home/a.h5", &again, NULL), 0);
	json_t *j = json_of(e);
	assert_int_equal(of_domain(j, 0, "open"), 2);
	assert_int_equal(of_domain(j, 0, "opens"), 2);
	json_decref(j);
	engine_file_close(f);
	engine_file_close(again);
}

/* To ask what was asked asks nothing, and a report does not keep an image from being dropped. */
static void a_report_costs_nothing(void **state)
{
	struct bucket *b = *state;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	struct engine *e = bucket_open(b, 10, 0);
	read_domain(e, "home/a.h5", 1, 10);
	const struct bucket_counts before = bucket_counts(b);
	for (int i = 0; i < 10; i++)
		json_decref(json_of(e));
	const struct bucket_counts after = bucket_counts(b);
	assert_memory_equal(&before, &after, sizeof(before));
	/* The domain changes: the old image goes at the next open. */
	bucket_put_root(b, 1, 3);
	read_domain(e, "home/a.h5", 1, 10);
	json_t *j = json_of(e);
	assert_int_equal(json_array_size(json_object_get(j, "domain")), 1);
	assert_int_equal(number(j, "domains", "images"), 1);
	json_decref(j);
}

/* ---- beside everything else ---- */

enum { ROUNDS = 50 };

static void *open_and_close(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct engine_file *f = NULL;
		char buf[64];
		if (engine_file_open(arg, "home/a.h5", &f, NULL))
			continue; /* it was being written */
		engine_pread(f, buf, sizeof(buf), 0, NULL, NULL);
		engine_file_close(f);
	}
	return NULL;
}

/* Images come, are replaced and go while reports look at them. */
static void reports_disturb_nobody(void **state)
{
	struct bucket *b = *state;
	pthread_t readers[3];
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	struct engine *e = bucket_open(b, 0, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, open_and_close, e), 0);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		bucket_put_root(b, 1, i % 9);
		json_decref(json_of(e));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	json_t *j = json_of(e);
	assert_in_range(number(j, "read", "calls"), 1, 3 * ROUNDS);
	assert_in_range(number(j, "domains", "images"), 0, 1);
	json_decref(j);
}

/* ---- forms: rendered from a struct that says everything ---- */

static struct report *full(void)
{
	static char first[] = "/a\"b\\c\nd\re\x7f", second[] = "/\xff\xc0\x80 \xe2\x82\xac";
	static struct report_domain domains[] = {
		{.path = first, .version = "1", .open = 1, .opens = 2, .reads = 3, .bytes_read = 4},
		{.path = second,
		 .version = "2",
		 .opens = 6,
		 .bytes_read = UINT64_MAX,
		 .bytes_fetched = 7,
		 .chunks = {.hits = 8, .wait_ns = 1500000000, .prefetch_wasted = 9}},
	};
	struct report *r = calloc(1, sizeof(*r));
	r->version = "1.2.3";
	r->bucket = "s3://b\\\"\n";
	r->uptime_ns = UINT64_C(1500000000);
	r->amplification = 1.25;
	r->reads = 17;
	r->wire.requests[HTTP_GET][0] = 1;
	r->wire.requests[HTTP_GET][206] = 40;
	r->wire.requests[HTTP_GET][503] = 2;
	r->wire.requests[HTTP_PUT][599] = 3;
	r->wire.seconds[HTTP_GET] = (struct histogram_counts){
		.buckets = {1, 0, 2, [HISTOGRAM_BOUNDS] = 40}, .count = 43, .sum_ns = 1234567891};
	r->store.results[STORE_LIST][1] = 9;
	r->cache = (struct cache_stats){.hits = 11, .in_flight = 12, .queued = 13};
	r->cache.waited = r->wire.seconds[HTTP_GET];
	r->store.seconds[STORE_LIST] = r->wire.seconds[HTTP_GET];
	r->domains = domains;
	r->ndomains = 2;
	return r;
}

static char *rendered(const struct report *r, int (*render)(const struct report *, struct bytes *))
{
	struct bytes out = {0};
	assert_int_equal(render(r, &out), 0);
	assert_int_equal(bytes_append_zero(&out, 1), 0);
	return (char *)out.data;
}

static json_t *parsed(const struct report *r)
{
	json_error_t why;
	auto_free char *text = rendered(r, report_json);
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
	if (!j)
		fail_msg("%s at %d in: %s", why.text, why.position, text);
	return j;
}

/* One line of samples, taken apart. */
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

/* As strictly as the format is written: returns what follows the line. */
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

/* What JSON has where Prometheus has this line; NULL when there is nothing. */
static json_t *counterpart(json_t *j, const struct report_metric *m, const char *suffix,
			   const struct line *l)
{
	json_t *at = json_object_get(json_object_get(j, m->section), m->name);
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

/* The samples of one metric; returns what follows them. */
static const char *compare(const char *p, json_t *j, const struct report_metric *m, size_t *n)
{
	char name[128];
	const int len = snprintf(name, sizeof(name), "hsmount_%s_%s%s", m->section, m->name,
				 m->type == REPORT_COUNTER ? "_total" : "");
	double last = 0;
	while (*p && *p != '#') {
		struct line l;
		p = take_line(p, &l);
		assert_int_equal(strncmp(l.name, name, (size_t)len), 0);
		const char *suffix = l.name + len;
		if (m->type != REPORT_HISTOGRAM)
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
		if (m->type == REPORT_INFO)
			continue;
		json_t *v = counterpart(j, m, suffix, &l);
		if (!json_is_number(v) || json_number_value(v) != l.n)
			fail_msg("%s of %s%s %g is not what JSON has", suffix, name,
				 l.nlabels ? l.value[0] : "", l.n);
	}
	return p;
}

static const char *expect_head(const char *p, const struct report_metric *m)
{
	static const char *const types[] = {"counter", "gauge", "gauge", "histogram"};
	char head[512];
	const char *total = m->type == REPORT_COUNTER ? "_total" : "";
	const int n = snprintf(head, sizeof(head),
			       "# HELP hsmount_%s_%s%s %s\n# TYPE hsmount_%s_%s%s %s\n", m->section,
			       m->name, total, m->help, m->section, m->name, total, types[m->type]);
	if (strncmp(p, head, (size_t)n) != 0)
		fail_msg("%.80s… instead of %s", p, head);
	assert_null(strpbrk(m->help, "\\\n"));
	return p + n;
}

/* Every sample of one form is in the other, with the same number. */
static void both_forms_say_the_same(void **state)
{
	struct report *r = full();
	auto_free char *text = rendered(r, report_prometheus);
	json_t *j = parsed(r);
	const char *p = text;
	size_t n = 0;
	for (size_t i = 0; i < report_nmetrics; i++)
		p = compare(expect_head(p, &report_metrics[i]), j, &report_metrics[i], &n);
	/* version and bucket are two leaves and one line. */
	json_t *domains = json_incref(json_object_get(j, "domain"));
	json_object_del(j, "domain");
	assert_int_equal(count_leaves(j), n + 1);
	for (size_t i = 0; i < report_ndomain_metrics; i++) {
		const struct report_metric *m = &report_domain_metrics[i];
		p = expect_head(p, m);
		for (size_t k = 0; k < r->ndomains; k++) {
			struct line l;
			json_t *d = json_array_get(domains, k);
			p = take_line(p, &l);
			assert_int_equal(l.nlabels, 2);
			assert_string_equal(l.label[0], "domain");
			assert_string_equal(l.value[1],
					    json_string_value(json_object_get(d, "version")));
			assert_true(json_number_value(json_object_get(d, m->name)) == l.n);
		}
	}
	assert_int_equal(*p, '\0');
	assert_int_equal(json_object_size(json_array_get(domains, 0)), 2 + report_ndomain_metrics);
	json_decref(domains);
	json_decref(j);
	free(r);
}

#define REPLACED "\xef\xbf\xbd"

static void names_cannot_break_the_text(void **state)
{
	struct report *r = full();
	auto_free char *text = rendered(r, report_prometheus);
	json_t *j = parsed(r), *domains = json_object_get(j, "domain");
	assert_non_null(strstr(text, "{domain=\"/a\\\"b\\\\c\\nd" REPLACED "e" REPLACED
				     "\",version=\"1\"} 1\n"));
	assert_non_null(strstr(text, "{domain=\"/" REPLACED REPLACED REPLACED " \xe2\x82\xac\""));
	assert_non_null(strstr(text, "bucket=\"s3://b\\\\\\\"\\n\"} 1\n"));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(domains, 0), "domain")),
		r->domains[0].path);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(domains, 1), "domain")),
		"/" REPLACED REPLACED REPLACED " \xe2\x82\xac");
	json_decref(j);
	free(r);
}

static void numbers_are_exact(void **state)
{
	struct report *r = full();
	auto_free char *text = rendered(r, report_prometheus), *json = rendered(r, report_json);
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
	assert_non_null(strstr(json, "\"read_bytes\":18446744073709551615"));
	free(r);
}

/* ---- the document ---- */

static bool is_documented(const char *doc, const struct report_metric *m)
{
	char row[256];
	snprintf(row, sizeof(row), "\n| `hsmount_%s_%s%s` | `%s.%s` |", m->section, m->name,
		 m->type == REPORT_COUNTER ? "_total" : "", m->section, m->name);
	return strstr(doc, row);
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
	for (size_t i = 0; i < report_nmetrics; i++)
		if (!is_documented(doc, &report_metrics[i]))
			fail_msg("%s.%s", report_metrics[i].section, report_metrics[i].name);
	for (size_t i = 0; i < report_ndomain_metrics; i++)
		if (!is_documented(doc, &report_domain_metrics[i]))
			fail_msg("domain.%s", report_domain_metrics[i].name);
	for (const char *p = doc; (p = strstr(p, "\n| `hsmount_")); p++)
		rows++;
	assert_int_equal(rows, report_nmetrics + report_ndomain_metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_happened_is_counted, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(what_is_open_is_told, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_report_costs_nothing, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(reports_disturb_nobody, bucket_setup,
						bucket_teardown),
		cmocka_unit_test(both_forms_say_the_same),
		cmocka_unit_test(names_cannot_break_the_text),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(every_metric_is_documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
