/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that make, remove and list folders, and programs of other engines that create files in
 * them at the same time. A folder exists if it has a document, or if something is in it.
 *
 *   mkdir    the folder had neither; then it has a document
 *   rmdir    one listing has shown that it is empty; then its document is gone. A file that comes
 *            between the two stays, and the folder with it
 *   create   the file is there, whatever becomes of the folder
 *   remove, rename of a file    before, the folder gets a document if it has none (DETAILS.md,
 *            "Changing names", "Empty directories")
 *   rename of a folder          the new folder gets a document, then each file its new name, then
 *            the old folder vanishes, if nothing else is in it. If that fails, the files get their
 *            old names back, as far as that is possible (folders_move.c)
 *
 * Each folder has a plain object and a domain. These are steps of order.h; the registers are the
 * documents of two folders, and their files.
 */
#ifndef SIM_FOLDERS_H
#define SIM_FOLDERS_H

#include <base/str.h>

#include "player.h"

enum { FOLDERS = 2 };

struct folders {
	const uint8_t *file; /* the template of a domain */
	size_t n_file;
	struct order order; /* of this part of the history */
	uint16_t first[ORDER_REGISTERS];
	uint16_t nfiles; /* numbers of files, from 1, of all parts */
	/* A new domain of which a part could not be written becomes a plain object, as on a disk
	 * (DETAILS.md, "Failed writes"). Then nothing is judged any more. */
	bool is_torn;
	bool may_leave;	    /* somebody has failed, or has renamed a domain, so storage may stay */
	unsigned int moves; /* renames of folders, of this part */
	unsigned int acts;  /* of the last part that was judged */
	struct str faults;  /* what is wrong, a line each */
};

struct folders *folders_new(const uint8_t *file, size_t n);
void folders_free(struct folders *p); /* p may be NULL */
/* Makes the folder that has them; and the first one. */
int folders_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that does not tell what
 * other programs have done. */
int folders_run(struct folders *p, struct player *by, struct err *err);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. order_matters: false if the service checks no conditions. Returns false if the
 * search was too large. */
bool folders_check(struct folders *p, struct engine *e, struct store *bucket, bool order_matters);

#endif
