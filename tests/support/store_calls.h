/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store requests as blocking calls, for tests. The result is 0, the negative errno of an UNKNOWN
 * answer, -ENOENT for ABSENT, or -EALREADY for an unchanged version.
 */
#ifndef TEST_STORE_CALLS_H
#define TEST_STORE_CALLS_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/source.h>
#include <store/store.h>

struct call_result {
	int code;
	struct bytes body; /* owned by the caller */
	struct store_meta meta;
	bool has_note;
	char note[STORE_NOTE_MAX + 1];
	struct err err;
};

struct call_get {
	enum store_op op;
	bool wants_note;
	const char *key;
	uint64_t offset, length, max;
	struct store_cond cond;
	const char *known_etag;
	const atomic_bool *cancelled;
};

/* Flags of call_list_how(). */
enum { CALL_DELIMIT = 1 << 0, CALL_COMPLETE = 1 << 1 };

struct call_list {
	const char *prefix;
	bool delimit, markers, complete;
	const char *start_after, *until;
	uint32_t max, limit;
};

struct call_list_job {
	const char *prefix;
	bool delimit;
	uint32_t limit;
	struct store_page page;
	int code;
	struct err err;
};

static inline int call_code(const struct store_request *req, struct err *err)
{
	const struct store_answer *a = &req->answer;
	if (store_absence(a)) {
		if (req->op == STORE_DELETE)
			return 0;
		return err_set(err, -ENOENT, "object %s: absent", req->key);
	}
	if (a->state == STORE_PRESENT && a->unchanged)
		return err_set(err, -EALREADY, "object %s: unchanged", req->key);
	return store_failure(a, err);
}

static inline void call_fill(struct store_request *req, const struct call_get *get)
{
	req->op = get->op;
	store_request_key(req, get->key);
	req->range.first = get->offset;
	req->range.length = get->length;
	req->max = get->max;
	req->cond = get->cond;
	req->wants_note = get->wants_note;
	req->known_etag = get->known_etag;
	req->cancelled = cancelled_by(get->cancelled);
}

static inline void call_take(struct store_request *req, struct call_result *res)
{
	*res = (struct call_result){0};
	res->code = call_code(req, &res->err);
	res->meta = req->answer.meta;
	res->has_note = req->answer.has_note;
	memcpy(res->note, req->answer.note, sizeof(res->note));
	res->body = req->answer.body;
	req->answer.body = (struct bytes){0};
}

/* GETs, HEADs and listings side by side. */
static inline int call_round(struct store *s, const struct call_get *gets, size_t ngets,
			     struct call_result *results, struct call_list_job *jobs, size_t njobs)
{
	struct store_request **reqs = store_requests_new(s, ngets + njobs);
	if (!reqs)
		return -ENOMEM;
	for (size_t i = 0; i < ngets; i++)
		call_fill(reqs[i], &gets[i]);
	for (size_t i = 0; i < njobs; i++) {
		struct store_request *req = reqs[ngets + i];
		req->op = STORE_LIST;
		store_request_key(req, jobs[i].prefix);
		req->list.delimit = jobs[i].delimit;
		req->list.limit = jobs[i].limit;
		req->list.whole = true;
	}
	store_run_all(s, reqs, ngets + njobs);
	for (size_t i = 0; i < ngets; i++)
		call_take(reqs[i], &results[i]);
	for (size_t i = 0; i < njobs; i++) {
		struct store_answer *a = &reqs[ngets + i]->answer;
		jobs[i].err = (struct err)ERR_INIT;
		jobs[i].code = store_failure(a, &jobs[i].err);
		jobs[i].page = a->page;
		a->page = (struct store_page){0};
	}
	store_requests_free(reqs, ngets + njobs);
	return 0;
}

static inline int call_get_many(struct store *s, const struct call_get *gets, size_t n,
				struct call_result *results)
{
	return call_round(s, gets, n, results, NULL, 0);
}

static inline int call_get(struct store *s, const char *key, uint64_t offset, uint64_t length,
			   uint64_t max, const struct store_cond *cond, struct call_result *res,
			   struct err *err)
{
	struct call_get get = {.key = key, .offset = offset, .length = length, .max = max};
	if (cond)
		get.cond = *cond;
	if (call_get_many(s, &get, 1, res))
		return -ENOMEM;
	if (res->code)
		err_copy(err, &res->err);
	return res->code;
}

static inline int call_head(struct store *s, const char *key, struct store_meta *meta,
			    struct err *err)
{
	const struct call_get get = {.op = STORE_HEAD, .key = key, .length = STORE_TO_END};
	struct call_result res;
	if (call_get_many(s, &get, 1, &res))
		return -ENOMEM;
	if (res.code)
		err_copy(err, &res.err);
	else if (meta)
		*meta = res.meta;
	return res.code;
}

