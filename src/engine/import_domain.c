/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports a local file, or removes what an unfinished import has stored: finds the path of the
 * domain by the names that a mount shows, and hands both over to domain/. One thread.
 */
#include "engine_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <import/import.h>

#include "external_files.h"
#include "import_file.h"
#include "link_file.h"

/* ---- the path of the domain ---- */

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Finds out what a mount shows at a path. *kind is -1 if it shows nothing. *in_bucket is its path
 * there, on the heap. */
static int look_up(struct engine *e, const char *path, int *kind, char **in_bucket, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct err why = ERR_INIT;
	bool is_new;
	const int rc = names_resolve_for_open(e->bucket.names, path, &n, &is_new, &why);
	*kind = rc ? -1 : (int)n->kind;
	*in_bucket = NULL;
	if (rc && rc != -ENOENT) {
		err_copy(err, &why);
		return rc;
	}
	if (!rc && n->kind == NAMES_DOMAIN && n->doc.kind == NAMES_DOC_STORE)
		return names_read_only(e->bucket.names, n, err);
	*in_bucket = strdup(rc ? path : n->path);
	return *in_bucket ? 0 : err_no_memory(err);
}

/* A domain without extension is shown with one. If another entry has that name, a mount would leave
 * the new domain out. */
static int check_bare(struct engine *e, const char *path, struct err *err)
{
	const char *suffix = bucket_new_domains(&e->bucket)->suffix;
	char shown[STORE_KEY_MAX + 1];
	auto_names_node struct names_node *taken = NULL;
	const int rc = names_check_shown(e->bucket.names, suffix, path, shown, &taken, err);
	if (rc != NAMES_SHOWN_TAKEN)
		return rc < 0 ? rc : 0; /* a name that is too long hides nothing */
	return err_set(err, -EEXIST, "%s: a mount would show this domain as %s, which exists", path,
		       shown);
}

/* The nearest thing above a path that does not exist must be able to contain the domain. */
static int check_above(struct engine *e, const char *path, struct err *err)
{
	auto_free char *above = strdup(path);
	if (!above)
		return err_no_memory(err);
	for (size_t n; (n = names_parent_len(above)) > 0;) {
		auto_free char *there = NULL;
		int kind;
		above[n] = '\0';
		const int rc = look_up(e, above, &kind, &there, err);
		if (!rc && kind == NAMES_OBJECT)
			return err_set(err, -ENOTDIR, "%s: %s is not a folder", path, above);
		if (rc || kind >= 0)
			return rc;
	}
	return 0;
}

/* No reader of a store expects a domain among its keys, and its file would not show the domain. So
 * no directory above a new domain may be that of a store, or be in one. */
static int check_store_above(struct engine *e, const char *path, struct err *err)
{
	auto_free char *above = strdup(path);
	if (!above)
		return err_no_memory(err);
	for (size_t n; (n = names_parent_len(above)) > 0;) {
		auto_names_node struct names_node *node = NULL;
		struct err why = ERR_INIT;
		above[n] = '\0';
		const int rc = names_resolve(e->bucket.names, above, &node, &why);
		if (rc && rc != -ENOENT) {
			err_copy(err, &why);
			return rc;
		}
		if (!rc && node->kind == NAMES_DIR && node->doc.kind == NAMES_DOC_STORE)
			return err_set(err, -EROFS,
				       "%s: %s is a store of the format %s, which contains no "
				       "domains; name a path outside of it",
				       path, above, node->doc.document->schema->name);
	}
	return 0;
}

/* Finds the path of the domain in the bucket. *path is on the heap. */
static int find_target(struct engine *e, const struct engine_import *opt, char **path,
		       struct err *err)
{
	auto_free char *asked = strdup(opt->path);
	int kind = NAMES_DIR;
	int rc = asked ? 0 : err_no_memory(err);
	if (!rc && !opt->in_folder && *opt->path)
		rc = look_up(e, asked, &kind, path, err);
	if (!rc && kind == NAMES_DIR) {
		if (!opt->file)
			return err_set(err, -EISDIR, "%s: it is a folder; name the domain",
				       *asked ? asked : "/");
		free(*path);
		*path = NULL;
		char *below = names_join(asked, last_of(opt->file));
		if (!below)
			return err_no_memory(err);
		free(asked);
		asked = below;
		rc = look_up(e, asked, &kind, path, err);
	}
	if (rc)
		return rc;
	if (kind == NAMES_DIR)
		return err_set(err, -EISDIR, "%s: it is a folder", asked);
	if (kind == NAMES_OBJECT)
		return err_set(err, -EEXIST, "%s: it exists and is not a domain", asked);
	rc = names_check_new(e->bucket.names, *path, err);
	if (rc || kind == NAMES_DOMAIN)
		return rc;
	rc = check_above(e, *path, err);
	if (!rc && opt->file && !opt->abort)
		rc = check_store_above(e, *path, err);
	return rc ? rc : check_bare(e, *path, err);
}

/* ---- the import ---- */

static int open_source(void *ctx, struct source **out, struct err *err)
{
	return import_source_open(ctx, out, err);
}

