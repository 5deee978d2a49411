/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage undelete: brings removed domains back whose storage is still in the bucket. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>

#include "journal_dir.h"

#define NEVER_S 1e9 /* this command deletes nothing */

static int print_removed(void *arg, const struct engine_removed *r)
{
	auto_str struct str line = {0};
	str_add_time(&line, r->removed_ns);
	str_add(&line, "  ");
	str_add_printable(&line, r->path);
	str_add(&line, "\n");
	return !str_ok(&line) ? -ENOMEM : fputs(str_text(&line), stdout) == EOF ? -errno : 0;
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
