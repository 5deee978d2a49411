/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the schema v2 loader. Pure. */
#ifndef SCHEMA_HSDS2_LOAD_H
#define SCHEMA_HSDS2_LOAD_H

#include <errno.h>
#include <string.h>

#include "hsds2.h"

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
	struct schema_loader base;
	const struct hsds2_space *previous; /* NULL unless it has the same root group */
	struct hsds2_space *space;
	enum hsds2_stage stage;
	bool changed; /* the domain has changed since `previous` */

	/* The objects found so far, in the order of their numbers. */
	struct hsds2_entry *found;
	uint32_t nfound, room;

	/* Numbers of the objects of `previous` to compare by HEAD: all, or those whose versions in
	 * the listing differ. */
	const uint32_t *heads;
	uint32_t nheads;
	uint32_t *suspects;	      /* memory of `heads` in the second case */
	char key[SCHEMA_KEY_MAX + 1]; /* of the document that is being parsed */
};

/* True if both versions are known and equal. */
static inline bool hsds2_same_version(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

/* hsds2_list.c: add the objects of a whole listing or, if there is none, of the listing of one
 * prefix after the other. */
int hsds2_take_whole(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);
int hsds2_take_prefixes(struct hsds2_loader *l, const struct schema_answer *answer,
			struct err *err);
/* Gives all objects that were found a number in the tree. */
int hsds2_number_found(struct hsds2_loader *l, struct err *err);
/* Compares a whole listing with `previous`: sets l->changed or l->heads. */
int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);

#endif
