/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache as a store: it answers gets (diskcache/diskcache.h), and queues objects to write.
 *
 * The caller gets its answer first. A copy is written later, so a slow disk does not delay readers.
 * The queue holds at most max_behind bytes, or one larger object. An object for which there is no
 * room is not stored. As the queue fills, up to WRITERS jobs of the pool write its objects: more
 * jobs would take too many workers from readers if the disk is slow. After TURN_BYTES a job submits
 * itself again and ends, so that the worker can decode chunks in between.
 *
 * Threads: lock guards the queue. No I/O happens under it. Counters are atomic.
 */
#include <diskcache/diskcache.h>
#include <store/implement.h>

#include "directory.h"
#include "range_index.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <base/clock.h>
#include <base/cursor.h>
#include <base/emit.h>

static const size_t TURN_BYTES = (size_t)4 << 20;
/* After the scope of the bucket. */
static const char record_scope[] = "\n\nrecords", range_scope[] = "\n\nranges";

enum { WRITERS = 8, USUAL_BEHIND = 32 << 20 };

typedef atomic_uint_fast64_t counter;

/* An object in the queue. */
struct writing {
	struct writing *next;
	const char *scope; /* of the objects, or of the records */
	struct store_meta meta;
	struct bytes body;
	struct store_range range; /* of the object, if scope is that of ranges */
	size_t object;		  /* bytes of the key that are that of the object */
	char key[];
};

struct diskcache {
	struct store base;
	struct store_diskcache_options opt;
	char *path, *scope; /* own opt.dir and opt.scope */
	char *records;	    /* the scope of the records, which is that of no bucket */
	char *ranges;	    /* the same for ranges */
	struct disk_dir dir;
	atomic_bool used, complained;
	counter hits, hit_bytes, revalidated, misses, stored, skipped, dropped, errors;

	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct writing *head, **tail;
	size_t queued;	      /* bytes, including objects that are being copied or written */
	unsigned int writers; /* jobs */
	bool tidied;
	/* Held while an index of ranges is changed, also during I/O. No other lock is taken, except
	 * those of the directory. */
	pthread_mutex_t index_lock;
};

/* The state of a request that is passed on, in its private memory. */
struct pass {
	bool whole;
	bool range;    /* of an object, which may be an entry */
	bool is_range; /* the entry is that of the range */
	/* The entry on disk. The bucket compares its version with the current one. */
	bool has_entry;
	struct store_meta meta;
	struct bytes body;
};

static struct diskcache *diskcache_of(struct store *s)
{
	return (struct diskcache *)s;
}

/* Reports a failure of the disk: the first as a warning, others as debug messages. */
static void disk_failed(struct diskcache *d, int code, const char *what)
{
	struct err err = ERR_INIT;
	struct log *log = d->base.env->log;
	atomic_fetch_add(&d->errors, 1);
	err_errno(&err, code, "cache directory %s: %s", d->opt.dir, what);
	if (atomic_exchange(&d->complained, true))
		log_debug(log, "%s", err.msg);
	else
		log_warning(log, "%s; the bucket is read instead", err.msg);
}

/* ---- writing ---- */

static void free_writing(struct writing *w)
{
	bytes_release(&w->body);
	free(w);
}

/* Reserves n bytes of the queue. Returns false if it is full. */
static bool reserve(struct diskcache *d, size_t n)
{
	pthread_mutex_lock(&d->lock);
	/* An object larger than the limit is accepted if the queue is empty. */
	const bool fits = d->queued == 0 || d->queued + n <= d->opt.max_behind;
	if (fits)
		d->queued += n;
	pthread_mutex_unlock(&d->lock);
	return fits;
}

static void unreserve(struct diskcache *d, size_t n)
{
	pthread_mutex_lock(&d->lock);
	d->queued -= n;
	pthread_mutex_unlock(&d->lock);
}

static struct writing *take_next(struct diskcache *d)
{
	pthread_mutex_lock(&d->lock);
	struct writing *w = d->head;
	if (w) {
		d->head = w->next;
		if (!d->head)
			d->tail = &d->head;
	} else {
		d->writers--;
		pthread_cond_broadcast(&d->idle);
	}
	pthread_mutex_unlock(&d->lock);
	return w;
}

