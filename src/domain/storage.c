/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storage of domains that are removed or replaced: see document.h.
 *
 * Two domains may share one root group. Before the storage of a domain is deleted, the documents of
 * the domains in the same folder are read: if one of them names that storage, it stays. Domains
 * elsewhere in the bucket are not asked, as the service does not ask them when it deletes a domain.
 */
#include "document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

#include "put_queue.h"

enum { DELETES = 64 };

int document_names_storage(const struct document_place *p, const char *path, uint64_t storage,
			   struct err *err)
{
	struct schema_document *d = NULL;
	uint64_t other;
	const int rc = document_get(p, path, &d, err);
	const bool same = !rc && d && d->info.root &&
			  !p->schema->domain_of_root(d->info.root, &other, NULL) &&
			  other == storage;
	schema_document_unref(d);
	return rc ? rc : same;
}

/* The same for the domain or folder at a prefix. */
static int prefix_names_storage(const struct document_place *p, const char *prefix,
				uint64_t storage, struct err *err)
{
	auto_free char *path = strndup(prefix, strlen(prefix) - 1);
	return path ? document_names_storage(p, path, storage, err)
		    : err_set(err, -ENOMEM, "out of memory");
}

int storage_is_shared(const struct document_place *p, const char *path, uint64_t storage,
		      struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	const char *slash = strrchr(path, '/');
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, path);
	req->key[slash ? slash - path + 1 : 0] = '\0';
	req->list.delimit = true;
	req->list.whole = true;
	req->list.complete = true;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	int rc = store_failure(&req->answer, err);
	const struct store_page *page = &req->answer.page;
	for (size_t i = 0; !rc && i < page->n; i++)
		if (page->items[i].is_prefix && !p->schema->is_storage(page->items[i].key))
			rc = prefix_names_storage(p, page->items[i].key, storage, err);
	return rc;
}

int storage_purge(const struct document_place *p, const char *prefix, uint64_t *deleted,
		  struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	auto_put_queue struct put_queue *q = put_queue_new(p->env, p->store, DELETES, p->cancelled);
	auto_free char *after = NULL;
	struct put_queue_counts counts;
	int rc = req && q ? 0 : err_set(err, -ENOMEM, "out of memory");
	for (bool more = true; !rc && more;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		if (after)
			store_request_start_after(req, after);
		req->cancelled = cancelled_by(p->cancelled);
		store_run(p->store, req);
		const struct store_page *page = &req->answer.page;
		rc = store_failure(&req->answer, err);
		for (size_t i = 0; !rc && i < page->n; i++)
			if (!page->items[i].is_prefix)
				rc = put_queue_add(q, &(struct put){.key = page->items[i].key},
						   err);
		more = !rc && page->more;
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (more && !after)
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	if (!rc)
		rc = put_queue_flush(q, err);
	if (q) {
		put_queue_counts(q, &counts);
		*deleted = counts.deletes;
	}
	return rc;
}
