/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hsimage import` of a new file to a shared name (process.h); with `--replace` also over a file.
 *
 * An import that has failed is started again, or removed with `--abort`, until nothing unfinished
 * is left. Two imports to one name come one after the other (turns.h), because `--abort` does not
 * know whose import it removes.
 */
#ifndef SIM_IMPORTS_H
#define SIM_IMPORTS_H

#include "actor.h"

int import_file(struct actor *a, struct op *op, struct err *err);
/* Deals with what its process has left. */
void import_finish(struct actor *a, struct op *op);

#endif