/* The first job counts the entries of the directory. */
static void tidy(struct diskcache *d)
{
	pthread_mutex_lock(&d->lock);
	const bool mine = !d->tidied;
	d->tidied = true;
	pthread_mutex_unlock(&d->lock);
	int rc = mine ? disk_eviction_tidy(&d->dir, d->base.env) : 0;
	if (rc && rc != -EBUSY)
		disk_failed(d, rc, "counting its entries");
}

/* Writes an entry. Adds that of a range to the index of its object. */
static int write_one(struct diskcache *d, struct writing *w)
{
	const struct disk_id id = {w->scope, w->key};
	int rc = disk_dir_write(&d->dir, d->base.env, &id, &w->meta, w->body.data);
	if (rc || w->scope != d->ranges)
		return rc;
	const struct range_index index = {&d->dir, w->scope, w->key, w->meta.etag};
	w->key[w->object] = '\0';
	pthread_mutex_lock(&d->index_lock);
	rc = range_index_add(&index, d->base.env, &w->range, &w->meta);
	pthread_mutex_unlock(&d->index_lock);
	return rc;
}

/* Writes objects; this is a job of the pool. Once the queue is empty, d may be freed. */
static void drain(void *arg)
{
	struct diskcache *d = arg;
	struct pool *pool = d->base.env->pool;
	struct writing *w;
	size_t written = 0;
	tidy(d);
	while ((w = take_next(d))) {
		const int rc = write_one(d, w);
		const bool is_object = w->scope != d->records;
		if (rc == 0)
			atomic_fetch_add(&d->stored, is_object);
		else if (rc == -EBUSY || rc == -EINVAL)
			atomic_fetch_add(&d->skipped, is_object);
		else
			disk_failed(d, rc, "writing");
		written += w->body.len + DISK_HEAD_MAX;
		unreserve(d, w->body.len);
		free_writing(w);
		if (written >= TURN_BYTES && pool_submit(pool, drain, d) == 0)
			return;
	}
}

/* Adds w, whose bytes are reserved. If w is NULL, only starts a job, which counts the entries. */
static void enqueue(struct diskcache *d, struct writing *w)
{
	pthread_mutex_lock(&d->lock);
	/* One job for each part of the queue that is filled; the queue has WRITERS parts. */
	const bool start =
		d->writers < WRITERS && d->queued >= d->writers * (d->opt.max_behind / WRITERS);
	if (w) {
		w->next = NULL;
		*d->tail = w;
		d->tail = &w->next;
	}
	d->writers += start;
	pthread_mutex_unlock(&d->lock);
	/* If there is no memory for a job, this thread writes. */
	if (start && pool_submit(d->base.env->pool, drain, d))
		drain(d);
}

static bool is_settled(const struct diskcache *d, int64_t mtime_ns)
{
	const int64_t now_ns = clock_wall_ns();
	if (d->opt.settle_ns == 0)
		return true;
	return mtime_ns <= now_ns && (uint64_t)(now_ns - mtime_ns) >= d->opt.settle_ns;
}

/* An object that takes more than half of the limit is not stored. */
static bool is_storable(const struct diskcache *d, const struct store_meta *meta)
{
	return meta->etag[0] && meta->size <= min_u64(d->opt.max_object, d->opt.max_bytes / 2) &&
	       is_settled(d, meta->mtime_ns);
}

static struct writing *copy_of(const struct disk_id *id, const struct store_meta *meta,
			       const void *body)
{
	struct writing *w = calloc(1, sizeof(*w) + strlen(id->key) + 1);
	if (!w)
		return NULL;
	strcpy(w->key, id->key);
	w->scope = id->scope;
	w->meta = *meta;
	if (bytes_append(&w->body, body, (size_t)meta->size) == 0)
		return w;
	free_writing(w);
	return NULL;
}

/* Queues a copy of meta->size bytes. Reserves before it copies, because many threads may copy at
 * the same time. */
