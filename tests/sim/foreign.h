/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that is no engine: it puts into the bucket what the service puts, without conditions,
 * and removes a domain as the service does: first its document and its root group, then the rest.
 * There is one domain, and one such writer. Engines read the domain, keep it open while it changes,
 * and change other objects of it, or the same ones.
 *
 * Each domain of that name, from 1, has a storage of its own, and objects that change as a whole:
 * the root group, two chunks, and the number of rows. They are registers of order.h, and so is the
 * name. An open shows what each of them was at a moment of the open. What an engine has stored is
 * there until the foreign writer overwrites that object.
 */
#ifndef SIM_FOREIGN_H
#define SIM_FOREIGN_H

#include <base/str.h>

#include "player.h"

enum { FOREIGN_DOMAINS = 8 };

struct foreign_domain {
	uint16_t number;
	struct order order;
	uint16_t first[ORDER_REGISTERS];
};

struct foreign {
	struct store *bucket;
	pthread_mutex_t lock; /* of the writer */
	/* Of this part of the history. */
	struct foreign_domain domains[FOREIGN_DOMAINS];
	unsigned int ndomains;
	struct order names; /* register 0: the number of the domain that has the name */
	uint16_t first[ORDER_REGISTERS];
	bool has_removed;
	unsigned int changes; /* begun and ended */
	uint16_t number;      /* of the latest domain */
	bool is_there;
	uint64_t rows;	   /* that it has */
	uint16_t nvalues;  /* values that somebody has written */
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct foreign *foreign_new(struct store *bucket);
void foreign_free(struct foreign *p); /* p may be NULL */
/* Runs the foreign writer, or a program of an engine. Returns the first error that does not tell
 * what others have done. */
int foreign_run(struct foreign *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. order_matters: false if the service checks no conditions. Returns false if the
 * search was too large. */
bool foreign_check(struct foreign *p, struct engine *e, bool order_matters);

#endif
