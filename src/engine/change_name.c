/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of names: looks the names up, lets storage/change.h do it, and drops what is cached about
 * them. A change is conditional on the versions that the look-up has seen. If another program was
 * faster, it is tried once more after a fresh look-up. While a name is changed, it is held, so that
 * no draft of it is committed (drafts.h). Any thread.
 */
#include <drafts/draft_commit.h>
#include <drafts/drafts.h>
#include "engine_internal.h"
#include "rename_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- looking up ---- */

static int find(struct engine *e, const char *path, struct names_node **out, struct err *err)
{
	bool is_new;
	return names_resolve_for_open(e->bucket.names, path, out, &is_new, err);
}

/* The directory of a path. */
static int find_dir(struct engine *e, const char *path, struct names_node **out, struct err *err)
{
	auto_free char *dir = strndup(path, names_parent_len(path));
	if (!dir)
		return err_no_memory(err);
	const int rc = find(e, dir, out, err);
	return rc || (*out)->kind == NAMES_DIR
		       ? rc
		       : err_set(err, -ENOTDIR, "%s: %s is not a directory", path, dir);
}

static int check_dir(struct engine *e, const char *path, struct err *err)
{
	auto_names_node struct names_node *dir = NULL;
	return find_dir(e, path, &dir, err);
}

/* The document of a domain that can be read. */
static int document_of(struct engine *e, const struct names_node *n,
		       const struct schema_document **out, struct err *err)
{
	*out = n->doc.document;
	if (n->doc.kind == NAMES_DOC_STORE)
		return names_read_only(e->bucket.names, n, err);
	return n->doc.kind == NAMES_DOC_ROOT
		       ? 0
		       : err_set(err, n->doc.code ? n->doc.code : -EIO, "domain /%s: %s", n->path,
				 n->doc.why ? n->doc.why : "it has no document");
}

/* Drops what is cached about a name. n is what had the name, or NULL. */
static void changed(struct engine *e, const char *path, const struct names_node *n)
{
	const char *in_bucket = n ? n->path : path;
	names_changed(e->bucket.names, path);
	if (strcmp(in_bucket, path) != 0)
		names_changed(e->bucket.names, in_bucket);
	snapshots_forget(e->bucket.snapshots, in_bucket);
}

/* A directory without a document and a marker vanishes with its last entry. It gets a document
 * before an entry is removed, so that it stays, as on a disk. */
static int keep_dir(struct engine *e, const struct change *c, const char *path, struct err *err)
{
	auto_names_node struct names_node *dir = NULL;
	int rc = find_dir(e, path, &dir, err);
	if (rc || !dir->path[0] || dir->doc.kind != NAMES_DOC_NONE ||
	    dir->marker == NAMES_MARKER_PRESENT)
		return rc;
	rc = change_make_folder(c, dir->path, err);
	names_changed(e->bucket.names, dir->name);
	return rc == -EEXIST ? 0 : rc;
}

/* Does the same as keep_dir(), for an entry whose removal gives room. Sets *late if a full bucket
 * cannot take the document, which follows with keep_dir_late(). */
static int keep_dir_or_wait(struct engine *e, const struct change *c, const char *path, bool *late,
			    struct err *err)
{
	const int rc = keep_dir(e, c, path, err);
	*late = rc == -ENOSPC || rc == -EDQUOT;
	return *late ? 0 : rc;
}

/* The entry is gone, so its removal has succeeded whatever happens here. */
static void keep_dir_late(struct engine *e, const struct change *c, const char *path)
{
	struct err why = ERR_INIT;
	auto_free char *dir = strndup(path, names_parent_len(path));
	const int rc = dir ? change_make_folder(c, dir, &why) : err_no_memory(&why);
	if (dir)
		names_changed(e->bucket.names, dir);
	if (rc && rc != -EEXIST)
		log_warning(e->bucket.log,
			    "%s is removed, and its directory vanishes if it is empty: %s", path,
			    why.msg);
}

/* ---- directories ---- */

static int make_dir(struct engine *e, const char *path, struct err *err)
{
	const struct change c = engine_change(e, NULL);
	auto_names_node struct names_node *n = NULL;
	int rc = names_check_new(e->bucket.names, path, err);
	if (!rc)
		rc = check_dir(e, path, err);
	if (!rc)
		rc = names_resolve_for_change(e->bucket.names, path, &n, err);
	if (!rc && (n || drafts_is_alone(e->drafts, path)))
		rc = err_set(err, -EEXIST, "%s: it exists", path);
	if (rc)
		return rc;
	rc = change_make_folder(&c, path, err);
	changed(e, path, NULL);
	return rc;
}

