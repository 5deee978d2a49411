/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that a commit removes from a domain. They are deleted later, so the list of them
 * survives the process. See doc/JOURNAL.md.
 *
 *   draft_put_removed() -> draft_put_plan() -> all operations of the plan -> draft_take_removed()
 *        -> draft_remove_plan() -> the objects are deleted -> gc_objects_forget()
 *
 * The list is durable in the draft before the plan is. When the plan is done, the list moves out of
 * the draft in one step, and belongs to the process. A process that completes the plan of an
 * earlier one takes its list, too. The next mount takes over the lists of processes that have
 * ended.
 *
 * Any thread; a list belongs to one thread at a time.
 */
#ifndef JOURNAL_GC_OBJECTS_H
#define JOURNAL_GC_OBJECTS_H

#include <journal/gc_log.h>

struct gc_object {
	const char *id;	     /* not empty */
	const char *version; /* of its document; "": not known */
};

struct gc_objects_list {
	const char *path; /* of the domain in the bucket, 1 to GC_PATH bytes */
	const char *root; /* id of its root group, not empty */
	uint32_t count;
	struct gc_object *objects;
};

/* A list in the journal that belongs to this process. */
struct gc_objects;
const struct gc_objects_list *gc_objects_get(const struct gc_objects *r);
/* Leaves the list to a later process. r may be NULL. */
void gc_objects_close(struct gc_objects *r);
/* Deletes the list from the journal, and frees it. */
void gc_objects_forget(struct gc_log *l, struct gc_objects *r);
/* Calls fn with each list that no process has. fn takes the list over, or returns a negative errno:
 * then the list is left to a later process. Counts what cannot be read, as gc_log_take() does. */
int gc_objects_take_left(struct gc_log *l, int (*fn)(void *ctx, struct gc_objects *r), void *ctx,
			 struct gc_log_taken *out, struct err *err);

/* The next two functions work in the directory of a draft, of which `dir` is a descriptor. */
/* Makes the list durable; it replaces an older one. If `list` is NULL, the older one is removed.
 * Fails with -E2BIG, with -ENOMEM, and with errors of the disk. */
int gc_objects_write(int dir, const struct gc_objects_list *list, struct err *err);
/* Moves the list out of the directory into that of the bucket. *out is NULL if there is none. Fails
 * with -EBADMSG if the list is damaged. */
int gc_objects_take_out(const struct journal *j, int dir, struct gc_objects **out, struct err *err);

#endif
