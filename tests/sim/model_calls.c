/* SPDX-License-Identifier: Apache-2.0 */
/* See model_calls.h. No state. */
#include "model_calls.h"

#include <errno.h>

#include "model_names.h"
#include "process.h"

/* An unmount waits for requests, and gives what fails a few seconds. */
#define UNMOUNT_NS (UINT64_C(600) * 1000000000)

/* Whether something has failed, or an engine was killed. Then calls may fail with any error. */
static bool has_failures(const struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_DROP || h->ops[i].kind == OP_RECOVER ||
		    h->ops[i].kind == OP_KILL || (process_has(&h->ops[i]) && h->ops[i].hit))
			return true;
	for (unsigned int i = 0; i < h->engines; i++)
		if (h->boxes[i].kills || h->boxes[i].line.faults || h->boxes[i].disk_faults ||
		    h->boxes[i].spool_size < (1 << 24))
			return true;
	return false;
}

/* Whether an operation of another engine may have removed what this one reads. */
static bool meets_others(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].engine != op->engine && h->ops[i].kind <= OP_RENAME)
			return true;
	return false;
}

static bool has_rename(const struct history *h)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_RENAME)
			return true;
	return false;
}

/* Whether another operation of the mount may have changed the file while this one had it open. Then
 * chunks that the daemon does not have cannot be read (SEMANTICS.md, "Freshness"). */
static bool meets_change(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if (o != op && o->kind == OP_CHANGE && o->end > op->begin && o->begin < op->end &&
		    (o->name == op->name || has_rename(h)))
			return true;
	}
	return false;
}

/* Whether an error says what other programs have done, and not that something is broken. */
static bool is_answer(const struct history *h, const struct op *op)
{
	switch (op->rc) {
	case -EOPNOTSUPP:
		return op->kind == OP_CHANGE && op->change == CHANGE_ALIEN;
	case 0:
		/* A new file that a domain cannot hold becomes a plain object. */
		return op->kind != OP_CHANGE || op->change != CHANGE_ALIEN ||
		       model_meets_draft(h, op);
	case -ESTALE:
	case -EBUSY:
	case -EEXIST:
		return op->kind != OP_LIST && op->kind != OP_CHECK;
	case -ENOENT:
		return op->kind != OP_CREATE && op->kind != OP_MKDIR && !op->was_open;
	case -EROFS: /* a part of an HDF5 file is not an HDF5 file */
		return op->kind == OP_CUT && !op->opens;
	case -ENODATA: /* of this program */
		return op->kind == OP_CHANGE;
	case -EINTR: /* this program was killed */
		return op->dies;
	default:
		/* Another mount may have deleted the storage, if a reader has the file open, or a
		 * slow open has read only its document. */
		if (op->kind == OP_READ || op->kind == OP_CUT)
			return meets_others(h, op) || meets_change(h, op);
		/* Or it has the draft of a file that another program is still writing. */
		return op->kind == OP_CHANGE && !op->was_open;
	}
}

/* Whether a mount may meet what it has sent itself: a request that arrives late, a rename that it
 * finishes, a removal without an answer while the file is written (DETAILS.md, "Renames"), or a
 * draft that the journal could not describe. */
static bool meets_itself(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if ((o->kind == OP_RENAME && o->status == OP_MAYBE) ||
		    (o->kind == OP_REMOVE && o->status == OP_MAYBE && o->name == op->name &&
		     o->begin < op->end) ||
		    (o->hit && (o->fault == FAULT_SLOW || o->fault == FAULT_LATE ||
				o->fault == FAULT_KILL_LATE)))
			return true;
	}
	return h->boxes[op->engine].disk_faults;
}

/* Otherwise a mount knows what it has put itself, also if an answer was lost. */
static void check_conflicts(const struct history *h, struct model_result *out)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		const bool writes = op->kind == OP_CREATE || op->kind == OP_CHANGE;
		if (writes && op->rc == -ESTALE && !meets_others(h, op) && !meets_itself(h, op))
			model_fault(out, "operation %u meets another program, and there is none",
				    i);
	}
}

/* Whether a program cannot read what it has open, although nobody but programs of its mount has
 * removed or replaced it. */
static bool cannot_read_own(const struct history *h, const struct op *op)
{
	if (meets_others(h, op) || meets_change(h, op))
		return false;
	if (op->kind == OP_READ)
		return op->was_open && op->rc;
	return op->kind == OP_CHANGE && op->sleeps && !op->was_open && !op->is_absent && op->rc &&
	       op->rc != -ENODATA && op->rc != -EINTR && op->rc != -EBUSY;
}

void model_calls_check(const struct history *h, struct model_result *out)
{
	char text[256];
	check_conflicts(h, out);
	if (has_failures(h))
		return;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		history_text(op, text, sizeof(text));
		if (op->end && (!is_answer(h, op) || cannot_read_own(h, op)))
			model_fault(out, "operation %u fails, and nothing has failed: %s", i, text);
	}
	for (unsigned int i = 0; i < h->engines; i++)
		if (h->boxes[i].longest_close_ns > UNMOUNT_NS)
			model_fault(
				out, "an unmount of engine %u has taken %llu s", i,
				(unsigned long long)(h->boxes[i].longest_close_ns / 1000000000));
}
