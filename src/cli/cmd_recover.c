/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage recover: lists, shows, exports, commits and deletes what programs have written to mounts
 * and no bucket has. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hsmount/recover.h>
#include <base/mem.h>

#include "atomic_file.h"
#include "journal_dir.h"
#include "recover_format.h"

enum { PIECE = 4 << 20 };

/* ---- the command line ---- */

enum { LIST, SHOW, EXPORT, COMMIT, DROP, ACTIONS };

static const struct action {
	const char *name;
	const char *operands[2];
	int required, most;
	bool asks; /* it asks before, and takes any number of ids */
} actions[ACTIONS] = {
	[LIST] = {"list", {"BUCKET"}, 0, 1},	     [SHOW] = {"show", {"ID"}, 1, 1},
	[EXPORT] = {"export", {"ID", "FILE"}, 2, 2}, [COMMIT] = {"commit", {"ID"}, 1, 1, true},
	[DROP] = {"drop", {"ID"}, 1, 1, true},
};

static int find_action(const char *name)
{
	int i = 0;
	while (i < ACTIONS && strcmp(actions[i].name, name) != 0)
		i++;
	return i;
}

int command_recover_option(struct command *c, int opt, const char *value, struct err *err)
{
	struct command_recover *r = &c->recover;
	switch (opt) {
	case OPTION_YES:
		r->yes = true;
		return 0;
	default:
		r->journal_dir = value;
		return *value ? 0 : err_set(err, -EINVAL, "--journal-dir: must not be empty");
	}
}

int command_recover_check(const struct command *c, char *const *words, int n, struct err *err)
{
	const struct command_recover *r = &c->recover;
	if (!n)
		return err_set(err, -EINVAL,
			       "missing operand: list, show, export, commit or drop is required");
	const int i = find_action(words[0]);
	if (i == ACTIONS)
		return err_set(err, -EINVAL, "recover %s: no such command", words[0]);
	const char *foreign = c->force && i != EXPORT	   ? "--force"
			      : r->yes && !actions[i].asks ? "--yes"
			      : c->json && i != LIST	   ? "--json"
							   : NULL;
	if (foreign)
		return err_set(err, -EINVAL, "recover %s has no option %s", words[0], foreign);
	for (int k = 1; actions[i].asks && k < n; k++)
		if (!words[k][0])
			return err_set(err, -EINVAL, "empty operand: ID");
	const int most = actions[i].most, count = actions[i].asks && n > 2 ? 1 : n - 1;
	return operands_check(words + 1, count, actions[i].operands, most, actions[i].required,
			      err);
}

/* ---- list ---- */

struct listing {
	const struct command *c;
	bool waits;
};

static int print_item(void *arg, const struct engine_draft_item *item)
{
	struct listing *l = arg;
	auto_str struct str line = {0};
	if (l->c->json)
		recover_format_json(item, &line);
	else
		recover_format_text(item, &line);
	l->waits |= recover_format_waits(item);
	return !str_ok(&line) ? -ENOMEM : fputs(str_text(&line), stdout) == EOF ? -errno : 0;
}

static int list(struct command *c, struct engine_drafts *drafts)
{
	struct listing l = {.c = c};
	struct err err = ERR_INIT;
	const char *bucket = c->words[1] ? c->words[1] : c->bucket;
	int rc = engine_drafts_list(drafts, bucket, print_item, &l, &err);
	const int status = command_result(c, rc, &err);
	return status ? status : l.waits ? EXIT_FAILED : EXIT_OK;
}

/* ---- show ---- */

static int print_line(void *arg, const char *line)
{
	int rc = command_print_name(line);
	return rc ? rc : putchar('\n') == EOF ? -errno : 0;
}

static int show(struct command *c, struct engine_drafts *drafts)
{
	struct err err = ERR_INIT;
	int rc = engine_drafts_show(drafts, c->words[1], print_line, NULL, &err);
	return command_result(c, rc, &err);
}

/* ---- export ---- */

struct copy {
	struct command *c;
	struct engine_draft *in;
	struct atomic_file out;
	uint64_t done, total; /* bytes; holes that are not written do not count */
	void *buf;	      /* of PIECE bytes */
};

static int copy_range(struct copy *k, uint64_t at, uint64_t end, struct err *err)
{
	int rc = 0;
	for (size_t n; !rc && at < end; at += n) {
		n = (size_t)min_u64(end - at, PIECE);
		rc = engine_draft_read(k->in, k->buf, n, at, err);
		if (!rc)
			rc = atomic_file_write(&k->out, k->buf, n, at, err);
		k->done += n;
		progress_set(&k->c->progress, k->done, k->total);
	}
	return rc;
}

static int copy_bytes(struct copy *k, struct err *err)
{
	uint64_t start, end = 0;
	int rc = 0;
	if (k->out.is_stream) { /* a pipe cannot skip holes */
		k->total = engine_draft_size(k->in);
		return copy_range(k, 0, k->total, err);
	}
	while (engine_draft_next(k->in, &start, &end))
		k->total += end - start;
	for (end = 0; !rc && engine_draft_next(k->in, &start, &end);)
		rc = copy_range(k, start, end, err);
	return rc;
}

