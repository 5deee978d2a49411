/* SPDX-License-Identifier: Apache-2.0 */
/* What a listing proves of names in a directory, for how long, and when it is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bucket/schemas.h>
#include <store/implement.h>

#include "names/complete_dirs.h"
#include "mem_store.h"
#include "store_calls.h"

enum { TTL = 1000, DIRS = 32, LARGEST = 4000, NAMES = 6000 };
#define REST UINT64_C(10000000000)

/* Passes requests to a store in memory. */
struct service {
	struct store base;
	enum store_absence_check checks;
	unsigned int listings;
	bool fails;
	bool waits;		       /* the next listing is answered by arrive() */
	struct store_request *waiting; /* that one */
};

struct fixture {
	struct pool *pool;
	struct env env;
	struct names *ns;
};

static struct service service;
static uint64_t now;

static uint64_t test_now(const struct env *env)
{
	return now;
}

static void submit(struct store *s, struct store_request *req)
{
	service.listings += req->op == STORE_LIST;
	if (service.fails && req->op == STORE_LIST)
		store_fail(s, req, -EIO, "no answer");
	else
		store_pass(s, req);
}

static void completed(struct store *s, struct store_request *req)
{
	const bool waits = service.waits && req->op == STORE_LIST;
	if (waits)
		service.waiting = req;
	else
		store_complete(s, req);
	service.waits &= !waits;
}

static void arrive(void)
{
	struct store_request *req = service.waiting;
	service.waiting = NULL;
	store_complete(&service.base, req);
}

static enum store_absence_check checks(struct store *s)
{
	return service.checks;
}

static void free_nothing(struct store *s)
{
	store_free(s->inner);
}

static const struct store_ops ops = {
	.name = "service",
	.submit = submit,
	.completed = completed,
	.checks_absence = checks,
	.free = free_nothing,
};

static void put(const char *key)
{
	assert_int_equal(call_put(&service.base, key, "x", 1, NULL, NULL, NULL), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->pool = pool_new(0);
	f->env = env_real(NULL, f->pool);
	f->env.now = test_now;
	now = 1;
	service = (struct service){.checks = STORE_ABSENCE_CHECKED};
	store_wrap(&service.base, &ops, store_mem_new(&f->env, NULL), 0, 0);
	f->ns = names_new(&(struct names_options){
		.env = &f->env, .store = &service.base, .schemas = schema_all(), .ttl_ns = TTL});
	put("d/a");
	put("d/p/x");
	put("top");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	names_free(f->ns);
	store_free(&service.base);
	pool_free(f->pool);
	free(f);
	return 0;
}

static struct names *names_of(void **state)
{
	return ((struct fixture *)*state)->ns;
}

static void a_listing_proves_absence(void **state)
{
	static const struct {
		const char *path;
		bool lacks;
	} names[] = {{"d/new", true},	  {"d/a", false},      {"d/p", false},	{"d/aa", true},
		     {"d/new.h5", true},  {"d/p.h5", false},   {"d/pp", true},	{"d/p.nc", false},
		     {"d/p/new", false},  {"d/new.nc", true},  {"new", false},	{"e/new", false},
		     {"d/a.h5.h5", true}, {"d/p.h5.nc", true}, {"d/x/y", false}};
	struct names *ns = names_of(state);
	assert_false(names_complete_lacks(ns, "d/new"));
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names_complete_lacks(ns, names[i].path) != names[i].lacks)
			fail_msg("%s", names[i].path);
	names_will_create(ns, "first");
	assert_true(names_complete_lacks(ns, "new"));
	assert_false(names_complete_lacks(ns, "top"));
	assert_false(names_complete_lacks(ns, "d"));
}

/* A look-up sends no request. What another mount has made is found when the listing is stale. */
static void look_ups_use_it(void **state)
{
	struct names *ns = names_of(state);
	struct names_node *n;
	names_will_create(ns, "d/first");
	put("d/foreign");
	assert_int_equal(names_resolve(ns, "d/foreign", &n, NULL), -ENOENT);
	assert_int_equal(service.listings, 1);
	now += TTL;
	assert_int_equal(names_resolve(ns, "d/foreign", &n, NULL), 0);
	assert_string_equal(n->path, "d/foreign");
	names_node_unref(n);
}

static void it_becomes_stale(void **state)
{
	struct names *ns = names_of(state);
	service.waits = true;
	names_will_create(ns, "d/first");
	now += 10;
	arrive();
	assert_true(names_complete_lacks(ns, "d/new"));
	now += TTL / 2 - 11;
	names_will_create(ns, "d/second");
	assert_int_equal(service.listings, 1);
	now += TTL / 2; /* it began TTL - 1 ago */
	assert_true(names_complete_lacks(ns, "d/new"));
	service.waits = true;
	names_will_create(ns, "d/third");
	names_will_create(ns, "d/fourth");
	assert_int_equal(service.listings, 2);
	assert_true(names_complete_lacks(ns, "d/new"));
	now += 1;
	assert_false(names_complete_lacks(ns, "d/new"));
	arrive();
	assert_true(names_complete_lacks(ns, "d/new"));
}