static int remove_dir(struct engine *e, const char *path, struct err *err)
{
	const struct change c = engine_change(e, NULL);
	auto_names_node struct names_node *n = NULL;
	bool late;
	int rc = drafts_is_alone(e->drafts, path) ? 0 : find(e, path, &n, err);
	if (rc)
		return rc;
	if (!n || n->kind != NAMES_DIR)
		return err_set(err, -ENOTDIR, "%s: not a directory", path);
	if (!path[0])
		return err_set(err, -EBUSY, "the root of the mount");
	if (drafts_has_entries(e->drafts, path))
		return err_set(err, -ENOTEMPTY, "%s: it has files that are not in the bucket yet",
			       path);
	if (n->doc.kind == NAMES_DOC_BROKEN || n->doc.kind == NAMES_DOC_UNLISTABLE)
		return err_set(err, n->doc.code, "%s: %s", path, n->doc.why);
	if (n->doc.kind == NAMES_DOC_ROOT)
		return err_set(err, -ENOTEMPTY, "%s: there are domains below the domain", path);
	if (n->is_marked)
		return err_set(err, -ENOTEMPTY, "%s: it has the documents of a domain", path);
	rc = keep_dir_or_wait(e, &c, path, &late, err);
	if (rc)
		return rc;
	rc = change_remove_folder(&c, path, n->doc.document, err);
	changed(e, path, n);
	if (!rc && late)
		keep_dir_late(e, &c, path);
	return rc;
}

/* ---- domains and plain objects ---- */

/* repeated may be NULL; *repeated says whether the request was sent more than once. */
static int delete_object(struct engine *e, const struct names_node *n, bool *repeated,
			 struct err *err)
{
	auto_request struct store_request *req = store_request_new(e->bucket.store, STORE_DELETE);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, n->path);
	req->cond.if_match = n->meta.etag[0] ? n->meta.etag : NULL;
	store_run(e->bucket.store, req);
	const int rc = store_failure(&req->answer, err);
	if (repeated)
		*repeated = req->answer.repeated;
	return rc || !req->answer.was_absent || req->answer.repeated
		       ? rc
		       : err_set(err, -ESTALE, "%s: another program has removed it", n->path);
}

/* For a name that is removed. Another object in its place may have been put after an earlier
 * attempt of the DELETE, and stays. */
static int remove_object(struct engine *e, const struct names_node *n, struct err *err)
{
	bool repeated = false;
	const int rc = delete_object(e, n, &repeated, err);
	return rc == -ESTALE && repeated ? 0 : rc;
}

static int remove_domain(struct engine *e, const struct change *c, const struct names_node *n,
			 struct err *err)
{
	static const struct storage none;
	const struct schema_document *doc;
	struct change_garbage garbage;
	int rc = document_of(e, n, &doc, err);
	if (rc)
		return rc;
	struct garbage_entry *entry = garbage_expect(e->bucket.garbage, n->path, doc, &none);
	rc = change_remove_domain(c, n->path, doc, names_may_have_marker(e->bucket.names, n),
				  &garbage, err);
	garbage_settle(e->bucket.garbage, entry, garbage.storage.schema != NULL);
	return rc;
}

static int remove_file(struct engine *e, const char *path, struct err *err)
{
	const struct change c = engine_change(e, NULL);
	auto_names_node struct names_node *n = NULL;
	bool late;
	int rc = find(e, path, &n, err);
	if (rc)
		return rc;
	if (n->kind == NAMES_DIR)
		return err_set(err, -EISDIR, "%s: is a directory", path[0] ? path : "/");
	rc = keep_dir_or_wait(e, &c, path, &late, err);
	if (rc)
		return rc;
	rc = n->kind == NAMES_DOMAIN ? remove_domain(e, &c, n, err) : remove_object(e, n, err);
	changed(e, path, n);
	if (!rc && late)
		keep_dir_late(e, &c, path);
	return rc;
}

/* ---- renaming ---- */

struct move {
	const char *from, *to;
	struct names_node *source;
	struct names_node *target; /* NULL if nothing has the new name */
};

/* Puts a copy, and stores its version in `etag`. `hidden` says that a domain hides what may be at
 * the new key. */
