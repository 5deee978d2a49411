/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h: runs a history. Each actor uses only its own engine and its own operations. */
#include "history.h"

#include "baton.h"
#include "turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

#include "program.h"

enum {
	SPURIOUS = 500,
	SETTLE_ROUNDS = 2,
	SETTLE_SECONDS = 4000,	   /* more than an hour */
	CLOCK_SECONDS = 2 * 86400, /* that clocks may differ: see box_set_clock() */
	DEAD_STEPS = 60,	   /* of other engines until a killed one is there again */
};
#define SECOND UINT64_C(1000000000)

const char *const history_names[NAMES_MAX] = {"f1/a.h5", "f1/b.h5", "f2/a.h5",
					      "f2/c.h5", "f1/d.h5", "f3/e.h5"};

struct actor {
	struct history *h;
	unsigned int number, engine;
	const uint8_t *file;
	size_t n;
};

uint64_t history_tag(const struct history *h, unsigned int op)
{
	uint64_t tag = 0;
	/* Two tags of a part differ in each byte, so all bytes are written that replace one by
	 * another. */
	for (unsigned int i = 0; i < 8; i++)
		tag = tag << 8 | ((op + 1 + 29 * i + h->part * (50 + 7 * i)) & 0xff);
	return tag;
}

void history_first(const struct history *h, uint64_t uid, struct content *out)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (uid && h->first[i] == uid) {
			*out = h->contents[i];
			return;
		}
	content_init(out, uid);
}

void history_text(const struct op *op, char *text, size_t size)
{
	static const char *const kinds[] = {"create", "change",	 "remove", "rename",
					    "mkdir",  "read",	 "hold",   "wait",
					    "clock",  "restart", "drop",   "kill"};
	static const char *const changes[] = {
		"count",	 "tag",		"cell",	  "x0",	  "x1",	   "grow",
		"grow equal",	 "grow empty",	"shrink", "link", "spare", "unlink spare",
		"two",		 "note",	"unnote", "word", "extra", "move extra",
		"replace extra", "unlink extra"};
	static const char *const programs[PROGRAMS] = {"", " by libhdf5", " by libhdf5, latest"};
	static const char *const results[] = {"no effect", "done", "refused", "maybe"};
	char what[96] = "", fault[48] = "";
	if (op->kind == OP_RENAME)
		snprintf(what, sizeof(what), "%s %s", history_names[op->name],
			 history_names[op->to]);
	else if (op->kind == OP_CHANGE)
		snprintf(what, sizeof(what), "%s %s", history_names[op->name], changes[op->change]);
	else if (op->kind <= OP_READ)
		snprintf(what, sizeof(what), "%s", history_names[op->name]);
	if (op->hit && !op->fault)
		snprintf(fault, sizeof(fault), " disk fault,");
	else if (op->hit)
		snprintf(fault, sizeof(fault), " fault \"%s\" at request %u,",
			 fault_name(op->fault), op->at);
	snprintf(text, size, "engine %u: %s %s%s:%s %s (%d)", op->engine, kinds[op->kind], what,
		 programs[op->program], fault, results[op->status], op->rc);
}

static void take_steps(struct actor *a, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		scheduler_step(&a->h->world.scheduler);
}

unsigned int history_draft_names(const struct history *h, const struct op *op)
{
	unsigned int names = op->goes_on ? 1u << op->name : 0, before;
	do {
		before = names;
		for (unsigned int i = 0; i < h->nops; i++) {
			const struct op *o = &h->ops[i];
			if (o->kind == OP_RENAME && o->engine == op->engine && o->end > op->end &&
			    names & 1u << o->name)
				names |= 1u << o->to;
		}
	} while (names != before);
	return names;
}

/* ---- operations ---- */

static struct engine *engine_of(const struct actor *a)
{
	return a->h->boxes[a->engine].engine;
}

static uint64_t moment(struct actor *a)
{
	return scheduler_moment(&a->h->world.scheduler);
}

static void wait_a_step(void *ctx)
{
	take_steps(ctx, 1);
}

static struct program program_of(struct actor *a)
{
	return (struct program){.file = a->file, .n = a->n, .wait = wait_a_step, .ctx = a};
}

