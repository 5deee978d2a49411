/* SPDX-License-Identifier: Apache-2.0 */
/* See program.h. No state. */
#include "program.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cancel.h>

#include "baton.h"
#include "session.h"

enum {
	STATUS = 20, /* offset of the status in the superblock: 1 while a library has it open */
	FILE_MAX = 1 << 20,
	READ_FIRST = 2048, /* bytes that a reader reads first */
};
#define READ_NS UINT64_C(8000000000) /* that it has the file open, for each of its steps */

/* ---- what a change is ---- */

static void bytes_set(struct op *op, uint64_t *v, unsigned int n, uint64_t to)
{
	for (unsigned int i = 0; i < n; i++)
		v[i] = to;
}

/* Adds rows and columns of chunks to /grid, or removes them. New chunks get a value, or all but
 * the last one stay empty. */
static bool size_grid(struct content_chunks *grid, int rows, int columns, bool only_last,
		      uint64_t value)
{
	const struct content_chunks old = *grid;
	*grid = (struct content_chunks){
		.n = {old.n[0] + (uint64_t)(int64_t)rows, old.n[1] + (uint64_t)(int64_t)columns}};
	if (!grid->n[0] || !grid->n[1] || grid->n[0] > CONTENT_GRID || grid->n[1] > CONTENT_GRID)
		return false;
	for (uint64_t i = 0; i < grid->n[0]; i++)
		for (uint64_t k = 0; k < grid->n[1]; k++) {
			const bool is_last = i == grid->n[0] - 1 && k == grid->n[1] - 1;
			if (i < old.n[0] && k < old.n[1])
				grid->value[i][k] = old.value[i][k];
			else if (is_last || !only_last)
				grid->value[i][k] = value;
		}
	return true;
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
	case CHANGE_ALIEN:
		c->tag = tag;
		c->is_alien = op->change == CHANGE_ALIEN;
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
	case CHANGE_NOTE:
		c->note = tag;
		return true;
	case CHANGE_UNNOTE:
		c->note = op->before.note ? 0 : tag;
		return true;
	case CHANGE_WORD:
		c->words[tag % 2] = tag;
		return true;
	case CHANGE_EXTRA:
		c->extras[c->extras[0] != 0] = tag;
		return !op->before.extras[0] || !op->before.extras[1];
	case CHANGE_MOVE:
		c->extras[0] = op->before.extras[1];
		c->extras[1] = op->before.extras[0];
		if (!c->extras[0] && !c->extras[1])
			c->extras[0] = tag;
		return !c->extras[0] != !c->extras[1];
	case CHANGE_SWAP:
		if (c->extras[0] && c->extras[1]) {
			c->extras[0] = op->before.extras[1];
			c->extras[1] = op->before.extras[0];
		} else {
			c->extras[c->extras[0] != 0] = tag;
		}
		return true;
	case CHANGE_REPLACE:
		c->extras[!c->extras[0] && c->extras[1]] = tag;
		return true;
	case CHANGE_TALLER:
		return size_grid(&c->grid, 1, 0, false, tag);
	case CHANGE_WIDER:
		return size_grid(&c->grid, 0, 1, false, tag);
	case CHANGE_LARGER:
		return size_grid(&c->grid, 1, 1, true, tag);
	case CHANGE_SMALLER:
		return size_grid(&c->grid, -1, -1, true, tag);
	case CHANGE_UNEXTRA:
		if (c->extras[0] || !c->extras[1])
			c->extras[0] = c->extras[0] ? 0 : tag;
		else
			c->extras[1] = 0;
		return true;
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

/* Decides what a program makes of what it has read. */
static int plan(struct op *op, uint64_t tag, struct err *err)
{
	op->uid = op->before.uid;
	return decide(op, tag) ? 0
			       : err_set(err, -ENODATA, "the file has not what is to be changed");
}

/* ---- without a library ---- */

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

static void wait_for_others(void *ctx)
{
	player_wait(ctx);
}

struct program program_of_player(struct player *by, const uint8_t *file, size_t n)
{
	return (struct program){file, n, wait_for_others, by};
}

int program_write_plain(struct engine_file *f, unsigned int number, struct err *err)
{
	char text[PROGRAM_FILE + 1];
	snprintf(text, sizeof(text), "file %011u", number);
	const int rc = engine_resize(f, 0, err);
	return !rc && engine_pwrite(f, text, PROGRAM_FILE, 0, err) < 0 ? -EIO : rc;
}

unsigned long program_plain_number(const char *bytes, size_t n)
{
	char text[PROGRAM_FILE + 1] = "";
	if (n != PROGRAM_FILE || memcmp(bytes, "file ", 5) != 0)
		return 0;
	memcpy(text, bytes, n);
	return strtoul(text + 5, NULL, 10);
}

uint8_t *program_file(const struct program *p, const struct content *c, size_t *n)
{
	struct content template;
	uint8_t *bytes = malloc(p->n + CONTENT_GROWTH);
	*n = p->n;
	memcpy(bytes, p->file, p->n);
	if (content_read(bytes, *n, &template, NULL) ||
	    content_change(bytes, n, &template, c, NULL))
		abort();
	return bytes;
}

static int create_bytes(const struct program *p, const struct op *op, struct engine_file *f,
			struct err *err)
{
	size_t n;
	uint8_t *bytes = program_file(p, &op->after, &n);
	int rc = engine_resize(f, 0, err);
	if (!rc)
		rc = write_at(f, 0, bytes, n, err);
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
	if (!rc)
		rc = plan(op, tag, err);
	return rc ? rc : content_change(new, n, &op->before, &op->after, err);
}

static int change_bytes(struct op *op, struct engine_file *f, uint64_t tag, struct err *err)
{
	uint8_t *old = malloc(FILE_MAX), *new = malloc(FILE_MAX);
	size_t nold = 0, n = 0;
	int rc = prepare(f, op, tag, old, &nold, new, &n, err);
	op->was_open = !rc;
	if (!rc)
		rc = write_status(f, 1, err);
	if (!rc)
		rc = write_changes(f, old, nold, new, n, err);
	if (!rc)
		rc = write_status(f, 0, err);
	free(old);
	free(new);
	return rc;
}

/* Reads a part of the file, often nearly nothing of its data, and later all of it. An open shows
 * one version, whatever others change meanwhile. */
static int read_twice(const struct program *p, struct op *op, struct engine_file *f, uint8_t *bytes,
		      uint8_t *again, struct err *err)
{
	const size_t part = op->waits % 2 ? FILE_MAX : READ_FIRST;
	const ssize_t n = engine_pread(f, bytes, part, 0, NULL, err);
	if (n < 0)
		return (int)n;
	for (unsigned int i = 0; i < op->waits; i++)
		p->wait(p->ctx);
	baton_sleep(op->waits * READ_NS);
	const ssize_t k = engine_pread(f, again, FILE_MAX, 0, NULL, err);
	if (k < 0)
		return (int)k;
	/* A read ends before a chunk that cannot be read. */
	op->mixed = memcmp(bytes, again, (size_t)(k < n ? k : n)) != 0;
	return content_read(again, (size_t)k, &op->before, err);
}

struct reader {
	struct engine_file *file;
	struct cancel cancel;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	uint8_t *bytes = malloc(FILE_MAX);
	engine_pread(r->file, bytes, FILE_MAX, 0, &r->cancel, NULL);
	free(bytes);
	return NULL;
}

/* A signal interrupts a read. The program reads the same again before the requests of the first
 * read have ended. */
static void read_in_vain(const struct program *p, const struct op *op, struct engine_file *f)
{
	struct reader r = {.file = f};
	pthread_t thread;
	cancel_init(&r.cancel);
	if (pthread_create(&thread, NULL, read_all, &r))
		abort();
	for (unsigned int i = 0; i < op->waits; i++)
		p->wait(p->ctx);
	cancel_fire(&r.cancel);
	pthread_join(thread, NULL);
	cancel_release(&r.cancel);
}

static int read_bytes(const struct program *p, struct op *op, struct engine_file *f,
		      struct err *err)
{
	uint8_t *bytes = malloc(FILE_MAX), *again = malloc(FILE_MAX);
	if (op->waits % 3 == 1)
		read_in_vain(p, op, f);
	const int rc = read_twice(p, op, f, bytes, again, err);
	op->uid = op->before.uid;
	free(bytes);
	free(again);
	return rc;
}

/* ---- with libhdf5 ---- */

static struct session_options session_of(const struct program *p, const struct op *op)
{
	return (struct session_options){.latest = op->program == PROGRAM_LATEST,
					.writes = op->dies,
					.wait = p->wait,
					.ctx = p->ctx};
}

static int create_session(const struct program *p, const struct op *op, struct engine_file *f,
			  struct err *err)
{
	const struct session_options opt = session_of(p, op);
	struct session *s;
	int rc = session_open(&s, f, SESSION_CREATE, &opt, err);
	if (rc)
		return rc;
	session_fill(s, &op->after, NULL);
	session_flush(s, op->flush, NULL);
	return session_close(s, err);
}

static int change_session(const struct program *p, struct op *op, struct engine_file *f,
			  uint64_t tag, struct err *err)
{
	const struct session_options opt = session_of(p, op);
	struct session *s;
	int rc = session_open(&s, f, SESSION_CHANGE, &opt, err);
	if (rc)
		return rc;
	rc = session_get(s, &op->before, err);
	if (!rc)
		rc = plan(op, tag, err);
	op->was_open = !rc;
	if (!rc) {
		session_set(s, &op->before, &op->after, NULL);
		session_flush(s, op->flush, NULL);
	}
	const int closed = session_close(s, err);
	return rc ? rc : closed;
}

static int read_session(const struct program *p, struct op *op, struct engine_file *f,
			struct err *err)
{
	const struct session_options opt = session_of(p, op);
	struct session *s;
	int rc = session_open(&s, f, SESSION_READ, &opt, err);
	if (rc)
		return rc;
	session_get(s, &op->before, err);
	return session_close(s, err);
}

/* ---- both ---- */

int program_create(const struct program *p, const struct op *op, struct engine_file *f,
		   struct err *err)
{
	return op->program ? create_session(p, op, f, err) : create_bytes(p, op, f, err);
}

int program_change(const struct program *p, struct op *op, struct engine_file *f, uint64_t tag,
		   struct err *err)
{
	return op->program ? change_session(p, op, f, tag, err) : change_bytes(op, f, tag, err);
}

int program_read(const struct program *p, struct op *op, struct engine_file *f, struct err *err)
{
	int rc = read_bytes(p, op, f, err);
	const struct content bytes = op->before;
	if (rc || !op->program)
		return rc;
	rc = read_session(p, op, f, err);
	op->mixed |= !rc && !content_agrees(&bytes, &op->before);
	return rc;
}
