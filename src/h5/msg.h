/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the encoders and decoders of messages share. Decoders ignore bytes after the last
 * field, because bodies in version 1 headers are padded to a multiple of 8. A field outside of the
 * body is an error.
 */
#ifndef H5_MSG_H
#define H5_MSG_H

#include <errno.h>
#include <inttypes.h>

#include <h5/format.h>

/* To be called after the last field. Fails with -EIO if a field was outside of the body. */
static inline int h5_msg_end(const struct cursor *c, const char *what, struct err *err)
{
	return cur_ok(c) ? 0 : err_set(err, -EIO, "%s: message ends too early", what);
}

/* Reports a version without a decoder. */
static inline int h5_msg_version(uint8_t version, const char *what, struct err *err)
{
	return err_set(err, -EOPNOTSUPP, "%s: unsupported version %u", what, version);
}

/* As h5_msg_end(). Also fails if the version is not the one with a decoder. */
static inline int h5_msg_end_of(const struct cursor *c, uint8_t version, uint8_t known,
				const char *what, struct err *err)
{
	int rc = h5_msg_end(c, what, err);
	return rc || version == known ? rc : h5_msg_version(version, what, err);
}

/* Reports that a constructor of data/ has failed with `code`. -EINVAL means that the file is
 * damaged, and -E2BIG that it exceeds a limit of this project. Adds `what` to the message. */
static inline int h5_msg_refused(int code, const char *what, struct err *err)
{
	const int rc = code == -ENOMEM ? -ENOMEM : code == -E2BIG ? -EOPNOTSUPP : -EIO;
	err_wrap(err, rc, "%s", what);
	if (err)
		err->code = rc;
	return rc;
}

/* Returns the code of the smallest width for a length, as libhdf5 chooses it: 1 << code bytes. */
static inline unsigned int h5_msg_width(uint64_t len)
{
	return len > UINT32_MAX ? 3 : len > UINT16_MAX ? 2 : len > UINT8_MAX ? 1 : 0;
}

/* Emits a length in a field of 16 bits. Sets e->bad if it does not fit. */
static inline void h5_emit_len16(struct emit *e, uint64_t len)
{
	if (len > UINT16_MAX)
		e->bad = true;
	emit_u16(e, (uint16_t)len);
}

/* Emits n bytes. bytes may be NULL while the emitter counts. */
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
