/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See model_names.h. A search over the states {what each name leads to, how far each operation is}.
 * A step may happen when it has begun and no other step had to be done before that. States that
 * were visited are kept in a hash table, so each is looked at once.
 */
#include "model_names.h"

#include "model_internal.h"
#include "model_storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 1 << 20, STEPS_MAX = 8 };
#define NEVER UINT64_MAX

enum step_kind {
	STEP_NONE,
	STEP_SEE,     /* notes what the name leads to */
	STEP_REPLACE, /* the name leads to a new file, if it still leads to what was seen, or
			 nothing */
	STEP_REMOVE,  /* the name vanishes; it must exist */
	STEP_DROP,    /* the name vanishes, if it still leads to what was seen */
	STEP_LINK,    /* the new name leads to the file, too */
	STEP_GIVE,   /* the same for the file that was seen, if no other file loses its last name */
	STEP_UNLINK, /* the old name vanishes, if it still leads to that file */
	STEP_CHECK,  /* it still leads to what was seen */
	STEP_WIPE,   /* the name vanishes, whatever it leads to */
	/* From here on: what was seen. */
	STEP_THERE, /* the name leads to a file */
	STEP_GONE,  /* the name leads to nothing */
	STEP_ALIVE, /* a name leads to the file */
	STEP_SHOW,  /* the name leads to the file that was opened, or to nothing */
};

struct step {
	enum step_kind kind;
	unsigned int name;    /* of the plan; but for STEP_THERE and STEP_GONE, any name */
	uint64_t from, until; /* moments */
	uint64_t absent_from; /* from then on, if the name leads to nothing */
	bool may;	      /* it may be left out, and all that follow */
	bool skip;	      /* it alone may be left out */
};

struct plan {
	struct step steps[STEPS_MAX + 1];
	unsigned int name, to;
	unsigned int others; /* names that STEP_REPLACE may have: bit i */
	uint8_t uid;
	uint8_t shown; /* the file that was opened; 0: nothing */
	bool is_loose; /* its steps come in any order: state.done has a bit for each */
};

/* Files are numbered from 1. */
struct state {
	uint8_t names[NAMES_MAX];
	uint8_t done[OPS_MAX], seen[OPS_MAX];
};

struct search {
	struct model_names *m;
	struct plan plans[OPS_MAX];
	unsigned int n;
	uint64_t uids[OPS_MAX + NAMES_MAX + 1];
	unsigned int nuids;
	uint8_t end[NAMES_MAX];
	struct state *visited;
	unsigned int nvisited, room;
	bool too_large;
};

static uint8_t number_of(struct search *s, uint64_t uid)
{
	if (!uid)
		return 0;
	for (unsigned int i = 1; i <= s->nuids; i++)
		if (s->uids[i] == uid)
			return (uint8_t)i;
	s->uids[++s->nuids] = uid;
	return (uint8_t)s->nuids;
}

/* ---- steps of operations ---- */

static void add(struct plan *p, enum step_kind kind, uint64_t from, uint64_t until, bool may)
{
	unsigned int i = 0;
	while (p->steps[i].kind)
		i++;
	p->steps[i] = (struct step){.kind = kind,
				    .name = p->name,
				    .from = from,
				    .until = may ? NEVER : until,
				    .absent_from = from,
				    .may = may};
}

/* A listing of the folder proves for a second that a name is absent (metadata_ttl; see
 * doc/decisions/016-new-names-need-no-look-up.md). So a create may see what was so when an earlier
 * operation ran. */
static uint64_t oldest_listing(const struct history *h, const struct op *op)
{
	const uint64_t ttl_ns = 1000000000;
	uint64_t oldest = op->begin;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if (o->end && o->end_ns + ttl_ns >= op->begin_ns && o->begin < oldest)
			oldest = o->begin;
	}
	return oldest;
}

/* What somebody has seen of a name. */
static void add_look(struct plan *p, unsigned int name, bool is_there, uint64_t from,
		     uint64_t until)
{
	unsigned int i = 0;
	while (p->steps[i].kind)
		i++;
	add(p, is_there ? STEP_THERE : STEP_GONE, from, until, false);
	p->steps[i].name = name;
}