static inline int call_note(struct store *s, const char *key, char note[STORE_NOTE_MAX + 1],
			    struct err *err)
{
	const struct call_get get = {
		.op = STORE_HEAD, .wants_note = true, .key = key, .length = STORE_TO_END};
	struct call_result res;
	if (call_get_many(s, &get, 1, &res))
		return -ENOMEM;
	if (res.code)
		err_copy(err, &res.err);
	memcpy(note, res.note, sizeof(res.note));
	return res.code;
}

static inline int call_list(struct store *s, const struct call_list *list, bool whole,
			    struct store_page *page, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_LIST);
	*page = (struct store_page){0};
	if (!req)
		return -ENOMEM;
	store_request_key(req, list->prefix);
	req->list.delimit = list->delimit;
	req->list.markers = list->markers;
	req->list.complete = list->complete;
	req->list.whole = whole;
	req->list.until = list->until;
	req->list.limit = list->limit;
	req->list.max = list->max ? list->max : STORE_PAGE_MAX;
	if (list->start_after)
		store_request_start_after(req, list->start_after);
	store_run(s, req);
	*page = req->answer.page;
	req->answer.page = (struct store_page){0};
	return store_failure(&req->answer, err);
}

static inline int call_list_page(struct store *s, const struct call_list *list,
				 struct store_page *page, struct err *err)
{
	return call_list(s, list, false, page, err);
}

static inline int call_list_all(struct store *s, const char *prefix, bool delimit, uint32_t limit,
				struct store_page *page, struct err *err)
{
	const struct call_list list = {.prefix = prefix, .delimit = delimit, .limit = limit};
	return call_list(s, &list, true, page, err);
}

static inline int call_list_how(struct store *s, const char *prefix, unsigned int how,
				uint32_t limit, struct store_page *page, struct err *err)
{
	const struct call_list list = {.prefix = prefix,
				       .delimit = how & CALL_DELIMIT,
				       .complete = how & CALL_COMPLETE,
				       .limit = limit};
	return call_list(s, &list, true, page, err);
}

static inline int call_put(struct store *s, const char *key, const void *body, size_t n,
			   const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	/* In two pieces, because a body may consist of several. */
	const struct piece pieces[2] = {{body, n / 2},
					{body ? (const char *)body + n / 2 : NULL, n - n / 2}};
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->pieces = pieces;
	req->n_pieces = n ? 2 : 0;
	if (cond)
		req->cond = *cond;
	store_run(s, req);
	if (meta && req->answer.state == STORE_PRESENT)
		*meta = req->answer.meta;
	return store_failure(&req->answer, err);
}

static inline int call_put_source(struct store *s, const char *key, struct source *body,
				  bool in_parts, const struct store_cond *cond,
				  struct store_meta *meta, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->body = body;
	req->in_parts = in_parts;
	if (cond)
		req->cond = *cond;
	store_run(s, req);
	if (meta && req->answer.state == STORE_PRESENT)
		*meta = req->answer.meta;
	return store_failure(&req->answer, err);
}

static inline int call_put_part(struct store *s, const char *key, const struct source_part *part,
				struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->part = part;
	store_run(s, req);
	return store_failure(&req->answer, err);
}

/* body NULL: the object is empty. */
static inline int call_put_note(struct store *s, const char *key, struct source *body,
				const char *note, const struct store_cond *cond, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->body = body;
	req->in_parts = body;
	req->note = note;
	if (cond)
		req->cond = *cond;
	store_run(s, req);
	return store_failure(&req->answer, err);
}

/* mark NULL: without one. */
static inline int call_put_mark(struct store *s, const char *key, const char *text,
				const char *mark, const struct store_cond *cond,
				struct store_meta *meta, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_PUT);
	const struct piece piece = {text, strlen(text)};
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->pieces = &piece;
	req->n_pieces = 1;
	req->mark = mark;
	if (cond)
		req->cond = *cond;
	store_run(s, req);
	if (meta && req->answer.state == STORE_PRESENT)
		*meta = req->answer.meta;
	return store_failure(&req->answer, err);
}

static inline int call_mark(struct store *s, const char *key, char mark[STORE_MARK_MAX + 1],
			    struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_HEAD);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->wants_mark = true;
	store_run(s, req);
	memcpy(mark, req->answer.mark, sizeof(req->answer.mark));
	return call_code(req, err);
}

/* *was_absent: of the answer. */
static inline int call_delete_version(struct store *s, const char *key, const char *etag,
				      bool *was_absent)
{
	auto_request struct store_request *req = store_request_new(s, STORE_DELETE);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	req->cond.if_match = etag;
	store_run(s, req);
	*was_absent = req->answer.was_absent;
	return store_failure(&req->answer, NULL);
}

static inline int call_delete(struct store *s, const char *key, const struct store_cond *cond,
			      struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_DELETE);
	if (!req)
		return -ENOMEM;
	store_request_key(req, key);
	if (cond)
		req->cond = *cond;
	store_run(s, req);
	return store_failure(&req->answer, err);
}

#endif
