/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versions of chunks and documents: from the listing; from the first load, where there is no
 * listing; a chunk that is loaded in two versions; the limits of what is kept.
 */
#include "domain_fixture.h"

#include <errno.h>
#include <unistd.h>

#include <diskcache/diskcache.h>
#include <bucket/schemas.h>

#include "domain/domain_internal.h"

#define CHUNK SMALL_PREFIX "/d/0002-000000-000001/1"

enum { STORED = 1 }; /* the only stored chunk of ints */

static void open_domain(struct fixture *f, struct domain *previous)
{
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	const struct domain_hint hint = {.previous = previous};
	if (domain_open(&(struct domain_bucket){.env = &f->env,
						.store = f->store,
						.schemas = schema_all()},
			"d.h5", &hint, &d, &err))
		fail_msg("%s", err.msg);
	domain_unref(f->domain);
	f->domain = d;
}

/* More keys than a listing shows. */
static void make_large(struct fixture *f)
{
	char key[128];
	for (int i = 0; i < DOMAIN_LISTING; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%d", 100 + i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
}

static void open_large(struct fixture *f)
{
	make_large(f);
	open_domain(f, NULL);
	assert_false(domain_sees_chunks(f->domain));
}

static uint32_t number_of(const struct fixture *f, const char *id)
{
	for (uint32_t i = 0; i < tree_count(domain_tree(f->domain)); i++)
		if (!strcmp(tree_object(domain_tree(f->domain), i)->o.id, id))
			return i;
	fail_msg("no object %s", id);
	return 0;
}

static void see(void *arg, struct chunk_result *chunk)
{
	int *code = arg;
	*code = chunk->code;
	elems_release(&chunk->data.elems);
}

static int load(struct fixture *f, uint64_t chunk)
{
	const struct chunk_source chunks = domain_chunk_source(f->domain);
	const struct chunk_request request = {.dataset = number_of(f, SMALL_INTS), .number = chunk};
	int code = 1;
	chunks.get(chunks.ctx, &request, see, &code);
	return code;
}

static void put_other(struct fixture *f)
{
	static const int32_t other[4] = {1, 2, 3, 4};
	assert_int_equal(call_put(f->store, CHUNK, other, sizeof(other), NULL, NULL, NULL), 0);
}

static void etag_of(struct fixture *f, const char *key, char etag[STORE_ETAG_MAX])
{
	struct store_meta meta;
	assert_int_equal(call_head(f->store, key, &meta, NULL), 0);
	assert_true(meta.etag[0]);
	strcpy(etag, meta.etag);
}

static void check(struct fixture *f, uint64_t chunk, const char *expected, bool expect_absent)
{
	char etag[STORE_ETAG_MAX];
	bool absent;
	assert_int_equal(
		domain_chunk_version(f->domain, number_of(f, SMALL_INTS), chunk, etag, &absent), 0);
	assert_string_equal(etag, expected);
	assert_int_equal(absent, expect_absent);
}

static void of_the_listing(void **state)
{
	struct fixture *f = *state;
	char etag[STORE_ETAG_MAX], none[STORE_ETAG_MAX];
	bool absent;
	open_domain(f, NULL);
	etag_of(f, CHUNK, etag);
	check(f, STORED, etag, false);
	check(f, 0, "", true);
	put_other(f);
	check(f, STORED, etag, false); /* of the open */
	assert_int_equal(load(f, STORED), -ESTALE);
	check(f, STORED, etag, false);
	assert_int_equal(
		domain_chunk_version(f->domain, number_of(f, SMALL_INTS), 3, none, &absent),
		-EINVAL);
	assert_int_equal(domain_chunk_version(f->domain, 0, 0, none, &absent), -EINVAL);
	assert_int_equal(domain_chunk_version(f->domain, 1 << 20, 0, none, &absent), -EINVAL);
}

static void of_the_first_load(void **state)
{
	struct fixture *f = *state;
	char etag[STORE_ETAG_MAX];
	struct store_counts before, after;
	open_large(f);
	check(f, STORED, "", false);
	store_count_read(f->store, &before);
	assert_int_equal(load(f, STORED), 0);
	store_count_read(f->store, &after);
	assert_int_equal(after.calls[STORE_GET], before.calls[STORE_GET] + 1);
	assert_int_equal(after.calls[STORE_HEAD], before.calls[STORE_HEAD]);
	etag_of(f, CHUNK, etag);
	check(f, STORED, etag, false);
	assert_int_equal(load(f, STORED), 0);
	assert_int_equal(load(f, 0), 0); /* absent, which no listing proves */
	check(f, 0, "", false);
}

/* The open file fails; the next open has another snapshot, although no document has changed. */
static void a_chunk_in_two_versions(void **state)
{
	struct fixture *f = *state;
	char etag[STORE_ETAG_MAX];
	open_large(f);
	assert_int_equal(load(f, STORED), 0);
	etag_of(f, CHUNK, etag);
	put_other(f);
	assert_false(domain_is_outdated(f->domain));
	assert_int_equal(load(f, STORED), -ESTALE);
	assert_int_equal(load(f, STORED), -ESTALE);
	check(f, STORED, etag, false);
	assert_true(domain_is_outdated(f->domain));
	const struct domain *old = f->domain;
	open_domain(f, f->domain);
	assert_ptr_not_equal(f->domain, old);
	assert_int_equal(load(f, STORED), 0);
	etag_of(f, CHUNK, etag);
	check(f, STORED, etag, false);
}

/* The chunk is deleted after it was read: it has no fill value in this version. */
static void a_chunk_that_is_gone(void **state)
{
	struct fixture *f = *state;
	open_large(f);
	assert_int_equal(load(f, STORED), 0);
	assert_int_equal(call_delete(f->store, CHUNK, NULL, NULL), 0);
	assert_int_equal(load(f, STORED), -ESTALE);
	assert_true(domain_is_outdated(f->domain));
	open_domain(f, f->domain);
	assert_int_equal(load(f, STORED), 0);
	check(f, STORED, "", false);
}

/* A snapshot that nobody has open may read another version after it was opened again. */
static void forgotten_versions(void **state)
{
	struct fixture *f = *state;
	char etag[STORE_ETAG_MAX];
	open_large(f);
	assert_int_equal(load(f, STORED), 0);
	put_other(f);
	domain_forget_chunks(f->domain);
	check(f, STORED, "", false);
	assert_int_equal(load(f, STORED), 0);
	etag_of(f, CHUNK, etag);
	check(f, STORED, etag, false);
}

/* Without room in the budget, nothing is kept and nothing fails. */
static void without_room(void **state)
{
	struct fixture *f = *state;
	struct budget_stats stats;
	f->env.budget = budget_new(&(struct budget_limits){.bytes = 64 << 20, .option = "x"});
	struct budget_charge rest = {.budget = f->env.budget, .use = BUDGET_TREES};
	open_large(f);
	budget_get_stats(f->env.budget, &stats);
	const uint64_t used = stats.used[BUDGET_TREES];
	uint64_t bytes = 1;
	while (!budget_set(&rest, bytes, NULL))
		bytes *= 2;
	for (uint64_t step = bytes; step; step /= 2)
		if (!budget_set(&rest, rest.bytes + step, NULL))
			assert_true(rest.bytes < 2 * bytes);
	assert_int_equal(load(f, STORED), 0);
	check(f, STORED, "", false);
	put_other(f);
	assert_int_equal(load(f, STORED), 0);
	budget_set(&rest, 0, NULL);
	assert_int_equal(load(f, STORED), 0);
	budget_get_stats(f->env.budget, &stats);
	assert_true(stats.used[BUDGET_TREES] > used);
	domain_unref(f->domain);
	f->domain = NULL;
	budget_get_stats(f->env.budget, &stats);
	assert_int_equal(stats.used[BUDGET_TREES], 0);
	budget_free(f->env.budget);
	f->env.budget = NULL;
}

/* A load that began before the versions were forgotten may return the earlier one. */
static void a_late_load(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	open_large(f);
	const uint32_t ints = number_of(f, SMALL_INTS);
	const uint64_t before = domain_versions_begin(f->domain);
	domain_forget_chunks(f->domain);
	const uint64_t after = domain_versions_begin(f->domain);
	assert_int_equal(domain_versions_note(f->domain, before, ints, 1, "old", &err), 0);
	check(f, STORED, "", false);
	assert_int_equal(domain_versions_note(f->domain, after, ints, 1, "new", &err), 0);
	assert_int_equal(domain_versions_note(f->domain, before, ints, 1, "old", &err), 0);
	assert_int_equal(domain_versions_note(f->domain, after, ints, 1, "", &err), 0);
	check(f, STORED, "new", false);
	assert_int_equal(domain_versions_note(f->domain, after, ints, 1, "old", &err), -ESTALE);
}

/* The number of versions is limited. Those that are kept stay. */
static void very_many_chunks(void **state)
{
	enum { KEPT = 1 << 16 };
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	open_large(f);
	const uint64_t began = domain_versions_begin(f->domain);
	for (uint64_t i = 0; i < KEPT; i++)
		assert_int_equal(domain_versions_note(f->domain, began, 9, i, "a", &err), 0);
	assert_int_equal(load(f, STORED), 0);
	check(f, STORED, "", false);
	assert_int_equal(domain_versions_note(f->domain, began, 9, KEPT, "a", &err), 0);
	assert_int_equal(domain_versions_note(f->domain, began, 9, KEPT, "b", &err), 0);
	assert_int_equal(domain_versions_note(f->domain, began, 9, 0, "b", &err), -ESTALE);
}

static void of_documents(void **state)
{
	struct fixture *f = *state;
	const void *text;
	size_t len;
	char etag[STORE_ETAG_MAX];
	for (int large = 0; large < 2; large++) {
		if (large)
			make_large(f);
		open_domain(f, NULL);
		etag_of(f, SMALL_KEY_INTS, etag);
		assert_string_equal(
			domain_object_version(f->domain, number_of(f, SMALL_INTS), &text, &len),
			etag);
		assert_non_null(text);
		assert_non_null(memmem(text, len, SMALL_INTS, strlen(SMALL_INTS)));
		assert_string_equal(domain_object_version(f->domain, UINT32_MAX, &text, &len), "");
		assert_null(text);
	}
}

/* The version of a chunk from the disk is that of its bytes. */
static void with_a_cache_on_disk(void **state)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/hsmount-versions-XXXXXX", etag[STORE_ETAG_MAX], command[64];
	struct err err = ERR_INIT;
	assert_non_null(mkdtemp(dir));
	make_large(f);
	const struct store_diskcache_options opt = {
		.dir = dir, .scope = "test", .max_bytes = 1 << 20, .max_object = 1 << 20};
	f->store = store_diskcache_new(f->store, &opt, &err);
	assert_non_null(f->store);
	for (int i = 0; i < 3; i++) {
		open_domain(f, NULL);
		assert_int_equal(load(f, STORED), 0);
		etag_of(f, CHUNK, etag);
		check(f, STORED, etag, false);
		assert_int_equal(load(f, STORED), 0);
		if (i == 1) {
			put_other(f);
			assert_int_equal(load(f, STORED), -ESTALE);
			check(f, STORED, etag, false);
		}
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_the_listing, setup, teardown),
		cmocka_unit_test_setup_teardown(of_the_first_load, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chunk_in_two_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chunk_that_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(forgotten_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(without_room, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_load, setup, teardown),
		cmocka_unit_test_setup_teardown(very_many_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(of_documents, setup, teardown),
		cmocka_unit_test_setup_teardown(with_a_cache_on_disk, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
