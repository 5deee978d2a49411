/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage check: looks for damage in domains and HDF5 files. The findings are the result, so they
 * go to standard output, as lines for people or as JSON. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include <hsmount/check.h>

#include "check_format.h"

struct checking {
	struct command *c;
	struct check_format format;
};

static int print(struct checking *k, struct str *text)
{
	progress_clear(&k->c->progress);
	int rc = !str_ok(text) ? -ENOMEM : fputs(str_text(text), stdout) == EOF ? -errno : 0;
	str_release(text);
	return rc;
}

static int take_finding(void *arg, const struct engine_check_finding *f)
{
	struct checking *k = arg;
	struct str text = {0};
	check_format_finding(&k->format, f, &text);
	return print(k, &text);
}

static int take_result(void *arg, const struct engine_check_result *r)
{
	struct checking *k = arg;
	struct str text = {0};
	check_format_result(&k->format, r, &text);
	int rc = print(k, &text);
	return rc ? rc : fflush(stdout) ? -errno : 0;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct checking *k = arg;
	progress_set(&k->c->progress, done, total);
}

/* Returns whether the operand is an HDF5 file. In a directory bucket, domains are directories, so a
 * regular file is one. */
static bool is_file(const struct command *c)
{
	struct stat st;
	return !c->bucket && c->operands[0] && stat(c->operands[0], &st) == 0 &&
	       !S_ISDIR(st.st_mode);
}

int command_check(struct command *c)
{
	struct checking k = {.c = c, .format = {.json = c->json}};
	struct err err = ERR_INIT;
	struct str totals = {0};
	const struct engine_check_sink sink = {
		.finding = take_finding,
		.result = take_result,
		.progress = show_progress,
		.arg = &k,
	};
	const bool local = is_file(c);
	int rc, status = local ? 0 : command_open(c);
	if (status)
		return status;
	/* The findings name what the log would warn of. */
	if (c->options.log_level == LOG_LEVEL_WARNING)
		log_set_level(c->log, LOG_LEVEL_ERROR);
	progress_start(&c->progress);
	if (local)
		rc = engine_check_file(c->operands[0], c->all, &sink, &err);
	else
		rc = engine_check(c->engine, c->path, c->all, &sink, &err);
	if (!rc) {
		check_format_totals(&k.format, &totals);
		rc = print(&k, &totals);
	}
	progress_clear(&c->progress);
	str_release(&k.format.findings);
	status = command_result(c, rc, &err);
	return status ? status : check_format_is_sound(&k.format) ? EXIT_OK : EXIT_FAILED;
}
