/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the snapshot of its domain. Any thread. */
#ifndef SNAPSHOTS_DOMAIN_SNAPSHOT_H
#define SNAPSHOTS_DOMAIN_SNAPSHOT_H

#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/snapshots.h>

/* Looks a path up. *requested: a time before the request for it; zero if the answer
 * was in the cache. */
int snapshot_resolve(struct bucket *bucket, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err);
/* The attributes of a domain that was opened. */
void stat_snapshot(struct bucket *bucket, const struct names_node *n, const struct snapshot *s,
		   struct engine_stat *st);
/* The time of a domain whose keys are not all listed may have been read after it was opened;
 * listed: snapshot.listed. */
void stat_large(const struct names_node *n, uint64_t listed, struct engine_stat *st);
/* Opens the snapshot of a domain that was looked up; see snapshots_open(). requested: the result of
 * snapshot_resolve() for this call. */
int domain_snapshot(struct bucket *bucket, struct names_node *n,
		    const struct snapshot_time *requested, struct snapshot **out, struct err *err);
/* The same for a stat: snapshots_recall() does not return the snapshot. cancelled: as in struct
 * store_request. *may_pass: whether a failure has a reason that may pass. */
int domain_snapshot_for_stat(struct bucket *bucket, struct names_node *n,
			     const atomic_bool *cancelled, struct snapshot **out, bool *may_pass,
			     struct err *err);

#endif
