/* SPDX-License-Identifier: Apache-2.0 */
/* The files `plan` and `done`: see plan_codec.c. Pure. */
#ifndef JOURNAL_PLAN_CODEC_H
#define JOURNAL_PLAN_CODEC_H

#include <base/mem.h>
#include <journal/plan.h>

enum { PLAN_DONE_RECORD = 24 };

/* Appends the file of a plan, whose `file` is not used. Fails with -EINVAL, -E2BIG or -ENOMEM. */
int plan_encode(const struct plan *plan, struct bytes *out, struct err *err);
/* On success, the plan owns `file`, n bytes, which was allocated with malloc(). Fails with
 * -EBADMSG, with -ENOTSUP if the plan has a later version, and with -ENOMEM. */
int plan_decode(uint8_t *file, size_t n, struct plan *plan, struct err *err);

/* Returns the size that the file `bodies` must have at least. The operations are valid. */
uint64_t plan_file_end(const struct plan_operation *operations, uint32_t count);

void plan_encode_note(const struct plan *plan, uint32_t operation, enum plan_note note,
		      uint8_t bytes[PLAN_DONE_RECORD]);
/* Sets `done` and `sent` of the operations. Ignores records that are torn or of another plan. */
void plan_apply_notes(struct plan *plan, const uint8_t *bytes, size_t n);

#endif
