/* SPDX-License-Identifier: Apache-2.0 */
/* See cancel.h. The wake-up function runs under the lock, so that cancel_end() waits for it. */
#include <base/cancel.h>

#include <assert.h>
#include <stddef.h>

void cancel_init(struct cancel *c)
{
	*c = (struct cancel){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void cancel_release(struct cancel *c)
{
	pthread_mutex_destroy(&c->lock);
}

void cancel_fire(struct cancel *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->fired, true);
	if (c->wake)
		c->wake(c->arg);
	pthread_mutex_unlock(&c->lock);
}

bool cancel_is_fired(struct cancel *c)
{
	return c && atomic_load(&c->fired);
}

void cancel_begin(struct cancel *c, void (*wake)(void *arg), void *arg)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	assert(!c->wake);
	c->wake = wake;
	c->arg = arg;
	if (atomic_load(&c->fired))
		wake(arg);
	pthread_mutex_unlock(&c->lock);
}

void cancel_end(struct cancel *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->wake = NULL;
	c->arg = NULL;
	pthread_mutex_unlock(&c->lock);
}
