/* SPDX-License-Identifier: Apache-2.0 */
/* When a draft is committed, and what follows from the result. Each function holds the name of the
 * draft, and blocks. Any thread; the caller has a reference. */
#ifndef DRAFTS_DRAFT_SAVE_H
#define DRAFTS_DRAFT_SAVE_H

#include "draft_table.h"

/* Commits what the bucket does not have yet, if the draft is complete. If even_empty is true, also
 * commits a new file to which no program has written yet. *waits is set if the draft is not
 * complete. Returns 0 if it has no name. The result of an earlier commit is not repeated, unless
 * the draft is in conflict with the bucket. */
int draft_save(struct file_draft *d, bool even_empty, bool *waits, struct err *err);
/* To be called when the last program that writes has closed the draft: commits what is left, unless
 * another program has opened the draft meanwhile. If `again` is set, also what has failed before,
 * without a change since then. The draft loses its name if nothing is left. Logs errors. */
void draft_finish(struct file_draft *d, bool again);
/* Commits what is left of all drafts, also what has failed before, for at most 15 seconds. No file
 * is open. */
void draft_retry_all(struct drafts *t);

#endif
