/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that give the same few names to domains and to plain objects: they write a plain file
 * over a domain and an HDF5 file over a plain object, rename one over the other, copy, remove, read
 * and list them.
 *
 *   write           the name gets the new file, then what it replaces vanishes. A domain hides a
 *                   plain object of the same name until it is removed
 *   rename          the new name gets the file, what had the new name vanishes, then the old name
 *                   does
 *   remove          the name loses what it shows
 *
 * In a directory, which cannot have both, what is replaced vanishes first (DETAILS.md, "Changing
 * names"). These are steps of order.h: the upper half of a register is the domain of a name, the
 * lower one the plain object. So a file that was stored may vanish only where another one replaces
 * it, or somebody removes it; and each file that has a name can be read.
 */
#ifndef SIM_MIXED_H
#define SIM_MIXED_H

#include <base/str.h>

#include "player.h"

enum { MIXED_NAMES = 3 };

struct mixed {
	const uint8_t *file; /* the template of a domain */
	size_t n_file;
	struct store *bucket;
	bool is_tree;	    /* the bucket is a directory */
	unsigned int names; /* that are used */
	struct order order; /* of this part of the history */
	uint16_t first[ORDER_REGISTERS];
	/* Numbers of files, of all parts. */
	unsigned int nobjects, ndomains;
	/* A part of an HDF5 file may have become a plain object (DETAILS.md, "Failed writes"), or
	 * any mount may finish a rename of an earlier part. Then nothing is judged any more. */
	bool is_over;
	/* Acts of this part that may have happened in part. The search for an order takes long if
	 * there are many, so programs stop then. */
	unsigned int ndoubts;
	bool may_leave;	   /* somebody has failed, or has renamed a domain, so storage may stay */
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

/* seed: chooses how many names are used. */
struct mixed *mixed_new(struct store *bucket, uint64_t seed, bool is_tree, const uint8_t *file,
			size_t n);
void mixed_free(struct mixed *p); /* p may be NULL */
/* Makes the folder. */
int mixed_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that does not tell what
 * other programs have done. */
int mixed_run(struct mixed *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. is_alone: only one mount has used the names. order_matters: false if the service
 * checks no conditions. Returns false if the search was too large. */
bool mixed_check(struct mixed *p, struct engine *e, bool is_alone, bool order_matters);

#endif
