/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: whether what a bucket has after a history is one of the states that the operations
 * allow. It uses engines that have seen nothing of the history.
 *
 * Names. Each operation is one or more steps, which happen at some moment between its beginning and
 * its end:
 *
 *   create   sees what has the name; then replaces it, if it is still that
 *   import   the same, by a process of its own; without --replace the name leads to nothing
 *   change   at a moment between the beginning and the end of the close, a name leads to the file
 *   remove   the name vanishes
 *   rename   the new name leads to the file, too; then the old name vanishes
 *   read     at a moment of the open, the name leads to the file that it shows; also of a change
 *   cut      as a read, but the file is not seen
 *   list     each name of the folder is there or not at a moment of its own; the same for a check
 *
 * An operation that has failed, or whose engine was killed, may do its steps at any later moment,
 * or never: recovery completes it. The oracle looks for one order of all steps in which each
 * acknowledged operation succeeds and that ends with the names that the bucket has.
 *
 * Contents. Each part of a file (enum content_part) is a register, and a change replaces the value
 * that its program has read. The oracle looks for a chain from the first value to the last one that
 * has each acknowledged change once, may have those that failed, and has none that was refused. So
 * an increment that is lost is found although all writers write equal bytes.
 *
 * /rows and /grid consist of several objects. An open may have read the shape of a grower and not
 * the chunk that the grower has put just before, which it shows as zeros. What it changes then is
 * right all the same.
 *
 * What is allowed nevertheless is in model_gaps.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "history.h"

/* Documented gaps, which the oracle permits. */
struct model_gaps {
	/* The service has no conditional DELETE. The store compares the version, and then deletes
	 * what has the name by then: that of another mount, too. */
	bool plain_delete;
	/* The service drops marks. What a refused commit has put outside of the shape that it had
	 * seen stays, and another mount that grows the dataset shows it. */
	bool no_marks;
	/* The service has no conditions of PUT: changes may be lost. Nothing is damaged. */
	bool plain_put;
};

struct model_result {
	struct str faults; /* what is wrong, a line each; empty: nothing */
	unsigned int nfaults;
	unsigned int unnamed;	/* storages to which no name leads */
	unsigned int undecided; /* searches that were too large */
};

/* The gaps of the service of a history. */
struct model_gaps model_gaps_of(const struct history *h);
void model_check(struct history *h, const struct model_gaps *gaps, struct model_result *out);
void model_release(struct model_result *r);

#endif
