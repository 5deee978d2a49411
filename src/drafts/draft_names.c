/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of drafts knows about names, and what changes of names mean for drafts: see
 * drafts.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drafts/base_reader.h>
#include <drafts/draft_commit.h>
#include <overlay/draft_plan.h>
#include <update/complete.h>

#include "draft_table.h"
#include <bucket/bucket.h>
#include <names/names.h>

/* ---- attributes ---- */

bool drafts_stat(struct drafts *t, const char *path, struct engine_stat *st, bool *alone)
{
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (d) {
		file_draft_stat(d, st);
		*alone = d->alone;
	}
	pthread_mutex_unlock(&t->lock);
	return d;
}

bool drafts_stat_version(struct drafts *t, uint64_t version, struct engine_stat *st)
{
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_version_locked(t, version);
	if (d)
		file_draft_stat(d, st);
	pthread_mutex_unlock(&t->lock);
	return d;
}

bool drafts_is_alone(struct drafts *t, const char *path)
{
	struct engine_stat st;
	bool alone;
	return drafts_stat(t, path, &st, &alone) && alone;
}

struct schema_document *drafts_acls(struct drafts *t, const char *path)
{
	struct schema_document *list = NULL;
	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	const struct file_draft *d = draft_table_find_locked(t, path);
	if (d && d->alone && d->acls)
		list = schema_document_ref(d->acls);
	pthread_mutex_unlock(&t->lock);
	return list;
}

bool drafts_is_doubtful(struct drafts *t, const char *path)
{
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	const struct file_draft *d = draft_table_find_locked(t, path);
	const bool doubtful = d && d->alone && d->failure;
	pthread_mutex_unlock(&t->lock);
	return doubtful;
}

void drafts_is_found(struct drafts *t, const char *path)
{
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (d)
		d->alone = false;
	pthread_mutex_unlock(&t->lock);
}

static char *error_of_locked(const struct file_draft *d)
{
	char *text = NULL;
	if (asprintf(&text, "%s; draft %s of the journal has the file", d->why ? d->why : "",
		     draft_id(atomic_load(&d->bytes))) < 0)
		return NULL;
	return text;
}

char *drafts_error(struct drafts *t, const char *path)
{
	char *text = NULL;
	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	const struct file_draft *d = draft_table_find_locked(t, path);
	if (!d || !d->failure) {
		d = t->aside;
		while (d && strcmp(d->name, path) != 0)
			d = d->next;
	}
	if (d)
		text = error_of_locked(d);
	pthread_mutex_unlock(&t->lock);
	return text;
}

struct search {
	const char *path;
	bool is_change;
	char *id;
};

static int find_left(void *ctx, const struct journal_item *item)
{
	const struct search *s = ctx;
	const struct draft_about *about = item->about;
	if (item->state != JOURNAL_LEFT || (s->is_change && !base_reader_is_domain(about)) ||
	    strcmp(s->is_change ? about->path : about->name, s->path) != 0)
		return 0;
	memcpy(s->id, item->id, JOURNAL_ID);
	return 1;
}

/* The journal does not list these as left: files that read them have them open. */
static bool find_leaving(struct drafts *t, const struct search *s)
{
	const struct file_draft *d;
	pthread_mutex_lock(&t->lock);
	for (d = t->leaving; d; d = d->next)
		if (strcmp(s->is_change ? d->path : d->name, s->path) == 0)
			break;
	if (d)
		memcpy(s->id, draft_id(atomic_load(&d->bytes)), JOURNAL_ID);
	pthread_mutex_unlock(&t->lock);
	return d != NULL;
}

int draft_table_find_left(struct drafts *t, const char *path, bool is_change,
			  char id[static JOURNAL_ID], struct err *err)
{
	struct search s = {.path = path, .is_change = is_change, .id = id};
	if (find_leaving(t, &s))
		return 1;
	return journal_list(t->journal, find_left, &s, err);
}

void drafts_unfinished(struct drafts *t, const char *path, char id[static JOURNAL_ID])
{
	id[0] = '\0';
	if (t && atomic_load(&t->left)) /* otherwise the directory is not read */
		draft_table_find_left(t, path, false, id, NULL);
}

void drafts_get_counts(struct drafts *t, struct engine_counts *out)
{
	struct journal_stats journal;
	const struct file_draft *d;
	if (!t)
		return;
	journal_get_stats(t->journal, &journal);
	out->commits = atomic_load(&t->commits);
	out->commit_failures = atomic_load(&t->commit_failures);
	out->scanned_objects = atomic_load(&t->scanned_objects);
	out->scanned_nodes = atomic_load(&t->scanned_nodes);
	out->bytes_written = atomic_load(&t->bytes_written);
	out->drafts_left = atomic_load(&t->left);
	out->spool_used = journal.spool_used;
	out->spool_size = journal.spool_size;
	out->drafts_failed = 0;
	pthread_mutex_lock(&t->lock);
	for (d = t->by_name; d; d = d->by_name.next)
		out->drafts_failed += d->failure && d->writers == 0 && d->closing == 0;
	for (d = t->aside; d; d = d->next)
		out->drafts_failed++;
	out->drafts_open = HASH_CNT(by_version, t->by_version) - out->drafts_failed;
	pthread_mutex_unlock(&t->lock);
}

