/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that set and read the access control lists of a folder and of two domains, which others
 * create, replace, rename and remove meanwhile.
 *
 *   set       what has the name gets the list; a new file that is not in the bucket yet keeps it
 *             until its commit
 *   create    a new domain has the list of its draft, or that of its owner; one that replaces
 *             another keeps the list of that one
 *   rename    the new name gets the domain with its list, then the old name vanishes, if it still
 *             has that list
 *
 * These are steps of order.h. A register is the list of a name, or nothing; two others are the
 * files of the domains, which no list may bring back.
 */
#ifndef SIM_ACLS_H
#define SIM_ACLS_H

#include <base/str.h>

#include "player.h"

struct acls {
	const uint8_t *file; /* the template of a domain */
	size_t n_file;
	struct order order; /* of this part of the history */
	uint16_t first[ORDER_REGISTERS];
	uint16_t nlists; /* numbers of lists, of all parts */
	unsigned int nfiles;
	/* A new file of which a part could not be written becomes a plain object, as on a disk
	 * (DETAILS.md, "Failed writes"), which has no list. Then nothing is judged any more. */
	bool is_torn;
	bool may_leave;	   /* somebody has failed, or has renamed a domain, so storage may stay */
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct acls *acls_new(const uint8_t *file, size_t n);
void acls_free(struct acls *p); /* p may be NULL */
/* Makes the folder. */
int acls_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that does not tell what
 * other programs have done. */
int acls_run(struct acls *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. order_matters: false if the service checks no conditions. Returns false if the
 * search was too large. */
bool acls_check(struct acls *p, struct engine *e, bool order_matters);

#endif
