/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage clean: deletes what was left behind in a bucket. What was found is the result, so it goes
 * to standard output; questions and what was kept go to standard error. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <base/str.h>
#include <hsmount/clean.h>

#include "option_values.h"

int command_clean_option(struct command *c, int opt, const char *value, struct err *err)
{
	double seconds;
	c->clean.used = true;
	switch (opt) {
	case OPTION_DRY_RUN:
		c->clean.dry_run = true;
		return 0;
	case OPTION_PREFIX:
		c->clean.prefix = value;
		return *value ? 0 : err_set(err, -EINVAL, "--prefix: must not be empty");
	default:
		if (!value_seconds(value, &seconds) || seconds < ENGINE_CLEAN_AGE_MIN_S)
			return err_set(err, -EINVAL, "--age=%s: must be a time of at least an hour",
				       value);
		c->clean.age_s = (uint64_t)seconds;
		return 0;
	}
}

/* ---- output ---- */

static void add_size(struct str *out, uint64_t objects, uint64_t bytes)
{
	str_addf(out, "%" PRIu64 " %s, %" PRIu64 " bytes", objects,
		 objects == 1 ? "object" : "objects", bytes);
}

/* "storage KEY: 12 objects, 3456 bytes, the last at TIME; it stays: it is younger" */
static int print_item(void *arg, const struct engine_clean_item *item)
{
	static const char *const kinds[] = {[ENGINE_CLEAN_STORAGE] = "storage",
					    [ENGINE_CLEAN_UPLOAD] = "upload",
					    [ENGINE_CLEAN_TEMP] = "temporary file"};
	struct command *c = arg;
	auto_str struct str line = {0};
	str_addf(&line, "%s ", kinds[item->kind]);
	str_add_printable(&line, item->key);
	str_add(&line, ": ");
	if (item->kind != ENGINE_CLEAN_UPLOAD) {
		add_size(&line, item->objects, item->bytes);
		str_add(&line, ", ");
	}
	str_add(&line, item->kind == ENGINE_CLEAN_UPLOAD ? "begun at " : "last written at ");
	str_add_time(&line, item->newest_ns);
	if (item->stays)
		str_addf(&line, "; it stays: %s", item->stays);
	str_add(&line, "\n");
	progress_clear(&c->progress);
	return !str_ok(&line) ? -ENOMEM : fputs(str_text(&line), stdout) == EOF ? -errno : 0;
}

static void add_totals(struct str *out, const struct engine_clean_totals *t)
{
	str_addf(out,
		 "storages %" PRIu64 ", uploads %" PRIu64 ", temporary files %" PRIu64 ", with ",
		 t->items[ENGINE_CLEAN_STORAGE], t->items[ENGINE_CLEAN_UPLOAD],
		 t->items[ENGINE_CLEAN_TEMP]);
	add_size(out, t->objects, t->bytes);
}

static int ask(void *arg, const struct engine_clean_totals *totals)
{
	struct command *c = arg;
	auto_str struct str text = {0};
	char answer[16] = "";
	if (c->recover.yes) {
		c->clean.agreed = true;
		return 1;
	}
	fflush(stdout);
	progress_clear(&c->progress);
	str_add(&text, "Delete this: ");
	add_totals(&text, totals);
	str_add(&text, "? [y/N] ");
	if (!str_ok(&text))
		return -ENOMEM;
	fputs(str_text(&text), stderr);
	c->clean.agreed =
		fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
	return c->clean.agreed;
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	struct command *c = arg;
	progress_count(&c->progress, total ? "objects deleted" : "names read", done);
}

static int print_totals(const struct command *c, const struct engine_clean_totals *t, bool asked)
{
	auto_str struct str line = {0};
	str_add(&line, c->clean.dry_run ? "would be deleted: " : asked ? "deleted: " : "found: ");
	add_totals(&line, t);
	if (t->kept)
		str_addf(&line, "; kept %" PRIu64, t->kept);
	str_add(&line, "\n");
	return !str_ok(&line) ? -ENOMEM : fputs(str_text(&line), stdout) == EOF ? -errno : 0;
}

/* ---- the command ---- */

int command_clean(struct command *c)
{
	struct engine_clean_totals totals;
	struct err err = ERR_INIT;
	if (!c->clean.dry_run && !c->recover.yes && !isatty(STDIN_FILENO)) {
		err_set(&err, -EINVAL,
			"standard input is not a terminal; --yes deletes without a question, "
			"--dry-run deletes nothing");
		return command_failed(c, &err);
	}
	const int status = command_open(c);
	if (status)
		return status;
	if (c->path[0]) {
		err_set(&err, -EINVAL,
			"%s: it is in the bucket %s; name the whole bucket, because all names in "
			"it are needed to tell what is left behind",
			c->path, c->bucket_path);
		return command_failed(c, &err);
	}
	const struct engine_clean opt = {
		.prefix = c->clean.prefix,
		.age_s = c->clean.age_s ? c->clean.age_s : CLEAN_AGE_S,
		.dry_run = c->clean.dry_run,
		.cancelled = command_interrupted(),
		.item = print_item,
		.ask = ask,
		.line = command_print_line,
		.progress = show_progress,
		.arg = c,
	};
	progress_start(&c->progress);
	int rc = engine_clean(c->engine, &opt, &totals, &err);
	progress_clear(&c->progress);
	if (!rc || c->clean.agreed) {
		const int printed = print_totals(c, &totals, c->clean.agreed);
		rc = rc ? rc : printed;
	}
	return command_result(c, rc, &err);
}
