/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A draft becomes a plain object: see draft_put.h.
 *
 *   the bucket has    order                                condition
 *   nothing           put                                  absent
 *   an object         put                                  its version
 *   a domain          put, then the document is deleted    none, then the version of the document
 *
 * A domain hides an object of the same name, so readers see the domain until the object is
 * complete. A directory cannot have both: there the document is deleted first.
 */
#include "draft_put.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/printable.h>

enum { COMPARED = 8 << 20 /* bytes of an object that are compared at a time */ };

static const char *nonempty(const char *text)
{
	return text[0] ? text : NULL;
}

int draft_delete_object(const struct draft_put *p, const char *key, const char *etag,
			struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->cond.if_match = nonempty(etag);
	store_run(p->bucket->store, req);
	return store_failure(&req->answer, err);
}

/* ---- an object that an earlier attempt may have put ---- */

/* Returns 1 if n bytes of a version of the object at an offset are those of the draft, 0 if not, or
 * a negative errno. */
static int same_range(struct draft_put *p, const char *etag, struct store_request *req,
		      uint8_t *buf, uint64_t offset, size_t n, struct err *err)
{
	store_request_reset(req, STORE_GET);
	store_request_key(req, p->about->name);
	req->range = (struct store_range){.first = offset, .length = n};
	req->max = n;
	req->cond.if_match = nonempty(etag);
	req->cancelled = cancelled_by(p->c->cancelled);
	store_run(p->bucket->store, req);
	int rc = store_failure(&req->answer, err);
	if (rc == -ESTALE || (!rc && store_absence(&req->answer)))
		return 0;
	if (!rc)
		rc = source_read(&p->bytes, offset, buf, n, err);
	if (rc)
		return rc;
	const struct bytes *body = &req->answer.body;
	return body->len == n && memcmp(body->data, buf, n) == 0;
}

/* Returns 1 if the object has the same bytes in [at, end), 0 if not, or a negative errno. */
static int same_part(struct draft_put *p, const char *etag, uint64_t at, uint64_t end,
		     struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_GET);
	auto_free uint8_t *buf = malloc(COMPARED);
	int same = 1;
	if (!req || !buf)
		return err_no_memory(err);
	for (; same == 1 && at < end; at += COMPARED)
		same = same_range(p, etag, req, buf, at, (size_t)min_u64(end - at, COMPARED), err);
	return same;
}

enum { NOT_OURS, PERHAPS_OURS, OURS };

/* Finds out whether a commit of this draft has put the object, by its mark. Another program may
 * have put equal bytes. If the store does not keep marks, only the bytes can tell. Returns one of
 * the above, or a negative errno. */
static int find_owner(const struct draft_put *p, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_HEAD);
	const char *id = draft_id(p->c->draft);
	const struct store_answer *a = req ? &req->answer : NULL;
	if (!req)
		return err_no_memory(err);
	store_request_key(req, p->about->name);
	req->wants_mark = true;
	req->cond.if_match = nonempty(p->present.etag);
	req->cancelled = cancelled_by(p->c->cancelled);
	store_run(p->bucket->store, req);
	const int rc = store_failure(a, err);
	if (rc == -ESTALE || (!rc && store_absence(a)))
		return NOT_OURS;
	if (rc)
		return rc;
	if (a->mark[0])
		return strncmp(a->mark, id, strlen(id)) == 0 && a->mark[strlen(id)] == '-'
			       ? OURS
			       : NOT_OURS;
	return store_keeps_marks(p->bucket->store) == STORE_MARKS_KEPT ? NOT_OURS : PERHAPS_OURS;
}

/* Returns 1 if this version of the object has the bytes of the draft, 0 if not, or a negative
 * errno. */
static int has_bytes(struct draft_put *p, const struct store_meta *meta, struct err *err)
{
	struct draft *d = p->c->draft;
	struct draft_extent x = {0};
	struct draft_stat stat;
	int same = meta->size == p->bytes.size;
	if (p->about->kind != DRAFT_CHANGE)
		return same == 1 ? same_part(p, meta->etag, 0, p->bytes.size, err) : same;
	draft_get_stat(d, &stat);
	if (stat.changes != draft_snapshot_changes(p->c->snapshot))
		return 0; /* the extents are not those of the snapshot */
	while (same == 1 && draft_next_extent(d, &x))
		if (x.kind != DRAFT_BENEATH)
			same = same_part(p, meta->etag, x.start, min_u64(x.end, p->bytes.size),
					 err);
	return same;
}

