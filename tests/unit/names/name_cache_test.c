/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of names, for how long, and how much of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "name_cache.h"
#include "node.h"

static int setup(void **state)
{
	*state = names_cache_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	names_cache_free(*state);
	return 0;
}

static struct names_doc doc_of(const char *root)
{
	const struct domain_info info = {.root = root, .owner = ""};
	struct schema_document *document = schema_document_new(&info, "");
	assert_non_null(document);
	return (struct names_doc){.kind = NAMES_DOC_ROOT, .document = document};
}

/* Remembered until time 10. */
static void put(struct names_cache *c, const char *path, enum names_kind kind)
{
	struct names_doc doc = {0};
	if (kind == NAMES_DOMAIN)
		doc = doc_of("g-1");
	auto_names_node struct names_node *node = names_node_new(path, kind, path, &doc);
	assert_non_null(node);
	names_cache_put(c, node, 10);
}

static bool is_valid(struct names_cache *c, const char *path, uint64_t now)
{
	auto_names_node struct names_node *node = names_cache_get(c, path, now);
	return node;
}

static bool is_remembered(struct names_cache *c, const char *path)
{
	auto_names_node struct names_node *node = names_cache_recall(c, path);
	return node;
}

static void a_name_becomes_stale_and_is_recalled(void **state)
{
	struct names_cache *c = *state;
	put(c, "a", NAMES_DIR);
	assert_true(is_valid(c, "a", 9));
	assert_false(is_valid(c, "a", 10));
	assert_true(is_remembered(c, "a"));
	assert_false(is_remembered(c, "b"));
	names_cache_drop(c, "a");
	assert_false(is_remembered(c, "a"));
}

static void the_oldest_names_are_evicted(void **state)
{
	struct names_cache *c = *state;
	char path[32];
	for (int i = 0; i < NAMES_CACHE_MAX + 2; i++) {
		snprintf(path, sizeof(path), "n%d", i);
		put(c, path, NAMES_DIR);
	}
	assert_false(is_remembered(c, "n0"));
	assert_false(is_remembered(c, "n1"));
	assert_true(is_remembered(c, "n2"));
	assert_true(is_remembered(c, path));
}

static bool put_list(struct names_cache *c, const char *path, size_t n)
{
	struct bytes list = {0}, known = {0};
	assert_int_equal(bytes_append_zero(&list, n), 0);
	names_cache_put_list(c, path, &list, 10);
	assert_null(list.data);
	const bool kept = names_cache_get_list(c, path, 9, &known);
	if (kept)
		assert_int_equal(known.len, n);
	bytes_release(&known);
	return kept;
}

static void lists_have_a_limit(void **state)
{
	struct names_cache *c = *state;
	struct bytes known = {0};
	put(c, "a", NAMES_DIR);
	put(c, "b", NAMES_DIR);
	assert_false(put_list(c, "nowhere", 10));
	assert_true(put_list(c, "a", NAMES_CACHE_LISTS_MAX - 10));
	assert_false(put_list(c, "b", 11));
	assert_true(put_list(c, "b", 10));
	assert_false(names_cache_get_list(c, "b", 10, &known));
	names_cache_drop(c, "a");
	assert_true(put_list(c, "b", NAMES_CACHE_LISTS_MAX));
}

static void a_failure_is_remembered_for_its_time(void **state)
{
	struct names_cache *c = *state;
	struct err why = ERR_INIT, err = ERR_INIT;
	err_set(&why, -EIO, "away");
	assert_int_equal(names_cache_get_failure(c, "a", 0, &err), 0);
	names_cache_put_failure(c, "a", &why, 10);
	assert_int_equal(names_cache_get_failure(c, "a", 9, &err), -EIO);
	assert_string_equal(err.msg, "away");
	assert_int_equal(names_cache_get_failure(c, "b", 9, &err), 0);
	assert_int_equal(names_cache_get_failure(c, "a", 10, &err), 0);
}

static void the_oldest_failure_is_evicted(void **state)
{
	struct names_cache *c = *state;
	struct err why = ERR_INIT;
	char path[32];
	err_set(&why, -EIO, "away");
	for (int i = 0; i <= NAMES_CACHE_FAILURES; i++) {
		snprintf(path, sizeof(path), "n%d", i);
		names_cache_put_failure(c, path, &why, 10);
	}
	assert_int_equal(names_cache_get_failure(c, "n0", 0, NULL), 0);
	assert_int_equal(names_cache_get_failure(c, "n1", 0, NULL), -EIO);
	assert_int_equal(names_cache_get_failure(c, path, 0, NULL), -EIO);
}

static size_t unsized(struct names_cache *c, const char *path)
{
	struct names_node *out[NAMES_CACHE_SIBLINGS];
	auto_names_node struct names_node *node = names_cache_recall(c, path);
	const size_t n = names_cache_unsized(c, node, out);
	assert_ptr_equal(out[0], node);
	for (size_t i = 0; i < n; i++) {
		atomic_store(&out[i]->estimate, 1);
		names_node_unref(out[i]);
	}
	return n;
}

/* The first is asked for alone; the second says that somebody goes through the directory. */
static void siblings_are_asked_for_together(void **state)
{
	struct names_cache *c = *state;
	static const char *const paths[] = {"d/a", "d/b", "d/c", "d/d", "e/a"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		put(c, paths[i], NAMES_DOMAIN);
	assert_int_equal(unsized(c, "d/a"), 1);
	assert_int_equal(unsized(c, "d/b"), 3);
	assert_int_equal(unsized(c, "e/a"), 1);
}

/* An estimate does not age with its name, but belongs to one root group. */
static void an_estimate_outlives_its_name(void **state)
{
	struct names_cache *c = *state;
	put(c, "a", NAMES_DOMAIN);
	unsized(c, "a");
	put(c, "a", NAMES_DOMAIN);
	auto_names_node struct names_node *same = names_cache_recall(c, "a");
	assert_int_equal(atomic_load(&same->estimate), 1);
	struct names_doc doc = doc_of("g-2");
	auto_names_node struct names_node *other = names_node_new("a", NAMES_DOMAIN, "a", &doc);
	names_cache_put(c, other, 10);
	assert_int_equal(atomic_load(&other->estimate), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_becomes_stale_and_is_recalled),
		TEST(the_oldest_names_are_evicted),
		TEST(lists_have_a_limit),
		TEST(a_failure_is_remembered_for_its_time),
		TEST(the_oldest_failure_is_evicted),
		TEST(siblings_are_asked_for_together),
		TEST(an_estimate_outlives_its_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