static int copy_all(struct copy *k, const char *file, struct err *err)
{
	auto_free void *buf = malloc(PIECE);
	if (!buf)
		return err_no_memory(err);
	k->buf = buf;
	int rc = atomic_file_open(&k->out, file, k->c->force, engine_draft_size(k->in), err);
	if (!rc)
		rc = copy_bytes(k, err);
	return rc ? rc : atomic_file_commit(&k->out, err);
}

static int export_draft(struct command *c, struct engine_drafts *drafts)
{
	struct copy k = {.c = c, .out = {.fd = -1}};
	struct err err = ERR_INIT;
	const char *id = c->words[1], *file = c->words[2];
	int rc = engine_draft_open(drafts, id, &c->options.engine, &k.in, &err);
	if (!rc) {
		progress_start(&c->progress);
		rc = copy_all(&k, file, &err);
	}
	atomic_file_close(&k.out);
	engine_draft_close(k.in);
	if (rc)
		return command_failed(c, &err);
	progress_finish(&c->progress);
	return EXIT_OK;
}

/* ---- commit and drop ---- */

struct question {
	const char *id;
	bool commits;
	struct str text;
};

static int ask_about(void *arg, const struct engine_draft_item *item)
{
	struct question *q = arg;
	if (strncmp(item->id, q->id, strlen(q->id)) == 0 && !q->text.b.len)
		recover_format_question(item, q->commits, &q->text);
	return 0;
}

/* Asks whether the user wants it. An id that does not exist is reported later. */
static bool is_wanted(const struct command *c, struct engine_drafts *drafts, const char *id,
		      bool commits)
{
	struct question q = {.id = id, .commits = commits};
	char answer[16] = "";
	if (c->recover.yes)
		return true;
	engine_drafts_list(drafts, NULL, ask_about, &q, NULL);
	const bool asks = q.text.b.len > 0;
	fputs(str_text(&q.text), stderr);
	str_release(&q.text);
	return !asks ||
	       (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'));
}

static void print_note(void *arg, const char *line)
{
	struct err err;
	err_set(&err, 0, "%s: %s", (const char *)arg, line);
	fprintf(stderr, COMMAND_PROGRAM ": %s\n", err.msg);
}

/* Calls fn for each draft for which the user wants it. */
static int each_wanted(struct command *c, struct engine_drafts *drafts, bool commits,
		       int (*fn)(struct command *c, struct engine_drafts *drafts, char *id,
				 struct err *err))
{
	int status = EXIT_OK;
	struct err err = ERR_INIT;
	if (!c->recover.yes && !isatty(STDIN_FILENO)) {
		err_set(&err, -EINVAL,
			"standard input is not a terminal; --yes %s without a question",
			commits ? "commits" : "deletes");
		return command_failed(c, &err);
	}
	for (size_t i = 1; c->words[i]; i++)
		if (is_wanted(c, drafts, c->words[i], commits) && fn(c, drafts, c->words[i], &err))
			status = command_failed(c, &err);
	return status;
}

static int commit_one(struct command *c, struct engine_drafts *drafts, char *id, struct err *err)
{
	const struct engine_draft_commit opt = {.bucket = &c->options.engine,
						.cancelled = command_interrupted(),
						.line = print_note,
						.arg = id};
	return engine_drafts_commit(drafts, id, &opt, err);
}

static int commit(struct command *c, struct engine_drafts *drafts)
{
	c->options.engine.user = owner_name();
	return each_wanted(c, drafts, true, commit_one);
}

static int drop_one(struct command *c, struct engine_drafts *drafts, char *id, struct err *err)
{
	return engine_drafts_drop(drafts, id, &c->options.engine, print_note, id, err);
}

static int drop(struct command *c, struct engine_drafts *drafts)
{
	return each_wanted(c, drafts, false, drop_one);
}

/* ---- the command ---- */

int command_recover(struct command *c)
{
	static int (*const run[ACTIONS])(struct command * c,
					 struct engine_drafts * drafts) = {[LIST] = list,
									   [SHOW] = show,
									   [EXPORT] = export_draft,
									   [COMMIT] = commit,
									   [DROP] = drop};
	auto_free char *by_default = c->recover.journal_dir ? NULL : journal_dir_default();
	const char *dir = by_default ? by_default : c->recover.journal_dir;
	const int action = find_action(c->words[0]);
	struct engine_drafts *drafts;
	struct err err = ERR_INIT;
	if (!dir)
		err_no_memory(&err);
	else
		engine_drafts_open(dir, &drafts, &err);
	/* No mount has ever written anything. */
	if (err.code == -ENOENT && by_default && action == LIST)
		return EXIT_OK;
	if (err.code)
		return command_failed(c, &err);
	c->options.engine.bucket = c->bucket;
	c->options.engine.log = c->log;
	const int status = run[action](c, drafts);
	engine_drafts_close(drafts);
	return status;
}
