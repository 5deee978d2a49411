/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the schema v2 loader. Pure. */
#ifndef SCHEMA_HSDS2_LOAD_H
#define SCHEMA_HSDS2_LOAD_H

#include "hsds2.h"
#include "hsds_load.h"

/* What the requests of the current round are for. */
enum hsds2_stage {
	HSDS2_START,
	HSDS2_COMPARE, /* a listing, to find out whether the domain has changed */
	HSDS2_HEADS,   /* a HEAD for each document, for the same purpose */
	HSDS2_LIST,    /* listings that show the objects */
	HSDS2_READ,    /* the documents of the objects */
	HSDS2_END
};

struct hsds2_loader {
	struct hsds_loader hsds;
	enum hsds2_stage stage;
	/* The objects found so far, in the order of their numbers. */
	struct hsds_entry *found;
	uint32_t nfound, room;
	uint32_t *suspects;	/* memory of hsds.heads, if not all objects are compared */
	struct arena *expected; /* NULL, or memory of hsds.previous: see hsds2_expect() */
	bool only_expected;	/* no listing has shown the objects */
};

/* hsds2_expect.c: makes hsds.previous what the puts of the load have made of the earlier load. It
 * has no tree and no digest. -ENOMEM. */
int hsds2_expect(struct hsds2_loader *l, struct err *err);

/* hsds2_list.c: add the objects of a whole listing or, if there is none, of the listing of one
 * prefix after the other. */
int hsds2_take_whole(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);
int hsds2_take_prefixes(struct hsds2_loader *l, const struct schema_answer *answer,
			struct err *err);
/* Adds the objects of hsds.previous. The store has confirmed their versions. */
int hsds2_take_expected(struct hsds2_loader *l, struct err *err);
/* Gives all objects that were found a number in the tree. */
int hsds2_number_found(struct hsds2_loader *l, struct err *err);
/* Compares a whole listing with `previous`: sets l->changed or l->heads. */
int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);

#endif
