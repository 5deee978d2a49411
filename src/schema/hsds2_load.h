/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the schema v2 loader share. Pure. */
#ifndef SCHEMA_HSDS2_LOAD_H
#define SCHEMA_HSDS2_LOAD_H

#include <errno.h>
#include <string.h>

#include "hsds2.h"

/* What the next answers are for. */
enum hsds2_stage {
	HSDS2_START,
	HSDS2_COMPARE, /* one listing: is the earlier space still the domain? */
	HSDS2_HEADS,   /* the same, one document after the other */
	HSDS2_LIST,    /* which objects there are */
	HSDS2_READ,    /* their documents */
	HSDS2_END
};

struct hsds2_loader {
	struct schema_loader base;
	const struct hsds2_space *previous; /* NULL unless it has the same root group */
	struct hsds2_space *space;
	enum hsds2_stage stage;
	bool changed; /* since `previous` */

	/* Objects in the order of their numbers, until they are all known. */
	struct hsds2_entry *found;
	uint32_t nfound, room;

	/* Objects of `previous` to compare one by one: all, or those whose versions look different
	 * in a listing. */
	const uint32_t *heads;
	uint32_t nheads;
	uint32_t *doubtful;	      /* heap */
	char key[SCHEMA_KEY_MAX + 1]; /* of the document that is being read */
};

/* Two versions are known, and one and the same. */
static inline bool hsds2_same_version(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

/* hsds2_list.c: takes the objects from a whole listing, or, where there is none, from the listings
 * of prefixes, one after the other. */
int hsds2_take_whole(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);
int hsds2_take_prefixes(struct hsds2_loader *l, const struct schema_answer *answer,
			struct err *err);
/* Gives all objects that were found their numbers in the tree. */
int hsds2_number_found(struct hsds2_loader *l, struct err *err);
/* Of `previous` and a whole listing: l->changed, or l->doubtful. */
int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);

#endif
