/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories. */
#include "history.h"
#include "process.h"
#include "mem_store.h"

#include <errno.h>
#include <string.h>

#include <base/mem.h>

enum {
	WRITES_MAX = 12, /* of a program that is killed */
	PART_OPS = 14,
	/* Changes of a journal and the bucket by one engine: of a few commits, and of a history. */
	SWEEP_FEW = 120,
	SWEEP_MANY = 700
};

static enum fault fault_from(struct rng *r)
{
	return (enum fault)(1 + rng_below(r, FAULTS - 1));
}

static enum op_kind kind_from(struct rng *r)
{
	static const unsigned int weights[OP_KINDS] = {
		[OP_CREATE] = 5,  [OP_CHANGE] = 9,  [OP_IMPORT] = 2, [OP_REMOVE] = 4,
		[OP_RENAME] = 7,  [OP_MKDIR] = 1,   [OP_LIST] = 4,   [OP_READ] = 4,
		[OP_CHECK] = 1,	  [OP_CUT] = 1,	    [OP_HOLD] = 2,   [OP_PLAIN] = 1,
		[OP_FOLDERS] = 1, [OP_FOREIGN] = 1, [OP_ACLS] = 1,   [OP_WAIT] = 2,
		[OP_CLOCK] = 1,	  [OP_RESTART] = 1, [OP_DROP] = 1,   [OP_RECOVER] = 1,
		[OP_KILL] = 1,	  [OP_SHARED] = 1,
	};
	unsigned int sum = 0, kind = 0;
	for (unsigned int i = 0; i < OP_KINDS; i++)
		sum += weights[i];
	for (unsigned int at = rng_below(r, sum); at >= weights[kind]; kind++)
		at -= weights[kind];
	return (enum op_kind)kind;
}

/* This kind was added later. Other histories stay as they were. */
bool history_may_be_mixed(const struct history *h)
{
	struct rng r = rng_derive(h->seed, 18);
	return rng_once_in(&r, 12);
}

/* Operations on names of their own meet only others of their kind. So in some histories half of the
 * operations have one kind. OP_KINDS: not in this one. */
static enum op_kind focus_of(const struct history *h)
{
	static const enum op_kind kinds[] = {OP_PLAIN, OP_FOLDERS, OP_FOREIGN,
					     OP_ACLS,  OP_LINKS,   OP_SHARED};
	struct rng r = rng_derive(h->seed, 5 + 10000 * h->part);
	struct rng stores = rng_derive(h->seed, 9 + 10000 * h->part);
	struct rng part = rng_derive(h->seed, 12 + 10000 * h->part);
	if (history_may_be_mixed(h) && rng_once_in(&part, 2))
		return OP_MIXED;
	if (rng_once_in(&r, 8))
		return kinds[rng_below(&r, sizeof(kinds) / sizeof(kinds[0]))];
	return rng_once_in(&stores, 24) ? OP_STORES : OP_KINDS;
}

