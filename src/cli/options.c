/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options after -o, each also understood as --name: one table for both programs. Values are checked
 * here, so that a wrong one is told before anything is opened. No state; main thread only.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char options_help[] =
	"  metadata_ttl=SECONDS  how long cached metadata is considered valid (names and sizes 1,\n"
	"                        what opens and listings found 0)\n"
	"  cache_size=BYTES      memory for decoded chunks and metadata, with K, M or G (256M)\n"
	"  cache_dir=DIR         keep fetched objects there for later mounts (none)\n"
	"  cache_disk_size=BYTES how much is kept there (10G)\n"
	"  workers=N             requests and decodings at once (16)\n"
	"  filters=stored|none   show datasets with their filters, in a form that is cheap to\n"
	"                        make (stored), or without any (none) (stored)\n"
	"  log_level=LEVEL       error, warning, info or debug (warning)\n"
	"  allow_empty           accept a directory or prefix that is not recognised as a bucket\n"
	"For buckets in S3; what is not given here comes from the environment and the shared\n"
	"files of the AWS tools:\n"
	"  endpoint=URL          another service than Amazon's\n"
	"  region=REGION         of the bucket; else the bucket is asked\n"
	"  profile=NAME          of the shared files\n"
	"  ca_bundle=FILE        certificates to trust\n"
	"  bucket_owner=ACCOUNT  that must own the bucket\n"
	"  no_sign_request       for a public bucket: no credentials\n"
	"  requester_pays        for a bucket whose requester pays\n"
	"  path_style            never put the bucket into the host's name\n"
	"  connections=N         at once (128)\n";

void options_init(struct options *o, bool mounting)
{
	*o = (struct options){
		.log_level = LOG_LEVEL_WARNING,
		.mounting = mounting,
		.uid = getuid(),
		.gid = getgid(),
	};
	engine_options_init(&o->engine);
}

void options_release(struct options *o)
{
	free(o->fault);
	free(o->cache_dir);
	for (size_t i = 0; i < OPTIONS_S3_TEXTS; i++)
		free(o->s3[i]);
	str_release(&o->mount);
	for (size_t i = 0; o->longs && o->longs[i].name; i++)
		if (o->longs[i].val >= OPTIONS_LONG)
			free((char *)(uintptr_t)o->longs[i].name);
	free(o->longs);
}

int complain(const char *program, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", program, err->msg);
	return EXIT_FAILED;
}

/* ---- values ---- */

static int bad_value(struct err *err, const char *name, const char *value, const char *want)
{
	return err_set(err, -EINVAL, "%s=%s: %s", name, value, want);
}

