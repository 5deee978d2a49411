/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hsimage link`: a domain that refers to an HDF5 file, which is a plain object of the bucket. A
 * foreign writer replaces and removes the file, without conditions; others link it, also over the
 * domain that there is, and programs of mounts read and remove the domain.
 *
 *   link      the domain is there when it is complete. It refers to a version that the file had
 *             meanwhile; if the file changes meanwhile, the link may fail
 *   read      all data have one version. In a service that is the one which the domain records; in
 * a directory, it may be a later one of the same size (DETAILS.md, "Data in HDF5 files"). Otherwise
 * the read fails. It does not fail if nobody has changed anything remove    the file stays
 *
 * The domain is a register of order.h: the version of the file to which it refers, or nothing.
 */
#ifndef SIM_LINKS_H
#define SIM_LINKS_H

#include <base/str.h>

#include "player.h"

#define LINKS_DIR "links"
enum { LINKS_VERSIONS = 64 };

struct links {
	struct store *bucket;
	pthread_mutex_t linker; /* one links at a time: see imports.h */
	pthread_mutex_t writer; /* of the file */
	/* Of this part of the history: versions of the file, and when it had them. */
	struct {
		uint16_t version;
		uint64_t from, until;
	} versions[LINKS_VERSIONS];
	unsigned int nversions;
	struct order order;
	unsigned int maybes; /* acts of links that have failed */
	uint16_t first[ORDER_REGISTERS];
	uint16_t version;		/* the latest one */
	bool is_there;			/* the file has it */
	uint16_t linked;		/* the version to which the domain certainly refers, or 0 */
	unsigned int changes, changing; /* of the file and the domain: begun, and not ended */
	bool may_leave;	   /* a link or a removal has failed: a record or storage may stay */
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct links *links_new(struct store *bucket);
void links_free(struct links *p); /* p may be NULL */
/* Makes the folder. */
int links_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that does not tell what
 * other programs have done. */
int links_run(struct links *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. order_matters: false if the service checks no conditions. Returns false if the
 * search was too large. */
bool links_check(struct links *p, struct engine *e, const struct world *w, bool order_matters);

#endif