static int check_source(void *ctx, struct err *err)
{
	return import_source_check(ctx, err);
}

static struct import_file file_of(struct import_source *s)
{
	return (struct import_file){.name = s->path,
				    .size = s->size,
				    .mtime_ns = s->mtime_ns,
				    .open = open_source,
				    .check = check_source,
				    .ctx = s};
}

/* A file and the external files that have parts of its data. */
struct whole_file {
	struct import_file main;
	struct external_files *external; /* NULL if they are not allowed */
};

static int open_whole(void *ctx, struct source **out, struct err *err)
{
	const struct whole_file *w = ctx;
	return w->main.open(w->main.ctx, out, err);
}

static int check_whole(void *ctx, struct err *err)
{
	const struct whole_file *w = ctx;
	int rc = w->main.check(w->main.ctx, err);
	return rc || !w->external ? rc : external_files_check(w->external, err);
}

static struct import_file whole_file_of(struct whole_file *w, const char *shown)
{
	struct import_file f = w->main;
	f.shown = shown;
	f.open = open_whole;
	f.check = check_whole;
	f.ctx = w;
	return f;
}

static void note(void *ctx, const char *line)
{
	const struct engine_import *opt = ctx;
	if (opt->line)
		opt->line(opt->arg, line);
}

static void progress(void *ctx, uint64_t done, uint64_t total)
{
	const struct engine_import *opt = ctx;
	if (opt->progress)
		opt->progress(opt->arg, done, total);
}

static void __attribute__((format(printf, 2, 3)))
add_note(const struct engine_import *opt, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	if (!opt->line)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	opt->line(opt->arg, text);
}

static int import(const struct import_options *io, const struct engine_import *opt, struct err *err)
{
	struct import_result result;
	int rc = domain_import(io, &result, err);
	if (opt->link) {
		opt->link->linked = result.linked;
		opt->link->linked_bytes = result.linked_bytes;
	}
	if (!rc && result.finished_earlier)
		add_note(opt, "an earlier import of this file was complete except for its last "
			      "step");
	if (!rc && result.found)
		add_note(opt,
			 "continued an interrupted import: %" PRIu64 " chunks were there already",
			 result.found);
	return rc;
}

static int remove_stored(const struct import_options *io, const struct engine_import *opt,
			 struct err *err)
{
	uint64_t deleted;
	int rc = domain_import_abort(io, &deleted, err);
	if (!rc)
		add_note(opt, "removed %" PRIu64 " objects of an unfinished import", deleted);
	return rc;
}

int engine_import(struct engine *e, const struct engine_import *opt, struct err *err)
{
	struct import_source file = {0};
	struct link_file linked = {0};
	struct engine_import copy = *opt;
	struct whole_file whole = {0};
	auto_free char *path = NULL;
	int rc = 0;
	if (opt->allow_external)
		rc = external_files_new(opt->allow_external, &whole.external, err);
	if (rc)
		return rc;
	if (opt->link && !opt->abort)
		rc = link_file_init(&linked, e, opt, err);
	else if (opt->file && !opt->abort)
		rc = import_source_init(&file, opt->file, err);
	if (!rc)
		rc = find_target(e, opt, &path, err);
	if (!rc && opt->link && strcmp(path, opt->link->key) == 0)
		rc = err_set(err, -EEXIST, "%s: the domain cannot have the key of the file", path);
	const struct import_link link = {
		.bucket = linked.bucket,
		.key = linked.bucket_key,
		.etag = link_file_etag(&linked),
		.locate = opt->link && opt->link->locate,
		.verify = opt->link && opt->link->verify,
	};
	whole.main = opt->link ? link_file_of(&linked) : file_of(&file);
	const struct import_options io = {
		.env = &e->bucket.env,
		.store = e->bucket.store,
		.schema = bucket_new_domains(&e->bucket),
		.path = path,
		.bucket = files_bucket_name(e->files),
		.owner = opt->owner,
		.service_user = opt->service_user,
		.local_user = opt->local_user,
		.replace = opt->replace,
		.keep_storage = opt->keep_storage,
		.skip_unsupported = opt->skip_unsupported,
		.ignore_open_flag = opt->ignore_open_flag,
		.min_chunk = opt->min_chunk,
		.puts = bucket_puts(&e->bucket, opt->puts),
		.now_ns = env_wall(&e->bucket.env),
		.cancelled = opt->cancelled,
		.file = whole_file_of(&whole, opt->shown),
		.external = whole.external ? external_files_access(whole.external) : NULL,
		.link = opt->link ? &link : NULL,
		.note = note,
		.progress = progress,
		.ctx = &copy,
	};
	if (!rc)
		rc = opt->abort ? remove_stored(&io, opt, err) : import(&io, opt, err);
	if (path)
		names_forget(e->bucket.names, path);
	if (opt->link)
		link_file_counts(&linked, &opt->link->requests, &opt->link->bytes);
	link_file_release(&linked);
	import_source_release(&file);
	external_files_free(whole.external);
	return rc;
}
