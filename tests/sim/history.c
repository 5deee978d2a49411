/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h: runs a history. Each actor uses only its own engine and its own operations. */
#include "actor.h"

#include "baton.h"
#include "imports.h"
#include "process.h"
#include "store_calls.h"
#include "turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

enum {
	SPURIOUS = 500,
	SETTLE_ROUNDS = 2,
	/* How long nothing is deleted because of a rename: more than an hour, and what clocks
	 * may differ by (JOURNAL.md, "Marks of deletions"). */
	SETTLE_SECONDS = 4000 + 2 * 900,
	LATE_SECONDS = 1000,
	DEAD_STEPS = 60, /* of other engines until a killed one is there again */
};
#define SECOND UINT64_C(1000000000)

const char *const history_names[NAMES_MAX] = {"f1/a.h5", "f1/b.h5", "f2/a.h5",
					      "f2/c.h5", "f1/d.h5", "f3/e.h5"};

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
	static const char *const kinds[OP_KINDS] = {
		[OP_CREATE] = "create",	  [OP_CHANGE] = "change",   [OP_IMPORT] = "import",
		[OP_REMOVE] = "remove",	  [OP_RENAME] = "rename",   [OP_MKDIR] = "mkdir",
		[OP_LIST] = "list",	  [OP_CUT] = "cut",	    [OP_READ] = "read",
		[OP_CHECK] = "check",	  [OP_HOLD] = "hold",	    [OP_PLAIN] = "plain",
		[OP_FOLDERS] = "folders", [OP_FOREIGN] = "foreign", [OP_ACLS] = "acls",
		[OP_LINKS] = "links",	  [OP_STORES] = "stores",   [OP_SHARED] = "shared",
		[OP_MIXED] = "mixed",	  [OP_WAIT] = "wait",	    [OP_CLOCK] = "clock",
		[OP_RESTART] = "restart", [OP_DROP] = "drop",	    [OP_RECOVER] = "recover",
		[OP_KILL] = "kill"};
	static const char *const changes[] = {
		"count",	 "tag",		 "cell",	"x0",	  "x1",	   "grow",
		"grow equal",	 "grow empty",	 "shrink",	"link",	  "spare", "unlink spare",
		"two",		 "note",	 "unnote",	"word",	  "extra", "move extra",
		"replace extra", "unlink extra", "swap extras", "taller", "wider", "larger",
		"smaller",	 "alien"};
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

/* The names that a draft gets by renames of its engine that end after a moment. */
static unsigned int follow_renames(const struct history *h, const struct op *op, uint64_t after)
{
	unsigned int names = 1u << op->name, before;
	do {
		before = names;
		for (unsigned int i = 0; i < h->nops; i++) {
			const struct op *o = &h->ops[i];
			if (o->kind == OP_RENAME && o->engine == op->engine && o->end > after &&
			    names & 1u << o->name)
				names |= 1u << o->to;
		}
	} while (names != before);
	return names;
}

unsigned int history_names_of(const struct history *h, const struct op *op)
{
	return follow_renames(h, op, op->begin);
}

unsigned int history_draft_names(const struct history *h, const struct op *op)
{
	return op->goes_on ? follow_renames(h, op, op->end) : 0;
}

bool history_has_inside(const struct history *h, const struct op *op)
{
	const struct op *next = op + 1;
	return next < h->ops + h->nops && next->inside;
}

static void inspect(struct box *b, const char *journal, const struct engine_options *bucket,
		    void *ctx)
{
	struct history *h = ctx;
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].hold && h->ops[i].engine == b->number)
			hold_check_journal(h->ops[i].hold, journal, bucket);
	shared_check_journal(h->shared, b, journal, bucket);
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
	       op->rc == -EISDIR || op->rc == -ENOTDIR || op->rc == -EOPNOTSUPP;
}

/* A program on names of its own, which judges what has happened. */
static bool is_own(const struct op *op)
{
	return op->kind >= OP_PLAIN && op->kind <= OP_SHARED;
}