static void add_see(struct search *s, struct plan *p, const struct op *op)
{
	add(p, STEP_SEE, op->begin, op->opened, false);
	p->steps[0].absent_from = oldest_listing(s->m->h, op);
}

/* A step of the first attempt, which may have done nothing. */
static void add_again(struct plan *p, const struct op *op)
{
	unsigned int i = 0;
	while (p->steps[i].kind)
		i++;
	add(p, STEP_REPLACE, op->begin, op->stored, false);
	p->steps[i].skip = true;
}

bool model_was_vacated(const struct history *h, const struct op *op)
{
	/* The mount may have opened what it had known before. */
	const uint64_t ttl_ns = h->boxes[op->engine].ttl_ns;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		/* A rename that was interrupted is finished later. */
		if ((o->kind == OP_REMOVE || o->kind == OP_RENAME) && o->name == op->name &&
		    o->begin < op->end &&
		    (o->end_ns + ttl_ns >= op->begin_ns || o->status == OP_MAYBE))
			return true;
	}
	return false;
}

static bool is_late(const struct op *op)
{
	return op->hit && (op->fault == FAULT_LATE || op->fault == FAULT_KILL_LATE);
}

static bool may_arrive_late(const struct op *op)
{
	return op->was_repeated || is_late(op);
}

bool model_was_made_late(const struct history *h, uint64_t uid)
{
	bool found = false;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		const bool is_repeated =
			op->hit && op->status == OP_MAYBE && op->fault == FAULT_REPEATED;
		found |= op->kind == OP_CREATE && op->uid == uid && (is_late(op) || is_repeated);
	}
	return found;
}

/* Whether the file that was changed may be a plain object, to which a program has torn it: that has
 * the name when it is free, also if another file has replaced the domain before. */
static bool may_be_plain(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if (o != op && model_is_torn(o) && o->uid == op->uid && o->begin < op->end)
			return true;
	}
	return false;
}

static void plan_change(struct search *s, struct plan *p, const struct op *op)
{
	/* The refusal counts for good only if the name has another file when the mount looks again,
	 * and no request was sent twice (JOURNAL.md, "Conflicts"). Otherwise the next mount repeats
	 * the commit. */
	if (op->kind == OP_CREATE && op->status == OP_REFUSED && op->was_open &&
	    (op->was_repeated || model_was_vacated(s->m->h, op))) {
		add_see(s, p, op);
		add(p, STEP_REPLACE, op->end, NEVER, true);
	}
	if (op->kind == OP_CREATE && op->was_open && op->status != OP_REFUSED) {
		add_see(s, p, op);
		add(p, STEP_REPLACE, op->closes, op->stored, op->status != OP_DONE);
		/* A request that has had no answer may still be carried out, and one that a server
		 * has sent twice may be carried out again when the file was removed: see
		 * "Committing again" in doc/DETAILS.md. */
		if (is_late(op) || (op->hit && op->fault == FAULT_REPEATED))
			add(p, STEP_REPLACE, op->closes, NEVER, true);
	} else if (op->kind == OP_IMPORT && op->status == OP_REFUSED) {
		/* A plain object, or the record of an unfinished import, is in the way, too. */
		if (!model_has_torn(s->m->h) && !model_has_untidy(s->m->h))
			add_look(p, op->name, true, op->begin, op->end);
	} else if (op->kind == OP_IMPORT) {
		/* Without --replace, the name leads to nothing. */
		if (op->replaces)
			add(p, STEP_SEE, op->begin, op->stored, false);
		/* If the file was removed before the import was started again, it is there again.
		 */
		if (op->stored > op->end)
			add_again(p, op);
		add(p, STEP_REPLACE, op->begin, op->stored, op->status != OP_DONE);
	} else if (op->kind == OP_CHANGE && op->status == OP_DONE && !may_be_plain(s->m->h, op)) {
		add(p, STEP_ALIVE, op->closes, op->stored, false);
	}
}

bool model_is_torn(const struct op *op)
{
	const bool writes = op->was_open || (op->kind == OP_CHANGE && op->hit && op->disk.at);
	if (op->kind == OP_CHANGE && op->change == CHANGE_ALIEN && op->was_open)
		return op->status == OP_DONE || op->status == OP_MAYBE;
	return (op->kind == OP_CREATE || op->kind == OP_CHANGE) && writes && !op->closes && op->rc;
}

