/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsmount: shows a bucket of HDF5 domains as a file system. Everything that can be wrong is looked
 * at before the program goes into the background, so that it is told where somebody reads it.
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
#include <sys/vfs.h>
#include <unistd.h>

#include <fuse_front/fuse_front.h>

#include "allocator.h"
#include "shutdown.h"
#include "log_signal.h"
#include "metrics_listener.h"
#include "options.h"

enum { CLOSE_MS = 5000 };

static const char program[] = "hsmount";

static const char help[] = "usage: hsmount [OPTIONS] BUCKET MOUNTPOINT\n"
			   "Shows a bucket of HDF5 domains as a tree of HDF5 files, read-only.\n"
			   "\n"
			   "BUCKET is a directory, file:///DIRECTORY or s3://BUCKET[/PREFIX].\n"
			   "Unmount with: fusermount3 -u MOUNTPOINT\n"
			   "\n"
			   "  -f                    stay in the foreground, log to standard error\n"
			   "  -d                    log every request, too (implies -f)\n"
			   "  -s                    serve one request at a time\n"
			   "  -o OPTION[,OPTION…]   see below\n"
			   "      --NAME[=VALUE]    the same as -o NAME[=VALUE], with - for _\n"
			   "  -h, --help            this text\n"
			   "  -V, --version         the version\n"
			   "\n"
			   "Options, with their defaults:\n";

static const char help_mount[] =
	"  uid=N, gid=N          owner and group of all files (the user who mounts)\n"
	"  umask=OCTAL           bits taken off all modes (0)\n"
	"  allow_other           let other users access the mount; implies default_permissions\n"
	"  default_permissions   let the kernel check modes\n"
	"  metrics_listen=[ADDRESS:]PORT\n"
	"                        serve metrics to Prometheus, to this machine only\n"
	"  ro                    mount read-only, which is always the case\n"
	"and allow_root, auto_unmount, [no]dev, [no]suid, [no]exec, [no]atime as in fuse(8).\n";

struct settings {
	struct options options;
	bool foreground, debug, single_thread;
	bool shown; /* help or version: nothing else to do */
	const char *bucket, *mountpoint;
};

static int usage_error(const struct err *err)
{
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
		printf("%s%s%s", help, options_help, help_mount);
		s->shown = true;
		return 0;
	case 'V':
		printf("%s %s\n", program, HSMOUNT_VERSION);
		s->shown = true;
		return 0;
	default:
		return c >= OPTIONS_LONG
			       ? options_add_long(&s->options, c, optarg, err)
			       : err_set(err, -EINVAL, "the command line is not understood");
	}
}

