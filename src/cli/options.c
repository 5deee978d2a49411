/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table holds the options of both programs: names, values, help. An option is given with -o or
 * as --name. Its value is checked here, before anything is opened. Main thread only.
 */
#include "options.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/mem.h>

#include "option_values.h"

int complain(const char *program, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", program, err->msg);
	return EXIT_FAILED;
}

int operands_check(char *const *operands, int n, const char *const *names, int n_names,
		   int required, struct err *err)
{
	if (n > n_names)
		return err_set(err, -EINVAL, "extra operand: \"%s\"", operands[n_names]);
	/* The usual cause is a shell variable that is not set. */
	for (int i = 0; i < n; i++)
		if (!operands[i][0])
			return err_set(err, -EINVAL, "empty operand: %s", names[i]);
	if (n >= required)
		return 0;
	err_set(err, -EINVAL, "%s", names[required - 1]);
	for (int i = required - 1; i-- > n;)
		err_set(err, -EINVAL, "%s and %s", names[i], err->msg);
	return err_wrap(err, -EINVAL, "missing operand");
}

const char *login_name(void)
{
	const struct passwd *user = getpwuid(geteuid());
	return user ? user->pw_name : "admin";
}

const char *owner_name(void)
{
	const char *name = getenv("HS_USERNAME");
	return name && name[0] ? name : login_name();
}

/* ---- values ---- */

static int bad_value(struct err *err, const char *name, const char *value, const char *expected)
{
	return err_set(err, -EINVAL, "%s=%s: %s", name, value, expected);
}

static int set_ttl(struct options *o, const char *name, const char *value, struct err *err)
{
	if (!value_seconds(value, &o->engine.metadata_ttl))
		return bad_value(err, name, value,
				 "must be a time: seconds, or a number with s, m, h or d");
	/* A user sets a time to save requests, so the time also applies to opens. */
	o->engine.open_ttl = o->engine.metadata_ttl;
	return 0;
}

static int set_gc_delay(struct options *o, const char *name, const char *value, struct err *err)
{
	return value_seconds(value, &o->engine.gc_delay)
		       ? 0
		       : bad_value(err, name, value,
				   "must be a time: seconds, or a number with s, m, h or d");
}

enum { SIZE_MIN = 1 << 20 /* of sizes on disk */ };

/* min is 0 or SIZE_MIN. */
static int set_size(uint64_t *size, const char *name, const char *value, uint64_t min,
		    struct err *err)
{
	if (!value_size(value, size))
		return bad_value(err, name, value,
				 "must be a number of bytes, or a number with K, M, G or T");
	return *size >= min ? 0 : bad_value(err, name, value, "must be at least 1M");
}

static int set_cache_disk_size(struct options *o, const char *name, const char *value,
			       struct err *err)
{
	o->has_cache_disk_size = true;
	return set_size(&o->engine.cache_disk_size, name, value, SIZE_MIN, err);
}

static int set_retry_time(struct options *o, const char *name, const char *value, struct err *err)
{
	enum { MIN_S = 1, MAX_S = 86400 };
	double seconds;
	if (!value_seconds(value, &seconds) || !(seconds >= MIN_S && seconds <= MAX_S))
		return bad_value(err, name, value,
				 "must be a time from 1s to 1d: seconds, or a number with s, m, h "
				 "or d");
	o->engine.s3.retry_ms = (unsigned int)(seconds * 1000);
	return 0;
}

static int set_log_level(struct options *o, const char *name, const char *value, struct err *err)
{
	if (log_level_parse(value, &o->log_level))
		return bad_value(err, name, value, "must be error, warning, info or debug");
	return 0;
}

static int set_uid(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	const struct passwd *user = NULL;
	if (!value_number(value, 10, UINT32_MAX - 1, &n) && !(user = getpwnam(value)))
		return bad_value(err, name, value, "no such user");
	o->uid = user ? user->pw_uid : (uid_t)n;
	return 0;
}

static int set_gid(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	const struct group *group = NULL;
	if (!value_number(value, 10, UINT32_MAX - 1, &n) && !(group = getgrnam(value)))
		return bad_value(err, name, value, "no such group");
	o->gid = group ? group->gr_gid : (gid_t)n;
	return 0;
}

static int set_metrics(struct options *o, const char *name, const char *value, struct err *err)
{
	return metrics_address_parse(value, &o->metrics, err);
}

