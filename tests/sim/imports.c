/* SPDX-License-Identifier: Apache-2.0 */
/* See imports.h. No state. */
#include "imports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hsmount/engine.h>

#include "process.h"
#include "program.h"

enum { ATTEMPTS_MAX = 8, FILE_NAME = 128 };

/* ---- the file ---- */

static void file_name(const struct actor *a, const struct op *op, char name[static FILE_NAME])
{
	snprintf(name, FILE_NAME, "%s/import-%u.h5", a->h->world.dir, process_number(a, op));
}

/* Its time is the same in each run of a history, and different for each import, which notices by
 * the time that another file has its path. */
static void make_file(struct actor *a, struct op *op, const char *name)
{
	const struct timespec time = {.tv_sec = 1600000000 + process_number(a, op)};
	const struct timespec times[2] = {time, time};
	const struct program p = {.file = a->file, .n = a->n};
	size_t n;
	content_init(&op->after, op->uid);
	uint8_t *bytes = program_file(&p, &op->after, &n);
	const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || futimens(fd, times))
		abort();
	close(fd);
	free(bytes);
}

/* ---- the command ---- */

static int run_command(struct actor *a, const struct op *op, bool aborts, struct err *err)
{
	char file[FILE_NAME];
	file_name(a, op, file);
	const struct engine_import opt = {.file = aborts ? NULL : file,
					  .path = history_names[op->name],
					  .abort = aborts,
					  .replace = op->replaces && !aborts,
					  .local_user = "ann"};
	const int rc = engine_import(a->process->engine, &opt, err);
	world_cut_message(&a->h->world, err);
	return rc;
}

int import_file(struct actor *a, struct op *op, struct err *err)
{
	char file[FILE_NAME];
	file_name(a, op, file);
	make_file(a, op, file);
	return run_command(a, op, false, err);
}

/* ---- what is left ---- */

/* Returns what the command has returned. */
static int try_again(struct actor *a, struct op *op, unsigned int attempt, bool aborts)
{
	struct err err = ERR_INIT;
	process_begin(a, op, attempt);
	const int rc = run_command(a, op, aborts, &err);
	scheduler_note(&a->h->world.scheduler, "import %s: %d %s", aborts ? "--abort" : "again", rc,
		       err.msg);
	process_end(a);
	if (!rc && !aborts) {
		op->status = OP_DONE;
		op->stored = actor_moment(a);
	}
	return rc;
}

/* The same command continues. If it must not, or the person does not want it, `--abort` removes
 * what is stored; that fails if the domain is complete but for the last steps of its import. */
static void tidy(struct actor *a, struct op *op)
{
	int rc = op->rc;
	bool aborts = !op->again;
	for (unsigned int i = 1; rc && rc != -ENOENT && i < ATTEMPTS_MAX; i++) {
		rc = try_again(a, op, i, aborts);
		aborts = !aborts;
	}
	op->is_tidy = !rc || rc == -ENOENT;
}

void import_finish(struct actor *a, struct op *op)
{
	char file[FILE_NAME];
	actor_take_steps(a, op->waits);
	tidy(a, op);
	file_name(a, op, file);
	unlink(file);
}
