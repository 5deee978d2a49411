/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the schema v2 loader share. Pure. */
#ifndef HSDS_HSDS2_LOAD_H
#define HSDS_HSDS2_LOAD_H

#include "hsds2.h"
#include "hsds_load.h"

/* What the requests of the current round are for. */
enum hsds2_stage {
	HSDS2_START,
	HSDS2_COMPARE, /* a listing, to find out whether the domain has changed */
	HSDS2_REST,    /* the rest of this listing, in ranges */
	HSDS2_HEADS,   /* HEADs of documents, for the same purpose */
	HSDS2_LIST,    /* listings that show the objects */
	HSDS2_WALK,    /* the same in ranges, if there are many objects; see hsds2_walk.c */
	HSDS2_READ,    /* the documents of the objects */
	HSDS2_MISSING, /* a HEAD for each missing object, see struct hsds2_missing */
	HSDS2_END
};

/* The number of documents of the earlier load whose keys are in one range. A page of S3 has as many
 * keys. */
enum { HSDS2_RANGE = 1000 };

/* The keys after the first page of a listing. */
struct hsds2_ranges {
	struct arena *arena;
	uint32_t n;	   /* number of ranges */
	const char *after; /* all keys of the ranges come after this one */
	const char **ends; /* the last key of each range but the last one */
};

/* A range of the keys of a domain that is still to be listed. */
struct hsds2_part {
	uint32_t kind; /* of its objects */
	bool delimit;
	const char *after, *until; /* only keys after the first, up to the second; or NULL */
};

struct hsds2_walk {
	/* What the first page of each kind of objects has shown. */
	bool needed; /* a kind has more objects */
	size_t has[HSDS2_OBJECT_PREFIXES];
	uint32_t parts[HSDS2_OBJECT_PREFIXES]; /* ranges of the first round; 0 if all are known */
	/* The ranges of this round, and those that remain for the next one. */
	struct arena *arena;	 /* of their texts */
	struct bytes now, later; /* of struct hsds2_part */
	uint64_t nkeys;		 /* listed so far */
	bool delimited;		 /* a range was listed with a delimiter, or has to be */
	bool by_pages;		 /* the first round is that of schema_load.pages */
};

/* Objects that documents name and that no listing has shown. After hsds2_sort_missing(), each
 * occurs once. */
struct hsds2_missing {
	struct schema_id *ids;
	struct bytes bytes; /* of the ids */
	uint32_t n;
	bool too_many; /* there are more than can be asked for or noted */
};

struct hsds2_loader {
	struct hsds_loader hsds;
	enum hsds2_stage stage;
	/* The objects found so far, in the order of their numbers. */
	struct hsds_entry *found;
	uint32_t nfound;
	struct hsds2_ranges ranges;
	bool *seen;		/* by number: a listing shows the version of `previous` */
	uint64_t nlisted;	/* items of listings that were compared */
	uint32_t *suspects;	/* memory of hsds.heads if not all objects are compared by HEAD */
	struct arena *expected; /* NULL, or the memory of hsds.previous, see hsds2_expect() */
	bool only_expected;	/* no listing has shown the objects */
	struct hsds2_missing missing;
	struct hsds2_walk walk;
};

/* Returns whether an id is one of this domain: the ids of all objects of a domain begin with the
 * same 16 digits. */
static inline bool hsds2_is_of_domain(const struct hsds2_loader *l, const struct schema_id *id)
{
	return id->form == SCHEMA_ID_V2 && memcmp(id->b, l->hsds.space->root.b, 8) == 0;
}

/* hsds2_expect.c. If the load has puts, replaces hsds.previous by what these puts should have made
 * of the earlier load. The new hsds.previous has no tree and no listing. Fails with -ENOMEM. */
int hsds2_expect(struct hsds2_loader *l, struct err *err);

/* hsds2_list.c. Add objects to l->found: those of a listing of all keys, and of a part of such a
 * listing or, if `prefixes` is true, of a listing of one kind of objects with a delimiter. The
 * first function also finds out whether the domain counts as listed whole. */
int hsds2_take_whole(struct hsds2_loader *l, const struct schema_answer *answer, struct err *err);
int hsds2_take_listed(struct hsds2_loader *l, const struct schema_answer *answer, bool prefixes,
		      struct err *err);
/* Adds the objects of hsds.previous that are compared. The store has confirmed their versions. */
int hsds2_take_expected(struct hsds2_loader *l, struct err *err);
/* Gives each object that was found a number in the tree. They are in the order of their keys, and
 * the root group is the first one. */
int hsds2_number_found(struct hsds2_loader *l, struct err *err);
/* Compares a listing, or the next part of it, with `previous`. After the last part (is_last), sets
 * hsds.changed, or sets hsds.heads to the objects that must be compared by HEAD. */
int hsds2_compare(struct hsds2_loader *l, const struct schema_answer *answer, bool is_last,
		  struct err *err);
/* hsds2_missing.c. Notes an object that a document names and that no listing has shown. */
void hsds2_note_missing(struct hsds2_loader *l, const struct schema_id *id);
/* Drops duplicates after the stage HSDS2_READ. If more than 1,024 objects are left, drops all of
 * them and marks the load as torn. */
void hsds2_sort_missing(struct hsds2_loader *l);
/* Make the request for the i-th missing object, and take its answer. hsds2_answer_missing() returns
 * SCHEMA_ENOUGH if the object exists, or if the request failed. */
bool hsds2_request_missing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req);
int hsds2_answer_missing(struct hsds2_loader *l, const struct schema_answer *answer);
/* Divides the keys that come after the key `after`, the last one of a page, into ranges. Each range
 * has about a page of known keys. Fails with -ENOMEM. */
int hsds2_divide(struct hsds2_loader *l, const char *after, struct err *err);

/* hsds2_walk.c. Notes what the first page of a listing of one kind of objects has shown. */
void hsds2_walk_note(struct hsds2_loader *l, uint32_t kind, const struct schema_answer *answer);
/* Begins the next round, and makes its requests. hsds2_walk_answer() adds objects to l->found. It
 * fails with -EIO, -ENOMEM and errors of the store. */
bool hsds2_walk_goes_on(const struct hsds2_loader *l);
int hsds2_walk_round(struct hsds2_loader *l, uint32_t *n, struct err *err);
bool hsds2_walk_request(const struct hsds2_loader *l, uint32_t i, struct schema_request *req);
int hsds2_walk_answer(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
		      struct err *err);
/* Returns whether the load begins with the pages of an earlier listing, and makes their ranges. It
 * then needs no LIST, unless hsds2_walk_is_void() returns true after the last round. */
bool hsds2_walk_by_pages(struct hsds2_loader *l);
/* Returns whether the ranges of the pages are of no use: the domain may have so few keys that it
 * can be listed whole, or has too many. Then drops all that was listed. */
bool hsds2_walk_is_void(struct hsds2_loader *l);
void hsds2_walk_release(struct hsds2_walk *w);

#endif
