/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of all levels of a directory: when they are made, and what they show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <diskcache/diskcache.h>
#include <store/page.h>
#include <store/store.h>
#include <bucket/schemas.h>

#include "names/children.h"
#include "names/flat_list.h"
#include "names/name_cache.h"
#include "names/node.h"
#include "names/rules.h"
#include "mem_store.h"
#include "store_calls.h"

struct fixture {
	struct pool *pool;
	struct env env;
	struct store *store;
	struct names names;
	char base[64], dir[96]; /* of the cache on disk */
};

static void begin(struct fixture *f)
{
	struct names_doc none = {0};
	*f = (struct fixture){.pool = pool_new(0)};
	f->env = env_real(NULL, f->pool);
	f->store = store_mem_new(&f->env, NULL);
	f->names = (struct names){.env = &f->env,
				  .store = f->store,
				  .schemas = schema_all(),
				  .cache = names_cache_new(NULL)};
	auto_names_node struct names_node *dir = names_node_new("d", NAMES_DIR, "d", &none);
	names_cache_put(f->names.cache, dir, 0, UINT64_MAX, 0);
}

static void end(struct fixture *f)
{
	names_cache_free(f->names.cache);
	store_free(f->store);
	pool_free(f->pool);
}

/* ---- with a cache on disk ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void open_disk(struct fixture *f)
{
	const struct store_diskcache_options opt = {
		.dir = f->dir, .scope = "bucket", .max_bytes = 1 << 30, .max_object = 1 << 20};
	struct err err = ERR_INIT;
	f->store = f->names.store = f->names.disk = store_diskcache_new(f->store, &opt, &err);
	if (!f->store)
		fail_msg("%s", err.msg);
}

static void begin_on_disk(struct fixture *f)
{
	char base[] = "/tmp/hsmount-flat-XXXXXX";
	begin(f);
	assert_non_null(mkdtemp(base));
	snprintf(f->base, sizeof(f->base), "%s", base);
	snprintf(f->dir, sizeof(f->dir), "%s/cache", base);
	open_disk(f);
}

/* Another mount of the bucket, which is empty. */
static void begin_again(struct fixture *f)
{
	const struct fixture old = *f;
	end(f);
	begin(f);
	strcpy(f->base, old.base);
	strcpy(f->dir, old.dir);
	open_disk(f);
}

static void end_on_disk(struct fixture *f)
{
	end(f);
	nftw(f->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(struct fixture *f, const char *key)
{
	assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
}

static int flat_children(struct names *ns, const struct store_page *flat, const char *path)
{
	struct names_below b = {.path = path};
	assert_int_equal(names_children_flat(ns, flat, &b), 0);
	names_below_release(&b);
	return b.children;
}

static void keys_of_one_prefix_are_one_entry(void **state)
{
	static const char *const keys[] = {"d/a",   "d/a.h5/.domain.json", "d/a.h5/x", "d/a/y/z",
					   "d/b-c", "d/b/.domain.json",	   "d/e/"};
	static const char *const grouped[] = {"d/a", "d/a.h5/", "d/a/", "d/b-c", "d/b/", "d/e/"};
	struct store_page flat, page;
	struct fixture f;
	begin(&f);
	assert_int_equal(store_page_init(&flat), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(store_page_add(&flat, keys[i], &(struct store_meta){.size = i}),
				 0);
	assert_int_equal(names_flat_group(&flat, "d", &page), 0);
	assert_int_equal(page.n, sizeof(grouped) / sizeof(grouped[0]));
	for (size_t i = 0; i < page.n; i++) {
		assert_string_equal(page.items[i].key, grouped[i]);
		assert_int_equal(page.items[i].is_prefix,
				 grouped[i][strlen(grouped[i]) - 1] == '/');
	}
	assert_int_equal(flat_children(&f.names, &flat, "d/a.h5"), CHILDREN_MORE);
	assert_int_equal(flat_children(&f.names, &flat, "d/a"), CHILDREN_MORE);
	assert_int_equal(flat_children(&f.names, &flat, "d/b"), CHILDREN_DOC);
	assert_int_equal(flat_children(&f.names, &flat, "d/f"), CHILDREN_NONE);
	store_page_release(&page);
	store_page_release(&flat);
	end(&f);
}

/* A directory that turns out to have many keys is not listed in this way again. */
static void a_directory_with_many_keys(void **state)
{
	struct store_page page = {0};
	struct fixture f;
	char key[32];
	begin(&f);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", 20, false);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", (1 << 18) + 1, true);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", 1 << 18, true);
	assert_int_equal(names_flat_limit(&f.names, "d"), (2 << 18) + 1000);
	names_flat_note(&f.names, "d", 20, true);
	const uint32_t limit = names_flat_limit(&f.names, "d");
	assert_int_equal(limit, 1040);
	for (uint32_t i = 0; i < limit; i++) {
		snprintf(key, sizeof(key), "d/x/%u", i);
		put(&f, key);
	}
	assert_int_equal(names_flat_list(&f.names, "d", &page), 0);
	assert_int_equal(page.n, limit);
	store_page_release(&page);
	put(&f, "d/one more");
	assert_int_equal(names_flat_list(&f.names, "d", &page), -E2BIG);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", 20, true);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	end(&f);
}

/* A later mount knows from the cache on disk that a directory has few keys. */
static void a_later_mount(void **state)
{
	struct store_page page = {0};
	struct fixture f;
	char key[32];
	begin_on_disk(&f);
	names_flat_note(&f.names, "d", 20, true);
	names_flat_note(&f.names, "e", 30, true);
	begin_again(&f);
	assert_int_equal(names_flat_limit(&f.names, "d"), 1040);
	names_flat_note(&f.names, "d", 0, false);
	begin_again(&f);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", (1 << 18) + 1, true);
	begin_again(&f);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	names_flat_note(&f.names, "d", 20, true);
	for (uint32_t i = 0; i <= 1040; i++) {
		snprintf(key, sizeof(key), "d/x/%u", i);
		put(&f, key);
	}
	assert_int_equal(names_flat_list(&f.names, "d", &page), -E2BIG);
	begin_again(&f);
	assert_int_equal(names_flat_limit(&f.names, "d"), 0);
	end_on_disk(&f);
}

/* A record that another program has written is not used. */
static void records_that_are_no_numbers(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} records[] = {{"", 0}, {"\1\0\0", 3}, {"\1\0\0\0\0", 5}, {"\1\0\4\0", 4}};
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		struct fixture f;
		begin_on_disk(&f);
		assert_true(store_diskcache_remember(f.names.disk, "flat\nd", "1", 0,
						     records[i].bytes, records[i].n));
		begin_again(&f);
		assert_int_equal(names_flat_limit(&f.names, "d"), 0);
		end_on_disk(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_one_prefix_are_one_entry),
		cmocka_unit_test(a_directory_with_many_keys),
		cmocka_unit_test(a_later_mount),
		cmocka_unit_test(records_that_are_no_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
