/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsmount: shows a bucket of HDF5 domains as a file system. Options, bucket and mount point are
 * checked before the program goes into the background, so that errors reach the terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fuse_front/fuse_front.h>

#include <base/mem.h>

#include "allocator.h"
#include "journal_dir.h"
#include "shutdown.h"
#include "log_signal.h"
#include "metrics_listener.h"
#include "options.h"
#include "option_values.h"

_Static_assert(OPTIONS_NO_MODE == FUSE_FRONT_ACL_MODE, "passed on without a check");

/* At the end, open files are committed, failed commits are tried again, and the storage of removed
 * domains is deleted. */
enum { CLOSE_MS = 5000, CLOSE_WRITE_MS = 35000 };

static const char program[] = "hsmount";

static const char help[] =
	"usage: hsmount [OPTIONS] BUCKET MOUNTPOINT\n"
	"Shows a bucket of HDF5 domains as a tree of HDF5 files.\n"
	"\n"
	"BUCKET is a directory, file:///DIRECTORY or s3://BUCKET[/PREFIX].\n"
	"Unmount with: fusermount3 -u MOUNTPOINT\n"
	"\n"
	"  -f                    stay in the foreground, log to standard error\n"
	"  -d                    log the requests of the kernel and those to the bucket;\n"
	"                        implies -f\n"
	"  -s                    serve one request at a time\n"
	"  -o OPTION[,OPTION…]   see below\n"
	"      --NAME[=VALUE]    the same as -o NAME[=VALUE], with - for _\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n"
	"\n"
	"Options, with their defaults in parentheses. A SIZE is a number of bytes, or a\n"
	"number with K, M, G or T. A TIME is a number of seconds, or a number with s, m, h\n"
	"or d.\n";

struct settings {
	struct options options;
	bool foreground, debug, single_thread;
	bool shown; /* the help or the version: the program is done */
	const char *bucket, *mountpoint;
};

static int usage_error(const struct err *err)
{
	if (err->msg[0])
		complain(program, err);
	fprintf(stderr, "Try: %s --help\n", program);
	return EXIT_USAGE;
}

static int parse_one(struct settings *s, int c, struct err *err)
{
	switch (c) {
	case 'f':
		s->foreground = true;
		return 0;
	case 'd':
		s->debug = s->foreground = true;
		s->options.log_level = LOG_LEVEL_DEBUG;
		return 0;
	case 's':
		s->single_thread = true;
		return 0;
	case 'o':
		return options_add(&s->options, optarg, err);
	case 'h':
		fputs(help, stdout);
		options_print_help(true);
		s->shown = true;
		return 0;
	case 'V':
		printf("%s %s\n", program, HSMOUNT_VERSION);
		s->shown = true;
		return 0;
	default:
		/* getopt_long() has reported an error. */
		return c < OPTIONS_LONG ? -EINVAL : options_add_long(&s->options, c, optarg, err);
	}
}

