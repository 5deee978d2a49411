/* SPDX-License-Identifier: Apache-2.0 */
/* See drafts.h: makes the table, opens drafts, and tells what it knows about names. */
#include <drafts/drafts.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <base/thread.h>

#include "draft_file.h"
#include "draft_put.h"
#include "draft_save.h"
#include <snapshots/domain_snapshot.h>

/* ---- the table ---- */

int drafts_new(struct bucket *bucket, const struct engine_options *opt, struct drafts **out,
	       struct err *err)
{
	auto_str struct str identity = {0};
	auto_free char *name = store_stack_name(opt->bucket);
	struct drafts *t = calloc(1, sizeof(*t));
	if (!t)
		return err_no_memory(err);
	t->bucket = bucket;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	int rc = name ? store_stack_identity(&bucket->stack, opt->bucket, &identity, err)
		      : err_no_memory(err);
	const struct journal_settings settings = {
		.path = opt->journal_dir,
		.bucket = str_text(&identity),
		.name = name,
		.spool_size = opt->spool_size,
	};
	if (!rc)
		rc = journal_open(&settings, &bucket->env, &t->journal, err);
	if (rc) {
		drafts_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static void *recover(void *arg)
{
	struct drafts *t = arg;
	drafts_recover(t->bucket, t, t->journal, &t->recovery_stops, &t->left);
	return NULL;
}

void drafts_start(struct drafts *t)
{
	t->is_recovering = thread_start(&t->recovery, recover, t);
	if (!t->is_recovering)
		log_warning(t->bucket->log,
			    "cannot start a thread: drafts of earlier mounts stay in "
			    "the journal until the next mount");
}

static void stop_recovery(struct drafts *t)
{
	atomic_store(&t->recovery_stops, true);
	if (t->is_recovering)
		pthread_join(t->recovery, NULL);
}

/* Leaves the draft in the journal. */
static void leave(struct file_draft *d)
{
	struct draft *bytes = atomic_load(&d->bytes);
	log_warning(d->t->bucket->log, "/%s stays in the journal, as draft %s: %s", d->name,
		    draft_id(bytes), d->why ? d->why : "it was not stored");
	file_draft_sync(d);
	draft_table_leave_locked(d);
}

void drafts_free(struct drafts *t)
{
	struct file_draft *d, *next;
	if (!t)
		return;
	stop_recovery(t);
	draft_retry_all(t);
	HASH_ITER (by_name, t->by_name, d, next)
		draft_table_set_aside_locked(d);
	while ((d = t->aside)) {
		t->aside = d->next;
		leave(d);
		file_draft_unref(d);
	}
	journal_close(t->journal);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct journal *drafts_journal(struct drafts *t)
{
	return t->journal;
}

/* ---- opening for writing: a draft that exists ---- */

/* Takes part in the draft of this name. Returns -ENOENT if there is none. */
static int join(struct drafts *t, const char *path, unsigned int flags, struct file_draft **out,
		struct err *err)
{
	int rc = -ENOENT;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (d && (flags & ENGINE_CREATE) && (flags & ENGINE_EXCLUSIVE)) {
		rc = err_set(err, -EEXIST, "%s: it exists", path);
	} else if (d && d->life != DRAFT_ENDING) {
		d->refs++;
		d->writers++;
		*out = d;
		rc = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* ---- opening for writing: a new draft ---- */

/* Finds what the bucket has under the name. *out is NULL if there is nothing, or was nothing a
 * moment ago: the commit fails if something is there by then. A file is looked up now, because the
 * commit needs its version. */
static int find(struct bucket *bucket, const char *path, struct names_node **out, struct err *err)
{
	struct names_node *known = names_recall(bucket->names, path);
	if (known && known->kind != NAMES_DIR)
		names_forget(bucket->names, path);
	names_node_unref(known);
	return names_resolve_for_change(bucket->names, path, out, err);
}

static int check_dir(struct drafts *t, const char *path, struct err *err)
{
	auto_free char *dir = strndup(path, names_parent_len(path));
	auto_names_node struct names_node *n = NULL;
	struct engine_stat st;
	bool alone = false;
	if (!dir)
		return err_no_memory(err);
	const bool is_draft = drafts_stat(t, dir, &st, &alone) && alone;
	int rc = is_draft ? 0 : names_resolve(t->bucket->names, dir, &n, err);
	return rc || (!is_draft && n->kind == NAMES_DIR)
		       ? rc
		       : err_set(err, -ENOTDIR, "%s: %s is not a directory", path, dir);
}

int drafts_check_new(struct drafts *t, const char *path, struct err *err)
{
	int rc = names_check_new(t->bucket->names, path, err);
	return rc ? rc : check_dir(t, path, err);
}

/* Checks whether a program may change the domain. It may not if the journal has an unfinished
 * change of the domain, because the new change would begin without it. */
static int check_domain(struct drafts *t, const char *path, unsigned int flags,
			const struct names_node *n, struct err *err)
{
	char id[JOURNAL_ID];
	const struct schema_document *d = n->doc.document;
	if (!d || !d->schema->editor)
		return err_set(err, -EROFS,
			       "%s: a domain of this schema can be replaced, but not changed",
			       path);
	if (flags & ENGINE_RESIZE)
		return err_set(err, -EROFS, "%s: a part of an HDF5 file is not an HDF5 file", path);
	const int rc = draft_table_find_left(t, n->path, true, id, err);
	if (rc <= 0)
		return rc;
	return err_set(
		err, -EBUSY,
		"%s: a program that changed it has not finished; what it wrote is draft %s "
		"of the journal: see `hsimage recover show %s`; `hsimage recover commit %s` "
		"stores it, `hsimage recover drop %s` deletes it, and then the domain can be "
		"changed again",
		path, id, id, id, id);
}

static int check_open(struct drafts *t, const char *path, unsigned int flags,
		      const struct names_node *n, struct err *err)
{
	if (!n && !(flags & ENGINE_CREATE))
		return err_set(err, -ENOENT, "%s: no such file or directory", path);
	if (!n)
		return drafts_check_new(t, path, err);
	if (n->kind == NAMES_DIR)
		return err_set(err, -EISDIR, "%s: is a directory", path[0] ? path : "/");
	if (flags & ENGINE_CREATE && flags & ENGINE_EXCLUSIVE)
		return err_set(err, -EEXIST, "%s: it exists", path);
	int rc = n->doc.kind == NAMES_DOC_STORE ? names_read_only(t->bucket->names, n, err)
						: draft_check_document(n, err);
	if (rc || n->kind != NAMES_DOMAIN || flags & ENGINE_TRUNCATE)
		return rc;
	return check_domain(t, path, flags, n, err);
}

/* Opens what lies beneath a draft. */
static int open_object(struct file_draft *d, const struct names_node *n, struct err *err)
{
	const struct bucket *bucket = d->t->bucket;
	atomic_store(&d->mtime_ns, n->meta.mtime_ns);
	return draft_base_new(bucket->store, bucket->cache, n->path, &n->meta, &d->base, err);
}

static int open_domain(struct file_draft *d, struct names_node *n, struct err *err)
{
	const struct snapshot_time requested = {0};
	struct snapshot *s;
	int rc = domain_snapshot(d->t->bucket, n, &requested, &s, err);
	if (rc)
		return rc;
	atomic_store(&d->mtime_ns, s->st.mtime_ns);
	rc = draft_base_of_image(s, &d->base, err);
	if (rc) {
		snapshot_close(s);
		return rc;
	}
	d->change = draft_change_new(d->t->bucket, s);
	return d->change ? 0 : err_no_memory(err);
}

/* Makes a draft. n is the file that the bucket has, or NULL. If the file is to be truncated, the
 * journal gets the draft when that is done: an open(2) that fails must not truncate the file. */
static int make(struct drafts *t, const char *path, unsigned int flags, struct names_node *n,
		struct file_draft **out, struct err *err)
{
	const enum draft_kind kind = !n			       ? DRAFT_NEW
				     : flags & ENGINE_TRUNCATE ? DRAFT_REPLACE
							       : DRAFT_CHANGE;
	struct file_draft *d = file_draft_new(t, kind);
	struct draft *bytes;
	struct draft_texts x;
	if (!d)
		return err_no_memory(err);
	int rc = draft_table_texts(&x, path, n, err);
	d->name = x.name;
	d->path = x.path;
	d->seen = x.seen;
	d->alone = !n;
	if (!rc && kind == DRAFT_CHANGE)
		rc = n->kind == NAMES_DOMAIN ? open_domain(d, n, err) : open_object(d, n, err);
	else if (!rc && kind == DRAFT_NEW)
		rc = file_draft_bytes(d, &bytes, err);
	if (rc)
		file_draft_unref(d);
	else
		*out = d;
	return rc;
}

/* The name is held, so no other draft can get it. */
static int enter(struct file_draft *d, struct err *err)
{
	struct drafts *t = d->t;
	pthread_mutex_lock(&t->lock);
	int rc = draft_table_add_locked(d);
	if (!rc)
		d->writers++;
	pthread_mutex_unlock(&t->lock);
	return rc ? err_set(err, rc, "out of memory") : 0;
}

static int begin(struct drafts *t, const char *path, unsigned int flags, struct file_draft **out,
		 struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	int rc = find(t->bucket, path, &n, err);
	if (!rc)
		rc = check_open(t, path, flags, n, err);
	if (!rc && !n)
		names_will_create(t->bucket->names, path);
	if (!rc)
		rc = make(t, path, flags, n, out, err);
	if (rc)
		return rc;
	rc = enter(*out, err);
	if (rc)
		file_draft_unref(*out);
	return rc;
}

/* ---- opening ---- */

/* Gets the draft of this name, an old or a new one, with one more writer. */
static int get_draft(struct drafts *t, const char *path, unsigned int flags,
		     struct file_draft **out, struct err *err)
{
	struct draft_hold hold;
	int rc = join(t, path, flags, out, err);
	if (rc != -ENOENT)
		return rc;
	draft_table_hold(t, &hold, path, NULL);
	rc = join(t, path, flags, out, err);
	if (rc == -ENOENT)
		rc = begin(t, path, flags, out, err);
	draft_table_release(t, &hold);
	return rc;
}

int drafts_open_write(struct drafts *t, const char *path, unsigned int flags,
		      struct draft_file **out, struct err *err)
{
	struct draft_file *f = calloc(1, sizeof(*f));
	if (!f)
		return err_no_memory(err);
	f->writes = true;
	int rc = get_draft(t, path, flags, &f->d, err);
	if (rc)
		free(f);
	else
		*out = f;
	return rc;
}

/* Opens a draft for reading: the one with this version or, if `by_name` is set, the one that is
 * alone under that name. */
static int open_read(struct drafts *t, const char *by_name, uint64_t version,
		     struct draft_file **out)
{
	struct draft_file *f = calloc(1, sizeof(*f));
	struct file_draft *d;
	if (!f)
		return -ENOMEM;
	pthread_mutex_lock(&t->lock);
	if (by_name)
		d = draft_table_find_locked(t, by_name);
	else
		d = draft_table_find_version_locked(t, version);
	if (by_name && d && !d->alone)
		d = NULL;
	if (d)
		d->refs++;
	pthread_mutex_unlock(&t->lock);
	f->d = d;
	if (d)
		*out = f;
	else
		free(f);
	return d ? 0 : -ENOENT;
}

int drafts_open_read(struct drafts *t, uint64_t version, struct draft_file **out, struct err *err)
{
	int rc = open_read(t, NULL, version, out);
	if (rc == -ENOENT)
		return err_set(err, -ESTALE, "the file has been committed or removed");
	return rc ? err_set(err, rc, "out of memory") : 0;
}

int drafts_open_alone(struct drafts *t, const char *path, struct draft_file **out, struct err *err)
{
	int rc = open_read(t, path, 0, out);
	return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
}
