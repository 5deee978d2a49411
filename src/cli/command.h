/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of hsimage. Each returns an exit status and has said what went wrong. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "options.h"

#define COMMAND_PROGRAM "hsimage"

struct command {
	struct options options;
	const char *bucket; /* -b, or NULL */
	struct log *log;
	/* Of the engine that is open. */
	struct engine *engine;
	struct engine_file *file; /* or NULL */
	char *bucket_path;
	char *path; /* in the mount */
};

/* Splits the argument (or takes it as a path in -b's bucket) and opens the bucket. Returns 0 or an
 * exit status. */
int command_open(struct command *c, const char *arg);
/* Closes what command_open() has opened. command: the struct command. */
void command_close(void *command);
int command_failed(const struct err *err);
int command_usage(const char *text);

/* ls.c, export.c */
int command_ls(struct command *c, int argc, char **argv);
int command_info(struct command *c, int argc, char **argv);
int command_export(struct command *c, int argc, char **argv);

#endif