static void make_op(struct history *h, struct op *op, struct rng *r)
{
	const unsigned int names = 2 + (unsigned int)(h->seed % 3);
	*op = (struct op){
		.kind = kind_from(r),
		.actor = rng_below(r, h->actors),
		.name = rng_below(r, names),
		.change = (enum change_kind)rng_below(r, CHANGE_KINDS),
		.waits = rng_once_in(r, 2) ? 0 : 1 + rng_below(r, 12),
	};
	/* Afterwards its mount cannot change the file until somebody drops the draft. */
	if (op->change == CHANGE_ALIEN && !rng_once_in(r, 4))
		op->change = CHANGE_SWAP;
	if (focus_of(h) != OP_KINDS && rng_once_in(r, 2))
		op->kind = focus_of(h);
	op->engine = op->actor % h->engines;
	do {
		op->to = rng_below(r, names);
	} while (op->to == op->name);
	op->opens = op->kind == OP_CUT && rng_once_in(r, 2);
	if (process_has(op))
		op->engine = PROCESS_ENGINE;
	if (op->kind == OP_IMPORT) {
		op->replaces = rng_once_in(r, 3);
		op->again = rng_once_in(r, 2);
	}
	if (op->kind == OP_WAIT)
		op->waits = rng_once_in(r, 2) ? 2 : 35;
	if (op->kind == OP_HOLD && !h->quiet && rng_once_in(r, 3))
		op->dies = 1;
	if (h->quiet) {
		op->kind = op->kind == OP_KILL ? OP_RESTART : op->kind;
	} else if (op->kind == OP_HOLD && rng_once_in(r, 3)) {
		/* The journal is killed at work, or when the program has made all its changes. */
		op->fault = FAULT_KILL;
		op->at = 1000;
		op->dies = rng_below(r, 2);
	} else if (op->kind != OP_KILL && rng_once_in(r, op->kind == OP_HOLD ? 2 : 12)) {
		op->disk = (struct disk_fault){.at = 1 + rng_below(r, rng_once_in(r, 2)	    ? 8
								      : op->kind == OP_HOLD ? 150
											    : 40),
					       .many = rng_once_in(r, 2) ? 1 : 1 + rng_below(r, 20),
					       .rc = rng_once_in(r, 2) ? -ENOSPC : -EIO,
					       .half = rng_once_in(r, 2)};
	} else if (op->kind != OP_KILL && rng_once_in(r, 4)) {
		op->fault = fault_from(r);
		op->all = rng_once_in(r, 4);
		op->many = rng_once_in(r, 3) ? 1 + rng_below(r, 12) : 1;
		op->at = 1 + rng_below(r, op->all || (op->kind == OP_CREATE && rng_once_in(r, 2))
						  ? 16
						  : 4);
	}
}

/* Some changes are followed by a rename of the open file. */
static void make_inside(struct history *h, struct rng *r)
{
	struct op *op = &h->ops[h->nops];
	const unsigned int actor = op[-1].actor, name = op[-1].name;
	if (op[-1].kind != OP_CHANGE || op[-1].inside || op[-1].fault || !rng_once_in(r, 6))
		return;
	make_op(h, op, r);
	op->to = op->to == name ? op->name : op->to;
	op->kind = OP_RENAME;
	op->actor = actor;
	op->engine = actor % h->engines;
	op->name = name;
	op->fault = FAULT_NONE;
	op->inside = true;
	if (op->to != op->name)
		h->nops++;
}

/* Somebody often commits what a killed engine has left. */
static void make_recovery(struct history *h, struct rng *r)
{
	struct op *op = &h->ops[h->nops - 1];
	const bool writes = op->kind == OP_CREATE || op->kind == OP_CHANGE;
	if (!writes || op->fault < FAULT_KILL || rng_once_in(r, 3))
		return;
	op->keeps_power = true;
	struct op *next = &h->ops[h->nops++];
	make_op(h, next, r);
	next->kind = OP_RECOVER;
	next->actor = op->actor;
	next->engine = op->engine;
}

/* Plain objects of S3 may be uploads in parts. */
static void choose_parts(struct history *h)
{
	struct rng r = rng_derive(h->seed, 6);
	if (!h->repeats || rng_once_in(&r, 2))
		return;
	h->lacks |= STORE_MEM_PARTS;
	if (rng_once_in(&r, 3))
		h->lacks |= STORE_MEM_PARTS_LOST;
	if (rng_once_in(&r, 8))
		h->lacks |= STORE_MEM_NO_PARTS_IF;
}

/* Most are like S3; some can move objects, as a directory can. */
void history_service(struct history *h, struct rng *r)
{
	h->repeats = !rng_once_in(r, 4);
	h->lacks = h->repeats ? STORE_MEM_NO_MOVE : STORE_MEM_TREE;
	h->is_busy = h->repeats && rng_once_in(r, 4);
	if (h->repeats && rng_once_in(r, 2))
		h->lacks |= STORE_MEM_NO_SERIAL;
	if (rng_once_in(r, 8))
		h->lacks |= STORE_MEM_NO_DELETE_IF;
	if (rng_once_in(r, 16))
		h->lacks |= STORE_MEM_NO_MARKS;
	if (rng_once_in(r, 24))
		h->lacks |= STORE_MEM_NO_IF_MATCH | STORE_MEM_NO_IF_NONE_MATCH;
	choose_parts(h);
}

