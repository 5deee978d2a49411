/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request travels through a stack of stores, and the contract of requests and answers. The
 * assertions here check it for all stores, at every level of a stack. An invalid key is an answer,
 * because a key may come from foreign data. Any other malformed request is a bug of the caller.
 *
 * A whole listing is assembled from pages here, at the top of the stack. Below, each page is a
 * request of its own, so wrappers repeat, count and delay pages one by one. All state is in the
 * request, so there are no locks.
 */
#include <store/implement.h>
#include <store/page.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *store_op_name(enum store_op op)
{
	static const char *const names[STORE_OPS] = {
		[STORE_GET] = "get", [STORE_HEAD] = "head",	[STORE_LIST] = "list",
		[STORE_PUT] = "put", [STORE_DELETE] = "delete",
	};
	return names[op];
}

/* ---- the contract ---- */

#ifndef NDEBUG
static void check_request(const struct store_request *req)
{
	const struct store_cond *cond = &req->cond;
	assert(req->op < STORE_OPS && req->priority < STORE_PRIORITIES);
	assert(req->key);
	if (req->op == STORE_LIST)
		assert(req->list.max >= 1);
	if (req->op == STORE_PUT) {
		assert(!cond->if_match || !cond->if_none_match);
		assert(!cond->if_none_match || strcmp(cond->if_none_match, "*") == 0);
		assert(req->pieces || !req->n_pieces);
		assert(!req->body || !req->n_pieces);
		assert(!req->part || (!req->body && !req->n_pieces && !req->in_parts));
	}
	assert(req->op != STORE_DELETE || !cond->if_none_match);
	assert(!req->note || (req->op == STORE_PUT && store_note_ok(req->note)));
	assert(!req->wants_note || req->op == STORE_HEAD);
	assert(!req->mark || (req->op == STORE_PUT && store_mark_ok(req->mark)));
	assert(!req->wants_mark || req->op == STORE_HEAD);
	assert(!req->range.from_end || req->range.first == 0);
}

static void check_page(const struct store_request *req)
{
	const struct store_page *page = &req->answer.page;
	const char *last = req->list.start_after;
	assert(page->n <= req->list.max);
	for (size_t i = 0; i < page->n; i++) {
		const char *key = page->items[i].key;
		assert(!last || strcmp(last, key) < 0);
		assert(strncmp(key, req->key, strlen(req->key)) == 0);
		assert((page->items[i].is_prefix || store_item_is_marker(&page->items[i])) ==
		       (key[strlen(key) - 1] == '/'));
		assert(req->list.markers || !store_item_is_marker(&page->items[i]));
		assert(!page->items[i].is_prefix || req->list.delimit);
		last = key;
	}
	assert(!page->more || page->next);
	assert(!page->more || strncmp(page->next, req->key, strlen(req->key)) == 0);
}

static void check_answer(const struct store_request *req)
{
	const struct store_answer *a = &req->answer;
	switch (a->state) {
	case STORE_UNKNOWN:
		assert(a->err.code < 0 && a->err.code != -ENOENT);
		break;
	case STORE_ABSENT:
		assert(a->absence.evidence && req->op != STORE_LIST && req->op != STORE_PUT);
		break;
	case STORE_PRESENT:
		assert(a->err.code == 0);
		assert(memchr(a->meta.etag, '\0', STORE_ETAG_MAX));
		assert(a->body.len <= (req->op == STORE_GET ? req->range.length : 0));
		assert(!req->max || a->body.len <= req->max);
		assert(!a->unchanged || (req->cond.if_none_match && a->body.len == 0));
		assert(a->has_note || a->unchanged || !req->wants_note);
		assert(!a->note[0] || (a->has_note && store_note_ok(a->note)));
		assert(a->has_mark || a->unchanged || !req->wants_mark);
		assert(!a->mark[0] || (a->has_mark && store_mark_ok(a->mark)));
		if (req->op == STORE_LIST)
			check_page(req);
	}
	assert(a->state == STORE_PRESENT || (!a->body.data && !a->page.arena));
	assert(!a->was_absent || (a->state == STORE_ABSENT && req->cond.if_match));
}
#else
#define check_request(req) ((void)0)
#define check_answer(req)  ((void)0)
#endif

/* ---- down and up the stack ---- */

