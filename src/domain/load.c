/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a schema's loader. The requests of one of its rounds are made in parallel, and their answers
 * are passed to it in order. The domain's document is read before the first round. If the look-up
 * or an earlier snapshot has the document, it is requested conditionally as a part of the first
 * round. If the document now names another domain, the answers of that round are discarded and the
 * loader starts again.
 *
 * A short listing of everything below a prefix is kept, because it also shows which chunks exist.
 */
#include <domain/domain.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <domain/puts.h>

#include "document_record.h"
#include "domain_internal.h"

enum {
	ROUND_AT_ONCE = 1024,	  /* bodies in memory at the same time */
	DOCUMENT_USUAL = 1 << 18, /* bytes; larger documents are read one by one */
};

/* The result of a round if the loader was made for another document. */
enum { ANOTHER_DOMAIN = LOAD_ROOT_ABSENT + 1 };

struct loading {
	struct domain *d;
	const struct schema_ops *const *schemas;
	const struct domain *previous;	/* may be NULL */
	const struct domain_puts *puts; /* may be NULL */
	struct domain_plan *plan;	/* may be NULL */
	struct schema_loader *loader;
	struct document_record *record; /* NULL without a disk cache */
	bool confirm;			/* the document is the first request of the round */
	struct schema_classify classify;
	struct err *err;
};

/* ---- requests and answers ---- */

static void describe_item(const void *items, size_t i, struct schema_item *out)
{
	const struct store_item *item = (const struct store_item *)items + i;
	*out = (struct schema_item){
		.key = item->key,
		.etag = item->meta.etag,
		.is_prefix = item->is_prefix,
		.size = item->meta.size,
		.mtime_ns = item->meta.mtime_ns,
	};
}

void domain_answer(const struct store_request *req, struct schema_answer *out)
{
	const struct store_answer *a = &req->answer;
	*out = (struct schema_answer){
		.absent = store_absence(a) != NULL,
		.unchanged = a->unchanged,
		.code = store_failure(a, NULL),
		.err = &a->err,
		.etag = a->meta.etag,
		.mtime_ns = a->meta.mtime_ns,
		.body = a->body.data,
		.len = a->body.len,
		.nitems = a->page.n,
		.next = a->page.more ? a->page.next : NULL,
		.item = describe_item,
		.items = a->page.items,
	};
}

static void fill_in(struct store_request *req, const struct schema_request *needed)
{
	static const enum store_op ops[] = {
		[SCHEMA_GET] = STORE_GET, [SCHEMA_HEAD] = STORE_HEAD, [SCHEMA_LIST] = STORE_LIST};
	req->op = ops[needed->op];
	/* A document whose size a listing has shown needs no second request if it is large. */
	req->max = needed->length
			   ? needed->length
			   : min_u64(max_u64(needed->size, DOCUMENT_USUAL), SCHEMA_DOCUMENT_MAX);
	if (needed->length)
		req->range.length = needed->length;
	req->cond.if_none_match = needed->etag;
	req->known_etag = needed->listed;
	req->list.delimit = needed->delimit;
	req->list.complete = true;
	req->list.whole = needed->op == SCHEMA_LIST && !needed->is_page;
	req->list.limit = needed->limit;
	req->list.max = needed->limit + (needed->limit < UINT32_MAX); /* to notice an excess */
	req->list.until = needed->until;
	if (needed->after)
		store_request_start_after(req, needed->after);
}

/* Reads a document that is larger than was expected. Such documents are read one at a time,
 * because each may have 256 MiB. */
static void read_large(struct domain *d, struct store_request *req)
{
	char key[SCHEMA_KEY_MAX + 1];
	if (req->op != STORE_GET || req->range.length != STORE_TO_END ||
	    req->max >= SCHEMA_DOCUMENT_MAX || store_failure(&req->answer, NULL) != -EFBIG)
		return;
	snprintf(key, sizeof(key), "%s", req->key);
	store_request_reset(req, STORE_GET);
	store_request_key(req, key);
	req->max = SCHEMA_DOCUMENT_MAX;
	store_run(d->store, req);
}

/* ---- the document ---- */

static bool is_version(const struct schema_document *d, const struct schema_document *of)
{
	return d->etag[0] && strcmp(d->etag, of->etag) == 0;
}

