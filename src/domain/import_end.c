/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps of an import: folders, the document of the domain, the storage of a replaced
 * domain, the record.
 *
 * Two domains may share one root group. Before the storage of a replaced domain is deleted, the
 * documents of the domains in the same folder are read: if one of them names that storage, it
 * stays. Domains elsewhere in the bucket are not asked, as the service does not ask them when it
 * deletes a domain.
 */
#include "import_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_PERMS = (1 << DOMAIN_PERMS) - 1, DELETES = 64 };

/* ---- documents of domains and folders ---- */

/* Puts a document with the conditions of cond. */
static int put_info(const struct import *im, const char *path, const struct domain_info *info,
		    const struct store_cond *cond, struct err *err)
{
	auto_request struct store_request *req = store_request_new(im->opt->store, STORE_PUT);
	auto_bytes struct bytes text = {0};
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	int rc = im->schema->domain_key(path, req->key, req->room);
	if (rc < 0)
		return err_set(err, rc, "%s: the path is too long", path);
	rc = im->schema->emit_domain(info, &text, err);
	if (rc)
		return rc;
	const struct piece piece = {text.data, text.len};
	req->pieces = &piece;
	req->n_pieces = 1;
	req->cond = *cond;
	store_run(im->opt->store, req);
	rc = store_failure(&req->answer, err);
	if (!rc)
		im->result->puts++;
	return rc;
}

static const char *owner_of(const struct import *im)
{
	const struct import_options *opt = im->opt;
	const char *const owners[] = {
		opt->owner,	   im->document ? im->document->info.owner : NULL,
		opt->service_user, im->folder ? im->folder->info.owner : NULL,
		opt->local_user,
	};
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (owners[i] && *owners[i])
			return owners[i];
	return "";
}

/* Folders get documents if a folder above them has one: the service then lists them. In a bucket
 * whose folders have no documents, they need none. */
static int put_folders(const struct import *im, struct err *err)
{
	struct domain_acl acls[] = {{owner_of(im), ALL_PERMS}, {"default", DOMAIN_PERM_READ}};
	const struct domain_info info = {.owner = owner_of(im),
					 .nacls = 2,
					 .acls = acls,
					 .created_ns = im->record.created_ns,
					 .modified_ns = im->record.created_ns};
	const struct store_cond absent = {.if_none_match = "*"};
	auto_free char *path = strdup(im->opt->path);
	int rc = path ? 0 : err_set(err, -ENOMEM, "out of memory");
	if (rc || !im->folder)
		return rc;
	for (char *end = path + im->folder_len; !rc && (end = strchr(end + 1, '/'));) {
		*end = '\0';
		rc = put_info(im, path, &info, &absent, err);
		if (rc == -EEXIST) /* another program has just made it */
			rc = 0;
		*end = '/';
	}
	return rc;
}

/* After the condition of the document's put has failed: a put whose answer was lost may have
 * succeeded, or the same import in another process. */
static int check_loser(struct import *im, int code, struct err *err)
{
	struct schema_document *now = NULL;
	struct err ignored = ERR_INIT;
	const int rc = import_document(im->opt, im->opt->path, &now, &ignored);
	const bool ours = !rc && import_names_record(im, now);
	const bool folder = !rc && now && !now->info.root;
	im->is_lost = !rc && (folder || !import_replaces(im, now));
	schema_document_unref(now);
	if (ours)
		return 0;
	return err_set(err, code,
		       code == -EEXIST ? "%s: a domain with this path was created during the import"
				       : "%s: the domain was changed during the import",
		       im->opt->path);
}