/* ---- directories ---- */

static bool is_in(const char *path, const char *dir)
{
	const size_t n = names_parent_len(path);
	return n == strlen(dir) && strncmp(path, dir, n) == 0;
}

struct listing {
	char **names;
	size_t n;
};

static void release_listing(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
}

static int collect_locked(const struct drafts *t, const char *dir, struct listing *l)
{
	const size_t skip = dir[0] ? strlen(dir) + 1 : 0;
	l->names = calloc(HASH_CNT(by_name, t->by_name) + 1, sizeof(*l->names));
	if (!l->names)
		return -ENOMEM;
	for (const struct file_draft *d = t->by_name; d; d = d->by_name.next) {
		if (!d->alone || !is_in(d->name, dir))
			continue;
		l->names[l->n] = strdup(d->name + skip);
		if (!l->names[l->n])
			return -ENOMEM;
		l->n++;
	}
	return 0;
}

static int in_byte_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int drafts_list(struct drafts *t, const char *dir, engine_list_fn fn, void *arg)
{
	struct listing l = {0};
	int rc = 0;
	if (!t)
		return 0;
	pthread_mutex_lock(&t->lock);
	rc = t->by_name ? collect_locked(t, dir, &l) : 0;
	pthread_mutex_unlock(&t->lock);
	if (l.n)
		qsort(l.names, l.n, sizeof(*l.names), in_byte_order);
	for (size_t i = 0; !rc && i < l.n; i++)
		rc = fn(arg, l.names[i], ENGINE_PLAIN);
	release_listing(&l);
	return rc;
}

static int stop(void *arg, const char *name, enum engine_kind kind)
{
	return 1;
}

bool drafts_has_entries(struct drafts *t, const char *dir)
{
	return drafts_list(t, dir, stop, NULL) != 0;
}

/* ---- changes ---- */

/* Notes that a commit that has failed is not repeated: if this process is killed while a program
 * has the draft open, the next mount must not bring a file back that was removed. */
static void forget_commit(struct file_draft *d)
{
	struct draft *bytes = atomic_load(&d->bytes);
	struct commit_record m = bytes ? commit_record_of(bytes) : (struct commit_record){0};
	if (!commit_is_running(&m))
		return;
	draft_commit_forget(d->t->bucket, bytes, &d->left);
	m.state = COMMIT_ENDED;
	m.failed = 0;
	draft_mark(bytes, commit_record_encode(&m), NULL);
}

bool drafts_detach(struct drafts *t, const char *path)
{
	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (d)
		draft_table_unname_locked(d);
	pthread_mutex_unlock(&t->lock);
	if (d) {
		forget_commit(d);
		file_draft_unref(d);
	}
	draft_table_drop_aside(t, path);
	return d;
}

/* Deletes what the interrupted commit of a change has put, as far as nothing leads to it. */
static void withdraw(struct file_draft *d)
{
	struct bucket *bucket = d->t->bucket;
	struct draft *bytes = atomic_load(&d->bytes);
	struct plan plan;
	if (!d->change || draft_get_plan(bytes, &plan, NULL))
		return;
	log_warning(bucket->log,
		    "%s may have a part of the changes that were dropped: their commit was "
		    "interrupted",
		    d->name);
	const struct apply apply = {
		.env = &bucket->env, .store = bucket->store, .draft = bytes, .plan = &plan};
	const struct complete complete = {
		.apply = &apply, .schema = bucket_new_domains(bucket), .path = d->path};
	if (plan.subject.root)
		complete_withdraw(&complete);
	plan_release(&plan);
}

/* Returns whether a program has the draft open: besides the table, only files have references as
 * long as the name is held. */
static bool is_open_locked(const struct file_draft *d)
{
	return d->refs > 1;
}

/* A draft that exists is opened without holding its name. So the name is taken from it under the
 * lock under which this looks whether it is open. */
static int take_failed(struct drafts *t, const char *path, struct file_draft **out, struct err *err)
{
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	d = d && d->failure ? d : NULL;
	bool is_open = d && is_open_locked(d), found = d;
	for (const struct file_draft *a = t->aside; a; a = a->next) {
		const bool has_name = strcmp(a->name, path) == 0;
		found |= has_name;
		is_open |= has_name && is_open_locked(a);
	}
	if (d && !is_open)
		draft_table_unname_locked(d);
	pthread_mutex_unlock(&t->lock);
	*out = d;
	if (!found)
		return err_set(err, -ENODATA, "%s: no commit has failed", path);
	return is_open ? err_set(err, -EBUSY, "%s: a program has the file open", path) : 0;
}

