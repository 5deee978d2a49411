/* SPDX-License-Identifier: Apache-2.0 */
/* Which sizes are remembered, in memory and on disk, and what is read from a damaged record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/env.h>
#include <base/fd.h>
#include <base/mem.h>
#include <diskcache/diskcache.h>
#include <snapshots/size_cache.h>

#include "mem_store.h"

static const struct size_version one = {SIZE_LISTED, 1}, two = {SIZE_LISTED, 2},
				 large = {SIZE_LARGE, 1};
static const struct file_size small = {5000, 10, true}, bigger = {9000, 18, true};

static bool has(struct size_cache *m, const char *path, const struct size_version *v,
		const struct file_size *expected)
{
	struct file_size found;
	if (!size_cache_find(m, path, v, &found))
		return false;
	assert_int_equal(found.size, expected->size);
	assert_int_equal(found.blocks, expected->blocks);
	assert_true(found.is_exact == expected->is_exact);
	return true;
}

static void a_size_belongs_to_a_version(void **state)
{
	struct size_cache *m = size_cache_new(NULL, NULL, 0);
	assert_false(has(m, "a", &one, &small));
	size_cache_keep(m, "a", &one, &small, 0);
	assert_true(has(m, "a", &one, &small));
	assert_false(has(m, "a", &two, &small));
	assert_false(has(m, "a", &large, &small));
	assert_false(has(m, "b", &one, &small));
	assert_true(size_cache_is(m, "a", SIZE_LISTED));
	size_cache_keep(m, "a", &large, &bigger, 0);
	assert_true(size_cache_is(m, "a", SIZE_LARGE));
	assert_true(has(m, "a", &large, &bigger));
	assert_false(has(m, "a", &one, &small));
	size_cache_free(m);
}

static void the_oldest_are_forgotten_first(void **state)
{
	const uint64_t limit = 16 << 20;
	struct budget *b = budget_new(&(struct budget_limits){.metadata_min = limit});
	struct size_cache *m = size_cache_new(NULL, b, 0);
	struct budget_stats stats;
	char path[32], half[32];
	int n = 0;
	do { /* until the first is forgotten */
		snprintf(path, sizeof(path), "%d", n++);
		size_cache_keep(m, path, &one, &small, 0);
	} while (has(m, "0", &one, &small));
	assert_true(has(m, "2", &one, &small));
	assert_true(has(m, path, &one, &small));
	budget_get_stats(b, &stats);
	assert_in_range(n, limit / SIZE_CACHE_PARTS / 256, limit / SIZE_CACHE_PARTS / 64);
	assert_in_range(stats.used[BUDGET_NAMES], limit / SIZE_CACHE_PARTS - (64 << 10),
			limit / SIZE_CACHE_PARTS + (64 << 10));
	/* Others get the memory if they need it. */
	struct budget_charge plan = {.budget = b, .use = BUDGET_PLANS};
	snprintf(half, sizeof(half), "%d", n / 2);
	assert_int_equal(budget_set(&plan, limit - limit / SIZE_CACHE_PARTS * 3 / 4, NULL), 0);
	assert_false(has(m, "2", &one, &small));
	assert_true(has(m, half, &one, &small));
	assert_int_equal(budget_set(&plan, limit, NULL), 0);
	assert_false(has(m, path, &one, &small));
	size_cache_keep(m, path, &one, &small, 0); /* finds no room */
	assert_false(has(m, path, &one, &small));
	assert_int_equal(budget_set(&plan, 0, NULL), 0);
	size_cache_free(m);
	budget_free(b);
}

static void a_record_is_checked(void **state)
{
	static const struct {
		uint64_t size, blocks;
		bool ok;
	} rows[] = {
		{1, 1, true},
		{UINT64_C(1) << 62, 1, true},
		{(UINT64_C(1) << 62) + 1, 1, false},
		{UINT64_MAX, 1, false},
		{0, 1, false},
		{4096, 0, false},
		{4096, UINT64_C(1) << 53, true},
		{4096, (UINT64_C(1) << 53) + 1, false},
		{4096, UINT64_MAX, false},
	};
	struct file_size found;
	uint8_t record[SIZE_RECORD];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct file_size size = {rows[i].size, rows[i].blocks, true};
		size_record_encode(&size, record);
		assert_true(size_record_decode(record, SIZE_RECORD, &found) == rows[i].ok);
		if (rows[i].ok)
			assert_true(found.size == size.size && found.blocks == size.blocks);
	}
	size_record_encode(&small, record);
	for (size_t n = 0; n < SIZE_RECORD; n++) {
		uint8_t *part = memcpy(malloc(n + 1), record, n);
		assert_false(size_record_decode(part, n, &found));
		free(part);
	}
}

/* ---- on disk ---- */

struct disk {
	struct pool *pool;
	struct env env;
	char dir[64];
	struct store *store;
};