int draft_same_object(struct draft_put *p, struct err *err)
{
	const int owner = find_owner(p, err);
	return owner > NOT_OURS ? has_bytes(p, &p->present.node->meta, err) : owner;
}

/* ---- a put ---- */

/* Returns whether the first and only attempt of a put was refused, so that nobody can have seen
 * it. */
static bool is_refused(const struct store_answer *a)
{
	const int rc = store_failure(a, NULL);
	return (rc == -EEXIST || rc == -ESTALE || rc == -EISDIR) && !a->repeated;
}

/* To be called if a put was sent again after a lost answer, and could not read any more what lies
 * beneath the draft. Returns 1 if the first attempt has stored the object, whose version `etag`
 * gets, 0 if not, or a negative errno. */
static int is_stored(struct draft_put *p, const struct store_request *put,
		     char etag[STORE_ETAG_MAX], struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_HEAD);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, put->key);
	req->wants_mark = true;
	req->cancelled = put->cancelled;
	store_run(p->bucket->store, req);
	const struct store_answer *a = &req->answer;
	const int rc = store_failure(a, err);
	if (rc || store_absence(a))
		return rc;
	memcpy(etag, a->meta.etag, STORE_ETAG_MAX);
	if (a->mark[0] || store_keeps_marks(p->bucket->store) == STORE_MARKS_KEPT)
		return strcmp(a->mark, put->mark) == 0;
	return has_bytes(p, &a->meta, err);
}

/* Puts the bytes. `etag` gets the new version. */
static int put(struct draft_put *p, const char *key, const struct store_cond *cond,
	       char etag[STORE_ETAG_MAX], struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_PUT);
	char mark[STORE_MARK_MAX + 1];
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->body = &p->bytes;
	req->in_parts = true;
	req->priority = STORE_COMMIT;
	req->cond = *cond;
	req->note = nonempty(p->note);
	snprintf(mark, sizeof(mark), "%s-%" PRIu32, draft_id(p->c->draft), p->run.number);
	req->mark = mark;
	req->cancelled = cancelled_by(p->c->cancelled);
	store_run(p->bucket->store, req);
	if (!is_refused(&req->answer))
		commit_go(&p->run, p->run.state == COMMIT_BEGUN ? COMMIT_SENT : COMMIT_SHOWN);
	memcpy(etag, req->answer.meta.etag, STORE_ETAG_MAX);
	const int rc = store_failure(&req->answer, err);
	if (rc != -ESTALE || !req->answer.repeated)
		return rc;
	const int stored = is_stored(p, req, etag, err);
	if (stored > 0)
		err_clear(err);
	return stored < 0 ? stored : stored ? 0 : rc;
}

int draft_check_object(const struct draft_put *p, struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->bucket->store, STORE_HEAD);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, p->about->path);
	req->cond.if_match = nonempty(p->present.etag);
	req->cancelled = cancelled_by(p->c->cancelled);
	store_run(p->bucket->store, req);
	const int rc = store_failure(&req->answer, err);
	if (rc == -ESTALE || (!rc && store_absence(&req->answer)))
		return draft_put_stale(p, err);
	return rc;
}

/* ---- a domain that has the name ---- */

static int remove_domain(struct draft_put *p, const struct names_node *n, struct err *err)
{
	const struct change change = draft_put_change(p);
	struct change_garbage garbage;
	draft_put_drop(p, n);
	return change_remove_domain(&change, n->path, n->doc.document,
				    names_may_have_marker(p->bucket->names, n), &garbage, err);
}

static int replace_domain(struct draft_put *p, const char *key, char etag[STORE_ETAG_MAX],
			  struct err *err)
{
	const struct store_cond none = {0}, absent = {.if_none_match = "*"};
	/* The domain `run` is shown as `run.h5`, and hides neither object. */
	char shown[STORE_KEY_MAX + 1];
	const struct schema_document *domain = p->present.node->doc.document;
	const bool hidden = !draft_shown_name(domain->schema->suffix, p->present.node->path, shown);
	int rc = put(p, key, hidden ? &none : &absent, etag, err);
	/* In a directory, the folder of the domain has this key. */
	if (rc == -EISDIR) {
		rc = remove_domain(p, p->present.node, err);
		return rc ? rc : put(p, key, &absent, etag, err);
	}
	if (rc)
		return rc;
	rc = remove_domain(p, p->present.node, err);
	/* The domain stays, so the object must not. */
	if (rc == -ESTALE || rc == -EBUSY)
		draft_delete_object(p, key, etag, NULL);
	return rc;
}

