/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first step of an import: reads what the bucket has at the target, and puts or finds the
 * record. In the order of the checks:
 *
 *   document of the target         record        result
 *   names the storage of a record  that record   finished earlier: only cleaning up is left
 *   anything else; a rename has    that record   the same, and then as if there was no record
 *   given this storage a name
 *   a folder                       any           -EISDIR
 *   a domain, without --replace    any           -EEXIST
 *   none, or a domain to replace   none          a new import
 *                                  same import   the import goes on
 *                                  another one   -EEXIST
 *
 * The put of the record also shows whether the bucket can be written, before the file is read.
 */
#include "import_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <storage/storage_names.h>

/* ---- the record ---- */

static int record_key(const struct import *im, char *key, size_t room, struct err *err)
{
	const int n = im->schema->writer->import_key(im->opt->path, key, room);
	return n < 0 ? err_set(err, n, "%s: the path is too long", im->opt->path) : 0;
}

int import_read_record(struct import *im, bool *found, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	int rc = record_key(im, key, sizeof(key), err);
	if (!rc)
		rc = document_read(&im->place, key, &req, err);
	*found = !rc && req;
	if (!*found)
		return rc;
	const struct bytes *body = &req->answer.body;
	rc = im->schema->writer->import_parse(body->data, body->len, im->arena, &im->record, err);
	im->record.storage.schema = im->schema;
	return rc ? err_wrap(err, rc, "%s", key) : 0;
}

bool import_names_record(const struct import *im, const struct schema_document *d)
{
	struct storage storage;
	return schema_storage_of(d, &storage) && same_storage(&storage, &im->record.storage);
}

/* Returns what the record says of a link, or NULL for an import. */
static const char *kind_of(const struct import_options *opt)
{
	return !opt->link ? NULL : opt->link->locate ? "located" : "tables";
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool import_is_same_kind(const struct import *im)
{
	const struct import_link *link = im->opt->link;
	return same_text(im->record.link, kind_of(im->opt)) &&
	       (!link || same_text(im->record.etag, link->etag));
}

bool import_replaces(const struct import *im, const struct schema_document *d)
{
	return same_text(im->record.replaces, d ? d->info.root : NULL);
}

/* Puts the record. See struct store_cond for if_none_match. */
static int put_record(const struct import *im, const char *if_none_match, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes text = {0};
	const struct store_cond cond = {.if_none_match = if_none_match};
	int rc = im->schema->writer->import_emit(&im->record, &text, err);
	if (!rc)
		rc = record_key(im, key, sizeof(key), err);
	return rc ? rc : document_write(&im->place, key, text.data, text.len, &cond, NULL, err);
}

static int begin_record(struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	const char *life = store_life(opt->store);
	uint64_t number;
	im->record = (struct schema_import){
		.path = opt->path,
		.file = opt->file.name,
		.replaces = im->document ? im->document->info.root : NULL,
		.min_chunk = opt->min_chunk,
		.size = opt->file.size,
		.mtime_ns = opt->file.mtime_ns,
		.created_ns = opt->now_ns,
		.link = kind_of(opt),
		.etag = opt->link ? opt->link->etag : NULL,
		.life = *life ? life : NULL,
	};
	opt->env->random(opt->env, &number, sizeof(number));
	im->record.storage = schema_storage_of_number(im->schema, number);
	const int rc = put_record(im, "*", err);
	if (rc == -EEXIST)
		return err_set(err, rc, "%s: another import to this path has just begun",
			       opt->path);
	im->is_new = !rc;
	return rc;
}

int import_distrust(struct import *im, struct err *err)
{
	im->record.life = "lost";
	return put_record(im, NULL, err);
}

int import_delete_record(struct import *im, struct err *err)
{
	auto_request struct store_request *req = store_request_new(im->opt->store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	int rc = record_key(im, req->key, req->room, err);
	if (rc)
		return rc;
	store_run(im->opt->store, req);
	return store_failure(&req->answer, err);
}

/* Checks that the record is that of this import, which then goes on. */
static int check_record(const struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	const struct schema_import *r = &im->record;
	const char *why = NULL;
	if (r->size != opt->file.size || r->mtime_ns != opt->file.mtime_ns)
		why = "it was started with another file or another version of the file";
	else if (r->min_chunk != opt->min_chunk)
		why = "it was started with another --min-chunk";
	else if (!same_text(r->link, kind_of(opt)))
		why = r->link ? "it is a link, or one with another --fastlink"
			      : "it copies the data instead of linking them";
	else if (!import_is_same_kind(im))
		why = "it was started with another version of the file";
	else if (!import_replaces(im, im->document))
		why = "the domain that it was to replace has changed";
	if (!why)
		return 0;
	return err_set(
		err, -EEXIST,
		"%s: an import of %s is not finished, and cannot be continued: %s; to remove "
		"what it has stored, use --abort",
		opt->path, r->file, why);
}

/* ---- what is there ---- */

static int check_target(const struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	if (!im->document)
		return 0;
	if (!im->document->info.root)
		return err_set(err, -EISDIR, "%s: it is a folder", opt->path);
	if (!opt->replace)
		return err_set(err, -EEXIST, "%s: the domain exists; to replace it, use --replace",
			       opt->path);
	return 0;
}

static void begin_commit(struct import *im)
{
	const struct import_options *opt = im->opt;
	const struct import_commit *c = opt->commit;
	im->document = c->replaced ? schema_document_ref(c->replaced) : NULL;
	im->has_folder = c->has_folder;
	im->folder_len = c->folder_len;
	im->continues = c->continues;
	im->record = (struct schema_import){
		.path = opt->path,
		.file = opt->file.name,
		.storage = c->storage,
		.replaces = c->replaced ? c->replaced->info.root : NULL,
		.created_ns = opt->now_ns,
	};
}

/* Whether the domain of the record was complete, and has been renamed since. Returns 1, 0, or a
 * negative errno. */
static int was_renamed(const struct import *im, struct err *err)
{
	char path[STORE_KEY_MAX + 1];
	const int rc = storage_names_find(&im->place, &im->record.storage, path, err);
	if (rc > 0)
		import_note(im,
			    "an earlier import to this path was complete, and its domain was "
			    "renamed to /%s",
			    path);
	return rc;
}

int import_find_finished(struct import *im, struct err *err)
{
	if (import_names_record(im, im->document)) {
		im->is_finished = true;
		return 0;
	}
	const int rc = was_renamed(im, err);
	im->is_finished = im->is_elsewhere = rc > 0;
	return rc < 0 ? rc : 0;
}

int import_begin(struct import *im, struct err *err)
{
	bool found = false;
	if (im->opt->commit) {
		begin_commit(im);
		return 0;
	}
	int rc = document_get(&im->place, im->opt->path, &im->document, err);
	if (!rc)
		rc = import_read_record(im, &found, err);
	if (!rc && found)
		rc = import_find_finished(im, err);
	if (rc || im->is_finished)
		return rc;
	im->continues = found;
	rc = check_target(im, err);
	if (!rc && found)
		rc = check_record(im, err);
	if (!rc)
		rc = document_above(&im->place, im->opt->path, &im->folder, &im->folder_len, err);
	im->has_folder = im->folder;
	return rc || found ? rc : begin_record(im, err);
}
