/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the source files of h5file/ share.
 *
 * Threads: one thread opens a file and changes all of this. After that only problems and the heap
 * cache change, each under a lock of its own.
 */
#ifndef H5FILE_H5FILE_INTERNAL_H
#define H5FILE_H5FILE_INTERNAL_H

#include <errno.h>
#include <pthread.h>

#include <base/budget.h>
#include <h5/addrs.h>
#include <h5/file.h>
#include <h5/gheap_cache.h>
#include <h5/message.h>
#include <h5/shared.h>
#include <h5file/h5file.h>

#include "problems.h"

/* A dataset as the file describes it. */
struct dataset_info {
	struct h5file_dataset shown;
	struct h5_layout layout; /* data of a compact dataset is in h5file.arena */
	enum raw_data raw;
	const struct dtype *type;
	uint32_t elem_size; /* bytes of an element in the file */
	bool dangling;	    /* a dangling reference in its chunks is already a problem */
};

/* The header of an object. */
struct object_header {
	uint64_t addr;
	uint32_t birth;	 /* seconds; 0 if the header has no birth time */
	uint8_t version; /* 0 if the object is not yet read, or is broken */
};

struct h5file {
	struct h5_file file; /* it has claims only while it is opened */
	struct h5_work work; /* limits what the open reads */
	uint64_t max_tree;   /* bytes of the tree, of the arena, and of values */
	bool claim_chunks, claim_orders, keep_claims, bounded, strict;
	struct h5_claims *kept;			/* those of the open, with keep_claims */
	const struct h5file_external *external; /* or NULL; used only during the open */
	const struct h5file_known *known;	/* the same */
	struct budget_charge charge;
	struct tree *tree;
	struct arena *arena;		 /* of everything else that lives as long as the file */
	struct dataset_info **datasets;	 /* by number; NULL if the object is no dataset */
	uint32_t ndatasets;		 /* length of this table */
	const struct pipeline *pipeline; /* of the last dataset */
	struct h5_addrs numbers;	 /* header addresses of all objects */
	struct bytes headers;		 /* of struct object_header, by number */
	struct bytes shares;		 /* of struct share, until the open ends */
	struct h5_shared *shared;
	uint64_t value_bytes;	 /* of attributes and fill values */
	uint64_t values_charged; /* of value_bytes, at the last charge */
	pthread_mutex_t lock;	 /* guards problems and `dangling` after the open */
	pthread_mutex_t heap_lock;
	struct h5_gheap_cache *heaps; /* guarded by heap_lock */
	struct arena *problem_texts;
	struct problems problems;
};

/* Makes a file that is not yet read. opt may be NULL. Returns NULL if out of memory. The caller
 * frees it with h5file_close(). */
struct h5file *h5file_new(struct source *source, const struct h5file_options *opt);
/* Reads the superblock, and prepares to read shared messages and global heaps. */
int h5file_start(struct h5file *f, struct err *err);

/* Returns whether an error means that a part of the file is damaged or not supported, so that the
 * rest can be read. Other errors end the open. */
static inline bool is_local(int rc)
{
	return rc == -EIO || rc == -EOPNOTSUPP;
}

/* Records a problem of an object. severity follows from why->code. */
void h5file_report(struct h5file *f, uint32_t number, const struct err *why);
/* The same with a severity. */
void h5file_note(struct h5file *f, enum h5file_severity severity, uint32_t number,
		 const struct err *why);

#endif
