/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the oracle (model.h) that looks for an order of the operations on names. */
#ifndef SIM_MODEL_NAMES_H
#define SIM_MODEL_NAMES_H

#include "model.h"

struct model_names {
	const struct history *h;
	const struct model_gaps *gaps;
	struct model_result *result;
	uint64_t end[NAMES_MAX]; /* uids of the files that the names lead to; 0: none */
};

/* Whether the operation may have left a plain object: a new file of which a part could not be
 * written becomes one, if nothing has its name, also if a program changes it before its commit has
 * succeeded (DETAILS.md, "Failed writes"). So does one that a domain cannot hold. */
bool model_is_torn(const struct op *op);
/* Whether the operation may have met something else than a domain under one of its names: a plain
 * object, the draft of a failed operation with which the engine goes on, or that of a file that a
 * program has just closed. */
bool model_meets_draft(const struct history *h, const struct op *op);
/* Whether the name may have lost its file while the operation ran. */
bool model_was_vacated(const struct history *h, const struct op *op);
/* Whether an operation may have left a plain object. */
bool model_has_torn(const struct history *h);
/* Reports a fault if there is none. */
void model_names_check(struct model_names *m);
void model_fault(struct model_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
