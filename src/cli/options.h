/* SPDX-License-Identifier: Apache-2.0 */
/* The options and operands of both programs, and how they report errors. Main thread only. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/types.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <hsmount/log.h>
#include <base/str.h>

#include "metrics_address.h"

/* Exit statuses of both programs. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
	struct engine_options engine; /* owns its strings, except bucket */
	enum log_level log_level;
	bool has_cache_disk_size;
	struct str given; /* the options of the command line, comma-separated, for the log */
	/* hsmount only */
	bool mounting;
	bool allow_other, default_permissions, nonempty;
	uid_t uid;
	gid_t gid;
	mode_t umask;
	mode_t file_mode, dir_mode;	/* OPTIONS_NO_MODE if they follow from the access control
					 * lists */
	struct metrics_address metrics; /* n is 0 if metrics are not served */
	struct str mount;     /* options for the kernel and fusermount3, comma-separated */
	struct option *longs; /* options_longs() */
};

#define OPTIONS_NO_MODE ((mode_t)-1)

enum { OPTIONS_LONG = 1000 /* getopt_long() returns this for the first long option */ };

void options_init(struct options *o, bool mounting);
void options_release(struct options *o);
/* Parses one argument of -o: comma-separated options. A backslash makes the next character part of
 * the option, and a value in double quotes may contain commas. Fails with -EINVAL. */
int options_add(struct options *o, const char *list, struct err *err);
/* Returns a table for getopt_long(): the entries of own, which ends with a name of NULL, then every
 * option of -o that the program has, as --name with "-" for "_". The table is valid until
 * options_release(). Returns NULL if out of memory. */
const struct option *options_longs(struct options *o, const struct option *own);
/* Applies the long option for which getopt_long() returned c. Fails with -EINVAL. */
int options_add_long(struct options *o, int c, const char *value, struct err *err);
/* Checks that the options fit together. Call it after all options were added. Fails with -EINVAL.
 */
int options_check(const struct options *o, struct err *err);
/* Prints the options of -o by subject, for --help. */
void options_print_help(bool mounting);

/* Checks the number of operands: names lists them, the first `required` are required. Fails with
 * -EINVAL and a message that names what is missing, extra or empty. */
int operands_check(char *const *operands, int n, const char *const *names, int n_names,
		   int required, struct err *err);

/* Returns the name of the user for whom this program runs, valid until the next call of
 * getpwnam(3). */
const char *login_name(void);
/* Returns the owner of new domains and folders: $HS_USERNAME, or the login name. */
const char *owner_name(void);

/* Prints "PROGRAM: message" to standard error and returns EXIT_FAILED. */
int complain(const char *program, const struct err *err);

#endif
