/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsimage import: stores an HDF5 file as a new domain.
 *
 * The first SIGINT, SIGTERM or SIGHUP lets the import stop in order: requests that are on their way
 * are finished. The second one ends the program at once. Either way the import can be continued.
 */
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option_values.h"

enum { PUTS_MAX = 1024 };
static const uint64_t min_chunk_max = 256 << 20;

/* A global variable, because a signal handler has no argument. */
static atomic_bool interrupted;

static void interrupt(int number)
{
	(void)number;
	atomic_store(&interrupted, true);
}

/* A signal that is ignored (nohup(1)) stays ignored. */
const atomic_bool *command_interrupted(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction handler = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND}, old;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &handler, NULL);
	return &interrupted;
}

int command_import_option(struct command *c, int opt, const char *value, struct err *err)
{
	struct engine_import *import = &c->import;
	uint64_t n;
	switch (opt) {
	case OPTION_REPLACE:
		import->replace = true;
		return 0;
	case OPTION_KEEP_STORAGE:
		import->keep_storage = true;
		return 0;
	case OPTION_SKIP_UNSUPPORTED:
		import->skip_unsupported = true;
		return 0;
	case OPTION_IGNORE_OPEN_FLAG:
		import->ignore_open_flag = true;
		return 0;
	case OPTION_ABORT:
		import->abort = true;
		return 0;
	case OPTION_AS:
		c->as = value;
		return *value ? 0 : err_set(err, -EINVAL, "--as: must not be empty");
	case OPTION_FASTLINK:
		c->fastlink = true;
		return 0;
	case OPTION_ALLOW_EXTERNAL:
		import->allow_external = value;
		return *value ? 0 : err_set(err, -EINVAL, "--allow-external: must not be empty");
	case OPTION_OWNER:
		import->owner = value;
		return *value ? 0 : err_set(err, -EINVAL, "--owner: must not be empty");
	case OPTION_MIN_CHUNK:
		if (!value_size(value, &import->min_chunk) || import->min_chunk > min_chunk_max)
			return err_set(err, -EINVAL,
				       "--min-chunk=%s: must be a size of at most 256M", value);
		return 0;
	default:
		if (!value_number(value, 10, PUTS_MAX, &n) || !n)
			return err_set(err, -EINVAL, "-j %s: must be a number from 1 to %d", value,
				       PUTS_MAX);
		import->puts = (unsigned int)n;
		return 0;
	}
}

int command_import_check(const struct command *c, struct err *err)
{
	const struct engine_import *import = &c->import;
	if (import->abort && (c->as || c->fastlink || c->verify))
		return err_set(err, -EINVAL,
			       "--abort removes an unfinished link; other options do not apply");
	if (import->keep_storage && !import->replace)
		return err_set(err, -EINVAL, "--keep-storage is an option of --replace");
	if (import->abort && (import->replace || import->skip_unsupported || import->min_chunk ||
			      import->allow_external || import->ignore_open_flag))
		return err_set(err, -EINVAL,
			       "--abort removes an unfinished import; other options of import do "
			       "not apply");
	return 0;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct command *c = arg;
	progress_set(&c->progress, done, total);
}

int command_import_open(struct command *c)
{
	struct engine_import *import = &c->import;
	/* FILE is missing if the import is only removed. */
	const char *target = c->operands[1] ? c->operands[1] : c->operands[0];
	const size_t n = strlen(target);
	import->file = c->operands[1] ? c->operands[0] : NULL;
	import->shown = import->file;
	c->operands[0] = target;
	c->options.engine.make_bucket = true;
	import->cancelled = command_interrupted();
	if (!import->abort)
		progress_start(&c->progress);
	int status = command_open(c);
	if (status)
		return status;
	import->path = c->path;
	import->in_folder = n && target[n - 1] == '/';
	import->service_user = getenv("HS_USERNAME");
	import->local_user = login_name();
	import->line = command_print_line;
	import->progress = show_progress;
	import->arg = c;
	return EXIT_OK;
}

int command_import_run(struct command *c)
{
	struct err err = ERR_INIT;
	if (engine_import(c->engine, &c->import, &err))
		return command_failed(c, &err);
	progress_finish(&c->progress);
	return EXIT_OK;
}

int command_import(struct command *c)
{
	const int status = command_import_open(c);
	return status ? status : command_import_run(c);
}
