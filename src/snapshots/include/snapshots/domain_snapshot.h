/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the snapshot of its domain. Any thread. */
#ifndef SNAPSHOTS_DOMAIN_SNAPSHOT_H
#define SNAPSHOTS_DOMAIN_SNAPSHOT_H

#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/snapshots.h>

/* Looks a path up. *requested is a time before the request for it, or zeroed if the answer was in
 * the cache. */
int snapshot_resolve(struct bucket *bucket, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err);
/* Gets the attributes of a domain that was opened. */
void stat_snapshot(struct bucket *bucket, const struct names_node *n, const struct snapshot *s,
		   struct engine_stat *st);
/* Sets the time of a domain whose keys are not all listed, which may have been read after it was
 * opened. `listed` is snapshot.listed. */
void stat_large(const struct names_node *n, uint64_t listed, struct engine_stat *st);
/* Opens the snapshot of a domain that was looked up; see snapshots_open(). `requested` is the
 * result of snapshot_resolve() for this call. */
int domain_snapshot(struct bucket *bucket, struct names_node *n,
		    const struct snapshot_time *requested, struct snapshot **out, struct err *err);
/* Does the same for a stat: snapshots_recall() does not return the snapshot. `cancelled` is as in
 * struct store_request. *may_pass tells whether a failure has a reason that may pass. */
int domain_snapshot_for_stat(struct bucket *bucket, struct names_node *n,
			     const atomic_bool *cancelled, struct snapshot **out, bool *may_pass,
			     struct err *err);

#endif
