/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See link_file.h. The version of the object is found by a HEAD before it is read, is a condition
 * of each range that is read, and is compared again before the domain appears.
 */
#include "link_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>
#include <bucket/schemas.h>

/* The bucket and the key under which readers of the domain find the file. */
static int find_bucket(struct link_file *f, struct err *err)
{
	const struct files *files = f->e->files;
	f->bucket = strdup(files_bucket_name(files));
	if (asprintf(&f->bucket_key, "%s%s", files_bucket_prefix(files), f->key) < 0)
		f->bucket_key = NULL;
	return f->bucket && f->bucket_key ? 0 : err_no_memory(err);
}

static int check_key(const struct link_file *f, struct err *err)
{
	if (!store_key_ok(f->key))
		return err_set(err, -EINVAL, "%s: not a valid key", f->key);
	if (schema_is_document(schema_all(), f->key) || schema_is_storage(schema_all(), f->key))
		return err_set(err, -EINVAL, "%s: a part of a domain, not an HDF5 file", f->key);
	return 0;
}

/* Sends a HEAD. meta->size is UINT64_MAX if there is no such object. */
static int head(const struct link_file *f, struct store_meta *meta, struct err *err)
{
	const int rc = store_look(f->e->bucket.store, f->key, f->cancelled, meta, err);
	if (!rc)
		*meta = (struct store_meta){.size = UINT64_MAX};
	return rc < 0 ? err_wrap(err, rc, "%s", f->key) : 0;
}

const char *link_file_etag(const struct link_file *f)
{
	return f->meta.etag[0] && !files_has_local_etags(f->e->files) ? f->meta.etag : NULL;
}

static int find_local(struct link_file *f, const char *path, struct err *err)
{
	int rc = import_source_init(&f->local, path, err);
	if (rc || f->meta.size == UINT64_MAX || f->meta.size == f->local.size)
		return rc;
	return err_set(err, -ESTALE,
		       "%s is not the object %s: it has %" PRIu64 " bytes, the object has %" PRIu64,
		       path, f->key, f->local.size, f->meta.size);
}

int link_file_init(struct link_file *f, struct engine *e, const struct engine_import *opt,
		   struct err *err)
{
	const struct engine_link *link = opt->link;
	*f = (struct link_file){
		.e = e, .cancelled = opt->cancelled, .key = link->key, .is_local = link->is_local};
	int rc = check_key(f, err);
	if (!rc)
		rc = find_bucket(f, err);
	if (!rc && asprintf(&f->name, "%s/%s", f->bucket, f->bucket_key) < 0) {
		f->name = NULL;
		rc = err_no_memory(err);
	}
	if (!rc)
		rc = head(f, &f->meta, err);
	if (!rc && f->is_local)
		return find_local(f, opt->file, err);
	if (!rc && f->meta.size == UINT64_MAX)
		rc = err_set(err, -ENOENT,
			     "%s: the bucket has no such object; to link a local file, name its "
			     "key in the bucket with --as",
			     f->key);
	return rc;
}

void link_file_release(struct link_file *f)
{
	store_source_free(f->source);
	import_source_release(&f->local);
	free(f->bucket);
	free(f->bucket_key);
	free(f->name);
	*f = (struct link_file){0};
}

static int open_file(void *ctx, struct source **out, struct err *err)
{
	struct link_file *f = ctx;
	if (f->is_local)
		return import_source_open(&f->local, out, err);
	store_source_free(f->source);
	f->source = store_source_new(&(struct store_source_options){.store = f->e->bucket.store,
								    .key = f->key,
								    .size = f->meta.size,
								    .etag = f->meta.etag,
								    .cancelled = f->cancelled});
	if (!f->source)
		return err_no_memory(err);
	*out = store_source_source(f->source);
	return 0;
}

/* An object that did not exist may exist now. */
static int check_file(void *ctx, struct err *err)
{
	struct link_file *f = ctx;
	struct store_meta now;
	int rc = f->is_local ? import_source_check(&f->local, err) : 0;
	if (rc || f->meta.size == UINT64_MAX)
		return rc;
	rc = head(f, &now, err);
	if (!rc && (now.size != f->meta.size || strcmp(now.etag, f->meta.etag) != 0))
		rc = err_set(err, -ESTALE, "%s has changed while it was linked", f->key);
	return rc;
}

struct import_file link_file_of(struct link_file *f)
{
	return (struct import_file){
		.name = f->is_local ? f->local.path : f->name,
		.size = f->is_local ? f->local.size : f->meta.size,
		.mtime_ns = f->is_local ? f->local.mtime_ns : f->meta.mtime_ns,
		.open = open_file,
		.check = check_file,
		.ctx = f,
	};
}

void link_file_counts(const struct link_file *f, uint64_t *requests, uint64_t *bytes)
{
	struct store_source_counts counts = {0};
	if (f->source)
		store_source_counts(f->source, &counts);
	*requests = counts.requests;
	*bytes = counts.bytes;
}
