/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the drafts in a journal directory, of all buckets. To tell the size of a draft and whether
 * it can be read, each one is opened and closed again; a mount that starts at that moment takes it
 * for one that is in use.
 */
#include "left_drafts.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <drafts/base_reader.h>
#include <drafts/draft_commit.h>
#include <journal/earlier.h>
#include <bucket/store_stack.h>
#include <overlay/draft_plan.h>

/* The limit for the lists of what was written: as much as a mount may always use for them. */
static const uint64_t memory_max = UINT64_C(512) << 20;

/* ---- the directory ---- */

static int no_bucket(void *ctx, const struct journal_bucket *b)
{
	return 0;
}

int engine_drafts_open(const char *journal_dir, struct engine_drafts **out, struct err *err)
{
	int rc = journal_buckets(journal_dir, no_bucket, NULL, err);
	if (rc)
		return rc;
	struct engine_drafts *s = calloc(1, sizeof(*s));
	if (!s)
		return err_no_memory(err);
	s->env = env_real(NULL, NULL);
	s->env.budget = budget_new(&(struct budget_limits){
		.bytes = memory_max, .metadata_min = memory_max, .option = "memory"});
	s->path = strdup(journal_dir);
	if (s->env.budget && s->path) {
		*out = s;
		return 0;
	}
	engine_drafts_close(s);
	return err_no_memory(err);
}

void engine_drafts_close(struct engine_drafts *s)
{
	if (!s)
		return;
	budget_free(s->env.budget);
	free(s->path);
	free(s);
}

const char *engine_draft_state_name(enum engine_draft_state state)
{
	static const char *const names[ENGINE_DRAFT_STATES] = {
		[ENGINE_DRAFT_WAITING] = "waiting",
		[ENGINE_DRAFT_IN_USE] = "in use",
		[ENGINE_DRAFT_LATER] = "later version",
		[ENGINE_DRAFT_UNREADABLE] = "unreadable",
		[ENGINE_DRAFT_EARLIER] = "earlier version",
	};
	return names[state];
}

static int open_journal(struct engine_drafts *s, const char *digits, struct journal **out,
			struct err *err)
{
	/* What a commit puts into the journal has no other limit than the disk. */
	const struct journal_settings settings = {
		.path = s->path, .digits = digits, .spool_size = UINT64_MAX};
	return journal_open(&settings, &s->env, out, err);
}

/* ---- one draft ---- */

void recover_item_release(struct recover_item *i)
{
	str_release(&i->name);
	str_release(&i->path);
	str_release(&i->version);
	str_release(&i->why);
}

static void set_waiting(struct recover_item *i, const struct draft_stat *stat, const char *note)
{
	const struct commit_record m = commit_record_decode(i->mark);
	if (commit_is_running(&m) && note[0])
		str_addf(&i->why, "it could not be committed: %s", note);
	else if (m.state == COMMIT_REFUSED)
		str_add(&i->why, "it could not be committed: another program has changed the file "
				 "since it was opened for writing");
	else if (m.state == COMMIT_BEGUN && i->item.changes_domain && !i->has_plan)
		str_add(&i->why, "its commit was interrupted when it had changed nothing or "
				 "everything");
	else if (m.state == COMMIT_BEGUN)
		str_add(&i->why, "its commit has begun; the next mount finishes it");
	else
		commit_left_why(stat, note, &i->why);
	if (i->has_other_layout && !i->has_plan)
		str_add(&i->why, "; " BASE_READER_OTHER_LAYOUT);
}

/* Returns the text of an error without "draft ID: " at its start. */
static const char *reason(const struct recover_item *i, const struct err *why)
{
	static const char draft[] = "draft ";
	const size_t n = sizeof(draft) - 1 + JOURNAL_ID - 1;
	return strncmp(why->msg, draft, sizeof(draft) - 1) == 0 &&
			       strncmp(why->msg + sizeof(draft) - 1, i->id, JOURNAL_ID - 1) == 0 &&
			       strncmp(why->msg + n, ": ", 2) == 0
		       ? why->msg + n + 2
		       : why->msg;
}

/* A plan that could not be read would have made the draft unreadable. */
static void look_at_plan(struct draft *d, struct recover_item *i)
{
	struct plan plan;
	if (!i->item.changes_domain || draft_get_plan(d, &plan, NULL))
		return;
	i->has_plan = true;
	i->operations = plan.count;
	for (uint32_t n = 0; n < plan.count; n++)
		i->done += plan.operations[n].done;
	plan_release(&plan);
}

