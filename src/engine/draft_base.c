/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_base.h. A read keeps the object alive that it began with. */
#include "draft_base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "raw_object.h"

struct object {
	unsigned int refs; /* guarded by the lock of the base */
	struct raw_object *raw;
};

struct draft_base {
	struct store *store;
	struct cache *cache;
	uint64_t size;
	pthread_mutex_t lock;
	struct object *now; /* guarded by lock */
};

static int open_object(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct object **out, struct err *err)
{
	struct object *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(err, -ENOMEM, "out of memory");
	o->refs = 1;
	int rc = raw_object_open(b->store, b->cache, path, meta, &o->raw, err);
	if (rc)
		free(o);
	else
		*out = o;
	return rc;
}

static struct object *ref_now(struct draft_base *b)
{
	pthread_mutex_lock(&b->lock);
	struct object *o = b->now;
	o->refs++;
	pthread_mutex_unlock(&b->lock);
	return o;
}

static void unref(struct draft_base *b, struct object *o)
{
	pthread_mutex_lock(&b->lock);
	const bool last = --o->refs == 0;
	pthread_mutex_unlock(&b->lock);
	if (!last)
		return;
	raw_object_close(o->raw);
	free(o);
}

int draft_base_new(struct store *store, struct cache *cache, const char *path,
		   const struct store_meta *meta, struct draft_base **out, struct err *err)
{
	struct draft_base *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(err, -ENOMEM, "out of memory");
	b->store = store;
	b->cache = cache;
	b->size = meta->size;
	pthread_mutex_init(&b->lock, NULL);
	int rc = open_object(b, path, meta, &b->now, err);
	if (rc)
		draft_base_free(b);
	else
		*out = b;
	return rc;
}

void draft_base_free(struct draft_base *b)
{
	if (!b)
		return;
	if (b->now)
		unref(b, b->now);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

uint64_t draft_base_size(const struct draft_base *b)
{
	return b->size;
}

int draft_base_read(void *base, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct draft_base *b = base;
	struct object *o = ref_now(b);
	size_t done = 0;
	int rc = 0;
	while (rc == 0 && done < n) {
		const ssize_t got = raw_object_read(o->raw, (uint8_t *)buf + done, n - done,
						    offset + done, NULL, err);
		if (got > 0)
			done += (size_t)got;
		else
			rc = got ? (int)got : err_set(err, -EIO, "the object is too short");
	}
	unref(b, o);
	return rc;
}

int draft_base_replace(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct err *err)
{
	struct object *o;
	int rc = open_object(b, path, meta, &o, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&b->lock);
	struct object *old = b->now;
	b->now = o;
	pthread_mutex_unlock(&b->lock);
	unref(b, old);
	return 0;
}
