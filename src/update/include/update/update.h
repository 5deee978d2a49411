/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates a domain: finds out which of its objects a program has changed in its file, and puts or
 * deletes these objects in the bucket. The steps of an update:
 *
 *   scan     read the file as it is now: those of its objects   update_scan.c, update_known.c
 *            that may have changed, and the addresses of their
 *            chunks
 *   match    find the objects of the domain in the scan         update_match.c
 *   compare  find the attributes, links and shapes that differ  data/tree_change.h
 *   check    refuse what a domain cannot hold                   update_check.c
 *   index    find out where the file has its chunks             update_set.c
 *   collect  find the chunks that were written or removed       update_chunks.c
 *   plan     make the operations, in phases                     update_plan.c, update_documents.c,
 *                                                               update_order.c
 *   look     what is at the places over which datasets grow     update_grow.c
 *   apply    put and delete; each operation may be done twice   apply.h, complete.h
 *   confirm  whether the domain still has what was changed      update_confirm.c, confirm.h
 *
 * The base of an update is the state that the scan is compared with: the objects of the domain,
 * their versions, and the addresses of their chunks. For the first update this is the image of the
 * domain. After an update it is the scan. So a program may go on writing to the same file.
 *
 * Objects. Groups and committed datatypes of the file are read at each update. A dataset is read
 * only if its header, its dense storage or its chunk index have other bytes than in the image, if
 * programs have written to its large attributes, its chunks or a heap with its items since the
 * image was made, or if it uses a committed datatype. All other datasets are as in the image, and
 * have no changes (update_known.c).
 *
 * Chunks. The image has the chunks of a dataset in slots, and it is known which bytes of the file
 * programs have written. So a commit reads only those nodes of chunk indexes that have other bytes
 * than in the image. All others stand for runs of slots, which are neither read nor kept one by
 * one: the work is in proportion to what was written, not to the number of chunks.
 *
 * User block. It belongs to the root group, and is read only if programs have written to it. If its
 * size changes, all bytes of the file are at other offsets and count as written (update_file.c).
 *
 * The image and the file are read by the same functions of h5file/. So what an image does not show,
 * or shows in another form than the bucket, never counts as changed.
 *
 * Phases, and the condition of each operation. A phase begins when the one before is complete.
 *
 *   0  delete the service's copy of values, if the      none
 *      domain has one (schema_storage.copy)
 *      read the documents that will be replaced, ask    their versions are those of the base
 *      for the versions of those that are removed
 *      look at the places over which datasets grow
 *      put the document of a dataset as it is, to       their version
 *      claim it: see update_grow.c
 *   1  put chunks of new datasets                       none
 *      put chunks outside of the old shape, and delete  absent, or the version that was found
 *      what is left over there
 *   2  put documents of new objects, with their links   absent
 *      put a user block that is an object of its own    none: its key is new
 *   3  put and delete chunks within the shape           their version, where it is known
 *   4  put documents of changed datasets and types; if  their version
 *      a shape becomes smaller in one dimension and
 *      larger in another, with what both have in common
 *   5  if a dataset has become smaller: delete chunks   their version, where it is known
 *      outside of the new shape, put those within it
 *   6  put documents of the datasets whose shape has    that of phase 4
 *      become smaller and larger
 *   7  put documents of groups: those that gain links   their version
 *      before those that lose links; this takes up to
 *      three phases (update_order.c)
 *      last: if objects or chunks were added or         its version; if it fails, the summary
 *      removed, put a new summary of the domain, or     is deleted
 *      delete it: see update_summary.c                  none
 *
 * Removed objects are deleted later, by update_collect(). The domain document does not change.
 *
 * Invariants, also if the process is killed after any operation. update_stop_test.c stops after
 * each operation and checks them by their numbers.
 *   1. A link never names an object whose document is not there. Other programs may break this: the
 *      object that a link of a new document names may be removed by them.
 *   2. A document never describes a shape within which there are chunks of another shape: each
 *      element that a reader finds is the old or the new one at its place. Exception: a chunk of
 *      another commit that lets the dataset grow at the same time, if that process is killed.
 *   3. An object that stays in the domain is reachable at every moment. If groups exchange objects
 *      under equal names, one of the links has another name for a moment, which begins with
 *      "hsmount-moves-" (update_between.c).
 *   4. The document of a domain names a root group whose whole tree is there.
 *   5. The object of an id keeps its type, its chunk shape and its time of creation.
 *   6. Nothing is put before the plan and its bodies are durable in the journal. An operation is
 *      noted as done only when the bucket has it. What is removed is in the journal until it has
 *      been deleted (journal/gc_log.h).
 *   7. Each operation may be done twice. The second time gives the same bucket.
 *   8. If a condition fails, no further operation begins. The plan stays in the journal, with which
 *      operations were done. What it has put where another commit may make it visible is removed
 *      (complete.h).
 *   9. Only what has changed is put: one chunk is one PUT, one attribute is one PUT, and a draft
 *      without a change is none. Some documents are put twice: that of a dataset of phase 6, that
 *      of a dataset that is claimed, and those of groups that both gain and lose links, except for
 *      one of them.
 *  10. An update succeeds only if the domain has what was changed after the last operation. This
 *      takes one round of requests.
 *
 * Blocks. One thread at a time for each base.
 */
