/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h: what the bucket has, and the checks of files. names.c checks the names. */
#include "mem_store.h"
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/check.h>

#include "model_calls.h"
#include "model_internal.h"
#include "model_names.h"
#include "model_storage.h"
#include "session.h"
#include "store_calls.h"

enum { FILE_MAX = 1 << 20 };

void model_fault(struct model_result *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_addf(&r->faults, "  %s\n", text);
	r->nfaults++;
}

void model_release(struct model_result *r)
{
	str_release(&r->faults);
}

/* ---- what the bucket has ---- */

struct folder {
	struct found *found;
	const char *path;
};

/* If another mount makes a domain where a plain object is, the object is shown when that is
 * removed. */
bool model_has_torn(const struct history *h)
{
	bool torn = h->torn;
	for (unsigned int i = 0; i < h->nops; i++)
		torn |= model_is_torn(&h->ops[i]);
	return torn;
}

static int find_name(void *arg, const char *name, enum engine_kind kind)
{
	const struct folder *f = arg;
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		if (strcmp(path, history_names[i]) != 0)
			continue;
		if (kind == ENGINE_PLAIN && model_has_torn(f->found->h)) {
			f->found->has_plain = true;
			return 0;
		}
		f->found->listed[i] = true;
		if (kind != ENGINE_DOMAIN)
			model_fault(f->found->result, "%s is not a domain", path);
		return 0;
	}
	if (strncmp(name, "held", 4) == 0)
		return 0; /* of hold.h */
	if (kind != ENGINE_DIR)
		model_fault(f->found->result, "%s: nobody has made it", path);
	return 0;
}

/* A domain hides a plain object of the same name. */
static void find_hidden(struct found *f)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		f->has_plain |= model_has_torn(f->h) &&
				call_head(f->h->world.bucket, history_names[i], NULL, NULL) == 0;
}

static void list_names(struct found *f)
{
	static const char *const folders[] = {"f1", "f2", "f3"};
	for (unsigned int i = 0; i < 3; i++) {
		struct err err = ERR_INIT;
		struct folder folder = {f, folders[i]};
		if (engine_list(f->engine, folders[i], find_name, &folder, &err))
			model_fault(f->result, "folder %s cannot be listed: %s", folders[i],
				    err.msg);
	}
}

static void read_name(struct found *f, unsigned int i)
{
	struct engine_file *file;
	struct err err = ERR_INIT;
	struct content from_bytes;
	const char *name = history_names[i];
	int rc = engine_file_open(f->engine, name, &file, &err);
	if ((rc == -ENOENT || f->has_plain) && !f->listed[i]) {
		if (!rc)
			engine_file_close(file);
		return;
	}
	f->has[i] = true;
	if (!rc) {
		uint8_t *bytes = malloc(FILE_MAX);
		const ssize_t n = engine_pread(file, bytes, FILE_MAX, 0, NULL, &err);
		rc = n < 0 ? (int)n : content_read(bytes, (size_t)n, &from_bytes, &err);
		if (!rc)
			rc = session_read(file, &f->content[i], &err);
		engine_file_close(file);
		free(bytes);
	}
	if (rc)
		model_fault(f->result, "%s is there and cannot be read: %s", name, err.msg);
	else if (!content_agrees(&from_bytes, &f->content[i]))
		model_fault(f->result, "libhdf5 reads another content of %s", name);
	else if (!f->listed[i])
		model_fault(f->result, "%s can be read, and is not listed", name);
}

static int note_finding(void *arg, const struct engine_check_finding *finding)
{
	/* links_check() judges these. */
	if (strncmp(finding->path, "/" LINKS_DIR "/", strlen("/" LINKS_DIR "/")) == 0)
		return 0;
	if (finding->severity == ENGINE_CHECK_ERROR || finding->severity == ENGINE_CHECK_UNCHECKED)
		model_fault(arg, "check of %s: %s %s: %s", finding->path, finding->object,
			    finding->key, finding->text);
	return 0;
}

static int note_result(void *arg, const struct engine_check_result *result)
{
	return 0;
}

