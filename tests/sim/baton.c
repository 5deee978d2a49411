/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See baton.h. Each thread is a task with a semaphore, which it waits for while others have the
 * baton. All data here belongs to the thread that has it.
 *
 * Invariants: a running or ready task waits for nothing. A mutex is taken with trylock only, so no
 * thread ever waits for one in the kernel.
 */
#include "baton.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum {
	TASKS_MAX = 256,
	PASS_NS = 50000,  /* at most, of virtual time */
	LOOK_NS = 100000, /* until the lock of a file is tried again */
};
#define SECOND	UINT64_C(1000000000)
#define LIFE_NS (30 * 86400 * SECOND) /* longer than any part of a history */

enum waits { READY, FOR_LOCK, FOR_CONDITION, FOR_END, FOR_TIME, ENDED };

struct task {
	pthread_t thread;
	sem_t turn;
	enum waits waits;
	const void *what; /* the lock, the condition or the task */
	uint64_t until;	  /* 0, or the moment at which the wait ends */
	bool timed_out;
	bool detached;
	void *(*fn)(void *arg);
	void *arg, *result;
};

static struct {
	struct baton_plan plan;
	bool runs;
	struct task *tasks[TASKS_MAX]; /* in the order of their creation */
	unsigned int n;
	uint64_t now, life_ns;
	struct baton_counts counts;
} baton;

static _Thread_local struct task *self; /* NULL: this thread is not a task */

/* ---- what the linker calls by the names of the C library ---- */

#define WRAP(type, name, ...)                                                                      \
	type __real_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__)

/* ---- choice ---- */

static const char *words(enum waits waits)
{
	static const char *const texts[] = {
		"is ready",	  "waits for a lock", "waits for a condition",
		"joins a thread", "sleeps",	      "has ended"};
	return texts[waits];
}

static void __attribute__((noreturn)) stuck(const char *why)
{
	fprintf(stderr, "%s after %" PRIu64 " passes of the baton:\n", why, baton.counts.passes);
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->waits != ENDED)
			fprintf(stderr, "  thread %u%s %s\n", i,
				baton.tasks[i] == self ? " (the last that ran)" : "",
				words(baton.tasks[i]->waits));
	abort();
}

static void wake(struct task *t, bool timed_out)
{
	t->waits = READY;
	t->what = NULL;
	t->until = 0;
	t->timed_out = timed_out;
}

/* Wakes whose moment has come. */
static void ring(void)
{
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->until && baton.tasks[i]->until <= baton.now)
			wake(baton.tasks[i], true);
}

static unsigned int count(enum waits waits)
{
	unsigned int n = 0;
	for (unsigned int i = 0; i < baton.n; i++)
		n += baton.tasks[i]->waits == waits;
	return n;
}

/* The k-th task with this state. */
static struct task *pick(enum waits waits, unsigned int k)
{
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->waits == waits && k-- == 0)
			return baton.tasks[i];
	abort();
}

static void jump(void)
{
	uint64_t first = UINT64_MAX;
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->until && baton.tasks[i]->until < first)
			first = baton.tasks[i]->until;
	if (first == UINT64_MAX)
		stuck("all threads wait for each other");
	if (first > baton.life_ns)
		stuck("nothing but timers has run for a month");
	baton.now = first;
}

static void wake_without_signal(void)
{
	const unsigned int n = count(FOR_CONDITION);
	if (!n || !baton.plan.spurious || !rng_once_in(&baton.plan.random, baton.plan.spurious))
		return;
	baton.counts.spurious++;
	wake(pick(FOR_CONDITION, rng_below(&baton.plan.random, n)), false);
}

static struct task *choose(void)
{
	unsigned int n;
	baton.counts.passes++;
	baton.now += 1 + rng_below(&baton.plan.random, PASS_NS);
	wake_without_signal();
	ring();
	while ((n = count(READY)) == 0) {
		jump();
		ring();
	}
	return pick(READY, rng_below(&baton.plan.random, n));
}

static void await_turn(struct task *t)
{
	while (sem_wait(&t->turn) && errno == EINTR)
		;
}

/* Gives the baton to somebody; returns when this task has it again. */
static void pass(void)
{
	struct task *me = self, *next = choose();
	if (next == me)
		return;
	baton.counts.switches++;
	sem_post(&next->turn);
	await_turn(me);
}

