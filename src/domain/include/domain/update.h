/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates a domain: finds out which of its objects a program has changed in its file, and puts or
 * deletes these objects in the bucket. The steps of an update:
 *
 *   scan     read the file as it is now: its objects and the    update_scan.c
 *            addresses of its chunks
 *   match    find the objects of the domain in the scan         update_match.c
 *   compare  find the attributes, links and shapes that differ  data/tree_change.h
 *   check    refuse what a domain cannot hold                   update_check.c
 *   index    find out where the file has its chunks             update_set.c
 *   collect  find the chunks that were written or removed       update_chunks.c
 *   plan     make the operations, in phases                     update_plan.c, update_documents.c,
 *                                                               update_order.c
 *   apply    put and delete; each operation may be done twice   apply.h
 *
 * The base of an update is the state that the scan is compared with: the objects of the domain,
 * their versions, and the addresses of their chunks. For the first update this is the image of the
 * domain. After an update it is the scan. So a program may go on writing to the same file.
 *
 * Chunks. The image has the chunks of a dataset in slots, and it is known which bytes of the file
 * programs have written. So a commit reads only those nodes of chunk indexes that were written. All
 * others stand for runs of slots, which are neither read nor kept one by one: the work is in
 * proportion to what was written, not to the number of chunks.
 *
 * The image and the file are read by the same functions of h5file/. So what an image does not show,
 * or shows in another form than the bucket, never counts as changed.
 *
 * Phases, and the condition of each operation. A phase begins when the one before is complete.
 *
 *   0  read the documents that will be replaced         their versions are those of the base
 *   1  put chunks of new datasets, and chunks outside   none, or their version
 *      of the old shape
 *   2  put documents of new objects, with their links   absent
 *   3  put and delete chunks within the shape           their version, where it is known
 *   4  put documents of changed datasets and types      their version
 *   5  if a dataset has become smaller: delete chunks   their version, where it is known
 *      outside of the new shape, put those within it
 *   6  put documents of groups: those that gain links   their version
 *      before those that lose links; this takes up to
 *      three phases (update_order.c)
 *      last: delete the summary of the domain, if       none
 *      objects or chunks were added or removed
 *
 * Invariants, also if the process is killed after any operation:
 *   1. A link never names an object whose document is not there.
 *   2. A document never describes a shape within which there are chunks of another shape.
 *   3. An object that stays in the domain is reachable at every moment. There is one exception: if
 *      groups exchange objects and the names of the links stay, one of them may be unreachable
 *      until the last of these groups has been put.
 *   4. The object of an id keeps its type, its chunk shape and its time of creation.
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

/* Where the image has the chunks of a dataset: in slots of the same size, in the order of their
 * numbers. */
struct update_slots {
	uint64_t n; /* slots */
	/* Address of the chunk index, a version 1 B-tree that the image has rendered; UINT64_MAX:
	 * there is none, because the data are contiguous. */
	uint64_t index;
	uint64_t addr;		   /* of the first slot */
	uint64_t size, stride;	   /* bytes of a slot; from slot to slot */
	uint64_t bytes;		   /* of all slots */
	uint64_t items, items_end; /* the range of all items of variable length; empty: none */
};

/* The image of the domain. Borrowed until update_base_free(). Datasets and chunks have the numbers
 * of the tree of the domain and of its grids. */
struct update_image {
	struct source *source; /* its bytes; any thread may read them, and reads may block */
	/* As image_header() and image_items(). */
	uint64_t (*header)(void *ctx, uint32_t number);
	bool (*items)(void *ctx, uint32_t dataset, uint64_t chunk, uint64_t *start, uint64_t *end);
	/* As image_dataset_layout(), image_slot_chunk(), image_chunk_slot(), image_item_slot(). */
	bool (*slots)(void *ctx, uint32_t dataset, struct update_slots *out);
	uint64_t (*chunk)(void *ctx, uint32_t dataset, uint64_t slot);
	bool (*slot)(void *ctx, uint32_t dataset, uint64_t chunk, uint64_t *slot);
	uint64_t (*item_slot)(void *ctx, uint32_t dataset, uint64_t addr);
	void *ctx;
};

/* Reads nothing: the first update reads the image. The domain gets a reference. NULL: out of
 * memory. */
struct update_base *update_base_new(struct domain *d, const struct update_image *image);
void update_base_free(struct update_base *b); /* NULL is fine */

struct update_options {
	const struct env *env;
	struct store *store;
	struct draft *draft; /* gets the plan (overlay/plan.h) */
	/* The file as it is now; or, if update_is_pending(), as it was for that update. */
	struct draft_snapshot *snapshot;
	/* Whether a byte of [start, end) was written since the base. */
	bool (*is_written)(void *ctx, uint64_t start, uint64_t end);
	/* The first byte of [start, end) that was written since the base, or since the image; end:
	 * none was. The number of steps is in proportion to what was written. */
	uint64_t (*next_written)(void *ctx, uint64_t start, uint64_t end);
	uint64_t (*next_replaced)(void *ctx, uint64_t start, uint64_t end);
	/* Whether the draft has all bytes of [start, end), so that the bucket is not needed for
	 * them. */
	bool (*is_held)(void *ctx, uint64_t start, uint64_t end);
	/* Called before the plan is written into the journal. After that, the bucket may change. */
	int (*begin)(void *ctx, struct err *err);
	void *ctx;
	uint64_t seed;		      /* see schema_ops.adopt_new() */
	unsigned int puts;	      /* at the same time, > 0 */
	int64_t now_ns;		      /* since the epoch */
	const atomic_bool *cancelled; /* NULL, or true: stop with -ECANCELED */
	/* For tests: finds the changed chunks once more, from all records of all chunk indexes.
	 * -EINVAL: this has another result. */
	bool is_checked;
};

/* Objects of the domain to which nothing leads any more. */
struct update_garbage;

struct update_result {
	uint64_t puts, deletes; /* that have succeeded */
	uint64_t bytes;		/* bodies of the puts */
	/* The file is the reason of the error: it is damaged, or with -EOPNOTSUPP, a domain cannot
	 * hold it. */
	bool refused;
	struct update_garbage *garbage; /* NULL: there is none. The caller frees it */
};

/* Whether an update has failed whose plan is in the journal. The next update completes it, and does
 * nothing else. */
bool update_is_pending(const struct update_base *b);
/* Updates the domain. On success, the base is the file as the snapshot has it. Errors: -ESTALE:
 * another program has changed the domain; -EOPNOTSUPP: a domain cannot hold something in the file;
 * -EIO: the file is damaged; -ECANCELED; -ENOSPC: of the journal; errors of the store and of the
 * snapshot. After an error, either nothing was put, or the update is pending, and a
 * later process continues the plan with apply_run(). */
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