static int put_domain(struct import *im, struct err *err)
{
	struct domain_acl own = {owner_of(im), ALL_PERMS};
	const struct domain_info *old = im->document ? &im->document->info : NULL;
	const bool keep = old && !im->opt->owner && old->nacls;
	const struct domain_info info = {
		.root = tree_object(im->tree, tree_nth(im->tree, 0))->o.id,
		.owner = own.user,
		.nacls = keep ? old->nacls : 1,
		.acls = keep ? old->acls : &own,
		.created_ns = im->record.created_ns,
		.modified_ns = im->record.created_ns,
	};
	const struct store_cond cond = {
		.if_none_match = im->document ? NULL : "*",
		.if_match = im->document ? im->document->etag : NULL,
	};
	int rc = put_info(im, im->opt->path, &info, &cond, err);
	return rc == -EEXIST || rc == -ESTALE ? check_loser(im, rc, err) : rc;
}

/* ---- deleting ---- */

int import_purge(const struct import_options *opt, const char *prefix, uint64_t *deleted,
		 struct err *err)
{
	auto_request struct store_request *req = store_request_new(opt->store, STORE_LIST);
	auto_put_queue struct put_queue *q = put_queue_new(opt->env, opt->store, DELETES, NULL);
	auto_free char *after = NULL;
	struct put_queue_counts counts;
	int rc = req && q ? 0 : err_set(err, -ENOMEM, "out of memory");
	for (bool more = true; !rc && more;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		if (after)
			store_request_start_after(req, after);
		store_run(opt->store, req);
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

/* Whether a domain in the same folder names the storage: 1, 0 or a negative errno. */
static int is_shared(const struct import *im, uint64_t storage, struct err *err)
{
	const struct import_options *opt = im->opt;
	auto_request struct store_request *req = store_request_new(opt->store, STORE_LIST);
	const char *slash = strrchr(opt->path, '/');
	int found = 0;
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, opt->path);
	req->key[slash ? slash - opt->path + 1 : 0] = '\0';
	req->list.delimit = true;
	req->list.whole = true;
	store_run(opt->store, req);
	int rc = store_failure(&req->answer, err);
	const struct store_page *page = &req->answer.page;
	for (size_t i = 0; !rc && !found && i < page->n; i++) {
		struct schema_document *d = NULL;
		uint64_t other;
		if (!page->items[i].is_prefix || im->schema->is_storage(page->items[i].key))
			continue;
		auto_free char *path = strndup(page->items[i].key, strlen(page->items[i].key) - 1);
		if (!path)
			return err_set(err, -ENOMEM, "out of memory");
		rc = import_document(opt, path, &d, err);
		found = !rc && d && d->info.root &&
			!im->schema->domain_of_root(d->info.root, &other, NULL) && other == storage;
		schema_document_unref(d);
	}
	return rc ? rc : found;
}

static int delete_replaced(struct import *im, struct err *err)
{
	char prefix[SCHEMA_KEY_MAX + 1];
	uint64_t storage, deleted;
	const char *root = im->record.replaces;
	if (!root || im->opt->keep_storage)
		return 0;
	if (im->schema->domain_of_root(root, &storage, NULL)) {
		import_note(im, "the storage of the replaced domain is kept, because no listing "
				"shows it");
		return 0;
	}
	int rc = is_shared(im, storage, err);
	if (rc == 1) {
		import_note(im, "the storage of the replaced domain is kept, because another "
				"domain in the same folder uses it");
		return 0;
	}
	if (!rc)
		rc = im->schema->storage_prefix(storage, prefix, sizeof(prefix));
	return rc < 0 ? rc : import_purge(im->opt, prefix, &deleted, err);
}

int import_clean_up(struct import *im, struct err *err)
{
	int rc = delete_replaced(im, err);
	if (!rc)
		rc = import_delete_record(im, err);
	if (!rc)
		return 0;
	const struct err why = *err;
	return err_set(err, rc,
		       "%s: the domain is complete, but %s is not removed: %s; the same command "
		       "tries again",
		       im->opt->path,
		       im->record.replaces ? "the storage of the replaced domain"
					   : "the record of its import",
		       why.msg);
}

int import_end(struct import *im, struct err *err)
{
	int rc = put_folders(im, err);
	return rc ? rc : put_domain(im, err);
}
