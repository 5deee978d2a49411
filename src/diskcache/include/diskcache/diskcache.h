/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that were got, kept in a directory on disk for the next mount: a wrapper.
 *
 *   a whole object is got         the directory has        what happens
 *   of a version that is known    that version             it is answered, nothing is asked
 *   of no version in particular   any version              it is asked for with if_none_match, and
 *                                                          answered when that says 304
 *   either                        nothing, another         the get is passed on, and what comes is
 *                                 version, damage          kept
 *
 * A version is known by cond.if_match or known_etag; so are ranges of it answered where the whole
 * object is there. All else passes by. Puts and deletes drop what there is of their object.
 *
 * The bytes that come out are those that went in, or none: every entry is digested whole before it
 * is used, and a damaged one is dropped and asked for again. The disk never makes a get fail: where
 * it does, is full, or cannot keep up, the bucket answers.
 *
 * Threads: reading is a job of the pool; so is writing, behind the answer. What is to be written is
 * written when the store is freed.
 */
#ifndef DISKCACHE_DISKCACHE_H
#define DISKCACHE_DISKCACHE_H

#include <store/store.h>

struct store_diskcache_options {
	/* Made with mode 0700 when it is not there (its parent must be). Refused: a link, another
	 * user's, one that others can write to. May be shared by any number of processes. */
	const char *dir;
	/* What the bucket is called among all buckets that may share the directory. */
	const char *scope;
	/* Of all entries of the directory, whoever wrote them. Holds for what this process writes:
	 * others may have another limit. */
	uint64_t max_bytes;
	/* Objects up to this size are kept. */
	uint64_t max_object;
	/* Objects that were modified less than this before they were got are not kept: for stores
	 * whose version of an object is a time, which two writes may share. 0: all are. */
	uint64_t settle_ns;
	/* Bytes of memory for objects that wait to be written; when it is full, they are not kept.
	 * 0: 32 MiB. */
	uint64_t max_behind;
};

/* Owns inner, on success; strings are copied. NULL with err set. No thread is left behind and the
 * directory is open: a daemon may fork, and go elsewhere, before its first request. */
struct store *store_diskcache_new(struct store *inner, const struct store_diskcache_options *opt,
				  struct err *err);

struct store_diskcache_stats {
	uint64_t hits, hit_bytes; /* answered from disk, nothing was asked */
	uint64_t revalidated;	  /* answered from disk after the bucket said that it is current */
	uint64_t misses;	  /* could have been, had there been an entry */
	uint64_t stored;
	uint64_t skipped; /* not kept: too large, too young, or the disk was behind */
	uint64_t dropped; /* damaged entries */
	uint64_t evicted;
	uint64_t errors; /* of the disk */
	uint64_t bytes;	 /* in use when this process last looked */
};
void store_diskcache_read(struct store *s, struct store_diskcache_stats *out);

#endif
