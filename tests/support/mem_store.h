/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket in memory, for tests. */
#ifndef MEM_STORE_H
#define MEM_STORE_H

#include <store/store.h>

/* Makes an empty bucket. Times are unknown (mtime_ns is 0), unless it has a clock.
 * Unlike a directory it can hold both "a" and "a/b". */
struct store *store_mem_new(const struct env *env, struct err *err);

/* Sets the clock, which returns nanoseconds since the epoch. Called while no request is in
 * progress. */
void store_mem_set_clock(struct store *mem, int64_t (*clock)(void));

/* Listings show what the bucket had at a moment up to so long ago; 0: what it has now. Called while
 * no request is in progress, after the clock was set. */
void store_mem_set_lag(struct store *mem, int64_t ns);

/* Puts a directory marker: an empty object whose key ends with "/". */
int store_mem_put_marker(struct store *mem, const char *key);

/* What the service behind this bucket lacks. A condition that it lacks is compared
 * before the change, as the other stores do it: other requests may come between the two. After a
 * PUT, the store checks once more whether the object is still the one that was put; if it is not,
 * the PUT fails with -ESTALE. */
enum store_mem_lacks {
	STORE_MEM_NO_MARKS = 1 << 0,	     /* marks are dropped */
	STORE_MEM_NO_DELETE_IF = 1 << 1,     /* if_match of DELETE */
	STORE_MEM_NO_IF_NONE_MATCH = 1 << 2, /* of PUT */
	STORE_MEM_NO_IF_MATCH = 1 << 3,	     /* of PUT */
	STORE_MEM_NO_MOVE = 1 << 4,
	/* A version of an object differs from another one only if the bytes do, as in S3. */
	STORE_MEM_NO_SERIAL = 1 << 5,
	/* A put with in_parts is an upload in parts, whatever its size. A service compares its
	 * condition when the upload is completed. */
	STORE_MEM_PARTS = 1 << 6,
	STORE_MEM_NO_PARTS_IF = 1 << 7, /* this condition */
	/* The answer to the completion is lost, and a look at the object decides, as in
	 * s3/multipart.c. If another writer has replaced the object meanwhile, the put fails,
	 * although it was carried out. */
	STORE_MEM_PARTS_LOST = 1 << 8,
	STORE_MEM_SHORT_PAGES = 1 << 9, /* a page has a few items only */
	/* As a directory, it cannot have both "a" and "a/b". */
	STORE_MEM_TREE = 1 << 10,
};

/* Called while no request is in progress. between, which may be NULL, is called whenever other
 * requests may come between two steps of a request. It gets the request's key, which is borrowed,
 * and may use the store. */
void store_mem_set_lacks(struct store *mem, unsigned int lacks,
			 void (*between)(void *arg, const char *key), void *arg);

#endif