/* close(2) of a descriptor. A program may call fsync(2) and then close the file. */
static int flush(struct actor *a, const struct op *op, struct engine_file *f, struct err *err)
{
	const int rc = engine_flush(f, err);
	if (!rc || !op->again)
		return rc;
	take_steps(a, 1);
	a->h->boxes[a->engine].disk_fault.at = 0;
	return engine_flush(f, err);
}

static void arm_disk(struct box *b, const struct op *op)
{
	if (op->disk.at && !b->disk_fault.at && !b->line.dead)
		box_arm_disk(b, &op->disk);
}

static int create(struct actor *a, struct op *op, struct err *err)
{
	const struct program p = program_of(a);
	struct engine_file *f;
	content_init(&op->after, op->uid);
	int rc = engine_open_write(engine_of(a), history_names[op->name],
				   ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	op->opened = moment(a);
	op->was_open = !rc;
	if (rc)
		return rc;
	rc = program_create(&p, op, f, err);
	if (!rc) {
		take_steps(a, op->waits);
		op->closes = moment(a);
		arm_disk(&a->h->boxes[a->engine], op);
		rc = flush(a, op, f, err);
	}
	engine_file_close(f);
	return rc;
}

static void run_op(struct actor *a, struct op *op);

bool history_has_inside(const struct history *h, const struct op *op)
{
	const struct op *next = op + 1;
	return next < h->ops + h->nops && next->inside;
}

/* One operation of an engine has a fault at a time; the requests of the others count, too. */
static void arm(struct box *b, struct op *op)
{
	/* A new file of which a part could not be written would become a plain object, as on a disk
	 * (DETAILS.md, "Failed writes"). */
	if (op->kind != OP_CREATE || op->closes)
		arm_disk(b, op);
	if (!op->fault || (b->line.fault && !op->armed))
		return;
	op->armed = true;
	line_arm(&b->line, op->fault, op->at, op->on, op->all);
	b->line.many = op->many;
}

static void disarm(struct box *b, struct op *op)
{
	if (op->disk.at)
		b->disk_fault.at = 0;
	if (!op->armed)
		return;
	op->hit = b->line.hit;
	op->armed = false;
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
}

static int change_file(struct actor *a, struct op *op, struct engine_file *f, uint64_t tag,
		       struct err *err)
{
	const struct program p = program_of(a);
	int rc = program_change(&p, op, f, tag, err);
	op->opened = moment(a);
	if (rc)
		return rc;
	take_steps(a, op->waits);
	if (history_has_inside(a->h, op))
		run_op(a, op + 1);
	arm(&a->h->boxes[a->engine], op);
	op->closes = moment(a);
	return flush(a, op, f, err);
}

/* What the open of an existing file has shown. */
static void note_open(struct actor *a, struct op *op, int rc)
{
	op->shown = moment(a);
	op->is_absent = rc == -ENOENT && !a->h->boxes[a->engine].line.dead;
}

static int change(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	int rc = engine_open_write(engine_of(a), history_names[op->name], 0, &f, err);
	note_open(a, op, rc);
	if (rc)
		return rc;
	rc = change_file(a, op, f, history_tag(a->h, (unsigned int)(op - a->h->ops)), err);
	engine_file_close(f);
	return rc;
}

static int read_file(struct actor *a, struct op *op, struct err *err)
{
	const struct program p = program_of(a);
	struct engine_file *f;
	int rc = engine_file_open(engine_of(a), history_names[op->name], &f, err);
	note_open(a, op, rc);
	if (rc)
		return rc;
	op->was_open = true;
	rc = program_read(&p, op, f, err);
	engine_file_close(f);
	return rc;
}

void history_dir(const struct op *op, char path[static HISTORY_DIR])
{
	snprintf(path, HISTORY_DIR, "f%u/dir%u", 1 + op->name % 2, op->name);
}

static int make_dir(struct actor *a, const struct op *op, struct err *err)
{
	char path[HISTORY_DIR];
	history_dir(op, path);
	return engine_mkdir(engine_of(a), path, err);
}

static int hold(struct actor *a, struct op *op, struct err *err)
{
	struct box *b = &a->h->boxes[a->engine];
	const unsigned int number = a->h->part * OPS_MAX + (unsigned int)(op - a->h->ops);
	struct rng r = rng_derive(a->h->seed, 400 + number);
	struct hold *h = hold_new(number, b, a->file, a->n);
	op->hold = h;
	h->kills = op->dies;
	int rc = hold_begin(h, err);
	if (!rc)
		arm(b, op);
	return rc ? rc : hold_run(h, &r, wait_a_step, a, err);
}

/* Somebody drops the drafts of an engine. */
static void drop_holds(struct history *h, unsigned int engine)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].hold && h->ops[i].engine == engine)
			h->ops[i].hold->is_dropped = true;
}

