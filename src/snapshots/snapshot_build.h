/* SPDX-License-Identifier: Apache-2.0 */
/* Makes snapshots of domains. The table of snapshots (snapshots.h) decides when. */
#ifndef SNAPSHOTS_SNAPSHOT_BUILD_H
#define SNAPSHOTS_SNAPSHOT_BUILD_H

#include <snapshots/snapshots.h>

struct bucket;

/* Plans the file of a domain that no other thread uses. `mount_dir` is as in struct
 * snapshot_domain. Unless programs may change the file, the attributes of the domain are in the
 * image only. The caller frees the image before the domain. */
int snapshot_image(struct bucket *bucket, struct domain *domain, const char *mount_dir,
		   struct image **out, struct err *err);

/* Makes a snapshot of this version with one reference, and with the time that the domain alone
 * gives it. The caller sets its owner. Takes the image over in any case. Returns NULL if out of
 * memory. */
struct snapshot *snapshot_new(struct bucket *bucket, struct domain *domain, struct image *image,
			      uint64_t version);

/* Checks a domain in the bucket. `old` is the current snapshot, or NULL, and `was_idle` tells that
 * it is not open; `puts` is what was put since, or NULL. *out is `old` if that is still valid,
 * otherwise a new snapshot with one reference, whose owner the caller sets. */
int snapshot_refresh(struct bucket *bucket, const struct snapshot_domain *of, uint64_t new_version,
		     struct snapshot *old, bool was_idle, const struct domain_puts *puts,
		     struct snapshot **out, bool *may_pass, struct err *err);

#endif