static int parse(struct settings *s, int argc, char **argv, struct err *err)
{
	static const struct option own[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	static const char *const operands[] = {"BUCKET", "MOUNTPOINT"};
	const struct option *longs = options_longs(&s->options, own);
	int c;
	if (!longs)
		return err_no_memory(err);
	while ((c = getopt_long(argc, argv, "fdso:hV", longs, NULL)) != -1) {
		int rc = parse_one(s, c, err);
		if (rc || s->shown)
			return rc;
	}
	if (operands_check(argv + optind, argc - optind, operands, 2, 2, err))
		return err->code;
	s->bucket = argv[optind];
	s->mountpoint = argv[optind + 1];
	return options_check(&s->options, err);
}

/* Makes the bucket's path absolute, because the daemon changes its working directory. engine_open()
 * reports a path that is not a directory. */
static char *absolute_bucket(const char *bucket, struct err *err)
{
	static const char file[] = "file://", s3[] = "s3:";
	const char *whole = bucket;
	if (strncmp(bucket, file, sizeof(file) - 1) == 0)
		bucket += sizeof(file) - 1;
	if (!*bucket || strstr(bucket, "://"))
		return strdup(whole);
	char *path = realpath(bucket, NULL);
	if (!path)
		err_errno(err, -errno, "bucket %s", whole);
	if (!path && strncmp(bucket, s3, sizeof(s3) - 1) == 0) {
		const char *name = bucket + sizeof(s3) - 1;
		err_set(err, err->code, "%s; did you mean s3://%s?", err->msg,
			name + strspn(name, "/"));
	}
	return path;
}

/* mount.fuse3(8) can pass an open /dev/fuse that is mounted already as a mount point of this form,
 * to a program that runs without privileges, in a container for example. */
static bool is_descriptor(const char *mountpoint, int *fd)
{
	static const char prefix[] = "/dev/fd/";
	uint64_t n;
	if (strncmp(mountpoint, prefix, sizeof(prefix) - 1) != 0 ||
	    !value_number(mountpoint + sizeof(prefix) - 1, 10, INT_MAX, &n))
		return false;
	*fd = (int)n;
	return true;
}

/* libfuse accepts any open descriptor, and would then serve nothing without reporting an error. */
static int check_descriptor(const struct settings *s, int fd, struct err *err)
{
	enum { MISC_MAJOR = 10, FUSE_MINOR = 229 }; /* of /dev/fuse */
	struct stat st;
	if (fstat(fd, &st))
		return err_errno(err, -errno, "mount point %s", s->mountpoint);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(MISC_MAJOR, FUSE_MINOR))
		return err_set(err, -EINVAL, "mount point %s: is not an open /dev/fuse",
			       s->mountpoint);
	/* The descriptor is mounted already, so serve() cannot add default_permissions. */
	if (s->options.allow_other && !s->options.default_permissions)
		return err_set(
			err, -EINVAL,
			"mount point %s: the kernel would not check permissions; mount it with "
			"default_permissions, not only with allow_other",
			s->mountpoint);
	return 0;
}

/* fstatfs() fails if the daemon of a mount has died. fstat() alone does not show it, because the
 * kernel caches attributes. O_PATH does not trigger an automounter, which might wait for this very
 * mount. */
static bool inspect(const char *path, struct stat *st, struct statfs *fs)
{
	const int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	const bool there = fstat(fd, st) == 0 && fstatfs(fd, fs) == 0;
	const int why = errno;
	close(fd);
	errno = why;
	return there;
}

/* Makes the path of a directory absolute, which may not exist yet. */
static char *absolute_new(const char *path, struct err *err)
{
	char *out = NULL;
	auto_free char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	if (path[0] == '/')
		return strdup(path);
	if (!here)
		err_errno(err, -errno, "current directory");
	else if (asprintf(&out, "%s/%s", here, path) < 0)
		out = NULL;
	return out;
}

static char *absolute_mountpoint(const char *mountpoint, struct err *err)
{
	struct stat st;
	struct statfs fs;
	char *path = realpath(mountpoint, NULL);
	const bool there = path && inspect(path, &st, &fs);
	if (!there && errno == ENOTCONN) {
		err_set(err, -ENOTCONN,
			"mount point %s: a mount whose daemon has died is still there; "
			"remove it with fusermount3 -u",
			mountpoint);
	} else if (!there) {
		err_errno(err, -errno, "mount point %s", mountpoint);
	} else if (!S_ISDIR(st.st_mode)) {
		err_errno(err, -ENOTDIR, "mount point %s", mountpoint);
	} else {
		return path;
	}
	free(path);
	return NULL;
}

/* A mount within its own bucket would contain itself, and reading it could block forever. On the
 * bucket's own directory it is allowed: it hides the bucket. Both paths are real paths. */
static int check_apart(const char *bucket, const char *mountpoint, struct err *err)
{
	const size_t n = strcmp(bucket, "/") == 0 ? 0 : strlen(bucket);
	if (bucket[0] != '/' || strncmp(mountpoint, bucket, n) != 0 || mountpoint[n] != '/')
		return 0;
	return err_set(err, -EINVAL, "mount point %s: is inside the bucket %s", mountpoint, bucket);
}

