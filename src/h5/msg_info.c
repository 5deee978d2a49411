/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small messages. Pure functions.
 *
 * Link info, 0x02 (Spec IV.A.2.c):         Attribute info, 0x15 (IV.A.2.v):
 *   +0 u8   version, 0                       +0 u8   version, 0
 *   +1 u8   flags: 0 tracked, 1 indexed      +1 u8   flags: 0 tracked, 1 indexed
 *      i64  next creation order (tracked)       u16  next creation order (tracked)
 *      u64  fractal heap                        u64  fractal heap
 *      u64  B-tree of names                     u64  B-tree of names
 *      u64  B-tree of orders (indexed)          u64  B-tree of orders (indexed)
 *
 * Group info, 0x0a (IV.A.2.k):             Reference count, 0x16 (IV.A.2.w):
 *   +0 u8   version, 0                       +0 u8   version, 0
 *   +1 u8   flags: 0 phase, 1 estimates      +1 u32  count
 *      u16  most compact links (phase)
 *      u16  fewest dense links (phase)     Modification time, 0x12 (IV.A.2.s):
 *      u16  estimated links (estimates)      +0 u8   version, 1
 *      u16  estimated name length (same)     +1 3    reserved
 *                                            +4 u32  seconds since the epoch
 *
 * Old modification time, 0x0e (IV.A.2.o): 14 digits, YYYYMMDDhhmmss in UTC, and 2 reserved bytes.
 *
 * Comment, 0x0d (IV.A.2.n): text with NUL.
 */
#include <string.h>

#include <h5/message.h>

#include "msg.h"

enum { FLAG_TRACKED = 1 << 0, FLAG_INDEXED = 1 << 1 };
enum { FLAG_PHASE = 1 << 0, FLAG_ESTIMATES = 1 << 1 };

static uint8_t order_flags(bool tracked, bool indexed)
{
	return (uint8_t)((tracked ? FLAG_TRACKED : 0) | (indexed ? FLAG_INDEXED : 0));
}

/* Decodes version and flags of an info message. All three have version 0 and two flags. */
static int decode_head(struct cursor *c, const char *what, uint8_t *flags, struct err *err)
{
	uint8_t version = cur_u8(c);
	*flags = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, what, err);
	if (version)
		return h5_msg_version(version, what, err);
	if (*flags & ~3)
		return err_set(err, -EIO, "%s: invalid flags 0x%02x", what, *flags);
	return 0;
}

void h5_linfo_encode(struct emit *e, const struct h5_linfo *l)
{
	emit_u8(e, 0);
	emit_u8(e, order_flags(l->tracked, l->indexed));
	if (l->tracked)
		emit_u64(e, (uint64_t)l->max_corder);
	emit_u64(e, l->heap);
	emit_u64(e, l->names);
	if (l->indexed)
		emit_u64(e, l->corders);
}

int h5_linfo_decode(const struct h5_file *f, struct cursor *c, struct h5_linfo *l, struct err *err)
{
	uint8_t flags;
	*l = (struct h5_linfo){.corders = H5_UNDEF};
	int rc = decode_head(c, "link info", &flags, err);
	if (rc)
		return rc;
	l->tracked = flags & FLAG_TRACKED;
	l->indexed = flags & FLAG_INDEXED;
	if (l->tracked)
		l->max_corder = (int64_t)cur_u64(c);
	l->heap = h5_cur_addr(f, c);
	l->names = h5_cur_addr(f, c);
	if (l->indexed)
		l->corders = h5_cur_addr(f, c);
	rc = h5_msg_end(c, "link info", err);
	if (!rc && l->max_corder < 0)
		rc = err_set(err, -EIO, "link info: negative creation order %" PRId64,
			     l->max_corder);
	return rc;
}

void h5_ainfo_encode(struct emit *e, const struct h5_ainfo *a)
{
	emit_u8(e, 0);
	emit_u8(e, order_flags(a->tracked, a->indexed));
	if (a->tracked)
		emit_u16(e, a->max_corder);
	emit_u64(e, a->heap);
	emit_u64(e, a->names);
	if (a->indexed)
		emit_u64(e, a->corders);
}

