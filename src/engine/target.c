/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One argument that names a bucket and something in it, as a person types it: the bucket is the
 * nearest directory on the way up in which objects are stored. Any thread.
 */
#include <hsmount/engine.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <names/names.h>
#include <schema/schema.h>

#include "store_stack.h"
#include "survey.h"

/* Objects are stored in this directory, of whatever schema. */
static bool is_bucket(const char *dir)
{
	struct schema_survey seen;
	return survey_dir(dir, &seen) == 0 && schema_survey_stores(&seen);
}

/* An absolute path whose existing part has no links and no dots; NULL with err set. The names of
 * files in a mount need not exist in the bucket. */
static char *absolute(const char *arg, struct err *err)
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
			break;
		n = names_parent_len(head);
		head[n] = '\0';
	}
	err_set(err, head ? -ENOENT : -ENOMEM, "%s: not a path", arg);
	return NULL;
}

/* The bucket's name is known from the text alone. */
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
	return err_set(err, -ENOMEM, "out of memory");
}

int engine_split(const char *arg, char **bucket, char **path, struct err *err)
{
	static const char file[] = "file://";
	if (store_stack_is_s3(arg))
		return split_s3(arg, bucket, path, err);
	if (strncmp(arg, file, sizeof(file) - 1) == 0)
		arg += sizeof(file) - 1;
	auto_free char *whole = absolute(arg, err);
	if (!whole)
		return -ENOENT;
	auto_free char *dir = strdup(whole);
	for (size_t n = strlen(whole); dir && n > 0; n = names_parent_len(dir)) {
		dir[n] = '\0';
		if (!is_bucket(dir))
			continue;
		const char *rest = whole + n;
		while (*rest == '/')
			rest++;
		*path = strdup(rest);
		*bucket = *path ? dir : NULL;
		if (!*bucket)
			break;
		dir = NULL;
		for (size_t len = strlen(*path); len && (*path)[len - 1] == '/';)
			(*path)[--len] = '\0';
		return 0;
	}
	return err_set(err, -ENOENT,
		       "%s is not in a bucket: no directory from there upwards has %s in it", arg,
		       schema_survey_storage);
}
