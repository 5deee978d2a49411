/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the plan of a change of a domain, in the process that has made it or in a later one;
 * and takes back what a plan has put that cannot be completed.
 *
 * A DELETE of a chunk outside of a shape that has become smaller may find that another program has
 * changed the object. This is no conflict. As long as the document has the shape of the plan, the
 * object is no chunk, and is deleted as it is. Otherwise the object belongs to another change, and
 * stays.
 *
 * What a plan has put outside of the shape that it had found becomes visible when another program
 * lets the dataset grow. So when the plan fails with -ESTALE, these objects are removed, if it is
 * certain that the plan has not put its shape. If the root group is gone, the domain is gone, and
 * all objects that the plan has put are removed. In both cases an object is removed only if it
 * carries a mark of this plan, by a HEAD just before. What remains outside of a shape is looked at
 * when the dataset grows (update_grow.c); `hsimage check` names storage without a domain.
 *
 * All functions block.
 */
#ifndef UPDATE_COMPLETE_H
#define UPDATE_COMPLETE_H

#include <update/apply.h>

struct schema_ops;

struct complete {
	const struct apply *apply; /* notes_sent is not used */
	const struct schema_ops *schema;
	const char *path; /* of the domain when it was opened */
	/* Checks that the domain still has what was changed: see update/confirm.h. NULL means
	 * confirm_plan(). */
	int (*confirm)(void *ctx, struct err *err);
	void *ctx;
};

/* Runs the plan, then checks that the domain has what was changed. Errors are those of apply_run()
 * and of confirm_documents(). */
int complete_run(const struct complete *c, struct apply_result *out, struct err *err);
/* Removes what is described above. Call it after -ESTALE, or before the draft is dropped. What
 * cannot be removed stays, and the log has a line. The plan may be run again. Returns how many
 * objects were removed. */
uint64_t complete_withdraw(const struct complete *c);

#endif
