/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether the bytes of a draft are an HDF5 file that the program that writes it has
 * finished. */
#ifndef DRAFTS_CLOSE_STATE_H
#define DRAFTS_CLOSE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/source.h>
#include <hsmount/err.h>
#include <overlay/draft.h>

enum close_state {
	CLOSE_STATE_OTHER,    /* no HDF5 file: it has no signature */
	CLOSE_STATE_UNCLOSED, /* its library has not closed it, or a part of it is missing */
	CLOSE_STATE_CLOSED,
};

/* Reads the superblock. `why` gets a text about CLOSE_STATE_UNCLOSED, otherwise "".
 * CLOSE_STATE_CLOSED says nothing about the rest of the file, which may be damaged. Fails only if
 * the source does. */
int close_state_read(struct source *s, enum close_state *out, char *why, size_t room,
		     struct err *err);

/* Returns whether a write to [offset, offset + n) may change the mark of an open file. */
bool close_state_may_mark(uint64_t offset, uint64_t n);
/* Reads the mark, which is in the superblock, also from what lies beneath. Returns false if the
 * file has no superblock that can be read. */
bool close_state_mark(struct draft *d, bool *is_open);

/* Tells whether a library has the file open for writing, as far as the written bytes of a draft
 * show. What lies beneath is not read. */
enum draft_library {
	LIBRARY_UNKNOWN, /* no program has written the superblock, or it cannot be read */
	LIBRARY_OPEN,	 /* the file is marked as open */
	LIBRARY_CLOSED,	 /* it is not, and it ends where the superblock says */
	LIBRARY_UNEVEN,	 /* it is not, but it ends elsewhere */
};
enum draft_library close_state_library(struct draft *d);

#endif
