/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that an update removes from a domain. */
#ifndef UPDATE_UPDATE_GARBAGE_H
#define UPDATE_UPDATE_GARBAGE_H

#include "update_internal.h"

#include <journal/plan.h>

/* Lists what the update removes, for the plan. The arena of the update has the list. */
int update_list_removed(const struct update *u, struct plan_subject *out, struct err *err);

#endif
