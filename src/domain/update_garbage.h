/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that an update has removed from a domain. */
#ifndef DOMAIN_UPDATE_GARBAGE_H
#define DOMAIN_UPDATE_GARBAGE_H

#include "update_internal.h"

/* What the update has removed; *out is NULL if there is nothing. -ENOMEM. */
int update_garbage_new(const struct update *u, struct update_garbage **out, struct err *err);

#endif
