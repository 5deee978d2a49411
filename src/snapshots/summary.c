/* SPDX-License-Identifier: Apache-2.0 */
/* See summary.h. */
#include "summary.h"

void summary_begin(struct summary_request *r, struct store *store, const struct names_node *node,
		   const atomic_bool *cancelled)
{
	*r = (struct summary_request){.node = node, .has_begun = true};
	struct store_request *req = store_request_new(store, STORE_GET);
	r->no_memory = !req;
	if (!req)
		return;
	if (!names_summary_prepare(node, req)) {
		store_request_free(req);
		return;
	}
	req->cancelled = cancelled_by(cancelled);
	store_pending_send(&r->pending, store, req);
}

int summary_end(struct summary_request *r, struct names_summary *out, struct err *err)
{
	int rc = r->no_memory ? err_no_memory(err) : 0;
	*out = (struct names_summary){0};
	struct store_request *req = store_pending_wait(&r->pending);
	if (req)
		rc = names_summary_take(r->node, req, out, err);
	store_pending_free(&r->pending);
	return rc;
}

int64_t summary_time(enum engine_stat_mode mode, const struct domain_info *info,
		     const struct schema_listed *listed, const struct names_summary *summary)
{
	if (mode == ENGINE_STAT_ESTIMATE)
		return info->modified_ns;
	/* A bucket in memory has no times. */
	if (listed && listed->modified_ns)
		return listed->modified_ns;
	return summary && summary->modified_ns > info->modified_ns ? summary->modified_ns
								   : info->modified_ns;
}
