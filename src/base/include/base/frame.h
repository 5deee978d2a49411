/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Framed records: how this program stores small facts on disk and in buckets. A file or an object
 * is a sequence of records. Little-endian:
 *
 *    +0  2  type, for the caller
 *    +2  2  zero
 *    +4  4  length of the body, bytes
 *    +8  4  CRC-32C of +0 to +8 and of the body
 *   +12     body
 *
 * The first record names the format and its version (frame_put_head()), so that a file of another
 * kind or of a later version is recognised. Pure.
 */
#ifndef BASE_FRAME_H
#define BASE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>
#include <hsmount/err.h>

enum {
	FRAME_HEADER = 12,   /* bytes */
	FRAME_HEAD = 0xf0f0, /* type of the first record */
	FRAME_MAGIC = 8,     /* bytes of the name of a format */
	FRAME_HEAD_SIZE = FRAME_HEADER + FRAME_MAGIC + 4,
};

/* Appends a record. Fails with -ENOMEM, or with -E2BIG if the body has 4 GiB or more. */
int frame_append(struct bytes *out, uint16_t type, const void *body, size_t n);
/* Appends a record whose body is what `body` emits: it is called twice, first to count. Fails as
 * frame_append(), and with -E2BIG if the body is bad. */
int frame_emit(struct bytes *out, uint16_t type, void (*body)(struct emit *e, const void *ctx),
	       const void *ctx);
/* Writes the header of a record, whose body of n bytes is behind it. */
void frame_seal(uint8_t *frame, uint16_t type, uint32_t n);
/* Takes the next record. *body is a cursor over its bytes, which are borrowed from c's. Returns 1,
 * or 0 if no bytes are left. Fails with -EBADMSG if the record is torn or damaged; then the cursor
 * has not moved. */
int frame_next(struct cursor *c, uint16_t *type, struct cursor *body);

/* Append or write the first record. magic has FRAME_MAGIC characters. */
void frame_seal_head(uint8_t head[FRAME_HEAD_SIZE], const char *magic, uint32_t version);
int frame_put_head(struct bytes *out, const char *magic, uint32_t version);
/* Takes the first record. Fails with -EBADMSG if the bytes are not of this format, and with
 * -ENOTSUP if they are of a later version than `version`. */
int frame_take_head(struct cursor *c, const char *magic, uint32_t version, struct err *err);

#endif