static void inspect(struct box *b, const char *journal, const struct engine_options *bucket,
		    void *ctx)
{
	struct history *h = ctx;
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].hold && h->ops[i].engine == b->number)
			hold_check_journal(h->ops[i].hold, journal, bucket);
}

static int carry_out(struct actor *a, struct op *op, struct err *err)
{
	struct box *b = &a->h->boxes[a->engine];
	struct engine *e = b->engine;
	const char *name = history_names[op->name];
	switch (op->kind) {
	case OP_CREATE:
		return create(a, op, err);
	case OP_CHANGE:
		return change(a, op, err);
	case OP_REMOVE:
		return engine_unlink(e, name, err);
	case OP_RENAME:
		return engine_rename(e, name, history_names[op->to], 0, err);
	case OP_MKDIR:
		return make_dir(a, op, err);
	case OP_READ:
		return read_file(a, op, err);
	case OP_HOLD:
		return hold(a, op, err);
	case OP_WAIT:
		baton_sleep(op->waits * SECOND);
		return 0;
	case OP_CLOCK:
		box_set_clock(b);
		return 0;
	case OP_RESTART:
		box_restart(b);
		return 0;
	case OP_DROP:
		box_drop(b);
		drop_holds(a->h, a->engine);
		return 0;
	default:
		box_kill(b);
		return 0;
	}
}

/* ---- results ---- */

static bool has_draft(const struct op *op)
{
	return op->was_open && (op->kind == OP_CREATE || op->kind == OP_CHANGE);
}

/* An error of these is an answer: nothing has happened. A rename may have half happened. */
static bool is_refusal(const struct op *op)
{
	return op->rc == -ESTALE || op->rc == -EEXIST || op->rc == -EBUSY || op->rc == -ENOENT ||
	       op->rc == -EISDIR || op->rc == -ENOTDIR;
}

static enum op_status status_of(const struct op *op)
{
	const bool writes = op->kind == OP_CREATE || op->kind == OP_CHANGE;
	/* If a removal was repeated, nobody knows whether its first attempt has removed the name,
	 * or another program: see "Renames" in doc/DETAILS.md. */
	if (op->rc == 0 && (op->kind == OP_RENAME || op->kind == OP_REMOVE) && op->was_repeated)
		return OP_MAYBE;
	if (op->rc == 0 && !op->hit)
		return OP_DONE;
	if (writes && !op->was_open)
		return OP_NONE;
	if (op->kind == OP_READ || op->kind == OP_HOLD)
		return OP_NONE;
	if (op->rc == 0)
		return OP_DONE;
	/* The new name may be there. */
	if (op->kind == OP_RENAME && (op->rc == -ESTALE || op->rc == -EBUSY))
		return OP_MAYBE;
	/* A file that meets a rename which is being finished is stored later, by the same mount or
	 * the next one. */
	if (writes && op->rc == -EBUSY)
		return OP_MAYBE;
	/* What the program had written when it failed is not a whole file, and stays in the draft.
	 */
	if (writes && !op->closes)
		return OP_MAYBE;
	/* If the document of a grower was sent twice, its shape may have been there, and what it
	 * has put stays: see "Failed commits" in doc/DETAILS.md. */
	if (op->kind == OP_CHANGE && op->was_repeated)
		return OP_MAYBE;
	return !op->hit && is_refusal(op) ? OP_REFUSED : OP_MAYBE;
}

/* Whether the next operation of the actor drops what is in the journal, and no other actor can use
 * the engine before. */
static bool is_dropped_next(const struct actor *a, const struct op *op)
{
	const struct op *end = a->h->ops + a->h->nops;
	const bool is_one = a->h->actors <= a->h->engines || a->h->boxes[a->engine].line.dead;
	while (is_one && ++op < end)
		if (op->actor == a->number)
			return op->kind == OP_DROP;
	return false;
}

