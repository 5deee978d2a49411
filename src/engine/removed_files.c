/* SPDX-License-Identifier: Apache-2.0 */
/* Brings removed domains back whose storage nothing has deleted yet. Any thread. */
#include <drafts/draft_commit.h>
#include <drafts/drafts.h>
#include "engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

/* ---- what was removed ---- */

struct listing {
	int (*fn)(void *arg, const struct engine_removed *r);
	void *arg;
	const char *suffix;
};

static int pass_on(void *ctx, const struct garbage_removed *r)
{
	const struct listing *l = ctx;
	char shown[STORE_KEY_MAX + 1];
	const struct engine_removed removed = {
		.in_bucket = r->path,
		.path = names_shown(l->suffix, r->path, shown) ? r->path : shown,
		.removed_ns = r->since_ns,
		.left_ns = r->left_ns};
	return l->fn(l->arg, &removed);
}

int engine_each_removed(struct engine *e, int (*fn)(void *arg, const struct engine_removed *r),
			void *arg)
{
	struct listing l = {.fn = fn, .arg = arg};
	if (!e->bucket.garbage)
		return 0;
	l.suffix = bucket_new_domains(&e->bucket)->suffix;
	return garbage_each_removed(e->bucket.garbage, pass_on, &l);
}

/* The value of user.hsds.removed */
struct below {
	const char *dir;
	struct str *out;
};

static int add_line(void *arg, const struct engine_removed *r)
{
	const struct below *b = arg;
	const size_t n = strlen(b->dir);
	if (n && (strncmp(r->path, b->dir, n) != 0 || r->path[n] != '/'))
		return 0;
	str_add_time(b->out, r->removed_ns);
	str_addf(b->out, " %s\n", r->path + n + (n > 0));
	return 0;
}

int undelete_list(struct engine *e, const char *dir, struct str *out)
{
	struct below b = {dir, out};
	engine_each_removed(e, add_line, &b);
	return out->b.len ? 0 : -ENODATA;
}

/* ---- bringing one back ---- */

struct wanted {
	const char *path; /* in the mount */
	char *in_bucket;
	int64_t since_ns;
};

/* The last one that had the name. */
static int match(void *arg, const struct engine_removed *r)
{
	struct wanted *w = arg;
	if ((strcmp(r->in_bucket, w->path) != 0 && strcmp(r->path, w->path) != 0) ||
	    (w->in_bucket && r->removed_ns < w->since_ns))
		return 0;
	free(w->in_bucket);
	w->in_bucket = strdup(r->in_bucket);
	w->since_ns = r->removed_ns;
	return w->in_bucket ? 0 : -ENOMEM;
}

static int undelete(struct engine *e, const struct wanted *w, struct err *err)
{
	const struct change c = engine_change(e, NULL);
	struct garbage_removed removed;
	struct garbage_entry *entry =
		w->in_bucket ? garbage_take_removed(e->bucket.garbage, w->in_bucket, &removed)
			     : NULL;
	if (!entry)
		return err_set(err, -ENOENT,
			       "%s: no removed file of this name can be brought back: this journal "
			       "has none, or it is deleted already",
			       w->path);
	const int rc = change_undelete(&c, removed.path, removed.document, removed.storage, err);
	names_changed(e->bucket.names, w->path);
	names_changed(e->bucket.names, removed.path);
	garbage_restore(e->bucket.garbage, entry, rc == 0);
	return rc;
}

/* A folder that is gone comes back with its file, without its own document. */
static int check_folder(struct engine *e, const char *path, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	auto_free char *dir = strndup(path, names_parent_len(path));
	if (!dir)
		return err_no_memory(err);
	const int rc = names_resolve(e->bucket.names, dir, &n, err);
	if (rc == -ENOENT && !drafts_is_alone(e->drafts, dir)) {
		err_clear(err);
		return 0;
	}
	if (rc && rc != -ENOENT)
		return rc;
	return n && n->kind == NAMES_DIR
		       ? 0
		       : err_set(err, -ENOTDIR, "%s: %s is not a directory", path, dir);
}

/* Whether the bucket has something else of this name is decided by the put, too. But a plain object
 * and a domain may have one name, and then the object would be hidden. */
static int check_free(struct engine *e, const char *path, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	int rc = names_check_new(e->bucket.names, path, err);
	if (!rc)
		rc = check_folder(e, path, err);
	names_forget(e->bucket.names, path);
	if (!rc)
		rc = names_resolve_for_change(e->bucket.names, path, &n, err);
	return !rc && (n || drafts_is_alone(e->drafts, path))
		       ? err_set(err, -EEXIST,
				 "%s: another file has this name now; rename that one first", path)
		       : rc;
}

int engine_undelete(struct engine *e, const char *path, struct err *err)
{
	struct draft_hold hold;
	struct wanted w = {.path = path};
	if (!e->bucket.garbage)
		return err_set(err, -EROFS, "mounted read-only");
	draft_table_hold(e->drafts, &hold, path, NULL);
	int rc = engine_each_removed(e, match, &w) ? err_no_memory(err) : 0;
	if (!rc && w.in_bucket)
		rc = check_free(e, path, err);
	if (!rc)
		rc = undelete(e, &w, err);
	draft_table_release(e->drafts, &hold);
	free(w.in_bucket);
	return rc;
}

int undelete_in(struct engine *e, const char *dir, const void *text, size_t n, struct err *err)
{
	auto_str struct str path = {0};
	if (n == 0 || n > STORE_KEY_MAX || memchr(text, '\0', n))
		return err_set(err, -EINVAL, "%s: user.hsds.undelete must be the name of a file",
			       dir);
	str_addf(&path, "%s%s%.*s", dir, dir[0] ? "/" : "", (int)n, (const char *)text);
	return str_ok(&path) ? engine_undelete(e, str_text(&path), err) : err_no_memory(err);
}
