/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has a file of its own open for long, changes bytes of it through one or two
 * descriptors, and calls fsync(2) now and then; and what must be there when its machine has
 * crashed. Each byte is judged, so a file of a hold is no valid HDF5 file.
 *
 * Another thread of the program may wait in fsync(2) while it goes on writing.
 *
 * All changes of the file are numbered. State k has the first k of them. A change that has failed,
 * or whose engine was killed meanwhile, may have happened in part. What must be there:
 *
 *   fsync() or close() was acknowledged   state k or a later one, in the journal or, if the file is
 *                                         complete, in the bucket
 *   the daemon was killed                 the last state
 *   the machine has lost its power        state k or a later one. Bytes that were overwritten after
 *                                         the fsync() may be old or new (doc/JOURNAL.md, "What
 *                                         counts after a crash").
 */
#ifndef SIM_HOLD_H
#define SIM_HOLD_H

#include <base/str.h>
#include <hsmount/engine.h>

#include "engine_box.h"

enum hold_kind {
	HOLD_OTHER,  /* a new file that is no HDF5 file, so it is always complete */
	HOLD_NEW,    /* a new HDF5 file that is not complete */
	HOLD_CHANGE, /* a domain that is changed, and not complete */
	HOLD_KINDS
};

enum { HOLD_EDITS = 56, HOLD_PATH = 24 };

struct hold_edit {
	enum { HOLD_WRITE, HOLD_SIZE, HOLD_ALLOCATE, HOLD_ZERO, HOLD_SYNC, HOLD_CLOSE } kind;
	bool done;
	unsigned int until; /* HOLD_SYNC: the edits that had begun when it ended */
	uint64_t offset, n; /* HOLD_SIZE: the size is `offset` */
	uint64_t seed;	    /* of the bytes */
};

struct hold {
	enum hold_kind kind;
	char path[HOLD_PATH];
	struct box *box;
	const uint8_t *file; /* a template, which HOLD_NEW begins with */
	size_t n_file;
	uint8_t *first; /* what HOLD_CHANGE has opened */
	size_t n_first;
	struct hold_edit edits[HOLD_EDITS];
	unsigned int n;
	/* The thread that is in fsync(2), which is the edit `sync`. Its result is `synced`. */
	pthread_t syncer;
	struct engine_file *syncs; /* NULL: there is none */
	struct hold_edit *sync;
	int synced;
	unsigned int powers; /* that the box had lost when it began */
	bool kills;	     /* the engine is killed before the program closes the file */
	bool is_closed;	     /* the program has begun to close it, while its engine was alive */
	bool is_unlisted;    /* a request has failed when the program opened the file */
	bool is_dropped;     /* somebody has dropped the drafts of the engine */
	struct str faults;   /* what is wrong, a line each */
};

struct hold *hold_new(unsigned int number, struct box *b, const uint8_t *file, size_t n);
void hold_free(struct hold *h); /* h may be NULL */
/* Makes the domain that HOLD_CHANGE changes. */
int hold_begin(struct hold *h, struct err *err);
/* The program. It ends if its engine is killed. */
int hold_run(struct hold *h, struct rng *r, void (*wait)(void *ctx), void *ctx, struct err *err);
/* Judges what the journal has, which no engine uses. bucket: how drafts are read. */
void hold_check_journal(struct hold *h, const char *journal, const struct engine_options *bucket);
/* Judges the end of a history. e: an engine that has seen nothing of it. */
void hold_check_end(struct hold *h, struct engine *e, const char *journal,
		    const struct engine_options *bucket);

#endif
