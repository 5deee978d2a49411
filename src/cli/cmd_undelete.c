/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage undelete: brings removed domains back whose storage is still in the bucket. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/mem.h>

#include "journal_dir.h"

#define NEVER_S 1e9 /* this command deletes nothing */

static int print_removed(void *arg, const struct engine_removed *r)
{
	char date[32] = "-";
	const time_t t = (time_t)(r->removed_ns / 1000000000);
	struct tm tm;
	if (r->removed_ns && gmtime_r(&t, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%19s  ", date);
	const int rc = command_print_name(r->path);
	return rc ? rc : putchar('\n') == EOF ? -errno : 0;
}

static const char live[] = "a mount that is running has files that it can bring back: "
			   "getfattr -n user.hsds.removed MOUNT lists them, and "
			   "setfattr -n user.hsds.undelete -v FILE MOUNT brings one back";

static int list(struct command *c, bool is_held)
{
	struct err err = ERR_INIT, note = ERR_INIT;
	const int rc = engine_each_removed(c->engine, print_removed, NULL);
	if (is_held) {
		err_set(&note, 0, "%s", live);
		fprintf(stderr, COMMAND_PROGRAM ": %s\n", note.msg);
	}
	return command_result(c, rc, &err);
}

static int undelete(struct command *c, bool is_held)
{
	struct err err = ERR_INIT;
	int rc = engine_undelete(c->engine, c->path, &err);
	if (rc == -ENOENT && is_held) {
		const struct err why = err;
		err_set(&err, rc, "%s; %s", why.msg, live);
	}
	return rc ? command_failed(c, &err) : EXIT_OK;
}

int command_undelete(struct command *c)
{
	const char *named = c->recover.journal_dir;
	char *dir = named ? strdup(named) : journal_dir_default();
	struct engine_options *opt = &c->options.engine;
	struct err err = ERR_INIT;
	opt->journal_dir = dir; /* freed with the options */
	if (!dir)
		err_no_memory(&err);
	else if (access(dir, F_OK))
		err_errno(&err, -errno, "the journal %s", dir);
	if (err.code)
		return command_failed(c, &err);
	opt->write = true;
	opt->user = owner_name();
	opt->gc_delay = NEVER_S;
	const int status = command_open(c);
	if (status)
		return status;
	const bool is_held = engine_take_removed(c->engine) > 0;
	return c->path[0] ? undelete(c, is_held) : list(c, is_held);
}
