/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsimage link: makes a domain that refers to an HDF5 file in the bucket. Except for the file, it
 * is an import: see cmd_import.c.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

/* Finds the key of the file in the bucket of the domain. It is on the heap. */
static int find_key(const struct command *c, const char *file, char **key, struct err *err)
{
	auto_free char *bucket = NULL;
	*key = NULL;
	if (c->as || c->bucket) {
		/* With -b, the file is a key in that bucket. */
		const char *name = c->as ? c->as : file;
		*key = strdup(name + strspn(name, "/"));
		return *key ? 0 : err_no_memory(err);
	}
	int rc = engine_split(file, &bucket, key, err);
	if (rc == -ENOENT)
		return err_set(err, rc,
			       "%s is not in a bucket; to link a local file, name its key in the "
			       "bucket with --as",
			       file);
	if (rc)
		return rc;
	if (strcmp(bucket, c->bucket_path) == 0)
		return 0;
	free(*key);
	*key = NULL;
	return err_set(err, -EXDEV,
		       "%s is in the bucket %s, the domain is in %s; a domain can only refer to "
		       "files of its own bucket",
		       file, bucket, c->bucket_path);
}

static void print_counts(const struct command *c, const struct engine_link *link)
{
	if (c->import.abort)
		return;
	fprintf(stderr,
		COMMAND_PROGRAM ": %" PRIu64 " dataset%s refer%s to %" PRIu64
				" bytes of the file; %" PRIu64 " request%s read %" PRIu64
				" bytes of it\n",
		link->linked, link->linked == 1 ? "" : "s", link->linked == 1 ? "s" : "",
		link->linked_bytes, link->requests, link->requests == 1 ? "" : "s", link->bytes);
}

int command_link(struct command *c)
{
	struct err err = ERR_INIT;
	struct engine_link link = {.is_local = c->as, .locate = c->fastlink, .verify = c->verify};
	auto_free char *key = NULL;
	int status = command_import_open(c);
	if (status)
		return status;
	if (!c->import.abort && find_key(c, c->import.file, &key, &err))
		return command_failed(c, &err);
	link.key = key ? key : "";
	c->import.link = &link;
	if (!c->import.abort && !c->as)
		c->import.file = key;
	status = command_import_run(c);
	if (!status)
		print_counts(c, &link);
	return status;
}