/* Fails if an hsmount is mounted there already, unless it shows another bucket and the option
 * nonempty is set. */
static int check_not_mounted(const char *bucket, const char *mountpoint, bool nonempty,
			     struct err *err)
{
	enum { LINE = 4 * PATH_MAX };
	struct mntent entry;
	struct stat st;
	struct statfs fs;
	auto_free char *mounted = NULL;
	/* Another mount may hide the one that /proc/self/mounts lists. */
	if (!inspect(mountpoint, &st, &fs) || fs.f_type != FUSE_SUPER_MAGIC)
		return 0;
	auto_free char *line = malloc(LINE);
	FILE *mounts = line ? setmntent("/proc/self/mounts", "re") : NULL;
	if (!mounts)
		return 0;
	while (getmntent_r(mounts, &entry, line, LINE)) {
		if (strcmp(entry.mnt_dir, mountpoint) != 0)
			continue;
		free(mounted);
		mounted = strcmp(entry.mnt_type, "fuse.hsmount") == 0 ? strdup(entry.mnt_fsname)
								      : NULL;
	}
	endmntent(mounts);
	if (mounted && strcmp(mounted, bucket) == 0)
		return err_set(err, -EBUSY, "mount point %s: %s is mounted there already",
			       mountpoint, bucket);
	if (mounted && !nonempty)
		return err_set(
			err, -EBUSY,
			"mount point %s: %s is mounted there; unmount it with fusermount3 -u, "
			"or mount over it with -o nonempty",
			mountpoint, mounted);
	return 0;
}

static char *check_mountpoint(const struct settings *s, const char *bucket, struct err *err)
{
	int fd;
	if (is_descriptor(s->mountpoint, &fd))
		return check_descriptor(s, fd, err) ? NULL : strdup(s->mountpoint);
	char *path = absolute_mountpoint(s->mountpoint, err);
	if (path && !check_apart(bucket, path, err) &&
	    !check_not_mounted(bucket, path, s->options.nonempty, err))
		return path;
	free(path);
	return NULL;
}

/* The services that run beside the FUSE front. */
struct companions {
	struct log *log;
	const struct options *options;
	bool mounted;
	struct log_signal log_signal;
	struct metrics_listener *metrics; /* NULL without metrics_listen */
};

/* Runs before the program goes into the background, so that errors reach the terminal. */
static int companions_open(struct companions *c, struct engine *engine, struct err *err)
{
	if (c->options->metrics.n == 0)
		return 0;
	c->metrics = metrics_listener_new(&c->options->metrics, engine, err);
	return c->metrics ? 0 : err->code;
}

/* Runs after the last fork, when the file system is mounted. */
static int companions_start(void *arg, struct err *err)
{
	struct companions *c = arg;
	const char *given = str_text(&c->options->given);
	int rc = log_signal_start(&c->log_signal, c->log, err);
	if (!rc && c->metrics)
		rc = metrics_listener_start(c->metrics, err);
	c->mounted = !rc;
	if (!rc)
		log_info(c->log, "mounted %s with %s %s, options: %s", c->options->engine.bucket,
			 program, HSMOUNT_VERSION, given[0] ? given : "none");
	return rc;
}

/* What remains to be closed after the file system is unmounted. Closing any of it may wait for the
 * bucket: a report in progress may hold the last reference to an image with loads in flight. */
struct remains {
	struct companions companions;
	struct session *session;
	struct engine *engine;
};

static void close_remains(void *arg)
{
	struct remains *r = arg;
	metrics_listener_free(r->companions.metrics);
	log_signal_stop(&r->companions.log_signal);
	fuse_front_free(r->session);
	engine_close(r->engine);
}

