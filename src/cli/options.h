/* SPDX-License-Identifier: Apache-2.0 */
/* What both programs understand after -o, and how they speak to people. Main thread only. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <hsmount/log.h>
#include <base/str.h>

#include "metrics_address.h"

/* Exit statuses of both programs. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum { OPTIONS_S3_TEXTS = 5 };

struct options {
	struct engine_options engine;
	enum log_level log_level;
	char *fault;		    /* owns engine.debug_fault */
	char *cache_dir;	    /* owns engine.cache_dir */
	bool has_cache_disk_size;   /* somebody has said how large it may get */
	char *s3[OPTIONS_S3_TEXTS]; /* own the texts of engine.s3 */
	/* Only where something is mounted. */
	bool mounting;
	bool allow_other, default_permissions;
	uid_t uid;
	gid_t gid;
	mode_t umask;
	struct metrics_address metrics; /* where they are served; n 0: nowhere */
	struct str mount;     /* options for the kernel and fusermount3, comma-separated */
	struct option *longs; /* options_longs() */
};

enum { OPTIONS_LONG = 1000 /* what getopt_long() gives for the first of the table */ };

void options_init(struct options *o, bool mounting);
void options_release(struct options *o);
/* One argument of -o: comma-separated, "\" takes the next character as it is. -EINVAL with the
 * reason. */
int options_add(struct options *o, const char *list, struct err *err);
/* For getopt_long(): own, which ends with a name of NULL, and behind it every option of -o that the
 * program has, as --name with "-" for "_". NULL without memory; o's until options_release(). */
const struct option *options_longs(struct options *o, const struct option *own);
/* One of these, by what getopt_long() gave. */
int options_add_long(struct options *o, int c, const char *value, struct err *err);

/* When all were added: what goes together. -EINVAL with the reason. */
int options_check(const struct options *o, struct err *err);

/* "hsimage: what: why" on stderr; returns EXIT_FAILED. */
int complain(const char *program, const struct err *err);
/* The lines of -o that both programs have, for their --help. */
extern const char options_help[];

#endif