static int put_copy(struct engine *e, const struct move *m, const struct bytes *body,
		    const char *note, bool hidden, char etag[STORE_ETAG_MAX], struct err *err)
{
	auto_request struct store_request *req = store_request_new(e->bucket.store, STORE_PUT);
	const bool replaces = m->target && m->target->kind == NAMES_OBJECT;
	const struct piece piece = {body->data, body->len};
	if (!req)
		return err_no_memory(err);
	store_request_key(req, m->to);
	req->pieces = &piece;
	req->n_pieces = body->len ? 1 : 0;
	req->cond.if_none_match = replaces || hidden ? NULL : "*";
	req->cond.if_match = replaces ? m->target->meta.etag : NULL;
	req->in_parts = true;
	req->note = note[0] ? note : NULL;
	store_run(e->bucket.store, req);
	snprintf(etag, STORE_ETAG_MAX, "%s", req->answer.meta.etag);
	return store_failure(&req->answer, err);
}

static void withdraw_copy(struct engine *e, const struct move *m, const char *etag)
{
	auto_request struct store_request *req = store_request_new(e->bucket.store, STORE_DELETE);
	if (!req || !etag[0])
		return;
	store_request_key(req, m->to);
	req->cond.if_match = etag;
	store_run(e->bucket.store, req);
}

/* The domain could not be removed, because another program was faster. If it stays, the copy must
 * not. If it is gone, the name has the copy, perhaps that of another mount that renames the same
 * file: the two have one version. Then returns 0. */
static int settle_copy(struct engine *e, const struct move *m, const char *etag, int rc)
{
	auto_names_node struct names_node *now = NULL;
	changed(e, m->to, m->target);
	if (find(e, m->to, &now, NULL))
		return rc;
	if (now->kind == NAMES_DOMAIN)
		withdraw_copy(e, m, etag);
	return now->kind == NAMES_OBJECT ? 0 : rc;
}

/* In a directory, another program has given the new name to a file of the other kind since the name
 * was looked up. */
static int made_meanwhile(const struct move *m, struct err *err)
{
	return err_set(err, -ESTALE, "%s: another program has made it at the same moment", m->to);
}

/* A domain that has the new name hides the object, so it is removed when the object is there. In a
 * directory the two cannot exist side by side. */
static int put_over(struct engine *e, const struct change *c, const struct move *m,
		    const struct bytes *body, const char *note, struct err *err)
{
	const bool is_over = m->target && m->target->kind == NAMES_DOMAIN;
	/* The domain `run` is shown as `run.h5`, and hides neither object. */
	char shown[STORE_KEY_MAX + 1], etag[STORE_ETAG_MAX];
	const struct schema_document *domain = is_over ? m->target->doc.document : NULL;
	const struct schema_ops *schema = domain ? domain->schema : c->schema;
	const bool hidden = is_over && !draft_shown_name(schema->suffix, m->target->path, shown);
	struct err why = ERR_INIT;
	int rc = put_copy(e, m, body, note, hidden, etag, &why);
	if (is_over && (rc == 0 || rc == -EISDIR)) {
		int removed = remove_domain(e, c, m->target, err);
		if (rc == 0 && (removed == -ESTALE || removed == -EBUSY))
			removed = settle_copy(e, m, etag, removed);
		if (removed || rc == 0)
			return removed;
		rc = put_copy(e, m, body, note, false, etag, &why);
	}
	if (rc)
		err_copy(err, &why);
	return rc == -EISDIR ? made_meanwhile(m, err) : rc;
}

/* A copy under the new name, then the removal of the old one. */
static int rename_object(struct engine *e, const struct change *c, const struct move *m,
			 struct err *err)
{
	auto_request struct store_request *get = store_request_new(e->bucket.store, STORE_GET);
	const char *etag = m->source->meta.etag;
	char note[STORE_NOTE_MAX + 1];
	if (!get)
		return err_no_memory(err);
	if (m->source->meta.size > RENAME_COPIED_MAX)
		return err_set(err, -EXDEV, "%s: it is larger than 64 MiB", m->from);
	store_request_key(get, m->source->path);
	get->max = RENAME_COPIED_MAX;
	get->cond.if_match = etag[0] ? etag : NULL;
	store_run(e->bucket.store, get);
	int rc = store_failure(&get->answer, err);
	if (!rc && store_absence(&get->answer))
		rc = err_set(err, -ESTALE, "%s: it was deleted", m->from);
	strcpy(note, get->answer.note);
	if (!rc && !get->answer.has_note)
		rc = names_note(e->bucket.names, m->source, note, err);
	if (!rc)
		rc = put_over(e, c, m, &get->answer.body, note, err);
	if (rc)
		return rc;
	rc = delete_object(e, m->source, NULL, err);
	/* The kernel, and this file, repeat a call that fails with ESTALE. */
	return rc == -ESTALE ? err_set(err, -EBUSY,
				       "%s: another program has changed it at the same moment; %s "
				       "is a copy of what it was",
				       m->from, m->to)
			     : rc;
}

