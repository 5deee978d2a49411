/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the message codecs share. A message body may be longer than what its fields fill (bodies
 * in version 1 headers are padded to 8), so decoders ignore bytes behind the last field; that a
 * field lies outside the body is always an error.
 */
#ifndef H5_MSG_H
#define H5_MSG_H

#include <errno.h>
#include <inttypes.h>

#include <h5/format.h>

/* After the last field: 0, or -EIO when one of them was past the end. */
static inline int h5_msg_end(const struct cursor *c, const char *what, struct err *err)
{
	return cur_ok(c) ? 0 : err_set(err, -EIO, "%s: message ends too early", what);
}

/* A version that the specification may know and this decoder does not. */
static inline int h5_msg_version(uint8_t version, const char *what, struct err *err)
{
	return err_set(err, -EOPNOTSUPP, "%s: version %u is not read", what, version);
}

/* A constructor of data/ refused what the file says: its -EINVAL is damage, its -E2BIG a limit of
 * ours. Puts `what` in front of its words. */
static inline int h5_msg_refused(int code, const char *what, struct err *err)
{
	int ours = code == -ENOMEM ? -ENOMEM : code == -E2BIG ? -EOPNOTSUPP : -EIO;
	err_wrap(err, ours, "%s", what);
	if (err)
		err->code = ours;
	return ours;
}

/* A size or length in a field of 16 bits. What does not fit spoils the emitter. */
static inline void h5_emit_len16(struct emit *e, uint64_t len)
{
	if (len > UINT16_MAX)
		e->bad = true;
	emit_u16(e, (uint16_t)len);
}

/* n bytes, which may be missing (NULL) while sizes are counted. */
static inline void h5_emit_raw(struct emit *e, const void *bytes, uint64_t n)
{
	if (n > SIZE_MAX)
		e->bad = true;
	else if (bytes)
		emit_bytes(e, bytes, (size_t)n);
	else
		emit_zero(e, (size_t)n);
}

#endif
