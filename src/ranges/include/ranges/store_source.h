/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of a store as a source of bytes for a caller that may block.
 *
 * It fetches only the ranges that are read or announced (source_advise()), so that data between
 * metadata is not fetched. A read of bytes that are not in memory fetches them together with the
 * ranges that were announced first, side by side. Ranges are merged if the bytes between them are
 * few: at most 4 KiB, and at most an eighth of the requested bytes. What was fetched is kept, up to
 * a limit.
 *
 * If the object is another version than the caller has found, reads fail with -ESTALE.
 *
 * One thread at a time. A job of the pool must not read, because reads block.
 */
#ifndef RANGES_STORE_SOURCE_H
#define RANGES_STORE_SOURCE_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/source.h>

struct store;
struct store_source;

struct store_source_options {
	struct store *store;	      /* borrowed */
	const char *key;	      /* borrowed, for messages, too */
	uint64_t size;		      /* of the object, bytes */
	const char *etag;	      /* borrowed; NULL or "" if unknown */
	uint64_t keep;		      /* bytes that are kept in memory; 0 for 128 MiB */
	const atomic_bool *cancelled; /* NULL, or if true, reads fail with -ECANCELED */
};

/* Returns NULL if out of memory. */
struct store_source *store_source_new(const struct store_source_options *opt);
void store_source_free(struct store_source *s); /* s may be NULL */
/* Returns the source, which is valid until store_source_free(). */
struct source *store_source_source(struct store_source *s);

struct store_source_counts {
	uint64_t requests, bytes; /* requests that were sent, and bytes of their answers */
	uint64_t rounds;	  /* of requests side by side */
};
void store_source_counts(const struct store_source *s, struct store_source_counts *out);

#endif
