/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service's summary of the domain. The service makes one only after it has changed a domain
 * itself, so an update that adds or removes objects or chunks makes it wrong. A reader that finds
 * none shows no objects and no bytes.
 *
 * The last operation of the plan puts a new summary, made of a listing of the domain and of what
 * the plan puts and deletes. Whoever adds or removes something also puts or deletes the summary. So
 * the summary must have the same version from the open, whose tree says what is counted, to the
 * listing, and from the listing to the put, which has this version as its condition. If it has not,
 * somebody else has changed the domain, and the summary is deleted; apply.c does so if the
 * condition fails. So no summary stays that lacks a part of the domain, whenever a process is
 * killed: the plan is in the journal. A writer of the service makes a new summary afterwards
 * anyway.
 *
 * The summary is deleted, as if nothing was known, if the domain has more keys than a page, if data
 * stay in another HDF5 file, or if the listing fails. The listing runs while the rest of the plan
 * is made.
 */
#include "update_internal.h"

#include <stdlib.h>
#include <string.h>

#include <store/page.h>

/* The size that a key has after an operation; the listing comes before all operations. */
struct sized {
	const char *key;
	uint64_t order, size;
	bool is_gone;
};

static uint64_t digest_of(const char *etag)
{
	return etag[0] ? schema_digest(1, etag, strlen(etag) + 1) : 0;
}

uint64_t update_summary_of(const struct update_base *b)
{
	return b->summary ? b->summary : domain_summary(b->domain);
}

void update_summary_done(struct update_base *b, const char *etag)
{
	b->summary = digest_of(etag ? etag : "");
}

static bool can_count(const struct update *u)
{
	const struct tree *t = u->now->tree;
	const struct schema_writer *w = u->schema->writer;
	if (!w || !w->tally || !update_summary_of(u->base))
		return false;
	for (uint32_t i = 0; i < tree_count(t); i++)
		if (tree_object(t, tree_nth(t, i))->o.dataset.reference)
			return false;
	return true;
}

void update_summary_begin(struct update *u)
{
	struct storage storage;
	const bool counts_change = u->counts_changed || u->change.nadded || u->change.nremoved;
	if (!counts_change || !can_count(u) ||
	    !schema_storage_of(domain_document(u->base->domain), &storage))
		return;
	struct store_request *req = store_request_new(u->opt->store, STORE_LIST);
	if (!req)
		return;
	store_request_key(req, storage.prefix);
	req->list.complete = true;
	req->priority = STORE_COMMIT;
	req->cancelled = cancelled_by(u->opt->cancelled);
	store_pending_send(&u->listing, u->opt->store, req);
}

static int by_key(const void *x, const void *y)
{
	const struct sized *a = x, *b = y;
	const int order = strcmp(a->key, b->key);
	return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* Counts every key once, with the size that it has at the end. */
static int count(const struct update *u, const struct store_page *page, struct schema_tally *tally,
		 struct err *err)
{
	const struct plan_operation *ops = (const void *)u->operations.data;
	const size_t nops = u->operations.len / sizeof(*ops), n = page->n + nops;
	auto_free struct sized *all = calloc(n + 1, sizeof(*all));
	if (!all)
		return err_no_memory(err);
	for (size_t i = 0; i < page->n; i++)
		all[i] =
			(struct sized){.key = page->items[i].key, .size = page->items[i].meta.size};
	for (size_t i = 0; i < nops; i++)
		all[page->n + i] = (struct sized){.key = ops[i].key,
						  .order = ((uint64_t)ops[i].phase << 32) + i + 1,
						  .size = ops[i].length,
						  .is_gone = ops[i].action == PLAN_DELETE};
	qsort(all, n, sizeof(*all), by_key);
	for (size_t i = 0; i < n; i++)
		if (!all[i].is_gone && (i + 1 == n || strcmp(all[i].key, all[i + 1].key) != 0))
			u->schema->writer->tally->add(tally, all[i].key, all[i].size);
	return 0;
}

/* A dataset that is as in the image was not read, so only the domain describes it. */
static void describe_unread(const struct update *u, struct schema_tally *tally)
{
	for (uint32_t i = 0; i < tree_count(u->now->tree); i++) {
		const uint32_t number = tree_nth(u->now->tree, i);
		if (scan_is_unread(u->now, number))
			u->schema->writer->tally->describe(
				tally, number, &update_opened(u->base, u->now, number)->dataset);
	}
}

static int make_text(const struct update *u, const struct store_page *page, struct bytes *out,
		     struct err *err)
{
	const struct schema_tally_ops *ops = u->schema->writer->tally;
	const struct schema_scan scan = {.bucket = u->opt->bucket, .time_ns = u->opt->now_ns};
	struct schema_tally *tally;
	int rc = ops->begin(u->now->tree, &tally, err);
	if (rc)
		return rc;
	rc = count(u, page, tally, err);
	describe_unread(u, tally);
	if (!rc)
		rc = ops->emit(tally, &scan, out, err);
	ops->free(tally);
	return rc;
}

int update_plan_summary(struct update *u, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes text = {0};
	const struct schema_document *d = domain_document(u->base->domain);
	struct update_operation what = {
		.op = {.action = PLAN_DELETE, .phase = PHASE_SUMMARY},
		.key = key,
		.target = {.object = OBJECT_NONE, .owner = OBJECT_NONE},
	};
	if (!u->counts_changed || u->schema->info_key(d, key, sizeof(key)) <= 0)
		return 0;
	const struct store_request *req = store_pending_wait(&u->listing);
	const struct store_page *page = req ? &req->answer.page : NULL;
	if (!req || store_failure(&req->answer, NULL) || page->more)
		return update_add(u, &what, NULL, err);
	const struct store_item *old = store_page_find(page, key);
	if (!old || digest_of(old->meta.etag) != update_summary_of(u->base))
		return update_add(u, &what, NULL, err);
	const int rc = make_text(u, page, &text, err);
	if (rc)
		return rc;
	what.op.action = PLAN_PUT;
	what.op.condition = PLAN_IF_VERSION;
	what.op.version = old->meta.etag;
	return update_add(u, &what, &text, err);
}
