/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of domains that were never opened, from the service's summaries. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "name_cache.h"

enum {
	SIZE_UNKNOWN = 4096, /* readers want more than nothing before they open */
	INFO_MAX = 8 << 20,  /* dozens may be in memory at once */
};

/* 0: not known, and asked for again: a failure that may pass is not remembered. */
static uint64_t size_in(const struct schema_ops *schema, const struct store_answer *a)
{
	struct schema_info info;
	const int rc = store_failure(a, NULL);
	if (rc && rc != -EACCES && rc != -EFBIG)
		return 0;
	if (rc || store_absence(a) || schema->info_parse(a->body.data, a->body.len, &info, NULL))
		return SIZE_UNKNOWN;
	uint64_t size = max_u64(info.logical_bytes, info.allocated_bytes);
	if (!add_u64(size, info.metadata_bytes, &size) || size > INT64_MAX / 2)
		return SIZE_UNKNOWN;
	return max_u64(size, SIZE_UNKNOWN);
}

/* Reads the summaries of this domain and of those that will be asked for next. */
static void estimate(struct names *ns, struct names_node *first)
{
	struct names_node *nodes[NAMES_CACHE_SIBLINGS];
	size_t index[NAMES_CACHE_SIBLINGS];
	const size_t n = names_cache_unsized(ns->cache, first, nodes);
	struct store_request **reqs = store_requests_new(ns->store, n);
	size_t nreqs = 0;
	bool asked = false; /* for the first: else it has no summary */
	for (size_t i = 0; reqs && i < n; i++) {
		struct store_request *req = reqs[nreqs];
		const struct schema_document *d = nodes[i]->doc.document;
		if (nodes[i]->doc.kind != NAMES_DOC_ROOT ||
		    d->schema->info_key(d, req->key, req->room) <= 0)
			continue;
		req->max = INFO_MAX;
		asked |= i == 0;
		index[nreqs++] = i;
	}
	if (reqs)
		store_run_all(ns->store, reqs, nreqs);
	for (size_t i = 0; i < nreqs; i++)
		atomic_store(&nodes[index[i]]->estimate,
			     size_in(nodes[index[i]]->doc.document->schema, &reqs[i]->answer));
	store_requests_free(reqs, n);
	if (!asked)
		atomic_store(&first->estimate, SIZE_UNKNOWN);
	for (size_t i = 0; i < n; i++)
		names_node_unref(nodes[i]);
}

uint64_t names_size(struct names *ns, struct names_node *node, bool ask)
{
	if (ask && atomic_load(&node->estimate) == 0)
		estimate(ns, node);
	return max_u64(atomic_load(&node->estimate), SIZE_UNKNOWN);
}
