/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a schema's loader: its rounds become rows of requests, answered in order while later ones
 * are on their way. The domain's document is asked for before the first round, or, where looking
 * the domain up or an earlier snapshot has told it, on condition and side by side with the first
 * round: if it names another domain by now, that round is forgotten.
 *
 * A listing of everything below a prefix is kept when it is short: it also shows which chunks
 * exist.
 */
#include <domain/domain.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "domain_internal.h"

enum {
	ROUND_AT_ONCE = 1024,	  /* bodies held in memory together */
	DOCUMENT_USUAL = 1 << 18, /* bytes; larger ones are read one at a time */
};

/* Ends the first round: its loader was made for another document. */
enum { ANOTHER_DOMAIN = 2 };

struct loading {
	struct domain *d;
	const struct schema_ops *const *schemas;
	const struct domain *previous; /* or NULL */
	struct schema_loader *loader;
	bool confirm; /* the document is the first request of the round */
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
		.body = a->body.data,
		.len = a->body.len,
		.nitems = a->page.n,
		.item = describe_item,
		.items = a->page.items,
	};
}

static void fill_in(struct store_request *req, const struct schema_ask *ask)
{
	static const enum store_op ops[] = {
		[SCHEMA_GET] = STORE_GET, [SCHEMA_HEAD] = STORE_HEAD, [SCHEMA_LIST] = STORE_LIST};

	req->op = ops[ask->op];
	req->max = DOCUMENT_USUAL;
	req->cond.if_none_match = ask->etag;
	req->known_etag = ask->listed;
	req->list.delimit = ask->delimit;
	req->list.complete = true;
	req->list.whole = ask->op == SCHEMA_LIST;
	req->list.limit = ask->limit;
}

/* Bodies of 256 MiB are not held side by side. */
static void read_large(struct domain *d, struct store_request *req)
{
	char key[SCHEMA_KEY_MAX + 1];

	if (req->op != STORE_GET || store_failure(&req->answer, NULL) != -EFBIG)
		return;
	snprintf(key, sizeof(key), "%s", req->key);
	store_request_reset(req, STORE_GET);
	store_request_key(req, key);
	req->max = SCHEMA_JSON_MAX;
	store_run(d->store, req);
}

/* ---- the document ---- */

static bool is_version(const struct schema_document *d, const struct schema_document *of)
{
	return d->etag[0] && strcmp(d->etag, of->etag) == 0;
}

/* Feeds the machine one answer after the other; answered: the first one is in req. *out: the
 * document, NULL when there is none. */
static int classify(struct loading *l, struct store_request *req, bool answered,
		    struct schema_document **out)
{
	char key[SCHEMA_KEY_MAX + 1];

	for (;; answered = true) {
		struct schema_ask ask = {.key = key, .room = sizeof(key)};
		struct schema_answer answer;
		int rc = 0;

		if (answered) {
			read_large(l->d, req);
			rc = store_failure(&req->answer, l->err);
			domain_answer(req, &answer);
		}
		if (!rc)
			rc = schema_classify(l->schemas, l->d->path, &l->classify,
					     answered ? &answer : NULL, &ask, out, l->err);
		if (rc < 0)
			return answered ? err_wrap(l->err, rc, "%s", req->key) : rc;
		if (rc != SCHEMA_ASKS)
			return 0;
		store_request_reset(req, STORE_GET);
		store_request_key(req, key);
		fill_in(req, &ask);
		store_run(l->d->store, req);
	}
}

/* document: taken over; NULL when there is none. */
static int use_document(struct loading *l, struct schema_document *document)
{
	schema_document_unref(l->d->document);
	l->d->document = document;
	if (!document)
		return err_set(l->err, -ENOENT, "it is not there");
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
		return err_set(l->err, -ENOMEM, "out of memory for a request");
	int rc = classify(l, req, false, &document);
	if (rc)
		return rc;
	rc = use_document(l, document);
	return rc ? err_wrap(l->err, rc, "%s", req->key) : 0;
}