/* A whole number up to max, in base 10 or 8. */
static bool parse_number(const char *s, int base, uint64_t max, uint64_t *out)
{
	char *end;
	if (s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	unsigned long long v = strtoull(s, &end, base);
	*out = v;
	return !errno && *end == '\0' && v <= max;
}

static bool parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end;
	if (s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	if (errno)
		return false;
	unsigned int shift = 0;
	if (*end) {
		const char *unit = strchr(units, *end & ~0x20);
		if (!unit || end[1])
			return false;
		shift = 10 * (unsigned int)(unit - units + 1);
	}
	*out = (uint64_t)v << shift;
	return *out >> shift == v;
}

static int set_ttl(struct options *o, const char *name, const char *value, struct err *err)
{
	char *end;
	double seconds = strtod(value, &end);
	if (end == value || *end || !(seconds >= 0 && seconds <= 1e9))
		return bad_value(err, name, value, "must be a number of seconds");
	/* A time is given to save requests, so it holds for opens, too. */
	o->engine.metadata_ttl = o->engine.open_ttl = seconds;
	return 0;
}

static int set_cache_size(struct options *o, const char *name, const char *value, struct err *err)
{
	return parse_size(value, &o->engine.cache_size)
		       ? 0
		       : bad_value(err, name, value,
				   "must be a number of bytes, or one with K, M or G");
}

static int set_cache_dir(struct options *o, const char *name, const char *value, struct err *err)
{
	if (!value[0])
		return bad_value(err, name, value, "must name a directory");
	free(o->cache_dir);
	o->cache_dir = strdup(value);
	o->engine.cache_dir = o->cache_dir;
	return o->cache_dir ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int set_cache_disk_size(struct options *o, const char *name, const char *value,
			       struct err *err)
{
	o->has_cache_disk_size = true;
	return parse_size(value, &o->engine.cache_disk_size)
		       ? 0
		       : bad_value(err, name, value,
				   "must be a number of bytes, or one with K, M, G or T");
}

static int set_workers(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!parse_number(value, 10, 1024, &n))
		return bad_value(err, name, value, "must be a number from 0 to 1024");
	o->engine.workers = (unsigned int)n;
	return 0;
}

static int set_filters(struct options *o, const char *name, const char *value, struct err *err)
{
	if (strcmp(value, "none") != 0 && strcmp(value, "stored") != 0)
		return bad_value(err, name, value, "must be \"stored\" or \"none\"");
	o->engine.no_filters = strcmp(value, "none") == 0;
	return 0;
}

static int set_log_level(struct options *o, const char *name, const char *value, struct err *err)
{
	if (log_level_parse(value, &o->log_level))
		return bad_value(err, name, value, "must be error, warning, info or debug");
	return 0;
}

static int set_allow_empty(struct options *o, const char *name, const char *value, struct err *err)
{
	o->engine.allow_empty = true;
	return 0;
}

static int set_fault(struct options *o, const char *name, const char *value, struct err *err)
{
	free(o->fault);
	o->fault = strdup(value);
	o->engine.debug_fault = o->fault;
	return o->fault ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static int set_count(struct options *o, const char *name, const char *value, struct err *err)
{
	o->engine.debug_count = true;
	return 0;
}

/* ---- S3 ---- */

static int set_s3_text(struct options *o, const char *name, const char *value, struct err *err)
{
	struct engine_s3_options *s3 = &o->engine.s3;
	const struct {
		const char *name, **to;
	} texts[OPTIONS_S3_TEXTS] = {
		{"endpoint", &s3->endpoint},	     {"region", &s3->region},
		{"profile", &s3->profile},	     {"ca_bundle", &s3->ca_bundle},
		{"bucket_owner", &s3->bucket_owner},
	};
	/* A variable that is not set, as a rule. */
	if (!value[0])
		return bad_value(err, name, value, "must not be empty");
	for (size_t i = 0; i < OPTIONS_S3_TEXTS; i++) {
		if (strcmp(texts[i].name, name) != 0)
			continue;
		free(o->s3[i]);
		o->s3[i] = strdup(value);
		*texts[i].to = o->s3[i];
		return o->s3[i] ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	return err_set(err, -EINVAL, "-o %s: unknown option", name);
}

static int set_s3_flag(struct options *o, const char *name, const char *value, struct err *err)
{
	struct engine_s3_options *s3 = &o->engine.s3;
	s3->no_sign_request |= strcmp(name, "no_sign_request") == 0;
	s3->requester_pays |= strcmp(name, "requester_pays") == 0;
	s3->path_style |= strcmp(name, "path_style") == 0;
	return 0;
}

static int set_connections(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!parse_number(value, 10, 1024, &n) || n == 0)
		return bad_value(err, name, value, "must be a number from 1 to 1024");
	o->engine.s3.connections = (unsigned int)n;
	return 0;
}

/* ---- mounting ---- */

static int set_uid(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!parse_number(value, 10, UINT32_MAX - 1, &n))
		return bad_value(err, name, value, "must be a number");
	o->uid = (uid_t)n;
	return 0;
}

static int set_gid(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!parse_number(value, 10, UINT32_MAX - 1, &n))
		return bad_value(err, name, value, "must be a number");
	o->gid = (gid_t)n;
	return 0;
}

static int set_umask(struct options *o, const char *name, const char *value, struct err *err)
{
	uint64_t n;
	if (!parse_number(value, 8, 0777, &n))
		return bad_value(err, name, value, "must be an octal number");
	o->umask = (mode_t)n;
	return 0;
}

static int set_metrics(struct options *o, const char *name, const char *value, struct err *err)
{
	return metrics_address_parse(value, &o->metrics, err);
}