/* The engine keeps a draft of what has failed under the name, and following operations deal with
 * that; or it is opened again: then the draft is committed, or waits in the journal. */
static void settle_engine(struct actor *a, struct op *op)
{
	struct box *b = &a->h->boxes[a->engine];
	bool has_failed = op->status == OP_MAYBE && has_draft(op);
	/* What a program had written when it failed is not a whole file. */
	if (has_failed && op->closes && !b->line.dead && !op->dies && rng_once_in(&b->random, 2)) {
		op->goes_on = true;
		has_failed = false;
	}
	if (is_dropped_next(a, op) || !(b->line.dead || has_failed))
		return;
	if (b->line.dead)
		take_steps(a, rng_below(&b->random, DEAD_STEPS));
	box_enter_alone(b);
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
	a->h->revivals += b->line.dead;
	if (b->line.dead)
		box_revive(b);
	else if (has_failed)
		box_restart(b);
	box_leave_alone(b);
}

static void note_op(struct actor *a, const struct op *op, const char *when, const struct err *err)
{
	char text[256];
	history_text(op, text, sizeof(text));
	scheduler_note(&a->h->world.scheduler, "actor %u of %s %s %s", a->number, text, when,
		       err->msg);
}

/* ---- one operation ---- */

static bool needs_all(const struct op *op)
{
	return op->kind == OP_RESTART || op->kind == OP_DROP;
}

static void look_up(struct actor *a, unsigned int name, uint64_t *at, bool *is_there)
{
	struct engine_stat st;
	const int rc = engine_lookup(engine_of(a), history_names[name], &st, NULL);
	*is_there = rc == 0;
	if ((rc == 0 || rc == -ENOENT) && !a->h->boxes[a->engine].line.dead)
		*at = moment(a);
}

/* A change is visible at once in the mount that made it (SEMANTICS.md, "Changing names"). */
static void look_after(struct actor *a, struct op *op)
{
	if (op->status != OP_DONE || a->h->boxes[a->engine].line.dead || op->inside)
		return;
	if (op->kind == OP_CREATE || op->kind == OP_REMOVE || op->kind == OP_RENAME)
		look_up(a, op->name, &op->after_name.at, &op->after_name.is_there);
	if (op->kind == OP_RENAME)
		look_up(a, op->to, &op->after_to.at, &op->after_to.is_there);
}

static void run_op(struct actor *a, struct op *op)
{
	struct box *b = &a->h->boxes[a->engine];
	struct err err = ERR_INIT;
	note_op(a, op, "begins", &err);
	op->begin = moment(a);
	op->begin_ns = baton_now();
	op->uid = op->kind == OP_CREATE ? history_tag(a->h, (unsigned int)(op - a->h->ops)) : 0;
	const unsigned int repeated = b->line.repeated, disk_faults = b->disk_faults;
	if (op->kind != OP_HOLD)
		arm(b, op);
	op->rc = carry_out(a, op, &err);
	disarm(b, op);
	op->was_repeated = b->line.repeated != repeated;
	op->hit |= b->disk_faults != disk_faults;
	op->end = moment(a);
	op->end_ns = baton_now();
	/* A killed engine has answered nobody. */
	if (b->line.dead && op->kind < OP_READ)
		op->rc = -EIO;
	op->status = status_of(op);
	note_op(a, op, "ends", &err);
	look_after(a, op);
}

static void begin_op(struct actor *a, struct op *op)
{
	struct history *h = a->h;
	struct box *b = &h->boxes[a->engine];
	turns_take(h, op);
	if (needs_all(op))
		box_enter_alone(b);
	else
		box_enter(b);
	run_op(a, op);
	if (needs_all(op))
		box_leave_alone(b);
	else
		box_leave(b);
	settle_engine(a, op);
	turns_return(h, op);
}

static void *act(void *arg)
{
	struct actor *a = arg;
	struct history *h = a->h;
	for (unsigned int i = 0; i < h->nops; i++) {
		if (h->ops[i].actor != a->number || h->ops[i].inside)
			continue;
		const unsigned int follows = h->ops[i].follows;
		while (follows && !h->ops[follows - 1].end)
			scheduler_step(&h->world.scheduler);
		begin_op(a, &h->ops[i]);
		scheduler_step(&h->world.scheduler);
	}
	return NULL;
}

/* ---- a history ---- */

