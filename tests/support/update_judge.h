/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of update_judge() share. */
#ifndef UPDATE_JUDGE_H
#define UPDATE_JUDGE_H

#include "update/update_internal.h"

/* Checks that the update has found the objects that have changed. */
int update_judge_objects(struct update *u, struct err *err);
/* Checks that all chunks of a dataset in a file are in the slots of the image. */
int update_judge_slots(struct scan *s, uint32_t number, const struct slots *slots, struct err *err);

#endif
