/* SPDX-License-Identifier: Apache-2.0 */
/* What hsimage's commands have in common: the bucket that they open, and how they fail. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_failed(const struct err *err)
{
	return complain(COMMAND_PROGRAM, err);
}

int command_usage(const char *text)
{
	fprintf(stderr, "%s: %s\nTry: %s --help\n", COMMAND_PROGRAM, text, COMMAND_PROGRAM);
	return EXIT_USAGE;
}

/* Without slashes at its ends. */
static char *trimmed(const char *path)
{
	while (*path == '/')
		path++;
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	return strndup(path, n);
}

/* What to do goes last. */
static void name_b(struct err *err)
{
	struct err why = *err;
	err_set(err, why.code, "%s; name the bucket with -b", why.msg);
}

int command_open(struct command *c, const char *arg)
{
	struct err err = ERR_INIT;
	int rc;
	if (c->bucket) {
		c->bucket_path = strdup(c->bucket);
		c->path = trimmed(arg);
		rc = c->bucket_path && c->path ? 0 : err_set(&err, -ENOMEM, "out of memory");
	} else {
		rc = engine_split(arg, &c->bucket_path, &c->path, &err);
		if (rc == -ENOENT)
			name_b(&err);
	}
	if (!rc) {
		c->options.engine.bucket = c->bucket_path;
		c->options.engine.log = c->log;
		rc = engine_open(&c->options.engine, &c->engine, &err);
	}
	return rc ? command_failed(&err) : 0;
}

void command_close(void *arg)
{
	struct command *c = arg;
	engine_file_close(c->file);
	engine_close(c->engine);
	free(c->bucket_path);
	free(c->path);
}