static int parse(struct settings *s, int argc, char **argv, struct err *err)
{
	static const struct option own[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	const struct option *longs = options_longs(&s->options, own);
	int c;
	if (!longs)
		return err_set(err, -ENOMEM, "out of memory");
	while ((c = getopt_long(argc, argv, "fdso:hV", longs, NULL)) != -1) {
		int rc = parse_one(s, c, err);
		if (rc || s->shown)
			return rc;
	}
	if (argc - optind < 2)
		return err_set(err, -EINVAL, "missing operand: BUCKET and MOUNTPOINT are required");
	if (argc - optind > 2)
		return err_set(err, -EINVAL, "extra operand: %s", argv[optind + 2]);
	s->bucket = argv[optind];
	s->mountpoint = argv[optind + 1];
	return options_check(&s->options, err);
}

/* The daemon leaves its directory. What is no directory is left to the engine to refuse. */
static char *absolute_bucket(const char *bucket, struct err *err)
{
	static const char file[] = "file://";
	const char *whole = bucket;
	if (strncmp(bucket, file, sizeof(file) - 1) == 0)
		bucket += sizeof(file) - 1;
	if (!*bucket || strstr(bucket, "://"))
		return strdup(whole);
	char *path = realpath(bucket, NULL);
	if (!path)
		err_errno(err, -errno, "bucket %s", bucket);
	return path;
}

/* The kernel remembers the attributes of a mount whose daemon has died, and a mount on top of it
 * would leave it there for good. Space is what it never remembers. By its path it would be asked of
 * what an automounter has to mount there first: of us, perhaps. */
static bool look_at(const char *path, struct stat *st, struct statfs *fs)
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

static char *absolute_mountpoint(const char *mountpoint, struct err *err)
{
	struct stat st;
	struct statfs fs;
	char *path = realpath(mountpoint, NULL);
	const bool there = path && look_at(path, &st, &fs);
	if (!there && errno == ENOTCONN) {
		err_set(err, -ENOTCONN,
			"mount point %s: a mount whose daemon has died is still there; "
			"fusermount3 -u removes it",
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

/* A mount that shows itself would wait for itself. On the bucket's own directory one may lie: the
 * bucket is what is beneath. Both paths are real ones. */
static int check_apart(const char *bucket, const char *mountpoint, struct err *err)
{
	const size_t n = strcmp(bucket, "/") == 0 ? 0 : strlen(bucket);
	if (bucket[0] != '/' || strncmp(mountpoint, bucket, n) != 0 || mountpoint[n] != '/')
		return 0;
	return err_set(err, -EINVAL, "mount point %s: lies within the bucket %s", mountpoint,
		       bucket);
}

/* As mount(8) has it. Two mounts on top of each other would have to be unmounted twice. */
static int check_not_there(const char *bucket, const char *mountpoint, struct err *err)
{
	enum { LINE = 4 * PATH_MAX };
	struct mntent entry;
	struct stat st;
	struct statfs fs;
	bool there = false;
	/* Another mount may hide the one that the kernel lists. */
	if (!look_at(mountpoint, &st, &fs) || fs.f_type != FUSE_SUPER_MAGIC)
		return 0;
	auto_free char *line = malloc(LINE);
	FILE *mounts = line ? setmntent("/proc/self/mounts", "re") : NULL;
	if (!mounts)
		return 0;
	while (getmntent_r(mounts, &entry, line, LINE)) {
		if (strcmp(entry.mnt_dir, mountpoint) == 0)
			there = strcmp(entry.mnt_type, "fuse.hsmount") == 0 &&
				strcmp(entry.mnt_fsname, bucket) == 0;
	}
	endmntent(mounts);
	return there ? err_set(err, -EBUSY, "mount point %s: %s is mounted there already",
			       mountpoint, bucket)
		     : 0;
}

/* What runs beside the mount. */
struct company {
	struct log *log;
	struct log_signal log_signal;
	struct metrics_listener *metrics; /* NULL: not asked for */
};

/* Everything that can be refused is refused before the program goes into the background. */
static int company_open(struct company *c, const struct options *o, struct engine *engine,
			struct err *err)
{
	if (o->metrics.n == 0)
		return 0;
	c->metrics = metrics_listener_new(&o->metrics, engine, err);
	return c->metrics ? 0 : err->code;
}

static int company_start(void *arg, struct err *err)
{
	struct company *c = arg;
	int rc = log_signal_start(&c->log_signal, c->log, err);
	return rc || !c->metrics ? rc : metrics_listener_start(c->metrics, err);
}

static void company_close(struct company *c)
{
	metrics_listener_free(c->metrics);
	log_signal_stop(&c->log_signal);
}

/* What is to be closed behind the mount. All of it may wait for the bucket: a report that is being
 * made may be the last to hold an image that has loads under way. */
struct remains {
	struct company company;
	struct session *session;
	struct engine *engine;
};

static void close_remains(void *arg)
{
	struct remains *r = arg;
	company_close(&r->company);
	fuse_front_free(r->session);
	engine_close(r->engine);
}

static int serve(struct settings *s, char **argv, struct log *log, struct err *err)
{
	auto_free char *bucket = absolute_bucket(s->bucket, err);
	auto_free char *mountpoint = bucket ? absolute_mountpoint(s->mountpoint, err) : NULL;
	struct options *o = &s->options;
	struct remains remains = {.company = {.log = log}};
	if (!mountpoint)
		return err->code ? err->code : err_set(err, -ENOMEM, "out of memory");
	if (check_apart(bucket, mountpoint, err) || check_not_there(bucket, mountpoint, err))
		return err->code;
	/* Other users may read what the access control lists allow them to. */
	int rc = o->allow_other && !o->default_permissions
			 ? options_add(o, "default_permissions", err)
			 : 0;
	o->engine.bucket = bucket;
	o->engine.log = log;
	log_signal_block();
	if (!rc)
		rc = engine_open(&o->engine, &remains.engine, err);
	if (rc)
		return rc;
	struct fuse_front_options front = {
		.program = argv[0],
		.bucket = bucket,
		.mountpoint = mountpoint,
		.mount_options = str_text(&o->mount),
		.foreground = s->foreground,
		.debug = s->debug,
		.single_thread = s->single_thread,
		.uid = o->uid,
		.gid = o->gid,
		.umask = o->umask,
		.metadata_ttl = o->engine.metadata_ttl,
		.started = company_start,
		.started_arg = &remains.company,
	};
	rc = company_open(&remains.company, o, remains.engine, err);
	if (!rc)
		rc = fuse_front_run(&front, remains.engine, log, &remains.session, err);
	if (!shutdown_in_time(close_remains, &remains, CLOSE_MS)) {
		log_warning(log, "requests to the bucket do not end: leaving without them");
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
	allocator_setup();
	options_init(&s.options, true);
	int rc = parse(&s, argc, argv, &err);
	if (rc) {
		status = usage_error(&err);
	} else if (!s.shown) {
		struct log *log = log_new(program, s.options.log_level, false);
		rc = serve(&s, argv, log, &err);
		if (rc) {
			log_error(log, "%s", err.msg);
			status = EXIT_FAILED;
		}
		log_free(log);
	}
	options_release(&s.options);
	return status;
}