/* Passes an option on to the kernel and fusermount3. */
static int pass_on(struct options *o, const char *name, const char *value, struct err *err)
{
	str_addf(&o->mount, "%s%s", str_text(&o->mount)[0] ? "," : "", name);
	return str_ok(&o->mount) ? 0 : err_no_memory(err);
}

static int set_allow_other(struct options *o, const char *name, const char *value, struct err *err)
{
	o->allow_other = true;
	return pass_on(o, name, value, err);
}

static int set_default_permissions(struct options *o, const char *name, const char *value,
				   struct err *err)
{
	o->default_permissions = true;
	return pass_on(o, name, value, err);
}

/* Sets "ro" or "rw", of which the last one counts. */
static int set_write(struct options *o, const char *name, const char *value, struct err *err)
{
	o->engine.write = strcmp(name, "rw") == 0;
	return 0;
}

static int refuse_remount(struct options *o, const char *name, const char *value, struct err *err)
{
	return err_set(err, -EINVAL,
		       "-o remount: the options of a mount cannot be changed; unmount it and mount "
		       "it again");
}

/* ---- the table ---- */

enum subject { CACHE, CONTENT, S3, REPORTS, MOUNT, SUBJECTS };

static const char *const subjects[SUBJECTS] = {
	[CACHE] = "Cache and parallel work",
	[CONTENT] = "Bucket and datasets",
	[S3] = "Buckets in S3 (defaults: the environment and the shared files of the AWS tools)",
	[REPORTS] = "Log and metrics",
	[MOUNT] = "Mount",
};

/* How a value is parsed, and the type of the member of struct options that holds it. */
enum kind {
	CALL,	/* by `set` */
	FLAG,	/* bool */
	WORD,	/* an enum: the number of one of the words in `value` */
	SWITCH, /* bool: true for the second one of the two words in `value` */
	TEXT,	/* const char *, on the heap */
	LIST,	/* the same; a value is added to the earlier ones, after a comma */
	SIZE,	/* uint64_t, at least `min` */
	COUNT,	/* unsigned int, `min` to `max` */
	MODE,	/* mode_t */
};

_Static_assert(ENGINE_STAT_EXACT == 1 && ENGINE_STAT_ESTIMATE == 2, "auto|exact|estimate");
_Static_assert(ENGINE_S3_VERIFY_ALWAYS == 1 && ENGINE_S3_VERIFY_NEVER == 2, "auto|always|never");

