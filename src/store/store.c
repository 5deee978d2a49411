/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checked calls: what every request and every answer must satisfy is asserted here, once, for
 * all stores and at every level of a stack. A key may come from foreign data, so a bad key is
 * -EINVAL; everything else that is wrong with a request is a bug of the caller. No state, so no
 * locks.
 */
#include <store/store.h>

#include <store/job.h>
#include <base/wait.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#ifdef NDEBUG
static void submit(struct store *s, const struct store_get *req)
{
	s->ops->get(s, req);
}
#else
/* One get between its submission and its completion: stands in for the caller's callback. */
struct check {
	struct store_get req; /* its strings are not to be read after the submission */
};

static void check_result(void *arg, struct store_get_result *res)
{
	struct check *check = arg;
	struct store_get req = check->req;
	free(check);
	assert(res->code <= 0);
	if (res->code) {
		assert(res->err.code == 0 || res->err.code == res->code);
		assert(res->body.len == 0 && !res->body.data);
	} else {
		assert(res->body.len <= (req.op == STORE_HEAD ? 0 : req.length));
		assert(!req.max || res->body.len <= req.max);
		assert(memchr(res->meta.etag, '\0', STORE_ETAG_MAX));
	}
	req.done(req.arg, res);
}

static void submit(struct store *s, const struct store_get *req)
{
	struct check *check = malloc(sizeof(*check));
	if (!check) {
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
		return;
	}
	check->req = *req;
	struct store_get checked = *req;
	checked.done = check_result;
	checked.arg = check;
	s->ops->get(s, &checked);
}
#endif

static int bad_key(struct err *err, const char *key)
{
	return err_set(err, -EINVAL, "'%.64s' cannot be a key", key ? key : "");
}

void store_get_async(struct store *s, const struct store_get *req)
{
	assert(req->op == STORE_GET || req->op == STORE_HEAD);
	assert(req->done);
	if (store_key_ok(req->key))
		submit(s, req);
	else
		job_fail(req, -EINVAL, "'%.64s' cannot be a key", req->key ? req->key : "");
}

struct one_get {
	struct waiter waiter;
	struct store_get_result *res;
};

static void got_one(void *arg, struct store_get_result *res)
{
	struct one_get *one = arg;
	*one->res = *res;
	wait_done(&one->waiter);
}

static int get_blocking(struct store *s, struct store_get *req, struct store_get_result *res,
			struct err *err)
{
	struct one_get one = {.res = res};
	wait_init(&one.waiter, 1);
	req->done = got_one;
	req->arg = &one;
	store_get_async(s, req);
	wait_all(&one.waiter);
	if (res->err.code)
		err_copy(err, &res->err);
	else if (res->code)
		err_errno(err, res->code, "object %s", req->key);
	return res->code;
}

int store_get(struct store *s, const char *key, uint64_t offset, uint64_t length, uint64_t max,
	      const struct store_cond *cond, struct store_get_result *res, struct err *err)
{
	struct store_get req = {
		.op = STORE_GET,
		.key = key,
		.offset = offset,
		.length = length,
		.max = max,
	};
	if (cond)
		req.cond = *cond;
	return get_blocking(s, &req, res, err);
}

int store_head(struct store *s, const char *key, struct store_meta *meta, struct err *err)
{
	struct store_get req = {.op = STORE_HEAD, .key = key};
	struct store_get_result res;
	int rc = get_blocking(s, &req, &res, err);
	if (rc == 0 && meta)
		*meta = res.meta;
	return rc;
}

#ifndef NDEBUG
static void check_page(const struct store_list *req, const struct store_page *page)
{
	assert(page->n <= req->max);
	const char *last = req->start_after;
	for (size_t i = 0; i < page->n; i++) {
		const char *key = page->items[i].key;
		assert(!last || strcmp(last, key) < 0);
		assert(strncmp(key, req->prefix, strlen(req->prefix)) == 0);
		assert(page->items[i].is_prefix == (key[strlen(key) - 1] == '/'));
		assert(!page->items[i].is_prefix || req->delimit);
		last = key;
	}
	assert(!page->more || page->next);
	assert(!page->more || strncmp(page->next, req->prefix, strlen(req->prefix)) == 0);
}
#endif

int store_list_page(struct store *s, const struct store_list *req, struct store_page *page,
		    struct err *err)
{
	assert(req->prefix && req->max >= 1);
	memset(page, 0, sizeof(*page));
	int rc = s->ops->list(s, req, page, err);
	assert(rc <= 0);
	if (rc) {
		store_page_release(page);
		return rc;
	}
#ifndef NDEBUG
	check_page(req, page);
#endif
	return 0;
}

int store_put(struct store *s, const char *key, const void *body, size_t n,
	      const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	static const struct store_cond none = {0};
	assert(body || n == 0);
	if (!cond)
		cond = &none;
	assert(!cond->if_match || !cond->if_none_match);
	assert(!cond->if_none_match || strcmp(cond->if_none_match, "*") == 0);
	if (!store_key_ok(key))
		return bad_key(err, key);
	int rc = s->ops->put(s, key, body, n, cond, meta, err);
	assert(rc <= 0);
	assert(rc || !meta || meta->size == n);
	return rc;
}

int store_delete(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	static const struct store_cond none = {0};
	if (!cond)
		cond = &none;
	assert(!cond->if_none_match);
	if (!store_key_ok(key))
		return bad_key(err, key);
	int rc = s->ops->del(s, key, cond, err);
	assert(rc <= 0);
	return rc;
}

int store_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes)
{
	if (!s->ops->space)
		return -EOPNOTSUPP;
	int rc = s->ops->space(s, free_bytes, total_bytes);
	assert(rc < 0 || *free_bytes <= *total_bytes);
	return rc;
}

void store_free(struct store *s)
{
	if (s)
		s->ops->free(s);
}
