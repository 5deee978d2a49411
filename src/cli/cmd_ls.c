/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage ls: lists a directory as a mount shows it. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <base/mem.h>

static void print_stat(const struct engine_stat *st)
{
	static const char bits[] = "rwxrwxrwx";
	char mode[11] = "----------", date[32] = "-", size[32] = "-";
	const time_t t = (time_t)(st->mtime_ns / 1000000000);
	struct tm tm;
	if (st->kind == ENGINE_DIR)
		mode[0] = 'd';
	for (int i = 0; i < 9; i++)
		if (st->mode & (0400U >> i))
			mode[i + 1] = bits[i];
	if (st->mtime_ns && gmtime_r(&t, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	if (st->kind != ENGINE_DIR)
		snprintf(size, sizeof(size), "%s%" PRIu64, st->size_exact ? "" : "~", st->size);
	printf("%s %15s  %16s  ", mode, size, date);
}

struct listing {
	struct command *c;
	struct err err; /* of the first entry whose attributes could not be read */
};

static int print_entry(struct listing *l, const char *path, const char *name, enum engine_kind kind)
{
	struct engine_stat st = {.kind = kind};
	struct err err = ERR_INIT;
	if (l->c->details) {
		int rc = engine_getattr(l->c->engine, path, &st, &err);
		if (rc && !l->err.code)
			err_copy(&l->err, &err);
		print_stat(&st);
	}
	int rc = command_print_name(name);
	return rc ? rc : puts(kind == ENGINE_DIR ? "/" : "") == EOF ? -errno : 0;
}

static int list_entry(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	auto_free char *path = NULL;
	if (asprintf(&path, "%s%s%s", l->c->path, l->c->path[0] ? "/" : "", name) < 0)
		return -ENOMEM;
	return print_entry(l, path, name, kind);
}

int command_ls(struct command *c)
{
	struct listing l = {.c = c};
	struct engine_stat st;
	struct err err = ERR_INIT;
	int status = command_open(c);
	if (status)
		return status;
	int rc = engine_getattr(c->engine, c->path, &st, &err);
	if (!rc && st.kind == ENGINE_DIR)
		rc = engine_list(c->engine, c->path, list_entry, &l, &err);
	else if (!rc)
		rc = print_entry(&l, c->path, c->path, st.kind);
	if (!rc && l.err.code) {
		rc = l.err.code;
		err_copy(&err, &l.err);
	}
	return command_result(c, rc, &err);
}
