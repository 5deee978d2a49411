/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits an argument "BUCKET/PATH" into the bucket and the path in it: the bucket is the nearest
 * directory, from the path upwards, that has the schema's storage in it. Any thread.
 */
#include <hsmount/engine.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/mem.h>
#include <names/names.h>
#include <schema/schema.h>
#include <bucket/schemas.h>
#include <bucket/store_stack.h>

#include "probe.h"

/* Returns whether a schema stores objects in this directory. Sets `why` to the first failure to
 * report. A directory that does not exist is no failure: the end of the path may be a name in a
 * mount. */
static bool is_bucket(const char *dir, struct err *why)
{
	struct schema_survey seen;
	const int rc = probe_dir(dir, &seen);
	if (rc && rc != -ENOENT && rc != -ENOTDIR && !why->code)
		err_errno(why, rc, "%s", dir);
	return rc == 0 && seen.storage;
}

/* Makes the path absolute, and resolves links and dots in the part of it that exists. The other
 * part may be a name that only a mount has. Returns NULL if out of memory. */
static char *absolute(const char *arg)
{
	auto_free char *head = strdup(arg);
	size_t n = head ? strlen(head) : 0;
	while (n > 1 && head[n - 1] == '/')
		head[--n] = '\0';
	while (head) {
		auto_free char *real = realpath(n ? head : arg[0] == '/' ? "/" : ".", NULL);
		const char *rest = arg + n;
		while (*rest == '/')
			rest++;
		char *out = NULL;
		if (real && !*rest)
			return strdup(real);
		if (real)
			return asprintf(&out, "%s/%s", strcmp(real, "/") ? real : "", rest) < 0
				       ? NULL
				       : out;
		if (n == 0)
			return strdup(arg); /* the working directory does not exist any more */
		n = names_parent_len(head);
		head[n] = '\0';
	}
	return NULL;
}

static int split_s3(const char *arg, char **bucket, char **path, struct err *err)
{
	auto_free char *name = NULL, *rest = NULL;
	int rc = store_stack_split_s3(arg, &name, &rest, err);
	if (rc)
		return rc;
	*path = strdup(rest ? rest : "");
	*bucket = NULL;
	if (*path && asprintf(bucket, "s3://%s", name) >= 0)
		return 0;
	free(*path);
	return err_no_memory(err);
}

/* The directory of an argument without "file://". */
static const char *local(const char *arg)
{
	static const char file[] = "file://";
	const size_t n = sizeof(file) - 1;
	return strncmp(arg, file, n) == 0 ? arg + n : arg;
}

/* Divides a path behind its first n bytes, the bucket. */
static int split_at(const char *whole, size_t n, char **bucket, char **path, struct err *err)
{
	const char *rest = whole + n;
	while (*rest == '/')
		rest++;
	size_t len = strlen(rest);
	while (len && rest[len - 1] == '/')
		len--;
	*bucket = strndup(whole, n);
	*path = strndup(rest, len);
	if (*bucket && *path)
		return 0;
	free(*bucket);
	free(*path);
	return err_no_memory(err);
}

/* Returns whether a listing shows that this directory is a domain (struct schema_mark). */
static bool is_marked(const char *dir)
{
	struct schema_survey seen;
	return probe_dir(dir, &seen) == 0 && seen.mark.schema;
}

/* Finds the domain that a listing shows: the path, a directory above it, or the path without the
 * suffix that a mount appends. Returns the length of the path of the bucket, which is the directory
 * above the domain, or 0 if there is none. */
static size_t find_marked(const char *whole)
{
	auto_free char *marked = NULL;
	auto_free char *dir = strdup(whole);
	size_t bucket = 0;
	if (dir && !names_marked(schema_all(), whole, &marked) && marked && is_marked(marked))
		bucket = names_parent_len(marked);
	for (size_t n = dir ? strlen(dir) : 0; n > 0; n = names_parent_len(dir)) {
		dir[n] = '\0';
		if (is_marked(dir))
			bucket = names_parent_len(dir);
		else if (bucket)
			break;
	}
	return bucket;
}

int engine_split(const char *arg, char **bucket, char **path, struct err *err)
{
	if (store_stack_is_s3(arg))
		return split_s3(arg, bucket, path, err);
	arg = local(arg);
	struct err why = ERR_INIT;
	auto_free char *whole = absolute(arg);
	auto_free char *dir = whole ? strdup(whole) : NULL;
	if (!dir)
		return err_no_memory(err);
	for (size_t n = strlen(whole); n > 0; n = names_parent_len(dir)) {
		dir[n] = '\0';
		if (is_bucket(dir, &why))
			return split_at(whole, n, bucket, path, err);
	}
	struct schema_survey seen;
	size_t above = find_marked(whole);
	if (!above && probe_dir(whole, &seen) == 0 &&
	    (seen.marks || (!probe_dir_marks(whole, true, &seen) && seen.marks)))
		above = strlen(whole);
	if (above)
		return split_at(whole, above, bucket, path, err);
	if (why.code)
		return err_set(err, why.code, "%s: cannot look for the bucket: %s", arg, why.msg);
	return err_set(err, -ENOENT,
		       "%s%s is not in a bucket: no directory from there upwards has %s in it", arg,
		       access(whole, F_OK) && errno == ENOENT ? " does not exist, and" : "",
		       probe_new_storages());
}

/* Probes the nearest directory of a path that exists: the end of the path may not exist yet. *dir
 * is on the heap. `whole` may be NULL, if out of memory. */
static int probe_existing(const char *whole, char **dir, struct schema_survey *seen)
{
	char *d = *dir = whole ? strdup(whole) : NULL;
	int rc = d ? -ENOENT : -ENOMEM;
	size_t n = d ? strlen(d) : 0;
	while (n > 0 && (rc = probe_dir(d, seen)) == -ENOENT) {
		n = names_parent_len(d);
		d[n] = '\0';
	}
	return rc;
}

int engine_split_absent(const char *arg, char **bucket, char **path, struct err *err)
{
	auto_free char *whole = absolute(local(arg));
	struct schema_survey seen;
	auto_free char *dir = NULL;
	int rc = probe_existing(whole, &dir, &seen);
	if (!rc && !seen.marks)
		rc = probe_dir_marks(dir, false, &seen);
	if (rc == -ENOMEM)
		return err_no_memory(err);
	if (rc || !seen.marks)
		return err_set(err, -ENOENT, "%s is not in a directory of stores", arg);
	return split_at(whole, strlen(dir), bucket, path, err);
}

int engine_split_new(const char *arg, char **bucket, char **path, struct err *err)
{
	auto_free char *whole = absolute(local(arg));
	struct schema_survey seen;
	auto_free char *dir = NULL;
	int rc = probe_existing(whole, &dir, &seen);
	if (rc == -ENOMEM)
		return err_set(err, rc, "out of memory");
	if (rc || schema_recognise(&seen, false) != SCHEMA_PLACE_EMPTY)
		return err_set(err, -ENOENT, "%s is not in an empty directory", arg);
	return split_at(whole, strlen(dir), bucket, path, err);
}
