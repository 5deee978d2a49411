/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's report: its numbers, and that it costs no requests. */
#include "bucket.h"

#include <pthread.h>

#include <jansson.h>

#include <base/mem.h>

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
		fail_msg("%s.%s is not a whole number", section, name);
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

static void reads_and_requests_are_counted(void **state)
{
	struct test_bucket *b = *state;
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
	/* The domain with the most reads comes first. */
	assert_int_equal(json_array_size(json_object_get(j, "domain")), 2);
	assert_int_equal(of_domain(j, 0, "reads"), 3);
	assert_int_equal(of_domain(j, 0, "read_bytes"), 150);
	assert_int_equal(of_domain(j, 0, "opens"), 1);
	assert_int_equal(of_domain(j, 0, "open"), 0);
	assert_int_equal(of_domain(j, 1, "reads"), 1);
	json_decref(j);
}

static void open_files_are_counted(void **state)
{
	struct test_bucket *b = *state;
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

/* A report sends no request, and it does not keep an image from being dropped. */
static void a_report_costs_nothing(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "home/a.h5");
	struct engine *e = bucket_open(b, 10, 0);
	read_domain(e, "home/a.h5", 1, 10);
	const struct bucket_counts before = bucket_counts(b);
	for (int i = 0; i < 10; i++)
		json_decref(json_of(e));
	const struct bucket_counts after = bucket_counts(b);
	assert_memory_equal(&before, &after, sizeof(before));
	/* The domain changes: the next open drops the old image. */
	bucket_put_root(b, 1, 3);
	read_domain(e, "home/a.h5", 1, 10);
	json_t *j = json_of(e);
	assert_int_equal(json_array_size(json_object_get(j, "domain")), 1);
	assert_int_equal(number(j, "domains", "images"), 1);
	json_decref(j);
}

/* If more than 1,000 domains are open, those with the fewest reads are left out. */
static void a_report_has_a_limit_of_domains(void **state)
{
	enum { DOMAINS = 1002, SHOWN = 1000 };
	struct test_bucket *b = *state;
	static struct engine_file *files[DOMAINS];
	char path[64], byte;
	for (unsigned int i = 0; i < DOMAINS; i++) {
		snprintf(path, sizeof(path), "%u.h5", i);
		bucket_domain(b, 1, path);
	}
	struct engine *e = bucket_open(b, 1000, 0);
	for (unsigned int i = 0; i < DOMAINS; i++) {
		snprintf(path, sizeof(path), "%u.h5", i);
		assert_int_equal(engine_file_open(e, path, &files[i], NULL), 0);
		if (i != 7 && i != 500)
			assert_int_equal(engine_pread(files[i], &byte, 1, 0, NULL, NULL), 1);
	}
	json_t *j = json_of(e);
	assert_int_equal(number(j, "domains", "images"), DOMAINS);
	assert_int_equal(json_array_size(json_object_get(j, "domain")), SHOWN);
	for (size_t i = 0; i < SHOWN; i++)
		assert_int_equal(of_domain(j, i, "reads"), 1);
	json_decref(j);
	for (unsigned int i = 0; i < DOMAINS; i++)
		engine_file_close(files[i]);
}

/* ---- at the same time as opens ---- */

enum { ROUNDS = 50 };

static void *open_and_close(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct engine_file *f = NULL;
		char buf[64];
		if (engine_file_open(arg, "home/a.h5", &f, NULL))
			continue; /* a document was being written */
		engine_pread(f, buf, sizeof(buf), 0, NULL, NULL);
		engine_file_close(f);
	}
	return NULL;
}

/* Images are made, replaced and dropped while reports use them. */
static void reports_run_beside_opens(void **state)
{
	struct test_bucket *b = *state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_and_requests_are_counted, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(open_files_are_counted, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_report_costs_nothing, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(a_report_has_a_limit_of_domains, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(reports_run_beside_opens, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