void history_pages(struct history *h)
{
	struct rng r = rng_derive(h->seed, 7);
	bool has_stores = false;
	for (unsigned int i = 0; i < h->nops; i++)
		has_stores |= h->ops[i].kind == OP_STORES;
	if (has_stores && rng_once_in(&r, 3))
		h->lacks |= STORE_MEM_SHORT_PAGES;
}

void history_programs(struct history *h)
{
	struct rng r = rng_derive(h->seed, 4 + 10000 * h->part);
	for (unsigned int i = 0; i < h->nops; i++) {
		struct op *op = &h->ops[i];
		if (op->kind != OP_CREATE && op->kind != OP_CHANGE && op->kind != OP_READ)
			continue;
		op->program = (enum op_program)rng_below(&r, PROGRAMS);
		if (op->kind == OP_CHANGE && op->change >= CHANGE_NOTE && !op->program)
			op->program = PROGRAM_OLDEST;
		op->again = rng_once_in(&r, 4);
		if (rng_once_in(&r, 4))
			op->flush = (enum session_flush)rng_below(&r, SESSION_FLUSHES);
		/* A new file whose program is killed would become a plain object. */
		if (op->kind == OP_CHANGE && op->program && !h->quiet && rng_once_in(&r, 12))
			op->dies = 1 + rng_below(&r, WRITES_MAX);
	}
}

static void make_ops(struct history *h, unsigned int n, struct rng *r)
{
	while (h->nops < n) {
		make_op(h, &h->ops[h->nops++], r);
		make_inside(h, r);
		make_recovery(h, r);
	}
	history_programs(h);
}

static void choose_sweep(struct history *h)
{
	struct rng r = rng_derive(h->seed, 11);
	if (h->quiet || !rng_once_in(&r, 6))
		return;
	h->sweep = rng_once_in(&r, 2) ? SWEEP_FEW : SWEEP_MANY;
	h->swept = rng_below(&r, h->engines);
}

void history_make(struct history *h, uint64_t seed, unsigned int nops)
{
	static const unsigned int switches[] = {1, 4, 8, 32, 200};
	struct rng r = rng_derive(seed, 2);
	*h = (struct history){.seed = seed, .order = seed, .name = "random"};
	h->engines = 1 + rng_below(&r, 3);
	h->actors = min_u64(h->engines + rng_below(&r, 4), ACTORS_MAX);
	if (h->actors == 1)
		h->actors = 2;
	h->switches = switches[rng_below(&r, 5)];
	h->workers = 1 + rng_below(&r, 4);
	h->present = 1 + rng_below(&r, 15);
	h->quiet = rng_once_in(&r, 3);
	history_service(h, &r);
	choose_sweep(h);
	const unsigned int some = 5 + rng_below(&r, 13);
	/* The search for an order takes long if many operations may come in any order. */
	h->parts = nops > OPS_MAX - 2 ? min_u64((nops + PART_OPS - 1) / PART_OPS, PARTS_MAX) : 1;
	make_ops(h, !nops ? some : h->parts > 1 ? PART_OPS : nops, &r);
	history_pages(h);
}

void history_make_part(struct history *h)
{
	struct rng r = rng_derive(h->seed, 1000 + h->part);
	h->nops = 0;
	memset(h->ops, 0, sizeof(h->ops));
	make_ops(h, PART_OPS, &r);
}

/* ---- smaller histories ---- */

void history_remove_op(struct history *h, unsigned int i)
{
	const unsigned int n = i + 1 < h->nops && h->ops[i + 1].inside ? 2 : 1;
	for (unsigned int k = i; k + n < h->nops; k++) {
		struct op *op = &h->ops[k];
		*op = h->ops[k + n];
		if (op->follows > i)
			op->follows = op->follows > i + n ? op->follows - n : 0;
		if (op->stays > i)
			op->stays = op->stays > i + n ? op->stays - n : 0;
		if (op->outlasts > i)
			op->outlasts = op->outlasts > i + n ? op->outlasts - n : 0;
	}
	h->nops -= n;
}

void history_leave_out(struct history *h)
{
	for (unsigned int i = h->nops; i-- > 0;)
		if (h->left_out[h->part] >> i & 1)
			history_remove_op(h, i);
}
