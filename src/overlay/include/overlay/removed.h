/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that a commit removes from a domain. They are deleted later, so the list of them
 * survives the process. See doc/JOURNAL.md.
 *
 *   draft_put_removed() -> draft_put_plan() -> all operations of the plan -> draft_take_removed()
 *        -> draft_remove_plan() -> the objects are deleted -> removed_forget()
 *
 * The list is durable in the draft before the plan is. When the plan is done, the list moves out of
 * the draft in one step, and belongs to the process. A process that completes the plan of an
 * earlier one takes its list, too. The next mount takes over the lists of processes that have
 * ended.
 *
 * Any thread; a list belongs to one thread at a time.
 */
#ifndef OVERLAY_REMOVED_H
#define OVERLAY_REMOVED_H

#include <overlay/draft.h>
#include <overlay/leftovers.h>

struct removed_object {
	const char *id;	     /* not empty */
	const char *version; /* of its document; "": not known */
};

struct removed_list {
	const char *path; /* of the domain in the bucket, 1 to LEFTOVER_PATH bytes */
	const char *root; /* id of its root group, not empty */
	uint32_t count;
	struct removed_object *objects;
};

/* A list in the journal that belongs to this process. */
struct removed;
const struct removed_list *removed_get(const struct removed *r);
/* Leaves the list to a later process. NULL is allowed. */
void removed_close(struct removed *r);
/* Deletes the list from the journal, and frees it. */
void removed_forget(struct leftovers *l, struct removed *r);
/* Calls fn, which gets them, with the lists that no process has. Counts what cannot be read, as
 * leftovers_take(). fn returns 0, or a negative errno and leaves the list to a later process. */
int removed_take_left(struct leftovers *l, int (*fn)(void *ctx, struct removed *r), void *ctx,
		      struct leftovers_taken *out, struct err *err);

/* Makes a list durable in the draft. It replaces an older one. NULL: there is none. -EROFS: the
 * draft was opened for recovery; -E2BIG; -ENOMEM; errors of the disk. */
int draft_put_removed(struct draft *d, const struct removed_list *list, struct err *err);
/* Moves the list out of the draft. *out is NULL if there is none. -EBADMSG: it is damaged. */
int draft_take_removed(struct draft *d, struct removed **out, struct err *err);

#endif
