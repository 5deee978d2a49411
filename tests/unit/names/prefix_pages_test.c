/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of many stores in a directory: what they show, and the requests that they cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <bucket/schemas.h>
#include <names/names.h>

#include "gate.h"
#include "small_domain.h"

struct fixture {
	struct env env;
	struct store *store;
	struct gate *gate;
	struct names *names;
};

static void open_names(struct fixture *f, bool prefixes_have_objects, bool has_marks)
{
	const struct names_options opt = {.env = &f->env,
					  .store = &f->gate->base,
					  .schemas = schema_all(),
					  .ttl_ns = UINT64_C(3600000000000),
					  .prefixes_have_objects = prefixes_have_objects,
					  .has_marks = has_marks};
	auto_names_node struct names_node *dir = NULL;
	names_free(f->names);
	f->names = names_new(&opt);
	assert_non_null(f->names);
	gate_open(f->gate);
	assert_int_equal(names_resolve(f->names, "d", &dir, NULL), 0);
	gate_count(f->gate);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = small_domain_new(&f->env);
	f->gate = gate_new(f->store);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	names_free(f->names);
	store_free(&f->gate->base);
	pool_free(f->env.pool);
	free(f);
	return 0;
}

/* A store of n keys. */
static void put_store(struct fixture *f, const char *path, int n)
{
	char key[128];
	snprintf(key, sizeof(key), "%s/.zgroup", path);
	small_put(f->store, key, "{}");
	for (int i = 1; i < n; i++) {
		snprintf(key, sizeof(key), "%s/a/%d", path, i);
		small_put(f->store, key, "12345678");
	}
}

static int collect(void *arg, const char *name, enum names_kind kind)
{
	struct bytes *text = arg;
	const char ending = "\n/*"[kind];
	return bytes_append(text, name, strlen(name)) || bytes_append(text, &ending, 1) ||
	       bytes_append(text, "\n", ending != '\n');
}

static struct bytes list(struct fixture *f, const char *dir)
{
	struct bytes text = {0};
	struct err err = ERR_INIT;
	if (names_list(f->names, dir, collect, &text, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(bytes_append(&text, "", 1), 0);
	return text;
}

/* Checks a listing of "d", and that it costs so many requests. */
static void check(struct fixture *f, const char *expected, unsigned int gets, unsigned int lists)
{
	auto_bytes struct bytes text = list(f, "d");
	assert_string_equal((char *)text.data, expected);
	assert_int_equal(f->gate->ops[STORE_GET], gets);
	assert_int_equal(f->gate->ops[STORE_LIST], lists);
}

/* Writes the names of n stores "d/000.zarr" ..., as a listing shows them. */
static const char *names_of(int n, char *text)
{
	for (int i = 0; i < n; i++)
		sprintf(text + 12 * i, "%03d.zarr.nc\n", i);
	return text;
}

static void put_stores(struct fixture *f, int from, int to, int keys)
{
	char path[32];
	for (int i = from; i < to; i++) {
		snprintf(path, sizeof(path), "d/%03d.zarr", i);
		put_store(f, path, keys);
	}
}

static void small_stores_share_pages(void **state)
{
	enum { STORES = 300, KEYS = 11 };
	struct fixture *f = *state;
	char text[12 * STORES + 1];
	put_stores(f, 0, STORES, KEYS);
	open_names(f, true, false);
	/* The directory; a page, which shows 90 stores; then a page for each 68 of the others. */
	check(f, names_of(STORES, text), 0, 1 + 1 + 4);
}

static void the_keys_are_kept(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *node = NULL;
	struct store_page page = {0};
	struct bytes text;
	put_stores(f, 0, 20, 3);
	open_names(f, true, false);
	text = list(f, "d");
	bytes_release(&text);
	assert_int_equal(names_resolve(f->names, "d/007.zarr.nc", &node, NULL), 0);
	assert_true(names_take_keys(node, &page));
	struct store_page truth = {0};
	gate_list(f->gate, "d/007.zarr/", &truth);
	assert_int_equal(page.n, 3);
	assert_int_equal(truth.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(page.items[i].key, truth.items[i].key);
		assert_string_equal(page.items[i].meta.etag, truth.items[i].meta.etag);
		assert_int_equal(page.items[i].meta.size, truth.items[i].meta.size);
		assert_int_equal(page.items[i].meta.mtime_ns, truth.items[i].meta.mtime_ns);
	}
	store_page_release(&page);
	store_page_release(&truth);
	assert_false(names_take_keys(node, &page));
	/* A store that has changed must be listed again. */
	names_node_unref(node);
	assert_int_equal(names_resolve(f->names, "d/008.zarr.nc", &node, NULL), 0);
	names_forget_size(f->names, "d/008.zarr.nc");
	assert_false(names_take_keys(node, &page));
}

static void large_stores_are_listed_one_by_one(void **state)
{
	enum { STORES = 20 };
	struct fixture *f = *state;
	char text[12 * STORES + 1];
	put_stores(f, 0, STORES, 300);
	open_names(f, true, false);
	/* The page shows three of them. */
	check(f, names_of(STORES, text), 0, 1 + 1 + STORES - 3);
}

static void large_stores_after_small_ones(void **state)
{
	enum { SMALL = 10, STORES = 40 };
	struct fixture *f = *state;
	char text[12 * STORES + 1];
	put_stores(f, 0, SMALL, 3);
	put_stores(f, SMALL, STORES, 990);
	open_names(f, true, false);
	/* The page shows the small ones; four more show one store each. */
	check(f, names_of(STORES, text), 0, 1 + 1 + 4 + STORES - SMALL - 4);
}

static void a_few_stores(void **state)
{
	struct fixture *f = *state;
	char text[64];
	put_stores(f, 0, 3, 5);
	open_names(f, true, false);
	check(f, names_of(3, text), 0, 1 + 3);
}

/* A directory bucket requests the documents first. */
static void a_store_with_empty_prefixes(void **state)
{
	struct fixture *f = *state;
	char text[12 * 20 + 1];
	put_stores(f, 0, 20, 5);
	open_names(f, false, false);
	check(f, names_of(20, text), 20, 1 + 20);
}

/* A document decides as before. It is requested, because the listing shows it. */
static void documents_count(void **state)
{
	static const char expected[] = "bad.zarr\nbare.h5\nfolder/\nh.zarr\ns.zarr.nc\nt00.zarr/\n";
	struct fixture *f = *state;
	char key[64];
	put_store(f, "d/s.zarr", 3);
	small_put(f->store, "d/s.zarr/.domain.json", "{'owner': 'ann'}");
	put_store(f, "d/h.zarr", 3);
	small_put(f->store, "d/h.zarr/.domain.json", "{'root': '" SMALL_ROOT "'}");
	small_put(f->store, "d/bad.zarr/.domain.json", "{");
	small_put(f->store, "d/x.h5/.domain.json", "{'root': '" SMALL_ROOT "'}");
	small_put(f->store, "d/folder/file", "x");
	small_put(f->store, "d/bare/.domain.json", "{'root': '" SMALL_ROOT "'}");
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "d/t%02d.zarr/x", i);
		small_put(f->store, key, "x");
	}
	for (int marks = 0; marks < 2; marks++) {
		open_names(f, true, marks);
		auto_bytes struct bytes text = list(f, "d");
		assert_memory_equal(text.data, expected, sizeof(expected) - 1);
	}
	/* Those that the listing shows, and that of x.h5, which is not listed at first. */
	assert_int_equal(f->gate->ops[STORE_GET], 5);
}

