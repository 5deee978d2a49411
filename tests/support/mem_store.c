/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket in memory: an array of objects, sorted by key. Where a directory differs from
 * S3, it behaves as S3: "a" and "a/b" can both exist, a prefix without objects does not exist, and
 * a page has at most STORE_PAGE_MAX items.
 *
 * A PUT or DELETE whose condition the service lacks, see store_mem_set_lacks(), has several steps:
 *
 *   compare | change | after a PUT, compare again
 *
 * An upload in parts has these, too, if the service lacks the condition of its last request:
 *
 *   part | part | compare | complete | if the answer is lost: compare again
 *
 * Threads: one lock guards everything, and bodies of GETs are copied under it. Workers answer the
 * requests. The lock is free between two steps.
 */
#include "mem_store.h"

#include <store/implement.h>
#include <store/page.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/source.h>

enum { PARTS = 2 /* of an upload */, SHORT_PAGE = 16 };

struct object {
	char *key;
	struct bytes body;
	struct store_meta meta;
	char note[STORE_NOTE_MAX + 1];
	char mark[STORE_MARK_MAX + 1];
	int64_t from, until; /* by the clock; until: only of what was there earlier */
};

struct mem_store {
	struct store base;
	/* Set before the first request. */
	unsigned int lacks; /* enum store_mem_lacks */
	void (*between)(void *arg, const char *key);
	void *arg;
	int64_t (*clock)(void);
	int64_t lag_ns;	      /* of listings, at most */
	pthread_mutex_t lock; /* guards all members below */
	struct object *v;     /* ascending by key */
	size_t n, cap;
	uint64_t serial; /* of the last version that was written, for its ETag */
	/* Only if listings lag: what was there earlier, without bodies. */
	struct object *past;
	size_t npast, past_cap;
	uint64_t listings;
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

/* Returns the index of the first object whose key is at least key. */
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

/* Returns 0 and sets the answer's state, or returns a negative errno. */
static int get_locked(const struct mem_store *m, struct store_request *req)
{
	const struct object *o = lookup_locked(m, req->key);
	const struct store_cond *cond = &req->cond;
	struct store_answer *a = &req->answer;
	uint64_t first;
	a->state = o ? STORE_PRESENT : STORE_ABSENT;
	if (!o)
		return 0;
	if (cond->if_match && strcmp(cond->if_match, o->meta.etag) != 0)
		return err_set(&a->err, -ESTALE, "object %s: it has another version", req->key);
	a->meta = o->meta;
	store_answer_note(req, o->note, strlen(o->note));
	store_answer_mark(req, o->mark, strlen(o->mark));
	a->unchanged = cond->if_none_match && strcmp(cond->if_none_match, o->meta.etag) == 0;
	if (a->unchanged || req->op == STORE_HEAD)
		return 0;
	const size_t n = (size_t)store_range_clip(&req->range, o->body.len, &first);
	if (req->max && n > req->max)
		return err_set(&a->err, -EFBIG, "object %s: %zu bytes, the limit is %" PRIu64,
			       req->key, n, req->max);
	return n ? bytes_append(&a->body, o->body.data + first, n) : 0;
}

/* ---- list ---- */

/* Returns the length of the prefix to which a key is folded, with its delimiter, or 0 if the key is
 * an item of its own. */
static size_t folded_length(const struct store_request *req, const char *key)
{
	const char *slash = req->list.delimit ? strchr(key + strlen(req->key), '/') : NULL;
	return slash ? (size_t)(slash - key) + 1 : 0;
}

static int list_locked(const struct mem_store *m, struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	const size_t prefix_len = strlen(req->key);
	const size_t room = m->lacks & STORE_MEM_SHORT_PAGES ? SHORT_PAGE : STORE_PAGE_MAX;
	const size_t max = min_u64(req->list.max, room);
	const char *last = req->list.start_after; /* all items are greater than this */
	char fold[STORE_KEY_MAX + 1];
	if (store_page_init(page))
		return -ENOMEM;
	req->answer.state = STORE_PRESENT;
	for (size_t i = find_locked(m, req->key); i < m->n; i++) {
		const struct object *o = &m->v[i];
		if (strncmp(o->key, req->key, prefix_len) != 0)
			break;
		const size_t n = folded_length(req, o->key);
		if (!n && !req->list.markers && store_key_is_marker(o->key))
			continue;
		memcpy(fold, o->key, n);
		fold[n] = '\0';
		const char *key = n ? fold : o->key;
		if (last && strcmp(key, last) <= 0)
			continue;
		if (page->n == max) {
			store_page_set_more(page);
			break;
		}
		if (store_page_add(page, key, n ? NULL : &o->meta))
			return -ENOMEM;
		last = page->items[page->n - 1].key;
	}
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct object *)a)->key, ((const struct object *)b)->key);
}