static const struct option_def {
	const char *name;
	const char *value; /* its name in the help; NULL if the option takes no value */
	enum subject subject;
	enum kind kind;
	size_t member;	       /* offset in struct options; not used with CALL */
	unsigned int min, max; /* of a COUNT, a max of 0 means 1024 */
	const char *expected;  /* what an error says of a WORD or SWITCH */
	int (*set)(struct options *o, const char *name, const char *value, struct err *err);
	const char *help; /* NULL if it is not in the help */
} defs[] = {
#define IN(field) .member = offsetof(struct options, field)
	{"metadata_ttl", "TIME", CACHE, CALL, .set = set_ttl,
	 .help = "how long cached metadata is considered valid (1 for names and sizes,\n"
		 "0 for opens and listings)"},
	{"stat", "auto|exact|estimate", CACHE, WORD, IN(engine.stat),
	 .expected = "must be auto, exact or estimate",
	 .help = "show exact sizes of domains that are not open: with auto of those of\n"
		 "up to 1,000 keys, with exact of all, with estimate of none (auto)"},
	{"cache_size", "SIZE", CACHE, SIZE, IN(engine.cache_size),
	 .help = "memory for decoded chunks, for chunks that are being loaded, and for\n"
		 "metadata (256M)"},
	{"cache_dir", "DIR", CACHE, TEXT, IN(engine.cache_dir),
	 .help = "keep fetched objects, and the sizes of domains, in DIR for later\n"
		 "mounts (none)"},
	{"cache_disk_size", "SIZE", CACHE, CALL, .set = set_cache_disk_size,
	 .help = "maximum size of cache_dir, at least 1M (10G)"},
	{"workers", "N", CACHE, COUNT, IN(engine.workers),
	 .help = "number of threads for requests to directory buckets and for\n"
		 "decoding, from 0 to 1024 (16)"},
	{"filters", "stored|none", CONTENT, SWITCH, IN(engine.no_filters),
	 .expected = "must be \"stored\" or \"none\"",
	 .help = "show datasets with their filters, in a form that is cheap to\n"
		 "compute, or without filters (stored)"},
	{"missing_chunks", "fill|error", CONTENT, SWITCH, IN(engine.missing_chunks_fail),
	 .expected = "must be \"fill\" or \"error\"",
	 .help = "show chunks of Zarr stores that are not stored as the fill value, or\n"
		 "let reads of them fail (fill)"},
	{"forbidden_chunks", "error|absent", CONTENT, SWITCH, IN(engine.forbidden_chunks_absent),
	 .expected = "must be \"error\" or \"absent\"",
	 .help = "let reads of chunks of Zarr stores fail that the service refuses, or\n"
		 "show these chunks as not stored (error)"},
	{"root", "PATH[,PATH...]", CONTENT, LIST, IN(engine.root),
	 .help = "show only these top-level directories, and never list the root of\n"
		 "the bucket"},
	{"allow_uri", "URI[,URI...]", CONTENT, LIST, IN(engine.allow_uri),
	 .help = "permit domains to refer to HDF5 files outside of the bucket whose\n"
		 "URIs begin with s3://BUCKET/ or file:///DIRECTORY/ (none)"},
	{"bucket_name", "NAME", CONTENT, TEXT, IN(engine.bucket_name),
	 .help = "name of the bucket in references to HDF5 files (that of the S3\n"
		 "bucket, or the last component of the directory)"},
	{"allow_empty", NULL, CONTENT, FLAG, IN(engine.allow_empty),
	 .help = "accept a directory or prefix that is not recognised as a bucket"},
	{"endpoint", "URL", S3, TEXT, IN(engine.s3.endpoint),
	 .help = "URL of the S3 service (Amazon S3)"},
	{"region", "REGION", S3, TEXT, IN(engine.s3.region),
	 .help = "region of the bucket (the configured one, or the one that the service\n"
		 "reports)"},
	{"profile", "NAME", S3, TEXT, IN(engine.s3.profile), .help = "profile in the shared files"},
	{"ca_bundle", "FILE", S3, TEXT, IN(engine.s3.ca_bundle),
	 .help = "file of the certificates to trust (the certificates of the system)"},
	{"bucket_owner", "ACCOUNT", S3, TEXT, IN(engine.s3.bucket_owner),
	 .help = "account that must own the bucket; otherwise all requests fail"},
	{"no_sign_request", NULL, S3, FLAG, IN(engine.s3.no_sign_request),
	 .help = "use no credentials and do not sign requests, for a public bucket"},
	{"requester_pays", NULL, S3, FLAG, IN(engine.s3.requester_pays),
	 .help = "declare in each request that the requester pays for it"},
	{"path_style", NULL, S3, FLAG, IN(engine.s3.path_style),
	 .help = "always put the name of the bucket into the path of the URL"},
	{"connections", "N", S3, COUNT, IN(engine.s3.connections), .min = 1,
	 .help = "maximum number of open connections to the service, from 1 to 1024\n"
		 "(256)"},
	{"retry_time", "TIME", S3, CALL, .set = set_retry_time,
	 .help = "how long to repeat requests that fail for the moment, and to wait for\n"
		 "a service that does not answer (60)"},
	{"verify", "auto|always|never", S3, WORD, IN(engine.s3.verify),
	 .expected = "must be auto, always or never",
	 .help = "verify the checksums of objects that are read completely: with auto\n"
		 "over plain HTTP only, or always, or never (auto)"},
	{"log_level", "LEVEL", REPORTS, CALL, .set = set_log_level,
	 .help = "log messages of this level and of more serious ones: error, warning,\n"
		 "info or debug (warning)"},
	{"metrics_listen", "[ADDRESS:]PORT", REPORTS, CALL, .set = set_metrics,
	 .help = "serve the metrics of the mount over HTTP, to programs on this machine\n"
		 "only"},
	{"debug_fault", "RULES", REPORTS, TEXT, IN(engine.debug_fault)},
	{"debug_count", NULL, REPORTS, FLAG, IN(engine.debug_count)},
	{"uid", "USER", MOUNT, CALL, .set = set_uid,
	 .help = "owner of all files, a name or a number (the user that runs hsmount)"},
	{"gid", "GROUP", MOUNT, CALL, .set = set_gid,
	 .help = "group of all files, a name or a number (the group of that user)"},
	{"file_mode", "OCTAL", MOUNT, MODE, IN(file_mode),
	 .help = "permission bits of all files (what the access control lists permit)"},
	{"dir_mode", "OCTAL", MOUNT, MODE, IN(dir_mode),
	 .help = "permission bits of all directories (what the access control lists\n"
		 "permit)"},
	{"umask", "OCTAL", MOUNT, MODE, IN(umask),
	 .help = "permission bits to remove from all modes, including file_mode and\n"
		 "dir_mode (0)"},
	{"allow_other", NULL, MOUNT, CALL, .set = set_allow_other,
	 .help = "let other users access the mount, with the permissions that the modes\n"
		 "give them; implies default_permissions"},
	{"default_permissions", NULL, MOUNT, CALL, .set = set_default_permissions,
	 .help = "let the kernel check the modes"},
	{"nonempty", NULL, MOUNT, FLAG, IN(nonempty),
	 .help = "mount over a mount of another bucket"},
	{"ro", NULL, MOUNT, CALL, .set = set_write,
	 .help = "mount read-only, which is the default"},
	{"rw", NULL, MOUNT, CALL, .set = set_write,
	 .help = "let programs create, change, replace, rename and remove files, and\n"
		 "make and remove directories"},
	{"journal_dir", "DIR", MOUNT, TEXT, IN(engine.journal_dir),
	 .help = "with rw: keep the files that programs write in DIR until the bucket\n"
		 "has them (/var/lib/hsmount for root, otherwise\n"
		 "$XDG_STATE_HOME/hsmount or ~/.local/state/hsmount)"},
	{"spool_size", "SIZE", MOUNT, SIZE, IN(engine.spool_size), .min = SIZE_MIN,
	 .help = "with rw: maximum size of what journal_dir keeps for this mount and\n"
		 "earlier mounts of the bucket, at least 1M (half of the free space)"},
	{"rename_dir_max", "N", MOUNT, COUNT, IN(engine.rename_dir_max), .max = 1000000,
	 .help = "with rw: rename directories with up to N entries in all levels within\n"
		 "the bucket, from 0 to 1000000 (10000)"},
	{"gc_delay", "TIME", MOUNT, CALL, .set = set_gc_delay,
	 .help = "with rw: how long the bucket keeps what a removed or replaced file had\n"
		 "in it (30)"},
	{"gc_at_unmount", NULL, MOUNT, FLAG, IN(engine.gc_at_unmount),
	 .help = "with rw: do not wait for gc_delay when the file system is unmounted"},
	{"remount", NULL, MOUNT, CALL, .set = refuse_remount},
	{"allow_root", NULL, MOUNT, CALL, .set = pass_on},
	{"auto_unmount", NULL, MOUNT, CALL, .set = pass_on},
	{"nodev", NULL, MOUNT, CALL, .set = pass_on},
	{"dev", NULL, MOUNT, CALL, .set = pass_on},
	{"nosuid", NULL, MOUNT, CALL, .set = pass_on},
	{"suid", NULL, MOUNT, CALL, .set = pass_on},
	{"noexec", NULL, MOUNT, CALL, .set = pass_on},
	{"exec", NULL, MOUNT, CALL, .set = pass_on},
	{"noatime", NULL, MOUNT, CALL, .set = pass_on},
	{"atime", NULL, MOUNT, CALL, .set = pass_on},
#undef IN
};

