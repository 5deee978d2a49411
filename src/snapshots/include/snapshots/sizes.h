/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and times of the files of domains, for stat (doc/DETAILS.md, "Sizes and times"). The size
 * of a domain whose keys fit one page of a listing is exact: the listing gives the version, and
 * unless the size of this version is remembered, the file is planned as for an open. If the
 * directory is being walked, the plan is dropped; otherwise the domain is kept for the open that
 * usually follows. The size is also exact if the document of the domain alone shows what its file
 * has, as that of a Zarr store with consolidated metadata does. Other domains have a remembered
 * size or an estimate, or, with ENGINE_STAT_EXACT, are opened.
 *
 * While a program goes through a directory, the sizes of the domains after the current one are
 * found out side by side by threads, which end when nothing is left to do. Any thread.
 */
#ifndef SNAPSHOTS_SIZES_H
#define SNAPSHOTS_SIZES_H

#include <hsmount/engine.h>
#include <hsmount/err.h>

struct bucket;
struct names_node;
struct sizes;

enum { SIZE_UNKNOWN = 4096 /* not 0: many programs do not open an empty file */ };

struct sizes_options {
	unsigned int threads; /* 0 if sizes are found out in the thread that needs them */
	uint64_t limit;	      /* bytes of memory for domains that are being planned */
};
/* Borrows the bucket, whose parts the functions use. Returns NULL if out of memory. */
struct sizes *sizes_new(struct bucket *bucket, const struct sizes_options *opt);
/* Cancels what is not needed any more, and waits for the threads. s may be NULL. */
void sizes_free(struct sizes *s);

/* Finds out the size of a domain, unless its node has it. After success, names_get_size() has a
 * result. It must not be called with ENGINE_STAT_ESTIMATE. Blocks. A domain that cannot be shown
 * has the size SIZE_UNKNOWN, which is no error. The call fails only for a reason that may pass:
 * with the error of the store, or -ENOMEM. Nothing is remembered then. */
int sizes_find(struct sizes *s, struct names_node *node, struct err *err);

#endif