/* Makes the requests that schema_classify() needs, one after the other. If answered is true, req
 * already has the first answer. *out becomes the document, or NULL if there is none. */
static int classify(struct loading *l, struct store_request *req, bool answered,
		    struct schema_document **out)
{
	char key[SCHEMA_KEY_MAX + 1];
	for (;; answered = true) {
		struct schema_request needed = {.key = key, .room = sizeof(key)};
		struct schema_answer answer;
		int rc = 0;
		if (answered) {
			read_large(l->d, req);
			rc = store_failure(&req->answer, l->err);
			domain_answer(req, &answer);
		}
		if (!rc)
			rc = schema_classify(l->schemas, l->d->path, &l->classify,
					     answered ? &answer : NULL, &needed, out, l->err);
		if (rc < 0)
			return answered ? err_wrap(l->err, rc, "%s", req->key) : rc;
		if (rc != SCHEMA_NEEDS_ANSWER)
			return 0;
		store_request_reset(req, STORE_GET);
		store_request_key(req, key);
		fill_in(req, &needed);
		store_run(l->d->store, req);
	}
}

/* Makes `document` the document of the domain. It is transferred, and is NULL if there is none. */
static int use_document(struct loading *l, struct schema_document *document)
{
	schema_document_unref(l->d->document);
	l->d->document = document;
	if (!document)
		return err_set(l->err, -ENOENT, "there is no such domain");
	l->d->schema = document->schema;
	if (!document->info.root)
		return err_set(l->err, -EISDIR, "is a folder: it has no root group");
	return 0;
}

static int find_document(struct loading *l)
{
	auto_request struct store_request *req = store_request_new(l->d->store, STORE_GET);
	struct schema_document *document;
	if (!req)
		return err_no_memory(l->err);
	l->classify.without_marks = true; /* names/ finds these domains */
	int rc = classify(l, req, false, &document);
	if (rc)
		return rc;
	rc = use_document(l, document);
	return rc ? err_wrap(l->err, rc, "%s", req->key) : 0;
}

static bool request_document(struct loading *l, struct store_request *req)
{
	const struct schema_document *known = l->d->document;
	struct schema_request needed = {.key = req->key, .room = req->room};
	struct schema_document *none;
	l->classify = schema_classify_again(l->schemas, known);
	l->classify.without_marks = !known->schema->marks;
	if (schema_classify(l->schemas, l->d->path, &l->classify, NULL, &needed, &none, NULL) !=
	    SCHEMA_NEEDS_ANSWER)
		return false;
	fill_in(req, &needed);
	req->cond.if_none_match = known->etag[0] ? known->etag : NULL;
	return true;
}

/* Returns true if the earlier snapshot was made from another version of the domain's document, or
 * from documents and listings of two moments. */
static bool must_reload(const struct loading *l)
{
	return l->previous &&
	       (l->previous->is_torn || !is_version(l->d->document, l->previous->document));
}

static int take_document(struct loading *l, struct store_request *req)
{
	struct schema_document *now = NULL, *known = l->d->document;
	if (req->answer.unchanged)
		return 0;
	int rc = classify(l, req, true, &now);
	if (rc)
		return rc;
	if (now && now->info.root && now->schema == known->schema &&
	    strcmp(now->info.root, known->info.root) == 0) {
		rc = use_document(l, now);
		l->loader->load.document = now;
		l->loader->load.reload = must_reload(l);
		return rc;
	}
	rc = use_document(l, now);
	return rc ? err_wrap(l->err, rc, "%s", req->key) : ANOTHER_DOMAIN;
}

/* ---- rounds ---- */

/* Returns whether the answer to this request belongs in the record. */
static bool is_recorded(const struct loading *l, const struct store_request *req)
{
	return l->record && l->loader->has_many && req->op == STORE_GET;
}

static bool request(void *arg, size_t i, struct store_request *req)
{
	struct loading *l = arg;
	struct schema_request needed = {.key = req->key, .room = req->room};
	if (l->confirm && i-- == 0)
		return request_document(l, req);
	if (!l->d->schema->request(l->loader, (uint32_t)i, &needed))
		return false;
	fill_in(req, &needed);
	if (l->plan && l->plan->is_brief)
		req->priority = STORE_PREFETCH;
	if (l->plan)
		req->cancelled = cancelled_by(l->plan->cancelled);
	return !is_recorded(l, req) || !document_record_answer(l->record, i, needed.listed, req);
}