enum { NDEFS = sizeof(defs) / sizeof(defs[0]) };

/* Other words of fstab(5) and /proc/mounts. With or without a value they mean nothing to
 * hsmount, or they are for other programs. Labels of SELinux (context=…) are not
 * implemented: the kernel labels the files as those of any FUSE mount. */
static const char *const ignored[] = {
	"defaults",    "auto",		"noauto",      "user",	     "nouser",	  "users",
	"owner",       "noowner",	"group",       "nogroup",    "nofail",	  "_netdev",
	"comment",     "sync",		"async",       "dirsync",    "relatime",  "norelatime",
	"strictatime", "nostrictatime", "diratime",    "nodiratime", "lazytime",  "nolazytime",
	"iversion",    "noiversion",	"mand",	       "nomand",     "silent",	  "loud",
	"user_id",     "group_id",	"max_read",    "blksize",    "fsname",	  "subtype",
	"source",      "symfollow",	"nosymfollow", "context",    "fscontext", "defcontext",
	"rootcontext", "seclabel",
};

static bool is_ignored(const char *word)
{
	if (strncmp(word, "x-", 2) == 0 || strncmp(word, "X-", 2) == 0)
		return true;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (strcmp(word, ignored[i]) == 0)
			return true;
	return false;
}

static int set_text(const char **text, const char *name, const char *value, struct err *err)
{
	/* The usual cause is a shell variable that is not set. */
	if (!value[0])
		return bad_value(err, name, value, "must not be empty");
	free((char *)(uintptr_t)*text);
	*text = strdup(value);
	return *text ? 0 : err_no_memory(err);
}