/* Removes the domain that the draft was opened with, if it has this name. */
static int remove_old(struct draft_put *p, const char *name, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct err why = ERR_INIT;
	char version[COMMIT_VERSION];
	bool is_new;
	int rc = names_resolve_for_open(p->bucket->names, name, &n, &is_new, &why);
	if (rc == -ENOENT)
		return 0;
	if (rc) {
		err_copy(err, &why);
		return rc;
	}
	rc = draft_check_document(n, err);
	if (rc)
		return rc;
	if (n->kind != NAMES_DOMAIN || commit_version_of(n, version) ||
	    strcmp(version, p->about->version) != 0)
		return 0;
	return remove_domain(p, n, err);
}

/* Removes what an earlier attempt has left, which has put the object: it may not have removed a
 * domain without extension. A mount shows both. */
static int remove_left(struct draft_put *p, struct err *err)
{
	const struct draft_about *about = p->about;
	char shown[STORE_KEY_MAX + 1];
	const char *suffix = bucket_new_domains(p->bucket)->suffix;
	if (about->version[0] != 'd' || !draft_shown_name(suffix, about->path, shown))
		return 0;
	const int rc = draft_put_begin(p, err);
	return rc ? rc
		  : remove_old(p, strcmp(about->path, about->name) == 0 ? shown : about->path, err);
}

/* ---- all kinds ---- */

static int put_over(struct draft_put *p, const char *key, char etag[STORE_ETAG_MAX],
		    struct err *err)
{
	const struct present *there = &p->present;
	const bool replaces = there->kind == PRESENT_OBJECT;
	const struct store_cond cond = {
		.if_none_match = replaces ? NULL : "*",
		.if_match = replaces ? nonempty(there->etag) : NULL,
	};
	return there->kind == PRESENT_DOMAIN ? replace_domain(p, key, etag, err)
					     : put(p, key, &cond, etag, err);
}

/* Judges an object that has appeared under the name since the draft was opened. Returns 1 if it has
 * the bytes of the draft, and 0 if an earlier attempt has put other bytes, which this one replaces.
 * A change of an object needs what lay beneath, and that is gone. */
static int judge_object(struct draft_put *p, struct err *err)
{
	const int owner = find_owner(p, err);
	const int same = owner > NOT_OURS ? has_bytes(p, &p->present.node->meta, err) : owner;
	if (same)
		return same;
	return owner == OURS && p->about->kind != DRAFT_CHANGE ? 0 : draft_put_stale(p, err);
}

int draft_put_object(struct draft_put *p, struct commit_result *out, struct err *err)
{
	const char *key = p->about->name;
	const struct present *there = &p->present;
	char etag[STORE_ETAG_MAX];
	const bool is_left = there->differs && there->kind == PRESENT_OBJECT;
	const int same = is_left ? judge_object(p, err) : 0;
	if (same < 0)
		return same;
	snprintf(etag, sizeof(etag), "%s", there->etag ? there->etag : "");
	/* A domain that was to be replaced is gone, by an earlier attempt. An object is not: its
	 * replacement is one step. */
	if (there->differs && there->kind == PRESENT_NOTHING && p->about->version[0] == 'o')
		return draft_put_stale(p, err);
	/* The note may have names out of the file. */
	printable(p->note, sizeof(p->note), out->kept);
	int rc = same ? 0 : draft_put_check_stored(p, err);
	if (!rc && !same)
		rc = draft_put_begin(p, err);
	if (!rc && !same)
		rc = put_over(p, key, etag, err);
	if (!rc && is_left)
		rc = remove_left(p, err);
	/* In a directory, another program has made a domain or a folder of this name. */
	if (rc == -EEXIST || rc == -ESTALE || rc == -EISDIR)
		return draft_put_stale(p, err);
	return rc ? rc : draft_put_result(out, COMMIT_OBJECT, key, etag, err);
}
