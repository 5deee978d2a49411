/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See recognise_bucket.h. Decides from a probe what a place is and writes the message. Main thread,
 * before requests of the mount are served.
 */
#include <bucket/recognise_bucket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/mem.h>
#include <names/names.h>
#include <bucket/schemas.h>

#include "probe.h"

enum {
	LEVELS_MAX = 8,
	SUFFIX_MAX = 8, /* bytes that names_of_domain() may append */
};

/* The bucket that the place is in, and the place's path in it, on the heap. They are NULL if there
 * is none. */
struct above {
	char *bucket, *path;
};

static void cleanup_above(struct above *a)
{
	free(a->bucket);
	free(a->path);
	*a = (struct above){0};
}
#define auto_above __attribute__((cleanup(cleanup_above)))

static int find_above_s3(const char *url, struct store *whole, struct above *out, struct err *err)
{
	auto_free char *bucket = NULL, *prefix = NULL;
	bool found = false;
	int rc = store_stack_split_s3(url, &bucket, &prefix, err);
	if (rc || !prefix)
		return rc;
	auto_free char *above = strdup(prefix);
	if (!above)
		return err_no_memory(err);
	for (int i = 0; !rc && !found && i < LEVELS_MAX && above[0]; i++) {
		above[names_parent_len(above)] = '\0';
		rc = probe_has_storage(whole, above, &found, err);
	}
	if (!found)
		return rc;
	out->path = strdup(prefix + strlen(above) + (above[0] ? 1 : 0));
	if (asprintf(&out->bucket, "s3://%s%s%s", bucket, above[0] ? "/" : "", above) < 0)
		out->bucket = NULL;
	return out->path && out->bucket ? 0 : err_no_memory(err);
}

static int refuse_part(const char *name, enum schema_place place, const struct above *above,
		       struct err *err)
{
	char path[SCHEMA_KEY_MAX + 1 + SUFFIX_MAX];
	const bool domain = place == SCHEMA_PLACE_DOMAIN;
	if (!above->bucket)
		return err_set(err, -EINVAL, "%s is a %s, not a bucket: use the bucket that it %s",
			       name, domain ? "single domain" : "folder of a bucket",
			       domain ? "belongs to" : "is in");
	if (schema_is_storage(schema_all(), above->path))
		return err_set(err, -EINVAL,
			       "%s is a part of the bucket %s, where the data are stored: use %s",
			       name, above->bucket, above->bucket);
	snprintf(path, sizeof(path), "%s", above->path);
	if (domain)
		names_of_domain(schema_of_new_domains(schema_all())->suffix, path, sizeof(path));
	return err_set(err, -EINVAL, "%s is a %s of the bucket %s: use %s and look for %s%s in it",
		       name, domain ? "single domain" : "folder", above->bucket, above->bucket,
		       path, domain ? "" : "/");
}

static void warn(const struct engine_options *opt, enum schema_place place)
{
	struct log *log = opt->log;
	const char *name = opt->bucket;
	if (place == SCHEMA_PLACE_EMPTY)
		log_warning(log, "%s: nothing is there%s", name,
			    opt->write ? "; it becomes a bucket" : "");
	else
		log_warning(
			log,
			"%s may not be a bucket of domains: neither the service's storage (%s) nor "
			"a domain or Zarr store is there",
			name, probe_new_storages());
}

/* Looks for the bucket that contains the place. The decision depends on it only if the place has
 * documents and no storage; otherwise only the message does. */
static int find_above(const char *name, const struct store_stack_parts *parts,
		      const struct schema_survey *seen, struct log *log, struct above *out,
		      struct err *err)
{
	struct err why = ERR_INIT;
	const bool s3 = store_stack_is_s3(name);
	if (s3 && !seen->document && !seen->documents)
		return 0;
	int rc = s3 ? find_above_s3(name, parts->whole, out, &why)
		    : engine_split(name, &out->bucket, &out->path, &why);
	if (rc == -ENOMEM)
		return err_set(err, rc, "out of memory");
	if (out->path && !out->path[0]) /* the place itself */
		cleanup_above(out);
	if (s3 && rc && !seen->document)
		log_warning(log,
			    "%s may be a folder of a bucket: %s is not in it, and the search above "
			    "it failed: %s",
			    name, probe_new_storages(), why.msg);
	return 0;
}

void recognised_release(struct recognised *place)
{
	free(place->above);
	free(place->name);
}