static int setup(void **state)
{
	struct disk *d = calloc(1, sizeof(*d));
	d->pool = pool_new(0);
	d->env = env_real(NULL, d->pool);
	strcpy(d->dir, "/tmp/size_cache.XXXXXX");
	*state = d;
	return mkdtemp(d->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct disk *d = *state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", d->dir);
	const int rc = system(command);
	pool_free(d->pool);
	free(d);
	return rc;
}

/* What another mount of this bucket, or of another one, knows. */
static struct size_cache *begin(struct disk *d, const char *scope, unsigned int flags)
{
	const struct store_diskcache_options opt = {
		.dir = d->dir,
		.scope = scope,
		.max_bytes = 1 << 20,
		.max_object = 1 << 16,
		.settle_ns = 1000,
	};
	d->store = store_diskcache_new(store_mem_new(&d->env, NULL), &opt, NULL);
	assert_non_null(d->store);
	return size_cache_new(d->store, NULL, flags);
}

static void end(struct disk *d, struct size_cache *m)
{
	size_cache_free(m);
	store_free(d->store);
}

static bool knows(struct disk *d, const char *scope, unsigned int flags, const char *path,
		  const struct size_version *v, const struct file_size *expected)
{
	struct size_cache *m = begin(d, scope, flags);
	const bool known = has(m, path, v, expected);
	end(d, m);
	return known;
}

static void later_mounts_know_it(void **state)
{
	struct disk *d = *state;
	struct size_cache *m = begin(d, "bucket", 0);
	const struct file_size none = {4096, 8, false};
	size_cache_keep(m, "a", &one, &small, 0);
	size_cache_keep(m, "b", &large, &bigger, 0);
	size_cache_keep(m, "broken", &one, &none, 0);
	size_cache_keep(m, "young", &one, &small, INT64_MAX);
	end(d, m);
	assert_true(knows(d, "bucket", 0, "a", &one, &small));
	assert_true(knows(d, "bucket", 0, "b", &large, &bigger));
	assert_false(knows(d, "bucket", 0, "a", &two, &small));
	assert_false(knows(d, "bucket", 0, "b", &one, &small));
	assert_false(knows(d, "bucket", 1, "a", &one, &small));
	assert_false(knows(d, "another", 0, "a", &one, &small));
	assert_false(knows(d, "bucket", 0, "broken", &one, &none));
	assert_false(knows(d, "bucket", 0, "young", &one, &small));
}

/* A version that was too young is kept when it is found again. */
static void a_size_is_kept_when_it_has_settled(void **state)
{
	struct disk *d = *state;
	struct size_cache *m = begin(d, "bucket", 0);
	size_cache_keep(m, "a", &one, &small, INT64_MAX);
	size_cache_keep(m, "a", &one, &small, 0);
	end(d, m);
	assert_true(knows(d, "bucket", 0, "a", &one, &small));
}

/* Calls fn with each entry of the directory. */
static unsigned int each_entry(struct disk *d, void (*fn)(const char *path, size_t at), size_t at)
{
	DIR *dir = opendir(d->dir);
	char path[512];
	unsigned int n = 0;
	for (struct dirent *e; (e = readdir(dir));) {
		if (strlen(e->d_name) != 64)
			continue;
		snprintf(path, sizeof(path), "%s/%s", d->dir, e->d_name);
		fn(path, at);
		n++;
	}
	closedir(dir);
	return n;
}

static void flip(const char *path, size_t at)
{
	uint8_t byte;
	auto_close int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x41;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static void cut(const char *path, size_t n)
{
	assert_int_equal(truncate(path, (off_t)n), 0);
}

static void remove_entry(const char *path, size_t unused)
{
	assert_int_equal(unlink(path), 0);
}

/* What is on disk is not written again, unless it differs. */
static void a_size_is_written_once(void **state)
{
	const struct file_size sizes[] = {
		small, {small.size + 1, small.blocks, true}, {small.size, small.blocks + 1, true}};
	struct disk *d = *state;
	struct size_cache *m = begin(d, "bucket", 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_cache_keep(m, "a", &one, &small, 0);
		assert_int_equal(each_entry(d, remove_entry, 0), 1);
		size_cache_keep(m, "a", &one, &sizes[i], 0);
		assert_int_equal(each_entry(d, remove_entry, 0), i > 0);
		assert_true(has(m, "a", &one, &sizes[i]));
		size_cache_forget(m, "a");
		each_entry(d, remove_entry, 0);
	}
	end(d, m);
}

static void damage_is_noticed(void **state)
{
	static const size_t flipped[] = {0, 8, 31, 40, 64, 90};
	struct disk *d = *state;
	for (size_t i = 0; i < sizeof(flipped) / sizeof(flipped[0]) + 4; i++) {
		struct size_cache *m = begin(d, "bucket", 0);
		size_cache_keep(m, "a", &one, &small, 0);
		end(d, m);
		assert_true(knows(d, "bucket", 0, "a", &one, &small));
		if (i < 4)
			assert_int_equal(each_entry(d, cut, i * 33), 1);
		else
			assert_int_equal(each_entry(d, flip, flipped[i - 4]), 1);
		assert_false(knows(d, "bucket", 0, "a", &one, &small));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_belongs_to_a_version),
		cmocka_unit_test(the_oldest_are_forgotten_first),
		cmocka_unit_test(a_record_is_checked),
		cmocka_unit_test_setup_teardown(later_mounts_know_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_size_is_kept_when_it_has_settled, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_size_is_written_once, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_noticed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