static void run_check(struct found *f)
{
	struct err err = ERR_INIT;
	const struct engine_check_sink sink = {
		.finding = note_finding, .result = note_result, .arg = f->result};
	if (engine_check(f->engine, "", true, &sink, &err))
		model_fault(f->result, "the check fails: %s", err.msg);
}

/* ---- chains of changes ---- */

struct edge {
	uint64_t from, to;
	bool must; /* acknowledged */
	bool used;
};

struct chain {
	struct edge edges[OPS_MAX];
	unsigned int n;
	uint64_t end;
};

static bool follow(struct chain *c, uint64_t at)
{
	bool all = at == c->end;
	for (unsigned int i = 0; i < c->n; i++)
		all = all && (c->edges[i].used || !c->edges[i].must);
	if (all)
		return true;
	for (unsigned int i = 0; i < c->n; i++) {
		struct edge *e = &c->edges[i];
		if (e->used || e->from != at)
			continue;
		e->used = true;
		if (follow(c, e->to))
			return true;
		e->used = false;
	}
	return false;
}

/* A change that is refused because its file had no name at that moment keeps its plan. If the file
 * has a name again, the next mount completes it (JOURNAL.md, "Conflicts"). */
bool model_was_moved(const struct history *h, const struct op *op)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *o = &h->ops[i];
		if (o->kind == OP_RENAME && o->begin < op->end && o->end > op->begin)
			return true;
	}
	return false;
}

/* A change of two objects that is refused at the second one has stored the first one, which is the
 * chunk, or the group that gets a link (DETAILS.md, "Other programs"). */
static bool is_half_stored(const struct op *op, uint64_t uid, enum content_part part)
{
	const bool is_first =
		(op->change == CHANGE_TWO && part == PART_X1) ||
		((op->change == CHANGE_MOVE || op->change == CHANGE_SWAP) && part == PART_E0);
	return op->kind == OP_CHANGE && op->uid == uid && op->status == OP_REFUSED &&
	       op->rc == -ESTALE && is_first;
}

bool model_is_change_of(const struct history *h, const struct op *op, uint64_t uid)
{
	return op->kind == OP_CHANGE && op->uid == uid && op->change != CHANGE_ALIEN &&
	       (op->status == OP_DONE || op->status == OP_MAYBE ||
		(op->status == OP_REFUSED && model_was_moved(h, op)));
}

/* What an operation does to a part of a file. */
static bool add_edge(const struct history *h, struct chain *c, const struct op *op, uint64_t uid,
		     enum content_part part)
{
	if (!model_is_change_of(h, op, uid) && !is_half_stored(op, uid, part))
		return false;
	const struct edge e = {.from = content_value(&op->before, part),
			       .to = content_value(&op->after, part),
			       .must = op->status == OP_DONE};
	if (e.from != e.to)
		c->edges[c->n++] = e;
	return e.from != e.to;
}

/* ---- datasets that come and go ---- */

/* A dataset that moves is linked in both groups for a while, and always in one of them. If two
 * exchange their links, either link may change first. */
struct extras {
	const struct history *h;
	const struct content *end;
	unsigned int done[OPS_MAX]; /* bit i: the link i of a change is stored */
};

static bool changes_link(const struct op *op, unsigned int i)
{
	return op->before.extras[i] != op->after.extras[i];
}

static unsigned int count_links(const struct op *op)
{
	unsigned int n = 0;
	for (unsigned int i = 0; i < CONTENT_EXTRAS; i++)
		n += changes_link(op, i);
	return n;
}

/* Stores a link of a change. Links come before links go. Returns false if the link is not as the
 * program has read it. */
static bool store_link(const struct op *op, unsigned int done, unsigned int i,
		       uint64_t state[CONTENT_EXTRAS])
{
	const unsigned int other = 1 - i;
	const bool waits = !op->after.extras[i] && op->after.extras[other] &&
			   changes_link(op, other) && !(done & 1u << other);
	if (!changes_link(op, i) || done & 1u << i || waits || state[i] != op->before.extras[i])
		return false;
	state[i] = op->after.extras[i];
	return true;
}

