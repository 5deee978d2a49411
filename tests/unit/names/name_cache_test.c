/* SPDX-License-Identifier: Apache-2.0 */
/* Which names the cache keeps, for how long, and how many. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "names/name_cache.h"
#include "names/node.h"

/* Room for some thousand names. */
enum { LIMIT = 4 << 20 };

static struct budget *budget;

static int setup(void **state)
{
	budget = budget_new(&(struct budget_limits){.metadata_min = LIMIT * NAMES_CACHE_PARTS});
	*state = names_cache_new(budget);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	names_cache_free(*state);
	budget_free(budget);
	return 0;
}

static struct names_doc doc_of(const char *root)
{
	const struct domain_info info = {.root = root, .owner = ""};
	struct schema_document *document = schema_document_new(&info, "");
	assert_non_null(document);
	return (struct names_doc){.kind = NAMES_DOC_ROOT, .document = document};
}

/* Valid until time 10. */
static void put(struct names_cache *c, const char *path, enum names_kind kind)
{
	struct names_doc doc = {0};
	if (kind == NAMES_DOMAIN)
		doc = doc_of("g-1");
	auto_names_node struct names_node *node = names_node_new(path, kind, path, &doc);
	assert_non_null(node);
	names_cache_put(c, node, 0, 10, 0);
}

static bool is_valid(struct names_cache *c, const char *path, uint64_t now)
{
	auto_names_node struct names_node *node = names_cache_get(c, path, now);
	return node;
}

static bool is_cached(struct names_cache *c, const char *path)
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
	assert_true(is_cached(c, "a"));
	assert_false(is_cached(c, "b"));
	names_cache_drop(c, "a");
	assert_false(is_cached(c, "a"));
}

static void the_oldest_names_are_evicted(void **state)
{
	struct names_cache *c = *state;
	struct budget_stats stats;
	char path[32];
	int n = 0;
	do { /* until the first is evicted */
		snprintf(path, sizeof(path), "n%d", n++);
		put(c, path, NAMES_DOMAIN);
	} while (is_cached(c, "n0"));
	assert_true(is_cached(c, "n2"));
	assert_true(is_cached(c, path));
	assert_in_range(n, LIMIT / 1000, LIMIT / 300);
	budget_get_stats(budget, &stats);
	assert_in_range(stats.used[BUDGET_NAMES], LIMIT - (64 << 10), LIMIT + (64 << 10));
}

/* Names give way to the files that programs open, and a name that finds no room is not kept. */
static void others_get_the_memory_of_names(void **state)
{
	struct names_cache *c = *state;
	struct budget_charge plan = {.budget = budget, .use = BUDGET_PLANS};
	char path[32];
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "n%d", i);
		put(c, path, NAMES_DOMAIN);
	}
	const uint64_t all = (uint64_t)LIMIT * NAMES_CACHE_PARTS;
	assert_int_equal(budget_set(&plan, all - 500000, NULL), 0);
	assert_false(is_cached(c, "n0"));
	assert_true(is_cached(c, "n500"));
	assert_true(is_cached(c, path));
	assert_int_equal(budget_set(&plan, all, NULL), 0);
	assert_false(is_cached(c, path));
	put(c, "a", NAMES_DIR);
	assert_false(is_cached(c, "a"));
	assert_int_equal(budget_set(&plan, 0, NULL), 0);
	put(c, "a", NAMES_DIR);
	assert_true(is_cached(c, "a"));
}

/* The end of a listing does not evict its beginning, unless the program does not come. */
static void the_beginning_of_a_large_listing_stays(void **state)
{
	enum { N = LIMIT / 250, TTL = 5 };
	for (int comes = 0; comes < 2; comes++) {
		struct names_cache *c = *state;
		char path[32];
		const uint64_t now = comes ? 100 : 1;
		const uint64_t walk = names_cache_begin_walk(c, now, TTL, 0);
		int kept = 0;
		for (int i = 0; i < N; i++) {
			struct names_doc doc = doc_of("g-1");
			snprintf(path, sizeof(path), "%d-%d", comes, i);
			auto_names_node struct names_node *node =
				names_node_new(path, NAMES_DOMAIN, path, &doc);
			names_cache_put(c, node, now, now + 10, 0);
			names_cache_join_walk(c, node, walk);
			kept += is_cached(c, path);
		}
		assert_in_range(kept, LIMIT / 1000, N - 1);
		snprintf(path, sizeof(path), "%d-0", comes);
		assert_true(is_cached(c, path));
		if (comes) /* what it has reached makes room */
			names_node_unref(names_cache_look_up(c, path, now + 1));
		auto_names_node struct names_node *late = NULL;
		struct names_doc doc = doc_of("g-1");
		late = names_node_new("late", NAMES_DOMAIN, "late", &doc);
		names_cache_put(c, late, comes ? now + 1 : now + TTL, now + 20, 0);
		assert_false(is_cached(c, path));
		assert_true(is_cached(c, "late"));
		names_cache_drop(c, "late");
	}
}