static int mount_and_serve(const struct settings *s, const char *mountpoint,
			   struct remains *remains, struct err *err)
{
	const struct options *o = &s->options;
	struct fuse_front_options front = {
		.program = program,
		.bucket = o->engine.bucket,
		.mountpoint = mountpoint,
		.mount_options = str_text(&o->mount),
		.foreground = s->foreground,
		.debug = s->debug,
		.single_thread = s->single_thread,
		.write = o->engine.write,
		.uid = o->uid,
		.gid = o->gid,
		.file_mode = o->file_mode,
		.dir_mode = o->dir_mode,
		.umask = o->umask,
		.metadata_ttl = o->engine.metadata_ttl,
		.started = companions_start,
		.started_arg = &remains->companions,
	};
	int fd, rc = companions_open(&remains->companions, remains->engine, err);
	if (rc)
		return rc;
	/* engine_open() has ended its threads again, so no thread uses the log now. */
	log_set_name(o->engine.log, is_descriptor(mountpoint, &fd) ? o->engine.bucket : mountpoint);
	rc = fuse_front_run(&front, remains->engine, o->engine.log, &remains->session, err);
	if (remains->companions.mounted)
		log_info(o->engine.log, "unmounted %s", o->engine.bucket);
	return rc;
}

/* Where drafts survive the daemon: see doc/JOURNAL.md. *path is that of the options, or made if
 * there is none. It becomes absolute, because the daemon changes its working directory. */
static int find_journal(const char **path, struct err *err)
{
	char *found = *path ? absolute_new(*path, err) : journal_dir_default();
	if (!found)
		return err->code ? err->code : err_no_memory(err);
	free((char *)(uintptr_t)*path);
	*path = found;
	return journal_dir_make_parents(found, err);
}

static int serve(struct settings *s, struct log *log, struct err *err)
{
	auto_free char *bucket = absolute_bucket(s->bucket, err);
	auto_free char *mountpoint = bucket ? check_mountpoint(s, bucket, err) : NULL;
	struct options *o = &s->options;
	struct remains remains = {.companions = {.log = log, .options = o}};
	if (!mountpoint)
		return err->code ? err->code : err_no_memory(err);
	/* Otherwise the kernel would not check modes, and other users could read everything. */
	int rc = o->allow_other && !o->default_permissions
			 ? options_add(o, "default_permissions", err)
			 : 0;
	o->engine.bucket = bucket;
	o->engine.log = log;
	o->engine.user = owner_name();
	log_signal_block();
	if (!rc && o->engine.write)
		rc = find_journal(&o->engine.journal_dir, err);
	if (!rc)
		rc = engine_open(&o->engine, &remains.engine, err);
	if (rc)
		return rc;
	rc = mount_and_serve(s, mountpoint, &remains, err);
	if (!shutdown_in_time(close_remains, &remains,
			      o->engine.write ? CLOSE_WRITE_MS : CLOSE_MS)) {
		log_warning(log,
			    "exiting without waiting for requests to the bucket that do not end%s",
			    o->engine.write ? "; the journal keeps files that are not in the "
					      "bucket: see hsimage recover"
					    : "");
		if (rc)
			log_error(log, "%s", err->msg);
		_exit(rc ? EXIT_FAILED : EXIT_OK);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct settings s = {0};
	struct err err = ERR_INIT;
	int status = EXIT_OK;
	char name[] = "hsmount";
	argv[0] = name; /* for getopt_long()'s messages, whatever the path of the program is */
	allocator_setup();
	options_init(&s.options, true);
	int rc = parse(&s, argc, argv, &err);
	if (rc) {
		status = usage_error(&err);
	} else if (s.shown) {
		if (fflush(stdout)) {
			err_errno(&err, -errno, "standard output");
			status = complain(program, &err);
		}
	} else {
		struct log *log = log_new(program, s.options.log_level);
		rc = serve(&s, log, &err);
		if (rc) {
			log_error(log, "%s", err.msg);
			status = EXIT_FAILED;
		}
		log_free(log);
	}
	options_release(&s.options);
	return status;
}