static enum op_status status_of(const struct op *op)
{
	if (op->kind == OP_CUT)
		return op->rc == 0 || op->rc == -EROFS ? OP_DONE : OP_NONE;
	const bool writes = op->kind == OP_CREATE || op->kind == OP_CHANGE;
	/* If a removal was repeated, nobody knows whether its first attempt has removed the name,
	 * or another program: see "Renames" in doc/DETAILS.md. */
	if (op->rc == 0 && (op->kind == OP_RENAME || op->kind == OP_REMOVE) && op->was_repeated)
		return OP_MAYBE;
	if (op->rc == 0 && !op->hit)
		return OP_DONE;
	if (writes && !op->was_open)
		return OP_NONE;
	if (op->kind == OP_READ || op->kind == OP_LIST || op->kind == OP_CHECK ||
	    op->kind == OP_HOLD || is_own(op))
		return OP_NONE;
	if (op->rc == 0)
		return OP_DONE;
	/* The new name may be there. */
	if (op->kind == OP_RENAME && (op->rc == -ESTALE || op->rc == -EBUSY))
		return OP_MAYBE;
	/* Somebody may have removed the record when the domain was there already. */
	if (op->kind == OP_IMPORT && op->rc != -EEXIST)
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

/* Waits until the operation that it follows has ended. */
static void await_op(struct actor *a, const struct op *op)
{
	while (op->follows && !a->h->ops[op->follows - 1].end)
		scheduler_step(&a->h->world.scheduler);
}

/* Whether the next operation of the actor deals with what is in the journal, and no other actor can
 * use the engine before. */
static bool is_tidied_next(const struct actor *a, const struct op *op)
{
	const struct op *end = a->h->ops + a->h->nops;
	const bool is_one = a->h->actors <= a->h->engines || a->h->boxes[a->engine].line.dead;
	while (is_one && ++op < end)
		if (op->actor == a->number)
			return op->kind == OP_DROP || op->kind == OP_RECOVER;
	return false;
}

/* A killed engine is there again after a while; or when the next operation of its only program
 * begins, if that follows another one. */
static void stay_dead(struct actor *a, const struct op *op)
{
	struct rng *r = &a->h->boxes[a->engine].random;
	const struct op *end = a->h->ops + a->h->nops, *next = op + 1;
	while (next < end && next->actor != a->number)
		next++;
	if (next < end && next->follows && a->h->actors <= a->h->engines &&
	    !(a->h->one_by_one && rng_once_in(r, 2)))
		await_op(a, next);
	else
		actor_take_steps(a, rng_below(r, DEAD_STEPS));
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
	has_failed |= op->left_draft;
	if (is_tidied_next(a, op) || !(b->line.dead || has_failed))
		return;
	if (b->line.dead)
		stay_dead(a, op);
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

void actor_take_steps(struct actor *a, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		scheduler_step(&a->h->world.scheduler);
}

static bool needs_all(const struct op *op)
{
	return op->kind == OP_RESTART || op->kind == OP_DROP || op->kind == OP_RECOVER;
}

static struct box *box_of(struct actor *a, const struct op *op)
{
	return process_has(op) ? a->process : &a->h->boxes[a->engine];
}

static void look_up(struct actor *a, unsigned int name, uint64_t *at, bool *is_there)
{
	struct engine_stat st;
	const int rc = engine_lookup(actor_engine(a), history_names[name], &st, NULL);
	/* A plain object may be what a failed program has left: see model_has_torn() in model.c. */
	*is_there = rc == 0 && st.kind == ENGINE_DOMAIN;
	if ((rc == 0 || rc == -ENOENT) && !a->h->boxes[a->engine].line.dead)
		*at = actor_moment(a);
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

void actor_run(struct actor *a, struct op *op)
{
	struct box *b = box_of(a, op);
	struct err err = ERR_INIT;
	note_op(a, op, "begins", &err);
	op->begin = actor_moment(a);
	op->begin_ns = baton_now();
	op->powers = b->powers;
	op->uid = op->kind == OP_CREATE || op->kind == OP_IMPORT
			  ? history_tag(a->h, (unsigned int)(op - a->h->ops))
			  : 0;
	const unsigned int repeated = b->line.repeated, disk_faults = b->disk_faults,
			   faults = b->line.faults;
	if (op->kind != OP_HOLD)
		operation_arm(b, op);
	op->rc = operation_carry_out(a, op, &err);
	operation_disarm(b, op);
	op->was_repeated = b->line.repeated != repeated;
	/* If the fault of another operation lets its first commit fail, the second one is not
	 * refused for good (JOURNAL.md, "Conflicts": no commit with the same number has begun
	 * before). */
	op->was_repeated |= op->kind == OP_CREATE && op->rc && b->line.faults != faults;
	op->hit |= b->disk_faults != disk_faults;
	/* A name whose document cannot be read is listed as a file (DETAILS.md), also if the fault
	 * is that of another operation. */
	op->hit |= op->kind == OP_LIST && b->line.faults != faults;
	op->stored = op->end = actor_moment(a);
	op->end_ns = baton_now();
	/* A killed engine has answered nobody. */
	if (b->line.dead && op->kind < OP_READ)
		op->rc = -EIO;
	op->status = status_of(op);
	note_op(a, op, "ends", &err);
	look_after(a, op);
}

static void run_process(struct actor *a, struct op *op)
{
	turns_take(a->h, op);
	process_begin(a, op, 0);
	actor_run(a, op);
	process_end(a);
	if (op->kind == OP_IMPORT)
		import_finish(a, op);
	turns_return(a->h, op);
}

static void begin_op(struct actor *a, struct op *op)
{
	struct history *h = a->h;
	struct box *b = &h->boxes[a->engine];
	if (process_has(op)) {
		run_process(a, op);
		return;
	}
	turns_take(h, op);
	if (needs_all(op))
		box_enter_alone(b);
	else
		box_enter(b);
	actor_run(a, op);
	if (needs_all(op))
		box_leave_alone(b);
	else
		box_leave(b);
	settle_engine(a, op);
	if (!op->left)
		turns_return(h, op);
}

static void *act(void *arg)
{
	struct actor *a = arg;
	struct history *h = a->h;
	for (unsigned int i = 0; i < h->nops; i++) {
		if (h->ops[i].actor != a->number || h->ops[i].inside)
			continue;
		await_op(a, &h->ops[i]);
		begin_op(a, &h->ops[i]);
		scheduler_step(&h->world.scheduler);
	}
	return NULL;
}

/* ---- a history ---- */

static void put_plain(struct history *h, unsigned int name)
{
	if (call_put(h->world.bucket, history_names[name], "plain", 5, NULL, NULL, NULL))
		abort();
	h->torn = true;
}

/* A folder that nobody needs would only change the order of everything. */
static int set_up_mixed(const struct history *h, struct engine *e, struct err *err)
{
	bool is_needed = history_may_be_mixed(h);
	for (unsigned int i = 0; i < h->nops; i++)
		is_needed |= h->ops[i].kind == OP_MIXED;
	return is_needed ? mixed_set_up(e, err) : 0;
}

/* Folders, and the files that exist at first. */
static void set_up(struct history *h, const uint8_t *file, size_t n)
{
	struct actor a = {.h = h, .file = file, .n = n};
	struct err err = ERR_INIT;
	for (unsigned int i = 1; i <= 3; i++) {
		char name[8];
		snprintf(name, sizeof(name), "f%u", i);
		if (engine_mkdir(actor_engine(&a), name, &err))
			abort();
	}
	if (plain_set_up(actor_engine(&a), &err) || folders_set_up(actor_engine(&a), &err) ||
	    acls_set_up(actor_engine(&a), &err) || set_up_mixed(h, actor_engine(&a), &err) ||
	    links_set_up(actor_engine(&a), &err) || shared_set_up(actor_engine(&a), &err))
		abort();
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		struct op op = {.kind = OP_CREATE,
				.name = i,
				.uid = history_tag(h, OPS_MAX + i),
				.left = true};
		if (h->present & 1u << (HISTORY_PLAIN + i))
			put_plain(h, i);
		if (!(h->present & 1u << i))
			continue;
		h->first[i] = op.uid;
		content_init(&h->contents[i], op.uid);
		if (operation_create(&a, &op, &err)) {
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

/* All engines recover, and delete their garbage. */
static void settle(struct history *h)
{
	struct scheduler *s = &h->world.scheduler;
	for (unsigned int round = 0; round < SETTLE_ROUNDS; round++) {
		for (unsigned int i = 0; i < h->engines; i++) {
			scheduler_note(s, "engine %u: restart at the end", i);
			if (h->boxes[i].line.dead)
				box_revive(&h->boxes[i]);
			else
				box_restart(&h->boxes[i]);
			/* The storage of a renamed file is kept for a PUT that takes up to an hour
			 * (DETAILS.md, "Renames"). */
			if (round == 0 && i == 0) {
				baton_sleep(LATE_SECONDS * SECOND);
				scheduler_deliver(s);
			}
			baton_sleep(SETTLE_SECONDS * SECOND);
		}
	}
	for (unsigned int i = 0; i < h->engines; i++)
		box_release(&h->boxes[i]);
}

static void sweep(struct history *h)
{
	struct rng r = rng_derive(h->seed, 500 + h->part);
	if (h->sweep)
		box_sweep(&h->boxes[h->swept], 1 + rng_below(&r, h->sweep));
}

static void run_part(struct history *h, const uint8_t *file, size_t n)
{
	baton_live();
	sweep(h);
	run_actors(h, file, n);
	for (unsigned int i = 0; i < h->engines; i++)
		box_sweep(&h->boxes[i], 0);
	if ((h->seed + h->part) % 2)
		scheduler_deliver(&h->world.scheduler);
	settle(h);
	if (session_count()) {
		fprintf(stderr, "libhdf5 has objects of closed files\n");
		abort();
	}
}

/* If one mount alone changes the bucket, it may keep what it has found, and must show the same as
 * if it asked again. */
static bool keeps_opens(const struct history *h)
{
	struct rng r = rng_derive(h->seed, 6);
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_IMPORT || h->ops[i].kind == OP_FOREIGN ||
		    h->ops[i].kind == OP_LINKS || h->ops[i].kind == OP_STORES)
			return false;
	return h->engines == 1 && h->parts <= 1 && rng_once_in(&r, 2);
}

void history_run(struct history *h, const uint8_t *file, size_t n, struct log *log, bool trace)
{
	history_leave_out(h);
	const struct world_plan plan = {.seed = h->order,
					.lacks = h->lacks,
					.switches = h->switches,
					.spurious = h->seed % 4 ? 0 : SPURIOUS,
					.workers = h->workers,
					.repeats = h->repeats,
					.is_busy = h->is_busy,
					.keeps_opens = keeps_opens(h),
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
	h->plain = plain_new(h->seed);
	h->folders = folders_new(file, n);
	h->foreign = foreign_new(h->world.bucket);
	h->acls = acls_new(file, n);
	h->mixed = mixed_new(h->world.bucket, h->seed, h->lacks & STORE_MEM_TREE, file, n);
	h->links = links_new(h->world.bucket);
	h->stores = stores_new(h->world.bucket, h->seed, h->lacks & STORE_MEM_SHORT_PAGES);
	h->shared = shared_new(file, n);
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
	history_leave_out(h);
	for (unsigned int i = 0; i < h->engines; i++)
		box_begin_again(&h->boxes[i]);
	scheduler_note(&h->world.scheduler, "part %u", h->part);
	run_part(h, file, n);
}

void history_release(struct history *h)
{
	free_holds(h);
	plain_free(h->plain);
	folders_free(h->folders);
	foreign_free(h->foreign);
	acls_free(h->acls);
	mixed_free(h->mixed);
	links_free(h->links);
	stores_free(h->stores);
	shared_free(h->shared);
	for (unsigned int i = 0; i < h->engines; i++)
		box_free_disk(&h->boxes[i]);
	world_release(&h->world);
}
