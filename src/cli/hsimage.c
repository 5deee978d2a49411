/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage: the engine without FUSE. Lists a bucket, describes a domain, writes a domain out as an
 * HDF5 file, checks domains and files, stores an HDF5 file as a domain or links it, and saves what
 * a mount has not brought into the bucket, and brings removed domains back. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/mem.h>

#include "allocator.h"
#include "shutdown.h"

enum { CLOSE_MS = 200 };
enum {
	OPTION_VERIFY = 256,
	OPTION_OUTPUT,
	OPTION_FORCE,
	OPTION_ALL,
	OPTION_JSON
}; /* returned by getopt_long() */

static const char help[] =
	"usage: hsimage [OPTIONS] COMMAND [ARGUMENTS]\n"
	"Works with a bucket of HDF5 domains without mounting it.\n"
	"\n"
	"  ls [-l] BUCKET[/PATH]           list a directory\n"
	"  info [--verify] BUCKET/DOMAIN   describe a domain and what is wrong with it\n"
	"  export BUCKET/DOMAIN [FILE]     write a domain as an HDF5 file\n"
	"  check [--all] [--json] BUCKET[/PATH] | FILE\n"
	"                                  look for damage in domains or in an HDF5 file\n"
	"  clean [--dry-run] BUCKET        delete what was left behind\n"
	"  import FILE BUCKET/DOMAIN       store an HDF5 file as a new domain\n"
	"  link FILE BUCKET/DOMAIN         make a domain of an HDF5 file without copying its data\n"
	"  recover list|show|export|commit|drop\n"
	"                                  files that programs wrote and the bucket does not have\n"
	"  undelete BUCKET[/DOMAIN]        bring a removed domain back\n"
	"  help [COMMAND]                  this text, or more about a command\n"
	"\n"
	"PATH and DOMAIN are names as in a mount (\".h5\" is appended to domains without\n"
	"extension). The bucket is the nearest directory, from the operand upwards, that\n"
	"contains the storage of HSDS (\"db\", or objects of schema version 1); in S3, the\n"
	"first name after s3://.\n"
	"\n"
	"  -b, --bucket BUCKET   a directory, file:///DIRECTORY or s3://BUCKET[/PREFIX]; the\n"
	"                        operand is then a path in that bucket\n"
	"  -o OPTION[,OPTION…]   see below\n"
	"      --NAME[=VALUE]    the same as -o NAME[=VALUE], with - for _\n"
	"  -h, --help            this text, or more about a command\n"
	"  -V, --version         the version\n"
	"\n"
	"Options, with their defaults in parentheses. A SIZE is a number of bytes, or a\n"
	"number with K, M, G or T. A TIME is a number of seconds, or a number with s, m, h\n"
	"or d.\n";

static const char help_exit[] =
	"\n"
	"Exit status: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.\n";