/* Opens a draft to see what it contains. Returns false if it does not exist any more. */
static bool look_into(struct journal *j, struct recover_item *i, const char *note)
{
	struct draft *d;
	struct draft_stat stat;
	struct err why = ERR_INIT;
	const int rc = draft_open(j, i->id, NULL, &d, &why);
	if (rc == -ENOENT)
		return false;
	if (rc) {
		i->item.state = rc == -EBUSY ? ENGINE_DRAFT_IN_USE : ENGINE_DRAFT_UNREADABLE;
		str_add(&i->why, reason(i, &why));
		return true;
	}
	draft_get_stat(d, &stat);
	look_at_plan(d, i);
	draft_close(d);
	i->item.has_size = true;
	i->item.size = stat.size;
	i->mark = stat.mark;
	set_waiting(i, &stat, note);
	return true;
}

struct each {
	struct journal *j;
	int (*fn)(void *ctx, struct recover_item *item);
	void *ctx;
};

static int take(void *ctx, const struct journal_item *item)
{
	static const enum engine_draft_state states[] = {
		[JOURNAL_LEFT] = ENGINE_DRAFT_WAITING,
		[JOURNAL_IN_USE] = ENGINE_DRAFT_IN_USE,
		[JOURNAL_LATER] = ENGINE_DRAFT_LATER,
		[JOURNAL_UNREADABLE] = ENGINE_DRAFT_UNREADABLE,
	};
	const struct each *e = ctx;
	struct recover_item i = {.item.state = states[item->state]};
	memcpy(i.id, item->id, JOURNAL_ID);
	if (item->about) {
		i.kind = item->about->kind;
		i.item.created_ns = item->about->created_ns;
		i.item.changes_domain = base_reader_is_domain(item->about);
		i.has_other_layout = base_reader_has_other_layout(item->about);
		str_add(&i.name, item->about->name);
		str_add(&i.path, item->about->path);
		str_add(&i.version, item->about->version);
	}
	if (item->state == JOURNAL_IN_USE)
		str_addf(&i.why, "a mount has it open%s%s",
			 item->why[0] ? "; it could not be committed: " : "", item->why);
	else if (item->state != JOURNAL_LEFT)
		str_add(&i.why, item->why);
	else if (!look_into(e->j, &i, item->why)) {
		recover_item_release(&i);
		return 0;
	}
	if (!str_ok(&i.name) || !str_ok(&i.path) || !str_ok(&i.version) || !str_ok(&i.why)) {
		recover_item_release(&i);
		return -ENOMEM;
	}
	return e->fn(e->ctx, &i);
}

int recover_each(struct journal *j, int (*fn)(void *ctx, struct recover_item *item), void *ctx,
		 struct err *err)
{
	struct each e = {.j = j, .fn = fn, .ctx = ctx};
	int rc = journal_list(j, take, &e, err);
	return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
}

/* ---- listing ---- */

struct list {
	struct engine_drafts *s;
	const char *bucket;   /* as the user names it, or NULL */
	const char *absolute; /* the same, as the journal names it */
	int (*fn)(void *arg, const struct engine_draft_item *item);
	void *arg;
	struct bytes items; /* struct recover_item[], of one bucket */
	struct err *err;
};

static int keep(void *ctx, struct recover_item *item)
{
	struct list *l = ctx;
	int rc = bytes_append(&l->items, item, sizeof(*item));
	if (rc)
		recover_item_release(item);
	return rc;
}

static int compare(const void *a, const void *b)
{
	const struct recover_item *x = a, *y = b;
	return x->item.created_ns != y->item.created_ns
		       ? (x->item.created_ns > y->item.created_ns ? 1 : -1)
		       : strcmp(x->id, y->id);
}

static int pass_items(struct list *l, const char *bucket)
{
	struct recover_item *items = (struct recover_item *)(void *)l->items.data;
	const size_t n = l->items.len / sizeof(*items);
	int rc = 0;
	if (n)
		qsort(items, n, sizeof(*items), compare);
	for (size_t i = 0; i < n; i++) {
		struct engine_draft_item item = items[i].item;
		item.id = items[i].id;
		item.bucket = bucket;
		item.path = str_text(&items[i].name);
		item.why = str_text(&items[i].why);
		if (!rc)
			rc = l->fn(l->arg, &item);
		recover_item_release(&items[i]);
	}
	l->items.len = 0;
	return rc;
}

static bool is_chosen(const struct list *l, const struct journal_bucket *b)
{
	return !l->bucket || strcmp(b->name, l->absolute) == 0 ||
	       strcmp(b->bucket, l->absolute) == 0 || strcmp(b->digits, l->bucket) == 0;
}

