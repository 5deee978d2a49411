/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the loader of Zarr stores: store_load.c has its stages, requests and answers,
 * store_listing.c evaluates a listing of all keys, and store_choose.c says which documents are read
 * and which groups are listed next. Pure.
 */
#ifndef ZARR_STORE_LOAD_H
#define ZARR_STORE_LOAD_H

#include <errno.h>

#include "text_list.h"
#include "zarr_space.h"

enum stage { START, CONFIRM, COMPARE, HEADS, LIST, FIRST, READ, WALK, END };

struct zarr_loader {
	struct schema_loader base;
	enum stage stage;
	struct zarr_space *space;
	const struct zarr_space *previous; /* or NULL */
	struct zarr_model *model;
	const char *root;	/* the name of the document that marks the store */
	bool changed;		/* since `previous` */
	bool is_compared;	/* the listing of COMPARE is that of the load */
	struct err refusal;	/* why the service does not list the keys; or its code is 0 */
	struct zarr_list keys;	/* all keys, relative to the store, if all were listed */
	struct zarr_list reads; /* documents to read */
	struct zarr_list walk;	/* groups to list */
	struct zarr_list found; /* children of groups: their documents are read next */
	/* Documents of arrays whose chunks are beside them: zarr_choose_beside(). */
	struct zarr_list beside;
};

/* ---- store_listing.c ---- */

/* Returns the part of a key behind the store, or NULL if it is not in it. */
const char *zarr_below(const struct zarr_loader *l, const char *key);
enum { ZARR_DIGEST_TEXT = 17 };
/* Writes a digest of the keys and versions of a listing. */
const char *zarr_digest_text(const struct schema_answer *answer, char text[ZARR_DIGEST_TEXT]);
/* Returns what a listing of all keys shows. */
struct schema_listed zarr_describe(const struct schema_answer *answer);
/* Takes the listing of all keys. If the store is loaded without it, there are no keys. */
int zarr_take_listing(struct zarr_loader *l, const struct schema_answer *answer, struct err *err);
/* Sorts the keys, for zarr_listed_etag(). */
void zarr_sort_keys(struct zarr_loader *l);
/* Returns the version of a listed key, or NULL if it was not listed. */
const char *zarr_listed_etag(const struct zarr_loader *l, const char *key);
/* Finds the separator of an array's chunk keys in the listing. Returns 0 if no key shows it. */
char zarr_separator(void *loader, const char *path);

/* ---- store_choose.c ---- */

/* A development version of netCDF-C of 2021 has stored the chunks of an array beside the directory
 * of the array. Such chunks are not found, so the array is left out. A group that this version has
 * written has a document of its own: the first function returns whether this is its key. An array
 * has one, too: the second function requests it for a child of such a group, and the third one
 * takes each document that exists. */
bool zarr_is_netcdf_group(const char *key);
int zarr_choose_beside(struct zarr_loader *l, const char *child, struct err *err);
int zarr_take_beside(struct zarr_loader *l, const char *key, struct err *err);
/* The stage FIRST, READ or WALK has ended. They fill `reads` and `walk`. */
int zarr_choose(struct zarr_loader *l, struct err *err);
int zarr_choose_groups(struct zarr_loader *l, struct err *err);
int zarr_choose_children(struct zarr_loader *l, struct err *err);

#endif
