/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an update share. See update/update.h. */
#ifndef UPDATE_UPDATE_INTERNAL_H
#define UPDATE_UPDATE_INTERNAL_H

#include <update/update.h>

#include <base/mem.h>
#include <data/tree.h>
#include <data/tree_change.h>
#include <domain/domain.h>
#include <h5file/h5file.h>
#include <image/image.h>
#include <overlay/draft.h>
#include <journal/plan.h>
#include <schema/schema.h>
#include <store/pending.h>

#include <import/chunk_body.h>

/* ---- update_scan.c: one state of the file ---- */

/* A chunk of a dataset, as the index of the file has it. */
struct chunk_record {
	uint64_t number; /* in the grid of the dataset */
	/* A hash of the bytes for compact data, which have no address of their own. */
	uint64_t addr;
	uint64_t size;
	uint32_t mask;
};

/* Slots [first, end) of the image. */
struct slot_run {
	uint64_t first, end;
};

/* The version of a chunk object that an update has put, or "" if the update has deleted it. */
struct chunk_version {
	uint64_t number, order; /* of the chunk; the order of the calls of chunk_versions_add() */
	const char *version;
};
struct chunk_versions {
	struct chunk_version *v;
	size_t n, room;
};

/* The chunks of a dataset in one state of the file: those that the file has as the image has them,
 * in runs of slots, and all others one by one. Slots outside of the shape are no chunks. */
struct chunk_set {
	bool is_read;
	struct slot_run *runs; /* ascending, with a gap between any two */
	size_t nruns, runs_room;
	struct chunk_record *v; /* in ascending order of their numbers */
	size_t n, room;
	struct chunk_versions versions;
};

struct scan {
	struct source source;
	/* The source of the file while the file is scanned. After that, only unread datasets are
	 * read, and from the image, because they are the same there. */
	struct source *from;
	struct h5file *file;
	struct tree *tree;    /* of the file; its objects get the ids of the domain */
	struct arena *arena;  /* of the arrays below, and of their texts */
	const char **paths;   /* by number: of the objects in the file */
	const char **version; /* by number: of the document. NULL if it is not known, or there is
			       * none */
	/* By number: the number of the object in the tree of the domain that was opened, or
	 * OBJECT_NONE if the object is newer. */
	uint32_t *opened;
	struct chunk_set *chunks;    /* by number; only of datasets that were read */
	uint64_t nodes;		     /* of chunk indexes that chunk_set_read() has read */
	struct budget_charge charge; /* of the chunks */
	atomic_bool is_damaged;	     /* a chunk cannot be decoded or encoded */
	struct scan *whole;	     /* for update_judge(): the same state with all objects */
};

/* Reads all metadata of a file, except for chunk indexes and for the datasets that are `known` (may
 * be NULL). If `is_foreign` is set, a program has written the file, so it is checked whether two
 * structures share bytes. Fails with -EIO if the file is damaged, and with -EOPNOTSUPP for a
 * structure without a decoder. */
int scan_open(const struct env *env, struct source *from, bool is_foreign,
	      const struct h5file_known *known, struct scan **out, struct err *err);
bool scan_is_unread(const struct scan *s, uint32_t number);
uint32_t scan_count_read(const struct scan *s); /* returns objects */
/* Reads a dataset that is unread. Fails with -EIO if it is damaged, and with -ENOMEM. */
int scan_read(struct scan *s, uint32_t number, struct err *err);
void scan_free(struct scan *s); /* s may be NULL */
/* Gives a dataset the chunk shape, the filters and the place of its chunks in the domain that
 * another description of the dataset has. Only its reference is borrowed. */
int scan_adopt_dataset(struct scan *s, uint32_t number, const struct schema_ops *schema,
		       const struct dataset *from, struct err *err);
/* Return an object, or dataset, of the file. */
static inline const struct object *object_of(const struct scan *s, uint32_t number)
{
	return &tree_object(s->tree, number)->o;
}
static inline const struct dataset *dataset_of(const struct scan *s, uint32_t number)
{
	return &object_of(s, number)->dataset;
}
/* Gives an unread dataset what its removal needs. `from` is the dataset in the domain that was
 * opened. */
void scan_adopt_unread(struct scan *s, uint32_t number, const struct dataset *from);

/* ---- update_base.c ---- */

/* Says whether objects were found at the new places of a dataset that grows, see update_grow.c. */
enum growth_state {
	GROWTH_FREE,	/* none, as far as known */
	GROWTH_FOUND,	/* there are some, so the plan claims the dataset */
	GROWTH_CLAIMED, /* the dataset has been claimed */
};

