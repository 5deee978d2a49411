/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_base.h. A read keeps the object alive that it began with. */
#include "draft_base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <image/image.h>

#include <snapshots/raw_object.h>
#include <snapshots/snapshots.h>

struct base_object {
	unsigned int refs; /* guarded by the lock of the base */
	struct raw_object *raw;
};

struct draft_base {
	struct store *store;
	struct cache *cache;
	uint64_t size;
	struct snapshot *snapshot; /* NULL if an object lies beneath */
	struct image_stream *stream;
	pthread_mutex_t lock;
	struct base_object *now; /* guarded by lock */
};

static struct draft_base *make(uint64_t size, struct err *err)
{
	struct draft_base *b = calloc(1, sizeof(*b));
	if (!b) {
		err_no_memory(err);
		return NULL;
	}
	b->size = size;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

uint64_t draft_base_size(const struct draft_base *b)
{
	return b ? b->size : 0;
}

/* ---- the image of a domain ---- */

int draft_base_of_image(struct snapshot *s, struct draft_base **out, struct err *err)
{
	struct draft_base *b = make(image_size(s->image), err);
	if (!b)
		return -ENOMEM;
	b->snapshot = s;
	atomic_fetch_add(&s->use.open, 1); /* what it shows is not deleted meanwhile */
	b->stream = image_stream_new(s->image);
	*out = b;
	return 0;
}

struct snapshot *draft_base_snapshot(const struct draft_base *b)
{
	return b ? b->snapshot : NULL;
}

/* ---- a plain object ---- */

static int open_object(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct base_object **out, struct err *err)
{
	struct base_object *o = calloc(1, sizeof(*o));
	if (!o)
		return err_no_memory(err);
	o->refs = 1;
	int rc = raw_object_open(b->store, b->cache, path, meta, &o->raw, err);
	if (rc)
		free(o);
	else
		*out = o;
	return rc;
}

static struct base_object *ref_now(struct draft_base *b)
{
	pthread_mutex_lock(&b->lock);
	struct base_object *o = b->now;
	if (o)
		o->refs++;
	pthread_mutex_unlock(&b->lock);
	return o;
}

static void unref(struct draft_base *b, struct base_object *o)
{
	pthread_mutex_lock(&b->lock);
	const bool last = o && --o->refs == 0;
	pthread_mutex_unlock(&b->lock);
	if (!last)
		return;
	raw_object_close(o->raw);
	free(o);
}

int draft_base_new(struct store *store, struct cache *cache, const char *path,
		   const struct store_meta *meta, struct draft_base **out, struct err *err)
{
	struct draft_base *b = make(meta->size, err);
	if (!b)
		return -ENOMEM;
	b->store = store;
	b->cache = cache;
	int rc = open_object(b, path, meta, &b->now, err);
	if (rc)
		draft_base_free(b);
	else
		*out = b;
	return rc;
}

int draft_base_replace(struct draft_base *b, const char *path, const struct store_meta *meta,
		       struct err *err)
{
	struct base_object *o;
	if (b->snapshot)
		return 0;
	int rc = open_object(b, path, meta, &o, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&b->lock);
	struct base_object *old = b->now;
	b->now = o;
	pthread_mutex_unlock(&b->lock);
	unref(b, old);
	return 0;
}

/* ---- both ---- */

void draft_base_free(struct draft_base *b)
{
	if (!b)
		return;
	unref(b, b->now);
	if (b->stream)
		image_stream_free(b->stream);
	if (b->snapshot)
		atomic_fetch_sub(&b->snapshot->use.open, 1);
	snapshot_close(b->snapshot);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static ssize_t read_some(struct draft_base *b, const struct base_object *o, uint64_t offset,
			 void *buf, size_t n, struct err *err)
{
	return o ? raw_object_read(o->raw, buf, n, offset, NULL, err)
		 : image_read(b->snapshot->image, b->stream, buf, n, offset, NULL, err);
}

int draft_base_read(void *base, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct draft_base *b = base;
	struct base_object *o = ref_now(b);
	size_t done = 0;
	int rc = 0;
	while (rc == 0 && done < n) {
		const ssize_t got =
			read_some(b, o, offset + done, (uint8_t *)buf + done, n - done, err);
		if (got > 0)
			done += (size_t)got;
		else
			rc = got ? (int)got : err_set(err, -EIO, "the file is too short");
	}
	unref(b, o);
	return rc;
}
