/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage info: describes a domain and, with --verify, reads all of it. */
#include "command.h"

#include <errno.h>
#include <stdio.h>

static int print_line(void *arg, const char *line)
{
	struct command *c = arg;
	progress_clear(&c->progress);
	int rc = command_print_name(line);
	return rc ? rc : putchar('\n') == EOF ? -errno : 0;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct command *c = arg;
	progress_set(&c->progress, done, total);
}

int command_info(struct command *c)
{
	struct err err = ERR_INIT;
	const struct engine_info_sink sink = {
		.line = print_line,
		.progress = show_progress,
		.arg = c,
	};
	c->options.engine.keep_attributes = true;
	int status = command_open(c);
	if (status)
		return status;
	/* The description names the parts that are left out, so no warnings are logged. */
	if (c->options.log_level == LOG_LEVEL_WARNING)
		log_set_level(c->log, LOG_LEVEL_ERROR);
	if (c->verify)
		progress_start(&c->progress);
	int rc = engine_info(c->engine, c->path, c->verify, &sink, &err);
	progress_clear(&c->progress);
	return command_result(c, rc, &err);
}
