/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies beneath a draft that an earlier process has left: a plain object in the version that
 * was opened then. The bucket may have another version by now, or none; then reads fail.
 */
#ifndef ENGINE_DRAFT_BENEATH_H
#define ENGINE_DRAFT_BENEATH_H

#include <hsmount/engine.h>

#include <overlay/draft.h>

struct raw_object;

/* Zero-initialised, it is closed: reads fail with -EIO. */
struct old_object {
	struct raw_object *object;
};
/* For draft_open(): the object may be opened later. */
struct draft_beneath old_object_beneath(struct old_object *o);
/* Sends no request. -EINVAL: no plain object lies beneath; -ENOMEM. */
int old_object_open(struct old_object *o, struct engine *e, const struct draft_about *about,
		    struct err *err);
void old_object_close(struct old_object *o);

#endif