/* Gives a domain a name, and notes in the journal what may be left. `replaced` is the domain that
 * has this name, or NULL. */
static int give_name(struct engine *e, const struct change *c, const struct names_node *source,
		     const struct schema_document *doc, const char *to,
		     const struct schema_document *replaced, struct err *err)
{
	struct change_garbage garbage;
	struct storage storage;
	/* Storage that has a name is no garbage: before, because the next process would find a
	 * note, and afterwards, because another thread may have removed its other name. */
	const bool known = schema_storage_of(doc, &storage);
	if (known)
		garbage_rescue(e->bucket.garbage, &storage);
	struct garbage_entry *lost = garbage_expect(e->bucket.garbage, to, replaced, &storage);
	const uint32_t rename = known ? garbage_note_rename(e, source->path, &storage) : GC_NONE;
	const int rc = change_rename_domain(c, source->path, doc, to, replaced, &garbage, err);
	/* The answer to the request that gives the name may be lost. Then what had it is examined
	 * later. */
	if (garbage.half_done && !garbage.storage.schema)
		garbage_add_early(e->bucket.garbage, to, replaced, &storage);
	garbage_settle(e->bucket.garbage, lost, garbage.storage.schema != NULL);
	if (known)
		garbage_rescue(e->bucket.garbage, &storage);
	garbage_settle_rename(e->bucket.garbage, source->path, &storage, garbage.half_done, rename);
	if (!rc && names_may_have_marker(e->bucket.names, source))
		change_remove_marker(c, source->path);
	return rc;
}

/* A plain object that has the name is hidden by the domain, so it is removed when the domain is
 * there. In a directory the two cannot exist side by side. */
static int give_name_over(struct engine *e, const struct change *c, const struct move *m,
			  const struct schema_document *doc, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = give_name(e, c, m->source, doc, m->to, NULL, &why);
	if (rc == 0) {
		rc = delete_object(e, m->target, NULL, err);
		/* The kernel, and this file, repeat a call that fails with ESTALE. */
		return rc == -ESTALE ? err_set(err, -EBUSY,
					       "%s: another program has changed it at the same "
					       "moment; the domain has this name now",
					       m->to)
				     : rc;
	}
	if (rc == -ENOTDIR) {
		rc = delete_object(e, m->target, NULL, err);
		return rc ? rc : give_name(e, c, m->source, doc, m->to, NULL, err);
	}
	err_copy(err, &why);
	return rc;
}

static int rename_domain(struct engine *e, const struct change *c, const struct move *m,
			 struct err *err)
{
	const bool replaces = m->target && m->target->kind == NAMES_DOMAIN;
	const char *to = replaces ? m->target->path : m->to;
	const struct schema_document *doc, *replaced = NULL;
	char shown[STORE_KEY_MAX + 1];
	int rc = document_of(e, m->source, &doc, err);
	/* A listing leaves out a domain whose name is too long with the suffix. Whether something
	 * else has that name is not asked: a listing says so in the log. */
	if (!rc && names_shown(doc->schema->suffix, to, shown))
		rc = err_set(err, -ENAMETOOLONG, "%s: the name is too long with %s", to,
			     doc->schema->suffix);
	if (!rc && replaces)
		rc = document_of(e, m->target, &replaced, err);
	if (rc)
		return rc;
	if (strcmp(m->source->path, to) == 0)
		return m->target && !replaces ? delete_object(e, m->target, NULL, err) : 0;
	rc = m->target && !replaces ? give_name_over(e, c, m, doc, err)
				    : give_name(e, c, m->source, doc, to, replaced, err);
	return rc == -ENOTDIR ? made_meanwhile(m, err) : rc;
}

/* Both names of a domain without extension lead to it. */
static void forget_same(struct move *m)
{
	if (!m->target || m->target->kind != NAMES_DOMAIN || m->source->kind != NAMES_DOMAIN ||
	    strcmp(m->target->path, m->source->path) != 0)
		return;
	names_node_unref(m->target);
	m->target = NULL;
}

