/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps of an import: folders, the document of the domain, the storage of a replaced
 * domain, the record.
 */
#include "import_internal.h"

#include <storage/rename.h>
#include <storage/storage_deletion.h>

#include <errno.h>
#include <string.h>

/* ---- documents of domains and folders ---- */

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
	auto_free char *path = strdup(im->opt->path);
	int rc = path ? 0 : err_no_memory(err);
	if (rc || !im->has_folder)
		return rc;
	for (char *end = path + im->folder_len; !rc && (end = strchr(end + 1, '/'));) {
		*end = '\0';
		rc = document_put_folder(&im->place, path, owner_of(im), im->record.created_ns,
					 err);
		if (!rc)
			im->result->puts++;
		if (rc == -EEXIST) /* another program has just made it */
			rc = 0;
		*end = '/';
	}
	return rc;
}

/* After the condition of the document's put has failed: a put whose answer was lost may have
 * succeeded, or the same import in another process. If the path has no document any more, one of
 * this import may have been renamed: a server between this program and the bucket may have sent the
 * put twice. */
static int check_loser(struct import *im, int code, struct err *err)
{
	struct schema_document *now = NULL;
	struct err ignored = ERR_INIT;
	const int rc = document_get(&im->place, im->opt->path, &now, &ignored);
	const bool ours = !rc && import_names_record(im, now);
	const bool folder = !rc && now && !now->info.root;
	im->is_lost = !rc && (folder || !import_replaces(im, now));
	im->result->unseen = !rc && now && !ours && !im->is_repeated;
	if (ours)
		memcpy(im->result->etag, now->etag, min_u64(strlen(now->etag) + 1, STORE_ETAG_MAX));
	schema_document_unref(now);
	if (ours)
		return 0;
	return err_set(err, code,
		       code == -EEXIST ? "%s: a domain with this path was created during the import"
				       : "%s: the domain was changed during the import",
		       im->opt->path);
}

static int put_document(struct import *im, const struct domain_info *info,
			const struct store_cond *cond, struct err *err)
{
	struct document_answer answer = {.etag = ""};
	const int rc = document_put(&im->place, im->opt->path, info, cond, &answer, err);
	if (!rc)
		memcpy(im->result->etag, answer.etag, STORE_ETAG_MAX);
	im->is_repeated |= answer.repeated;
	return rc;
}

/* A directory has an object in the way. */
static int make_way(struct import *im, struct err *err)
{
	const struct import_commit *commit = im->opt->commit;
	const int rc = commit->make_way(commit->ctx, err);
	im->result->unseen = rc && !im->is_repeated;
	return rc;
}

/* Returns the domain whose access control list the new one gets, or NULL if it gets a list of its
 * own. */
static const struct domain_info *find_acls(const struct import *im)
{
	const struct domain_info *old = im->document ? &im->document->info : NULL;
	if (im->opt->acls)
		return im->opt->acls;
	return old && !im->opt->owner && old->nacls ? old : NULL;
}

static int put_domain(struct import *im, struct err *err)
{
	const struct import_commit *commit = im->opt->commit;
	struct domain_acl own = {owner_of(im), DOCUMENT_ALL_PERMS};
	const struct domain_info *list = find_acls(im);
	const struct domain_info info = {
		.root = tree_object(im->tree, tree_nth(im->tree, 0))->o.id,
		.owner = own.user,
		.nacls = list ? list->nacls : 1,
		.acls = list ? list->acls : &own,
		.created_ns = im->record.created_ns,
		.modified_ns = commit ? commit->modified_ns : im->record.created_ns,
	};
	const struct store_cond cond = {
		.if_none_match = im->document ? NULL : "*",
		.if_match = im->document ? im->document->etag : NULL,
	};
	int rc = put_document(im, &info, &cond, err);
	if (rc == -ENOTDIR && commit) {
		rc = make_way(im, err);
		if (rc)
			return rc;
		rc = put_document(im, &info, &cond, err);
	}
	if (!rc)
		im->result->puts++;
	return rc == -EEXIST || rc == -ESTALE ? check_loser(im, rc, err) : rc;
}

/* ---- deleting ---- */

static int delete_replaced(struct import *im, struct err *err)
{
	struct storage storage;
	uint64_t deleted;
	const char *root = im->record.replaces;
	if (!root || im->opt->keep_storage)
		return 0;
	if (schema_storage_of_root(im->schema, root, &storage, NULL)) {
		import_note(im, "the storage of the replaced domain is kept, because no listing "
				"shows it");
		return 0;
	}
	const int rc = storage_delete(&im->place, NULL, im->opt->path, &storage, &deleted, err);
	if (rc > 0)
		import_note(im, "the storage of the replaced domain is kept, because another "
				"domain uses it");
	return rc < 0 ? rc : 0;
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

/* The path is about to get another storage. */
static int leave_replaced(struct import *im, struct err *err)
{
	struct storage storage;
	if (!schema_storage_of(im->document, &storage))
		return 0;
	const int rc = rename_leave(&im->place, im->opt->commit ? im->opt->commit->renames : NULL,
				    &storage, im->opt->path, err);
	return rc < 0 ? rc : 0;
}

/* A process that aborts the import may have deleted what this one has put: it marks the storage,
 * and deletes the record at the end. Nobody aborts a commit. */
static int check_named(struct import *im, struct err *err)
{
	const struct schema_import ours = im->record;
	bool found;
	int rc = import_is_old(im) ? import_guard(im, err)
				   : storage_is_named(&im->place, &ours.storage, err);
	if (!rc)
		rc = import_read_record(im, &found, err);
	if (!rc && (!found || !same_storage(&im->record.storage, &ours.storage)))
		rc = err_set(err, -ESTALE,
			     "%s: another process has ended this import at the same moment; "
			     "`hsimage check` tells whether the domain is complete",
			     im->opt->path);
	im->record = ours;
	return rc;
}

int import_end(struct import *im, struct err *err)
{
	const struct import_commit *commit = im->opt->commit;
	import_summary_send(im);
	int rc = put_folders(im, err);
	if (!rc)
		rc = leave_replaced(im, err);
	if (!rc && commit)
		rc = commit->publish(commit->ctx, err);
	if (!rc)
		rc = put_domain(im, err);
	import_summary_end(im);
	if (rc)
		return rc;
	return commit ? import_guard(im, err) : check_named(im, err);
}
