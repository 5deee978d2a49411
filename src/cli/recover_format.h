/* SPDX-License-Identifier: Apache-2.0 */
/* The output of hsimage recover list. Pure. */
#ifndef CLI_RECOVER_FORMAT_H
#define CLI_RECOVER_FORMAT_H

#include <stdbool.h>

#include <hsmount/recover.h>
#include <base/str.h>

/* Append a line about a draft: for people, or as a JSON object. */
void recover_format_text(const struct engine_draft_item *item, struct str *out);
void recover_format_json(const struct engine_draft_item *item, struct str *out);
/* Appends a question about committing or deleting it, without a newline. */
void recover_format_question(const struct engine_draft_item *item, bool commits, struct str *out);
/* Returns whether somebody has to do something about the draft. */
bool recover_format_waits(const struct engine_draft_item *item);

#endif
