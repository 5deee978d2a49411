/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first step of an import: reads what the bucket has at the target, and puts or finds the
 * record. In the order of the checks:
 *
 *   document of the target         record        result
 *   names the storage of a record  that record   finished earlier: only cleaning up is left
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
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DOCUMENT_MAX = 16 << 20 /* bytes; those of domains and records have a few hundred */ };

/* Reads a small object. *out is NULL if there is none; the caller frees the request. */
static int get(const struct import_options *opt, const char *key, struct store_request **out,
	       struct err *err)
{
	struct store_request *req = store_request_new(opt->store, STORE_GET);
	*out = NULL;
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	store_request_key(req, key);
	req->max = DOCUMENT_MAX;
	req->cancelled = cancelled_by(opt->cancelled);
	store_run(opt->store, req);
	int rc = store_failure(&req->answer, err);
	if (rc || store_absence(&req->answer)) {
		store_request_free(req);
		return rc;
	}
	*out = req;
	return 0;
}

int import_document(const struct import_options *opt, const char *path,
		    struct schema_document **out, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	unsigned int step = 0;
	struct schema_request needed = {.key = key, .room = sizeof(key)};
	const struct schema_answer *last = NULL;
	struct schema_answer answer;
	auto_request struct store_request *req = NULL;
	int rc;
	*out = NULL;
	while ((rc = opt->schema->classify(path, &step, last, &needed, out, err)) ==
	       SCHEMA_NEEDS_ANSWER) {
		store_request_free(req);
		rc = get(opt, key, &req, err);
		if (rc)
			return rc;
		answer = (struct schema_answer){.absent = !req};
		if (req) {
			answer.etag = req->answer.meta.etag;
			answer.body = req->answer.body.data;
			answer.len = req->answer.body.len;
		}
		last = &answer;
	}
	return rc ? err_wrap(err, rc, "%s", key) : 0;
}

/* ---- the record ---- */

static int record_key(const struct import *im, char *key, size_t room, struct err *err)
{
	const int n = im->schema->import_key(im->opt->path, key, room);
	return n < 0 ? err_set(err, n, "%s: the path is too long", im->opt->path) : 0;
}

int import_read_record(struct import *im, bool *found, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_request struct store_request *req = NULL;
	int rc = record_key(im, key, sizeof(key), err);
	if (!rc)
		rc = get(im->opt, key, &req, err);
	*found = !rc && req;
	if (!*found)
		return rc;
	const struct bytes *body = &req->answer.body;
	rc = im->schema->import_parse(body->data, body->len, im->arena, &im->record, err);
	return rc ? err_wrap(err, rc, "%s", key) : 0;
}

bool import_names_record(const struct import *im, const struct schema_document *d)
{
	uint64_t domain;
	return d && d->info.root && !im->schema->domain_of_root(d->info.root, &domain, NULL) &&
	       domain == im->record.domain;
}

/* What the record says of a link; NULL: an import. */
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

static int put_record(struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	auto_request struct store_request *req = store_request_new(opt->store, STORE_PUT);
	auto_bytes struct bytes text = {0};
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
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
	};
	opt->env->random(opt->env, &im->record.domain, sizeof(im->record.domain));
	int rc = im->schema->import_emit(&im->record, &text, err);
	if (!rc)
		rc = im->schema->import_key(opt->path, req->key, req->room);
	if (rc < 0)
		return err->code ? rc : err_set(err, rc, "%s: the path is too long", opt->path);
	const struct piece piece = {text.data, text.len};
	req->pieces = &piece;
	req->n_pieces = 1;
	req->cond.if_none_match = "*";
	req->cancelled = cancelled_by(opt->cancelled);
	store_run(opt->store, req);
	rc = store_failure(&req->answer, err);
	if (rc == -EEXIST)
		return err_set(err, rc, "%s: another import to this path has just begun",
			       opt->path);
	im->is_new = !rc;
	return rc;
}

int import_delete_record(struct import *im, struct err *err)
{
	auto_request struct store_request *req = store_request_new(im->opt->store, STORE_DELETE);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	int rc = record_key(im, req->key, req->room, err);
	if (rc)
		return rc;
	store_run(im->opt->store, req);
	return store_failure(&req->answer, err);
}

/* Whether the record is that of this import, which then goes on. */
static int check_record(const struct import *im, struct err *err)
{
	const struct import_options *opt = im->opt;
	const struct schema_import *r = &im->record;
	const char *root = im->document ? im->document->info.root : NULL;
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
	else if (!same_text(r->replaces, root))
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

/* Finds the nearest folder above the domain that has a document. */
static int find_folder(struct import *im, struct err *err)
{
	auto_free char *path = strdup(im->opt->path);
	int rc = path ? 0 : err_set(err, -ENOMEM, "out of memory");
	while (!rc && !im->folder) {
		char *slash = strrchr(path, '/');
		if (!slash)
			return 0;
		*slash = '\0';
		rc = import_document(im->opt, path, &im->folder, err);
		im->folder_len = strlen(path);
		if (!rc && im->folder && im->folder->info.root)
			rc = err_set(err, -ENOTDIR, "%s: %s is a domain, not a folder",
				     im->opt->path, path);
	}
	return rc;
}

int import_begin(struct import *im, struct err *err)
{
	bool found = false;
	int rc = import_document(im->opt, im->opt->path, &im->document, err);
	if (!rc)
		rc = import_read_record(im, &found, err);
	im->is_finished = !rc && found && import_names_record(im, im->document);
	if (rc || im->is_finished)
		return rc;
	rc = check_target(im, err);
	if (!rc && found)
		rc = check_record(im, err);
	if (!rc)
		rc = find_folder(im, err);
	return rc || found ? rc : put_record(im, err);
}
