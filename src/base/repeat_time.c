/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See base/repeat_time.h. The current call is a variable of the thread: system calls pass through
 * all layers, and most functions between a system call and its requests know of neither.
 *
 * Time is accounted for up to `counted`. Each end of a request moves it on, so no time is lost
 * twice.
 */
#include <base/repeat_time.h>

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <base/mem.h>

struct repeat_time {
	atomic_uint refs;
	atomic_uint_fast64_t counted, lost;
};

static _Thread_local struct repeat_time *current;

struct repeat_time *repeat_ref(struct repeat_time *t)
{
	if (t)
		atomic_fetch_add(&t->refs, 1);
	return t;
}

void repeat_unref(struct repeat_time *t)
{
	if (t && atomic_fetch_sub(&t->refs, 1) == 1)
		free(t);
}

struct repeat_time *repeat_current(void)
{
	return repeat_ref(current);
}

/* Takes the reference over. */
static void enter(struct repeat_scope *s, struct repeat_time *t)
{
	*s = (struct repeat_scope){.mine = t, .outer = current};
	current = t;
}

void repeat_use(struct repeat_scope *s, struct repeat_time *t)
{
	enter(s, repeat_ref(t));
}

void repeat_begin_shared(struct repeat_scope *s)
{
	struct repeat_time *t = calloc(1, sizeof(*t));
	if (t)
		atomic_init(&t->refs, 1);
	enter(s, t);
}

void repeat_begin(struct repeat_scope *s)
{
	*s = (struct repeat_scope){.is_part = current};
	if (!s->is_part)
		repeat_begin_shared(s);
}

void repeat_end(struct repeat_scope *s)
{
	if (s->is_part)
		return;
	assert(current == s->mine);
	current = s->outer;
	repeat_unref(s->mine);
}

uint64_t repeat_lost(const struct repeat_time *t, uint64_t began_ns, uint64_t until_ns)
{
	if (!t)
		return 0;
	const uint64_t from = max_u64(began_ns, atomic_load(&t->counted));
	return atomic_load(&t->lost) + (until_ns > from ? until_ns - from : 0);
}

/* Returns the time up to which others have counted. They may have ended later. */
static uint64_t count_to(struct repeat_time *t, uint64_t now_ns)
{
	uint_fast64_t counted = atomic_load(&t->counted);
	while (counted < now_ns && !atomic_compare_exchange_weak(&t->counted, &counted, now_ns))
		;
	return counted;
}

static void add(struct repeat_time *t, uint64_t lost_ns, uint64_t won_ns)
{
	uint_fast64_t before = atomic_load(&t->lost), after;
	do
		after = before + lost_ns - min_u64(before + lost_ns, won_ns);
	while (!atomic_compare_exchange_weak(&t->lost, &before, after));
}

void repeat_ended(struct repeat_time *t, uint64_t began_ns, uint64_t sent_ns, uint64_t now_ns)
{
	if (!t)
		return;
	const uint64_t from = max_u64(began_ns, count_to(t, now_ns));
	const uint64_t sent = max_u64(from, sent_ns);
	add(t, sent - from, now_ns > sent ? now_ns - sent : 0);
}
