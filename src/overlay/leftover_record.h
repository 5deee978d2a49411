/* SPDX-License-Identifier: Apache-2.0 */
/* Header and records of a file of leftovers: see leftover_record.c. Pure. */
#ifndef OVERLAY_LEFTOVER_RECORD_H
#define OVERLAY_LEFTOVER_RECORD_H

#include <overlay/leftovers.h>

enum {
	LEFTOVER_HEADER = 64,
	LEFTOVER_RECORD = 1088,
	LEFTOVER_VERSION = 1,
	LEFTOVER_FREE = 1, /* result of leftover_decode() */
};

void leftover_header_encode(uint8_t bytes[LEFTOVER_HEADER]);
/* n: bytes of the file that were read. -EBADMSG: damaged; -ENOTSUP: a later version. */
int leftover_header_decode(const void *bytes, size_t n, struct err *err);

/* -ENAMETOOLONG. */
int leftover_encode(const struct leftover *entry, uint32_t slot, uint8_t bytes[LEFTOVER_RECORD]);
/* out->path is borrowed from the bytes. LEFTOVER_FREE: the slot is not in use; -EBADMSG. */
int leftover_decode(const uint8_t bytes[LEFTOVER_RECORD], uint32_t slot, struct leftover *out);

#endif