static bool keep(struct diskcache *d, const struct disk_id *id, const struct store_meta *meta,
		 const void *body, const struct store_range *range)
{
	struct writing *w = NULL;
	if (is_storable(d, meta) && reserve(d, (size_t)meta->size)) {
		w = copy_of(id, meta, body);
		if (!w)
			unreserve(d, (size_t)meta->size);
	}
	if (w && range) {
		w->range = *range;
		w->object = (size_t)(strrchr(w->key, '\n') - w->key);
	}
	if (w)
		enqueue(d, w);
	return w;
}

/* ---- records ---- */

bool store_diskcache_remember(struct store *s, const char *name, const char *version,
			      int64_t mtime_ns, const void *bytes, size_t n)
{
	struct diskcache *d = diskcache_of(s);
	const struct disk_id id = {d->records, name};
	struct store_meta meta = {.size = n, .mtime_ns = mtime_ns};
	if (strlen(version) >= sizeof(meta.etag))
		return false;
	strcpy(meta.etag, version);
	return keep(d, &id, &meta, bytes, NULL);
}

int store_diskcache_recall(struct store *s, const char *name, const char *version, uint64_t max,
			   struct bytes *out)
{
	struct diskcache *d = diskcache_of(s);
	const struct disk_id id = {d->records, name};
	struct store_meta meta;
	const int rc = disk_dir_read(&d->dir, &id, version, max, &meta, out);
	if (rc == -EBADMSG) {
		atomic_fetch_add(&d->dropped, 1);
		disk_dir_drop(&d->dir, &id);
	} else if (rc && rc != -ENOENT && rc != -ESTALE && rc != -ENOMEM) {
		disk_failed(d, rc, "reading");
	}
	return rc && rc != -ENOMEM ? -ENOENT : rc;
}

bool store_diskcache_is_settled(struct store *s, int64_t mtime_ns)
{
	return is_settled(diskcache_of(s), mtime_ns);
}

void store_diskcache_note_hit(struct store *s, size_t n)
{
	struct diskcache *d = diskcache_of(s);
	atomic_fetch_add(&d->hits, 1);
	atomic_fetch_add(&d->hit_bytes, n);
}

void store_diskcache_note_miss(struct store *s)
{
	atomic_fetch_add(&diskcache_of(s)->misses, 1);
}

/* ---- answering ---- */

static void too_large(struct store *s, struct store_request *req, uint64_t n)
{
	store_fail(s, req, -EFBIG, "object %s: %" PRIu64 " bytes, at most %" PRIu64, req->key, n,
		   req->max);
}

/* Cuts a range out of the bytes of a whole object. */
static void cut(const struct store_range *range, struct bytes *body)
{
	uint64_t first;
	const uint64_t n = store_range_clip(range, body->len, &first);
	if (first && n)
		memmove(body->data, body->data + first, (size_t)n);
	body->len = (size_t)n;
}

/* Answers with the requested range of a whole object. */
static void answer(struct store *s, struct store_request *req)
{
	struct bytes *body = &req->answer.body;
	uint64_t first;
	const uint64_t n = store_range_clip(&req->range, body->len, &first);
	if (req->max && n > req->max) {
		too_large(s, req, n);
		return;
	}
	cut(&req->range, body);
	store_present(s, req);
}

/* Returns the version that the caller requires, or NULL for the current one. */
static const char *version_of(const struct store_request *req)
{
	return req->cond.if_match ? req->cond.if_match : req->known_etag;
}

static bool is_whole(const struct store_request *req)
{
	return req->op == STORE_GET && req->range.first == 0 && req->range.length == STORE_TO_END;
}

static void drop(struct diskcache *d, const char *key)
{
	const struct disk_id id = {d->scope, key};
	disk_dir_drop(&d->dir, &id);
}