static void block(enum waits waits, const void *what, uint64_t until)
{
	self->waits = waits;
	self->what = what;
	self->until = until;
	self->timed_out = false;
	pass();
}

static void wake_all(enum waits waits, const void *what)
{
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->waits == waits && baton.tasks[i]->what == what)
			wake(baton.tasks[i], false);
}

/* Wakes one of those who wait, if any. */
static void wake_one(enum waits waits, const void *what)
{
	struct task *found[TASKS_MAX];
	unsigned int n = 0;
	for (unsigned int i = 0; i < baton.n; i++)
		if (baton.tasks[i]->waits == waits && baton.tasks[i]->what == what)
			found[n++] = baton.tasks[i];
	if (n)
		wake(found[rng_below(&baton.plan.random, n)], false);
}

/* ---- threads ---- */

static struct task *add_task(void)
{
	struct task *t = calloc(1, sizeof(*t));
	if (!t || baton.n == TASKS_MAX || sem_init(&t->turn, 0, 0))
		abort();
	baton.tasks[baton.n++] = t;
	baton.counts.threads++;
	return t;
}

static void remove_task(struct task *t)
{
	unsigned int i = 0;
	while (baton.tasks[i] != t)
		i++;
	baton.n--;
	memmove(&baton.tasks[i], &baton.tasks[i + 1], (baton.n - i) * sizeof(baton.tasks[0]));
	sem_destroy(&t->turn);
	free(t);
}

/* From the last line on, this thread is none of the simulation's: it runs beside the others, and
 * the C library frees what it has. */
static void *begin_task(void *arg)
{
	struct task *t = arg;
	await_turn(t);
	self = t;
	t->result = t->fn(t->arg);
	wake_all(FOR_END, t);
	t->waits = ENDED;
	if (t->detached)
		remove_task(t);
	struct task *next = choose();
	self = NULL;
	sem_post(&next->turn);
	return NULL;
}

static bool is_detached(const pthread_attr_t *attr)
{
	int state = PTHREAD_CREATE_JOINABLE;
	if (attr)
		pthread_attr_getdetachstate(attr, &state);
	return state == PTHREAD_CREATE_DETACHED;
}

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
     void *arg)
{
	if (!self)
		return __real_pthread_create(out, attr, fn, arg);
	struct task *t = add_task();
	t->fn = fn;
	t->arg = arg;
	t->detached = is_detached(attr);
	const int rc = __real_pthread_create(&t->thread, attr, begin_task, t);
	if (rc) {
		remove_task(t);
		return rc;
	}
	*out = t->thread;
	pass();
	return 0;
}

static struct task *task_of(pthread_t thread)
{
	for (unsigned int i = 0; i < baton.n; i++)
		if (pthread_equal(baton.tasks[i]->thread, thread) && !baton.tasks[i]->detached)
			return baton.tasks[i];
	return NULL;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	struct task *t = self ? task_of(thread) : NULL;
	if (!t)
		return __real_pthread_join(thread, result);
	while (t->waits != ENDED)
		block(FOR_END, t, 0);
	const int rc = __real_pthread_join(thread, NULL);
	if (result)
		*result = t->result;
	remove_task(t);
	return rc;
}

WRAP(int, pthread_detach, pthread_t thread)
{
	struct task *t = self ? task_of(thread) : NULL;
	if (t && t->waits == ENDED)
		remove_task(t);
	else if (t)
		t->detached = true;
	return __real_pthread_detach(thread);
}

/* ---- locks ---- */

static void pass_at_lock(void)
{
	if (rng_once_in(&baton.plan.random, baton.plan.locks))
		pass();
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *m)
{
	int rc;
	if (!self)
		return __real_pthread_mutex_lock(m);
	pass_at_lock();
	while ((rc = pthread_mutex_trylock(m)) == EBUSY)
		block(FOR_LOCK, m, 0);
	if (rc) {
		fprintf(stderr, "a thread takes a lock that was destroyed\n");
		abort();
	}
	return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
	if (self)
		wake_all(FOR_LOCK, m);
	return __real_pthread_mutex_unlock(m);
}

WRAP(int, pthread_rwlock_rdlock, pthread_rwlock_t *l)
{
	int rc;
	if (!self)
		return __real_pthread_rwlock_rdlock(l);
	pass_at_lock();
	while ((rc = pthread_rwlock_tryrdlock(l)) == EBUSY)
		block(FOR_LOCK, l, 0);
	return rc;
}

