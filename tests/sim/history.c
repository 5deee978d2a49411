/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h: runs a history. Each actor uses only its own engine and its own operations. */
#include "history.h"

#include "baton.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

enum {
	STATUS = 20, /* offset of the status in the superblock: 1 while a library has it open */
	FILE_MAX = 1 << 20,
	SPURIOUS = 500,
	SETTLE_ROUNDS = 2,
	SETTLE_SECONDS = 4000, /* more than an hour */
	DEAD_STEPS = 60,       /* of other engines until a killed one is there again */
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

uint64_t history_tag(unsigned int op)
{
	uint64_t tag = 0;
	/* Two tags differ in each byte, so all bytes are written that replace one by another. */
	for (unsigned int i = 0; i < 8; i++)
		tag = tag << 8 | ((op + 1 + 29 * i) & 0xff);
	return tag;
}

void history_text(const struct op *op, char *text, size_t size)
{
	static const char *const kinds[] = {"create",  "change", "remove", "rename",
					    "mkdir",   "read",	 "wait",   "clock",
					    "restart", "drop",	 "kill"};
	static const char *const changes[] = {
		"count",      "tag",	"cell", "x0",	 "x1",		 "grow", "grow equal",
		"grow empty", "shrink", "link", "spare", "unlink spare", "two"};
	static const char *const results[] = {"no effect", "done", "refused", "maybe"};
	char what[96] = "", fault[48] = "";
	if (op->kind == OP_RENAME)
		snprintf(what, sizeof(what), "%s %s", history_names[op->name],
			 history_names[op->to]);
	else if (op->kind == OP_CHANGE)
		snprintf(what, sizeof(what), "%s %s", history_names[op->name], changes[op->change]);
	else if (op->kind <= OP_READ)
		snprintf(what, sizeof(what), "%s", history_names[op->name]);
	if (op->hit)
		snprintf(fault, sizeof(fault), " fault \"%s\" at request %u,",
			 fault_name(op->fault), op->at);
	snprintf(text, size, "engine %u: %s %s:%s %s (%d)", op->engine, kinds[op->kind], what,
		 fault, results[op->status], op->rc);
}

/* ---- files ---- */

static void bytes_set(struct op *op, uint64_t *v, unsigned int n, uint64_t to)
{
	for (unsigned int i = 0; i < n; i++)
		v[i] = to;
}

/* Returns false if the change is not possible. */
static bool decide(struct op *op, uint64_t tag)
{
	struct content *c = &op->after;
	const uint64_t rows = op->before.nrows;
	*c = op->before;
	switch (op->change) {
	case CHANGE_COUNT:
		c->count++;
		return true;
	case CHANGE_TWO:
		bytes_set(op, c->x + CONTENT_CHUNK, CONTENT_CHUNK, tag);
		c->tag = tag;
		return true;
	case CHANGE_TAG:
		c->tag = tag;
		return true;
	case CHANGE_CELL:
		c->x[0]++;
		return true;
	case CHANGE_X0:
		bytes_set(op, c->x + 1, CONTENT_CHUNK - 1, tag);
		return true;
	case CHANGE_X1:
		bytes_set(op, c->x + CONTENT_CHUNK, CONTENT_CHUNK, tag);
		return true;
	case CHANGE_LINK:
		c->links ^= 1u << (tag % CONTENT_LINKS);
		return true;
	case CHANGE_SPARE:
		bytes_set(op, c->spare, CONTENT_CHUNK, tag);
		return c->has_spare;
	case CHANGE_UNLINK:
		op->after.has_spare = false;
		return op->before.has_spare;
	case CHANGE_SHRINK:
		c->nrows -= CONTENT_CHUNK;
		return rows > CONTENT_CHUNK;
	default:
		break;
	}
	if (rows + CONTENT_CHUNK > CONTENT_ROWS)
		return false;
	c->nrows += CONTENT_CHUNK;
	bytes_set(op, c->rows + rows, CONTENT_CHUNK,
		  op->change == CHANGE_GROW	    ? tag
		  : op->change == CHANGE_GROW_EQUAL ? rows
						    : 0);
	return true;
}

static int write_at(struct engine_file *f, uint64_t at, const uint8_t *bytes, size_t n,
		    struct err *err)
{
	const ssize_t done = engine_pwrite(f, bytes, n, at, err);
	return done < 0 ? (int)done : 0;
}

/* Writes the bytes that differ. */
static int write_changes(struct engine_file *f, const uint8_t *old, size_t nold, const uint8_t *new,
			 size_t n, struct err *err)
{
	int rc = 0;
	for (size_t at = 0; !rc && at < n;) {
		size_t end = at;
		while (end < n && (end >= nold || old[end] != new[end]))
			end++;
		if (end > at)
			rc = write_at(f, at, new + at, end - at, err);
		at = end + 1;
	}
	return rc;
}

static int write_status(struct engine_file *f, uint8_t status, struct err *err)
{
	return write_at(f, STATUS, &status, 1, err);
}

static void take_steps(struct actor *a, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		scheduler_step(&a->h->world.scheduler);
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

static int create(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	struct content template;
	size_t n = a->n;
	content_init(&op->after, op->uid);
	uint8_t *bytes = malloc(n + CONTENT_GROWTH);
	memcpy(bytes, a->file, n);
	int rc = content_read(bytes, n, &template, err);
	if (!rc)
		rc = content_change(bytes, &n, &template, &op->after, err);
	if (rc)
		abort();
	rc = engine_open_write(engine_of(a), history_names[op->name],
			       ENGINE_CREATE | ENGINE_TRUNCATE, &f, err);
	op->opened = moment(a);
	op->was_open = !rc;
	if (!rc) {
		rc = engine_resize(f, 0, err);
		if (!rc)
			rc = write_at(f, 0, bytes, n, err);
		take_steps(a, op->waits);
		op->closes = moment(a);
		if (!rc)
			rc = engine_flush(f, err);
		engine_file_close(f);
	}
	free(bytes);
	return rc;
}

/* Reads the file, and changes it in memory: old and new are buffers of FILE_MAX bytes. */
static int prepare(struct engine_file *f, struct op *op, uint64_t tag, uint8_t *old, size_t *nold,
		   uint8_t *new, size_t *n, struct err *err)
{
	const ssize_t got = engine_pread(f, old, FILE_MAX - CONTENT_GROWTH, 0, NULL, err);
	if (got < 0)
		return (int)got;
	*nold = *n = (size_t)got;
	memcpy(new, old, *nold);
	int rc = content_read(old, *nold, &op->before, err);
	op->uid = op->before.uid;
	if (!rc && !decide(op, tag))
		rc = err_set(err, -ENODATA, "the file has not what is to be changed");
	return rc ? rc : content_change(new, n, &op->before, &op->after, err);
}

static void run_op(struct actor *a, struct op *op);

static bool has_inside(const struct history *h, const struct op *op)
{
	const struct op *next = op + 1;
	return next < h->ops + h->nops && next->inside;
}

/* One operation of an engine has a fault at a time; the requests of the others count, too. */
static void arm(struct box *b, struct op *op)
{
	if (!op->fault || (b->line.fault && !op->armed))
		return;
	op->armed = true;
	line_arm(&b->line, op->fault, op->at, op->on, op->all);
}

static void disarm(struct box *b, struct op *op)
{
	if (!op->armed)
		return;
	op->hit = b->line.hit;
	op->armed = false;
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
}

static int change_file(struct actor *a, struct op *op, struct engine_file *f, uint64_t tag,
		       struct err *err)
{
	uint8_t *old = malloc(FILE_MAX), *new = malloc(FILE_MAX);
	size_t nold = 0, n = 0;
	int rc = prepare(f, op, tag, old, &nold, new, &n, err);
	op->was_open = !rc;
	op->opened = moment(a);
	if (!rc)
		rc = write_status(f, 1, err);
	if (!rc)
		rc = write_changes(f, old, nold, new, n, err);
	if (!rc)
		rc = write_status(f, 0, err);
	free(old);
	free(new);
	if (rc)
		return rc;
	take_steps(a, op->waits);
	if (has_inside(a->h, op))
		run_op(a, op + 1);
	arm(&a->h->boxes[a->engine], op);
	op->closes = moment(a);
	return engine_flush(f, err);
}

static int change(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	int rc = engine_open_write(engine_of(a), history_names[op->name], 0, &f, err);
	if (rc)
		return rc;
	rc = change_file(a, op, f, history_tag((unsigned int)(op - a->h->ops)), err);
	engine_file_close(f);
	return rc;
}

/* All of the file, in a buffer of FILE_MAX bytes. */
static ssize_t read_all(struct engine_file *f, uint8_t *bytes, struct err *err)
{
	return engine_pread(f, bytes, FILE_MAX, 0, NULL, err);
}

/* Reads the file twice. An open shows one version, whatever others change meanwhile. */
static int read_file(struct actor *a, struct op *op, struct err *err)
{
	struct engine_file *f;
	uint8_t *bytes = malloc(FILE_MAX), *again = malloc(FILE_MAX);
	int rc = engine_file_open(engine_of(a), history_names[op->name], &f, err);
	if (!rc) {
		const ssize_t n = read_all(f, bytes, err);
		rc = n < 0 ? (int)n : content_read(bytes, (size_t)n, &op->before, err);
		op->uid = op->before.uid;
		take_steps(a, op->waits);
		const ssize_t k = rc ? rc : read_all(f, again, err);
		rc = k < 0 ? (int)k : 0;
		op->has_changed = !rc && (k != n || memcmp(bytes, again, (size_t)n) != 0);
		engine_file_close(f);
	}
	free(bytes);
	free(again);
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

static void wait_seconds(struct actor *a, unsigned int seconds)
{
	baton_sleep(seconds * SECOND);
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
	case OP_WAIT:
		wait_seconds(a, op->waits);
		return 0;
	case OP_CLOCK:
		box_set_clock(b);
		return 0;
	case OP_RESTART:
		box_restart(b);
		return 0;
	case OP_DROP:
		box_drop(b);
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
	if (op->rc == 0 && !op->hit)
		return OP_DONE;
	if (writes && !op->was_open)
		return OP_NONE;
	if (op->kind == OP_READ)
		return OP_NONE;
	/* If the removal of the old name was repeated, nobody knows whether its first attempt has
	 * removed it, or another program: see "Renames" in doc/DETAILS.md. */
	if (op->rc == 0 && op->kind == OP_RENAME && op->was_repeated)
		return OP_MAYBE;
	if (op->rc == 0)
		return OP_DONE;
	/* The new name may be there. */
	if (op->kind == OP_RENAME && (op->rc == -ESTALE || op->rc == -EBUSY))
		return OP_MAYBE;
	/* A file that meets a rename which is being finished is stored later, by the same mount or
	 * the next one. */
	if (writes && op->rc == -EBUSY)
		return OP_MAYBE;
	return !op->hit && is_refusal(op) ? OP_REFUSED : OP_MAYBE;
}

/* Whether the next operation of the actor drops what is in the journal. */
static bool is_dropped_next(const struct actor *a, const struct op *op)
{
	const struct op *end = a->h->ops + a->h->nops;
	while (++op < end)
		if (op->actor == a->number)
			return op->kind == OP_DROP;
	return false;
}

/* The engine keeps a draft of what has failed under the name, and following operations would deal
 * with that. So it is opened again; then the draft is committed, or waits in the journal. */
static void settle_engine(struct actor *a, struct op *op)
{
	struct box *b = &a->h->boxes[a->engine];
	const bool has_failed = op->status == OP_MAYBE && has_draft(op);
	if (is_dropped_next(a, op) || !(b->line.dead || has_failed))
		return;
	if (b->line.dead)
		take_steps(a, rng_below(&b->random, DEAD_STEPS));
	box_enter_alone(b);
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
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

/* ---- names that an engine uses ---- */

static unsigned int names_of(const struct actor *a, const struct op *op)
{
	unsigned int names = op->kind <= OP_READ && op->kind != OP_MKDIR ? 1u << op->name : 0;
	if (op->kind == OP_RENAME)
		names |= 1u << op->to;
	return has_inside(a->h, op) ? names | names_of(a, op + 1) : names;
}

static void lock_names(struct actor *a, unsigned int names)
{
	struct history *h = a->h;
	pthread_mutex_lock(&h->lock);
	while (h->used[a->engine] & names)
		pthread_cond_wait(&h->changed, &h->lock);
	h->used[a->engine] |= names;
	pthread_mutex_unlock(&h->lock);
}

static void unlock_names(struct actor *a, unsigned int names)
{
	struct history *h = a->h;
	pthread_mutex_lock(&h->lock);
	h->used[a->engine] &= ~names;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

/* ---- one operation ---- */

static bool needs_all(const struct op *op)
{
	return op->kind == OP_RESTART || op->kind == OP_DROP;
}

static void run_op(struct actor *a, struct op *op)
{
	struct box *b = &a->h->boxes[a->engine];
	struct err err = ERR_INIT;
	note_op(a, op, "begins", &err);
	op->begin = moment(a);
	op->begin_ns = baton_now();
	op->uid = op->kind == OP_CREATE ? history_tag((unsigned int)(op - a->h->ops)) : 0;
	const unsigned int repeated = b->line.repeated;
	arm(b, op);
	op->rc = carry_out(a, op, &err);
	disarm(b, op);
	op->was_repeated = b->line.repeated != repeated;
	op->end = moment(a);
	op->end_ns = baton_now();
	/* A killed engine has answered nobody. */
	if (b->line.dead && op->kind < OP_READ && !op->rc)
		op->rc = -EIO;
	op->status = status_of(op);
	note_op(a, op, "ends", &err);
}

static void begin_op(struct actor *a, struct op *op)
{
	struct box *b = &a->h->boxes[a->engine];
	const unsigned int names = names_of(a, op);
	lock_names(a, names);
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
	unlock_names(a, names);
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
		struct op op = {.kind = OP_CREATE, .name = i, .uid = history_tag(OPS_MAX + i)};
		if (!(h->present & 1u << i))
			continue;
		h->first[i] = op.uid;
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
			baton_sleep(SETTLE_SECONDS * SECOND);
		}
		scheduler_deliver(s);
	}
	for (unsigned int i = 0; i < h->engines; i++)
		box_release(&h->boxes[i]);
}

void history_run(struct history *h, const uint8_t *file, size_t n, struct log *log, bool trace)
{
	const struct world_plan plan = {.seed = h->order,
					.lacks = h->lacks,
					.switches = h->switches,
					.spurious = h->seed % 4 ? 0 : SPURIOUS,
					.workers = h->workers,
					.repeats = h->repeats,
					.log = log};
	world_init(&h->world, &plan);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	h->world.scheduler.quiet = !trace;
	for (unsigned int i = 0; i < h->engines; i++)
		box_init(&h->boxes[i], &h->world, i, h->seed, false);
	set_up(h, file, n);
	run_actors(h, file, n);
	if (h->seed % 2)
		scheduler_deliver(&h->world.scheduler);
	settle(h);
}

void history_release(struct history *h)
{
	world_release(&h->world);
}