#ifndef UPDATE_UPDATE_H
#define UPDATE_UPDATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <base/source.h>
#include <hsmount/err.h>

struct domain;
struct draft;
struct draft_snapshot;
struct domain_puts;
struct gc_event;
struct gc_log;
struct image;
struct store;
struct update_base;

/* Reads nothing: the first update reads the image. Takes references to the domain and to its image,
 * for which image_shrink() was not called. Returns NULL if out of memory. */
struct update_base *update_base_new(struct domain *d, struct image *image);
void update_base_free(struct update_base *b); /* b may be NULL */

struct update_options {
	const struct env *env;
	struct store *store;
	struct draft *draft; /* gets the plan (journal/plan.h) */
	struct gc_log *log;  /* gets what is removed; NULL for tests: then it stays in the bucket */
	/* The file as it is now; or, if update_is_pending(), as it was for that update. */
	struct draft_snapshot *snapshot;
	/* Called before the plan is written into the journal. After that, the bucket may change. */
	int (*begin)(void *ctx, struct err *err);
	void *ctx;
	uint64_t seed;		      /* see schema_editor.adopt_new() */
	unsigned int puts;	      /* at the same time, > 0 */
	int64_t now_ns;		      /* since the epoch */
	const char *bucket;	      /* its name, for the summary; NULL if it is not known */
	const atomic_bool *cancelled; /* may be NULL; if it becomes true, the update stops with
				       * -ECANCELED */
	/* The caller drops the draft after a success: the plan stays until then, so that a later
	 * process finds it complete. */
	bool keeps_plan;
	/* Returns whether the update fails, with -EOPNOTSUPP, if it would remove a dataset whose
	 * data the domain does not store. The number is that in the tree of the opened domain. May
	 * be NULL. */
	bool (*must_stay)(void *ctx, uint32_t number);
	void *must_stay_ctx;
};

struct update_result {
	uint64_t puts, deletes; /* that have succeeded */
	uint64_t bytes;		/* bodies of the puts */
	/* What was read of the file: objects, and nodes of chunk indexes. Both are 0 if the update
	 * has completed an earlier one. */
	uint64_t objects, nodes;
	/* The file is the reason of the error: it is damaged or, with -EOPNOTSUPP, a domain cannot
	 * hold it. */
	bool refused;
	/* The opened domain has a list of the chunks of a dataset that its version does not cover
	 * (domain_has_own_list()), and chunks of this dataset were put or deleted, also if the
	 * update has failed. So the domain must be opened anew. */
	bool lists_changed;
	/* After success, the number of the entry in the log that lists objects of the domain to
	 * which nothing leads any more, or GC_NONE. */
	uint32_t removed;
	/* After success, what was put, for the next open (domain/puts.h); NULL if nothing was put,
	 * or if out of memory. The caller frees it. */
	struct domain_puts *documents;
};

/* Returns whether an update has failed whose plan is in the journal. The next update completes it,
 * and does nothing else. */
bool update_is_pending(const struct update_base *b);
/* Updates the domain. On success, the base is the file as the snapshot has it. Fails with -ESTALE
 * if another program has changed the domain, with -EOPNOTSUPP if a domain cannot hold something in
 * the file, with -EIO if the file is damaged, with -ECANCELED, with -ENOSPC if the journal is full,
 * and with errors of the store and of the snapshot. After an error, either nothing was put, or a
 * plan is in the journal: the update is pending, or makes another plan. A later process continues
 * the plan with complete_run(). */
int domain_update(struct update_base *b, const struct update_options *opt,
		  struct update_result *out, struct err *err);

/* Returns whether the base has an object of the opened domain, whose number in its tree is given.
 */
bool update_base_has(const struct update_base *b, uint32_t number);

/* Deletes removed objects, which a GC_OBJECTS lists, if the domain that now has their path shows
 * that nothing leads to them, and no other program has changed them. *deleted is the number of
 * objects. The call may be repeated. */
struct domain_bucket;
int update_collect(const struct domain_bucket *bucket, const struct gc_event *list,
		   const atomic_bool *cancelled, uint64_t *deleted, struct err *err);

#endif