/* How many links of a change may have been stored. */
static unsigned int max_links(const struct extras *x, const struct op *op)
{
	if (model_is_change_of(x->h, op, x->end->uid))
		return count_links(op);
	return is_half_stored(op, x->end->uid, PART_E0) && count_links(op) > 1 ? 1 : 0;
}

static unsigned int stored_links(const struct extras *x, unsigned int op)
{
	return (unsigned int)__builtin_popcount(x->done[op]);
}

static bool follow_extras(struct extras *x, const uint64_t state[CONTENT_EXTRAS])
{
	bool all = memcmp(state, x->end->extras, sizeof(x->end->extras)) == 0;
	for (unsigned int i = 0; i < x->h->nops && all; i++)
		all = x->h->ops[i].status != OP_DONE ||
		      stored_links(x, i) == max_links(x, &x->h->ops[i]);
	for (unsigned int k = 0; k < CONTENT_EXTRAS * x->h->nops && !all; k++) {
		const unsigned int i = k / CONTENT_EXTRAS, link = k % CONTENT_EXTRAS;
		uint64_t next[CONTENT_EXTRAS];
		memcpy(next, state, sizeof(next));
		if (stored_links(x, i) >= max_links(x, &x->h->ops[i]) ||
		    !store_link(&x->h->ops[i], x->done[i], link, next))
			continue;
		x->done[i] |= 1u << link;
		all = follow_extras(x, next);
		x->done[i] &= ~(1u << link);
	}
	return all;
}

static const uint64_t *values_of(const struct content *c, enum content_part part)
{
	switch (part) {
	case PART_X0:
		return c->x;
	case PART_X1:
		return c->x + CONTENT_CHUNK;
	case PART_WORDS:
		return c->words;
	case PART_SPARE:
		return c->spare;
	default:
		return c->extras;
	}
}

static void describe_part(char *text, size_t size, const struct content *c, enum content_part part)
{
	const uint64_t *v = values_of(c, part);
	if (part == PART_ROOT)
		snprintf(text, size, "count %llu, tag %llx, links %x", (unsigned long long)c->count,
			 (unsigned long long)c->tag, c->links);
	else if (part == PART_ROWS)
		snprintf(text, size, "%llu rows, the last is %llx", (unsigned long long)c->nrows,
			 (unsigned long long)c->rows[c->nrows ? c->nrows - 1 : 0]);
	else if (part == PART_GRID)
		snprintf(text, size, "%llu x %llu chunks", (unsigned long long)c->grid.n[0],
			 (unsigned long long)c->grid.n[1]);
	else if (part == PART_NOTE)
		snprintf(text, size, "%llx", (unsigned long long)c->note);
	else
		snprintf(text, size, "%llx %llx", (unsigned long long)v[0],
			 (unsigned long long)v[1]);
}

/* Whether an order of the changes leads to the end of a part. */
static bool is_explained(struct found *f, const struct content *end, enum content_part part)
{
	struct chain c = {.end = content_value(end, part)};
	struct extras extras = {.h = f->h, .end = end};
	struct content first;
	history_first(f->h, end->uid, &first);
	if (part == PART_ROWS || part == PART_GRID)
		return f->gaps->no_marks || model_explains_growth(f->h, end, part);
	if (part == PART_E0 || part == PART_E1)
		return follow_extras(&extras, first.extras);
	for (unsigned int i = 0; i < f->h->nops; i++)
		add_edge(f->h, &c, &f->h->ops[i], end->uid, part);
	return follow(&c, content_value(&first, part));
}

static void check_part(struct found *f, unsigned int name, enum content_part part)
{
	char text[128];
	if (is_explained(f, &f->content[name], part) ||
	    model_may_be_replaced(f->h, f->content[name].uid) ||
	    model_was_given_meanwhile(f->h, name))
		return;
	describe_part(text, sizeof(text), &f->content[name], part);
	model_fault(f->result,
		    "%s: %s (%s): no order of the changes leads there; an acknowledged change is "
		    "lost, or a refused one is there",
		    history_names[name], content_part_name(part), text);
}