int h5_ainfo_decode(const struct h5_file *f, struct cursor *c, struct h5_ainfo *a, struct err *err)
{
	uint8_t flags;
	*a = (struct h5_ainfo){.corders = H5_UNDEF};
	int rc = decode_head(c, "attribute info", &flags, err);
	if (rc)
		return rc;
	a->tracked = flags & FLAG_TRACKED;
	a->indexed = flags & FLAG_INDEXED;
	if (a->tracked)
		a->max_corder = cur_u16(c);
	a->heap = h5_cur_addr(f, c);
	a->names = h5_cur_addr(f, c);
	if (a->indexed)
		a->corders = h5_cur_addr(f, c);
	return h5_msg_end(c, "attribute info", err);
}

void h5_ginfo_encode(struct emit *e, const struct h5_ginfo *g)
{
	emit_u8(e, 0);
	emit_u8(e, (uint8_t)((g->has_phase ? FLAG_PHASE : 0) |
			     (g->has_estimate ? FLAG_ESTIMATES : 0)));
	if (g->has_phase) {
		emit_u16(e, g->max_compact);
		emit_u16(e, g->min_dense);
	}
	if (g->has_estimate) {
		emit_u16(e, g->est_links);
		emit_u16(e, g->est_name_len);
	}
}

void h5_refcount_encode(struct emit *e, uint32_t count)
{
	emit_u8(e, 0);
	emit_u32(e, count);
}

int h5_refcount_decode(struct cursor *c, uint32_t *count, struct err *err)
{
	uint8_t version = cur_u8(c);
	*count = cur_u32(c);
	return h5_msg_end_of(c, version, 0, "reference count", err);
}

int h5_mtime_decode(struct cursor *c, uint32_t *seconds, struct err *err)
{
	uint8_t version = cur_u8(c);
	cur_skip(c, 3);
	*seconds = cur_u32(c);
	return h5_msg_end_of(c, version, 1, "modification time", err);
}

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March, so
 * that the leap day is the last one. year >= 1970. */
static int64_t days_since_epoch(int64_t year, int64_t month, int64_t day)
{
	enum { DAYS_TO_1970_MARCH_BASED = 719468 };
	const int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
	return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 -
	       DAYS_TO_1970_MARCH_BASED;
}

/* Reads a number of n decimal digits. Returns -1 if it is not one. */
static int64_t read_digits(struct cursor *c, size_t n)
{
	int64_t v = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t digit = cur_u8(c);
		if (digit < '0' || digit > '9')
			return -1;
		v = v * 10 + (digit - '0');
	}
	return v;
}

int h5_mtime_old_decode(struct cursor *c, uint32_t *seconds, struct err *err)
{
	struct cursor text = cur_sub(c, 14);
	*seconds = 0;
	if (!cur_ok(c))
		return h5_msg_end(c, "old modification time", err);
	const int64_t year = read_digits(&text, 4), month = read_digits(&text, 2);
	const int64_t day = read_digits(&text, 2), hour = read_digits(&text, 2);
	const int64_t minute = read_digits(&text, 2), second = read_digits(&text, 2);
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 ||
	    hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return err_set(err, -EIO, "old modification time: not a date and time");
	const int64_t t =
		((days_since_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
	*seconds = (uint32_t)min_u64((uint64_t)t, UINT32_MAX);
	return 0;
}

void h5_comment_encode(struct emit *e, const char *comment)
{
	emit_bytes(e, comment, strlen(comment) + 1);
}

int h5_comment_decode(struct cursor *c, struct arena *a, const char **comment, struct err *err)
{
	size_t n = 0;
	const char *text = cur_cstr(c, &n);
	*comment = NULL;
	if (!text)
		return h5_msg_end(c, "comment", err);
	*comment = arena_strndup(a, text, n);
	return *comment ? 0 : err_set(err, -ENOMEM, "comment: out of memory");
}
