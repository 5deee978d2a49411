/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hsimage import` of a new file to a shared name, by a process of its own beside the mounts; with
 * `--replace` also over a file. Faults and kills are those of this process.
 *
 * An import that has failed is started again, or removed with `--abort`, until nothing unfinished
 * is left. Two imports to one name come one after the other (turns.h), because `--abort` does not
 * know whose import it removes.
 */
#ifndef SIM_IMPORTS_H
#define SIM_IMPORTS_H

#include "actor.h"

/* The engine of operations that import: no actor uses it. */
enum { IMPORTS_ENGINE = ENGINES_MAX - 1 };

/* Begins the process of an import, which operation_carry_out() uses. */
void import_start(struct actor *a, const struct op *op);
int import_file(struct actor *a, struct op *op, struct err *err);
/* Ends the process, and deals with what is left. */
void import_finish(struct actor *a, struct op *op);

#endif
