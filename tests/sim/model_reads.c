/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h: what was read meanwhile, what was refused, and what may stay half done. No state. */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

#include "model_names.h"

/* ---- what was read meanwhile ---- */

/* Whether the part had this value at some time. */
static bool had_value(const struct history *h, const struct content *c, enum content_part part)
{
	const uint64_t value = content_value(c, part);
	struct content first;
	history_first(h, c->uid, &first);
	bool found = content_value(&first, part) == value || (part == PART_SPARE && !c->has_spare);
	for (unsigned int i = 0; i < h->nops && !found; i++)
		found = h->ops[i].kind == OP_CHANGE && h->ops[i].uid == c->uid &&
			content_value(&h->ops[i].after, part) == value;
	return found;
}

/* The count only increases. What was acknowledged, or what anybody has read, before an open began
 * is there when it reads. */
static uint64_t least_count(const struct history *h, const struct op *read)
{
	uint64_t least = 0;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->status != OP_DONE || op->uid != read->uid || op->stored > read->begin)
			continue;
		const uint64_t count = op->kind == OP_READ     ? op->before.count
				       : op->kind == OP_CHANGE ? op->after.count
							       : 0;
		if (count > least)
			least = count;
	}
	return least;
}

/* Without a library, a program does not read all parts. */
static bool knows(const struct op *op, enum content_part part)
{
	return op->program || part < PART_NOTE || part == PART_SPARE;
}

void model_check_reads(struct found *f)
{
	const struct history *h = f->h;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->kind != OP_READ || op->status != OP_DONE)
			continue;
		if (op->before.count < least_count(h, op))
			model_fault(f->result,
				    "operation %u has read an older count than was acknowledged or "
				    "read before it began",
				    i);
		if (!model_is_known(h, op->before.uid))
			model_fault(f->result, "operation %u has read a file that nobody has made",
				    i);
		if (op->mixed && !model_meets_draft(h, op))
			model_fault(f->result, "operation %u has read two contents in one open", i);
		for (enum content_part part = 0; part < CONTENT_PARTS; part++)
			if (part != PART_ROWS && part != PART_GRID && knows(op, part) &&
			    !had_value(h, &op->before, part))
				model_fault(f->result, "operation %u has read %s as it never was",
					    i, content_part_name(part));
	}
}

bool model_was_given_meanwhile(const struct history *h, unsigned int name)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind == OP_RENAME && h->ops[i].rc == -EBUSY && h->ops[i].to == name)
			return true;
	return false;
}

/* Whether the commit of a change is repeated by another process than the one that has made it. */
static bool is_repeated(const struct history *h, const struct op *op)
{
	bool found = op->status == OP_MAYBE;
	for (unsigned int i = 0; i < h->nops && op->status == OP_REFUSED; i++)
		found |= h->ops[i].kind == OP_RECOVER && h->ops[i].engine == op->engine &&
			 h->ops[i].end > op->begin;
	return found;
}

/* Whether a request of an import, or of a killed daemon, for an object of a new file arrives when
 * the file is stored already. */
static bool is_put_late(const struct op *made)
{
	return made->hit && ((made->kind == OP_IMPORT && made->fault == FAULT_LATE) ||
			     ((made->kind == OP_IMPORT || made->kind == OP_CREATE) &&
			      made->fault == FAULT_KILL_LATE));
}

/* Whether the file was new, and a program of its mount went on writing to it while another one
 * stored it. */
static bool is_written_on(const struct history *h, const struct op *op)
{
	bool is_new = false, is_joined = false;
	for (unsigned int i = 0; i < h->nops && op->kind == OP_CHANGE; i++) {
		const struct op *o = &h->ops[i];
		if (o == op || o->engine != op->engine || o->uid != op->uid)
			continue;
		is_new |= o->kind == OP_CREATE;
		is_joined |= o->begin <= op->begin && op->begin < o->end;
	}
	return is_new && is_joined;
}

/* Such a commit replaces what another mount changes just then: "Files that are written on" in
 * doc/DETAILS.md. */
static bool is_replaced_meanwhile(const struct history *h, uint64_t uid)
{
	for (unsigned int i = 0; i < h->nops; i++)
		for (unsigned int k = 0; k < h->nops; k++) {
			const struct op *op = &h->ops[i], *o = &h->ops[k];
			if (op->uid == uid && o->uid == uid && o->kind == OP_CHANGE &&
			    o->status != OP_REFUSED && o->engine != op->engine &&
			    o->closes < op->end && o->end > op->closes && op->closes &&
			    is_written_on(h, op))
				return true;
		}
	return false;
}

