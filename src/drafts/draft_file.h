/* SPDX-License-Identifier: Apache-2.0 */
/* An open file of a draft; drafts.c makes them. What they can do is in drafts.h. */
#ifndef DRAFTS_DRAFT_FILE_H
#define DRAFTS_DRAFT_FILE_H

#include "draft_table.h"

struct draft_file {
	struct file_draft *d; /* a reference; a file that writes is counted in writers */
	bool writes;
};

/* Gets the journal's draft, and makes it if there is none. */
int file_draft_bytes(struct file_draft *d, struct draft **out, struct err *err);

#endif
