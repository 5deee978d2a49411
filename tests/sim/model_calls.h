/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the oracle that judges what the calls of programs have returned, and how long they
 * took. */
#ifndef SIM_MODEL_CALLS_H
#define SIM_MODEL_CALLS_H

#include "model.h"

void model_calls_check(const struct history *h, struct model_result *out);

#endif