int drafts_drop_failed(struct drafts *t, const char *path, struct err *err)
{
	struct file_draft *d;
	const int rc = take_failed(t, path, &d, err);
	if (rc)
		return rc;
	log_info(t->bucket->log, "/%s: what could not be stored is dropped", path);
	if (d) {
		withdraw(d);
		forget_commit(d);
		file_draft_unref(d);
	}
	draft_table_drop_aside(t, path);
	return 0;
}

void drafts_set_acls(struct drafts *t, const char *path, struct schema_document *list)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (d && (list || d->acls)) {
		struct schema_document *old = d->acls;
		d->acls = list;
		list = old;
		/* A commit that seems to have failed may have put a domain with the old list. The
		 * next one must not take it for its own. */
		d->numbered = UINT64_MAX;
	}
	pthread_mutex_unlock(&t->lock);
	schema_document_unref(list);
}

/* The next commit describes it to the journal. */
void drafts_new_version(struct drafts *t, const char *path, const char *from, const char *to)
{
	char seen[COMMIT_VERSION], now[COMMIT_VERSION];
	if (!t || commit_version_of_domain(from, seen) || commit_version_of_domain(to, now))
		return;
	char *text = strdup(now);
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, path);
	if (text && d && strcmp(d->seen, seen) == 0) {
		char *old = d->seen;
		d->seen = text;
		text = old;
	}
	pthread_mutex_unlock(&t->lock);
	free(text);
}

/* Renames a draft. Takes the texts over on success. */
static int rename_draft(struct file_draft *d, struct draft_texts *x, bool replaces, struct err *err)
{
	pthread_mutex_lock(&d->making);
	struct draft *bytes = atomic_load(&d->bytes);
	int rc = bytes ? draft_commit_expect(d->t->bucket, bytes, &d->left, err) : 0;
	if (!rc && bytes)
		rc = draft_describe(bytes, x->path, x->name, x->seen, err);
	bool named = true;
	if (!rc) {
		drafts_detach(d->t, x->name);
		pthread_mutex_lock(&d->t->lock);
		free(d->path);
		free(d->seen);
		d->path = x->path;
		d->seen = x->seen;
		/* What a failed commit has put may be in use under the old name. */
		d->numbered = UINT64_MAX;
		d->alone = d->alone && !replaces;
		/* A commit that seems to have failed may have put a domain under the old name. Two
		 * domains must not have the same storage. */
		d->number++;
		named = draft_table_rename_locked(d, x->name);
		*x = (struct draft_texts){0};
		pthread_mutex_unlock(&d->t->lock);
	}
	pthread_mutex_unlock(&d->making);
	if (!named)
		file_draft_unref(d);
	return rc;
}

/* If the file that was renamed is another one than the draft has seen, it expects what it has
 * expected before. Returns 1 then, or 0 or a negative errno. After a commit that has failed, the
 * file may be what that has put. */
static int keep_expectation(struct file_draft *d, const struct names_node *was,
			    struct draft_texts *x, struct err *err)
{
	char version[COMMIT_VERSION];
	char *seen = NULL;
	const int rc = commit_version_of(was, version);
	if (rc)
		return err_errno(err, rc, "%s", x->name);
	pthread_mutex_lock(&d->t->lock);
	const bool differs = !d->failure && strcmp(d->seen, version) != 0;
	if (differs)
		seen = strdup(d->seen);
	pthread_mutex_unlock(&d->t->lock);
	if (!differs)
		return 0;
	if (!seen)
		return err_no_memory(err);
	free(x->seen);
	x->seen = seen;
	return 1;
}

int drafts_rename(struct drafts *t, const char *from, const char *to, const struct names_node *was,
		  const struct names_node *n, struct err *err)
{
	struct draft_texts x;
	pthread_mutex_lock(&t->lock);
	struct file_draft *d = draft_table_find_locked(t, from);
	if (d)
		d->refs++;
	pthread_mutex_unlock(&t->lock);
	if (!d)
		return -ENOENT;
	int rc = draft_table_texts(&x, to, n, err);
	const int kept = !rc && was ? keep_expectation(d, was, &x, err) : 0;
	rc = kept < 0 ? kept : rc;
	if (!rc)
		rc = rename_draft(d, &x, n, err);
	if (!rc && !kept && d->base && n && n->kind == NAMES_OBJECT)
		draft_base_replace(d->base, n->path, &n->meta, NULL);
	file_draft_unref(d);
	free(x.name);
	free(x.path);
	free(x.seen);
	return rc;
}