/* What this mount makes while the listing is on its way is not in it. */
static void own_names_are_added(void **state)
{
	struct names *ns = names_of(state);
	service.waits = true;
	names_will_create(ns, "d/first");
	names_changed(ns, "d/first");
	names_changed(ns, "d/deep/er");
	arrive();
	assert_false(names_complete_lacks(ns, "d/first"));
	assert_false(names_complete_lacks(ns, "d/deep"));
	assert_true(names_complete_lacks(ns, "d/er"));
	names_changed(ns, "d/second");
	assert_false(names_complete_lacks(ns, "d/second"));
	now += TTL;
	names_will_create(ns, "d/third");
	assert_false(names_complete_lacks(ns, "d/second"));
}

/* Another mount removes a file, and makes it again after this mount has listed the directory. Until
 * its node becomes stale, this mount shows the file, and finds it when a program opens it. */
static void what_is_dropped_may_be_there(void **state)
{
	struct names *ns = names_of(state);
	struct names_node *n;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(names_resolve(ns, "d/a", &n, NULL), 0);
		names_node_unref(n);
		if (i == 0) {
			assert_int_equal(call_delete(&service.base, "d/a", NULL, NULL), 0);
			names_will_create(ns, "d/first");
			put("d/a");
		} else {
			names_forget(ns, "d/a");
		}
	}
}

static void change_many(struct names *ns, unsigned int n)
{
	char path[32];
	for (unsigned int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "d/%u", i);
		names_changed(ns, path);
	}
}

/* Names that do not fit are not forgotten as if they were absent. */
static void many_own_names(void **state)
{
	struct names *ns = names_of(state);
	service.waits = true;
	names_will_create(ns, "d/first");
	change_many(ns, NAMES + 1);
	change_many(ns, 1);
	arrive();
	assert_false(names_complete_lacks(ns, "d/new"));
	now += REST;
	names_will_create(ns, "d/first");
	assert_true(names_complete_lacks(ns, "d/new"));
	change_many(ns, NAMES - 2);
	assert_true(names_complete_lacks(ns, "d/new"));
	assert_false(names_complete_lacks(ns, "d/17"));
	names_changed(ns, "d/one-more");
	assert_false(names_complete_lacks(ns, "d/new"));
}

static void large_directories(void **state)
{
	struct names *ns = names_of(state);
	char key[32];
	for (unsigned int i = 2; i < LARGEST; i++) {
		snprintf(key, sizeof(key), "d/%u", i);
		put(key);
	}
	names_will_create(ns, "d/first");
	assert_true(names_complete_lacks(ns, "d/new"));
	put("d/one-more");
	now += TTL;
	service.listings = 0;
	names_will_create(ns, "d/first");
	assert_false(names_complete_lacks(ns, "d/new"));
	const unsigned int pages = service.listings;
	now += REST - 1;
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, pages);
	now += 1;
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 2 * pages);
}

static void a_listing_that_fails_proves_nothing(void **state)
{
	struct names *ns = names_of(state);
	names_will_create(ns, "d/first");
	now += TTL / 2;
	service.fails = true;
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 2);
	assert_false(names_complete_lacks(ns, "d/new"));
	service.fails = false;
	now += REST - 1;
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 2);
	now += 1;
	names_will_create(ns, "d/first");
	assert_true(names_complete_lacks(ns, "d/new"));
}

static void services_that_do_not_check(void **state)
{
	struct names *ns = names_of(state);
	service.checks = STORE_ABSENCE_IGNORED;
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 0);
	service.checks = STORE_ABSENCE_UNKNOWN; /* until the first put */
	names_will_create(ns, "d/first");
	assert_int_equal(service.listings, 1);
	assert_false(names_complete_lacks(ns, "d/new"));
	service.checks = STORE_ABSENCE_CHECKED;
	assert_true(names_complete_lacks(ns, "d/new"));
	service.checks = STORE_ABSENCE_IGNORED;
	assert_false(names_complete_lacks(ns, "d/new"));
}

/* The directory that was not used for the longest time is replaced, but not while it is listed. */
static void many_directories(void **state)
{
	struct names *ns = names_of(state);
	char path[32];
	service.waits = true;
	names_will_create(ns, "listing/first");
	for (unsigned int i = 0; i < DIRS; i++) {
		now++;
		if (i == DIRS - 1)
			assert_true(names_complete_lacks(ns, "0/new"));
		snprintf(path, sizeof(path), "%u/first", i);
		names_will_create(ns, path);
	}
	assert_true(names_complete_lacks(ns, "0/new"));
	assert_false(names_complete_lacks(ns, "1/new"));
	assert_true(names_complete_lacks(ns, "2/new"));
	arrive();
	assert_true(names_complete_lacks(ns, "listing/new"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_listing_proves_absence, setup, teardown),
		cmocka_unit_test_setup_teardown(look_ups_use_it, setup, teardown),
		cmocka_unit_test_setup_teardown(it_becomes_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(own_names_are_added, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_dropped_may_be_there, setup, teardown),
		cmocka_unit_test_setup_teardown(many_own_names, setup, teardown),
		cmocka_unit_test_setup_teardown(large_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(a_listing_that_fails_proves_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(services_that_do_not_check, setup, teardown),
		cmocka_unit_test_setup_teardown(many_directories, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