/* Folders, and the files that exist at first. */
static void set_up(struct history *h, const uint8_t *file, size_t n)
{
	struct actor a = {.h = h, .file = file, .n = n};
	struct err err = ERR_INIT;
	for (unsigned int i = 1; i <= 3; i++) {
		char name[8];
		snprintf(name, sizeof(name), "f%u", i);
		if (engine_mkdir(engine_of(&a), name, &err))
			abort();
	}
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		struct op op = {.kind = OP_CREATE, .name = i, .uid = history_tag(h, OPS_MAX + i)};
		if (!(h->present & 1u << i))
			continue;
		h->first[i] = op.uid;
		content_init(&h->contents[i], op.uid);
		if (create(&a, &op, &err)) {
			fprintf(stderr, "the first file cannot be made: %s\n", err.msg);
			abort();
		}
	}
	baton_sleep(10 * SECOND);
}

static void run_actors(struct history *h, const uint8_t *file, size_t n)
{
	struct actor actors[ACTORS_MAX];
	pthread_t threads[ACTORS_MAX];
	for (unsigned int i = 0; i < h->actors; i++) {
		actors[i] = (struct actor){
			.h = h, .number = i, .engine = i % h->engines, .file = file, .n = n};
		if (pthread_create(&threads[i], NULL, act, &actors[i]))
			abort();
	}
	for (unsigned int i = 0; i < h->actors; i++)
		pthread_join(threads[i], NULL);
}

/* How long nothing is deleted because of a rename: an hour by its clock (JOURNAL.md, "Marks of
 * deletions"). */
static uint64_t settle_seconds(const struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_CLOCK)
			return SETTLE_SECONDS + CLOCK_SECONDS;
	return SETTLE_SECONDS;
}

/* All engines recover, and delete their garbage. */
static void settle(struct history *h)
{
	struct scheduler *s = &h->world.scheduler;
	const uint64_t seconds = settle_seconds(h);
	for (unsigned int round = 0; round < SETTLE_ROUNDS; round++) {
		for (unsigned int i = 0; i < h->engines; i++) {
			scheduler_note(s, "engine %u: restart at the end", i);
			if (h->boxes[i].line.dead)
				box_revive(&h->boxes[i]);
			else
				box_restart(&h->boxes[i]);
			baton_sleep(seconds * SECOND);
		}
		scheduler_deliver(s);
	}
	for (unsigned int i = 0; i < h->engines; i++)
		box_release(&h->boxes[i]);
}

static void run_part(struct history *h, const uint8_t *file, size_t n)
{
	baton_live();
	run_actors(h, file, n);
	if ((h->seed + h->part) % 2)
		scheduler_deliver(&h->world.scheduler);
	settle(h);
	if (session_count()) {
		fprintf(stderr, "libhdf5 has objects of closed files\n");
		abort();
	}
}

void history_run(struct history *h, const uint8_t *file, size_t n, struct log *log, bool trace)
{
	const struct world_plan plan = {.seed = h->order,
					.lacks = h->lacks,
					.switches = h->switches,
					.spurious = h->seed % 4 ? 0 : SPURIOUS,
					.workers = h->workers,
					.repeats = h->repeats,
					.is_busy = h->is_busy,
					.log = log};
	world_init(&h->world, &plan);
	turns_init(&h->turns);
	h->world.scheduler.quiet = !trace;
	for (unsigned int i = 0; i < h->engines; i++)
		box_init(&h->boxes[i], &h->world, i, h->seed, false);
	for (unsigned int i = 0; i < h->engines; i++) {
		h->boxes[i].inspect = inspect;
		h->boxes[i].inspect_ctx = h;
	}
	set_up(h, file, n);
	run_part(h, file, n);
}

static void free_holds(struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		hold_free(h->ops[i].hold);
}

void history_run_next(struct history *h, const uint8_t *file, size_t n)
{
	free_holds(h);
	h->part++;
	history_make_part(h);
	for (unsigned int i = 0; i < h->engines; i++)
		box_begin_again(&h->boxes[i]);
	scheduler_note(&h->world.scheduler, "part %u", h->part);
	run_part(h, file, n);
}

void history_release(struct history *h)
{
	free_holds(h);
	for (unsigned int i = 0; i < h->engines; i++)
		box_free_disk(&h->boxes[i]);
	world_release(&h->world);
}
