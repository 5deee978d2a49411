/* SPDX-License-Identifier: Apache-2.0 */
/* See recover.h. No state. */
#include "recover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hsmount/recover.h>

enum { DRAFTS_MAX = 16 };

struct left {
	char id[32];
	struct op *op; /* that has made it */
};

struct recovery {
	struct actor *actor;
	struct op *op; /* OP_RECOVER */
	struct engine_drafts *drafts;
	struct left left[DRAFTS_MAX];
	unsigned int n;
	int rc; /* the last failure */
	struct err *err;
};

/* ---- which operation has made a draft ---- */

static bool has_made(const struct recovery *r, const struct op *op,
		     const struct engine_draft_item *item)
{
	const struct history *h = r->actor->h;
	const unsigned int names = history_names_of(h, op);
	if ((op->kind != OP_CREATE && op->kind != OP_CHANGE) || op->engine != r->actor->engine ||
	    !op->was_open || item->created_ns < op->made_from || item->created_ns > op->made_until)
		return false;
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (names & 1u << i && strcmp(item->path, history_names[i]) == 0)
			return true;
	return false;
}

/* NULL: none, or several may have made it. */
static struct op *maker(const struct recovery *r, const struct engine_draft_item *item)
{
	struct history *h = r->actor->h;
	struct op *found = NULL;
	for (unsigned int i = 0; i < h->nops; i++) {
		if (!has_made(r, &h->ops[i], item))
			continue;
		if (found)
			return NULL;
		found = &h->ops[i];
	}
	return found;
}

/* Whether the draft has all that the program of the operation has written. */
static bool is_whole(const struct recovery *r, const struct op *op)
{
	return op->is_written && !op->goes_on &&
	       op->powers == r->actor->h->boxes[op->engine].powers;
}

static int note_left(void *arg, const struct engine_draft_item *item)
{
	struct recovery *r = arg;
	struct op *op = item->state == ENGINE_DRAFT_WAITING ? maker(r, item) : NULL;
	if (!op || !is_whole(r, op) || r->n == DRAFTS_MAX)
		return 0;
	struct left *l = &r->left[r->n++];
	snprintf(l->id, sizeof(l->id), "%s", item->id);
	l->op = op;
	return 0;
}

/* ---- commits ---- */

static int compare_id(void *id, const struct engine_draft_item *item)
{
	return strcmp(id, item->id) == 0;
}

static bool is_in_journal(const struct recovery *r, char *id)
{
	return engine_drafts_list(r->drafts, NULL, compare_id, id, NULL) == 1;
}

static void note_done(struct recovery *r, struct op *op)
{
	op->status = OP_DONE;
	op->was_recovered = true;
	op->stored = actor_moment(r->actor);
}

static void commit(struct recovery *r, struct left *l, const struct engine_options *bucket)
{
	struct box *b = &r->actor->h->boxes[r->actor->engine];
	struct scheduler *s = &r->actor->h->world.scheduler;
	const struct engine_draft_commit opt = {.bucket = bucket};
	const unsigned int repeated = b->line.repeated;
	const int rc = engine_drafts_commit(r->drafts, l->id, &opt, r->err);
	world_cut_message(&r->actor->h->world, r->err);
	scheduler_note(s, "recover commit of file %llx: %d %s", (unsigned long long)l->op->uid, rc,
		       rc ? r->err->msg : "");
	/* Otherwise the command was killed, and nobody has its answer. */
	if (!b->line.dead && rc == 0)
		note_done(r, l->op);
	else if (l->op->status == OP_REFUSED && (rc != -ESTALE || b->line.repeated != repeated))
		l->op->status = OP_MAYBE;
	if (!b->line.dead)
		r->op->loses_draft |= is_in_journal(r, l->id) == (rc == 0);
	r->rc = rc ? rc : r->rc;
}

static void commit_all(struct box *b, const char *journal, const struct engine_options *bucket,
		       void *ctx)
{
	struct recovery *r = ctx;
	if (engine_drafts_open(journal, &r->drafts, r->err))
		return;
	engine_drafts_list(r->drafts, NULL, note_left, r, r->err);
	operation_arm(b, r->op);
	for (unsigned int i = 0; i < r->n && !b->line.dead; i++)
		commit(r, &r->left[i], bucket);
	if (b->line.dead) { /* it has no fault any more */
		r->op->hit = true;
		r->op->armed = false;
	}
	engine_drafts_close(r->drafts);
}

int recover_drafts(struct actor *a, struct op *op, struct err *err)
{
	struct box *b = &a->h->boxes[a->engine];
	struct recovery r = {.actor = a, .op = op, .err = err};
	b->keeps_power = true;
	box_kill(b);
	b->keeps_power = false;
	box_tidy(b, commit_all, &r);
	return r.rc;
}