/* Queues the range of an answer. */
static bool keep_range(struct diskcache *d, const struct store_request *req)
{
	const struct store_answer *a = &req->answer;
	char key[STORE_KEY_MAX + RANGE_TEXT];
	const struct disk_id id = {d->ranges, key};
	struct store_meta meta = a->meta;
	auto_bytes struct bytes body = {0};
	range_entry_key(req->key, &req->range, key);
	meta.size = RANGE_HEAD + a->body.len;
	if (!is_storable(d, &meta) || bytes_reserve(&body, (size_t)meta.size))
		return false;
	struct emit e = emit_to(body.data, body.cap);
	emit_u64(&e, a->meta.size);
	emit_bytes(&e, a->body.data, a->body.len);
	return keep(d, &id, &meta, body.data, &req->range);
}

/* Reads the entry of the object or, if there is none of the version, that of the range. */
static int read_entry(struct diskcache *d, struct store_request *req, struct pass *pass)
{
	const struct disk_id id = {d->scope, req->key};
	struct store_answer *a = &req->answer;
	const char *version = version_of(req);
	int rc = disk_dir_read(&d->dir, &id, version, d->opt.max_object, &a->meta, &a->body);
	if (rc == -EBADMSG) {
		log_debug(d->base.env->log, "cache directory %s: entry of %s is damaged",
			  d->opt.dir, req->key);
		atomic_fetch_add(&d->dropped, 1);
		drop(d, req->key);
	}
	pass->is_range = rc && pass->range;
	if (!pass->is_range)
		return rc;
	const struct range_index index = {&d->dir, d->ranges, req->key, version};
	rc = range_entry_read(&index, &req->range, &a->meta, &a->body);
	if ((rc == -ENOENT || rc == -ESTALE || rc == -EBADMSG) &&
	    range_index_read(&index, &req->range, req->n_parts ? req->parts : &req->range,
			     max_u64(req->n_parts, 1), &a->meta, &a->body) == 0)
		rc = 0;
	return rc;
}

/* Runs in a worker. */
static void look_up(void *arg)
{
	struct store_request *req = arg;
	struct store *s = store_working(req);
	struct diskcache *d = diskcache_of(s);
	struct pass *pass = store_private(s, req);
	const char *version = version_of(req);
	struct store_answer *a = &req->answer;
	const int rc = read_entry(d, req, pass);
	if (rc && rc != -ENOENT && rc != -ESTALE && rc != -EBADMSG)
		disk_failed(d, rc, "reading");
	if (rc)
		atomic_fetch_add(&d->misses, 1);
	if (rc == 0 && version) {
		atomic_fetch_add(&d->hits, 1);
		atomic_fetch_add(&d->hit_bytes, min_u64(req->range.length, a->body.len));
		if (pass->is_range)
			store_present(s, req);
		else
			answer(s, req);
		return;
	}
	if (rc == 0) {
		pass->has_entry = true;
		pass->meta = a->meta;
		pass->body = a->body;
		a->body = (struct bytes){0};
		req->cond.if_none_match = pass->meta.etag;
	}
	store_answer_clear(req);
	store_pass(s, req);
}

static void submit(struct store *s, struct store_request *req)
{
	struct diskcache *d = diskcache_of(s);
	struct pass *pass = store_private(s, req);
	const bool whole = is_whole(req);
	*pass = (struct pass){.whole = whole && !req->is_kept,
			      .range = req->op == STORE_GET && !whole && req->keep_range};
	if (!atomic_exchange(&d->used, true))
		enqueue(d, NULL);
	if (req->op == STORE_GET && !req->is_kept && !req->cond.if_none_match &&
	    (version_of(req) || whole || pass->range))
		store_work(s, req, look_up);
	else
		store_pass(s, req);
}