static bool put_list(struct names_cache *c, const char *path, size_t n)
{
	struct bytes list = {0}, known = {0};
	assert_int_equal(bytes_append_zero(&list, n), 0);
	names_cache_put_list(c, path, &list, 10, 0);
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

static void a_failure_is_kept_with_its_node(void **state)
{
	struct names_cache *c = *state;
	names_cache_put_failure(c, "a", -EIO, 10);
	assert_int_equal(names_cache_get_failure(c, "a", 0), 0);
	put(c, "a", NAMES_DIR);
	assert_int_equal(names_cache_get_failure(c, "a", 0), 0);
	names_cache_put_failure(c, "a", -EIO, 10);
	assert_int_equal(names_cache_get_failure(c, "a", 9), -EIO);
	assert_int_equal(names_cache_get_failure(c, "a", 10), 0);
	assert_int_equal(names_cache_get_failure(c, "b", 9), 0);
	put(c, "a", NAMES_DIR);
	assert_int_equal(names_cache_get_failure(c, "a", 9), 0);
}

static bool is_found(struct names_cache *c, const char *path, uint64_t now)
{
	auto_names_node struct names_node *node = names_cache_look_up(c, path, now);
	return node;
}

/* The paths in "d", whose own time ends at 10, as a listing at time 0 shows them. */
static void list_d(struct names_cache *c, uint64_t ttl, uint64_t took)
{
	static const char *const paths[] = {"d/a", "d/b", "d/c", "d/d"};
	const uint64_t walk = names_cache_begin_walk(c, 0, ttl, took);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		put(c, paths[i], NAMES_DOMAIN);
		auto_names_node struct names_node *node = names_cache_recall(c, paths[i]);
		names_cache_join_walk(c, node, walk);
	}
}

/* Each first look-up prolongs the walk, a second look-up of the same name does not. */
static void a_walk_keeps_its_names_valid(void **state)
{
	struct names_cache *c = *state;
	list_d(c, 10, 0);
	put(c, "d/other", NAMES_DOMAIN);
	assert_true(is_found(c, "d/a", 9));
	assert_true(is_found(c, "d/b", 18));
	assert_false(is_valid(c, "d/b", 18));
	assert_false(is_found(c, "d/other", 18));
	assert_true(is_found(c, "d/b", 27));
	assert_false(is_found(c, "d/b", 28));
	assert_false(is_found(c, "d/c", 28));
}

/* The program sorts what took long to list. */
static void a_walk_begins_later_after_a_long_listing(void **state)
{
	struct names_cache *c = *state;
	for (int late = 0; late < 2; late++) {
		list_d(c, 10, 30);
		assert_int_equal(is_found(c, "d/a", 39 + late), !late);
		assert_int_equal(is_found(c, "d/b", 48 + late), !late);
		assert_false(is_found(c, "d/c", 59));
	}
}

static void a_request_prolongs_its_walk(void **state)
{
	struct names_cache *c = *state;
	list_d(c, 10, 0);
	assert_true(is_found(c, "d/a", 9));
	auto_names_node struct names_node *a = names_cache_recall(c, "d/a");
	names_cache_continue_walk(c, a, 100);
	assert_true(is_found(c, "d/a", 109));
	assert_true(is_found(c, "d/b", 109));
	assert_false(is_found(c, "d/a", 110));
	/* A node that was put by a look-up belongs to no walk. */
	put(c, "d/c", NAMES_DOMAIN);
	assert_false(is_found(c, "d/c", 109));
	names_cache_join_walk(c, a, 0);
	assert_false(is_found(c, "d/a", 109));
}

static void a_walk_ends_after_ten_minutes(void **state)
{
	struct names_cache *c = *state;
	const uint64_t second = 1000000000;
	list_d(c, 400 * second, 0);
	assert_true(is_found(c, "d/a", 399 * second));
	assert_true(is_found(c, "d/b", 599 * second));
	assert_false(is_found(c, "d/c", 600 * second));
	assert_false(is_found(c, "d/b", 600 * second));
}

