/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage: the engine without FUSE. Lists a bucket, describes a domain, writes a domain out as an
 * HDF5 file. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "shutdown.h"

enum { CLOSE_MS = 200 };

static const char help[] =
	"usage: hsimage [OPTIONS] COMMAND [ARGUMENTS]\n"
	"Looks into a bucket of HDF5 domains without mounting it.\n"
	"\n"
	"  ls [-l] BUCKET[/PATH]                     list a directory, with -l modes, sizes, "
	"times\n"
	"  info [--verify] BUCKET/DOMAIN             what is in a domain and what is wrong with "
	"it;\n"
	"                                            --verify reads all of it\n"
	"  export [-o FILE] BUCKET/DOMAIN [FILE]     write it as an HDF5 file; - is standard "
	"output,\n"
	"                                            no FILE: the domain's name, in this "
	"directory\n"
	"\n"
	"BUCKET/PATH: names as in a mount (\".h5\" is appended to domains without extension). The\n"
	"bucket is the nearest directory, from the argument upwards, that has the service's "
	"\"db\"\n"
	"directory in it; in S3, what is behind s3://. With -b BUCKET the argument is a path in\n"
	"that bucket instead.\n"
	"\n"
	"  -b, --bucket BUCKET   a directory, file:///DIRECTORY or s3://BUCKET[/PREFIX]\n"
	"  -o OPTION[,OPTION…]   see below\n"
	"      --NAME[=VALUE]    the same as -o NAME[=VALUE], with - for _\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n"
	"\n"
	"Options, with their defaults:\n";

static const char help_exit[] =
	"\n"
	"Exit status: 0 done, 1 failed (with what and why on standard error), 2 wrong usage.\n";

/* A command that has failed does not wait for its prefetches: they would take as long as the bucket
 * lets them. */
static void end_command(struct command *c, int status)
{
	if (status == EXIT_OK) {
		command_close(c);
	} else if (!shutdown_in_time(command_close, c, CLOSE_MS)) {
		fflush(NULL);
		_exit(status);
	}
}

static int run(struct command *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct command *c, int argc, char **argv);
	} commands[] = {{"ls", command_ls}, {"info", command_info}, {"export", command_export}};
	if (argc < 1)
		return command_usage("missing operand: COMMAND is required: ls, info or export");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[0]) == 0) {
			c->log = log_new(COMMAND_PROGRAM, c->options.log_level, false);
			int status = commands[i].run(c, argc, argv);
			end_command(c, status);
			log_free(c->log);
			return status;
		}
	char why[128];
	snprintf(why, sizeof(why), "%s: no such command", argv[0]);
	return command_usage(why);
}

/* -1: go on; else an exit status. */
static int parse_one(struct command *c, int opt)
{
	struct err err = ERR_INIT;
	int rc = 0;
	switch (opt) {
	case 'b':
		c->bucket = optarg;
		return -1;
	case 'o':
		rc = options_add(&c->options, optarg, &err);
		break;
	case 'h':
		printf("%s%s%s", help, options_help, help_exit);
		return EXIT_OK;
	case 'V':
		printf("%s %s\n", COMMAND_PROGRAM, HSMOUNT_VERSION);
		return EXIT_OK;
	default:
		if (opt < OPTIONS_LONG)
			return command_usage("the command line is not understood");
		rc = options_add_long(&c->options, opt, optarg, &err);
	}
	return rc ? command_usage(err.msg) : -1;
}

int main(int argc, char **argv)
{
	static const struct option own[] = {
		{"bucket", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct command c = {0};
	struct err err = ERR_INIT;
	int status = -1, opt;
	allocator_setup();
	options_init(&c.options, false);
	const struct option *longs = options_longs(&c.options, own);
	if (!longs)
		status = command_usage("out of memory");
	/* "+": what follows the command is the command's. */
	while (status < 0 && (opt = getopt_long(argc, argv, "+b:o:hV", longs, NULL)) != -1)
		status = parse_one(&c, opt);
	if (status < 0 && options_check(&c.options, &err))
		status = command_usage(err.msg);
	if (status < 0) {
		argc -= optind;
		argv += optind;
		optind = 0; /* the commands begin anew */
		status = run(&c, argc, argv);
	}
	options_release(&c.options);
	return status;
}