/* The names under which an operation may have left something else than a domain when another one
 * runs. */
static unsigned int left_names(const struct history *h, const struct op *o, const struct op *op)
{
	const bool is_released = o->left && o->begin < op->end && o->end > op->begin;
	if (model_is_torn(o) && o->begin < op->end)
		return history_names_of(h, o);
	if (o->engine != op->engine)
		return 0;
	return (o->end < op->end ? history_draft_names(h, o) : 0) |
	       (is_released ? history_names_of(h, o) : 0);
}

/* The names under which others may have left something else than a domain when an operation runs.
 */
static unsigned int left_for(const struct history *h, const struct op *op)
{
	unsigned int left = 0;
	for (unsigned int i = 0; i < h->nops; i++)
		if (&h->ops[i] != op)
			left |= left_names(h, &h->ops[i], op);
	return left;
}

bool model_meets_draft(const struct history *h, const struct op *op)
{
	const unsigned int to = op->kind == OP_RENAME ? 1u << op->to : 0;
	return h->torn || left_for(h, op) & (1u << op->name | to);
}

/* Whether another mount may have finished the rename: it gives the file the same new name. */
static bool has_twin(const struct search *s, const struct op *o)
{
	for (unsigned int i = 0; i < s->n; i++) {
		const struct op *other = &s->m->h->ops[i];
		if (other != o && other->kind == OP_RENAME && other->name == o->name &&
		    other->to == o->to && other->begin < o->end && other->end > o->begin)
			return true;
	}
	return false;
}

static void plan_name(struct search *s, struct plan *p, const struct op *op)
{
	/* It may concern the draft alone. */
	const bool may = op->status == OP_MAYBE || model_meets_draft(s->m->h, op);
	const bool plain = s->m->gaps->plain_delete;
	if (op->kind == OP_REMOVE && (may || plain)) {
		add(p, STEP_SEE, op->begin, op->end, may);
		if (plain)
			add(p, STEP_CHECK, op->begin, op->end, may);
		add(p, plain ? STEP_WIPE : STEP_DROP, op->begin, op->end, may);
	} else if (op->kind == OP_REMOVE) {
		add(p, STEP_REMOVE, op->begin, op->end, false);
	} else if (op->kind == OP_RENAME && (op->rc == -EBUSY || op->status == OP_MAYBE ||
					     (op->hit && op->fault == FAULT_SLOW))) {
		/* Another program has removed or replaced the old name meanwhile, and the new name
		 * stays (DETAILS.md, "Renames"). So may two files be exchanged, of which each is
		 * renamed over the other one. A slow new name may still arrive when another mount
		 * has renamed the file in the same way, and removed it. */
		add(p, STEP_SEE, op->begin, op->end, true);
		add(p, STEP_GIVE, op->begin, op->end, true);
		/* If the request for the new name was sent again, another program may have removed
		 * that name in between. */
		if (op->was_repeated) {
			add(p, STEP_GIVE, op->begin, op->end, false);
			p->steps[2].skip = true;
		}
		add(p, STEP_UNLINK, op->begin, op->end, true); /* by whoever finishes it */
	} else if (op->kind == OP_RENAME) {
		/* An attempt that another program has disturbed is made once more. */
		add(p, STEP_LINK, op->begin, op->end, may);
		p->steps[0].skip = true;
		add(p, STEP_LINK, op->begin, op->end, may);
		/* Both succeed, and a removal between them may be undone (DETAILS.md, "Renames").
		 */
		if (has_twin(s, op)) {
			add(p, STEP_GIVE, op->begin, op->end, false);
			p->steps[2].skip = true;
		}
		if (plain)
			add(p, STEP_CHECK, op->begin, op->end, may);
		add(p, plain ? STEP_WIPE : STEP_UNLINK, op->begin, op->end, may);
	}
}

/* Whether an operation may make its mount forget a name that it has seen. */
static bool may_forget(const struct op *op, unsigned int name)
{
	const bool has_it = op->name == name || (op->kind == OP_RENAME && op->to == name);
	const bool looks = op->kind == OP_LIST || (op->kind == OP_READ && op->status == OP_DONE);
	return op->kind >= OP_RESTART || (op->kind <= OP_READ && has_it && !looks);
}

