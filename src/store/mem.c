/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket in memory, for tests: an array of objects sorted by key. It behaves as S3 does where
 * a directory cannot: "a" and "a/b" live side by side, a prefix without keys does not exist, a page
 * has at most STORE_PAGE_MAX items.
 *
 * Threads: one lock for everything; bodies are copied under it. Gets are answered in workers.
 */
#include <store/store.h>

#include <store/job.h>
#include <store/page.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct object {
	char *key;
	struct bytes body;
	struct store_meta meta;
};

struct mem_store {
	struct store base;
	pthread_mutex_t lock; /* guards all below */
	struct object *v;     /* ascending by key */
	size_t n, cap;
	uint64_t serial; /* of the last version written; its etag */
};

static struct mem_store *mem_of(struct store *s)
{
	return (struct mem_store *)s;
}

static void cleanup_unlock(struct mem_store **m)
{
	pthread_mutex_unlock(&(*m)->lock);
}
#define auto_unlock __attribute__((cleanup(cleanup_unlock)))

static struct mem_store *lock(struct store *s)
{
	pthread_mutex_lock(&mem_of(s)->lock);
	return mem_of(s);
}

/* Index of the first object whose key is not less than key. */
static size_t find_locked(const struct mem_store *m, const char *key)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strcmp(m->v[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct object *lookup_locked(const struct mem_store *m, const char *key)
{
	size_t i = find_locked(m, key);
	return i < m->n && strcmp(m->v[i].key, key) == 0 ? &m->v[i] : NULL;
}

/* ---- get ---- */

static int read_locked(const struct mem_store *m, const struct store_get *req,
		       struct store_get_result *res)
{
	const struct object *o = lookup_locked(m, req->key);
	const struct store_cond *cond = &req->cond;
	if (!o)
		return err_set(&res->err, -ENOENT, "object %s: not there", req->key);
	if (cond->if_match && strcmp(cond->if_match, o->meta.etag) != 0)
		return err_set(&res->err, -ESTALE, "object %s: another version", req->key);
	if (cond->if_none_match && strcmp(cond->if_none_match, o->meta.etag) == 0)
		return err_set(&res->err, -EALREADY, "object %s: still the same version", req->key);
	res->meta = o->meta;
	if (req->op == STORE_HEAD || req->offset >= o->body.len)
		return 0;
	const uint64_t n = min_u64(req->length, o->body.len - req->offset);
	if (req->max && n > req->max)
		return err_set(&res->err, -EFBIG, "object %s: %" PRIu64 " bytes, at most %" PRIu64,
			       req->key, n, req->max);
	if (bytes_append(&res->body, o->body.data + req->offset, (size_t)n))
		return err_set(&res->err, -ENOMEM, "object %s: no memory", req->key);
	return 0;
}

static void answer(struct store *s, const struct store_get *req)
{
	struct store_get_result res = {0};
	{
		auto_unlock struct mem_store *m = lock(s);
		res.code = read_locked(m, req, &res);
	}
	job_finish(req, &res);
}

static void get(struct store *s, const struct store_get *req)
{
	if (job_submit(s, req, answer))
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
}

/* ---- list ---- */

/* Length of what key is folded to: with its delimiter; 0 when it is an item of its own. */
static size_t folded(const struct store_list *req, const char *key)
{
	const char *slash = req->delimit ? strchr(key + strlen(req->prefix), '/') : NULL;
	return slash ? (size_t)(slash - key) + 1 : 0;
}

static int list_locked(const struct mem_store *m, const struct store_list *req,
		       struct store_page *page)
{
	const size_t prefix_len = strlen(req->prefix);
	const size_t max = min_u64(req->max, STORE_PAGE_MAX);
	const char *last = req->start_after; /* items are greater */
	char fold[STORE_KEY_MAX + 1];
	for (size_t i = find_locked(m, req->prefix); i < m->n; i++) {
		const struct object *o = &m->v[i];
		if (strncmp(o->key, req->prefix, prefix_len) != 0)
			break;
		const size_t n = folded(req, o->key);
		memcpy(fold, o->key, n);
		fold[n] = '\0';
		const char *key = n ? fold : o->key;
		if (last && strcmp(key, last) <= 0)
			continue;
		if (page->n == max) {
			page_set_more(page);
			break;
		}
		if (page_add(page, key, n ? NULL : &o->meta))
			return -ENOMEM;
		last = page->items[page->n - 1].key;
	}
	return 0;
}

static int list(struct store *s, const struct store_list *req, struct store_page *page,
		struct err *err)
{
	int rc = page_init(page);
	if (rc == 0) {
		auto_unlock struct mem_store *m = lock(s);
		rc = list_locked(m, req, page);
	}
	return rc ? err_set(err, rc, "listing of '%s': no memory", req->prefix) : 0;
}

/* ---- put, delete ---- */

static void release(struct object *o)
{
	free(o->key);
	bytes_release(&o->body);
}

static int grow_locked(struct mem_store *m)
{
	if (m->n < m->cap)
		return 0;
	const size_t cap = m->cap ? 2 * m->cap : 64;
	struct object *v = reallocarray(m->v, cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->v = v;
	m->cap = cap;
	return 0;
}

static int check_put_locked(const struct mem_store *m, const char *key,
			    const struct store_cond *cond, struct err *err)
{
	const struct object *o = lookup_locked(m, key);
	if (cond->if_none_match && o)
		return err_set(err, -EEXIST, "object %s: already there", key);
	if (cond->if_match && (!o || strcmp(cond->if_match, o->meta.etag) != 0))
		return err_set(err, -ESTALE, "object %s: another version is there", key);
	return 0;
}

/* Takes what is in *fresh, on success. */
static int put_locked(struct mem_store *m, struct object *fresh)
{
	fresh->meta.size = fresh->body.len;
	snprintf(fresh->meta.etag, sizeof(fresh->meta.etag), "mem-%" PRIx64, ++m->serial);
	struct object *o = lookup_locked(m, fresh->key);
	if (o) {
		release(o);
	} else {
		if (grow_locked(m))
			return -ENOMEM;
		const size_t i = find_locked(m, fresh->key);
		o = &m->v[i];
		memmove(o + 1, o, (m->n - i) * sizeof(*o));
		m->n++;
	}
	*o = *fresh;
	return 0;
}

static int put(struct store *s, const char *key, const void *body, size_t n,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct object fresh = {.key = strdup(key)};
	int rc = fresh.key && (n == 0 || bytes_append(&fresh.body, body, n) == 0) ? 0 : -ENOMEM;
	if (rc == 0) {
		auto_unlock struct mem_store *m = lock(s);
		rc = check_put_locked(m, key, cond, err);
		if (rc == 0)
			rc = put_locked(m, &fresh);
	}
	if (rc == 0 && meta)
		*meta = fresh.meta;
	if (rc)
		release(&fresh);
	return rc == -ENOMEM ? err_set(err, rc, "object %s: no memory", key) : rc;
}

static int del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	auto_unlock struct mem_store *m = lock(s);
	struct object *o = lookup_locked(m, key);
	if (!o)
		return 0;
	if (cond->if_match && strcmp(cond->if_match, o->meta.etag) != 0)
		return err_set(err, -ESTALE, "object %s: another version is there", key);
	release(o);
	m->n--;
	memmove(o, o + 1, (size_t)(m->v + m->n - o) * sizeof(*o));
	return 0;
}

static void free_store(struct store *s)
{
	struct mem_store *m = mem_of(s);
	for (size_t i = 0; i < m->n; i++)
		release(&m->v[i]);
	free(m->v);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct store_ops mem_ops = {
	.name = "mem",
	.get = get,
	.list = list,
	.put = put,
	.del = del,
	.free = free_store,
};

struct store *store_mem_new(const struct env *env, struct err *err)
{
	struct mem_store *m = calloc(1, sizeof(*m));
	if (!m) {
		err_set(err, -ENOMEM, "store in memory: no memory");
		return NULL;
	}
	m->base.ops = &mem_ops;
	m->base.env = env;
	pthread_mutex_init(&m->lock, NULL);
	return &m->base;
}