void domain_note_failure(struct domain_plan *plan, int code)
{
	if (!plan)
		return;
	if (code == -EACCES || code == -ELOOP || code == -ENOLINK)
		plan->refused = true;
	else if (code && code != -EFBIG && code != -E2BIG && code != -EINVAL)
		plan->failed = true;
}

/* Keeps a listing of everything below its prefix if it is short. */
static int keep_listing(struct loading *l, struct store_request *req)
{
	struct domain *d = l->d;
	struct store_page *page = &req->answer.page;
	if (req->op != STORE_LIST || req->list.delimit || !l->loader->space->listed_whole)
		return 0;
	d->listed_prefix = arena_strndup(d->arena, req->key, strlen(req->key));
	if (!d->listed_prefix)
		return err_no_memory(l->err);
	store_page_release(&d->listing);
	d->listing = *page;
	*page = (struct store_page){0};
	return 0;
}

/* Passes an answer to the loader. is_answered is false if the loader needed no request. */
static int take_answer(struct loading *l, size_t i, struct store_request *req, bool is_answered)
{
	struct domain *d = l->d;
	struct schema_answer answer;
	domain_answer(req, &answer);
	int rc = d->schema->answer(l->loader, (uint32_t)i, is_answered ? &answer : NULL, l->err);
	if (!rc)
		rc = domain_charge(d, l->err);
	return rc ? rc : keep_listing(l, req);
}

static void use_record(struct loading *l, struct store_request *req)
{
	struct document_record *r = l->record;
	if (is_recorded(l, req) && req->done && !document_record_take(r, req)) {
		/* The record has the document no more, so it is requested. */
		char key[SCHEMA_KEY_MAX + 1];
		snprintf(key, sizeof(key), "%s", req->key);
		store_request_reset(req, STORE_GET);
		store_request_key(req, key);
		req->max = DOCUMENT_USUAL;
		store_run(l->d->store, req);
	}
	read_large(l->d, req);
	if (req->answer.state != STORE_PRESENT)
		return;
	if (is_recorded(l, req) && !req->answer.unchanged)
		document_record_add(r, req);
	else if (r && req->op == STORE_LIST && !req->list.delimit)
		document_record_add_keys(r, &req->answer.page);
}

static int take(void *arg, size_t i, struct store_request *req)
{
	struct loading *l = arg;
	if (l->confirm && i-- == 0)
		return take_document(l, req);
	const bool is_answered = req->done || req->answer.state == STORE_PRESENT;
	use_record(l, req);
	if (is_answered)
		domain_note_failure(l->plan, store_failure(&req->answer, NULL));
	return take_answer(l, i, req, is_answered);
}

static int run_round(struct loading *l, uint32_t n)
{
	if (l->plan && l->plan->keys) {
		assert(n == 1 && l->plan->whole_only && !l->confirm && !l->previous);
		/* The keys that the caller of domain_open() has listed save a request. */
		auto_request struct store_request *req = store_request_new(l->d->store, STORE_LIST);
		if (!req)
			return err_no_memory(l->err);
		if (!request(l, 0, req))
			return take_answer(l, 0, req, false);
		req->answer = (struct store_answer){.state = STORE_PRESENT, .page = *l->plan->keys};
		*l->plan->keys = (struct store_page){0};
		l->plan->keys = NULL;
		return take_answer(l, 0, req, true);
	}
	const struct store_sequence requests = {
		.n = n + l->confirm,
		.window = ROUND_AT_ONCE,
		.request = request,
		.take = take,
		.arg = l,
	};
	int rc = store_run_sequence(l->d->store, &requests);
	l->confirm = false;
	if (rc == -ENOMEM && !l->err->code)
		return err_set(l->err, rc, "out of memory");
	return rc == SCHEMA_ENOUGH ? 0 : rc;
}