struct update_base {
	struct domain *domain;
	struct image *image;
	struct image_stream *stream; /* of what is read of the image; NULL if out of memory */
	/* The bytes of the image from its superblock on. Any thread may read them, and reads may
	 * block. */
	struct source bytes;
	/* A digest of the version of the summary that counts the base, which an update has put; 0
	 * if none has: then it is domain_summary(). */
	uint64_t summary;
	bool is_image;	    /* the scan is that of the image */
	bool lists_changed; /* see struct update_result */
	struct scan *scan;  /* NULL until the image is read */
	/* These are set if the journal has the plan of an update that has not ended: */
	struct scan *next;	       /* becomes the base when the update has ended */
	struct bytes targets;	       /* a struct update_target for each operation */
	char document[STORE_ETAG_MAX]; /* the version of the document of the domain, as known */
	enum growth_state *growth;     /* by number in `scan`. NULL if all are GROWTH_FREE */
	struct bytes earlier;	       /* of uint64_t: numbers of plans that were replaced */
};
/* To be called if the plan in the journal cannot be completed, and another one is to replace it.
 * Fails with -ENOMEM. */
int update_base_restart(struct update_base *b, uint64_t plan);
/* Reads the image, if that was not done before. */
int update_base_scan(struct update_base *b, const struct env *env, struct err *err);
/* To be called when the plan is in the journal. Takes next and *targets over. */
void update_base_begin(struct update_base *b, struct scan *next, struct bytes *targets);
/* To be called when the bucket has what was planned: the next state becomes the base. */
void update_base_end(struct update_base *b);

/* Returns the object of the domain that a scanned object was when the domain was opened, or NULL if
 * it is newer. */
const struct object *update_opened(const struct update_base *b, const struct scan *s,
				   uint32_t number);

/* ---- update_since.c ---- */

/* What tells which bytes of the file are those of the image. */
struct since_image {
	struct source *file, *image;
	/* Returns the first byte of [start, end) that was written since the image, or end. */
	uint64_t (*next_replaced)(void *ctx, uint64_t start, uint64_t end);
	void *ctx;
};
/* Returns whether a program has written to [start, end). */
bool since_image_is_written(const struct since_image *since, uint64_t start, uint64_t end);
/* Returns 1 if the file has other bytes in [start, end) than the image, 0 if not, or the negative
 * errno of a source. Reads only what programs have written. */
int since_image_is_changed(const struct since_image *since, uint64_t start, uint64_t end,
			   struct err *err);

/* ---- update_known.c: datasets that are as in the image ---- */

struct update_known {
	const struct update_base *base;
	const struct since_image *since; /* NULL if all bytes are as in the image */
};
/* For h5file_known.is_known: returns whether a dataset of the image has its header at an address,
 * is as in the image, and uses no committed datatype. Errors are those of
 * since_image_is_changed(). */
int update_is_known(void *known, uint64_t addr, struct err *err);
/* Claims what an unread dataset has in the file. Fails with -EIO if something else is there, and
 * with -ENOMEM. */
int update_claim_known(const struct update_base *b, struct scan *s, uint32_t number,
		       struct err *err);

/* ---- update_slots.c: the slots of a dataset in the image ---- */

struct slots {
	const struct image *image;
	uint32_t dataset;	 /* number in the domain */
	const struct grid *grid; /* of the domain when it was opened, which numbers the chunks */
	struct image_layout at;
};

/* Finds the slots of a dataset. `opened` is its number in the domain, or OBJECT_NONE. Returns false
 * if the image has no slots whose chunks have the shape of `grid`. */
bool slots_of(const struct update_base *b, uint32_t opened, const struct grid *grid,
	      struct slots *out);
uint64_t slots_chunk(const struct slots *s, uint64_t slot);
/* Finds the slot of a chunk. Returns false if it has none. */
bool slots_find(const struct slots *s, uint64_t chunk, uint64_t *slot);
/* The bytes of a slot. */
void slots_range(const struct slots *s, uint64_t slot, uint64_t *start, uint64_t *end);
/* Returns what the index of the image says of a slot. */
struct chunk_record slots_record(const struct slots *s, uint64_t slot);
/* Returns the slot that has the byte at addr, or the last one before it. addr is not before the
 * first slot. */
uint64_t slots_at(const struct slots *s, uint64_t addr);

/* Finds the number of a chunk of one grid in another one with the same chunk shape. Returns false
 * if the chunk is outside of it. */
bool update_renumber(const struct grid *from, const struct grid *to, uint64_t number,
		     uint64_t *out);

/* ---- update_set.c ---- */

/* Reads the chunks of a dataset, and claims them. `slots` are those of the image from which the
 * file was made, or NULL. With slots, parts of the index that are as they were are not read. Fails
 * with -EIO if the file is damaged. */
