/* SPDX-License-Identifier: Apache-2.0 */
/* The service's summary of a domain: its request, which may run beside others, and the time that it
 * gives to the file. */
#ifndef SNAPSHOTS_SUMMARY_H
#define SNAPSHOTS_SUMMARY_H

#include <stdbool.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <names/names.h>
#include <store/pending.h>

/* It lies in the caller's memory. A zeroed struct has not begun. */
struct summary_request {
	const struct names_node *node;
	/* Has no request if the domain can have no summary, or out of memory. */
	struct store_pending pending;
	bool has_begun, no_memory;
};

/* Sends the request, if the domain can have a summary. The node is borrowed until summary_end().
 * `cancelled` is as in struct store_request, and may be NULL. */
void summary_begin(struct summary_request *r, struct store *store, const struct names_node *node,
		   const atomic_bool *cancelled);
/* Waits for the answer. A domain without a usable summary has a zeroed one. Fails with the error of
 * a request that has failed for a reason that may pass, or with -ENOMEM. */
int summary_end(struct summary_request *r, struct names_summary *out, struct err *err);

/* Returns the time of a file. `listed` is what the listing of all keys of the domain has shown, or
 * NULL. `summary` is that of a domain whose keys cannot all be listed, or NULL. */
int64_t summary_time(enum engine_stat_mode mode, const struct domain_info *info,
		     const struct schema_listed *listed, const struct names_summary *summary);

#endif