static int check_move_dir(const struct move *m, struct err *err)
{
	const size_t n = strlen(m->from);
	if (n == 0)
		return err_set(err, -EBUSY, "the root of the mount");
	return strncmp(m->to, m->from, n) == 0 && m->to[n] == '/'
		       ? err_set(err, -EINVAL, "%s: it is below %s", m->to, m->from)
		       : 0;
}

static int find_move(struct engine *e, struct move *m, bool no_replace, struct err *err)
{
	/* What was found a moment ago may have been removed since. The new name must not get it. */
	names_forget(e->bucket.names, m->from);
	int rc = find(e, m->from, &m->source, err);
	if (!rc && m->source->kind == NAMES_DIR)
		rc = check_move_dir(m, err);
	if (!rc)
		rc = names_check_new(e->bucket.names, m->to, err);
	if (!rc)
		rc = check_dir(e, m->to, err);
	if (!rc)
		rc = names_resolve_for_change(e->bucket.names, m->to, &m->target, err);
	if (!rc)
		forget_same(m);
	if (rc || !m->target)
		return rc;
	if (no_replace)
		return err_set(err, -EEXIST, "%s: it exists", m->to);
	if (m->target->kind == NAMES_DOMAIN && m->target->doc.kind == NAMES_DOC_STORE)
		return names_read_only(e->bucket.names, m->target, err);
	if (m->target->kind == NAMES_DIR && m->source->kind != NAMES_DIR)
		return err_set(err, -EISDIR, "%s: is a directory", m->to);
	return m->source->kind == NAMES_DIR && m->target->kind != NAMES_DIR
		       ? err_set(err, -ENOTDIR, "%s: not a directory", m->to)
		       : 0;
}

static void move_draft(struct engine *e, const char *from, const char *to,
		       const struct names_node *was);

static void move_draft_alone(struct engine *e, const char *from, const char *to)
{
	struct draft_hold hold;
	draft_table_hold(e->drafts, &hold, from, to);
	move_draft(e, from, to, NULL);
	draft_table_release(e->drafts, &hold);
}

static int rename_dir(struct engine *e, const struct move *m, struct err *err)
{
	static const struct rename_dir_calls calls = {engine_rename, engine_rmdir,
						      move_draft_alone};
	return engine_rename_dir(e, &calls, m->from, m->to, m->source, m->target, err);
}

/* *was gets what has been renamed. */
static int rename_file(struct engine *e, const char *from, const char *to, bool no_replace,
		       struct names_node **was, struct err *err)
{
	const struct change c = engine_change(e, NULL);
	struct move m = {.from = from, .to = to};
	int rc = find_move(e, &m, no_replace, err);
	if (!rc && m.source->kind == NAMES_DIR && drafts_has_entries(e->drafts, to))
		rc = err_set(err, -ENOTEMPTY, "%s: it has files that are not in the bucket yet",
			     to);
	if (!rc)
		rc = keep_dir(e, &c, from, err);
	if (!rc) {
		rc = m.source->kind == NAMES_DIR      ? rename_dir(e, &m, err)
		     : m.source->kind == NAMES_DOMAIN ? rename_domain(e, &c, &m, err)
						      : rename_object(e, &c, &m, err);
		changed(e, from, m.source);
		changed(e, to, m.target);
	}
	if (!rc)
		*was = names_node_ref(m.source);
	names_node_unref(m.source);
	names_node_unref(m.target);
	return rc;
}

/* ---- the interface ---- */

static int check_write(const struct engine *e, struct err *err)
{
	return e->bucket.garbage ? 0 : err_set(err, -EROFS, "mounted read-only");
}

/* One more attempt reads the documents again. */
static bool tries_again(struct engine *e, int rc, const char *path)
{
	if (rc == -ESTALE)
		changed(e, path, NULL);
	return rc == -ESTALE;
}

int engine_mkdir(struct engine *e, const char *path, struct err *err)
{
	struct draft_hold hold;
	int rc = check_write(e, err);
	if (rc)
		return rc;
	draft_table_hold(e->drafts, &hold, path, NULL);
	rc = make_dir(e, path, err);
	draft_table_release(e->drafts, &hold);
	return rc;
}

int engine_rmdir(struct engine *e, const char *path, struct err *err)
{
	int rc = check_write(e, err);
	if (!rc)
		rc = remove_dir(e, path, err);
	return tries_again(e, rc, path) ? remove_dir(e, path, err) : rc;
}

