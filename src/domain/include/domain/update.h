/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a domain: what a program has written to its file becomes puts and deletes of the objects
 * that have changed.
 *
 *   scan     the file as it is now: its objects, and where its chunks are   update_scan.c
 *   match    which objects of the scan are objects of the domain            update_match.c
 *   compare  which parts of them differ                                     data/tree_change.h
 *   collect  which chunks were written, removed, or moved                   update_chunks.c
 *   plan     the operations, in phases                       update_plan.c, update_order.c
 *   apply    puts and deletes; each may be done twice                       apply.h
 *
 * The base of an update is the domain as its file has shown it: which object, which version, and
 * which chunk is at which address. At first it is the image of the domain. After an update it is
 * the scan. So a program may go on writing to the same file.
 *
 * The image is read like the file, by h5file/, and both results are compared. So whatever an image
 * does not show, or shows in another form, never counts as changed.
 *
 * Phases, each complete before the next one begins, and what each operation requires:
 *
 *   0  the documents that will be replaced are read            their versions are those of the base
 *   1  chunks of new datasets, and of parts that were added    none
 *   2  documents of new objects, with their links              absent
 *   3  chunks that have changed                                their version, where it is known
 *   4  documents of datasets and types that have changed       their version
 *   5  chunks outside of a smaller shape are deleted           their version, where it is known
 *   6  documents of groups: those that gain links before       their version
 *      those that lose links; see update_order.c
 *   7  the summary of the domain is deleted, if objects or     none
 *      chunks were added or removed
 *
 * Invariants, each tested by stopping after every operation:
 *   1. A link never names an object whose document is not there.
 *   2. A document never describes a shape below which there are chunks of another one.
 *   3. An object that stays in the domain is reachable at every moment, unless links of several
 *      groups exchange their objects and keep their names: see update_order.c.
 *   4. An id keeps its type, its chunk shape and its time of creation.
 *   5. Nothing is put before the plan and its bodies are durable in the journal.
 *   6. Each operation may be done twice.
 *   7. Only what has changed is put.
 *
 * Blocks. One thread at a time for each base.
 */
#ifndef DOMAIN_UPDATE_H
#define DOMAIN_UPDATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <base/source.h>
#include <hsmount/err.h>

struct domain;
struct draft;
struct draft_snapshot;
struct store;
struct update_base;

/* The image of the domain. Borrowed until update_base_free(). */
struct update_image {
	struct source *source; /* its bytes; any thread may read them, and reads may block */
	/* image_header() and image_items(). */
	uint64_t (*header)(void *ctx, uint32_t number);
	bool (*items)(void *ctx, uint32_t dataset, uint64_t chunk, uint64_t *start, uint64_t *end);
	void *ctx;
};

/* Reads nothing: the first update reads the image. The domain gets a reference. NULL: out of
 * memory. */
struct update_base *update_base_new(struct domain *d, const struct update_image *image);
void update_base_free(struct update_base *b); /* NULL is fine */

struct update_options {
	const struct env *env;
	struct store *store;
	struct draft *draft;		 /* gets the plan (overlay/plan.h) */
	struct draft_snapshot *snapshot; /* the file as it is now */
	/* Whether a byte of [start, end) was written since the base. */
	bool (*is_written)(void *ctx, uint64_t start, uint64_t end);
	/* Whether the draft has all bytes of [start, end), so that the bucket is not needed for
	 * them. */
	bool (*is_held)(void *ctx, uint64_t start, uint64_t end);
	/* Called before the plan is put: from now on the bucket may change. */
	int (*begin)(void *ctx, struct err *err);
	void *ctx;
	uint64_t seed;		      /* of the ids of new objects */
	unsigned int puts;	      /* at the same time, > 0 */
	int64_t now_ns;		      /* since the epoch */
	const atomic_bool *cancelled; /* NULL, or true: stop with -ECANCELED */
};

/* Objects of the domain to which nothing leads any more. */
struct update_garbage;

struct update_result {
	uint64_t puts, deletes, bytes; /* that were made, and of the bodies */
	/* The file is the reason of the error: it is damaged, or with -EOPNOTSUPP, a domain cannot
	 * hold it. */
	bool refused;
	struct update_garbage *garbage; /* NULL: there is none. The caller frees it */
};

/* Updates the domain. On success, the base is the file as it is now. Errors: -ESTALE: another
 * program has changed the domain; -EOPNOTSUPP: a domain cannot hold something in the file; -EIO:
 * the file is damaged; -ECANCELED; -ENOSPC: of the journal; errors of the store and of the
 * snapshot. After an error, either nothing was put, or the draft still has the plan
 * (draft_get_plan()), and apply_run() continues it. */
int domain_update(struct update_base *b, const struct update_options *opt,
		  struct update_result *out, struct err *err);

/* Deletes garbage, if the domain that now has this path shows that nothing leads to it.
 * *deleted: the number of objects. */
struct domain_bucket;
int update_collect(const struct domain_bucket *bucket, const char *path,
		   const struct update_garbage *g, const atomic_bool *cancelled, uint64_t *deleted,
		   struct err *err);
void update_garbage_free(struct update_garbage *g); /* NULL is fine */

#endif
