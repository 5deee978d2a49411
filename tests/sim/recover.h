/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody commits what a killed mount has left in its journal (`hsimage recover commit`): files
 * and changes of shared names whose program had closed them. After a power loss nobody knows
 * whether a draft has all of it, so such a draft is left. So are those of killed programs, of
 * hold.h, and those that an engine has gone on with.
 *
 * A draft that was committed is gone from the journal, and its operation counts as acknowledged
 * from then on. A draft that was refused is still there.
 */
#ifndef SIM_RECOVER_H
#define SIM_RECOVER_H

#include "actor.h"

int recover_drafts(struct actor *a, struct op *op, struct err *err);

#endif
