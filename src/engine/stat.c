/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of files and directories. names/ finds out what a path is. The size of a domain is
 * exact if the domain was opened, because its snapshot has the size. Any thread.
 */
#include "internal.h"

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

void stat_object(const struct store_meta *meta, struct engine_stat *st)
{
	*st = (struct engine_stat){
		.kind = ENGINE_PLAIN,
		.size = meta->size,
		.size_exact = true,
		.blocks = div_up_u64(meta->size, STAT_BLOCK),
		.mtime_ns = meta->mtime_ns,
		.ctime_ns = meta->mtime_ns,
		.mode = 0444,
		.version = version_of(meta),
	};
}

static void stat_domain(struct engine *e, struct names_node *n, bool estimate,
			struct engine_stat *st)
{
	bool known = snapshots_recall(e->snapshots, n->path, st);
	st->mode = names_doc_mode(&n->doc, false); /* its document may be newer than the image */
	if (known)
		return;
	st->size = names_size(e->names, n, estimate);
	st->blocks = div_up_u64(st->size, STAT_BLOCK);
}

/* estimate: may send requests to estimate the size of a domain that was never opened. */
static void stat_node(struct engine *e, struct names_node *n, bool estimate, struct engine_stat *st)
{
	if (n->kind == NAMES_OBJECT) {
		stat_object(&n->meta, st);
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
	st->mode = names_doc_mode(&n->doc, true);
	if (e->garbage)
		st->mode |= names_write_mode(&n->doc);
	if (st->mtime_ns == 0)
		st->mtime_ns = st->ctime_ns = e->started_ns;
}

static int stat_path(struct engine *e, const char *path, bool estimate, struct engine_stat *st,
		     struct err *err)
{
	auto_names_node struct names_node *n = NULL;
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

struct lister {
	engine_list_fn fn;
	void *arg;
};

static int list_one(void *arg, const char *name, enum names_kind kind)
{
	const struct lister *l = arg;
	return l->fn(l->arg, name, kinds[kind]);
}

int engine_list(struct engine *e, const char *path, engine_list_fn fn, void *arg, struct err *err)
{
	struct lister l = {.fn = fn, .arg = arg};
	return names_list(e->names, path, list_one, &l, err);
}

int engine_check_dir(struct engine *e, const char *path, struct err *err)
{
	return names_check_dir(e->names, path, err);
}