int chunk_set_read(struct scan *s, uint32_t number, const struct slots *slots,
		   const struct since_image *since, struct err *err);
/* Makes the set of the chunks of the image, which are all in slots. Reads nothing. */
int chunk_set_of_image(struct scan *s, uint32_t number, const struct slots *slots, struct err *err);
void chunk_set_release(struct chunk_set *set);
struct chunk_record *chunk_set_find(const struct chunk_set *set, uint64_t number);
bool chunk_set_has_slot(const struct chunk_set *set, uint64_t slot);
/* Sorts records by their numbers. Fails with -EIO if two have the same. */
int chunk_records_sort(struct chunk_record *v, size_t n, struct err *err);
/* Makes a record of what the index of a file says. */
struct chunk_record chunk_record_of(const struct h5file_chunk *chunk);

/* ---- update_versions.c ---- */

/* Adds a version, and borrows its text. Fails with -ENOMEM. */
int chunk_versions_add(struct chunk_versions *all, uint64_t number, const char *version);
/* Sorts the versions, and keeps the last one of each chunk. Before that, none is found. */
void chunk_versions_sort(struct chunk_versions *all);
const char *chunk_versions_find(const struct chunk_versions *all, uint64_t number);

/* ---- the update ---- */

/* A chunk that is put, or deleted. */
struct chunk_change {
	uint32_t dataset;    /* number in the new scan */
	uint64_t number;     /* in the grid before the change if is_gone, else in that after it */
	bool is_gone;	     /* the file does not have it any more */
	bool is_new;	     /* the base does not have it */
	const char *version; /* of its object, which an earlier update has put; NULL if it is not
			      * known */
};

struct update {
	struct update_base *base;
	const struct update_options *opt;
	struct update_result *result;
	const struct schema_ops *schema;
	struct scan *before, *now;
	struct arena *arena;
	uint64_t user_block; /* of the file: the offset of address 0 in the snapshot */
	/* The block has another size than that of the base, or of the image. */
	bool is_moved, is_moved_since_image;
	struct source file;  /* the snapshot from its superblock on */
	struct source image; /* that of the base, likewise */
	struct since_image since;
	atomic_bool failed; /* the bucket or the disk of the draft has failed; the file is not the
			     * reason */
	uint32_t *same;	    /* by number in `now`: the number in `before`, or OBJECT_NONE */
	struct tree_change change;
	struct bytes chunks;	      /* of struct chunk_change */
	struct bytes operations;      /* of struct plan_operation */
	struct bytes targets;	      /* of struct update_target, one for each operation */
	bool counts_changed;	      /* objects or chunks were added or removed */
	struct store_pending listing; /* of the domain, for its summary */
	bool may_replan, replans;     /* the plan is to be replaced by another one */
};

enum update_phase {
	PHASE_CLAIM,
	PHASE_NEW_CHUNKS,
	PHASE_NEW_OBJECTS,
	PHASE_CHUNKS,
	PHASE_OBJECTS,
	PHASE_CUT,
	PHASE_GROW,
	PHASE_GROUPS, /* and the following ones: see update_order.c */
};
#define PHASE_SUMMARY UINT32_MAX

/* update_file.c: finds the superblock of the snapshot. Sets what struct update has for it. */
int update_find_file(struct update *u, struct err *err);
/* Returns whether a byte of [start, end) was written since the base. All ranges are addresses. */
bool update_is_written(const struct update *u, uint64_t start, uint64_t end);
/* Return the first byte of [start, end) that was written since the base, or since the image, or end
 * if there is none. The number of steps is in proportion to what was written. */
uint64_t update_next_written(const struct update *u, uint64_t start, uint64_t end);
uint64_t update_next_replaced(const struct update *u, uint64_t start, uint64_t end);
/* Returns whether the draft has all bytes of [start, end), so that the bucket is not needed for
 * them. */
bool update_is_held(const struct update *u, uint64_t start, uint64_t end);
/* Gives the tree of `now` the user block of the file. Fails with -EOPNOTSUPP if a domain cannot
 * hold it. */
int update_read_user_block(struct update *u, struct err *err);
/* Adds the put of a user block that is an object of its own, if it has changed. */
int update_plan_user_block(struct update *u, struct err *err);

/* update_match.c: fills in `same`. */
int update_match(struct update *u, struct err *err);
/* Gives the objects of the new scan their ids and versions. */
int update_adopt(struct update *u, struct err *err);

/* update_check.c: fails with -EOPNOTSUPP and the first change that a domain cannot hold. */
int update_check(struct update *u, struct err *err);

