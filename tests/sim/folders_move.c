/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See folders.h: renames a folder to the name of the other one. If nobody else has used the folders
 * meanwhile, and no request has failed, all that happens is known, and must have happened.
 * Otherwise each part of it may have happened and may have been taken back, but a file has always
 * one of its two names.
 */
#include "folders_internal.h"

#include <errno.h>
#include <stdlib.h>

#include <base/mem.h>
#include <hsmount/engine.h>

/* The search for an order takes long if there are many. */
enum { MOVES_MAX = 3 /* of a part */ };

struct move {
	struct folders_program *g;
	unsigned int from, to; /* folders */
	uint64_t began;
	bool open;
	/* Of the document of the old folder, that of the new one, the plain object, the domain. */
	struct order_act *old, *new, *files[2];
};

/* Whether an act of another call may have had an effect meanwhile, or will have one. */
static bool is_in_the_way(const struct move *m, const struct order_act *a)
{
	if (!a->end || a->end > m->began || a->end_ns + m->g->by->box->ttl_ns >= m->old->begin_ns)
		return true;
	for (const struct order_step *s = a->steps; s->kind; s++)
		if (s->may)
			return true;
	return false;
}

static bool is_alone(const struct move *m)
{
	const struct order *o = &m->g->p->order;
	for (unsigned int i = 0; i < o->n; i++) {
		const struct order_act *a = &o->acts[i];
		const bool own = a == m->old || a == m->new || a == m->files[0] || a == m->files[1];
		const bool is_open = m->open && a->engine == m->g->by->box->number && !a->end;
		if (!own && !is_open && is_in_the_way(m, a))
			return false;
	}
	return true;
}

/* ---- the documents ---- */

/* The new folder gets a document. An empty folder that has the name is replaced. */
static void plan_new(struct move *m, bool alone)
{
	const uint64_t until = folders_now(m->g);
	order_step(m->new, alone ? ORDER_WIPE : ORDER_FLIP, 1, m->began, until, false)->skip = true;
	order_step(m->new, ORDER_MAKE, 1, m->began, until, false);
}

static void plan_old(struct move *m, bool alone)
{
	const uint64_t until = folders_now(m->g);
	struct order_step *s;
	if (alone) {
		s = order_step(m->old, ORDER_SOME, 0, m->began, until, false);
		s->to = folders_register(m->from);
		s->also = folders_register(m->from + FOLDERS);
		/* A folder that is kept by a draft may have nothing in the bucket. */
		s->skip = m->open;
	}
	order_step(m->old, ORDER_FILL, 1, m->began, until, false)->skip = true;
	order_step(m->old, ORDER_WIPE, 0, m->began, until, false)->skip = !alone;
}

/* Each attempt may make the new folder and remove it again, and replace an empty folder. */
static void plan_folders_perhaps(struct move *m, bool late)
{
	const uint64_t until = folders_now(m->g);
	order_step(m->new, ORDER_FLIP, 1, m->began, until, late)->skip = true;
	order_step(m->old, ORDER_FILL, 1, m->began, until, late)->skip = true;
	order_step(m->old, ORDER_WIPE, 0, m->began, until, late)->skip = true;
}

/* ---- the files ---- */

/* A file that a program of this mount has open and the bucket does not have moves as a draft. If
 * another mount makes the file meanwhile, that stays in the old folder. */
static void plan_file(struct move *m, struct order_act *a)
{
	const uint64_t until = folders_now(m->g);
	order_step(a, ORDER_CARRY, 0, m->began, until, false)->skip = m->open;
	order_step(a, ORDER_LEAVE, 0, m->began, until, false)->skip = m->open;
}

/* There, and perhaps back. */
static void plan_file_perhaps(struct move *m, struct order_act *a, bool back, bool late)
{
	const enum order_kind kinds[] = {ORDER_FIND, ORDER_GIVE,
					 m->g->by->plain_delete ? ORDER_WIPE : ORDER_DROP};
	for (unsigned int i = 0; i < (back ? 6 : 3); i++) {
		struct order_step *s =
			order_step(a, kinds[i % 3], 0, m->began, folders_now(m->g), late);
		s->at = i < 3 ? a->at : a->to;
		s->to = i < 3 ? a->to : a->at;
		s->rest = !late;
	}
}

