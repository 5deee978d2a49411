/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete listings of the directories in which this mount makes files. For a short time such a
 * listing proves that a name is absent, so that a look-up before the next new file sends no
 * request. It is made while the first file is written, and made again before it becomes stale.
 *
 * This requires that the service refuses to make an object that exists (If-None-Match), because
 * another mount may have made one since the listing. Then the put of the new file fails as if the
 * other mount had come between a look-up and the put.
 *
 * Names that this mount changes or finds are added to the names that exist, and stay there, so a
 * look-up asks the bucket about them. Any thread.
 */
#ifndef NAMES_COMPLETE_DIRS_H
#define NAMES_COMPLETE_DIRS_H

#include "names_internal.h"

struct names_complete;
struct names_complete *names_complete_new(void); /* NULL if out of memory */
/* Waits for listings that are being made. */
void names_complete_free(struct names_complete *c);

/* Returns whether a valid listing proves that nothing has this name. */
bool names_complete_lacks(struct names *ns, const char *path);
/* Adds the name of a path, and those of the directories above it, to the listings. */
void names_complete_add(struct names *ns, const char *path);

#endif
