/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LZF (filter 32000, of h5py): a sequence of runs without a header (the format of liblzf).
 *
 *   000nnnnn                    n + 1 bytes follow, which are copied
 *   lllddddd dddddddd           copy l + 2 bytes from d + 1 bytes before; l is 1 to 6
 *   111ddddd llllllll dddddddd  copy l + 9 bytes from d + 1 bytes before
 *
 * The source of a copy may overlap the bytes that it writes. Filter parameter 2 is the size of the
 * chunk; the decoder does not need it.
 */
#include "undo.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
	LITERAL_MAX = 32,
	LENGTH_LONG = 7,
	LENGTH_LEAST = 2,
	RATIO = 88, /* three bytes become at most 264 */
	STEP = 8,
};

/* Copies len bytes to `to` from `distance` bytes before it. `room` is the number of bytes that may
 * be written at `to`; of these, the bytes after len may be changed. */
static void copy_back(uint8_t *to, size_t distance, size_t len, size_t room)
{
	const uint8_t *from = to - distance;
	if (distance < STEP || room - len < STEP) {
		for (size_t i = 0; i < len; i++)
			to[i] = from[i];
		return;
	}
	for (size_t i = 0; i < len; i += STEP)
		memcpy(to + i, from + i, STEP);
}

/* Copies len bytes, at most LITERAL_MAX. `room` bytes may be written at `to`, and `left` bytes may
 * be read at `from`; the bytes after len may be changed. */
static void copy_literal(uint8_t *to, const uint8_t *from, size_t len, size_t room, size_t left)
{
	if (room >= LITERAL_MAX && left >= LITERAL_MAX)
		memcpy(to, from, LITERAL_MAX);
	else
		memcpy(to, from, len);
}

static int too_long(const struct undo *u, struct err *err)
{
	return err_set(err, -EIO, "lzf: the bytes decode to more than %llu",
		       (unsigned long long)u->limit);
}

static int truncated(size_t n, struct err *err)
{
	return err_set(err, -EIO, "lzf: a run goes beyond the end of the %zu bytes", n);
}

/* Decodes to out, which has room for cap bytes. */
static int decode(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, size_t cap,
		  struct err *err)
{
	size_t i = 0, o = 0;
	while (i < n) {
		const uint8_t control = in[i++];
		if (control < LITERAL_MAX) {
			const size_t len = control + 1u;
			if (len > n - i)
				return truncated(n, err);
			if (len > cap - o)
				return too_long(u, err);
			copy_literal(out->data + o, in + i, len, cap - o, n - i);
			i += len;
			o += len;
			continue;
		}
		size_t len = control >> 5;
		const bool is_long = len == LENGTH_LONG;
		if (n - i < (is_long ? 2u : 1u))
			return truncated(n, err);
		if (is_long)
			len += in[i++];
		len += LENGTH_LEAST;
		const size_t distance = ((control & 0x1fu) << 8 | in[i++]) + 1u;
		if (distance > o)
			return err_set(err, -EIO,
				       "lzf: a copy from %zu bytes before byte %zu of the output",
				       distance, o);
		if (len > cap - o)
			return too_long(u, err);
		copy_back(out->data + o, distance, len, cap - o);
		o += len;
	}
	out->len = o;
	return 0;
}

int undo_lzf(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	uint64_t possible = 0;
	if (n == 0)
		return 0;
	if (!mul_u64(n, RATIO, &possible))
		possible = UINT64_MAX;
	const uint64_t cap = min_u64(possible, u->limit);
	int rc = cap > SIZE_MAX ? -ENOMEM : bytes_reserve(out, cap ? (size_t)cap : 1);
	if (rc)
		return err_errno(err, rc, "lzf");
	return decode(u, in, n, out, (size_t)cap, err);
}