/* Whether the mount of an open remembers the name from a listing. What is listed while the mount
 * changes any name is not kept. */
static bool remembers(const struct history *h, const struct op *op, const struct op *list)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		const bool changes = o->kind != OP_READ && o->kind != OP_LIST && o->kind != OP_WAIT;
		if (o == op || o->engine != op->engine || o->begin > op->end)
			continue;
		if (o->kind >= OP_RESTART || (o->end > list->begin && may_forget(o, op->name)) ||
		    (o->end > list->begin && o->begin < list->end && changes))
			return false;
	}
	return true;
}

/* Whether the mount of an open has certainly seen the name before. Then it asks the bucket,
 * whatever its listing for new names has shown (DETAILS.md, "New names"). */
static bool is_remembered(const struct history *h, const struct op *op)
{
	const struct box *b = &h->boxes[op->engine];
	bool found = false;
	if (b->has_little_memory || b->line.faults || b->disk_faults || b->kills)
		return false;
	for (unsigned int i = 0; i < h->nops && !found; i++) {
		const struct op *o = &h->ops[i];
		found = o->kind == OP_LIST && o->status == OP_DONE && o->engine == op->engine &&
			o->list.domains & 1u << op->name && o->end < op->begin &&
			!(left_for(h, o) & 1u << op->name) && remembers(h, op, o);
	}
	return found;
}

/* An open shows what the bucket has at a moment after the call began (SEMANTICS.md, "Freshness"),
 * or a draft of the same mount. */
static void plan_open(struct search *s, struct plan *p, const struct op *op)
{
	const bool opens = op->kind == OP_READ || op->kind == OP_CHANGE;
	const bool has_file = op->kind == OP_READ ? op->status == OP_DONE : op->was_open;
	if (!opens || (!has_file && !op->is_absent) || model_meets_draft(s->m->h, op))
		return;
	p->shown = has_file ? number_of(s, op->before.uid) : 0;
	add(p, STEP_SHOW, op->begin, op->shown, false);
	if (!is_remembered(s->m->h, op))
		p->steps[0].absent_from = oldest_listing(s->m->h, op);
}

/* A domain is not cut (SEMANTICS.md, "System calls"), so this shows whether there is one. */
static void plan_cut(struct search *s, struct plan *p, const struct op *op)
{
	if (model_has_torn(s->m->h) || model_meets_draft(s->m->h, op))
		return;
	if (op->rc == -EROFS || (op->rc == 0 && op->opens))
		add_look(p, op->name, true, op->begin, op->shown);
	/* What is cut is no domain. */
	if (!op->is_absent && (op->rc || op->opens))
		return;
	add_look(p, op->name, false, op->begin, op->shown);
	p->steps[0].absent_from = oldest_listing(s->m->h, op);
}

/* What the engine shows right after its operation. */
static void plan_looks(struct search *s, struct plan *p, const struct op *op)
{
	if (op->status != OP_DONE || model_meets_draft(s->m->h, op))
		return;
	if (op->after_name.at)
		add_look(p, op->name, op->after_name.is_there, op->begin, op->after_name.at);
	if (op->after_to.at)
		add_look(p, op->to, op->after_to.is_there, op->begin, op->after_to.at);
}

/* What a listing, or a check, has shown. Listings always ask the bucket (SEMANTICS.md,
 * "Freshness"). */
static void plan_list(struct search *s, struct plan *p, const struct op *op)
{
	const struct check_findings *c = &op->check;
	const bool is_check = op->kind == OP_CHECK;
	const unsigned int shown = is_check ? c->domains : op->list.domains;
	/* What a killed program has left is stored as a plain file. */
	const unsigned int unknown = left_for(s->m->h, op) & ~shown;
	p->is_loose = true;
	for (unsigned int i = 0; i < NAMES_MAX && op->status == OP_DONE && !op->hit; i++) {
		const bool is_seen =
			is_check ? !(c->unknown & 1u << i)
				 : list_is_beside(history_names[i], history_names[op->name]);
		if (is_seen && !(unknown & 1u << i))
			add_look(p, i, shown & 1u << i, op->begin, op->end);
	}
}