static int set_list(const char **list, const char *name, const char *value, struct err *err)
{
	const char *before = *list;
	char *both = NULL;
	if (!before)
		return set_text(list, name, value, err);
	if (!value[0])
		return bad_value(err, name, value, "must not be empty");
	if (asprintf(&both, "%s,%s", before, value) < 0)
		return err_no_memory(err);
	free((char *)(uintptr_t)before);
	*list = both;
	return 0;
}

static int set_count(unsigned int *count, const struct option_def *d, const char *value,
		     struct err *err)
{
	const unsigned int max = d->max ? d->max : 1024;
	uint64_t n;
	if (!value_number(value, 10, max, &n) || n < d->min)
		return err_set(err, -EINVAL, "%s=%s: must be a number from %u to %u", d->name,
			       value, d->min, max);
	*count = (unsigned int)n;
	return 0;
}

static int set_mode(mode_t *mode, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!value_number(value, 8, 0777, &n))
		return bad_value(err, name, value, "must be an octal number of at most 777");
	*mode = (mode_t)n;
	return 0;
}

static int set_word(void *member, const struct option_def *d, const char *value, struct err *err)
{
	const size_t n = strlen(value);
	const char *word = d->value;
	for (unsigned int i = 0;; i++, word++) {
		const size_t len = strcspn(word, "|");
		if (len == n && memcmp(word, value, n) == 0) {
			if (d->kind == SWITCH)
				*(bool *)member = i == 1;
			else
				*(unsigned int *)member = i;
			return 0;
		}
		word += len;
		if (!*word)
			return bad_value(err, d->name, value, d->expected);
	}
}

static int set(struct options *o, const struct option_def *d, const char *value, struct err *err)
{
	void *member = (char *)o + d->member;
	switch (d->kind) {
	case CALL:
		return d->set(o, d->name, value, err);
	case FLAG:
		*(bool *)member = true;
		return 0;
	case WORD:
	case SWITCH:
		return set_word(member, d, value, err);
	case TEXT:
		return set_text(member, d->name, value, err);
	case LIST:
		return set_list(member, d->name, value, err);
	case SIZE:
		return set_size(member, d->name, value, d->min, err);
	case COUNT:
		return set_count(member, d, value, err);
	case MODE:
		return set_mode(member, d->name, value, err);
	}
	return -EINVAL;
}

static int apply(struct options *o, const struct option_def *d, const char *value, struct err *err)
{
	str_addf(&o->given, "%s%s", str_text(&o->given)[0] ? "," : "", d->name);
	if (value)
		str_addf(&o->given, "=%s", value);
	return set(o, d, value, err);
}

/* ---- life ---- */

void options_init(struct options *o, bool mounting)
{
	*o = (struct options){
		.log_level = LOG_LEVEL_WARNING,
		.mounting = mounting,
		.uid = getuid(),
		.gid = getgid(),
		.file_mode = OPTIONS_NO_MODE,
		.dir_mode = OPTIONS_NO_MODE,
	};
	engine_options_init(&o->engine);
}

void options_release(struct options *o)
{
	for (size_t i = 0; i < NDEFS; i++)
		if (defs[i].kind == TEXT || defs[i].kind == LIST)
			free(*(char **)(void *)((char *)o + defs[i].member));
	for (size_t i = 0; o->longs && o->longs[i].name; i++)
		if (o->longs[i].val >= OPTIONS_LONG)
			free((char *)(uintptr_t)o->longs[i].name);
	free(o->longs);
	str_release(&o->given);
	str_release(&o->mount);
}

/* ---- parsing ---- */

/* "metadata_ttl" -> "metadata-ttl" */
static char *dashed(const char *name)
{
	char *out = strdup(name);
	for (char *c = out; c && *c; c++)
		if (*c == '_')
			*c = '-';
	return out;
}

static bool is_mount_only(const struct option_def *d)
{
	return d->subject == MOUNT || d->set == set_metrics;
}

