/* SPDX-License-Identifier: Apache-2.0 */
/* See storage/renames.h. A number has 32 bits of the process and 32 that count, so the process
 * recognises its own. A lock guards all members. */
#include <storage/renames.h>

#include <pthread.h>
#include <stdlib.h>

enum { RECENT = 256 };
/* A PUT may arrive for so long after a rename has begun. */
#define ARRIVES_NS (INT64_C(3600) * 1000000000)

struct renames {
	pthread_mutex_t lock;
	uint32_t process, count;
	uint64_t *open; /* numbers of renames that have begun and are not settled */
	size_t n, room;
	struct storage recent[RECENT];
	uint64_t lists[RECENT]; /* versions of lists */
	size_t next, next_list;
};

struct renames *renames_new(const struct env *env)
{
	struct renames *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	env->random(env, &r->process, sizeof(r->process));
	return r;
}

void renames_free(struct renames *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r->open);
	free(r);
}

static bool grow_locked(struct renames *r)
{
	const size_t room = r->room ? 2 * r->room : 16;
	uint64_t *open = r->n < r->room ? r->open : reallocarray(r->open, room, sizeof(*open));
	if (!open)
		return false;
	if (r->n == r->room)
		r->room = room;
	r->open = open;
	return true;
}

static uint64_t begin_locked(struct renames *r, const struct storage *storage)
{
	if (!grow_locked(r))
		return 0;
	r->recent[r->next++ % RECENT] = *storage;
	r->open[r->n++] = (uint64_t)r->process << 32 | ++r->count;
	return r->open[r->n - 1];
}

uint64_t renames_begin(struct renames *r, const struct env *env, const struct storage *storage)
{
	uint64_t number = 0;
	if (r) {
		pthread_mutex_lock(&r->lock);
		number = begin_locked(r, storage);
		pthread_mutex_unlock(&r->lock);
	}
	if (!number)
		env->random(env, &number, sizeof(number));
	return number;
}

static size_t find_locked(const struct renames *r, uint64_t number)
{
	size_t i = 0;
	while (i < r->n && r->open[i] != number)
		i++;
	return i;
}

void renames_settle(struct renames *r, uint64_t number)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	const size_t i = find_locked(r, number);
	if (i < r->n)
		r->open[i] = r->open[--r->n];
	pthread_mutex_unlock(&r->lock);
}

bool renames_is_settled(struct renames *r, uint64_t number)
{
	if (!r)
		return false;
	pthread_mutex_lock(&r->lock);
	const bool ours = number >> 32 == r->process && (uint32_t)number <= r->count;
	const bool settled = ours && find_locked(r, number) == r->n;
	pthread_mutex_unlock(&r->lock);
	return settled;
}

bool renames_may_give(struct renames *r, uint64_t number, int64_t age_ns)
{
	return age_ns < ARRIVES_NS && !renames_is_settled(r, number);
}

bool renames_knows(struct renames *r, const struct storage *storage)
{
	if (!r)
		return false;
	pthread_mutex_lock(&r->lock);
	size_t i = 0;
	while (i < RECENT && !same_storage(&r->recent[i], storage))
		i++;
	pthread_mutex_unlock(&r->lock);
	return i < RECENT;
}

bool renames_is_new_list(struct renames *r, uint64_t version)
{
	if (!r)
		return false;
	pthread_mutex_lock(&r->lock);
	size_t i = 0;
	while (i < RECENT && r->lists[i] != version)
		i++;
	const bool is_new = version && i == RECENT;
	if (is_new)
		r->lists[r->next_list++ % RECENT] = version;
	pthread_mutex_unlock(&r->lock);
	return is_new;
}