/* Lists what was there at an earlier moment. */
static int list_past_locked(struct mem_store *m, struct store_request *req)
{
	const int64_t at = m->clock() - (int64_t)(m->listings++ * 5 % 8) * m->lag_ns / 8;
	struct mem_store view = {.lacks = m->lacks,
				 .v = calloc(m->n + m->npast + 1, sizeof(*view.v))};
	if (!view.v)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].from <= at)
			view.v[view.n++] = m->v[i];
	for (size_t i = 0; i < m->npast; i++)
		if (m->past[i].from <= at && at < m->past[i].until)
			view.v[view.n++] = m->past[i];
	qsort(view.v, view.n, sizeof(*view.v), compare_keys);
	const int rc = list_locked(&view, req);
	free(view.v);
	return rc;
}

/* ---- put, delete ---- */

static int grow(struct object **v, size_t n, size_t *cap)
{
	if (n < *cap)
		return 0;
	const size_t more = *cap ? 2 * *cap : 64;
	struct object *grown = reallocarray(*v, more, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*v = grown;
	*cap = more;
	return 0;
}

static void release(struct object *o)
{
	free(o->key);
	bytes_release(&o->body);
}

/* An object is replaced or deleted. */
static void release_locked(struct mem_store *m, struct object *o)
{
	if (!m->lag_ns || grow(&m->past, m->npast, &m->past_cap)) {
		release(o);
		return;
	}
	bytes_release(&o->body);
	m->past[m->npast] = *o;
	m->past[m->npast].body = (struct bytes){0};
	m->past[m->npast++].until = m->clock();
}

static bool is_equal(const struct bytes *a, const struct bytes *b)
{
	return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

/* Returns true if an earlier attempt of this put has put the object. */
static bool is_own_locked(const struct mem_store *m, const struct object *o,
			  const struct store_request *req, const struct bytes *body)
{
	if (m->lacks & STORE_MEM_NO_MARKS)
		return req->cond.retried && is_equal(&o->body, body);
	return req->mark && strcmp(o->mark, req->mark) == 0;
}

static int check_cond_locked(const struct mem_store *m, const char *key,
			     const struct store_cond *cond, struct err *err)
{
	const struct object *o = lookup_locked(m, key);
	if (cond->if_none_match && o)
		return err_set(err, -EEXIST, "object %s: it exists already", key);
	if (cond->if_match && (!o || strcmp(cond->if_match, o->meta.etag) != 0))
		return err_set(err, -ESTALE, "object %s: it has another version", key);
	return 0;
}

/* Whether a key is a directory: a key below it has an object. */
static bool is_dir_locked(const struct mem_store *m, const char *key)
{
	char prefix[STORE_KEY_MAX + 2];
	const int n = snprintf(prefix, sizeof(prefix), "%s/", key);
	const size_t i = find_locked(m, prefix);
	return i < m->n && strncmp(m->v[i].key, prefix, (size_t)n) == 0;
}

/* A file cannot be above another one. */
static int check_tree_locked(const struct mem_store *m, const char *key,
			     const struct store_cond *cond, struct err *err)
{
	if (!(m->lacks & STORE_MEM_TREE))
		return 0;
	for (const char *end = key; (end = strchr(end, '/')); end++) {
		char above[STORE_KEY_MAX + 1];
		snprintf(above, sizeof(above), "%.*s", (int)(end - key), key);
		if (lookup_locked(m, above))
			return err_set(err, -ENOTDIR, "object %s: %s is no directory", key, above);
	}
	return !cond->if_match && is_dir_locked(m, key)
		       ? err_set(err, -EISDIR, "object %s: it is a directory", key)
		       : 0;
}

/* Returns 0 if the condition is met. If it fails only because of an earlier attempt, returns 0 with
 * the answer. */
static int check_put_locked(const struct mem_store *m, struct store_request *req,
			    const struct bytes *body)
{
	const struct object *o = lookup_locked(m, req->key);
	struct store_answer *a = &req->answer;
	int rc = check_tree_locked(m, req->key, &req->cond, &a->err);
	if (rc)
		return rc;
	rc = check_cond_locked(m, req->key, &req->cond, &a->err);
	if (rc == 0 || !o || !is_own_locked(m, o, req, body))
		return rc;
	err_clear(&a->err);
	a->state = STORE_PRESENT;
	a->meta = o->meta;
	return 0;
}

/* FNV-1a. */
static uint64_t digest(const struct bytes *body)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < body->len; i++)
		h = (h ^ body->data[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* As an upload in parts gives it. */
static const char *form_of(const struct store_cond *cond)
{
	const char *old = cond && cond->is_new_version ? cond->if_match : NULL;
	return old && !strstr(old, "-parts") ? "-parts" : "";
}

/* cond is NULL if the object is moved. */
static void set_version_locked(struct mem_store *m, struct object *o, const struct store_cond *cond)
{
	const uint64_t version = m->lacks & STORE_MEM_NO_SERIAL ? digest(&o->body) : ++m->serial;
	snprintf(o->meta.etag, sizeof(o->meta.etag), "mem-%" PRIx64 "%s", version, form_of(cond));
	o->from = o->meta.mtime_ns = m->clock ? m->clock() : 0;
}

/* On success the store owns the contents of *fresh. */
static int insert_locked(struct mem_store *m, struct object *fresh, const struct store_cond *cond)
{
	fresh->meta.size = fresh->body.len;
	set_version_locked(m, fresh, cond);
	struct object *o = lookup_locked(m, fresh->key);
	if (o) {
		release_locked(m, o);
	} else {
		if (grow(&m->v, m->n, &m->cap))
			return -ENOMEM;
		const size_t i = find_locked(m, fresh->key);
		o = &m->v[i];
		memmove(o + 1, o, (m->n - i) * sizeof(*o));
		m->n++;
	}
	*o = *fresh;
	return 0;
}

static int read_body(struct store_request *req, struct bytes *body)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < req->n_pieces; i++)
		if (req->pieces[i].n)
			rc = bytes_append(body, req->pieces[i].data, req->pieces[i].n);
	const uint64_t size = store_has_source(req) ? store_body_size(req) : 0;
	if (size == 0)
		return rc;
	if (size > SIZE_MAX || bytes_reserve(body, (size_t)size))
		return -ENOMEM;
	body->len = (size_t)size;
	return store_body_read(req, 0, body->data, body->len);
}

/* Takes the body over on success. */
static int put_locked(struct mem_store *m, struct store_request *req, struct bytes *body)
{
	struct object fresh = {.key = strdup(req->key), .body = *body};
	int rc = fresh.key ? 0 : -ENOMEM;
	if (req->note)
		strcpy(fresh.note, req->note);
	if (req->mark && !(m->lacks & STORE_MEM_NO_MARKS))
		strcpy(fresh.mark, req->mark);
	if (rc == 0)
		rc = insert_locked(m, &fresh, &req->cond);
	if (rc) {
		free(fresh.key);
		return rc;
	}
	*body = (struct bytes){0};
	req->answer.state = STORE_PRESENT;
	req->answer.meta = fresh.meta;
	return 0;
}

static int check_delete_locked(const struct mem_store *m, struct store_request *req)
{
	const char *if_match = req->cond.if_match;
	const struct object *o = lookup_locked(m, req->key);
	req->answer.was_absent = if_match && !o;
	if (o && if_match && strcmp(if_match, o->meta.etag) != 0)
		return err_set(&req->answer.err, -ESTALE, "object %s: it has another version",
			       req->key);
	return 0;
}

static void delete_locked(struct mem_store *m, const char *key)
{
	struct object *o = lookup_locked(m, key);
	if (!o)
		return;
	release_locked(m, o);
	m->n--;
	memmove(o, o + 1, (size_t)(m->v + m->n - o) * sizeof(*o));
}

/* Other requests may come here if the service has or lacks one of these. */
static void pause_locked(struct mem_store *m, const struct store_request *req, unsigned int lacks)
{
	if (!(m->lacks & lacks))
		return;
	pthread_mutex_unlock(&m->lock);
	if (m->between)
		m->between(m->arg, req->key);
	pthread_mutex_lock(&m->lock);
}

static bool has_parts(const struct mem_store *m, const struct store_request *req)
{
	return req->in_parts && m->lacks & STORE_MEM_PARTS;
}

static unsigned int lack_of(const struct mem_store *m, const struct store_request *req)
{
	if (req->op == STORE_DELETE)
		return req->cond.if_match ? STORE_MEM_NO_DELETE_IF : 0;
	if (has_parts(m, req))
		return req->cond.if_match || req->cond.if_none_match ? STORE_MEM_NO_PARTS_IF : 0;
	if (req->cond.if_match)
		return STORE_MEM_NO_IF_MATCH;
	return req->cond.if_none_match ? STORE_MEM_NO_IF_NONE_MATCH : 0;
}

/* Looks whether the object is still the one that was put. */
static int compare_again_locked(struct mem_store *m, struct store_request *req, bool is_lost)
{
	const struct object *o = lookup_locked(m, req->key);
	const struct store_cond *cond = &req->cond;
	struct store_answer *a = &req->answer;
	const bool is_same = o && strcmp(o->meta.etag, a->meta.etag) == 0;
	int code = -ESTALE;
	/* The upload is gone when its last request is repeated, so that a condition fails, too. */
	if (is_lost && (m->lacks & lack_of(m, req) || !(cond->if_match || cond->if_none_match)))
		code = -EIO;
	else if (is_lost && cond->if_none_match)
		code = -EEXIST;
	a->repeated = is_lost || !is_same;
	return is_same ? 0
		       : err_set(&a->err, code, "object %s: another writer has replaced it",
				 req->key);
}

static int put_in_steps_locked(struct mem_store *m, struct store_request *req, struct bytes *body)
{
	const bool in_parts = has_parts(m, req);
	const bool is_lost = in_parts && m->lacks & STORE_MEM_PARTS_LOST;
	const unsigned int lack = lack_of(m, req);
	for (unsigned int i = 0; in_parts && i < PARTS; i++)
		pause_locked(m, req, STORE_MEM_PARTS);
	int rc = check_put_locked(m, req, body);
	if (rc || req->answer.state == STORE_PRESENT)
		return rc;
	pause_locked(m, req, lack);
	rc = put_locked(m, req, body);
	if (rc || !(is_lost || m->lacks & lack))
		return rc;
	pause_locked(m, req, is_lost ? STORE_MEM_PARTS_LOST : lack);
	return compare_again_locked(m, req, is_lost);
}

static int delete_in_steps_locked(struct mem_store *m, struct store_request *req)
{
	const int rc = check_delete_locked(m, req);
	if (rc)
		return rc;
	pause_locked(m, req, lack_of(m, req));
	delete_locked(m, req->key);
	req->answer.state = STORE_ABSENT;
	return 0;
}

/* ---- move ---- */

static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	auto_unlock struct mem_store *m = lock(s);
	const struct object *o = lookup_locked(m, from);
	if (!o && !from_version[0])
		return err_set(err, -ENOENT, "object %s: absent", from);
	if (!o || (from_version[0] && strcmp(from_version, o->meta.etag) != 0))
		return err_set(err, -ESTALE, "object %s: it has another version", from);
	int rc = check_tree_locked(m, to, cond, err);
	rc = rc ? rc : check_cond_locked(m, to, cond, err);
	if (rc)
		return rc;
	struct object moved = {.key = strdup(to), .body = o->body, .meta = o->meta};
	if (!moved.key)
		return err_set(err, -ENOMEM, "object %s: out of memory", from);
	memcpy(moved.note, o->note, sizeof(moved.note));
	memcpy(moved.mark, o->mark, sizeof(moved.mark));
	/* The entry of the old key leaves room for the new one, so this cannot fail. */
	lookup_locked(m, from)->body = (struct bytes){0};
	delete_locked(m, from);
	rc = insert_locked(m, &moved, NULL);
	*meta = moved.meta;
	return rc;
}

