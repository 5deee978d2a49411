/* SPDX-License-Identifier: Apache-2.0 */
/* What a name looks like from outside: permission bits, sizes, versions. Any thread. */
#include "internal.h"

#include <errno.h>
#include <string.h>

enum {
	SIZE_UNKNOWN = 4096, /* of a domain that nobody knows anything about: readers want more
				than nothing before they open */
	INFO_MAX = 8 << 20,  /* dozens may be in memory at once */
	STAT_BLOCK = 512,
};

static const struct domain_acl *find_acl(const struct domain *d, const char *user)
{
	for (uint32_t i = 0; i < d->nacls; i++)
		if (strcmp(d->acls[i].user, user) == 0)
			return &d->acls[i];
	return NULL;
}

unsigned int stat_mode(const struct domain *d, bool is_dir)
{
	if (d->nacls == 0)
		return is_dir ? 0555 : 0444;
	const struct domain_acl *others = find_acl(d, "default");
	const struct domain_acl *owner = d->owner && d->owner[0] ? find_acl(d, d->owner) : NULL;
	unsigned int mode = 0;
	/* As the service has it: an owner without an entry is anybody. */
	if (!owner)
		owner = others;
	if (owner && owner->perms & DOMAIN_PERM_READ)
		mode |= is_dir ? 0500 : 0400;
	if (others && others->perms & DOMAIN_PERM_READ)
		mode |= is_dir ? 0055 : 0044;
	return mode;
}

uint64_t stat_plain_version(const struct store_meta *meta)
{
	const uint64_t offset = 0xcbf29ce484222325u, prime = 0x100000001b3u; /* FNV-1a, 64 bit */
	if (!meta->etag[0])
		return 0;
	uint64_t h = offset;
	for (const char *p = meta->etag; *p; p++)
		h = (h ^ (unsigned char)*p) * prime;
	return h ? h : 1;
}

void stat_plain(const struct store_meta *meta, struct engine_stat *st)
{
	*st = (struct engine_stat){
		.kind = ENGINE_PLAIN,
		.size = meta->size,
		.size_exact = true,
		.blocks = div_up_u64(meta->size, STAT_BLOCK),
		.mtime_ns = meta->mtime_ns,
		.ctime_ns = meta->mtime_ns,
		.mode = 0444,
		.version = stat_plain_version(meta),
	};
}

/* 0: not known, and asked for again: a failure that may pass is not remembered. */
static uint64_t estimate_from(const struct store_get_result *res)
{
	struct schema_info info;
	if (res->code && res->code != -ENOENT && res->code != -EACCES && res->code != -EFBIG)
		return 0;
	if (res->code || schema_info_parse(res->body.data, res->body.len, &info, NULL))
		return SIZE_UNKNOWN;
	uint64_t size = max_u64(info.logical_bytes, info.allocated_bytes);
	if (!add_u64(size, info.metadata_bytes, &size) || size > INT64_MAX / 2)
		return SIZE_UNKNOWN;
	return max_u64(size, SIZE_UNKNOWN);
}

/* Reads the service's summaries, of this domain and of those that will be asked for next. */
static void estimate(struct engine *e, struct node *first)
{
	struct node *nodes[NODES_AHEAD];
	struct store_get reqs[NODES_AHEAD];
	struct store_get_result results[NODES_AHEAD] = {0};
	size_t n = nodes_unsized(e->nodes, first, nodes), nreqs = 0;
	size_t index[NODES_AHEAD];
	bool asked = false; /* for the first: else it has no summary */
	auto_free char *keys = calloc(n, SCHEMA_KEY_MAX + 1);
	for (size_t i = 0; keys && i < n; i++) {
		char *key = keys + nreqs * (SCHEMA_KEY_MAX + 1);
		if (nodes[i]->doc.kind != DOC_ROOT ||
		    e->schema->info_key(&nodes[i]->doc.root, key, SCHEMA_KEY_MAX + 1) <= 0)
			continue;
		asked |= i == 0;
		index[nreqs] = i;
		reqs[nreqs++] = (struct store_get){
			.op = STORE_GET, .key = key, .length = UINT64_MAX, .max = INFO_MAX};
	}
	if (nreqs && store_get_many(e->store, reqs, nreqs, results) == 0)
		for (size_t i = 0; i < nreqs; i++) {
			atomic_store(&nodes[index[i]]->estimate, estimate_from(&results[i]));
			bytes_release(&results[i].body);
		}
	if (!asked)
		atomic_store(&first->estimate, SIZE_UNKNOWN);
	for (size_t i = 0; i < n; i++)
		node_unref(nodes[i]);
}

static void stat_domain(struct engine *e, struct node *n, bool ask, struct engine_stat *st)
{
	bool known = domains_recall(e->domains, n->path, st);
	st->mode = n->doc.file_mode; /* may be newer than the image */
	if (known)
		return;
	if (ask && atomic_load(&n->estimate) == 0)
		estimate(e, n);
	st->size = max_u64(atomic_load(&n->estimate), SIZE_UNKNOWN);
	st->blocks = div_up_u64(st->size, STAT_BLOCK);
}

void stat_node(struct engine *e, struct node *n, bool ask, struct engine_stat *st)
{
	if (n->kind == ENGINE_PLAIN) {
		stat_plain(&n->meta, st);
		return;
	}
	*st = (struct engine_stat){
		.kind = n->kind,
		.mtime_ns = n->doc.modified_ns,
		.ctime_ns = n->doc.modified_ns,
	};
	if (n->kind == ENGINE_DOMAIN) {
		stat_domain(e, n, ask, st);
		return;
	}
	st->size_exact = true;
	st->mode = n->doc.kind == DOC_NONE ? 0555 : n->doc.dir_mode;
	if (st->mtime_ns == 0)
		st->mtime_ns = st->ctime_ns = e->started_ns;
}