bool model_may_be_replaced(const struct history *h, uint64_t uid)
{
	if (is_replaced_meanwhile(h, uid))
		return true;
	for (unsigned int i = 0; i < h->nops; i++) {
		if (h->ops[i].uid == uid && is_put_late(&h->ops[i]))
			return true;
		for (unsigned int k = 0; k < h->nops; k++) {
			const struct op *made = &h->ops[i], *op = &h->ops[k];
			if (made->kind == OP_CREATE && made->uid == uid && op->kind == OP_CHANGE &&
			    op->uid == uid && is_repeated(h, op) && op->engine == made->engine &&
			    op->begin < made->end)
				return true;
		}
	}
	return false;
}

/* ---- what was listed ---- */

/* Whether a folder that was made before the listing began is missing. */
static bool misses_dir(const struct history *h, const struct op *list)
{
	char path[HISTORY_DIR];
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		history_dir(op, path);
		if (op->kind == OP_MKDIR && op->status == OP_DONE && op->end < list->begin &&
		    list_is_beside(path, history_names[list->name]) &&
		    !(list->list.dirs & 1u << op->name))
			return true;
	}
	return false;
}

/* model_names.c judges the names of files. */
void model_check_lists(struct found *f)
{
	for (unsigned int i = 0; i < f->h->nops; i++) {
		const struct op *op = &f->h->ops[i];
		if (op->kind != OP_LIST || op->status != OP_DONE)
			continue;
		if (op->list.wrong[0])
			model_fault(f->result, "operation %u has listed %s, which is wrong", i,
				    op->list.wrong);
		if (misses_dir(f->h, op))
			model_fault(f->result, "operation %u has not listed a folder", i);
	}
}

/* ---- what a check has found ---- */

static bool may_arrive_late(const struct op *op)
{
	return op->hit &&
	       (op->fault == FAULT_SLOW || op->fault == FAULT_LATE || op->fault == FAULT_KILL_LATE);
}

/* Whether other programs may have changed or replaced a file while it was checked: then a part of
 * it cannot be read (DETAILS.md, "What a check covers"). What has failed before may be stored at
 * any time. */
static bool may_change(const struct history *h, const struct op *check, unsigned int name)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		const bool is_over =
			op->status != OP_MAYBE && !may_arrive_late(op) && op->stored < check->begin;
		const bool is_of = op->name == name || (op->kind == OP_RENAME && op->to == name);
		if (op->kind <= OP_RENAME && op->begin < check->end && !is_over &&
		    (is_of || (op->kind == OP_CHANGE && model_was_moved(h, op))))
			return true;
	}
	return false;
}

/* The same for the files of programs that have names of their own. */
static bool may_change_others(const struct history *h, const struct op *check)
{
	for (unsigned int i = 0; i < h->nops; i++)
		if (h->ops[i].kind >= OP_PLAIN && h->ops[i].kind <= OP_ACLS &&
		    h->ops[i].begin < check->end)
			return true;
	return false;
}

/* Nothing that others do is an error. */
void model_check_checks(struct found *f)
{
	for (unsigned int i = 0; i < f->h->nops; i++) {
		const struct op *op = &f->h->ops[i];
		bool is_wrong = op->check.errors || op->check.other[0];
		if (op->kind != OP_CHECK || op->status != OP_DONE || op->hit)
			continue;
		for (unsigned int k = 0; k < NAMES_MAX; k++)
			is_wrong |= op->check.unchecked & 1u << k && !may_change(f->h, op, k);
		is_wrong |= op->check.other_unchecked[0] && !may_change_others(f->h, op);
		if (is_wrong)
			model_fault(f->result, "check %u has found: %s %s %s", i, op->check.text,
				    op->check.other, op->check.other_unchecked);
	}
}

/* ---- what was refused ---- */

static bool is_name_of_later(const struct history *h, unsigned int i)
{
	const struct op *op = &h->ops[i];
	for (unsigned int k = 0; k < h->nops; k++) {
		const struct op *o = &h->ops[k];
		const bool same =
			o->name == op->name || (o->kind == OP_RENAME && o->to == op->name);
		if (o->end > op->begin && o != op && o->engine == op->engine && same &&
		    (o->kind == OP_CREATE || o->kind == OP_CHANGE || o->kind == OP_REMOVE ||
		     o->kind == OP_RENAME))
			return true;
		if (o->end > op->begin && o->engine == op->engine && o->kind == OP_DROP)
			return true;
	}
	return false;
}

