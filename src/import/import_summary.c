/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service's summary of the new domain. The service makes one only after it has changed a domain
 * itself: until then its clients would show no objects and no bytes.
 *
 * Everything that is put is counted, and so is what an earlier call has put. The summary is put at
 * the same time as the document of the domain, and only if there is none: as soon as the domain is
 * seen, the service may make a newer one. It is below the prefix of the storage. So it is deleted
 * with the storage if the import fails, and means nothing until a domain names the storage. An
 * import that is repeated makes the same summary. A summary that cannot be made or put is no reason
 * for an import to fail. A commit puts none, because close() would wait for it.
 */
#include "import_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <store/pending.h>

enum { SUMMARY_MAX = 64 << 20 /* bytes */ };

struct import_summary {
	const struct schema_tally_ops *ops;
	struct bytes text;
	struct piece piece;
	struct store_pending pending;
	pthread_mutex_t lock; /* guards the member below */
	struct schema_tally *tally;
};

void import_summary_begin(struct import *im)
{
	const struct schema_tally_ops *ops = im->opt->commit ? NULL : im->schema->writer->tally;
	struct import_summary *s = ops ? calloc(1, sizeof(*s)) : NULL;
	if (!s || ops->begin(im->tree, &s->tally, NULL)) {
		free(s);
		return;
	}
	s->ops = ops;
	pthread_mutex_init(&s->lock, NULL);
	im->summary = s;
}

void import_summary_free(struct import *im)
{
	struct import_summary *s = im->summary;
	if (!s)
		return;
	import_summary_end(im);
	s->ops->free(s->tally);
	bytes_release(&s->text);
	pthread_mutex_destroy(&s->lock);
	free(s);
	im->summary = NULL;
}

void import_summary_add(const struct import *im, const char *key, uint64_t size)
{
	struct import_summary *s = im->summary;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ops->add(s->tally, key, size);
	pthread_mutex_unlock(&s->lock);
}

/* ---- putting it ---- */

/* Counts the chunks that stay in an HDF5 file. */
static void add_linked(const struct import *im)
{
	for (uint32_t i = 0; i < im->npaths; i++)
		if (im->datasets[i].linked)
			im->summary->ops->link(im->summary->tally, i, im->datasets[i].linked,
					       im->datasets[i].bytes);
}

static int make_text(const struct import *im, const char *root, struct store_request *req,
		     struct err *err)
{
	struct import_summary *s = im->summary;
	const struct domain_info info = {.root = root};
	const struct schema_scan scan = {
		.bucket = im->opt->bucket,
		.time_ns = im->record.created_ns,
	};
	const struct schema_document d = {.schema = im->schema, .info = info};
	add_linked(im);
	int rc = s->ops->emit(s->tally, &scan, &s->text, err);
	if (!rc && s->text.len > SUMMARY_MAX)
		rc = err_set(err, -EFBIG, "it would be longer than 64 MiB");
	if (!rc && im->schema->info_key(&d, req->key, req->room) <= 0)
		rc = err_set(err, -ENAMETOOLONG, "its key is too long");
	return rc;
}

static void note(const struct import *im, const struct err *why)
{
	import_note(im,
		    "the summary for HSDS is not stored: %s; its clients show a size only after a "
		    "rescan",
		    why->msg);
}

void import_summary_send(struct import *im)
{
	struct import_summary *s = im->summary;
	struct err err = ERR_INIT;
	if (!s)
		return;
	struct store_request *req = store_request_new(im->opt->store, STORE_PUT);
	const char *root = tree_object(im->tree, tree_nth(im->tree, 0))->o.id;
	if (!req)
		err_no_memory(&err);
	if (!req || make_text(im, root, req, &err)) {
		note(im, &err);
		store_request_free(req);
		return;
	}
	s->piece = (struct piece){s->text.data, s->text.len};
	req->pieces = &s->piece;
	req->n_pieces = 1;
	req->cond = (struct store_cond){.if_none_match = "*"};
	req->cancelled = cancelled_by(im->opt->cancelled);
	store_pending_send(&s->pending, im->opt->store, req);
}

void import_summary_end(struct import *im)
{
	struct store_request *req = im->summary ? store_pending_wait(&im->summary->pending) : NULL;
	struct err err = ERR_INIT;
	if (!req)
		return;
	const int rc = store_failure(&req->answer, &err);
	if (rc && rc != -EEXIST)
		note(im, &err);
	store_pending_free(&im->summary->pending);
}