WRAP(int, pthread_rwlock_wrlock, pthread_rwlock_t *l)
{
	int rc;
	if (!self)
		return __real_pthread_rwlock_wrlock(l);
	pass_at_lock();
	while ((rc = pthread_rwlock_trywrlock(l)) == EBUSY)
		block(FOR_LOCK, l, 0);
	return rc;
}

WRAP(int, pthread_rwlock_unlock, pthread_rwlock_t *l)
{
	if (self)
		wake_all(FOR_LOCK, l);
	return __real_pthread_rwlock_unlock(l);
}

/* ---- conditions ---- */

/* A deadline of either clock as a moment of the virtual monotonic one. */
static uint64_t moment_of(const struct timespec *t)
{
	const uint64_t ns = (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
	const uint64_t moment = ns >= BATON_EPOCH ? ns - BATON_EPOCH : ns;
	return moment ? moment : 1;
}

static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until)
{
	__wrap_pthread_mutex_unlock(m);
	block(FOR_CONDITION, c, until);
	const bool timed_out = self->timed_out;
	const int rc = __wrap_pthread_mutex_lock(m);
	return rc ? rc : timed_out ? ETIMEDOUT : 0;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m)
{
	return self ? wait_for(c, m, 0) : __real_pthread_cond_wait(c, m);
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *end)
{
	return self ? wait_for(c, m, moment_of(end)) : __real_pthread_cond_timedwait(c, m, end);
}

WRAP(int, pthread_cond_signal, pthread_cond_t *c)
{
	if (!self)
		return __real_pthread_cond_signal(c);
	wake_one(FOR_CONDITION, c);
	return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *c)
{
	if (!self)
		return __real_pthread_cond_broadcast(c);
	wake_all(FOR_CONDITION, c);
	return 0;
}

/* ---- time ---- */

uint64_t baton_now(void)
{
	return baton.now;
}

void baton_sleep(uint64_t ns)
{
	block(FOR_TIME, NULL, baton.now + ns + 1);
}

static struct timespec split(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *out)
{
	if (!self)
		return __real_clock_gettime(clock, out);
	*out = split(baton.now + (clock == CLOCK_REALTIME ? BATON_EPOCH : 0));
	return 0;
}

WRAP(time_t, time, time_t *out)
{
	if (!self)
		return __real_time(out);
	const time_t now = split(baton.now + BATON_EPOCH).tv_sec;
	if (out)
		*out = now;
	return now;
}

WRAP(int, clock_nanosleep, clockid_t clock, int flags, const struct timespec *t,
     struct timespec *left)
{
	if (!self)
		return __real_clock_nanosleep(clock, flags, t, left);
	const uint64_t ns = (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
	if (!(flags & TIMER_ABSTIME))
		baton_sleep(ns);
	else if (moment_of(t) > baton.now)
		baton_sleep(moment_of(t) - baton.now);
	return 0;
}

WRAP(int, nanosleep, const struct timespec *t, struct timespec *left)
{
	return self ? __wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, t, left)
		    : __real_nanosleep(t, left);
}

/* ---- locks of files ---- */

/* The lock may end with a descriptor that is closed, so this one looks again and again. */
WRAP(int, flock, int fd, int operation)
{
	int rc = __real_flock(fd, self ? operation | LOCK_NB : operation);
	while (self && rc && errno == EWOULDBLOCK && !(operation & LOCK_NB)) {
		baton_sleep(LOOK_NS);
		rc = __real_flock(fd, operation | LOCK_NB);
	}
	return rc;
}

/* ---- a simulation ---- */

void baton_begin(const struct baton_plan *plan)
{
	memset(&baton, 0, sizeof(baton));
	baton.plan = *plan;
	baton.now = 1000 * SECOND;
	baton_live();
	self = add_task();
	self->thread = pthread_self();
}

void baton_end(void)
{
	/* One that is detached may not have returned yet. */
	while (baton.n > 1 && baton.tasks[baton.n - 1]->detached)
		pass();
	if (baton.n != 1)
		stuck("a thread was not joined");
	remove_task(self);
	self = NULL;
}

void baton_live(void)
{
	baton.life_ns = baton.now + LIFE_NS;
}

void baton_pass(void)
{
	if (self)
		pass();
}

struct baton_counts baton_counts(void)
{
	return baton.counts;
}

unsigned int baton_thread(void)
{
	unsigned int i = 0;
	while (i < baton.n && baton.tasks[i] != self)
		i++;
	return i;
}
