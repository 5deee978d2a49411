/* SPDX-License-Identifier: Apache-2.0 */
/* See summary.h. */
#include "summary.h"

static void done(struct store_request *req)
{
	struct summary_request *r = req->arg;
	pthread_mutex_lock(&r->lock);
	r->is_answered = true;
	pthread_cond_signal(&r->answered);
	pthread_mutex_unlock(&r->lock);
}

void summary_begin(struct summary_request *r, struct store *store, const struct names_node *node,
		   const atomic_bool *cancelled)
{
	*r = (struct summary_request){.node = node, .has_begun = true};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->answered, NULL);
	r->req = store_request_new(store, STORE_GET);
	r->no_memory = !r->req;
	if (!r->req)
		return;
	if (!names_summary_prepare(node, r->req)) {
		store_request_free(r->req);
		r->req = NULL;
		return;
	}
	r->req->cancelled = cancelled_by(cancelled);
	r->req->done = done;
	r->req->arg = r;
	store_submit(store, r->req);
}

int summary_end(struct summary_request *r, struct names_summary *out, struct err *err)
{
	int rc = r->no_memory ? err_no_memory(err) : 0;
	*out = (struct names_summary){0};
	if (r->req) {
		pthread_mutex_lock(&r->lock);
		while (!r->is_answered)
			pthread_cond_wait(&r->answered, &r->lock);
		pthread_mutex_unlock(&r->lock);
		rc = names_summary_take(r->node, r->req, out, err);
		store_request_free(r->req);
	}
	pthread_cond_destroy(&r->answered);
	pthread_mutex_destroy(&r->lock);
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
