/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads that create, write, commit, rename and remove the same names. */
#include "drafts_fixture.h"

#include <pthread.h>
#include <time.h>

enum { THREADS = 8, ROUNDS = 40, NAMES = 3 };

static void run(void *(*fn)(void *), void *arg, size_t step)
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn, (char *)arg + i * step), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- creating ---- */

static struct world *world;
static char shared[32];
static atomic_uint created;

static void *create(void *arg)
{
	struct engine_file *f = NULL;
	const int rc = engine_open_write(world->e, shared, ONLY_NEW, &f, NULL);
	if (rc == 0) {
		atomic_fetch_add(&created, 1);
		put_text(f, 0, "winner");
		engine_flush(f, NULL);
		engine_file_close(f);
	} else if (rc != -EEXIST) {
		fail_msg("%d", rc);
	}
	return NULL;
}

static void one_of_them_creates_the_file(void **state)
{
	struct world w;
	table_begin(&w, false, 4);
	world = &w;
	for (int i = 0; i < ROUNDS; i++) {
		snprintf(shared, sizeof(shared), "name%d", i);
		created = 0;
		run(create, NULL, 0);
		assert_int_equal(created, 1);
		check_bucket(&w, shared, "winner");
	}
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

/* ---- all at once ---- */

struct job {
	unsigned int seed;
};

static const char *name_of(unsigned int i)
{
	static const char *const names[NAMES] = {"a", "b", "c"};
	return names[i % NAMES];
}

static int random_below(struct job *j, unsigned int n)
{
	return (int)((unsigned int)rand_r(&j->seed) % n);
}

/* Writes some bytes, with flushes between them. Errors that another thread causes are allowed: a
 * removed file is not found, and an object that is replaced has another version. */
static void write_file(struct job *j)
{
	struct engine_file *f = NULL;
	char buf[64];
	const unsigned int flags = random_below(j, 2) ? NEW : ENGINE_CREATE;
	if (engine_open_write(world->e, name_of((unsigned int)random_below(j, NAMES)), flags, &f,
			      NULL))
		return;
	for (int n = random_below(j, 4); n > 0; n--) {
		memset(buf, 'a' + random_below(j, 26), sizeof(buf));
		assert_int_equal(
			engine_pwrite(f, buf, sizeof(buf), (uint64_t)random_below(j, 200), NULL),
			sizeof(buf));
		if (random_below(j, 2) == 0)
			engine_flush(f, NULL);
		engine_pread(f, buf, sizeof(buf), 0, NULL, NULL);
	}
	if (random_below(j, 4) == 0)
		engine_resize(f, (uint64_t)random_below(j, 300), NULL);
	engine_flush(f, NULL);
	engine_file_close(f);
}

static void read_file(struct job *j)
{
	struct engine_file *f = NULL;
	struct engine_stat st;
	char buf[512], text[4096] = "";
	bool alone;
	const char *name = name_of((unsigned int)random_below(j, NAMES));
	if (engine_file_open(world->e, name, &f, NULL) == 0) {
		engine_file_stat(f, &st);
		engine_pread(f, buf, sizeof(buf), 0, NULL, NULL);
		engine_file_close(f);
	}
	if (engine_draft_stat(world->e, name, &st, &alone) &&
	    engine_open_draft(world->e, st.version, &f, NULL) == 0) {
		engine_pread(f, buf, sizeof(buf), 0, NULL, NULL);
		engine_file_close(f);
	}
	engine_getattr(world->e, name, &st, NULL);
	engine_list(world->e, "", add_listed, text, NULL);
	engine_getxattr(world->e, name, "user.hsds.error", buf, sizeof(buf), NULL);
	table_counts(world);
}

static void *work(void *arg)
{
	struct job *j = arg;
	for (int i = 0; i < ROUNDS; i++) {
		const unsigned int from = (unsigned int)random_below(j, NAMES);
		switch (random_below(j, 8)) {
		case 0:
			engine_unlink(world->e, name_of(from), NULL);
			break;
		case 1:
			engine_rename(world->e, name_of(from), name_of(from + 1), 0, NULL);
			break;
		case 2:
		case 3:
			read_file(j);
			break;
		default:
			write_file(j);
		}
	}
	return NULL;
}

/* Whatever happens, nothing is left: no draft, and no name that is held. */
static void everything_ends(void **state)
{
	const bool dirs[] = {false, true};
	for (int i = 0; i < 2; i++) {
		struct world w;
		struct job jobs[THREADS];
		table_begin(&w, dirs[i], 4);
		world = &w;
		for (unsigned int k = 0; k < THREADS; k++)
			jobs[k].seed = k + 1;
		run(work, jobs, sizeof(jobs[0]));
		assert_int_equal(table_counts(&w).drafts_open, 0);
		for (unsigned int k = 0; k < NAMES; k++) {
			make_file(&w, name_of(k), "last");
			check_bucket(&w, name_of(k), "last");
			check_name(&w, name_of(k), "last");
			assert_int_equal(engine_unlink(w.e, name_of(k), NULL), 0);
		}
		assert_int_equal(table_counts(&w).drafts_failed, 0);
		assert_int_equal(table_journal(&w), 0);
		table_end(&w);
	}
}

/* ---- a commit that runs ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool commit_runs, go_on;

static void stay(struct store *bucket)
{
	pthread_mutex_lock(&lock);
	commit_runs = true;
	pthread_cond_broadcast(&changed);
	while (!go_on)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void *flush(void *arg)
{
	flush_ok(arg);
	return NULL;
}

static atomic_bool has_ended;

static void *remove_a(void *arg)
{
	assert_int_equal(engine_unlink(world->e, "a", NULL), 0);
	atomic_store(&has_ended, true);
	return NULL;
}

static void *rename_a(void *arg)
{
	assert_int_equal(engine_rename(world->e, "a", "b", 0, NULL), 0);
	atomic_store(&has_ended, true);
	return NULL;
}

/* Calls fn while `commit` stores the file f: it waits for the end of the commit. */
static void during(struct world *w, struct engine_file *f, void *(*commit)(void *),
		   void *(*fn)(void *))
{
	const struct timespec moment = {.tv_nsec = 20000000};
	pthread_t committer, other;
	world = w;
	commit_runs = go_on = false;
	atomic_store(&has_ended, false);
	world_open_gate(w);
	w->gate->other_at = 1;
	w->gate->other = stay;
	assert_int_equal(pthread_create(&committer, NULL, commit, f), 0);
	pthread_mutex_lock(&lock);
	while (!commit_runs)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	assert_int_equal(pthread_create(&other, NULL, fn, NULL), 0);
	nanosleep(&moment, NULL); /* nothing shows that it waits, except that it does not end */
	assert_false(atomic_load(&has_ended));
	pthread_mutex_lock(&lock);
	go_on = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(committer, NULL);
	pthread_join(other, NULL);
}

/* Calls fn during a commit of the new file "a". */
static struct engine_file *during_commit(struct world *w, void *(*fn)(void *))
{
	table_begin(w, false, 4);
	struct engine_file *f = open_write(w, "a", NEW);
	put_text(f, 0, "bytes");
	during(w, f, flush, fn);
	return f;
}

static void a_removal_waits_for_the_commit(void **state)
{
	struct world w;
	struct engine_file *f = during_commit(&w, remove_a);
	assert_false(in_bucket(&w, "a"));
	put_text(f, 0, "lost");
	close_ok(f);
	assert_false(in_bucket(&w, "a"));
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void a_renaming_waits_for_the_commit(void **state)
{
	struct world w;
	struct engine_file *f = during_commit(&w, rename_a);
	assert_false(in_bucket(&w, "a"));
	check_bucket(&w, "b", "bytes");
	put_text(f, 5, " more");
	close_ok(f);
	check_bucket(&w, "b", "bytes more");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

static void *close_a(void *arg)
{
	engine_file_close(arg);
	return NULL;
}

static void *open_a(void *arg)
{
	struct engine_file *f = open_write(world, "a", 0);
	atomic_store(&has_ended, true);
	check_text(f, "new bytes");
	put_text(f, 0, "NEW");
	close_ok(f);
	return NULL;
}

/* Otherwise the next program would write above what was replaced meanwhile. */
static void an_open_waits_for_the_last_commit(void **state)
{
	struct world w;
	table_begin(&w, false, 4);
	world_put(&w, "a", "old bytes", 9);
	struct engine_file *f = open_write(&w, "a", 0);
	put_text(f, 0, "new");
	during(&w, f, close_a, open_a);
	check_bucket(&w, "a", "NEW bytes");
	assert_int_equal(table_journal(&w), 0);
	table_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_of_them_creates_the_file),	 TEST(everything_ends),
		TEST(a_removal_waits_for_the_commit),	 TEST(a_renaming_waits_for_the_commit),
		TEST(an_open_waits_for_the_last_commit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
