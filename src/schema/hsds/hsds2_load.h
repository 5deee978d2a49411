/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the schema v2 loader. Pure. */
#ifndef HSDS_HSDS2_LOAD_H
#define HSDS_HSDS2_LOAD_H

#include "hsds2.h"
#include "hsds_load.h"

/* What the requests of the current round are for. */
enum hsds2_stage {
	HSDS2_START,
	HSDS2_COMPARE, /* a listing, to find out whether the domain has changed */
	HSDS2_REST,    /* the rest of this listing, in ranges */
	HSDS2_HEADS,   /* a HEAD for each document, for the same purpose */
	HSDS2_LIST,    /* listings that show the objects */
	HSDS2_READ,    /* the documents of the objects */
	HSDS2_MISSING, /* a HEAD for each object that they name and that no listing has shown */
	HSDS2_END
};

/* Documents of the earlier load whose keys are in one range: a page of S3 has as many keys. */
enum { HSDS2_RANGE = 1000 };

/* The keys after the first page of a listing. */
struct hsds2_ranges {
	struct arena *arena;
	uint32_t n;	   /* ranges */
	const char *after; /* all keys come after this one */
	const char **ends; /* the last key of each range but the last one */
};

/* Objects that documents name and that no listing has shown; each once after HSDS2_READ. */
struct hsds2_missing {
	struct schema_id *ids;
	uint32_t n, room;
	bool too_many; /* to ask for each, or to note */
};

struct hsds2_loader {
	struct hsds_loader hsds;
	enum hsds2_stage stage;
	/* The objects found so far, in the order of their numbers. */
	struct hsds_entry *found;
	uint32_t nfound, room;
	struct hsds2_ranges ranges;
	bool *seen;		/* by number: a listing shows the version of `previous` */
	uint64_t nlisted;	/* items of listings that were compared */
	uint32_t *suspects;	/* memory of hsds.heads, if not all objects are compared */
	struct arena *expected; /* NULL, or memory of hsds.previous: see hsds2_expect() */
	bool only_expected;	/* no listing has shown the objects */
	struct hsds2_missing missing;
};

/* The ids of all objects of a domain begin with the same digits. */
static inline bool hsds2_is_of_domain(const struct hsds2_loader *l, const struct schema_id *id)
{
	return id->form == SCHEMA_ID_V2 && memcmp(id->b, l->hsds.space->root.b, 8) == 0;
}

/* hsds2_expect.c: makes hsds.previous what the puts of the load have made of the earlier load. It
 * has no tree and no listing. -ENOMEM. */
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
/* Compares a listing, or the next part of it, with `previous`. After the last part, is_last, sets
 * l->changed or l->heads. */
int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, bool is_last,
		  struct err *err);
/* hsds2_missing.c: notes an object that a document names, and that no listing has shown. */
void hsds2_note_missing(struct hsds2_loader *l, const struct schema_id *id);
/* After READ: drops duplicates. If more than 1,024 are left, drops all, and the load is torn. */
void hsds2_sort_missing(struct hsds2_loader *l);
/* Request and answer for the i-th of them. Returns SCHEMA_ENOUGH if it exists, or cannot be asked
 * for. */
bool hsds2_request_missing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req);
int hsds2_answer_missing(struct hsds2_loader *l, const struct schema_answer *answer);
/* Divides the keys after a page into ranges that have about a page of known keys each. -ENOMEM. */
int hsds2_divide(struct hsds2_loader *l, const char *after, struct err *err);

#endif
