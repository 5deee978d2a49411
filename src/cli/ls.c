/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage ls and hsimage info: the commands that print. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/mem.h>
#include <base/printable.h>

static const struct option no_longs[] = {{NULL, 0, NULL, 0}};

/* Names are foreign: what a terminal would obey is shown as \xNN. */
static void print_name(const char *name)
{
	const size_t cap = 4 * strlen(name) + 1;
	auto_free char *shown = malloc(cap);
	if (shown)
		printable(shown, cap, name);
	fputs(shown ? shown : "(out of memory)", stdout);
}

static void print_stat(const struct engine_stat *st)
{
	static const char bits[] = "rwxrwxrwx";
	char mode[11] = "----------", date[32] = "-", size[32];
	time_t t = (time_t)(st->mtime_ns / 1000000000);
	struct tm tm;
	if (st->kind == ENGINE_DIR)
		mode[0] = 'd';
	for (int i = 0; i < 9; i++)
		if (st->mode & (0400U >> i))
			mode[i + 1] = bits[i];
	if (st->mtime_ns && gmtime_r(&t, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	/* A domain that nobody has opened: its size is the service's own summary. */
	snprintf(size, sizeof(size), "%s%" PRIu64, st->size_exact ? "" : "~", st->size);
	printf("%s %15s  %16s  ", mode, st->kind == ENGINE_DIR ? "-" : size, date);
}

struct listing {
	struct command *c;
	bool details;
	struct err err; /* of the first entry that could not be described */
};

static void print_entry(struct listing *l, const char *path, const char *name,
			enum engine_kind kind)
{
	struct engine_stat st = {.kind = kind};
	struct err err = ERR_INIT;
	if (l->details) {
		int rc = engine_getattr(l->c->engine, path, &st, &err);
		if (rc && !l->err.code)
			err_copy(&l->err, &err);
		print_stat(&st);
	}
	print_name(name);
	puts(kind == ENGINE_DIR ? "/" : "");
}

static int list_entry(void *arg, const char *name, enum engine_kind kind)
{
	struct listing *l = arg;
	char *path = NULL;
	if (asprintf(&path, "%s%s%s", l->c->path, l->c->path[0] ? "/" : "", name) < 0)
		return -ENOMEM;
	print_entry(l, path, name, kind);
	free(path);
	return ferror(stdout) ? -EIO : 0;
}

static int list(struct listing *l)
{
	struct command *c = l->c;
	struct engine_stat st;
	struct err err = ERR_INIT;
	int rc = engine_getattr(c->engine, c->path, &st, &err);
	if (!rc && st.kind == ENGINE_DIR)
		rc = engine_list(c->engine, c->path, list_entry, l, &err);
	else if (!rc)
		print_entry(l, c->path, c->path, st.kind);
	if (!rc && l->err.code) {
		rc = l->err.code;
		err_copy(&err, &l->err);
	}
	if (!rc && fflush(stdout))
		rc = err_errno(&err, -errno, "standard output");
	if (rc && !err.code)
		err_errno(&err, rc, "standard output");
	return rc ? command_failed(&err) : EXIT_OK;
}

int command_ls(struct command *c, int argc, char **argv)
{
	struct listing l = {.c = c};
	int opt;
	while ((opt = getopt_long(argc, argv, "l", no_longs, NULL)) != -1) {
		if (opt != 'l')
			return command_usage("usage: ls [-l] BUCKET[/PATH]");
		l.details = true;
	}
	int left = argc - optind;
	if (left > 1 || (left == 0 && !c->bucket))
		return command_usage("usage: ls [-l] BUCKET[/PATH]");
	int status = command_open(c, left ? argv[optind] : "");
	return status ? status : list(&l);
}

static int print_line(void *arg, const char *line)
{
	print_name(line);
	putchar('\n');
	return ferror(stdout) ? -EIO : 0;
}

int command_info(struct command *c, int argc, char **argv)
{
	static const struct option longs[] = {
		{"verify", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	bool verify = false;
	struct err err = ERR_INIT;
	int opt;
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt != 'v')
			return command_usage("usage: info [--verify] BUCKET/DOMAIN");
		verify = true;
	}
	if (argc - optind != 1)
		return command_usage("usage: info [--verify] BUCKET/DOMAIN");
	int status = command_open(c, argv[optind]);
	if (status)
		return status;
	/* The description names what was left out itself. */
	if (c->options.log_level == LOG_LEVEL_WARNING)
		log_set_level(c->log, LOG_LEVEL_ERROR);
	int rc = engine_info(c->engine, c->path, verify, print_line, NULL, &err);
	if (fflush(stdout) && !rc)
		rc = err_errno(&err, -errno, "standard output");
	if (rc && !err.code)
		err_errno(&err, rc, "standard output");
	return rc ? command_failed(&err) : EXIT_OK;
}