static void begin(struct store *s, struct store_request *req)
{
	check_request(req);
	const bool is_marker = req->op == STORE_DELETE && store_key_is_marker(req->key);
	if (req->op != STORE_LIST && !store_key_ok(req->key) && !is_marker)
		store_fail(s, req, -EINVAL, "invalid key '%.64s'", req->key);
	else
		s->ops->submit(s, req);
}

/* Pages may have one item more than the limit, so that an excess is noticed. */
static void set_page_limits(struct store_list *list)
{
	list->max = list->limit == UINT32_MAX ? list->limit : list->limit + 1;
}

void store_submit(struct store *s, struct store_request *req)
{
	assert(req->done);
	store_request_release(req);
	req->top = s;
	if (req->op == STORE_LIST && req->list.whole)
		set_page_limits(&req->list);
	memset(req->memory, 0, s->private_size);
	begin(s, req);
}

void store_pass(struct store *s, struct store_request *req)
{
	begin(s->inner, req);
}

/* ---- whole listings ---- */

/* Appends the items of a page to sum. The first page is moved, not copied. */
static int append_page(struct store_page *sum, struct store_page *page)
{
	if (!sum->arena) {
		*sum = *page;
		*page = (struct store_page){0};
		return 0;
	}
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (store_page_add(sum, item->key, item->is_prefix ? NULL : &item->meta))
			return -ENOMEM;
	}
	return 0;
}

/* Ends a listing that has a last key. Leaves out the items after it. Items are in order. */
static void end_listing(struct store_page *page, const char *until)
{
	const size_t n = page->n;
	if (n == 0 || strcmp(page->items[n - 1].key, until) < 0)
		return;
	while (page->n && strcmp(page->items[page->n - 1].key, until) > 0)
		page->n--;
	page->more = false;
}

/* Adds the page that has arrived to the listing. Returns 1 if the request now describes the next
 * page, 0 if this was the last page, or a negative errno if the listing fails. */
static int add_page(struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	struct store_list *list = &req->list;
	if (list->until)
		end_listing(page, list->until);
	const bool more = page->more;
	struct err *err = &req->answer.err;
	if (page->n > list->limit || (more && page->n == list->limit))
		return -E2BIG;
	if (more && (strlen(page->next) > STORE_KEY_MAX ||
		     strcmp(page->next, list->start_after ? list->start_after : "") <= 0))
		return err_set(err, -EIO, "listing of '%s' does not advance", req->key);
	list->limit -= (uint32_t)page->n;
	if (more)
		store_request_start_after(req, page->next);
	if (append_page(&req->sum, page))
		return -ENOMEM;
	return more;
}

/* Continues a whole listing after a page. Returns true if the next page has been requested, and
 * false if the listing is complete or has failed. */
static bool continue_listing(struct store *s, struct store_request *req)
{
	struct store_answer *a = &req->answer;
	const uint32_t limit = req->list.limit + (uint32_t)req->sum.n;
	int rc = a->state == STORE_PRESENT ? add_page(req) : a->err.code;
	if (rc == 1) {
		set_page_limits(&req->list);
		store_answer_clear(req);
		begin(s, req);
		return true;
	}
	req->list.limit = limit;
	if (rc == 0) {
		store_page_release(&a->page);
		a->page = req->sum;
		a->page.more = false;
		a->page.next = NULL;
		req->sum = (struct store_page){0};
		return false;
	}
	store_page_release(&a->page);
	a->state = STORE_UNKNOWN;
	if (rc == -E2BIG)
		err_set(&a->err, rc, "more than %u objects below '%s'", limit, req->key);
	if (rc == -ENOMEM)
		err_set(&a->err, rc, "listing of '%s': out of memory", req->key);
	return false;
}

void store_complete(struct store *s, struct store_request *req)
{
	check_answer(req);
	if (s != req->top) {
		s->outer->ops->completed(s->outer, req);
		return;
	}
	if (req->op == STORE_LIST && req->list.whole && continue_listing(s, req))
		return;
	if (req->op == STORE_LIST && req->list.until)
		end_listing(&req->answer.page, req->list.until);
	req->done(req);
}

/* ---- answers ---- */

void store_present(struct store *s, struct store_request *req)
{
	req->answer.state = STORE_PRESENT;
	err_clear(&req->answer.err);
	store_complete(s, req);
}

void store_absent(struct store *s, struct store_request *req, enum store_evidence evidence)
{
	const bool was_absent = req->answer.was_absent;
	store_result_drop(req);
	err_clear(&req->answer.err);
	req->answer.was_absent = was_absent;
	req->answer.state = STORE_ABSENT;
	req->answer.absence.evidence = evidence;
	store_complete(s, req);
}

