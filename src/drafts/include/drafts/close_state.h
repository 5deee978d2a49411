/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the file complete? All code that asks this uses these words. Only the superblock tells:
 * libhdf5 1.10 and later set a bit in it when they open a file for writing, and clear it when they
 * have written everything else. It is not enough that the structures of the file can be read: this
 * is nearly always so after a program was killed.
 */
#ifndef DRAFTS_CLOSE_STATE_H
#define DRAFTS_CLOSE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/source.h>
#include <hsmount/err.h>
#include <overlay/draft.h>

enum close_state {
	CLOSE_STATE_UNKNOWN, /* there is no superblock that tells; it may be no HDF5 file */
	CLOSE_STATE_OPEN,    /* its library has not closed it, or a part of it is missing */
	/* It is not marked as open, has no user block, and is longer than its superblock says. So
	 * is a file that an old library had not finished, or to which something was appended. */
	CLOSE_STATE_LONGER,
	CLOSE_STATE_CLOSED,
};

/* Reads the superblock. CLOSE_STATE_UNKNOWN means that it is no HDF5 file, because it has no
 * signature. `why` gets a text about CLOSE_STATE_OPEN and CLOSE_STATE_LONGER, otherwise "".
 * CLOSE_STATE_CLOSED says nothing about the rest of the file, which may be damaged. Fails only if
 * the source does. */
int close_state_read(struct source *s, enum close_state *out, char *why, size_t room,
		     struct err *err);

/* Returns whether a write to [offset, offset + n) may change the mark of an open file. */
bool close_state_may_mark(uint64_t offset, uint64_t n);
/* Tells what the mark alone says, which is in the superblock, also in what lies beneath the draft.
 * A file of an old library that is closed may have the mark. */
enum close_state close_state_of_mark(struct draft *d);
/* Tells the state as far as the written bytes of a draft show it. What lies beneath is not read. */
enum close_state close_state_of_written(struct draft *d, char *why, size_t room);

#endif