static void the_oldest_walk_is_forgotten(void **state)
{
	struct names_cache *c = *state;
	list_d(c, 100, 0);
	for (int i = 1; i < NAMES_WALKS; i++)
		names_cache_begin_walk(c, 0, 100, 0);
	assert_true(is_found(c, "d/a", 50));
	names_cache_begin_walk(c, 0, 100, 0);
	assert_false(is_found(c, "d/a", 50));
}

/* With metadata_ttl=0. */
static void without_validity_there_is_no_walk(void **state)
{
	struct names_cache *c = *state;
	list_d(c, 0, 0);
	assert_false(is_found(c, "d/a", 11));
}

static bool is_sized(const struct names_node *node)
{
	return atomic_load(&node->is_sized);
}

static size_t unsized(struct names_cache *c, const char *path, size_t max)
{
	struct names_node *out[8];
	auto_names_node struct names_node *node = names_cache_recall(c, path);
	const struct names_ahead ahead = {.for_first = 1, .for_each = max, .max = max};
	const size_t n = names_cache_unknown(c, node, is_sized, &ahead, out, 0);
	atomic_store(&node->is_sized, true);
	for (size_t i = 0; i < n; i++) {
		atomic_store(&out[i]->is_sized, true);
		names_node_unref(out[i]);
	}
	return n;
}