/* A dataset that both states have. */
struct pair {
	struct update *u;
	uint32_t before, now; /* numbers */
	const struct grid *grid_before, *grid;
	const struct h5file_dataset *file;
	const struct chunk_set *old;
	struct chunk_set *new;
	bool has_items; /* its elements have variable length */
	bool has_slots; /* `slots` is set */
	struct slots slots;
};

/* update_read.c: finds the chunks of all datasets in both states. Fails with -EIO if the file is
 * damaged, or two of its structures share bytes. */
int update_read_chunks(struct update *u, struct err *err);
struct pair pair_of(struct update *u, uint32_t now);

/* update_changed.c: compares one chunk. Returns 1 if it has changed, 0 if not, or a negative
 * errno. */
int chunk_has_changed(const struct pair *p, const struct chunk_record *old,
		      const struct chunk_record *now, struct err *err);
/* Does the same for a chunk whose record has not changed and whose bytes were not written. */
int chunk_has_new_items(const struct pair *p, const struct chunk_record *now, struct err *err);

/* update_chunks.c: fills in chunks. */
int update_find_chunks(struct update *u, struct err *err);
/* tests/support/update_judge.c, which only tests and the programs of sanitizer builds link: finds
 * the changes once more, from all objects and from all records of all chunk indexes, and fails with
 * -EINVAL if the result differs. */
int update_judge(struct update *u, struct err *err) __attribute__((weak));

/* What an operation changes. When the operation is done, this gets the new version. */
struct update_target {
	uint32_t object; /* number in the new scan, or OBJECT_NONE if it gets no version */
	uint32_t owner;	 /* the object to which it belongs, or OBJECT_NONE */
	bool is_new;	 /* the owner is a new object */
	bool is_chunk;
	uint64_t chunk;
	bool is_claim;	 /* the document of the base gets the version */
	uint32_t before; /* if is_claim: number in the old scan */
};
struct update_operation {
	struct plan_operation op; /* its key is not set */
	const char *key;
	struct update_target target;
	bool is_absent; /* the bucket does not have the object */
};

/* update_operation.c: adds an operation, and copies its texts. `body` is that of a put, or NULL. */
int update_add(struct update *u, const struct update_operation *what, const struct bytes *body,
	       struct err *err);

/* update_plan.c: the operations. */
int update_plan(struct update *u, struct err *err);

/* update_summary.c: requests what a new summary needs. To be called when all chunks are planned. */
void update_summary_begin(struct update *u);
/* Returns a digest of the version of the summary that was there in the state of the base; 0 if
 * there was none, or if it is not known. */
uint64_t update_summary_of(const struct update_base *b);
/* To be called when the summary has been put, with its new version, or "" if it was deleted. */
void update_summary_done(struct update_base *b, const char *etag);
/* Adds the put of a new summary if objects or chunks were added or removed; or its delete, if the
 * counts are not all known. To be called when everything else is planned. */
int update_plan_summary(struct update *u, struct err *err);

/* update_grow.c: finds out what is at the new places of datasets that grow. Changes the operations
 * of their chunks, and adds others. */
int update_look(struct update *u, struct err *err);
/* To be called when the datasets have been claimed. Fails with -EAGAIN if something else is there
 * than the plan says. */
int update_look_again(struct update *u, const struct plan *plan, struct err *err);

/* update_documents.c: reads the documents that change, and adds their puts. */
int update_plan_documents(struct update *u, struct err *err);

/* update_confirm.c: checks that the domain still has what a plan that has been applied has changed:
 * see update/confirm.h. */
int update_confirm(struct update *u, const struct plan *plan, struct err *err);

/* update_puts.c: returns what a plan that has been applied has put, or NULL if out of memory. */
struct domain_puts *update_puts(const struct update *u, const struct plan *plan);

/* update_order.c: finds the phase of each group that has changed, by its index in change.changed. A
 * group whose `first` is not 0 is put twice: in that phase with the links of both states. Both
 * arrays are zeroed before. */
int update_order(const struct update *u, uint32_t *first, uint32_t *phase, struct err *err);

/* update_between.c: makes states of an object between the old and the new one. Both are in the
 * arena of the update. *change is what such a state adds to the old one. */

/* Returns whether the shape of a dataset becomes smaller in one dimension and larger in another. */
bool update_is_two_steps(const struct update *u, const struct object_change *c);
/* Makes a state with the shape that both states have in common, and with all that has changed apart
 * from the shape. */
int update_common_shape(const struct update *u, const struct object_change *c, struct object *state,
			struct err *err);
/* Makes a state with the links of both states. If a name leads to another object now, it keeps the
 * old one, and the new one gets another name. */
int update_both_links(const struct update *u, const struct object_change *c, struct object *state,
		      struct object_change *change, struct err *err);

#endif