void store_fail(struct store *s, struct store_request *req, int code, const char *fmt, ...)
{
	char why[ERR_MAX];
	struct err *err = &req->answer.err;
	if (fmt) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(why, sizeof(why), fmt, ap);
		va_end(ap);
		err_set(err, code, "%s", why);
	}
	store_result_drop(req);
	err->code = code;
	store_complete(s, req);
}

/* ---- constructors, destructors ---- */

void store_init(struct store *s, const struct store_ops *ops, const struct env *env,
		size_t private_size)
{
	s->ops = ops;
	s->env = env;
	s->private_size = align_u64(private_size, alignof(max_align_t));
}

struct store *store_wrap_new(size_t size, const struct store_ops *ops, struct store *inner,
			     size_t private_size, struct err *err)
{
	struct store *s = calloc(1, size);
	if (s)
		store_wrap(s, ops, inner, private_size, 0);
	else
		err_set(err, -ENOMEM, "%s store: out of memory", ops->name);
	return s;
}

void store_wrap(struct store *s, const struct store_ops *ops, struct store *inner,
		size_t private_size, size_t headroom)
{
	store_init(s, ops, inner->env, private_size);
	s->private_at = inner->private_size;
	s->private_size += inner->private_size;
	s->headroom = inner->headroom + headroom;
	s->inner = inner;
	inner->outer = s;
}

void store_wrapper_free(struct store *s)
{
	store_free(s->inner);
	free(s);
}

int store_space(struct store *s, uint64_t *free_bytes, uint64_t *total_bytes)
{
	while (s->inner && !s->ops->space)
		s = s->inner;
	if (!s->ops->space)
		return -EOPNOTSUPP;
	int rc = s->ops->space(s, free_bytes, total_bytes);
	assert(rc < 0 || *free_bytes <= *total_bytes);
	return rc;
}

int store_sync(struct store *s, struct err *err)
{
	while (s->inner && !s->ops->sync)
		s = s->inner;
	return s->ops->sync ? s->ops->sync(s, err) : 0;
}

const char *store_life(struct store *s)
{
	while (s->inner && !s->ops->life)
		s = s->inner;
	return s->ops->life ? s->ops->life(s) : "";
}

enum store_marks store_keeps_marks(struct store *s)
{
	while (s->inner && !s->ops->keeps_marks)
		s = s->inner;
	return s->ops->keeps_marks ? s->ops->keeps_marks(s) : STORE_MARKS_DROPPED;
}

enum store_absence_check store_checks_absence(struct store *s)
{
	while (s->inner && !s->ops->checks_absence)
		s = s->inner;
	return s->ops->checks_absence ? s->ops->checks_absence(s) : STORE_ABSENCE_IGNORED;
}

int store_check(struct store *s, struct err *err)
{
	while (s->inner && !s->ops->check)
		s = s->inner;
	return s->ops->check ? s->ops->check(s, err) : 0;
}

uint64_t store_part_min(struct store *s)
{
	while (s->inner && !s->ops->part_min)
		s = s->inner;
	return s->ops->part_min ? s->ops->part_min(s) : UINT64_MAX;
}

bool store_moves(const struct store *s)
{
	while (s->inner)
		s = s->inner;
	return s->ops->move;
}

int store_move(struct store *s, const char *from, const char *from_version, const char *to,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	static const struct store_cond none;
	struct store_meta unused;
	assert(!cond || !cond->if_match || !cond->if_none_match);
	if (!store_key_ok(from) || !store_key_ok(to) || strcmp(from, to) == 0)
		return err_set(err, -EINVAL, "object %.64s cannot be moved to '%.64s'", from, to);
	while (s->inner && !s->ops->move)
		s = s->inner;
	if (!s->ops->move)
		return err_set(err, -EOPNOTSUPP, "object %s: the store cannot move it", from);
	return s->ops->move(s, from, from_version, to, cond ? cond : &none, meta ? meta : &unused,
			    err);
}

void store_free(struct store *s)
{
	if (s)
		s->ops->free(s);
}

/* ---- workers ---- */

void store_work(struct store *s, struct store_request *req, pool_fn fn)
{
	req->at = s;
	req->job = (struct pool_job){.fn = fn, .arg = req};
	if (pool_run(s->env->pool, &req->job))
		fn(req);
}

struct store *store_working(const struct store_request *req)
{
	return req->at;
}
