/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an update share. See domain/update.h. */
#ifndef DOMAIN_UPDATE_INTERNAL_H
#define DOMAIN_UPDATE_INTERNAL_H

#include <domain/update.h>

#include <base/mem.h>
#include <data/tree.h>
#include <data/tree_change.h>
#include <domain/domain.h>
#include <h5file/h5file.h>
#include <overlay/draft.h>
#include <overlay/plan.h>
#include <schema/schema.h>

#include "chunk_body.h"

/* ---- update_scan.c: one state of the file ---- */

/* A chunk of a dataset, as the index of the file has it. */
struct chunk_record {
	uint64_t number; /* in the grid of the dataset */
	/* Compact data have no address of their own: instead of it, a hash of the bytes. */
	uint64_t addr;
	uint64_t size;
	uint32_t mask;
	const char *version; /* of the object, which an update has put; NULL: not known */
};
/* In ascending order of their numbers. */
struct chunk_records {
	struct chunk_record *v;
	size_t n;
};

struct scan {
	struct source source;
	struct source *from; /* that of the file; used only while the file is scanned */
	struct h5file *file;
	struct tree *tree;    /* of the file; its objects get the ids of the domain */
	struct arena *arena;  /* of the arrays below, and of their texts */
	const char **paths;   /* by number: of the objects in the file */
	const char **version; /* by number: of the document; NULL: not known, or none */
	/* By number: the number of the object in the tree of the domain that was opened;
	 * OBJECT_NONE: the object is newer than that. */
	uint32_t *opened;
	struct chunk_records *chunks; /* by number; only of datasets that were read */
	struct budget_charge charge;  /* of the chunks */
	atomic_bool is_damaged;	      /* a chunk cannot be decoded or encoded */
};

/* Reads all metadata of a file. is_foreign: a program has written it, so it is checked whether two
 * structures share bytes. -EIO: it is damaged; -EOPNOTSUPP: a structure without a decoder. */
int scan_open(const struct env *env, struct source *from, bool is_foreign, struct scan **out,
	      struct err *err);
void scan_free(struct scan *s); /* NULL is fine */
/* Reads the chunk index of a dataset, if that was not done before. */
int scan_chunks(struct scan *s, uint32_t number, struct err *err);
/* Gives a dataset the chunk shape, the filters and the place of its chunks in the domain that
 * another description of the dataset has. Only its reference is borrowed. */
int scan_adopt_dataset(struct scan *s, uint32_t number, const struct schema_ops *schema,
		       const struct dataset *from, struct err *err);
/* The first record whose number is `number` or more. */
size_t chunk_records_from(const struct chunk_records *r, uint64_t number);
struct chunk_record *chunk_records_find(const struct chunk_records *r, uint64_t number);

/* ---- update_base.c ---- */

struct update_base {
	struct domain *domain;
	struct update_image image;
	bool is_image;	   /* the scan is that of the image */
	struct scan *scan; /* NULL: the image was not read yet */
	/* If the journal has the plan of an update that has not ended, NULL or empty otherwise: */
	struct scan *next;		/* becomes the base when the update has ended */
	struct bytes targets;		/* a struct update_target for each operation */
	struct update_garbage *garbage; /* what the update removes; NULL: nothing */
};
/* Reads the image, if that was not done before. */
int update_base_scan(struct update_base *b, const struct env *env, struct err *err);
/* The plan is in the journal. */
void update_base_begin(struct update_base *b, struct scan *next, struct bytes *targets,
		       struct update_garbage *garbage);
/* The bucket has what was planned: it becomes the base. Returns what was removed. */
struct update_garbage *update_base_end(struct update_base *b);

/* ---- the update ---- */

/* A chunk that is put, or deleted. */
struct chunk_change {
	uint32_t dataset;    /* number in the new scan */
	uint64_t number;     /* in the grid of the domain before the change, if is_gone; else now */
	bool is_gone;	     /* the file does not have it any more */
	bool is_new;	     /* the base does not have it */
	const char *version; /* of its object, which an earlier update has put; NULL: not known */
};

struct update {
	struct update_base *base;
	const struct update_options *opt;
	struct update_result *result;
	const struct schema_ops *schema;
	struct scan *before, *now;
	struct arena *arena;
	struct source file; /* the snapshot */
	atomic_bool failed; /* the bucket or the disk that has the draft has: not the file */
	uint32_t *same;	    /* by number in `now`: the number in `before`, or OBJECT_NONE */
	struct tree_change change;
	struct bytes chunks;	 /* of struct chunk_change */
	struct bytes operations; /* of struct plan_operation */
	struct bytes targets;	 /* of struct update_target, one for each operation */
	bool counts_changed;	 /* objects or chunks were added or removed */
};

enum update_phase {
	PHASE_NEW_CHUNKS = 1,
	PHASE_NEW_OBJECTS,
	PHASE_CHUNKS,
	PHASE_OBJECTS,
	PHASE_CUT,
	PHASE_GROUPS, /* and the following ones: see update_order.c */
};
#define PHASE_SUMMARY UINT32_MAX

/* update_match.c: fills in `same`. */
int update_match(struct update *u, struct err *err);
/* Gives the objects of the new scan their ids and versions. */
int update_adopt(struct update *u, struct err *err);

/* update_check.c: what has changed and cannot be stored: -EOPNOTSUPP with the first one. */
int update_check(struct update *u, struct err *err);

/* update_chunks.c: fills in chunks. */
int update_find_chunks(struct update *u, struct err *err);
/* The number of a chunk of one grid in another one with the same chunk shape. False: it is outside.
 */
bool update_renumber(const struct grid *from, const struct grid *to, uint64_t number,
		     uint64_t *out);

/* What an operation changes. When the operation is done, this gets the new version. */
struct update_target {
	uint32_t object; /* number in the new scan; OBJECT_NONE: neither document nor chunk */
	bool is_chunk;
	uint64_t chunk;
};
struct update_operation {
	struct plan_operation op; /* its key is not set */
	const char *key;
	struct update_target target;
	bool is_absent; /* the bucket does not have the object */
};

/* update_operation.c: adds an operation; copies its texts. body: NULL, or the body of a put. */
int update_add(struct update *u, const struct update_operation *what, const struct bytes *body,
	       struct err *err);

/* update_plan.c: the operations. */
int update_plan(struct update *u, struct err *err);

/* update_documents.c: reads the documents that change, and adds their puts. */
int update_plan_documents(struct update *u, struct err *err);

/* update_order.c: the phase of each group that has changed, by its index in change.changed. A group
 * whose `first` is not 0 is put twice: in that phase with the links of both states. Both arrays are
 * zeroed before. */
int update_order(const struct update *u, uint32_t *first, uint32_t *phase, struct err *err);

#endif
