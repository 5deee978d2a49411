/* SPDX-License-Identifier: Apache-2.0 */
/* See actor.h: what operations do with an engine. */
#include "actor.h"

#include <errno.h>
#include <stdio.h>

#include <hsmount/engine.h>

#include "baton.h"
#include "imports.h"
#include "program.h"
#include "turned.h"
#include "turns.h"
#include "recover.h"

enum { STAY_STEPS = 600 };
#define SECOND UINT64_C(1000000000)

static void wait_a_step(void *ctx)
{
	actor_take_steps(ctx, 1);
}

static struct program program_of(struct actor *a)
{
	return (struct program){.file = a->file, .n = a->n, .wait = wait_a_step, .ctx = a};
}

static void begin_close(struct actor *a, struct op *op)
{
	op->closes = actor_moment(a);
	op->is_written = !a->h->boxes[a->engine].line.dead;
}

/* close(2) of a descriptor. A program may call fsync(2) and then close the file. */
static int flush(struct actor *a, const struct op *op, struct engine_file *f, struct err *err)
{
	const int rc = engine_flush(f, err);
	if (!rc || !op->again)
		return rc;
	actor_take_steps(a, 1);
	a->h->boxes[a->engine].disk_fault.at = 0;
	return engine_flush(f, err);
}

static void arm_disk(struct box *b, const struct op *op)
{
	if (op->disk.at && !b->disk_fault.at && !b->line.dead)
		box_arm_disk(b, &op->disk);
}

static int open_write(struct actor *a, struct op *op, unsigned int flags, struct engine_file **out,
		      struct err *err)
{
	const struct box *b = &a->h->boxes[a->engine];
	op->made_from = box_wall(b);
	const int rc = engine_open_write(b->engine, history_names[op->name], flags, out, err);
	op->made_until = box_wall(b);
	return rc;
}

/* close(2) has returned, and the kernel releases the file a little later. Meanwhile another program
 * may open it. */
static void leave_name(struct actor *a, struct op *op, int rc)
{
	if (rc || a->h->boxes[a->engine].line.dead || op->left)
		return;
	op->left = true;
	turns_return(a->h, op);
	wait_a_step(a);
}

/* A program may write its file again if that cannot be closed. */
static int flush_new(struct actor *a, const struct op *op, struct engine_file *f, struct err *err)
{
	const struct program p = program_of(a);
	int rc = flush(a, op, f, err);
	for (unsigned int i = 0; rc && i < op->rewrites; i++) {
		actor_take_steps(a, 1);
		rc = program_create(&p, op, f, err);
		if (!rc)
			rc = engine_flush(f, err);
	}
	return rc;
}

