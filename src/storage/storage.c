/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storage of domains that are removed or replaced: see documents.h.
 *
 * Two domains may share one root group. Before the storage of a domain is deleted, the documents of
 * the domains in the same folder are read: if one of them names that storage, it stays. Domains
 * elsewhere in the bucket are not asked, as the service does not ask them when it deletes a domain.
 */
#include <domain/documents.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <data/tree.h>

#include <store/put_queue.h>

enum { DELETES = 64, TREE = 1 << 20 /* bytes, of one group */ };

int storage_root_key(const struct document_place *p, const struct storage *storage,
		     char key[SCHEMA_KEY_MAX + 1], struct err *err)
{
	uint32_t root;
	struct tree *t = tree_new(TREE);
	if (!t)
		return err_no_memory(err);
	int rc = tree_add(t, &root, err);
	if (!rc)
		tree_edit(t, root)->kind = OBJECT_GROUP;
	if (!rc)
		rc = p->schema->writer->adopt(t, storage, 0, err);
	if (!rc && p->schema->writer->object_key(t, root, key, SCHEMA_KEY_MAX + 1) < 0)
		rc = err_set(err, -EINVAL, "the storage has no root group");
	tree_free(t);
	return rc;
}

int storage_has_root(const struct document_place *p, const struct storage *storage, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	const int rc = storage_root_key(p, storage, key, err);
	return rc ? rc : document_exists(p, key, err);
}

int document_names_storage(const struct document_place *p, const char *path,
			   const struct storage *storage, struct err *err)
{
	struct schema_document *d = NULL;
	struct storage other;
	const int rc = document_get(p, path, &d, err);
	const bool same = !rc && schema_storage_of(d, &other) && same_storage(&other, storage);
	schema_document_unref(d);
	return rc ? rc : same;
}

/* Does the same for the domain or folder at a prefix. */
static int prefix_names_storage(const struct document_place *p, const char *prefix,
				const struct storage *storage, struct err *err)
{
	auto_free char *path = strndup(prefix, strlen(prefix) - 1);
	return path ? document_names_storage(p, path, storage, err) : err_no_memory(err);
}

int storage_is_shared(const struct document_place *p, const char *path,
		      const struct storage *storage, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	const char *slash = strrchr(path, '/');
	if (!req)
		return err_no_memory(err);
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

static bool is_kept(const struct purge_order *order, const char *key)
{
	return order && (strcmp(order->kept[0], key) == 0 || strcmp(order->kept[1], key) == 0);
}

static int purge_key(struct put_queue *q, const struct purge_order *order, const char *key,
		     struct err *err)
{
	const bool is_first = order && strcmp(order->first, key) == 0;
	int rc = order ? order->check(order->ctx, err) : 0;
	if (!rc && !is_kept(order, key))
		rc = put_queue_add(q, &(struct put){.key = key}, err);
	return rc || !is_first ? rc : put_queue_flush(q, err);
}

int storage_purge(const struct document_place *p, const char *prefix,
		  const struct purge_order *order, uint64_t *deleted, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	auto_put_queue struct put_queue *q = put_queue_new(p->env, p->store, DELETES, p->cancelled);
	auto_free char *after = NULL;
	struct put_queue_counts counts;
	int rc = req && q ? 0 : err_no_memory(err);
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
				rc = purge_key(q, order, page->items[i].key, err);
		more = !rc && page->more;
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (more && !after)
			rc = err_no_memory(err);
	}
	if (!rc)
		rc = put_queue_flush(q, err);
	if (q) {
		put_queue_counts(q, &counts);
		*deleted = counts.deletes;
	}
	return rc;
}
