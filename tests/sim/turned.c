/* SPDX-License-Identifier: Apache-2.0 */
/* See turned.h. No state: the file tells what it is. */
#include "turned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsmount/engine.h>

enum { CALLS = 8, LINGER = 40, SIGNATURE = 8 };

struct program_of {
	struct shared *p;
	struct player *by;
	char path[SHARED_PATH];
};

static void linger(struct program_of *g)
{
	for (unsigned int i = rng_below(&g->by->random, LINGER); i && !player_is_dead(g->by); i--)
		player_wait(g->by);
}

/* Judges the result of a call, and returns it. */
static int judge(struct program_of *g, const char *what, int rc, const struct err *err)
{
	const struct box *b = g->by->box;
	player_note(g->by, what, g->path, rc);
	if (rc < 0 && !player_is_dead(g->by) && !b->line.faults && !b->disk_faults && !b->kills)
		player_fault(&g->p->faults, "turned files",
			     "%s: %s fails, and nothing has failed: %s", g->path, what, err->msg);
	return rc < 0 ? rc : 0;
}

static int write_at(struct program_of *g, struct engine_file *f, const uint8_t *bytes, size_t n,
		    uint64_t at)
{
	struct err err = ERR_INIT;
	return judge(g, "a write", (int)engine_pwrite(f, bytes, n, at, &err), &err);
}

static int close_file(struct program_of *g, struct engine_file *f, int rc)
{
	struct err err = ERR_INIT;
	if (!rc)
		rc = judge(g, "a close", engine_flush(f, &err), &err);
	player_wait(g->by);
	engine_file_close(f);
	return rc;
}

/* The signature comes last, so that what others store meanwhile is no HDF5 file. */
static int make_plain(struct program_of *g)
{
	static const uint8_t none[SIGNATURE];
	struct err err = ERR_INIT;
	struct engine_file *f;
	int rc = engine_open_write(g->by->box->engine, g->path, ENGINE_CREATE | ENGINE_TRUNCATE, &f,
				   &err);
	if (judge(g, "a creation", rc, &err))
		return rc;
	rc = judge(g, "a cut", engine_resize(f, 0, &err), &err);
	if (!rc)
		rc = write_at(g, f, none, SIGNATURE, 0);
	if (!rc)
		rc = write_at(g, f, g->p->file + SIGNATURE, g->p->n - SIGNATURE, SIGNATURE);
	return close_file(g, f, rc);
}

static int read_all(struct program_of *g, struct engine_file *f)
{
	struct err err = ERR_INIT;
	uint8_t *bytes = malloc(2 * g->p->n);
	if (!bytes)
		abort();
	const ssize_t got = engine_pread(f, bytes, 2 * g->p->n, 0, NULL, &err);
	free(bytes);
	return judge(g, "a read", (int)got, &err);
}

static int use_file(struct program_of *g, bool writes)
{
	struct err err = ERR_INIT;
	struct engine_file *f;
	int rc = engine_open_write(g->by->box->engine, g->path, 0, &f, &err);
	if (rc == -ENOENT || judge(g, "an open", rc, &err))
		return rc;
	if (writes)
		rc = write_at(g, f, g->p->file, SIGNATURE, 0);
	if (!rc && rng_once_in(&g->by->random, 2)) {
		linger(g);
		rc = read_all(g, f);
	}
	return close_file(g, f, rc);
}

int turned_run(struct shared *p, struct player *by, struct err *err)
{
	struct program_of g = {.p = p, .by = by};
	snprintf(g.path, sizeof(g.path), "shared/turned%u.h5", by->box->number);
	for (unsigned int i = 0; i < CALLS && !player_is_dead(by); i++) {
		const unsigned int what = rng_below(&by->random, 6);
		const int rc = what < 2 ? make_plain(&g) : use_file(&g, what < 5);
		if (rc && rc != -ENOENT)
			return err_set(err, rc, "%s", g.path);
		linger(&g);
	}
	return 0;
}