int operation_create(struct actor *a, struct op *op, struct err *err)
{
	const struct program p = program_of(a);
	struct engine_file *f;
	content_init(&op->after, op->uid);
	int rc = open_write(a, op, ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	op->opened = actor_moment(a);
	op->was_open = !rc;
	if (rc)
		return rc;
	rc = program_create(&p, op, f, err);
	if (!rc) {
		actor_take_steps(a, op->waits);
		begin_close(a, op);
		arm_disk(&a->h->boxes[a->engine], op);
		rc = flush_new(a, op, f, err);
	}
	leave_name(a, op, rc);
	engine_file_close(f);
	return rc;
}

/* One operation of an engine has a fault at a time; the requests of the others count, too. */
void operation_arm(struct box *b, struct op *op)
{
	/* A new file of which a part could not be written would become a plain object, as on a disk
	 * (DETAILS.md, "Failed writes"). */
	if (op->kind != OP_CREATE || op->closes)
		arm_disk(b, op);
	/* It is armed once more before a close; a fault that has happened by then counts. */
	if (!op->fault || (b->line.fault && !op->armed) || (op->armed && b->line.hit))
		return;
	op->armed = true;
	b->keeps_power = op->keeps_power;
	line_arm(&b->line, op->fault, op->at, op->on, op->all);
	b->line.many = op->many;
}

void operation_disarm(struct box *b, struct op *op)
{
	if (op->disk.at)
		b->disk_fault.at = 0;
	if (!op->armed)
		return;
	op->hit = b->line.hit;
	op->armed = false;
	b->keeps_power = false;
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
}

static int change_file(struct actor *a, struct op *op, struct engine_file *f, uint64_t tag,
		       struct err *err)
{
	const struct program p = program_of(a);
	int rc = program_change(&p, op, f, tag, err);
	op->opened = actor_moment(a);
	if (rc)
		return rc;
	actor_take_steps(a, op->waits);
	while (op->outlasts && !a->h->ops[op->outlasts - 1].end)
		actor_take_steps(a, 1);
	if (history_has_inside(a->h, op))
		actor_run(a, op + 1);
	operation_arm(&a->h->boxes[a->engine], op);
	begin_close(a, op);
	return flush(a, op, f, err);
}

/* What the open of an existing file has shown. */
static void note_open(struct actor *a, struct op *op, int rc)
{
	op->shown = actor_moment(a);
	op->is_absent = rc == -ENOENT && !a->h->boxes[a->engine].line.dead;
}

static void sleep_open(struct actor *a, struct op *op)
{
	op->left = true;
	turns_return(a->h, op);
	baton_sleep(op->sleeps * SECOND);
}

static int change(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	int rc = open_write(a, op, 0, &f, err);
	note_open(a, op, rc);
	if (rc)
		return rc;
	if (op->sleeps)
		sleep_open(a, op);
	rc = change_file(a, op, f, history_tag(a->h, (unsigned int)(op - a->h->ops)), err);
	leave_name(a, op, rc);
	for (unsigned int i = 0; !rc && op->stays && i < STAY_STEPS; i++) {
		if (a->h->ops[op->stays - 1].end)
			break;
		actor_take_steps(a, 1);
	}
	engine_file_close(f);
	return rc;
}

static int read_file(struct actor *a, struct op *op, struct err *err)
{
	const struct program p = program_of(a);
	const char *name = history_names[op->name];
	struct engine_stat st;
	struct engine_file *f;
	int rc = op->looks ? engine_lookup(actor_engine(a), name, &st, err) : 0;
	if (!rc)
		rc = engine_file_open(actor_engine(a), name, &f, err);
	note_open(a, op, rc);
	if (rc)
		return rc;
	op->was_open = true;
	rc = program_read(&p, op, f, err);
	engine_file_close(f);
	return rc;
}

/* An HDF5 file is not cut to another size, and O_TRUNC alone changes nothing before the engine is
 * told the size: see ENGINE_TRUNCATE. */
static int cut(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	const int rc = engine_open_write(actor_engine(a), history_names[op->name],
					 op->looks   ? 0
					 : op->opens ? ENGINE_TRUNCATE
						     : ENGINE_RESIZE,
					 &f, err);
	note_open(a, op, rc);
	if (!rc)
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
	return engine_mkdir(actor_engine(a), path, err);
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
		operation_arm(b, op);
	return rc ? rc : hold_run(h, &r, wait_a_step, a, err);
}

/* A program on names of its own. */
static int play(struct actor *a, struct op *op, struct err *err)
{
	struct history *h = a->h;
	const unsigned int number = h->part * OPS_MAX + (unsigned int)(op - h->ops);
	struct player by = {.box = &h->boxes[a->engine],
			    .random = rng_derive(h->seed, 100000 + number),
			    .wait = wait_a_step,
			    .ctx = a,
			    .plays = op->plays,
			    .plain_delete = h->lacks & STORE_MEM_NO_DELETE_IF};
	const int rc = op->kind == OP_PLAIN	? plain_run(h->plain, &by, err)
		       : op->kind == OP_FOLDERS ? folders_run(h->folders, &by, err)
		       : op->kind == OP_FOREIGN ? foreign_run(h->foreign, &by, err)
		       : op->kind == OP_ACLS	? acls_run(h->acls, &by, err)
		       : op->kind == OP_MIXED	? mixed_run(h->mixed, &by, err)
		       : op->kind == OP_LINKS	? links_run(h->links, &by, err)
		       : op->kind == OP_STORES	? stores_run(h->stores, &by, err)
		       : op->plays == PLAY_TURN ? turned_run(h->shared, &by, err)
						: shared_run(h->shared, &by, err);
	op->left_draft = by.has_draft;
	return rc;
}

/* Somebody drops the drafts of an engine. */
static void drop_holds(struct history *h, unsigned int engine)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].hold && h->ops[i].engine == engine)
			h->ops[i].hold->is_dropped = true;
}

int operation_carry_out(struct actor *a, struct op *op, struct err *err)
{
	struct box *b = &a->h->boxes[a->engine];
	struct engine *e = b->engine;
	const char *name = history_names[op->name];
	switch (op->kind) {
	case OP_CREATE:
		return operation_create(a, op, err);
	case OP_CHANGE:
		return change(a, op, err);
	case OP_IMPORT:
		return import_file(a, op, err);
	case OP_REMOVE:
		return engine_unlink(e, name, err);
	case OP_RENAME:
		return engine_rename(e, name, history_names[op->to], 0, err);
	case OP_MKDIR:
		return make_dir(a, op, err);
	case OP_LIST:
		return list_folder(&op->list, e, name, err);
	case OP_CUT:
		return cut(a, op, err);
	case OP_READ:
		return read_file(a, op, err);
	case OP_CHECK:
		return check_bucket(a->process, &op->check, err);
	case OP_HOLD:
		return hold(a, op, err);
	case OP_PLAIN:
	case OP_FOLDERS:
	case OP_FOREIGN:
	case OP_ACLS:
	case OP_MIXED:
	case OP_LINKS:
	case OP_STORES:
	case OP_SHARED:
		return play(a, op, err);
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
		plain_dropped(a->h->plain, a->engine);
		return 0;
	case OP_RECOVER:
		return recover_drafts(a, op, err);
	default:
		box_kill(b);
		return 0;
	}
}