/* ---- the store ---- */

static int answer_locked(struct mem_store *m, struct store_request *req, struct bytes *body)
{
	switch (req->op) {
	case STORE_LIST:
		return m->lag_ns ? list_past_locked(m, req) : list_locked(m, req);
	case STORE_PUT:
		return put_in_steps_locked(m, req, body);
	case STORE_DELETE:
		return delete_in_steps_locked(m, req);
	default:
		return get_locked(m, req);
	}
}

static void answer(void *arg)
{
	struct store_request *req = arg;
	struct store *s = store_working(req);
	auto_bytes struct bytes body = {0};
	int rc = req->op == STORE_PUT ? read_body(req, &body) : 0;
	if (rc == 0) {
		auto_unlock struct mem_store *m = lock(s);
		rc = answer_locked(m, req, &body);
	}
	if (rc == -ENOMEM && !req->answer.err.code)
		store_fail(s, req, rc, "%s of %s: out of memory", store_op_name(req->op), req->key);
	else if (rc)
		store_fail(s, req, rc, NULL);
	else if (req->answer.state == STORE_ABSENT)
		store_absent(s, req, STORE_BY_DIRECTORY);
	else
		store_complete(s, req);
}

static void submit(struct store *s, struct store_request *req)
{
	if (store_has_source(req))
		store_work_apart(s, req, answer);
	else
		store_work(s, req, answer);
}

