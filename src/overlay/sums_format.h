/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `sums.N`, little-endian: a header, and an entry for each frame of the spool. Pure.
 *
 *    +0 24  the framed record HSMDSUMS, version 1 (base/frame.h)
 *   +24  8  "HSMFINAL" if the draft was durable and nothing will change it, else zero
 *   +32     entries of 8 bytes
 *
 * After it was made, only aligned words of 8 bytes change. So a process that is killed leaves the
 * old word or the new one.
 *
 * An entry is zero if nothing was written to the frame. Otherwise:
 *
 *    +0  4  CRC-32C of the first `length` bytes of the frame, as they are in the spool
 *    +4  4  bits 0 to 16: length; bit 17: the checksum is not known, and CRC and length are zero;
 *           bits 18 to 30: a check of the bits before, of the generation and of the frame's number;
 *           bit 31: 1, so that no changed bit makes an entry zero or of a zero an entry
 */
#ifndef OVERLAY_SUMS_FORMAT_H
#define OVERLAY_SUMS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SUMS_FRAME = 64 << 10,
	SUMS_MAX = 1 << 20, /* frames; bytes behind them have no checksum */
	SUMS_HEADER = 32,
	SUMS_ENTRY = 8,
};

void sums_header_encode(bool final, uint8_t bytes[SUMS_HEADER]);
/* n is the size of the file. Fails with -EBADMSG if it is damaged, or of another version. */
int sums_header_decode(const uint8_t *bytes, size_t n, bool *final);

struct sum_entry {
	uint32_t crc, length; /* zero if nothing was written */
	bool unknown;
};
void sum_entry_encode(uint32_t generation, uint32_t frame, const struct sum_entry *entry,
		      uint8_t bytes[SUMS_ENTRY]);
/* Fails with -EBADMSG if it is damaged, or belongs to another frame. */
int sum_entry_decode(uint32_t generation, uint32_t frame, const uint8_t bytes[SUMS_ENTRY],
		     struct sum_entry *entry);

#endif
