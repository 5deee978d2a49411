/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fill value message, 0x05 (Spec IV.A.2.f), and the old one, 0x04 (IV.A.2.e). Pure functions.
 *
 * Version 2 (encoded) and 1:             Version 3:
 *   +0 u8   version                        +0 u8   version, 3
 *   +1 u8   space allocation time          +1 u8   flags: 0-1 allocation time, 2-3 write time,
 *   +2 u8   fill value write time                  4 undefined, 5 value present
 *   +3 u8   fill value defined             +2 u32  size       (flag bit 5)
 *   +4 u32  size  (v2: when defined)       +6      value      (flag bit 5)
 *   +8      value (v2: when defined)
 *
 * A defined value of size 0 is the default fill value, zeros. Version 1 always has the size, which
 * is negative if the value is undefined.
 *
 * The old message: +0 u32 size, +4 value. Size 0: the value is undefined.
 */
#include <h5/message.h>

#include "msg.h"

enum {
	ALLOC_SHIFT = 0,
	WRITE_SHIFT = 2,
	TIME_MASK = 3,
	FLAG_UNDEFINED = 1 << 4,
	FLAG_HAVE_VALUE = 1 << 5,
	FLAGS_RESERVED = 0xc0,
};

void h5_fill_encode(struct emit *e, const struct h5_fill *f)
{
	emit_u8(e, 2);
	emit_u8(e, (uint8_t)f->alloc_time);
	emit_u8(e, (uint8_t)f->fill_time);
	emit_u8(e, f->defined);
	if (!f->defined)
		return;
	emit_u32(e, f->size);
	h5_emit_raw(e, f->value, f->size);
}

static int check_times(uint8_t alloc, uint8_t write, struct h5_fill *f, struct err *err)
{
	if (alloc < ALLOC_TIME_EARLY || alloc > ALLOC_TIME_INCR || write > FILL_TIME_IFSET)
		return err_set(err, -EIO, "fill value: invalid allocation time %u or write time %u",
			       alloc, write);
	f->alloc_time = (enum alloc_time)alloc;
	f->fill_time = (enum fill_time)write;
	return 0;
}

static void decode_value(struct cursor *c, struct h5_fill *f)
{
	f->size = cur_u32(c);
	if (f->size > INT32_MAX) { /* negative */
		f->defined = false;
		f->size = 0;
	}
	f->value = f->size ? cur_bytes(c, f->size) : NULL;
}

int h5_fill_old_decode(struct cursor *c, struct h5_fill *f, struct err *err)
{
	/* libhdf5 assumes these times. */
	*f = (struct h5_fill){
		.alloc_time = ALLOC_TIME_LATE, .fill_time = FILL_TIME_IFSET, .defined = true};
	decode_value(c, f);
	f->defined = f->size;
	return h5_msg_end(c, "old fill value", err);
}

static int decode_packed(struct cursor *c, struct h5_fill *f, struct err *err)
{
	uint8_t flags = cur_u8(c);
	if (flags & FLAGS_RESERVED || (flags & FLAG_UNDEFINED && flags & FLAG_HAVE_VALUE))
		return err_set(err, -EIO, "fill value: invalid flags 0x%02x", flags);
	f->defined = !(flags & FLAG_UNDEFINED);
	if (flags & FLAG_HAVE_VALUE)
		decode_value(c, f);
	int rc = h5_msg_end(c, "fill value", err);
	return rc ? rc
		  : check_times(flags >> ALLOC_SHIFT & TIME_MASK, flags >> WRITE_SHIFT & TIME_MASK,
				f, err);
}

int h5_fill_decode(struct cursor *c, struct h5_fill *f, struct err *err)
{
	*f = (struct h5_fill){.defined = false};
	uint8_t version = cur_u8(c);
	if (cur_ok(c) && (version < 1 || version > 3))
		return h5_msg_version(version, "fill value", err);
	if (version == 3)
		return decode_packed(c, f, err);

	uint8_t alloc = cur_u8(c), write = cur_u8(c), defined = cur_u8(c);
	if (defined > 1)
		return err_set(err, -EIO, "fill value: invalid \"defined\" flag %u", defined);
	f->defined = defined;
	if (defined)
		decode_value(c, f);
	else if (version == 1)
		cur_skip(c, 4); /* size */
	int rc = h5_msg_end(c, "fill value", err);
	return rc ? rc : check_times(alloc, write, f, err);
}