/* Finds the bucket above the place, which is a domain that a listing shows. Fails with -EINVAL if
 * nothing is above it. */
static int use_above(const char *name, struct recognised *place, struct err *err)
{
	const bool s3 = store_stack_is_s3(name);
	auto_free char *whole = s3 ? strdup(name) : realpath(store_stack_dir(name), NULL);
	size_t n = whole ? strlen(whole) : 0;
	while (n > 1 && whole[n - 1] == '/')
		whole[--n] = '\0';
	const size_t above = n ? names_parent_len(whole) : 0;
	if (!whole)
		return err_errno(err, -errno, "%s", name);
	if (s3 && strncmp(whole, "s3://", 5) == 0 && !strchr(whole + 5, '/'))
		return err_set(err, -EINVAL,
			       "%s is a single domain, and nothing is above it: a mount shows the "
			       "domains in a bucket or prefix",
			       name);
	place->above = above ? strndup(whole, above) : strdup("/");
	place->name = strdup(whole + above + 1);
	return place->above && place->name ? 0 : err_no_memory(err);
}

/* Checks that the place is a bucket, or that *out says what to open or to make of it. */
static int judge(const struct engine_options *opt, const struct store_stack_parts *parts,
		 struct schema_survey *seen, struct recognised *out, struct err *err)
{
	auto_above struct above above = {0};
	const char *name = opt->bucket;
	int rc = seen->document ? probe_document(parts->count, seen, err) : 0;
	if (!rc)
		rc = find_above(name, parts, seen, opt->log, &above, err);
	if (rc)
		return rc;
	const enum schema_place place = schema_recognise(seen, above.bucket);
	if (place == SCHEMA_PLACE_STORE && !opt->allow_empty)
		return use_above(name, out, err);
	if (seen->document)
		return refuse_part(name, place, &above, err);
	if (place == SCHEMA_PLACE_BUCKET || opt->allow_empty)
		return 0;
	if (above.bucket)
		return refuse_part(name, SCHEMA_PLACE_FOLDER, &above, err);
	if (place == SCHEMA_PLACE_EMPTY && opt->make_bucket)
		return 0;
	if (!store_stack_is_s3(name) && place != SCHEMA_PLACE_EMPTY)
		return err_set(err, -EINVAL,
			       "%s is not a bucket: neither the service's storage (%s) nor a "
			       "domain or Zarr store is there; -o allow_empty accepts it",
			       name, probe_new_storages());
	if (!store_stack_is_s3(name) && !opt->write)
		return err_set(err, -EINVAL,
			       "%s is an empty directory, not a bucket; -o allow_empty accepts it",
			       name);
	warn(opt, place);
	out->becomes = place == SCHEMA_PLACE_EMPTY && opt->write && !store_stack_is_s3(name);
	return 0;
}

/* Surveys a directory. A bucket may have all its stores in folders, so a directory in which nothing
 * is recognised is searched in several levels. */
static int probe_local(const char *dir, struct schema_survey *seen, struct err *err)
{
	int rc = probe_dir(dir, seen);
	if (!rc && !seen->document && !seen->documents && !seen->mark.schema)
		rc = probe_dir_marks(dir, !seen->storage, seen);
	return rc ? err_errno(err, rc, "reading the directory") : 0;
}

int recognise_bucket(const struct engine_options *opt, const struct store_stack_parts *parts,
		     struct recognised *place, struct err *err)
{
	*place = (struct recognised){0};
	const bool s3 = store_stack_is_s3(opt->bucket);
	struct schema_survey seen;
	int rc = 0;
	if (s3) {
		rc = probe_store(parts->count, &seen, err);
		if (rc == -EACCES && !probe_store_marks(parts->count, &seen, NULL) &&
		    seen.mark.schema)
			rc = 0;
	} else {
		rc = probe_local(store_stack_dir(opt->bucket), &seen, err);
	}
	if (rc)
		err_wrap(err, rc, "bucket %s", opt->bucket);
	else if (!seen.storage)
		rc = judge(opt, parts, &seen, place, err);
	place->has_marks = seen.marks;
	return rc;
}

/* The next mount must recognise the bucket, even if only plain files are stored until then. */
int recognise_make(const struct engine_options *opt, struct err *err)
{
	auto_free char *path = names_join(store_stack_dir(opt->bucket), probe_new_storages());
	if (!path)
		return err_no_memory(err);
	return mkdir(path, 0777) && errno != EEXIST ? err_errno(err, -errno, "%s", path) : 0;
}