static void completed(struct store *s, struct store_request *req)
{
	struct diskcache *d = diskcache_of(s);
	struct pass *pass = store_private(s, req);
	struct store_answer *a = &req->answer;
	const bool present = a->state == STORE_PRESENT;
	/* The entry is useless now. It would be harmless, because its version is old. */
	if (req->op == STORE_PUT || req->op == STORE_DELETE)
		drop(d, req->key);
	if (pass->has_entry)
		req->cond.if_none_match = NULL;
	if (pass->has_entry && present && a->unchanged) { /* the entry is current */
		atomic_fetch_add(&d->revalidated, 1);
		a->unchanged = false;
		a->meta = pass->meta;
		a->body = pass->body;
		pass->body = (struct bytes){0};
		if (pass->range && !pass->is_range)
			cut(&req->range, &a->body);
	} else if (pass->range && present && !a->unchanged) {
		if (!keep_range(d, req))
			atomic_fetch_add(&d->skipped, 1);
	} else if (pass->whole && present && !a->unchanged) {
		const struct disk_id id = {d->scope, req->key};
		if (a->body.len != a->meta.size || !keep(d, &id, &a->meta, a->body.data, NULL))
			atomic_fetch_add(&d->skipped, 1);
	}
	bytes_release(&pass->body);
	if (present && req->max && a->body.len > req->max)
		too_large(s, req, a->body.len);
	else
		store_complete(s, req);
}

/* The entries of both keys are useless afterwards. */
static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct diskcache *d = diskcache_of(s);
	const int rc = store_move(s->inner, from, from_version, to, cond, meta, err);
	drop(d, from);
	drop(d, to);
	return rc;
}

static void free_store(struct store *s)
{
	struct diskcache *d = diskcache_of(s);
	pthread_mutex_lock(&d->lock);
	while (d->writers)
		pthread_cond_wait(&d->idle, &d->lock);
	pthread_mutex_unlock(&d->lock);
	pthread_cond_destroy(&d->idle);
	pthread_mutex_destroy(&d->lock);
	pthread_mutex_destroy(&d->index_lock);
	disk_dir_close(&d->dir);
	free(d->path);
	free(d->scope);
	free(d->records);
	free(d->ranges);
	store_wrapper_free(s);
}

static const struct store_ops diskcache_ops = {
	.name = "diskcache",
	.submit = submit,
	.completed = completed,
	.move = move,
	.free = free_store,
};

struct store *store_diskcache_new(struct store *inner, const struct store_diskcache_options *opt,
				  struct err *err)
{
	if (strlen(opt->scope) + sizeof(record_scope) > DISK_SCOPE_MAX) {
		err_set(err, -ENAMETOOLONG, "cache directory %s: the bucket's name is too long",
			opt->dir);
		return NULL;
	}
	struct diskcache *d = calloc(1, sizeof(*d));
	char *dir = strdup(opt->dir), *scope = strdup(opt->scope), *records = NULL, *ranges = NULL;
	if (asprintf(&records, "%s%s", opt->scope, record_scope) < 0)
		records = NULL;
	if (asprintf(&ranges, "%s%s", opt->scope, range_scope) < 0)
		ranges = NULL;
	const bool has_memory = d && dir && scope && records && ranges;
	if (!has_memory)
		err_set(err, -ENOMEM, "cache directory: out of memory");
	if (!has_memory || disk_dir_open(&d->dir, dir, opt->max_bytes, err)) {
		free(d);
		free(dir);
		free(scope);
		free(records);
		free(ranges);
		return NULL;
	}
	store_wrap(&d->base, &diskcache_ops, inner, sizeof(struct pass), 0);
	d->opt = *opt;
	d->opt.dir = d->path = dir;
	if (d->opt.max_behind == 0)
		d->opt.max_behind = USUAL_BEHIND;
	d->opt.scope = d->scope = scope;
	d->records = records;
	d->ranges = ranges;
	d->tail = &d->head;
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->index_lock, NULL);
	pthread_cond_init(&d->idle, NULL);
	return &d->base;
}

void store_diskcache_read(struct store *s, struct store_diskcache_stats *out)
{
	struct diskcache *d = diskcache_of(s);
	assert(s->ops == &diskcache_ops);
	*out = (struct store_diskcache_stats){
		.hits = atomic_load(&d->hits),
		.hit_bytes = atomic_load(&d->hit_bytes),
		.revalidated = atomic_load(&d->revalidated),
		.misses = atomic_load(&d->misses),
		.stored = atomic_load(&d->stored),
		.skipped = atomic_load(&d->skipped),
		.dropped = atomic_load(&d->dropped),
		.evicted = atomic_load(&d->dir.evicted),
		.errors = atomic_load(&d->errors),
		.bytes = atomic_load(&d->dir.bytes),
	};
}