static int run_loader(struct loading *l, bool *same)
{
	const struct schema_ops *schema = l->d->schema;
	bool is_first = true, goes_on = true;
	int rc = 0;
	while (!rc && goes_on) {
		uint32_t n = 0;
		rc = schema->round(l->loader, &n, l->err);
		/* A loader that at first needs nothing but the version of the document is called
		 * again when that is known. */
		goes_on = n || is_first;
		if (!rc && (n || l->confirm))
			rc = run_round(l, n);
		is_first = false;
	}
	if (!rc && l->loader->incomplete)
		rc = LOAD_INCOMPLETE;
	*same = !rc && l->loader->same;
	l->d->is_torn = l->loader->is_torn;
	if (l->plan)
		l->plan->torn = l->loader->is_torn;
	return rc;
}

static int listed(void *ctx, const struct schema_listed *keys)
{
	const struct domain *d = ctx;
	return d->plan->listed(d->plan->ctx, keys);
}

/* Without memory for them, no texts are kept. */
static void renew_texts(struct loading *l)
{
	struct domain *d = l->d;
	arena_free(d->texts);
	d->texts = NULL;
	if (!l->plan || !l->plan->is_brief)
		d->texts = arena_new(d->keeps_texts ? domain_texts_limit(d->env->budget)
						    : DOMAIN_TEXTS_MIN);
}

static int load(struct loading *l, bool *same)
{
	struct domain *d = l->d;
	const struct schema_ops *schema = d->schema;
	const bool has_space = l->previous && l->previous->schema == schema;
	uint32_t nputs = 0;
	if (l->plan && l->plan->document_only && !schema->marks)
		return err_set(l->err, -E2BIG, "its objects have documents of their own");
	renew_texts(l);
	auto_free struct schema_put *puts = l->puts ? domain_puts_list(l->puts, &nputs) : NULL;
	struct schema_load what = {
		.document = d->document,
		.path = d->path,
		.tree = d->tree,
		.previous = has_space ? l->previous->space : NULL,
		.reload = must_reload(l),
		.puts = puts,
		.nputs = nputs,
		.puts_all = puts && domain_puts_is_all(l->puts),
		.puts_few = puts && domain_puts_is_few(l->puts),
		.list_limit = DOMAIN_LISTING,
		.texts = d->texts,
		.whole_only = l->plan && l->plan->whole_only,
		.document_only = l->plan && l->plan->document_only,
		.listed = l->plan ? listed : NULL,
		.accept = domain_accept,
		.ctx = d,
	};
	document_record_free(l->record);
	l->record = l->d->disk ? document_record_new(l->d->disk, l->d->document->info.root) : NULL;
	if (l->record)
		what.pages = document_record_pages(l->record, &what.npages);
	int rc = schema->loader_new(&what, &l->loader, l->err);
	d->space = rc ? NULL : l->loader->space;
	if (!rc)
		rc = run_loader(l, same);
	/* Documents that an earlier snapshot has are not read, so they are not added. */
	if (!rc && !l->previous && l->record && l->loader->has_many)
		document_record_finish(l->record, l->loader->has_pages);
	if (rc < 0 && l->loader && l->loader->root_is_absent)
		rc = LOAD_ROOT_ABSENT;
	schema->loader_free(l->loader);
	l->loader = NULL;
	return rc;
}

int domain_load(struct domain *d, const struct schema_ops *const *schemas,
		const struct domain_hint *hint, bool *same, struct err *err)
{
	struct err own = ERR_INIT;
	const bool outdated = hint->previous && domain_is_outdated(hint->previous);
	struct loading l = {.d = d,
			    .schemas = schemas,
			    .previous = outdated ? NULL : hint->previous,
			    .puts = hint->puts,
			    .plan = hint->plan,
			    .err = &own};
	d->plan = hint->plan;
	struct schema_document *known = hint->document;
	int rc = 0;
	if (hint->previous && !known)
		known = hint->previous->document;
	if (known)
		rc = use_document(&l, schema_document_ref(known));
	else
		rc = find_document(&l);
	l.confirm = known && !hint->is_fresh;
	if (!rc)
		rc = load(&l, same);
	if (rc == ANOTHER_DOMAIN) {
		store_page_release(&d->listing);
		d->listed_prefix = NULL;
		rc = load(&l, same);
	}
	document_record_free(l.record);
	if (rc && err)
		err_copy(err, &own);
	return rc;
}
