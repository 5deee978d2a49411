/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands of hsimage use: opening the bucket, output, and errors. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <base/printable.h>

int command_failed(struct command *c, const struct err *err)
{
	progress_clear(&c->progress);
	return complain(COMMAND_PROGRAM, err);
}

char *command_file_in(const char *dir, const char *operand)
{
	size_t end = strlen(operand);
	char *path;
	while (end > 1 && operand[end - 1] == '/')
		end--;
	size_t start = end;
	while (start && operand[start - 1] != '/')
		start--;
	return asprintf(&path, "%s/%.*s", dir, (int)(end - start), operand + start) < 0 ? NULL
											: path;
}

/* Returns a copy of path without leading and trailing slashes, on the heap. */
static char *trimmed(const char *path)
{
	while (*path == '/')
		path++;
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	return strndup(path, n);
}

static int find_bucket(struct command *c, struct err *err)
{
	static const char s3[] = "s3:";
	const char *operand = c->operands[0] ? c->operands[0] : "";
	if (!c->bucket) {
		const bool make = c->options.engine.make_bucket;
		int rc = engine_split(operand, &c->bucket_path, &c->path, err);
		if (rc == -ENOENT && (make ? engine_split_new : engine_split_absent)(
					     operand, &c->bucket_path, &c->path, NULL) == 0)
			rc = 0;
		if (rc == -ENOENT && strncmp(operand, s3, sizeof(s3) - 1) == 0) {
			const char *name = operand + sizeof(s3) - 1;
			err_set(err, rc, "%s: No such file or directory; did you mean s3://%s?",
				operand, name + strspn(name, "/"));
		} else if (rc == -ENOENT) {
			const struct err why = *err;
			err_set(err, rc, "%s; name the bucket%s with -b", why.msg,
				make ? ", or an empty directory for a new one," : "");
		}
		return rc;
	}
	c->bucket_path = strdup(c->bucket);
	c->path = trimmed(operand);
	return c->bucket_path && c->path ? 0 : err_no_memory(err);
}

static int take_name(void *command, const char *name, enum engine_kind kind)
{
	struct command *c = command;
	free(c->path);
	c->path = strdup(name);
	return c->path ? 0 : -ENOMEM;
}

/* Opens a single store in a bucket that may not be listed, as a mount of the store does. Its file
 * is the only entry of the bucket then. */
static int open_store(struct command *c, struct err *err)
{
	auto_free char *place = NULL;
	if (asprintf(&place, "%s/%s", c->bucket_path, c->path) < 0)
		return err_no_memory(err);
	c->options.engine.bucket = place;
	const int rc = engine_open(&c->options.engine, &c->engine, err);
	c->options.engine.bucket = c->bucket_path;
	return rc ? rc : engine_list(c->engine, "", take_name, c, err);
}

int command_open(struct command *c)
{
	struct err err = ERR_INIT;
	int rc = find_bucket(c, &err);
	if (!rc) {
		c->options.engine.bucket = c->bucket_path;
		c->options.engine.log = c->log;
		c->options.engine.expects_stores = true; /* no earlier listing has shown one */
		log_set_name(c->log, c->bucket_path);
		rc = engine_open(&c->options.engine, &c->engine, &err);
		if (rc == -EACCES && c->path[0] && open_store(c, NULL) == 0)
			rc = 0;
	}
	return rc ? command_failed(c, &err) : 0;
}

void command_close(void *command)
{
	struct command *c = command;
	engine_file_close(c->file);
	engine_close(c->engine);
	free(c->bucket_path);
	free(c->path);
	c->file = NULL;
	c->engine = NULL;
	c->bucket_path = c->path = NULL;
}

void command_print_line(void *command, const char *line)
{
	struct command *c = command;
	progress_clear(&c->progress);
	fprintf(stderr, COMMAND_PROGRAM ": %s\n", line);
}

int command_print_name(const char *name)
{
	const size_t cap = 4 * strlen(name) + 1;
	auto_free char *shown = malloc(cap);
	if (!shown)
		return -ENOMEM;
	printable(shown, cap, name);
	return fputs(shown, stdout) == EOF ? -errno : 0;
}

int command_result(struct command *c, int rc, struct err *err)
{
	if (rc && !err->code)
		err_errno(err, rc, "standard output");
	return rc ? command_failed(c, err) : EXIT_OK;
}