static bool is_stored(const struct found *f, uint64_t uid)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (f->has[i] && f->content[i].uid == uid)
			return true;
	return false;
}

/* Whether the machine has lost its power after the operation, whose draft may be one that an
 * earlier failure of the disk has left. Each later fsync of such a draft fails, so it may not be
 * durable (doc/JOURNAL.md). */
static bool is_lost_with_power(const struct history *h, const struct op *op)
{
	const struct box *b = &h->boxes[op->engine];
	return b->disk_faults && b->powers > op->powers;
}

/* A file or a change that was refused is in the journal, unless a later operation of the same mount
 * on the name has dropped it. */
void model_check_refused(struct found *f)
{
	struct history *h = f->h;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->loses_draft)
			model_fault(f->result,
				    "recovery %u has left a draft that it has committed, or lost "
				    "one that it has not",
				    i);
		const bool has_tag = op->kind == OP_CREATE ||
				     (op->kind == OP_CHANGE &&
				      (op->change == CHANGE_TAG || op->change == CHANGE_X0 ||
				       op->change == CHANGE_X1 || op->change == CHANGE_TWO ||
				       op->change == CHANGE_GROW || op->change == CHANGE_SPARE ||
				       op->change == CHANGE_ALIEN));
		const bool stored =
			op->kind == OP_CREATE ? is_stored(f, op->uid) : model_was_moved(h, op);
		if (!has_tag || op->status != OP_REFUSED || is_name_of_later(h, i) || stored ||
		    is_lost_with_power(h, op))
			continue;
		if (!box_journal_has(&h->boxes[op->engine], history_tag(h, i)))
			model_fault(f->result,
				    "operation %u was refused, and the journal does not have it",
				    i);
	}
}

/* Whether another rename of the same file may have removed the old name. */
static bool has_rival(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if (o != op && o->kind == OP_RENAME && o->name == op->name && o->begin < op->end &&
		    o->end > op->begin)
			return true;
	}
	return false;
}

/* Whether a rename may stay half done: the bucket has refused to remove the old name, somebody has
 * changed it, the new one arrived after the next mount had looked, or a machine that lost its power
 * has lost the note about it. Of a rename that was killed, the new name stays if another mount that
 * renames the file at the same moment removes the old one. If the DELETE of the old name was sent
 * twice, the daemon cannot tell who has removed it, and two renames of one file succeed
 * (DETAILS.md, "Renames"). */
static bool may_stay_half_done(const struct history *h)
{
	for (unsigned int i = 0; i < h->engines; i++)
		if (h->boxes[i].lost_power)
			return true;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		const bool is_killed =
			op->hit && (op->fault == FAULT_KILL || op->fault == FAULT_KILL_AFTER);
		if (op->kind == OP_RENAME &&
		    (((op->was_repeated || is_killed) && has_rival(h, op)) ||
		     (op->rc && op->rc != -ENOENT && !is_killed)))
			return true;
	}
	return false;
}

/* Whether both names lead to one storage. */
static bool share_storage(const struct found *f, unsigned int a, unsigned int b)
{
	char roots[2][64] = {"", ""};
	const char *attribute = "user.hsds.root";
	engine_getxattr(f->engine, history_names[a], attribute, roots[0], 63, NULL);
	engine_getxattr(f->engine, history_names[b], attribute, roots[1], 63, NULL);
	return strcmp(roots[0], roots[1]) == 0;
}

/* A rename that was interrupted is finished by the next mount, so each file has one name. */
void model_check_twice(struct found *f)
{
	if (may_stay_half_done(f->h))
		return;
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		for (unsigned int k = 0; k < i; k++)
			if (f->has[i] && f->has[k] && f->content[i].uid == f->content[k].uid &&
			    !model_was_made_late(f->h, f->content[i].uid) &&
			    (!model_is_imported_twice(f->h, f->content[i].uid) ||
			     share_storage(f, i, k)))
				model_fault(f->result, "%s and %s are the same file",
					    history_names[k], history_names[i]);
}

void model_check_dirs(struct found *f)
{
	for (unsigned int i = 0; i < f->h->nops; i++) {
		const struct op *op = &f->h->ops[i];
		struct engine_stat st;
		char path[HISTORY_DIR];
		if (op->kind != OP_MKDIR || op->status != OP_DONE)
			continue;
		history_dir(op, path);
		if (engine_lookup(f->engine, path, &st, NULL) || st.kind != ENGINE_DIR)
			model_fault(f->result, "the folder %s is not there", path);
	}
}