static void make_plan(struct search *s, struct plan *p, const struct op *op)
{
	*p = (struct plan){.name = op->name, .to = op->to, .uid = number_of(s, op->uid)};
	if (op->kind == OP_CREATE)
		p->others = history_draft_names(s->m->h, op) & ~(1u << op->name);
	plan_open(s, p, op);
	if (op->kind == OP_CREATE || op->kind == OP_CHANGE || op->kind == OP_IMPORT)
		plan_change(s, p, op);
	else if (op->kind == OP_CUT)
		plan_cut(s, p, op);
	else if (op->kind == OP_LIST || op->kind == OP_CHECK)
		plan_list(s, p, op);
	else if (op->status == OP_DONE || op->status == OP_MAYBE)
		plan_name(s, p, op);
	plan_looks(s, p, op);
}

/* ---- the search ---- */

/* Whether the file of a name has another one. */
static bool has_other_name(const struct state *s, unsigned int name)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (i != name && s->names[i] == s->names[name])
			return true;
	return false;
}

/* Does the step, or returns false if it is not possible. */
static bool take(const struct search *search, unsigned int op, const struct step *step,
		 struct state *s)
{
	const struct plan *p = &search->plans[op];
	uint8_t *name = &s->names[step->name], *to = &s->names[p->to];
	switch (step->kind) {
	case STEP_SEE:
		s->seen[op] = *name;
		return true;
	case STEP_REPLACE:
		/* The open may use an absence that is up to a second old, and the commit requires
		 * it again: nothing is lost. */
		if (*name && *name != s->seen[op])
			return false;
		*name = p->uid;
		return true;
	case STEP_ALIVE:
		return memchr(s->names, p->uid, NAMES_MAX);
	case STEP_REMOVE:
		if (!*name)
			return false;
		*name = 0;
		return true;
	case STEP_DROP:
		if (!*name || *name != s->seen[op])
			return false;
		*name = 0;
		return true;
	case STEP_LINK:
		if (!*name)
			return false;
		s->seen[op] = *to = *name;
		return true;
	case STEP_GIVE:
		/* Between its last look at the old name and its request for the new one, another
		 * program may replace the old one, and the new name stays (DETAILS.md,
		 * "Renames"). That takes long only if the service is busy, or if the request
		 * arrives when its mount has given it up. */
		if (!s->seen[op] || (*to && *name != s->seen[op] && !has_other_name(s, p->to) &&
				     !may_arrive_late(&search->m->h->ops[op])))
			return false;
		*to = s->seen[op];
		return true;
	case STEP_CHECK:
		return *name && *name == s->seen[op];
	case STEP_THERE:
		return *name;
	case STEP_GONE:
		return !*name;
	case STEP_SHOW:
		return *name == p->shown;
	case STEP_WIPE:
		*name = 0;
		return true;
	default:
		if (*name != s->seen[op] && *to == s->seen[op] &&
		    has_twin(search, &search->m->h->ops[op]))
			return true;
		if (!*name || *name != s->seen[op])
			return false;
		*name = 0;
		return true;
	}
}

static uint64_t hash_of(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h ^ (h >> 29);
}

/* Whether the state is new. Names are numbered from 1 in the table: an empty place has a zero in
 * done[0], so that one is stored plus one. */
static bool visit(struct search *s, const struct state *state)
{
	struct state key = *state;
	key.done[0]++;
	for (uint64_t i = hash_of(&key);; i++) {
		struct state *at = &s->visited[i % s->room];
		if (!at->done[0]) {
			*at = key;
			s->nvisited++;
			s->too_large = s->nvisited >= s->room / 2;
			return true;
		}
		if (memcmp(at, &key, sizeof(key)) == 0)
			return false;
	}
}

/* Whether the k-th step of an operation is not done, and can be the next one. */
static bool is_next(const struct search *s, const struct state *state, unsigned int i,
		    unsigned int k)
{
	const struct plan *p = &s->plans[i];
	return p->is_loose ? !(state->done[i] & 1u << k) : state->done[i] == k;
}

