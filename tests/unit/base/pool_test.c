/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: jobs run inline without threads, in order of submission, and all of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <base/pool.h>

/* Jobs record their numbers in the order in which they run. */
struct diary {
	pthread_mutex_t lock;
	unsigned int n;
	unsigned int who[256];
};

struct entry {
	struct diary *diary;
	unsigned int who;
};

static void write_down(void *arg)
{
	struct entry *e = arg;
	pthread_mutex_lock(&e->diary->lock);
	e->diary->who[e->diary->n++] = e->who;
	pthread_mutex_unlock(&e->diary->lock);
}

static void note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
}

static void no_workers_means_inline(void **state)
{
	struct pool *pool = pool_new(0);
	pthread_t who;
	assert_int_equal(pool_submit(pool, note_thread, &who), 0);
	assert_true(pthread_equal(who, pthread_self()));
	pool_free(pool);
}

static void jobs_run_in_order(void **state)
{
	enum { JOBS = 200 };
	struct diary diary = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct entry entries[JOBS];
	struct pool *pool = pool_new(1);
	for (unsigned int i = 0; i < JOBS; i++) {
		entries[i] = (struct entry){&diary, i};
		assert_int_equal(pool_submit(pool, write_down, &entries[i]), 0);
	}
	pool_free(pool); /* runs the queued jobs */
	assert_int_equal(diary.n, JOBS);
	for (unsigned int i = 0; i < JOBS; i++)
		assert_int_equal(diary.who[i], i);
}

static unsigned int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

/* The system lists a thread for a moment after pthread_join() has returned. */
static void wait_for_threads(unsigned int most)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	for (int i = 0; count_threads() > most; i++) {
		assert_true(i < 10000);
		nanosleep(&pause, NULL);
	}
}

static void threads_start_with_the_first_job(void **state)
{
	unsigned int before = count_threads();
	struct pool *pool = pool_new(4);
	pthread_t who;
	assert_int_equal(count_threads(), before);
	assert_int_equal(pool_submit(pool, note_thread, &who), 0);
	pool_free(pool);
	assert_false(pthread_equal(who, pthread_self()));
}

struct meeting {
	sem_t arrived, leave;
};

static void meet(void *arg)
{
	struct meeting *m = arg;
	sem_post(&m->arrived);
	sem_wait(&m->leave);
}

static bool wait_up_to_10s(sem_t *sem)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	return sem_timedwait(sem, &until) == 0;
}

static void all_workers_work_at_once(void **state)
{
	enum { WORKERS = 5 };
	struct meeting m;
	struct pool *pool = pool_new(WORKERS);
	int arrived = 0;
	sem_init(&m.arrived, 0, 0);
	sem_init(&m.leave, 0, 0);
	/* First with threads that must be started, then with idle threads. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < WORKERS; i++)
			assert_int_equal(pool_submit(pool, meet, &m), 0);
		for (int i = 0; i < WORKERS; i++)
			arrived += wait_up_to_10s(&m.arrived);
		for (int i = 0; i < WORKERS; i++)
			sem_post(&m.leave);
	}
	pool_free(pool);
	assert_int_equal(arrived, 2 * WORKERS);
}

/* An idle worker that was woken for one job does not take the next. */
static void one_idle_worker_is_not_two(void **state)
{
	struct timespec while_it_becomes_idle = {.tv_nsec = 50 * 1000000};
	struct meeting m;
	struct pool *pool = pool_new(2);
	pthread_t who;
	int arrived = 0;
	sem_init(&m.arrived, 0, 0);
	sem_init(&m.leave, 0, 0);
	assert_int_equal(pool_submit(pool, note_thread, &who), 0);
	nanosleep(&while_it_becomes_idle, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pool_submit(pool, meet, &m), 0);
	for (int i = 0; i < 2; i++)
		arrived += wait_up_to_10s(&m.arrived);
	for (int i = 0; i < 2; i++)
		sem_post(&m.leave);
	pool_free(pool);
	assert_int_equal(arrived, 2);
}

struct chain {
	struct pool *pool;
	atomic_int left;
};

static void next_link(void *arg)
{
	struct chain *chain = arg;
	if (atomic_fetch_sub(&chain->left, 1) > 1)
		pool_submit(chain->pool, next_link, chain);
}

static void jobs_may_submit_jobs(void **state)
{
	for (unsigned int workers = 0; workers <= 3; workers++) {
		struct chain chain = {.pool = pool_new(workers)};
		atomic_init(&chain.left, 100);
		assert_int_equal(pool_submit(chain.pool, next_link, &chain), 0);
		pool_free(chain.pool); /* while jobs still submit jobs */
		assert_int_equal(atomic_load(&chain.left), 0);
	}
}

static void note_mask(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void workers_take_no_signals(void **state)
{
	sigset_t before, after, inside;
	struct pool *pool = pool_new(1);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(pool_submit(pool, note_mask, &inside), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	pool_free(pool);
	assert_true(sigismember(&inside, SIGINT));
	assert_true(sigismember(&inside, SIGTERM));
	assert_true(sigismember(&inside, SIGHUP));
	assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

struct submitter {
	struct pool *pool;
	atomic_int *ran;
};

static void *submit_many(void *arg)
{
	struct submitter *s = arg;
	for (int i = 0; i < 1000; i++)
		pool_submit(s->pool, count, s->ran);
	return NULL;
}

static void nothing_is_lost_under_load(void **state)
{
	enum { SUBMITTERS = 4 };
	atomic_int ran;
	struct submitter s = {.pool = pool_new(3), .ran = &ran};
	pthread_t threads[SUBMITTERS];
	atomic_init(&ran, 0);
	for (int i = 0; i < SUBMITTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &s), 0);
	for (int i = 0; i < SUBMITTERS; i++)
		pthread_join(threads[i], NULL);
	pool_free(s.pool);
	assert_int_equal(atomic_load(&ran), SUBMITTERS * 1000);
}

/* Like a program that forks after it has used the pool. */
static void work_goes_on_after_the_threads_were_stopped(void **state)
{
	const unsigned int before = count_threads();
	struct pool *pool = pool_new(3);
	struct chain chain = {.pool = pool};
	for (int round = 1; round <= 3; round++) {
		atomic_init(&chain.left, 100);
		assert_int_equal(pool_submit(pool, next_link, &chain), 0);
		pool_stop_threads(pool); /* while jobs still submit jobs */
		assert_int_equal(atomic_load(&chain.left), 0);
		wait_for_threads(before);
	}
	pool_stop_threads(pool);
	pool_free(pool);
}

static void free_of_nothing(void **state)
{
	pool_free(NULL);
	pool_free(pool_new(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_workers_means_inline),
		cmocka_unit_test(jobs_run_in_order),
		cmocka_unit_test(threads_start_with_the_first_job),
		cmocka_unit_test(all_workers_work_at_once),
		cmocka_unit_test(one_idle_worker_is_not_two),
		cmocka_unit_test(jobs_may_submit_jobs),
		cmocka_unit_test(workers_take_no_signals),
		cmocka_unit_test(nothing_is_lost_under_load),
		cmocka_unit_test(work_goes_on_after_the_threads_were_stopped),
		cmocka_unit_test(free_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