/* The dataset was removed: an acknowledged change of it that began later is lost. */
static void check_removed_spare(struct found *f, unsigned int name)
{
	const struct history *h = f->h;
	const uint64_t uid = f->content[name].uid;
	uint64_t removed = 0;
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->kind != OP_CHANGE || op->uid != uid || op->change != CHANGE_UNLINK)
			continue;
		if (op->status == OP_MAYBE || (op->status == OP_REFUSED && model_was_moved(h, op)))
			removed = UINT64_MAX;
		else if (op->status == OP_DONE && op->stored > removed)
			removed = op->stored;
	}
	struct content first;
	history_first(h, uid, &first);
	if (!removed && first.has_spare)
		model_fault(f->result, "%s: /g/spare is gone, and nobody has removed it",
			    history_names[name]);
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->kind == OP_CHANGE && op->uid == uid && op->change == CHANGE_SPARE &&
		    op->status == OP_DONE && op->closes > removed)
			model_fault(f->result,
				    "%s: /g/spare was removed before the acknowledged change %u of "
				    "it was stored",
				    history_names[name], i);
	}
}

static void check_spare(struct found *f, unsigned int name)
{
	const uint64_t uid = f->content[name].uid;
	if (!f->content[name].has_spare) {
		check_removed_spare(f, name);
		return;
	}
	for (unsigned int i = 0; i < f->h->nops; i++) {
		const struct op *op = &f->h->ops[i];
		if (op->kind == OP_CHANGE && op->uid == uid && op->change == CHANGE_UNLINK &&
		    op->status == OP_DONE)
			model_fault(f->result, "%s: /g/spare is there, although it was removed",
				    history_names[name]);
	}
	check_part(f, name, PART_SPARE);
}

bool model_is_known(const struct history *h, uint64_t uid)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (h->first[i] == uid)
			return true;
	for (unsigned int i = 0; i < h->nops; i++)
		if ((h->ops[i].kind == OP_CREATE || h->ops[i].kind == OP_IMPORT) &&
		    h->ops[i].uid == uid)
			return true;
	return false;
}

bool model_is_imported_twice(const struct history *h, uint64_t uid)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->kind != OP_IMPORT || op->uid != uid || op->stored == op->end)
			continue;
		for (unsigned int k = 0; k < h->nops; k++)
			if (h->ops[k].kind == OP_RENAME && h->ops[k].name == op->name)
				return true;
	}
	return false;
}

/* Whether the bucket may have a file twice: its creation has had no answer, and the draft has got
 * another name. */
static bool has_copies(const struct history *h, uint64_t uid)
{
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		if (op->kind == OP_CREATE && op->uid == uid &&
		    history_draft_names(h, op) & ~(1u << op->name))
			return true;
	}
	return false;
}

static void check_content(struct found *f, unsigned int name)
{
	if (!model_is_known(f->h, f->content[name].uid)) {
		model_fault(f->result, "%s has a file that nobody has made", history_names[name]);
		return;
	}
	if (f->gaps->plain_put || has_copies(f->h, f->content[name].uid) ||
	    model_is_imported_twice(f->h, f->content[name].uid))
		return;
	for (enum content_part part = 0; part < PART_SPARE; part++)
		check_part(f, name, part);
	check_spare(f, name);
}

/* ---- files that programs hold ---- */

struct holds {
	struct history *h;
	struct engine *engine;
	struct model_result *result;
};

static void check_engine_holds(struct box *b, const char *journal,
			       const struct engine_options *bucket, void *ctx)
{
	const struct holds *all = ctx;
	for (unsigned int i = 0; i < all->h->nops; i++) {
		struct hold *hold = all->h->ops[i].hold;
		if (!hold || all->h->ops[i].engine != b->number)
			continue;
		hold_check_end(hold, all->engine, journal, bucket);
		if (hold->faults.b.len) {
			str_addf(&all->result->faults, "%s", str_text(&hold->faults));
			all->result->nfaults++;
		}
	}
}