static enum store_marks keeps_marks(struct store *s)
{
	return mem_of(s)->lacks & STORE_MEM_NO_MARKS ? STORE_MARKS_DROPPED : STORE_MARKS_KEPT;
}

static void free_store(struct store *s)
{
	struct mem_store *m = mem_of(s);
	for (size_t i = 0; i < m->n; i++)
		release(&m->v[i]);
	for (size_t i = 0; i < m->npast; i++)
		release(&m->past[i]);
	free(m->past);
	free(m->v);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct store_ops mem_ops = {
	.name = "mem",
	.submit = submit,
	.keeps_marks = keeps_marks,
	.move = move,
	.free = free_store,
};
static const struct store_ops mem_ops_no_move = {
	.name = "mem",
	.submit = submit,
	.keeps_marks = keeps_marks,
	.free = free_store,
};

int store_mem_put_marker(struct store *mem, const char *key)
{
	auto_unlock struct mem_store *m = lock(mem);
	struct object marker = {.key = strdup(key)};
	return marker.key ? insert_locked(m, &marker, NULL) : -ENOMEM;
}

void store_mem_set_clock(struct store *mem, int64_t (*clock)(void))
{
	mem_of(mem)->clock = clock;
}

void store_mem_set_lag(struct store *mem, int64_t ns)
{
	assert(mem_of(mem)->clock);
	mem_of(mem)->lag_ns = ns;
}

void store_mem_set_lacks(struct store *mem, unsigned int lacks,
			 void (*between)(void *arg, const char *key), void *arg)
{
	assert(mem->ops == &mem_ops || mem->ops == &mem_ops_no_move);
	struct mem_store *m = mem_of(mem);
	mem->ops = lacks & STORE_MEM_NO_MOVE ? &mem_ops_no_move : &mem_ops;
	m->lacks = lacks;
	m->between = between;
	m->arg = arg;
}

struct store *store_mem_new(const struct env *env, struct err *err)
{
	struct mem_store *m = calloc(1, sizeof(*m));
	if (!m) {
		err_set(err, -ENOMEM, "store in memory: out of memory");
		return NULL;
	}
	store_init(&m->base, &mem_ops, env, 0);
	pthread_mutex_init(&m->lock, NULL);
	return &m->base;
}