static const struct command_def {
	const char *name;
	int (*run)(struct command *c);
	const char *operand; /* the first operand, unless -b names the bucket */
	const char *help;
} commands[] = {
	{"ls", command_ls, "BUCKET[/PATH]",
	 "usage: hsimage [OPTIONS] ls [-l] BUCKET[/PATH]\n"
	 "       hsimage [OPTIONS] -b BUCKET ls [-l] [PATH]\n"
	 "Lists a directory as a mount shows it. Directories end with \"/\".\n"
	 "\n"
	 "  -l   show permissions, sizes in bytes and times (UTC), too; \"~\" in front of a\n"
	 "       size: an estimate; see the option \"stat\"\n"},
	{"info", command_info, "BUCKET/DOMAIN",
	 "usage: hsimage [OPTIONS] info [--verify] BUCKET/DOMAIN...\n"
	 "       hsimage [OPTIONS] -b BUCKET info [--verify] DOMAIN...\n"
	 "Describes a domain: its objects, what they take in the bucket, and each part that is\n"
	 "left out because it is damaged. Of an HDF5 file that a mount has stored as it is, says\n"
	 "why.\n"
	 "\n"
	 "  --verify   read the whole file and report each chunk that cannot be read\n"},
	{"export", command_export, "BUCKET/DOMAIN",
	 "usage: hsimage [OPTIONS] export [--force] BUCKET/DOMAIN [FILE]\n"
	 "       hsimage [OPTIONS] export [--force] BUCKET/DOMAIN... DIRECTORY\n"
	 "       hsimage [OPTIONS] -b BUCKET export [--force] DOMAIN [FILE]\n"
	 "Writes a domain as an HDF5 file, any other object as it is. In a DIRECTORY, which\n"
	 "exists, the file has the name of the domain.\n"
	 "\n"
	 "  FILE, --output FILE   the file or directory to write to; \"-\" is standard output\n"
	 "  --force               replace FILE if it exists; its permissions stay\n"
	 "\n"
	 "Without FILE, the bytes go to standard output if that is not a terminal\n"
	 "(hsimage export BUCKET/DOMAIN > FILE), else to a file with the domain's name in the\n"
	 "current directory. A file is written whole or not at all.\n"},
	{"check", command_check, "BUCKET[/PATH] or FILE",
	 "usage: hsimage [OPTIONS] check [--all] [--json] BUCKET[/PATH]...\n"
	 "       hsimage [OPTIONS] -b BUCKET check [--all] [--json] [PATH...]\n"
	 "       hsimage check [--all] [--json] FILE...\n"
	 "Looks for damage in a domain, in every domain below a directory, or in an HDF5 file.\n"
	 "Reads documents, links, keys and a sample of the chunks, renders each domain as a file\n"
	 "and reads that back. Writes nothing. Prints a line for each finding, then the result.\n"
	 "\n"
	 "  --all    read and decode every chunk, instead of at most 64 of each dataset and 1000\n"
	 "           of each domain\n"
	 "  --json   print one JSON object for each domain or file\n"
	 "\n"
	 "Exit status: 0 everything is sound, 1 something is damaged, could not be checked, or is\n"
	 "an import that is not finished.\n"},
	{"clean", command_clean, "BUCKET",
	 "usage: hsimage [OPTIONS] clean [--dry-run] [--age TIME] [--prefix KEY] [--yes] BUCKET\n"
	 "       hsimage [OPTIONS] -b BUCKET clean [--dry-run] [--age TIME] [--prefix KEY] "
	 "[--yes]\n"
	 "Deletes storage to which no domain and no unfinished import leads, uploads in parts to\n"
	 "such storage that were not finished, and temporary files of a directory bucket. Lists\n"
	 "them and asks first. Deletes nothing unless all domains of the bucket can be read.\n"
	 "\n"
	 "  --dry-run      list them only; nothing is written\n"
	 "  --age TIME     only what has not changed for so long, by the clock of the bucket (1d;\n"
	 "                 at least 1h)\n"
	 "  --prefix KEY   only what has a key that begins with KEY\n"
	 "  -y, --yes      do not ask\n"},
	{"import", command_import, "BUCKET/DOMAIN",
	 "usage: hsimage [OPTIONS] import FILE BUCKET/DOMAIN\n"
	 "       hsimage [OPTIONS] -b BUCKET import FILE DOMAIN\n"
	 "       hsimage [OPTIONS] import --abort BUCKET/DOMAIN\n"
	 "Stores an HDF5 file as a new domain. If DOMAIN is a folder or ends with \"/\", the\n"
	 "name of the file is appended. The domain appears when it is complete. An import that\n"
	 "was interrupted is continued by the same command. An empty directory becomes a bucket.\n"
	 "\n"
	 "  --replace            replace a domain that exists, and delete its storage\n"
	 "  --keep-storage       with --replace: keep the storage of the old domain\n"
	 "  --skip-unsupported   leave out what a domain cannot hold, and list it; without this\n"
	 "                       option such a file is refused\n"
	 "  --ignore-open-flag   take a file that is marked as open for writing\n"
	 "  --allow-external DIR read raw data that are in files of DIR (external file lists)\n"
	 "  --min-chunk SIZE     join neighbouring chunks until each has SIZE bytes\n"
	 "  --owner NAME         the owner of the domain ($HS_USERNAME, or else the owner of the\n"
	 "                       folder)\n"
	 "  -j, --jobs N         objects to put at the same time (64 in S3, 16 in a directory)\n"
	 "  --abort              remove what an unfinished import has stored\n"},
	{"link", command_link, "BUCKET/DOMAIN",
	 "usage: hsimage [OPTIONS] link BUCKET/FILE BUCKET/DOMAIN\n"
	 "       hsimage [OPTIONS] link --as KEY FILE BUCKET/DOMAIN\n"
	 "       hsimage [OPTIONS] -b BUCKET link KEY DOMAIN\n"
	 "       hsimage [OPTIONS] link --abort BUCKET/DOMAIN\n"
	 "Makes a domain of an HDF5 file in the same bucket. The domain refers to the data,\n"
	 "which stay in the file: without --verify only its metadata are read. Otherwise like\n"
	 "import.\n"
	 "\n"
	 "  --as KEY             FILE is a local file that has, or will have, this key\n"
	 "  --fastlink           store no chunk tables: readers look up chunks in the file\n"
	 "  --verify             read all data of the file first, and refuse a file that has "
	 "chunks\n"
	 "                       that cannot be decoded\n"
	 "  --replace            replace a domain that exists, and delete its storage\n"
	 "  --keep-storage       with --replace: keep the storage of the old domain\n"
	 "  --skip-unsupported   leave out what a domain cannot hold, and list it\n"
	 "  --ignore-open-flag   take a file that is marked as open for writing\n"
	 "  --allow-external DIR copy raw data that are in files of DIR (external file lists)\n"
	 "  --owner NAME         the owner of the domain\n"
	 "  -j, --jobs N         objects to put at the same time (64 in S3, 16 in a directory)\n"
	 "  --abort              remove what an unfinished link has stored\n"},
	{"recover", command_recover, "list, show, export, commit or drop",
	 "usage: hsimage [OPTIONS] recover list [--json] [BUCKET]\n"
	 "       hsimage [OPTIONS] recover show ID\n"
	 "       hsimage [OPTIONS] recover export [--force] ID FILE\n"
	 "       hsimage [OPTIONS] recover commit [--yes] ID...\n"
	 "       hsimage [OPTIONS] recover drop [--yes] ID...\n"
	 "Shows, saves, stores or deletes files that programs wrote to a mount and that the "
	 "bucket\n"
	 "does not have: drafts in the journal. The first digits of an ID are enough if they are "
	 "unique.\n"
	 "\n"
	 "  list     a line for each draft: id, state, size, time (UTC), bucket, file, reason\n"
	 "  show     describe a draft\n"
	 "  export   write a draft as a file; \"-\" is standard output\n"
	 "  commit   store drafts in the bucket, as the mount does when a file is closed. If a\n"
	 "           program has changed a domain and had not closed it, the data may be wrong\n"
	 "  drop     delete drafts, and what their commits have stored\n"
	 "\n"
	 "  --journal-dir DIR   the journal (/var/lib/hsmount for root, otherwise\n"
	 "                      $XDG_STATE_HOME/hsmount or ~/.local/state/hsmount)\n"
	 "  --json              print one JSON object for each draft\n"
	 "  --force             replace FILE if it exists\n"
	 "  -y, --yes           do not ask\n"
	 "\n"
	 "Exit status of list: 0 no draft is left, 1 the list has a draft that is not in use.\n"},
	{"undelete", command_undelete, "BUCKET[/DOMAIN]",
	 "usage: hsimage [OPTIONS] undelete BUCKET\n"
	 "       hsimage [OPTIONS] undelete BUCKET/DOMAIN\n"
	 "       hsimage [OPTIONS] -b BUCKET undelete [DOMAIN]\n"
	 "Brings a domain back that was removed or replaced through a mount, with its owner, its\n"
	 "access control list and its times. Without DOMAIN, lists those that can be brought "
	 "back:\n"
	 "when they were removed (UTC), and their names. That is possible until a mount deletes\n"
	 "what they had in the bucket: see the option gc_delay of hsmount. While the mount that "
	 "has\n"
	 "removed it is running, only that mount can do it: \"setfattr -n user.hsds.undelete\n"
	 "-v DOMAIN MOUNT\".\n"
	 "\n"
	 "  --journal-dir DIR   the journal of the mount (/var/lib/hsmount for root, otherwise\n"
	 "                      $XDG_STATE_HOME/hsmount or ~/.local/state/hsmount)\n"},
};
enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct command_def *find_command(const char *name)
{
	for (size_t i = 0; name && i < NCOMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* The operands of the command line, and the options that belong to no command. */
struct arguments {
	char **v; /* the command and its operands, then at least two NULL */
	size_t n; /* number of operands */
	bool help, version;
};

static int usage_error(const struct arguments *a, const struct err *err)
{
	const struct command_def *def = find_command(a->v[0]);
	if (err->code)
		complain(COMMAND_PROGRAM, err);
	fprintf(stderr, "Try: %s %s%s\n", COMMAND_PROGRAM, def ? "help " : "--help",
		def ? def->name : "");
	return EXIT_USAGE;
}

static void add_operand(struct arguments *a, char *operand)
{
	a->v[a->n++] = operand;
}

/* Adds the options of -o. It is followed by options after a command, too, so "export -o FILE" gets
 * a hint. */
static int add_options(struct command *c, const struct arguments *a, const char *list,
		       struct err *err)
{
	int rc = options_add(&c->options, list, err);
	if (rc && a->v[0] && strcmp(a->v[0], "export") == 0 && !strchr(list, '=')) {
		const struct err why = *err;
		err_set(err, rc, "%s; name the output file last or with --output", why.msg);
	}
	return rc;
}

static int parse_one(struct command *c, struct arguments *a, int opt, struct err *err)
{
	switch (opt) {
	case 1: /* not an option */
		add_operand(a, optarg);
		return 0;
	case 'b':
		c->bucket = optarg;
		return *optarg ? 0 : err_set(err, -EINVAL, "--bucket: must not be empty");
	case 'l':
		c->details = true;
		return 0;
	case 'o':
		return add_options(c, a, optarg, err);
	case 'h':
		a->help = true;
		return 0;
	case 'V':
		a->version = true;
		return 0;
	case 'y':
		return command_recover_option(c, OPTION_YES, NULL, err);
	case OPTION_VERIFY:
		if (optarg) {
			/* "--verify=WHEN" is "-o verify=WHEN". Without a value, "--verify" is a
			 * flag of info and link. */
			char option[32];
			snprintf(option, sizeof(option), "verify=%s", optarg);
			return options_add(&c->options, option, err);
		}
		c->verify = true;
		return 0;
	case OPTION_ALL:
		c->all = true;
		return 0;
	case OPTION_JSON:
		c->json = true;
		return 0;
	case OPTION_FORCE:
		c->force = true;
		return 0;
	case OPTION_OUTPUT:
		c->output = optarg;
		return *optarg ? 0 : err_set(err, -EINVAL, "--output: must not be empty");
	case '?':
		return -EINVAL; /* getopt_long() has printed why */
	default:
		if (opt >= OPTIONS_LONG)
			return options_add_long(&c->options, opt, optarg, err);
		if (opt >= OPTION_DRY_RUN)
			return command_clean_option(c, opt, optarg, err);
		if (opt >= OPTION_YES)
			return command_recover_option(c, opt, optarg, err);
		c->imports = true;
		return command_import_option(c, opt, optarg, err);
	}
}

/* Options may precede or follow the command. */
static int parse(struct command *c, struct arguments *a, int argc, char **argv, struct err *err)
{
	static const struct option own[] = {
		{"abort", no_argument, NULL, OPTION_ABORT},
		{"age", required_argument, NULL, OPTION_AGE},
		{"all", no_argument, NULL, OPTION_ALL},
		{"allow-external", required_argument, NULL, OPTION_ALLOW_EXTERNAL},
		{"as", required_argument, NULL, OPTION_AS},
		{"bucket", required_argument, NULL, 'b'},
		{"dry-run", no_argument, NULL, OPTION_DRY_RUN},
		{"fastlink", no_argument, NULL, OPTION_FASTLINK},
		{"force", no_argument, NULL, OPTION_FORCE},
		{"help", no_argument, NULL, 'h'},
		{"jobs", required_argument, NULL, 'j'},
		{"journal-dir", required_argument, NULL, OPTION_JOURNAL_DIR},
		{"ignore-open-flag", no_argument, NULL, OPTION_IGNORE_OPEN_FLAG},
		{"json", no_argument, NULL, OPTION_JSON},
		{"keep-storage", no_argument, NULL, OPTION_KEEP_STORAGE},
		{"min-chunk", required_argument, NULL, OPTION_MIN_CHUNK},
		{"output", required_argument, NULL, OPTION_OUTPUT},
		{"owner", required_argument, NULL, OPTION_OWNER},
		{"prefix", required_argument, NULL, OPTION_PREFIX},
		{"replace", no_argument, NULL, OPTION_REPLACE},
		{"skip-unsupported", no_argument, NULL, OPTION_SKIP_UNSUPPORTED},
		{"verify", optional_argument, NULL, OPTION_VERIFY},
		{"version", no_argument, NULL, 'V'},
		{"yes", no_argument, NULL, OPTION_YES},
		{NULL, 0, NULL, 0},
	};
	static char program[] = COMMAND_PROGRAM;
	const struct option *longs = options_longs(&c->options, own);
	int opt, rc = 0;
	if (!longs)
		return err_no_memory(err);
	if (argc > 0)
		argv[0] = program; /* for getopt_long()'s messages */
	while (!rc && (opt = getopt_long(argc, argv, "-b:hj:lo:Vy", longs, NULL)) != -1)
		rc = parse_one(c, a, opt, err);
	for (int i = optind; !rc && i < argc; i++) /* after "--" */
		add_operand(a, argv[i]);
	return rc;
}

static int print_help(const struct arguments *a)
{
	const bool is_command = a->v[0] && strcmp(a->v[0], "help") == 0;
	const char *name = a->v[is_command], *extra = is_command ? a->v[2] : NULL;
	const struct command_def *def = find_command(name);
	struct err err = ERR_INIT;
	if (name && !def)
		err_set(&err, -EINVAL, "%s: no such command", name);
	else if (extra)
		err_set(&err, -EINVAL, "extra operand: \"%s\"", extra);
	if (err.code)
		return usage_error(a, &err);
	if (def) {
		printf("%s\nFor the options of all commands: %s --help\n", def->help,
		       COMMAND_PROGRAM);
		return EXIT_OK;
	}
	fputs(help, stdout);
	options_print_help(false);
	fputs(help_exit, stdout);
	return EXIT_OK;
}

/* import has its own operands: the file comes first, and is not needed with --abort. */
static int check_import(const struct command *c, const struct arguments *a, struct err *err)
{
	const char *domain = c->bucket ? "DOMAIN" : "BUCKET/DOMAIN";
	const char *const names[] = {"FILE", domain};
	const bool only_domain = c->import.abort && a->n == 2;
	int rc = operands_check(a->v + 1, (int)a->n - 1, only_domain ? &domain : names,
				only_domain ? 1 : 2, only_domain ? 1 : 2, err);
	if (!rc)
		rc = command_import_check(c, err);
	return rc ? rc : options_check(&c->options, err);
}

/* Returns whether the command may have several operands, each of which it processes in turn. */
static bool takes_many(const struct command_def *def)
{
	return def->run == command_info || def->run == command_check || def->run == command_export;
}

static int check_many(const struct arguments *a, const char *name, bool to_file, struct err *err)
{
	const char *const file = "FILE";
	int rc = 0;
	for (size_t i = 1; !rc && i < a->n; i++)
		rc = operands_check(a->v + i, 1, to_file && i + 1 == a->n ? &file : &name, 1, 1,
				    err);
	return rc;
}

/* Checks that the command accepts the options and operands of the command line. */
static int check_arguments(const struct command *c, const struct arguments *a,
			   const struct command_def *def, struct err *err)
{
	const bool imports = def->run == command_import || def->run == command_link;
	const bool prints_json = def->run == command_check || def->run == command_recover;
	const bool writes_file = def->run == command_export || def->run == command_recover;
	const bool verifies = def->run == command_info || def->run == command_link;
	const bool recovers = def->run == command_recover, cleans = def->run == command_clean;
	const bool uses_journal = recovers || def->run == command_undelete;
	const char *foreign = c->details && def->run != command_ls		? "-l"
			      : c->verify && !verifies				? "--verify"
			      : c->output && def->run != command_export		? "--output"
			      : c->force && !writes_file			? "--force"
			      : c->all && def->run != command_check		? "--all"
			      : c->json && !prints_json				? "--json"
			      : c->recover.journal_dir && !uses_journal		? "of recover"
			      : c->recover.yes && !recovers && !cleans		? "--yes"
			      : c->clean.used && !cleans			? "of clean"
			      : c->imports && !imports				? "of import"
			      : c->as && def->run != command_link		? "--as"
			      : c->fastlink && def->run != command_link		? "--fastlink"
			      : c->import.min_chunk && def->run == command_link ? "--min-chunk"
										: NULL;
	const bool takes_path = def->run == command_ls || def->run == command_check || cleans ||
				def->run == command_undelete;
	const char *in_bucket = takes_path ? "PATH" : "DOMAIN";
	const char *const names[] = {c->bucket ? in_bucket : def->operand};
	const int required = !(c->bucket && takes_path);
	if (foreign)
		return err_set(err, -EINVAL, "%s has no option %s", def->name, foreign);
	if (imports)
		return check_import(c, a, err);
	int rc = def->run == command_recover
			 ? command_recover_check(c, a->v + 1, (int)a->n - 1, err)
		 : takes_many(def) && a->n > 2
			 ? check_many(a, names[0], def->run == command_export && !c->output, err)
			 : operands_check(a->v + 1, (int)a->n - 1, names, 1, required, err);
	return rc ? rc : options_check(&c->options, err);
}

static int run_one(struct command *c, const char *first, const char *second,
		   const struct command_def *def)
{
	c->operands[0] = first;
	c->operands[1] = second;
	const int status = def->run(c);
	/* After a failure, the program does not wait longer than CLOSE_MS for requests that the
	 * bucket does not answer. */
	if (status == EXIT_OK) {
		command_close(c);
	} else if (!shutdown_in_time(command_close, c, CLOSE_MS)) {
		fflush(NULL);
		_exit(status);
	}
	return status;
}

/* Runs the command for each operand, also after one has failed. */
static int run_each(struct command *c, char *const *operands, size_t n,
		    const struct command_def *def)
{
	int status = EXIT_OK;
	for (size_t i = 0; i < n || i == 0; i++) {
		const int one = run_one(c, operands[i], NULL, def);
		status = one ? one : status;
	}
	return status;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Exports each operand into a directory. */
static int export_into(struct command *c, char *const *operands, size_t n, const char *dir,
		       const struct command_def *def)
{
	int status = EXIT_OK;
	for (size_t i = 0; i < n; i++) {
		auto_free char *file = command_file_in(dir, operands[i]);
		bool is_same = false;
		for (size_t k = 0; file && !is_same && k < i; k++) {
			auto_free char *other = command_file_in(dir, operands[k]);
			is_same = other && strcmp(other, file) == 0;
		}
		struct err err = ERR_INIT;
		if (!file)
			err_no_memory(&err);
		else if (is_same)
			err_set(&err, -EEXIST, "%s: another operand has this name, too",
				operands[i]);
		c->output = file;
		const int one =
			err.code ? command_failed(c, &err) : run_one(c, operands[i], NULL, def);
		status = one ? one : status;
	}
	return status;
}

static int run_exports(struct command *c, const struct arguments *a, const struct command_def *def)
{
	const size_t n = a->n - 1 - (!c->output && a->n > 2); /* domains */
	const char *to = c->output ? c->output : n < a->n - 1 ? a->v[a->n - 1] : NULL;
	struct err err = ERR_INIT;
	if (is_directory(to))
		return export_into(c, a->v + 1, n, to, def);
	if (n <= 1)
		return run_one(c, a->v[1], a->v[2], def);
	err_set(&err, -ENOTDIR, "%s: no such directory; several domains are exported into one", to);
	return command_failed(c, &err);
}

static int run(struct command *c, const struct arguments *a)
{
	struct err err = ERR_INIT;
	const struct command_def *def = find_command(a->v[0]);
	if (!a->v[0])
		err_set(&err, -EINVAL,
			"missing operand: COMMAND is required: ls, info, export, check, clean, "
			"import, link, recover or undelete");
	else if (!def)
		err_set(&err, -EINVAL, "%s: no such command", a->v[0]);
	if (err.code || check_arguments(c, a, def, &err))
		return usage_error(a, &err);
	c->words = a->v + 1;
	c->log = log_new(COMMAND_PROGRAM, c->options.log_level);
	const int status = def->run == command_export ? run_exports(c, a, def)
			   : takes_many(def)	      ? run_each(c, a->v + 1, a->n - 1, def)
						      : run_one(c, a->v[1], a->v[2], def);
	log_free(c->log);
	return status;
}

int main(int argc, char **argv)
{
	struct command c = {0};
	struct arguments a = {0};
	struct err err = ERR_INIT;
	int status = EXIT_OK;
	allocator_setup();
	options_init(&c.options, false);
	/* The operands are fewer than argc; and NULLs behind them. */
	a.v = calloc((size_t)argc + 3, sizeof(*a.v));
	if (!a.v)
		err_no_memory(&err);
	if (!a.v)
		status = complain(COMMAND_PROGRAM, &err);
	else if (parse(&c, &a, argc, argv, &err))
		status = usage_error(&a, &err);
	else if (a.version)
		printf("%s %s\n", COMMAND_PROGRAM, HSMOUNT_VERSION);
	else if (a.help || (a.v[0] && strcmp(a.v[0], "help") == 0))
		status = print_help(&a);
	else
		status = run(&c, &a);
	if (fflush(stdout) && status == EXIT_OK) {
		err_errno(&err, -errno, "standard output");
		status = complain(COMMAND_PROGRAM, &err);
	}
	options_release(&c.options);
	free(a.v);
	return status;
}
