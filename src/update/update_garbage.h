/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that an update removes from a domain. */
#ifndef UPDATE_UPDATE_GARBAGE_H
#define UPDATE_UPDATE_GARBAGE_H

#include "update_internal.h"

#include <journal/gc_objects.h>

/* Puts the list of what the update removes into the journal. Call it before the plan is put. */
int update_note_removed(const struct update *u, struct err *err);

#endif