static void check_holds(struct found *f)
{
	struct holds all = {f->h, f->engine, f->result};
	for (unsigned int i = 0; i < f->h->engines; i++)
		box_inspect(&f->h->boxes[i], check_engine_holds, &all);
}

static void add_faults(struct model_result *r, const struct str *faults, bool decided)
{
	r->undecided += !decided;
	r->nfaults += faults->b.len > 0;
	str_addf(&r->faults, "%s", str_text(faults));
}

/* Programs on names of their own. */
static void check_players(struct found *f)
{
	struct history *h = f->h;
	const bool order_matters = !f->gaps->plain_put;
	const bool plain_matters = order_matters && !(h->lacks & STORE_MEM_NO_PARTS_IF);
	bool decided = plain_check(h->plain, f->engine, h->boxes, h->engines, plain_matters);
	add_faults(f->result, &h->plain->faults, decided);
	decided = folders_check(h->folders, f->engine, h->world.bucket, order_matters);
	add_faults(f->result, &h->folders->faults, decided);
	decided = foreign_check(h->foreign, f->engine, order_matters);
	add_faults(f->result, &h->foreign->faults, decided);
	decided = acls_check(h->acls, f->engine, order_matters);
	add_faults(f->result, &h->acls->faults, decided);
	decided = mixed_check(h->mixed, f->engine, h->engines == 1, plain_matters);
	add_faults(f->result, &h->mixed->faults, decided);
	decided = links_check(h->links, f->engine, &h->world, order_matters);
	add_faults(f->result, &h->links->faults, decided);
	stores_check(h->stores, f->engine, &h->world.scheduler);
	add_faults(f->result, &h->stores->faults, true);
	shared_check(h->shared, f->engine, h->boxes, h->engines);
	add_faults(f->result, &h->shared->faults, true);
}

/* ---- the next part ---- */

/* What the next part begins with. A part is the last one if two names lead to one file, because any
 * mount may finish the rename (DETAILS.md, "Renames"). */
static void note_files(struct found *f)
{
	struct history *h = f->h;
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		h->first[i] = f->has[i] ? f->content[i].uid : 0;
		h->contents[i] = f->content[i];
		for (unsigned int k = 0; k < i; k++)
			if (h->first[i] && h->first[i] == h->first[k])
				h->parts = h->part + 1;
	}
	h->torn = model_has_torn(h);
	if (f->has_plain)
		h->parts = h->part + 1;
}

/* ---- all ---- */

struct model_gaps model_gaps_of(const struct history *h)
{
	return (struct model_gaps){
		.plain_delete = h->lacks & STORE_MEM_NO_DELETE_IF,
		.no_marks = h->lacks & STORE_MEM_NO_MARKS,
		.plain_put = h->lacks & (STORE_MEM_NO_IF_MATCH | STORE_MEM_NO_IF_NONE_MATCH),
	};
}

void model_check(struct history *h, const struct model_gaps *gaps, struct model_result *out)
{
	struct box b;
	*out = (struct model_result){0};
	struct found f = {.h = h, .gaps = gaps, .result = out};
	box_init(&b, &h->world, ENGINES_MAX - 1, h->seed + 1, true);
	f.engine = b.engine;
	list_names(&f);
	find_hidden(&f);
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		read_name(&f, i);
	if (!out->nfaults)
		run_check(&f);
	struct model_names names = {.h = h, .gaps = gaps, .result = out};
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		names.end[i] = f.has[i] ? f.content[i].uid : 0;
		if (f.has[i] && f.content[i].uid)
			check_content(&f, i);
	}
	if (!out->nfaults && !gaps->plain_put && !f.has_plain)
		model_names_check(&names);
	if (!gaps->plain_put) {
		model_check_lists(&f);
		model_check_checks(&f);
		model_check_refused(&f);
		model_check_reads(&f);
		model_check_twice(&f);
		model_calls_check(h, out);
	}
	model_check_dirs(&f);
	check_holds(&f);
	check_players(&f);
	note_files(&f);
	box_release(&b);
	model_storage_check(h, gaps, out);
}