static int pass_on(struct options *o, const char *name, const char *value, struct err *err)
{
	str_addf(&o->mount, "%s%s", str_text(&o->mount)[0] ? "," : "", name);
	return str_ok(&o->mount) ? 0 : err_set(err, -ENOMEM, "out of memory");
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

static int ignore(struct options *o, const char *name, const char *value, struct err *err)
{
	return 0;
}

/* Nothing else is possible. */
static int note_ro(struct options *o, const char *name, const char *value, struct err *err)
{
	return 0;
}

/* mount(8) says "rw" when nobody has said anything, so it is no reason to fail. */
static int note_rw(struct options *o, const char *name, const char *value, struct err *err)
{
	fprintf(stderr, "hsmount: mounted read-only: writing is not supported\n");
	return 0;
}

/* ---- the table ---- */

static const struct option_def {
	const char *name;
	bool has_value;
	bool only_mount;
	int (*set)(struct options *o, const char *name, const char *value, struct err *err);
} defs[] = {
	{"metadata_ttl", true, false, set_ttl},
	{"cache_size", true, false, set_cache_size},
	{"cache_dir", true, false, set_cache_dir},
	{"cache_disk_size", true, false, set_cache_disk_size},
	{"workers", true, false, set_workers},
	{"filters", true, false, set_filters},
	{"log_level", true, false, set_log_level},
	{"allow_empty", false, false, set_allow_empty},
	{"endpoint", true, false, set_s3_text},
	{"region", true, false, set_s3_text},
	{"profile", true, false, set_s3_text},
	{"ca_bundle", true, false, set_s3_text},
	{"bucket_owner", true, false, set_s3_text},
	{"no_sign_request", false, false, set_s3_flag},
	{"requester_pays", false, false, set_s3_flag},
	{"path_style", false, false, set_s3_flag},
	{"connections", true, false, set_connections},
	{"debug_fault", true, false, set_fault},
	{"debug_count", false, false, set_count},
	{"uid", true, true, set_uid},
	{"gid", true, true, set_gid},
	{"umask", true, true, set_umask},
	{"metrics_listen", true, true, set_metrics},
	{"allow_other", false, true, set_allow_other},
	{"default_permissions", false, true, set_default_permissions},
	{"allow_root", false, true, pass_on},
	{"auto_unmount", false, true, pass_on},
	{"nodev", false, true, pass_on},
	{"dev", false, true, pass_on},
	{"nosuid", false, true, pass_on},
	{"suid", false, true, pass_on},
	{"noexec", false, true, pass_on},
	{"exec", false, true, pass_on},
	{"noatime", false, true, pass_on},
	{"atime", false, true, pass_on},
	{"ro", false, true, note_ro},
	{"rw", false, true, note_rw},
	/* What fstab(5) has for others. */
	{"defaults", false, true, ignore},
	{"auto", false, true, ignore},
	{"noauto", false, true, ignore},
	{"user", false, true, ignore},
	{"nouser", false, true, ignore},
	{"users", false, true, ignore},
	{"nofail", false, true, ignore},
	{"_netdev", false, true, ignore},
};

enum { NDEFS = sizeof(defs) / sizeof(defs[0]) };

/* "metadata_ttl" -> "metadata-ttl" */
static char *dashed(const char *name)
{
	char *out = strdup(name);
	for (char *c = out; c && *c; c++)
		if (*c == '_')
			*c = '-';
	return out;
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
		if (d->set == ignore || (d->only_mount && !o->mounting))
			continue;
		o->longs[n] = (struct option){
			.name = dashed(d->name),
			.has_arg = d->has_value ? required_argument : no_argument,
			.val = OPTIONS_LONG + (int)i,
		};
		if (!o->longs[n++].name)
			return NULL;
	}
	return o->longs;
}

int options_add_long(struct options *o, int c, const char *value, struct err *err)
{
	const struct option_def *d = &defs[c - OPTIONS_LONG];
	return d->set(o, d->name, value, err);
}

/* word: "name" or "name=value"; is taken apart. */
static int add_one(struct options *o, char *word, struct err *err)
{
	char *value = strchr(word, '=');
	if (value)
		*value++ = '\0';
	if (o->mounting && strncmp(word, "x-", 2) == 0)
		return 0; /* systemd's and other readers' of fstab */
	for (size_t i = 0; i < NDEFS; i++) {
		const struct option_def *d = &defs[i];
		if (strcmp(d->name, word) != 0)
			continue;
		if (d->only_mount && !o->mounting)
			return err_set(err, -EINVAL, "-o %s: only hsmount has this option", word);
		if (d->has_value != (value != NULL))
			return err_set(err, -EINVAL, "-o %s: %s", word,
				       value ? "takes no value" : "needs a value");
		return d->set(o, d->name, value, err);
	}
	return err_set(err, -EINVAL, "-o %s: unknown option", word);
}

int options_add(struct options *o, const char *list, struct err *err)
{
	auto_free char *word = malloc(strlen(list) + 1);
	if (!word)
		return err_set(err, -ENOMEM, "out of memory");
	for (;;) {
		size_t n = 0;
		for (; *list && *list != ','; list++) {
			if (*list == '\\' && list[1])
				list++;
			word[n++] = *list;
		}
		word[n] = '\0';
		int rc = n ? add_one(o, word, err) : 0;
		if (rc || !*list)
			return rc;
		list++;
	}
}

int options_check(const struct options *o, struct err *err)
{
	if (o->has_cache_disk_size && !o->cache_dir)
		return err_set(err, -EINVAL,
			       "cache_disk_size: nothing is kept on disk without cache_dir");
	return 0;
}
