/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of hsimage. Each prints its errors and returns an exit status. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "options.h"
#include "progress.h"

#define COMMAND_PROGRAM "hsimage"

/* Options of recover and undelete. */
struct command_recover {
	bool yes;
	const char *journal_dir; /* NULL for the default */
};

/* Options of clean. --yes is that of recover. */
struct command_clean {
	bool used; /* one of them was given */
	bool dry_run;
	const char *prefix; /* or NULL */
	uint64_t age_s;	    /* 0 for the default */
	bool agreed;	    /* the user has agreed */
};
enum { CLEAN_AGE_S = 24 * 3600 };

struct command {
	struct options options;
	/* From the command line; borrowed. */
	const char *bucket;	 /* -b, or NULL */
	const char *operands[2]; /* after the command's name; NULL if not given */
	char *const *words;	 /* all operands, then NULL */
	bool details;		 /* ls -l */
	bool verify;		 /* info --verify, link --verify */
	const char *output;	 /* export --output, or NULL */
	bool force;		 /* export, recover export */
	bool all;		 /* check */
	bool json;		 /* check, recover list */
	struct engine_import import;
	bool imports;	/* an option of import was given */
	const char *as; /* link --as, or NULL */
	bool fastlink;	/* link --fastlink */
	struct command_recover recover;
	struct command_clean clean;
	struct log *log;
	struct progress progress;
	/* Set by command_open(); file by the command. */
	struct engine *engine;
	struct engine_file *file; /* NULL if none is open */
	char *bucket_path;
	char *path; /* in the mount */
};

/* Finds the bucket and the path in it from the first operand (with -b, the path is the operand),
 * and opens the bucket. Returns 0 or an exit status. */
int command_open(struct command *c);
/* Closes what command_open() has opened. `command` is the struct command. */
void command_close(void *command);
/* Returns the path of a file in a directory that has the last name of an operand, on the heap. NULL
 * if out of memory. */
char *command_file_in(const char *dir, const char *operand);
/* Prints an error. Returns EXIT_FAILED. */
int command_failed(struct command *c, const struct err *err);

/* cmd_check.c, cmd_clean.c, cmd_export.c, cmd_import.c, cmd_info.c, cmd_link.c, cmd_ls.c,
 * cmd_recover.c, cmd_undelete.c */
int command_check(struct command *c);
int command_ls(struct command *c);
int command_info(struct command *c);
int command_export(struct command *c);
int command_import(struct command *c);
int command_link(struct command *c);
int command_recover(struct command *c);
int command_undelete(struct command *c);
int command_clean(struct command *c);

/* cmd_import.c: returns a flag. From now on, an interrupt does not end the program, but sets the
 * flag. */
const atomic_bool *command_interrupted(void);
/* The two parts of command_import(). The first one opens the bucket and fills in c->import. Each
 * returns 0 or an exit status. */
int command_import_open(struct command *c);
int command_import_run(struct command *c);

/* cmd_import.c: the options of import; any other value of getopt_long() is -j. */
enum command_import_options {
	OPTION_REPLACE = 512,
	OPTION_KEEP_STORAGE,
	OPTION_SKIP_UNSUPPORTED,
	OPTION_ABORT,
	OPTION_OWNER,
	OPTION_MIN_CHUNK,
	OPTION_AS,
	OPTION_FASTLINK,
	OPTION_ALLOW_EXTERNAL,
	OPTION_IGNORE_OPEN_FLAG,
};
/* Applies an option. Fails with -EINVAL. */
int command_import_option(struct command *c, int opt, const char *value, struct err *err);
/* Checks that the options fit together. Fails with -EINVAL. */
int command_import_check(const struct command *c, struct err *err);

/* cmd_recover.c: its options. */
enum command_recover_options {
	OPTION_YES = 640,
	OPTION_JOURNAL_DIR,
};
/* Applies an option. Fails with -EINVAL. */
int command_recover_option(struct command *c, int opt, const char *value, struct err *err);
/* Checks the n operands of recover, and that the options fit to them. Fails with -EINVAL. */
int command_recover_check(const struct command *c, char *const *words, int n, struct err *err);

/* cmd_clean.c: its options. */
enum command_clean_options {
	OPTION_DRY_RUN = 768,
	OPTION_PREFIX,
	OPTION_AGE,
};
/* Applies an option. Fails with -EINVAL. */
int command_clean_option(struct command *c, int opt, const char *value, struct err *err);

/* Writes a line to standard error, in place of the progress. `command` is the struct command. */
void command_print_line(void *command, const char *line);
/* Writes a name to standard output. Bytes that a terminal would interpret are shown as \xNN.
 * Returns 0 or a negative errno. */
int command_print_name(const char *name);
/* Ends a command that prints. rc is the command's result; if it is an error and err is not set, it
 * is an error of standard output. Returns an exit status. */
int command_result(struct command *c, int rc, struct err *err);

#endif