/* The first is alone: only the second shows that a program goes through the directory. */
static void siblings_whose_sizes_are_unknown_are_found(void **state)
{
	struct names_cache *c = *state;
	static const char *const paths[] = {"d/a", "d/b", "d/c", "d/d", "e/a"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		put(c, paths[i], NAMES_DOMAIN);
	assert_int_equal(unsized(c, "d/a", 8), 0);
	assert_int_equal(unsized(c, "d/b", 1), 1);
	assert_int_equal(unsized(c, "d/b", 8), 1);
	assert_int_equal(unsized(c, "d/c", 8), 0);
	assert_int_equal(unsized(c, "e/a", 8), 0);
}

/* ls -l asks for the first name of a listing that it has just read. */
static void a_walk_begins_with_the_first_of_a_listing(void **state)
{
	struct names_cache *c = *state;
	list_d(c, 10, 0);
	assert_int_equal(unsized(c, "d/b", 8), 0);
	list_d(c, 10, 0);
	assert_int_equal(unsized(c, "d/a", 8), 1);
	/* Nobody knows what an earlier listing was for. */
	list_d(c, 0, 0);
	assert_int_equal(unsized(c, "d/a", 8), 0);
}

/* A stat of two names is no reason to find out the sizes of all. */
static void the_longer_the_walk_the_more_are_found(void **state)
{
	struct names_cache *c = *state;
	struct names_node *out[8];
	for (char path[] = "d/a"; path[2] <= 'i'; path[2]++)
		put(c, path, NAMES_DOMAIN);
	for (char path[] = "d/a"; path[2] <= 'd'; path[2]++) {
		auto_names_node struct names_node *node = names_cache_recall(c, path);
		const size_t before = (size_t)(path[2] - 'a');
		const struct names_ahead ahead = {.for_each = 2, .max = 8};
		const size_t n = names_cache_unknown(c, node, is_sized, &ahead, out, 0);
		assert_int_equal(n, before < 3 ? 2 * before : 5);
		atomic_store(&node->is_sized, true);
		for (size_t i = 0; i < n; i++)
			names_node_unref(out[i]);
	}
}

/* The domain may have changed. */
static void a_size_belongs_to_its_node(void **state)
{
	struct names_cache *c = *state;
	const struct names_size size = {.size = 1}, other = {.size = 2};
	put(c, "a", NAMES_DOMAIN);
	auto_names_node struct names_node *node = names_cache_recall(c, "a");
	names_set_size(node, &size);
	names_set_size(node, &other);
	assert_int_equal(names_get_size(node)->size, 2);
	put(c, "a", NAMES_DOMAIN);
	auto_names_node struct names_node *next = names_cache_recall(c, "a");
	assert_null(names_get_size(next));
}

static void put_version(struct names_cache *c, const char *etag, const char *note,
			const char *expected)
{
	struct names_doc none = {0};
	auto_names_node struct names_node *node = names_node_new("a", NAMES_OBJECT, "a", &none);
	strcpy(node->meta.etag, etag);
	if (note)
		names_node_set_note(node, note);
	names_cache_put(c, node, 0, 10, 0);
	const char *now = atomic_load(&node->note);
	if (!now || !expected)
		assert_ptr_equal(now, expected);
	else
		assert_string_equal(now, expected);
}

/* But only while the object has the same version. */
/* A size that is the same takes no memory. */
static void a_size_that_is_known_is_not_added(void **state)
{
	const struct names_size first = {
		.size = 100, .blocks = 8, .mtime_ns = 5, .version = 7, .is_exact = true};
	struct names_size sizes[6] = {first, first, first, first, first, first};
	struct names_doc none = {0};
	auto_names_node struct names_node *node = names_node_new("x", NAMES_DOMAIN, "x", &none);
	sizes[1].size++;
	sizes[2].blocks++;
	sizes[3].mtime_ns++;
	sizes[4].version++;
	sizes[5].is_exact = false;
	for (int i = 0; i < 6; i++) {
		names_set_size(node, &first);
		const struct names_sizes *before = atomic_load(&node->sizes);
		names_set_size(node, &sizes[i]);
		const struct names_sizes *latest = atomic_load(&node->sizes);
		assert_int_equal(latest != before, i > 0);
		assert_memory_equal(names_get_size(node), &sizes[i], sizeof(sizes[i]));
	}
}

static void a_note_outlives_its_name(void **state)
{
	struct names_cache *c = *state;
	put_version(c, "1", "why", "why");
	put_version(c, "1", NULL, "why");
	put_version(c, "1", "other", "other");
	put_version(c, "2", NULL, NULL);
	put_version(c, "2", "", "");
	put_version(c, "2", NULL, "");
	put_version(c, "", "why", "why");
	put_version(c, "", NULL, NULL);
	put_version(c, "3", "why", "why");
	put(c, "a", NAMES_DOMAIN);
	put_version(c, "3", NULL, NULL);
	put_version(c, "3", "why", "why");
	names_cache_drop(c, "a");
	put_version(c, "3", NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void an_absence_ends(void **state)
{
	struct names_cache *c = *state;
	char path[32];
	assert_false(names_cache_is_absent(c, "a", 0));
	names_cache_put_absent(c, "a", 10, 0);
	assert_true(names_cache_is_absent(c, "a", 9));
	assert_false(names_cache_is_absent(c, "a", 10));
	assert_false(names_cache_is_absent(c, "b", 9));
	put(c, "a", NAMES_DOMAIN);
	assert_false(names_cache_is_absent(c, "a", 9));
	names_cache_put_absent(c, "b", 10, 0);
	names_cache_drop(c, "b");
	assert_false(names_cache_is_absent(c, "b", 9));
	for (int i = 0; i < 10 * NAMES_ABSENT; i++) {
		snprintf(path, sizeof(path), "%d", i);
		names_cache_put_absent(c, path, 10, 0);
		assert_true(names_cache_is_absent(c, path, 9));
	}
}

static void what_is_older_than_a_change_is_not_cached(void **state)
{
	struct names_cache *c = *state;
	struct bytes list = {0};
	const uint64_t before = names_cache_changes(c);
	put(c, "d", NAMES_DIR);
	names_cache_change(c);
	struct names_doc none = {0};
	struct names_node *old = names_node_new("a", NAMES_DIR, "a", &none);
	names_cache_put(c, old, 0, 10, before);
	assert_null(names_cache_recall(c, "a"));
	names_cache_put(c, old, 0, 10, names_cache_changes(c));
	names_node_unref(old);
	struct names_node *new = names_cache_recall(c, "a");
	assert_ptr_equal(new, old);
	names_node_unref(new);
	names_cache_put_absent(c, "b", 10, before);
	assert_false(names_cache_is_absent(c, "b", 0));
	assert_int_equal(bytes_append(&list, "x", 1), 0);
	names_cache_put_list(c, "d", &list, 10, before);
	assert_false(names_cache_get_list(c, "d", 0, &list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_becomes_stale_and_is_recalled),
		TEST(what_is_older_than_a_change_is_not_cached),
		TEST(the_oldest_names_are_evicted),
		TEST(others_get_the_memory_of_names),
		TEST(the_beginning_of_a_large_listing_stays),
		TEST(lists_have_a_limit),
		TEST(a_failure_is_kept_with_its_node),
		TEST(a_walk_keeps_its_names_valid),
		TEST(a_walk_begins_later_after_a_long_listing),
		TEST(a_request_prolongs_its_walk),
		TEST(a_walk_ends_after_ten_minutes),
		TEST(the_oldest_walk_is_forgotten),
		TEST(without_validity_there_is_no_walk),
		TEST(siblings_whose_sizes_are_unknown_are_found),
		TEST(a_walk_begins_with_the_first_of_a_listing),
		TEST(the_longer_the_walk_the_more_are_found),
		TEST(a_size_belongs_to_its_node),
		TEST(a_size_that_is_known_is_not_added),
		TEST(a_note_outlives_its_name),
		TEST(an_absence_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
