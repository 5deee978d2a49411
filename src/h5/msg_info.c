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
 */
#include <h5/message.h>

#include "msg.h"

enum { FLAG_TRACKED = 1 << 0, FLAG_INDEXED = 1 << 1 };
enum { FLAG_PHASE = 1 << 0, FLAG_ESTIMATES = 1 << 1 };

static uint8_t order_flags(bool tracked, bool indexed)
{
	return (uint8_t)((tracked ? FLAG_TRACKED : 0) | (indexed ? FLAG_INDEXED : 0));
}

/* Version and flags of an info message. All three have version 0 and two flags. */
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

int h5_ginfo_decode(struct cursor *c, struct h5_ginfo *g, struct err *err)
{
	uint8_t flags;
	*g = (struct h5_ginfo){.has_phase = false};
	int rc = decode_head(c, "group info", &flags, err);
	if (rc)
		return rc;
	g->has_phase = flags & FLAG_PHASE;
	g->has_estimate = flags & FLAG_ESTIMATES;
	if (g->has_phase) {
		g->max_compact = cur_u16(c);
		g->min_dense = cur_u16(c);
	}
	if (g->has_estimate) {
		g->est_links = cur_u16(c);
		g->est_name_len = cur_u16(c);
	}
	return h5_msg_end(c, "group info", err);
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
	if (cur_ok(c) && version)
		return h5_msg_version(version, "reference count", err);
	return h5_msg_end(c, "reference count", err);
}

void h5_mtime_encode(struct emit *e, uint32_t seconds)
{
	emit_u8(e, 1);
	emit_zero(e, 3);
	emit_u32(e, seconds);
}

int h5_mtime_decode(struct cursor *c, uint32_t *seconds, struct err *err)
{
	uint8_t version = cur_u8(c);
	cur_skip(c, 3);
	*seconds = cur_u32(c);
	if (cur_ok(c) && version != 1)
		return h5_msg_version(version, "modification time", err);
	return h5_msg_end(c, "modification time", err);
}
