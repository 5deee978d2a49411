/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are held, and drafts in the table. */
#include "drafts_fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "drafts/draft_table.h"

enum { THREADS = 6, ROUNDS = 500 };

static struct world *world;
static atomic_uint inside[2];

/* Each thread holds "a", "b" or both. Nobody else holds them meanwhile. */
static void *hold_names(void *arg)
{
	static const char *const names[] = {"a", "b"};
	const unsigned int which = *(const unsigned int *)arg % 3 + 1; /* bits */
	struct draft_hold h;
	for (int i = 0; i < ROUNDS; i++) {
		const char *first = names[which == 2], *second = which == 3 ? names[1] : NULL;
		if (which == 3 && i % 2)
			draft_table_hold(world->e->drafts, &h, second, first);
		else
			draft_table_hold(world->e->drafts, &h, first, second);
		for (unsigned int k = 0; k < 2; k++)
			if (which >> k & 1)
				assert_int_equal(atomic_fetch_add(&inside[k], 1), 0);
		for (unsigned int k = 0; k < 2; k++)
			if (which >> k & 1)
				assert_int_equal(atomic_fetch_sub(&inside[k], 1), 1);
		draft_table_release(world->e->drafts, &h);
	}
	return NULL;
}

static void one_at_a_time_holds_a_name(void **state)
{
	struct world w;
	pthread_t threads[THREADS];
	unsigned int numbers[THREADS];
	table_begin(&w, false, 0);
	world = &w;
	for (unsigned int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, hold_names, &numbers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	table_end(&w);
}

static void without_a_table_nothing_is_held(void **state)
{
	struct draft_hold h;
	draft_table_hold(NULL, &h, "a", "b");
	draft_table_release(NULL, &h);
	assert_false(drafts_is_alone(NULL, "a"));
	assert_false(drafts_has_entries(NULL, ""));
	assert_false(drafts_detach(NULL, "a"));
	assert_null(drafts_error(NULL, "a"));
	drafts_free(NULL);
}

static void a_draft_is_found_by_name_and_version(void **state)
{
	struct world w;
	struct draft_hold h;
	table_begin(&w, false, 0);
	struct drafts *t = w.e->drafts;
	struct file_draft *d = file_draft_new(t, DRAFT_NEW);
	assert_non_null(d);
	d->name = strdup("a");
	pthread_mutex_lock(&t->lock);
	assert_int_equal(draft_table_add_locked(d), 0);
	assert_ptr_equal(draft_table_find_locked(t, "a"), d);
	assert_ptr_equal(draft_table_find_version_locked(t, d->version), d);
	assert_true(draft_table_rename_locked(d, strdup("b")));
	assert_null(draft_table_find_locked(t, "a"));
	assert_ptr_equal(draft_table_find_locked(t, "b"), d);
	pthread_mutex_unlock(&t->lock);
	assert_true(draft_table_hold_draft(d, &h));
	assert_string_equal(h.names[0], "b");
	draft_table_release(t, &h);
	pthread_mutex_lock(&t->lock);
	draft_table_set_aside_locked(d);
	assert_null(draft_table_find_locked(t, "b"));
	pthread_mutex_unlock(&t->lock);
	assert_false(draft_table_hold_draft(d, &h));
	const uint64_t version = d->version;
	file_draft_unref(d); /* the table has it */
	draft_table_drop_aside(t, "a");
	pthread_mutex_lock(&t->lock);
	assert_ptr_equal(draft_table_find_version_locked(t, version), d);
	pthread_mutex_unlock(&t->lock);
	draft_table_drop_aside(t, "b");
	pthread_mutex_lock(&t->lock);
	assert_null(draft_table_find_version_locked(t, version));
	pthread_mutex_unlock(&t->lock);
	table_end(&w);
}

/* ---- the last close ---- */

static void *close_file(void *file)
{
	engine_file_close(file);
	return NULL;
}

static unsigned int writers_of(struct drafts *t, const char *name)
{
	pthread_mutex_lock(&t->lock);
	const struct file_draft *d = draft_table_find_locked(t, name);
	const unsigned int n = d ? d->writers : 0;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* A program opens an incomplete file when its last close waits for the name: it was not the last
 * one, and does not commit the file. */
static void an_open_overtakes_the_last_close(void **state)
{
	static const char part[] = "\x89HDF\r\n\x1a\n and no more";
	struct world w;
	struct draft_hold h;
	pthread_t closer;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "part.h5", NEW);
	put_text(f, 0, part);
	flush_ok(f);
	draft_table_hold(w.e->drafts, &h, "part.h5", NULL);
	assert_int_equal(pthread_create(&closer, NULL, close_file, f), 0);
	while (writers_of(w.e->drafts, "part.h5"))
		usleep(100);
	f = open_write(&w, "part.h5", 0);
	draft_table_release(w.e->drafts, &h);
	pthread_join(closer, NULL);
	assert_false(in_bucket(&w, "part.h5"));
	engine_file_close(f);
	check_bucket(&w, "part.h5", part);
	table_end(&w);
}

/* ---- recovery ---- */

static bool was_held;

static void look_at_hold(struct store *bucket)
{
	struct drafts *t = world->e->drafts;
	pthread_mutex_lock(&t->lock);
	was_held = t->holds && strcmp(t->holds->names[0], "home/a") == 0;
	pthread_mutex_unlock(&t->lock);
}

/* No program of this mount makes, renames or removes a file while its draft is recovered. */
static void a_recovery_holds_the_name(void **state)
{
	static const struct commit_record begun = {
		.number = 1, .state = COMMIT_BEGUN, .is_last = true};
	const atomic_bool stop = false;
	atomic_uint_fast64_t left = 0;
	struct world w;
	struct draft_snapshot *s;
	table_begin(&w, false, 0);
	world = &w;
	world_draft(&w, "home/a");
	world_write(&w, "hello", 5);
	assert_int_equal(draft_seal(w.draft, &s, NULL), 0);
	assert_int_equal(draft_mark(w.draft, commit_record_encode(&begun), NULL), 0);
	draft_snapshot_close(s);
	draft_close(w.draft);
	w.draft = NULL;
	world_open_gate(&w);
	w.gate->other_at = 1;
	w.gate->other = look_at_hold;
	drafts_recover(&w.e->bucket, w.e->drafts, w.f.j, &stop, &left);
	assert_int_equal(left, 0);
	check_bucket(&w, "home/a", "hello");
	assert_true(was_held);
	assert_null(w.e->drafts->holds);
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_at_a_time_holds_a_name),
		TEST(without_a_table_nothing_is_held),
		TEST(a_draft_is_found_by_name_and_version),
		TEST(an_open_overtakes_the_last_close),
		TEST(a_recovery_holds_the_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