/* Returns whether the bucket has nothing under the name of a draft. */
static bool is_only_draft(struct engine *e, const char *path)
{
	auto_names_node struct names_node *n = NULL;
	if (!drafts_is_doubtful(e->drafts, path))
		return drafts_is_alone(e->drafts, path);
	names_changed(e->bucket.names, path);
	if (find(e, path, &n, NULL))
		return true;
	drafts_is_found(e->drafts, path);
	return false;
}

static int unlink_held(struct engine *e, const char *path, struct err *err)
{
	int rc = 0;
	if (!is_only_draft(e, path)) {
		rc = remove_file(e, path, err);
		if (tries_again(e, rc, path))
			rc = remove_file(e, path, err);
	}
	if (rc && rc != -ENOENT)
		return rc;
	const bool had_draft = drafts_detach(e->drafts, path);
	return had_draft ? 0 : rc;
}

int engine_unlink(struct engine *e, const char *path, struct err *err)
{
	struct draft_hold hold;
	int rc = check_write(e, err);
	if (rc)
		return rc;
	draft_table_hold(e->drafts, &hold, path, NULL);
	rc = unlink_held(e, path, err);
	draft_table_release(e->drafts, &hold);
	return rc;
}

static int rename_in_bucket(struct engine *e, const char *from, const char *to, bool no_replace,
			    struct names_node **was, struct err *err)
{
	int rc = rename_file(e, from, to, no_replace, was, err);
	/* Another program has made the target since it was looked up. */
	if (rc == -EEXIST && !no_replace)
		rc = -ESTALE;
	const bool again = tries_again(e, rc, from);
	return tries_again(e, rc, to) && again ? rename_file(e, from, to, no_replace, was, err)
					       : rc;
}

/* The draft of a file that has been renamed follows. Its commit fails if that is not possible. */
static void move_draft(struct engine *e, const char *from, const char *to,
		       const struct names_node *was)
{
	auto_names_node struct names_node *n = NULL;
	struct err why = ERR_INIT;
	struct engine_stat st;
	bool alone;
	if (!drafts_stat(e->drafts, from, &st, &alone)) {
		drafts_detach(e->drafts, to);
		return;
	}
	int rc = find(e, to, &n, &why);
	if (!rc)
		rc = drafts_rename(e->drafts, from, to, was ? was : n, n, &why);
	if (!rc)
		return;
	log_warning(e->bucket.log,
		    "%s was renamed to %s, but what programs are writing to it keeps the old "
		    "name: %s",
		    from, to, why.msg);
	drafts_detach(e->drafts, to);
}

/* For a draft that is alone. A file that has the new name is replaced by the commit. */
static int rename_alone(struct engine *e, const char *from, const char *to, bool no_replace,
			struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	int rc = drafts_check_new(e->drafts, to, err);
	/* The commit needs the version that the bucket has now. */
	names_forget(e->bucket.names, to);
	if (!rc)
		rc = names_resolve_for_change(e->bucket.names, to, &n, err);
	if (!rc && n && n->kind == NAMES_DIR)
		rc = err_set(err, -EISDIR, "%s: is a directory", to);
	if (!rc && n && no_replace)
		rc = err_set(err, -EEXIST, "%s: it exists", to);
	if (!rc && n && n->kind == NAMES_DOMAIN && n->doc.kind == NAMES_DOC_STORE)
		rc = names_read_only(e->bucket.names, n, err);
	return rc ? rc : drafts_rename(e->drafts, from, to, NULL, n, err);
}

static int rename_held(struct engine *e, const char *from, const char *to, bool no_replace,
		       struct err *err)
{
	if (no_replace && drafts_is_alone(e->drafts, to))
		return err_set(err, -EEXIST, "%s: it exists", to);
	if (is_only_draft(e, from))
		return rename_alone(e, from, to, no_replace, err);
	auto_names_node struct names_node *was = NULL;
	const int rc = rename_in_bucket(e, from, to, no_replace, &was, err);
	if (!rc)
		move_draft(e, from, to, was);
	return rc;
}

int engine_rename(struct engine *e, const char *from, const char *to, unsigned int flags,
		  struct err *err)
{
	struct draft_hold hold;
	int rc = check_write(e, err);
	if (!rc && flags & ~(unsigned int)RENAME_NOREPLACE)
		rc = err_set(err, -EINVAL, "names cannot be exchanged");
	if (rc || strcmp(from, to) == 0)
		return rc;
	draft_table_hold(e->drafts, &hold, from, to);
	rc = rename_held(e, from, to, flags & RENAME_NOREPLACE, err);
	draft_table_release(e->drafts, &hold);
	return rc;
}
