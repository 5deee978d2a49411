/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether two images of a domain are the same, see doc/JOURNAL.md, "The file `draft`". */
#ifndef SNAPSHOTS_SNAPSHOT_IDENTITY_H
#define SNAPSHOTS_SNAPSHOT_IDENTITY_H

#include <journal/journal.h>

struct bucket;
struct snapshot;

/* A digest of everything that determines the addresses and the metadata of an image, and of the
 * versions of its chunks, if a change of any chunk makes another snapshot. Sends no request. */
void snapshot_identity(const struct bucket *bucket, const struct snapshot *s,
		       uint8_t id[DRAFT_BENEATH_ID]);

#endif