static bool ask_document(struct loading *l, struct store_request *req)
{
	const struct schema_document *known = l->d->document;
	struct schema_ask ask = {.key = req->key, .room = req->room};
	struct schema_document *none;

	l->classify = (struct schema_classify){0};
	while (l->schemas[l->classify.schema] && l->schemas[l->classify.schema] != known->schema)
		l->classify.schema++;
	if (schema_classify(l->schemas, l->d->path, &l->classify, NULL, &ask, &none, NULL) !=
	    SCHEMA_ASKS)
		return false;
	fill_in(req, &ask);
	req->cond.if_none_match = known->etag[0] ? known->etag : NULL;
	return true;
}

/* The snapshot's own document is not this one, whatever else is as before. */
static bool must_reload(const struct loading *l)
{
	return l->previous && !is_version(l->d->document, l->previous->document);
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

static bool request(void *arg, size_t i, struct store_request *req)
{
	struct loading *l = arg;
	struct schema_ask ask = {.key = req->key, .room = req->room};

	if (l->confirm && i-- == 0)
		return ask_document(l, req);
	if (!l->d->schema->ask(l->loader, (uint32_t)i, &ask))
		return false;
	fill_in(req, &ask);
	return true;
}

/* Short enough to be kept, and all that is below its prefix. */
static int keep_listing(struct domain *d, struct store_request *req, struct err *err)
{
	struct store_page *page = &req->answer.page;

	if (req->op != STORE_LIST || req->list.delimit || store_failure(&req->answer, NULL) ||
	    page->n > DOMAIN_LISTING)
		return 0;
	d->listed_prefix = arena_strndup(d->arena, req->key, strlen(req->key));
	if (!d->listed_prefix)
		return err_set(err, -ENOMEM, "out of memory");
	store_page_release(&d->listing);
	d->listing = *page;
	*page = (struct store_page){0};
	return 0;
}

static int take(void *arg, size_t i, struct store_request *req)
{
	struct loading *l = arg;
	struct domain *d = l->d;
	struct schema_answer answer;

	if (l->confirm && i-- == 0)
		return take_document(l, req);
	const bool asked = req->done; /* a request that was not made has no answer */
	read_large(d, req);
	domain_answer(req, &answer);
	int rc = d->schema->give(l->loader, (uint32_t)i, asked ? &answer : NULL, l->err);
	if (!rc)
		rc = domain_charge(d, l->err);
	return rc ? rc : keep_listing(d, req, l->err);
}

static int run_round(struct loading *l, uint32_t n)
{
	const struct store_row row = {
		.n = n + l->confirm,
		.at_once = ROUND_AT_ONCE,
		.request = request,
		.take = take,
		.arg = l,
	};
	int rc = store_run_row(l->d->store, &row);

	l->confirm = false;
	if (rc == -ENOMEM && !l->err->code)
		return err_set(l->err, rc, "out of memory for %u requests", n);
	return rc == SCHEMA_ENOUGH ? 0 : rc;
}

static int run_loader(struct loading *l, bool *same)
{
	const struct schema_ops *schema = l->d->schema;
	uint32_t n;
	int rc;

	do {
		n = 0;
		rc = schema->round(l->loader, &n, l->err);
		if (!rc && n)
			rc = run_round(l, n);
	} while (!rc && n);
	*same = !rc && l->loader->same;
	l->d->space = l->loader->space;
	return rc;
}

static int load(struct loading *l, bool *same)
{
	struct domain *d = l->d;
	const struct schema_ops *schema = d->schema;
	const bool has_space = l->previous && l->previous->schema == schema;
	const struct schema_load what = {
		.document = d->document,
		.tree = d->tree,
		.previous = has_space ? l->previous->space : NULL,
		.reload = must_reload(l),
		.list_limit = DOMAIN_LISTING,
		.keep_limit = DOMAIN_KEPT_MAX,
		.accept = domain_accept,
		.ctx = d,
	};
	int rc = schema->loader_new(&what, &l->loader, l->err);

	if (!rc)
		rc = run_loader(l, same);
	schema->loader_free(l->loader);
	l->loader = NULL;
	return rc;
}

int domain_load(struct domain *d, const struct schema_ops *const *schemas,
		const struct domain_hint *hint, bool *same, struct err *err)
{
	struct err own = ERR_INIT;
	struct loading l = {.d = d, .schemas = schemas, .previous = hint->previous, .err = &own};
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
	if (rc && err)
		err_copy(err, &own);
	return rc;
}
