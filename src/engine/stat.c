/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of files and directories. names/ finds out what a path is. The size of a domain is
 * exact if the domain was opened, because its snapshot has the size. Any thread.
 */
#include "drafts.h"
#include "internal.h"

#include <string.h>

enum { STAT_BLOCK = 512 };

static const enum engine_kind kinds[] = {
	[NAMES_DIR] = ENGINE_DIR,
	[NAMES_DOMAIN] = ENGINE_DOMAIN,
	[NAMES_OBJECT] = ENGINE_PLAIN,
};

/* The version of a plain object: a hash of its ETag. 0: it has none. */
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

static void stat_domain(struct engine *e, struct names_node *n, bool estimate,
			struct engine_stat *st)
{
	bool known = snapshots_recall(e->snapshots, n->path, st);
	/* Its document may be newer than the image. */
	st->mode = names_doc_mode(&n->doc, false, e->drafts != NULL);
	if (known)
		return;
	st->size = names_size(e->names, n, estimate);
	st->blocks = div_up_u64(st->size, STAT_BLOCK);
}

/* estimate: may send requests to estimate the size of a domain that was never opened. */
static void stat_node(struct engine *e, struct names_node *n, bool estimate, struct engine_stat *st)
{
	if (n->kind == NAMES_OBJECT) {
		stat_object(e, &n->meta, st);
		return;
	}
	*st = (struct engine_stat){
		.kind = kinds[n->kind],
	};
	if (n->doc.document)
		st->mtime_ns = st->ctime_ns = n->doc.document->info.modified_ns;
	if (n->kind == NAMES_DOMAIN) {
		stat_domain(e, n, estimate, st);
		return;
	}
	st->size_exact = true;
	st->mode = names_doc_mode(&n->doc, true, e->garbage != NULL);
	if (st->mtime_ns == 0)
		st->mtime_ns = st->ctime_ns = e->started_ns;
}

static int stat_path(struct engine *e, const char *path, bool estimate, struct engine_stat *st,
		     struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	bool alone;
	if (drafts_stat(e->drafts, path, st, &alone) && alone)
		return 0;
	int rc = names_resolve(e->names, path, &n, err);
	if (rc == 0)
		stat_node(e, n, estimate, st);
	return rc;
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

/* Lists the drafts before a name; NULL: all that are left. */
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
		rc = names_list(e->names, path, list_one, &l, err);
	if (!rc)
		rc = list_drafts(&l, NULL);
	bytes_release(&l.drafts);
	return rc;
}

int engine_check_dir(struct engine *e, const char *path, struct err *err)
{
	return names_check_dir(e->names, path, err);
}
