/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine says of itself: the numbers, and what asking for them costs. */
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
