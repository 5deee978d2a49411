/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of files and directories. names/ finds out what a path is. If a domain was opened, its
 * snapshot has the size; otherwise sizes.h finds it out. Any thread.
 */
#include <drafts/drafts.h>
#include "engine_internal.h"
#include <snapshots/sizes.h>

#include <string.h>

enum { STAT_BLOCK = 512 };

static const enum engine_kind kinds[] = {
	[NAMES_DIR] = ENGINE_DIR,
	[NAMES_DOMAIN] = ENGINE_DOMAIN,
	[NAMES_OBJECT] = ENGINE_PLAIN,
};

/* The version of a plain object: a hash of its ETag. Returns 0 if it has none. */
static uint64_t version_of(const struct store_meta *meta)
{
	const uint64_t offset = 0xcbf29ce484222325u, prime = 0x100000001b3u; /* FNV-1a, 64 bit */
	if (!meta->etag[0])
		return 0;
	uint64_t h = offset;
	for (const char *p = meta->etag; *p; p++)
		h = (h ^ (unsigned char)*p) * prime;
	return h ? h : 1;
}

void stat_object(const struct engine *e, const struct store_meta *meta, struct engine_stat *st)
{
	*st = (struct engine_stat){
		.kind = ENGINE_PLAIN,
		.size = meta->size,
		.size_exact = true,
		.blocks = div_up_u64(meta->size, STAT_BLOCK),
		.mtime_ns = meta->mtime_ns,
		.ctime_ns = meta->mtime_ns,
		.mode = e->drafts ? 0644 : 0444,
		.version = version_of(meta),
	};
}

/* The size of a large store that its document shows. The document may be newer than the image. */
static bool is_another_size(const struct names_node *n, const struct names_size *size,
			    const struct engine_stat *last)
{
	return n->doc.kind == NAMES_DOC_STORE && size->is_exact && size->size != last->size;
}

/* The last image of a domain, unless the domain is known to have changed since. */
static bool recall(struct engine *e, const struct names_node *n, struct engine_stat *st)
{
	const struct names_size *size = names_get_size(n);
	struct engine_stat last;
	uint64_t listed;
	if (!snapshots_recall(e->bucket.snapshots, n->path, &last, &listed))
		return false;
	if (size && (size->version != listed || is_another_size(n, size, &last))) {
		/* Later look-ups need not find that out again. */
		snapshots_forget_last(e->bucket.snapshots, n->path, last.version);
		return false;
	}
	*st = last;
	st->unchecked = !size && e->bucket.stat_mode != ENGINE_STAT_ESTIMATE;
	stat_large(n, listed, st);
	return true;
}

/* If `find` is true, may send requests. Fails only with ENGINE_STAT_EXACT. */
static int stat_domain(struct engine *e, struct names_node *n, bool find, struct engine_stat *st,
		       struct err *err)
{
	const enum engine_stat_mode mode = e->bucket.stat_mode;
	int rc = find && mode != ENGINE_STAT_ESTIMATE ? sizes_find(e->sizes, n, err) : 0;
	if (rc && mode == ENGINE_STAT_EXACT)
		return rc;
	const struct names_size *size = names_get_size(n);
	const bool known = recall(e, n, st);
	/* Its document may be newer than the image. */
	st->mode = names_doc_mode(&n->doc, false, e->drafts && n->doc.kind != NAMES_DOC_STORE);
	if (known)
		return 0;
	st->size = size ? size->size : SIZE_UNKNOWN;
	st->blocks = size ? size->blocks : div_up_u64(st->size, STAT_BLOCK);
	st->size_exact = size && size->is_exact;
	if (size)
		st->mtime_ns = st->ctime_ns = size->mtime_ns;
	return 0;
}

/* If `find` is true, may send requests to find out the size of a domain. */
static int stat_node(struct engine *e, struct names_node *n, bool find, struct engine_stat *st,
		     struct err *err)
{
	if (n->kind == NAMES_OBJECT) {
		stat_object(e, &n->meta, st);
		return 0;
	}
	*st = (struct engine_stat){
		.kind = kinds[n->kind],
	};
	if (n->doc.document)
		st->mtime_ns = st->ctime_ns = n->doc.document->info.modified_ns;
	if (n->kind == NAMES_DOMAIN)
		return stat_domain(e, n, find, st, err);
	st->size_exact = true;
	st->mode = names_doc_mode(&n->doc, true, e->bucket.garbage != NULL);
	if (st->mtime_ns == 0)
		st->mtime_ns = st->ctime_ns = e->started_ns;
	return 0;
}

static int stat_path(struct engine *e, const char *path, bool find, struct engine_stat *st,
		     struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	bool alone;
	if (drafts_stat(e->drafts, path, st, &alone) && alone)
		return 0;
	int rc = names_resolve(e->bucket.names, path, &n, err);
	return rc ? rc : stat_node(e, n, find, st, err);
}

int engine_lookup(struct engine *e, const char *path, struct engine_stat *st, struct err *err)
{
	return stat_path(e, path, false, st, err);
}

int engine_getattr(struct engine *e, const char *path, struct engine_stat *st, struct err *err)
{
	return stat_path(e, path, true, st, err);
}

/* Merges two sequences in byte order: the entries of the bucket, and the names of drafts. */
struct lister {
	engine_list_fn fn;
	void *arg;
	struct bytes drafts; /* names, each with a NUL */
	size_t at;	     /* of the next one */
};

static int add_draft(void *arg, const char *name, enum engine_kind kind)
{
	struct lister *l = arg;
	return bytes_append(&l->drafts, name, strlen(name) + 1);
}

/* Lists the drafts before a name, or all that are left if `before` is NULL. */
static int list_drafts(struct lister *l, const char *before)
{
	int rc = 0;
	while (rc == 0 && l->at < l->drafts.len) {
		const char *name = (const char *)l->drafts.data + l->at;
		const int order = before ? strcmp(name, before) : -1;
		if (order > 0)
			return 0;
		l->at += strlen(name) + 1;
		/* A draft that has just been committed is in the bucket, too. */
		if (order < 0)
			rc = l->fn(l->arg, name, ENGINE_PLAIN);
	}
	return rc;
}

static int list_one(void *arg, const char *name, enum names_kind kind)
{
	struct lister *l = arg;
	const int rc = list_drafts(l, name);
	return rc ? rc : l->fn(l->arg, name, kinds[kind]);
}

/* The drafts are taken first: what is committed meanwhile appears in the bucket. */
int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err)
{
	struct lister l = {.fn = fn, .arg = arg};
	int rc = drafts_list(e->drafts, path, add_draft, &l);
	if (rc)
		rc = err_set(err, rc, "out of memory");
	if (!rc)
		rc = names_list(e->bucket.names, path, list_one, &l, err);
	if (!rc)
		rc = list_drafts(&l, NULL);
	bytes_release(&l.drafts);
	return rc;
}

int engine_check_dir(struct engine *e, const char *path, struct err *err)
{
	return names_check_dir(e->bucket.names, path, err);
}
