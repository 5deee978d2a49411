/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of domains: what is known of them, whose sizes a program will need next, and the
 * service's summaries. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "name_cache.h"
#include "node.h"

enum {
	INFO_MAX = 8 << 20, /* bytes of a summary */
	FOR_EACH = 32,	    /* sizes that are found out for each one that was needed */
};

/* ---- what is known ---- */

const struct names_size *names_get_size(const struct names_node *node)
{
	const struct names_sizes *latest = atomic_load(&node->sizes);
	return latest && !latest->is_forgotten ? &latest->size : NULL;
}

static bool is_same(const struct names_size *a, const struct names_size *b)
{
	return a->size == b->size && a->blocks == b->blocks && a->mtime_ns == b->mtime_ns &&
	       a->version == b->version && a->is_exact == b->is_exact;
}

/* Returns false if memory is short. */
static bool add(struct names_node *node, const struct names_sizes *latest_size)
{
	struct names_sizes *latest = atomic_load(&node->sizes), *added = malloc(sizeof(*added));
	if (!added)
		return false;
	*added = *latest_size;
	do
		added->earlier = latest;
	while (!atomic_compare_exchange_weak(&node->sizes, &latest, added));
	return true;
}

void names_set_size(struct names_node *node, const struct names_size *size)
{
	const struct names_size *latest = names_get_size(node);
	if (!latest || !is_same(latest, size))
		add(node, &(struct names_sizes){.size = *size});
}

void names_forget_size(struct names *ns, const char *path)
{
	struct names_node *node = names_cache_get(ns->cache, path, names_now(ns));
	if (node)
		names_keys_free(atomic_exchange(&node->keys, NULL));
	if (node && names_get_size(node) && !add(node, &(struct names_sizes){.is_forgotten = true}))
		names_cache_drop(ns->cache, path);
	if (node)
		names_node_unref(node);
}

static bool is_known(const struct names_node *node)
{
	return names_get_size(node) || atomic_load(&node->is_sized);
}

size_t names_unsized(struct names *ns, struct names_node *node, struct names_node **out, size_t max)
{
	const struct names_ahead ahead = {.for_first = FOR_EACH, .for_each = FOR_EACH, .max = max};
	return names_cache_unknown(ns->cache, node, is_known, &ahead, out, names_now(ns));
}

void names_continue_walk(struct names *ns, struct names_node *node)
{
	names_cache_continue_walk(ns->cache, node, names_now(ns));
}

/* ---- summaries ---- */

bool names_summary_prepare(const struct names_node *node, struct store_request *req)
{
	const struct schema_document *d = node->doc.document;
	req->max = INFO_MAX;
	return node->doc.kind == NAMES_DOC_ROOT && d->schema->info_key(d, req->key, req->room) > 0;
}

static uint64_t size_in(const struct schema_info *info)
{
	uint64_t size = max_u64(info->logical_bytes, info->allocated_bytes);
	if (!add_u64(size, info->metadata_bytes, &size) || size > INT64_MAX / 2)
		return 0;
	return size;
}

int names_summary_take(const struct names_node *node, const struct store_request *req,
		       struct names_summary *out, struct err *err)
{
	const struct store_answer *a = &req->answer;
	struct schema_info info;
	const int rc = store_failure(a, NULL);
	*out = (struct names_summary){0};
	if (rc == -EACCES || rc == -EFBIG)
		return 0;
	if (rc)
		return store_failure(a, err);
	if (store_absence(a) ||
	    node->doc.document->schema->info_parse(a->body.data, a->body.len, &info, NULL))
		return 0;
	out->size = size_in(&info);
	out->modified_ns = info.modified_ns;
	strcpy(out->etag, a->meta.etag);
	return 0;
}
