/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the root of a bucket that has many objects of a schema in it, and counts the requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <names/names.h>
#include <store/store.h>

#include "mem_store.h"
#include "store_calls.h"

/* A schema whose objects are in the root: "<5 digits>-…". */
static bool is_hashed(const char *key)
{
	return strlen(key) > 5 && key[5] == '-' && strspn(key, "0123456789abcdef") == 5;
}

static bool no_document(const char *key)
{
	return strstr(key, ".domain.json");
}

static int no_classify(const char *path, const struct schema_listing *listing, unsigned int *step,
		       const struct schema_answer *answer, struct schema_request *ask,
		       struct schema_document **out, struct err *err)
{
	return 0;
}

static const struct schema_ops hashed = {
	.suffix = ".h5",
	.name = "hashed",
	.is_document = no_document,
	.is_storage = is_hashed,
	.classify = no_classify,
};
static const struct schema_ops *const schemas[] = {&hashed, NULL};

struct fixture {
	struct env env;
	struct store *store; /* counts */
	struct names *names;
	char found[64][32];
	size_t n;
};

static void put(struct fixture *f, const char *key)
{
	assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
}

static void setup(struct fixture *f, unsigned int objects, const char *const *roots)
{
	*f = (struct fixture){.env = env_real(NULL, pool_new(0))};
	f->store = store_count_new(store_mem_new(&f->env, NULL), NULL);
	for (unsigned int i = 0; i < objects; i++) {
		char key[64];
		snprintf(key, sizeof(key), "%05x-g-%u",
			 (unsigned int)(i * UINT64_C(2654435761) % 0x100000), i);
		put(f, key);
	}
	const struct names_options opt = {.env = &f->env,
					  .store = f->store,
					  .schemas = schemas,
					  .ttl_ns = 1000000000,
					  .roots = roots};
	f->names = names_new(&opt);
	assert_non_null(f->names);
}

static void teardown(struct fixture *f)
{
	names_free(f->names);
	store_free(f->store);
	pool_free(f->env.pool);
}

static int note(void *arg, const char *name, enum names_kind kind)
{
	struct fixture *f = arg;
	assert_true(f->n < 64);
	snprintf(f->found[f->n++], sizeof(f->found[0]), "%s", name);
	return 0;
}

static uint64_t lists(struct fixture *f)
{
	struct store_counts c;
	store_count_read(f->store, &c);
	return c.calls[STORE_LIST];
}

/* Names at every edge of the ranges, and between them. */
static const char *const others[] = {
	"!first/x", "00/x", "09_x/y", "0a",  "0a/x", "0z",   "5",      "9Z/x",
	"_x/y",	    "a-b",  "aa",     "b g", "ff",   "ff/x", "home/x", "zz",
};
static const char *const shown[] = {
	"!first", "00", "09_x", "0a", "0z", "5", "9Z", "_x", "a-b", "aa", "b g", "ff", "home", "zz",
};

static void each_key_is_in_one_range(void **state)
{
	static const unsigned int sizes[] = {0, 900, 3000};
	for (size_t s = 0; s < 3; s++) {
		struct fixture f;
		setup(&f, sizes[s], NULL);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			put(&f, others[i]);
		assert_int_equal(names_list(f.names, "", note, &f, NULL), 0);
		assert_int_equal(f.n, sizeof(shown) / sizeof(shown[0]));
		for (size_t i = 0; i < f.n; i++)
			assert_string_equal(f.found[i], shown[i]);
		teardown(&f);
	}
}

static void a_wide_listing_is_cached(void **state)
{
	struct fixture f;
	setup(&f, 3000, NULL);
	put(&f, "home/x");
	const uint64_t before = lists(&f);
	assert_int_equal(names_list(f.names, "", note, &f, NULL), 0);
	const uint64_t first = lists(&f);
	/* One page for each range, the first page, and the listing below home/. */
	assert_in_range(first - before, 160, 262);
	f.n = 0;
	assert_int_equal(names_list(f.names, "", note, &f, NULL), 0);
	assert_int_equal(lists(&f), first);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.found[0], "home");
	teardown(&f);
}

static void given_roots_are_not_listed(void **state)
{
	static const char *const roots[] = {"home", "absent", NULL};
	struct fixture f;
	struct names_node *node;
	setup(&f, 3000, roots);
	put(&f, "home/x");
	put(&f, "other/x");
	const uint64_t before = lists(&f);
	assert_int_equal(names_list(f.names, "", note, &f, NULL), 0);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.found[0], "home");
	assert_in_range(lists(&f) - before, 1, 2);
	assert_int_equal(names_resolve(f.names, "other", &node, NULL), -ENOENT);
	assert_int_equal(names_resolve(f.names, "home/x", &node, NULL), 0);
	names_node_unref(node);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_in_one_range),
		cmocka_unit_test(a_wide_listing_is_cached),
		cmocka_unit_test(given_roots_are_not_listed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
