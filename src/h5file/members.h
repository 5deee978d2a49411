/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the attributes of an object and the links of a group are stored: as messages of the header
 * (compact), or in a fractal heap (dense) with an index of names and one of creation order, which
 * are version 2 B-trees.
 */
#ifndef H5FILE_MEMBERS_H
#define H5FILE_MEMBERS_H

#include <h5/btree2.h>
#include <h5/fheap.h>

#include "object_header.h"

struct members {
	struct h5file *f;
	const struct header *h;
	const char *one; /* what is read: "a link", "an attribute" */
	/* A search: every error ends it. Otherwise errors that leave other members readable are
	 * reported as problems of the file. */
	bool is_search;
	struct h5_fheap_reader *heap; /* while members_dense() runs */
	uint64_t indexed;	      /* records of the index of creation order */
};

/* Reports an error that leaves other members readable, and returns 0. Returns other results. */
int members_report(const struct members *m, const char *what, int rc, struct err *err);
/* The same for an error that concerns one member only. */
int members_leave_out(const struct members *m, int rc, struct err *err);
/* Calls fn for each message of a type in the header. */
typedef int (*members_fn)(void *ctx, const struct h5_msg *msg, struct cursor *body,
			  struct err *err);
int members_compact(const struct members *m, uint8_t type, members_fn fn, void *ctx,
		    struct err *err);
/* Opens the heap, and calls fn for the records of the index of names: as h5_bt2_walk_range(). */
int members_dense(struct members *m, uint64_t heap, uint64_t names, enum h5_bt2_type type,
		  h5_bt2_side_fn side, h5_bt2_fn fn, void *ctx, struct err *err);
/* Counts the records of the index of creation order. Only a complete check reads this index,
 * because the members are read without it. *is_read is false otherwise. */
int members_count_corders(struct members *m, uint64_t corders, enum h5_bt2_type type, bool *is_read,
			  struct err *err);

#endif
