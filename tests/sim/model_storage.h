/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the oracle (model.h) that looks for what nothing leads to: storages without a name,
 * and objects of HDF5 without a link, with all their chunks. Both may stay only if something has
 * gone wrong.
 */
#ifndef SIM_MODEL_STORAGE_H
#define SIM_MODEL_STORAGE_H

#include "model_names.h"

/* Whether an import may have left its record. */
bool model_has_untidy(const struct history *h);
void model_storage_check(struct history *h, const struct model_gaps *gaps, struct model_result *r);

#endif