/* If the pages fail, the prefixes are listed one by one. If all listings fail, so does this one. */
static void failures(void **state)
{
	enum { STORES = 40, KEYS = 60 };
	struct fixture *f = *state;
	char text[12 * STORES + 1];
	names_of(STORES, text);
	put_stores(f, 0, STORES, KEYS);
	for (unsigned int at = 2; at <= 5; at++) {
		open_names(f, true, false);
		gate_fail(f->gate, at, -EACCES);
		auto_bytes struct bytes names = list(f, "d");
		assert_string_equal((char *)names.data, text);
	}
	open_names(f, true, false);
	gate_fail(f->gate, 2, -EACCES);
	f->gate->later = true;
	assert_int_equal(names_list(f->names, "d", collect, NULL, NULL), -EACCES);
}

/* A mount removes the last file of a directory, which gets a document before, so that it stays. */
static void keep_directory(struct store *bucket)
{
	assert_int_equal(call_put(bucket, "d/dir/.domain.json", "{\"owner\": \"ann\"}", 16, NULL,
				  NULL, NULL),
			 0);
	call_delete(bucket, "d/dir/file", NULL, NULL);
}

static bool is_shown_meanwhile(struct fixture *f, bool is_listing, unsigned int at)
{
	auto_names_node struct names_node *node = NULL;
	call_delete(f->store, "d/dir/.domain.json", NULL, NULL);
	small_put(f->store, "d/dir/file", "12345678");
	open_names(f, false, false);
	f->gate->other_at = at;
	f->gate->other = keep_directory;
	if (!is_listing)
		return names_resolve(f->names, "d/dir", &node, NULL) == 0;
	auto_bytes struct bytes text = list(f, "d");
	return strcmp((char *)text.data, "dir/\n") == 0;
}

static void a_directory_stays(void **state)
{
	struct fixture *f = *state;
	for (int is_listing = 0; is_listing < 2; is_listing++) {
		unsigned int at = 0;
		do
			assert_true(is_shown_meanwhile(f, is_listing, ++at));
		while (f->gate->n >= at);
		assert_true(at > 3);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_stores_share_pages),
		TEST(the_keys_are_kept),
		TEST(large_stores_are_listed_one_by_one),
		TEST(large_stores_after_small_ones),
		TEST(a_few_stores),
		TEST(a_store_with_empty_prefixes),
		TEST(documents_count),
		TEST(failures),
		TEST(a_directory_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