static void mark_done(const struct search *s, struct state *state, unsigned int i, unsigned int k)
{
	if (s->plans[i].is_loose)
		state->done[i] |= (uint8_t)(1u << k);
	else
		state->done[i]++;
}

/* The first moment at which a step that is not done must be done. */
static uint64_t deadline(const struct search *s, const struct state *state)
{
	uint64_t first = NEVER;
	for (unsigned int i = 0; i < s->n; i++)
		for (unsigned int k = 0; s->plans[i].steps[k].kind; k++) {
			const struct step *step = &s->plans[i].steps[k];
			if (is_next(s, state, i, k) && !step->may && step->until < first)
				first = step->until;
		}
	return first;
}

/* Whether the moment of a step may have come, if the first deadline of all is this. */
static bool may_come(const struct state *state, const struct step *step, uint64_t until)
{
	return (state->names[step->name] ? step->from : step->absent_from) <= until;
}

/* Looks once at what is seen in this state. It changes no name, so the search need not try what
 * happens if it is seen later. Returns whether there was something. */
static bool look(const struct search *s, struct state *state)
{
	const uint64_t until = deadline(s, state);
	for (unsigned int i = 0; i < s->n; i++)
		for (unsigned int k = 0; s->plans[i].steps[k].kind; k++) {
			const struct step *step = &s->plans[i].steps[k];
			if (step->kind < STEP_THERE || !is_next(s, state, i, k) ||
			    !may_come(state, step, until) || !take(s, i, step, state))
				continue;
			mark_done(s, state, i, k);
			return true;
		}
	return false;
}

static bool search_from(struct search *s, const struct state *from);

/* A commit without an answer may be repeated when another program has removed the file (DETAILS.md,
 * "Writing files", "Steps of a commit"). */
static bool is_repeated(const struct step *step)
{
	return step->kind == STEP_REPLACE && step->may;
}

/* Goes on with a step. */
static bool try_step(struct search *s, const struct state *state, unsigned int i,
		     const struct step *step)
{
	struct state next = *state;
	next.done[i] += !is_repeated(step);
	if (step->skip && search_from(s, &next))
		return true;
	if (take(s, i, step, &next) && search_from(s, &next))
		return true;
	for (unsigned int k = 0; step->kind == STEP_REPLACE && k < NAMES_MAX; k++) {
		if (!(s->plans[i].others & 1u << k))
			continue;
		next = *state;
		next.done[i] += !is_repeated(step);
		next.names[k] = s->plans[i].uid;
		if (search_from(s, &next))
			return true;
	}
	return false;
}

static bool search_from(struct search *s, const struct state *from)
{
	struct state state = *from;
	while (look(s, &state))
		;
	const uint64_t until = deadline(s, &state);
	if (until == NEVER && memcmp(state.names, s->end, sizeof(s->end)) == 0)
		return true;
	if (s->too_large || !visit(s, &state))
		return false;
	for (unsigned int i = 0; i < s->n; i++) {
		const struct plan *p = &s->plans[i];
		const struct step *step = &p->steps[p->is_loose ? STEPS_MAX : state.done[i]];
		if (step->kind && step->kind < STEP_THERE && may_come(&state, step, until) &&
		    try_step(s, &state, i, step))
			return true;
	}
	return false;
}

static void report(struct model_names *m)
{
	char text[512];
	size_t n = 0;
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (m->end[i])
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s has file %llx;",
					      history_names[i], (unsigned long long)m->end[i]);
	model_fault(m->result, "no order of the operations leads to these names:%s",
		    n ? text : " none");
}

void model_names_check(struct model_names *m)
{
	const struct history *h = m->h;
	struct search s = {.m = m, .n = h->nops, .room = STATES_MAX};
	struct state first = {.names = {0}};
	for (unsigned int i = 0; i < h->nops; i++)
		make_plan(&s, &s.plans[i], &h->ops[i]);
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		first.names[i] = number_of(&s, h->first[i]);
		s.end[i] = number_of(&s, m->end[i]);
	}
	s.visited = calloc(s.room, sizeof(*s.visited));
	if (!s.visited)
		abort();
	if (!search_from(&s, &first)) {
		if (s.too_large)
			m->result->undecided++;
		else
			report(m);
	}
	free(s.visited);
}