const struct option *options_longs(struct options *o, const struct option *own)
{
	size_t n = 0;
	while (own[n].name)
		n++;
	o->longs = calloc(n + NDEFS + 1, sizeof(*o->longs));
	if (!o->longs)
		return NULL;
	memcpy(o->longs, own, n * sizeof(*own));
	for (size_t i = 0; i < NDEFS; i++) {
		const struct option_def *d = &defs[i];
		if (is_mount_only(d) && !o->mounting)
			continue;
		o->longs[n] = (struct option){
			.name = dashed(d->name),
			.has_arg = d->value ? required_argument : no_argument,
			.val = OPTIONS_LONG + (int)i,
		};
		if (!o->longs[n++].name)
			return NULL;
	}
	return o->longs;
}

int options_add_long(struct options *o, int c, const char *value, struct err *err)
{
	return apply(o, &defs[c - OPTIONS_LONG], value, err);
}

/* Adds one option: "name" or "name=value". Overwrites word. */
static int add_one(struct options *o, char *word, struct err *err)
{
	/* The list of -o is divided at commas, and so is the value of root. */
	if (word[0] == '/' && o->engine.root)
		return set_list(&o->engine.root, "root", word, err);
	char *value = strchr(word, '=');
	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < NDEFS; i++) {
		const struct option_def *d = &defs[i];
		if (strcmp(d->name, word) != 0)
			continue;
		if (is_mount_only(d) && !o->mounting)
			return err_set(err, -EINVAL, "-o %s: only hsmount has this option", word);
		if (!d->value != !value)
			return err_set(err, -EINVAL, "-o %s: %s", word,
				       value ? "takes no value" : "needs a value");
		return apply(o, d, value, err);
	}
	if (o->mounting && is_ignored(word))
		return 0;
	return err_set(err, -EINVAL, "-o %s: unknown option", word);
}

int options_add(struct options *o, const char *list, struct err *err)
{
	auto_free char *word = malloc(strlen(list) + 1);
	if (!word)
		return err_no_memory(err);
	for (;;) {
		size_t n = 0;
		bool quoted = false;
		for (; *list && (quoted || *list != ','); list++) {
			if (*list == '"' && (quoted || (n && word[n - 1] == '='))) {
				quoted = !quoted;
				continue;
			}
			if (*list == '\\' && list[1])
				list++;
			word[n++] = *list;
		}
		word[n] = '\0';
		if (quoted)
			return err_set(err, -EINVAL, "-o %s: the closing quote is missing", word);
		int rc = n ? add_one(o, word, err) : 0;
		if (rc || !*list)
			return rc;
		list++;
	}
}

int options_check(const struct options *o, struct err *err)
{
	if (o->has_cache_disk_size && !o->engine.cache_dir)
		return err_set(err, -EINVAL,
			       "cache_disk_size: nothing is kept on disk without cache_dir");
	if (!o->engine.write && (o->engine.journal_dir || o->engine.spool_size))
		return err_set(err, -EINVAL, "%s: requires the option rw",
			       o->engine.journal_dir ? "journal_dir" : "spool_size");
	return 0;
}

/* ---- help ---- */

static void print_option(const struct option_def *d)
{
	enum { COLUMN = 22 };
	char name[64];
	const char *line = d->help;
	int n = snprintf(name, sizeof(name), "%s%s%s", d->name, d->value ? "=" : "",
			 d->value ? d->value : "");
	printf("  %s", name);
	if (n >= COLUMN) {
		putchar('\n');
		n = -2;
	}
	while (*line) {
		const int length = (int)strcspn(line, "\n");
		printf("%*s%.*s\n", COLUMN - n, "", length, line);
		line += length + (line[length] == '\n');
		n = -2;
	}
}

void options_print_help(bool mounting)
{
	for (int subject = 0; subject < SUBJECTS; subject++) {
		bool title = false;
		for (size_t i = 0; i < NDEFS; i++) {
			const struct option_def *d = &defs[i];
			if ((int)d->subject != subject || !d->help ||
			    (is_mount_only(d) && !mounting))
				continue;
			if (!title)
				printf("\n%s:\n", subjects[subject]);
			title = true;
			print_option(d);
		}
	}
	if (mounting)
		puts("and allow_root, auto_unmount, [no]dev, [no]suid, [no]exec, [no]atime as in "
		     "fuse(8).");
}