/* Another program that renames the domain in the same way may have done the work. */
static bool has_twin(const struct move *m, const struct order_act *a)
{
	const struct order *o = &m->g->p->order;
	for (unsigned int i = 0; i < o->n; i++) {
		const struct order_act *b = &o->acts[i];
		const bool same =
			(b->at == a->at && b->to == a->to) || (b->at == a->to && b->to == a->at);
		if (b != a && same && is_in_the_way(m, b))
			return true;
	}
	return false;
}

static void plan_done(struct move *m, bool alone)
{
	plan_new(m, alone);
	plan_old(m, alone);
	plan_file(m, m->files[0]);
	if (has_twin(m, m->files[1]))
		plan_file_perhaps(m, m->files[1], false, false);
	else
		plan_file(m, m->files[1]);
}

static void plan_perhaps(struct move *m, bool late)
{
	plan_folders_perhaps(m, late);
	for (unsigned int i = 0; i < 2; i++)
		plan_file_perhaps(m, m->files[i], true, late);
	m->g->p->may_leave = true;
}

/* ---- the whole ---- */

static bool begin(struct move *m)
{
	m->old = folders_begin_dir(m->g, "rename of the folder", m->from);
	m->new = folders_begin_dir(m->g, "its new name", m->to);
	for (unsigned int i = 0; i < 2; i++) {
		const unsigned int file = m->from + FOLDERS * i;
		m->files[i] = player_begin(m->g->by, "its file", folders_register(file),
					   folders_register(file ^ 1));
	}
	return m->old && m->new && m->files[0] && m->files[1];
}

static void end(struct move *m)
{
	struct order_act *const acts[] = {m->old, m->new, m->files[0], m->files[1]};
	for (unsigned int i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (acts[i])
			player_end(m->g->by, acts[i]);
}

/* What happened during the call. */
struct course {
	bool answered;
	bool quiet;   /* no request has failed, or was repeated */
	bool changed; /* something, perhaps: by any program of the mount */
};

/* The call has failed before it has changed anything. */
static void judge_refusal(struct move *m, int rc, bool certain)
{
	if (rc == -ENOTEMPTY)
		folders_look_at_files(m->g, m->new, m->to, ORDER_SOME, m->began, !certain);
	else if (rc == -ENOENT && certain && !m->open)
		folders_look_cached(m->g, m->old, ORDER_NEITHER, m->began);
	else if (rc != -ENOENT && certain)
		FOLDERS_FAULT(m->g->p, "engine %u cannot rename a folder that nobody else uses: %d",
			      m->g->by->box->number, rc);
}

static enum folders_moved judge(struct move *m, int rc, const struct course *c)
{
	const bool alone = is_alone(m);
	if (c->answered && c->quiet && !rc) {
		plan_done(m, alone);
		return MOVED;
	}
	const bool certain = c->answered && c->quiet && alone;
	const bool refused = rc == -ENOENT || rc == -ENOTEMPTY;
	if (c->answered && rc && (!c->changed || (certain && refused))) {
		judge_refusal(m, rc, certain);
		return MOVED_NOT;
	}
	if (certain)
		FOLDERS_FAULT(m->g->p,
			      "engine %u fails to rename a folder that nobody else uses: %d",
			      m->g->by->box->number, rc);
	plan_perhaps(m, !c->answered || !c->quiet);
	return c->answered && !rc ? MOVED : MOVED_PERHAPS;
}

static int rename_judged(struct move *m, enum folders_moved *moved, struct err *err)
{
	const struct box *b = m->g->by->box;
	const struct line *l = &b->line;
	const unsigned int repeated = l->repeated, faults = l->faults + b->disk_faults,
			   changes = l->changes;
	const struct folders_path from = folders_dir(m->from), to = folders_dir(m->to);
	const int rc = engine_rename(m->g->e, from.text, to.text, 0, err);
	const struct course c = {
		.answered = player_note(m->g->by, m->old->what, from.text, rc),
		.quiet = l->repeated == repeated && l->faults + b->disk_faults == faults,
		.changed = l->changes != changes,
	};
	*moved = judge(m, rc, &c);
	return rc;
}

int folders_move(struct folders_program *g, unsigned int i, bool open, enum folders_moved *moved,
		 struct err *err)
{
	struct move m = {.g = g, .from = i, .to = 1 - i, .began = folders_now(g), .open = open};
	*moved = MOVED_NOT;
	if (g->p->moves == MOVES_MAX)
		return 0;
	g->p->moves++;
	/* If there are too many acts, nothing is done. */
	const int rc = begin(&m) ? rename_judged(&m, moved, err) : 0;
	end(&m);
	return rc == -ENOTEMPTY ? 0 : rc;
}