static int list_bucket(void *ctx, const struct journal_bucket *b)
{
	struct list *l = ctx;
	struct journal *j;
	if (!is_chosen(l, b))
		return 0;
	int rc = open_journal(l->s, b->digits, &j, l->err);
	if (rc)
		return rc;
	rc = recover_each(j, keep, l, l->err);
	journal_close(j);
	const int passed = pass_items(l, b->name);
	return rc ? rc : passed;
}

/* What an earlier version has left. */
static int list_earlier(void *ctx, const struct journal_earlier *e)
{
	struct list *l = ctx;
	const struct engine_draft_item item = {.id = e->id,
					       .state = ENGINE_DRAFT_EARLIER,
					       .created_ns = e->created_ns,
					       .bucket = e->bucket->name,
					       .path = e->name,
					       .why = e->is_draft ? EARLIER_DRAFT : EARLIER_NOTES};
	return is_chosen(l, e->bucket) ? l->fn(l->arg, &item) : 0;
}

int engine_drafts_list(struct engine_drafts *s, const char *bucket,
		       int (*fn)(void *arg, const struct engine_draft_item *item), void *arg,
		       struct err *err)
{
	auto_free char *absolute = bucket ? store_stack_name(bucket) : NULL;
	struct list l = {
		.s = s, .bucket = bucket, .absolute = absolute, .fn = fn, .arg = arg, .err = err};
	if (bucket && !absolute)
		return err_no_memory(err);
	int rc = journal_buckets(s->path, list_bucket, &l, err);
	if (!rc)
		rc = journal_each_earlier(s->path, list_earlier, &l, err);
	bytes_release(&l.items);
	return rc;
}

/* ---- finding ---- */

struct find {
	struct engine_drafts *s;
	const char *id;
	size_t n; /* of the id */
	struct recover_found *out;
	const struct journal_bucket *bucket;
	unsigned int found;
	bool is_earlier; /* an earlier version has written one with this id */
	struct err *err;
};

static int match(void *ctx, const struct journal_item *item)
{
	struct find *f = ctx;
	struct recover_found *out = f->out;
	if (strncmp(item->id, f->id, f->n) != 0)
		return 0;
	if (++f->found > 1)
		return 0;
	memcpy(out->id, item->id, JOURNAL_ID);
	snprintf(out->digits, sizeof(out->digits), "%s", f->bucket->digits);
	str_add(&out->name, f->bucket->name);
	str_add(&out->identity, f->bucket->bucket);
	return str_ok(&out->name) && str_ok(&out->identity) ? 0 : err_no_memory(f->err);
}

static int find_in(void *ctx, const struct journal_bucket *b)
{
	struct find *f = ctx;
	struct journal *j;
	f->bucket = b;
	int rc = open_journal(f->s, b->digits, &j, f->err);
	if (rc)
		return rc;
	rc = journal_list(j, match, f, f->err);
	journal_close(j);
	return rc;
}

static int match_earlier(void *ctx, const struct journal_earlier *e)
{
	struct find *f = ctx;
	f->is_earlier |= strncmp(e->id, f->id, f->n) == 0;
	return 0;
}

int recover_find(struct engine_drafts *s, const char *id, struct recover_found *out,
		 struct err *err)
{
	struct find f = {.s = s, .id = id, .n = strlen(id), .out = out, .err = err};
	*out = (struct recover_found){.journal = NULL};
	if (!f.n || f.n >= JOURNAL_ID || strspn(id, "0123456789abcdef") != f.n)
		return err_set(err, -EINVAL, "%s: not the id of a draft", id);
	int rc = journal_buckets(s->path, find_in, &f, err);
	if (!rc && !f.found)
		rc = journal_each_earlier(s->path, match_earlier, &f, err);
	if (!rc && f.is_earlier)
		rc = err_set(err, -ENOTSUP, "%s: " EARLIER_DRAFT, id);
	if (!rc && !f.found)
		rc = err_set(err, -ENOENT, "%s: there is no such draft in %s", id, s->path);
	if (!rc && f.found > 1)
		rc = err_set(err, -EINVAL,
			     "%s: %u drafts have ids that begin like this; give more digits", id,
			     f.found);
	if (!rc)
		rc = open_journal(s, out->digits, &out->journal, err);
	if (rc)
		recover_found_release(out);
	return rc;
}

void recover_found_release(struct recover_found *f)
{
	journal_close(f->journal);
	str_release(&f->name);
	str_release(&f->identity);
	*f = (struct recover_found){.journal = NULL};
}
