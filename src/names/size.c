/* SPDX-License-Identifier: Apache-2.0 */
/* Estimated sizes of domains that were never opened, from the service's summaries. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "name_cache.h"

enum {
	SIZE_UNKNOWN = 4096, /* not 0: many programs do not open an empty file */
	INFO_MAX = 8 << 20,  /* bytes of a summary */
	/* NAMES_CACHE_SIBLINGS summaries are in memory at once; a larger one is read alone. */
	SIBLING_INFO_MAX = 1 << 20,
};

/* The size in an answer. 0 after a temporary failure: the next call requests it again. */
static uint64_t size_in(const struct schema_ops *schema, const struct store_request *req)
{
	const struct store_answer *a = &req->answer;
	struct schema_info info;
	const int rc = store_failure(a, NULL);
	if (rc && rc != -EACCES && !(rc == -EFBIG && req->max == INFO_MAX))
		return 0;
	if (rc || store_absence(a) || schema->info_parse(a->body.data, a->body.len, &info, NULL))
		return SIZE_UNKNOWN;
	uint64_t size = max_u64(info.logical_bytes, info.allocated_bytes);
	if (!add_u64(size, info.metadata_bytes, &size) || size > INT64_MAX / 2)
		return SIZE_UNKNOWN;
	return max_u64(size, SIZE_UNKNOWN);
}

/* False when the domain can have no summary. */
static bool request_summary(const struct names_node *node, struct store_request *req)
{
	const struct schema_document *d = node->doc.document;
	return node->doc.kind == NAMES_DOC_ROOT && d->schema->info_key(d, req->key, req->room) > 0;
}

static bool is_known(const struct names_node *node)
{
	return atomic_load(&node->estimate) != 0;
}

/* Reads the summary of this domain, and in the same round those of the domains after it. */
static void estimate(struct names *ns, struct names_node *first)
{
	struct names_node *nodes[NAMES_CACHE_SIBLINGS], *requested[NAMES_CACHE_SIBLINGS];
	const size_t n = names_cache_unknown(ns->cache, first, is_known, nodes);
	struct store_request **reqs = store_requests_new(ns->store, n);
	size_t nreqs = 0;
	for (size_t i = 0; reqs && i < n; i++) {
		if (!request_summary(nodes[i], reqs[nreqs])) {
			atomic_store(&nodes[i]->estimate, SIZE_UNKNOWN);
			continue;
		}
		reqs[nreqs]->max = i ? SIBLING_INFO_MAX : INFO_MAX;
		requested[nreqs++] = nodes[i];
	}
	if (nreqs)
		store_run_all(ns->store, reqs, nreqs);
	for (size_t i = 0; i < nreqs; i++)
		atomic_store(&requested[i]->estimate,
			     size_in(requested[i]->doc.document->schema, reqs[i]));
	store_requests_free(reqs, n);
	for (size_t i = 0; i < n; i++)
		names_node_unref(nodes[i]);
	names_cache_continue_walk(ns->cache, first, names_now(ns));
}

uint64_t names_size(struct names *ns, struct names_node *node, bool may_request)
{
	if (may_request && atomic_load(&node->estimate) == 0)
		estimate(ns, node);
	return max_u64(atomic_load(&node->estimate), SIZE_UNKNOWN);
}
