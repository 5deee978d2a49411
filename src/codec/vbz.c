/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter 32020, VBZ, with which nanopore sequencers store signals (nanoporetech/vbz_compression).
 * A chunk:
 *
 *   +0  u32 LE  bytes of the elements
 *   +4          a Zstandard frame with the packed integers, or these integers as they are if the
 *               level is 0
 *
 * Parameters of the filter: version, bytes of an integer (0, 1, 2 or 4), whether differences are
 * stored, and the level of Zstandard, which is 1 if it is missing. With integers of 0 bytes the
 * frame has the elements as they are.
 *
 * The packed integers are a Stream VByte: a key of 2 bits for each integer, four keys in a byte,
 * the first one in the lowest bits; then the data of all integers. A key says how much data its
 * integer has: 1, 2, 3 or 4 bytes. In version 1, integers of one byte have 0, 1, 2 or 4 half bytes
 * instead, of which the lower one of a byte comes first. Differences are those to the integer
 * before, 0 for the first one. Of a difference d, the zigzag form is stored: 2d, or -2d - 1 if it
 * is negative. All arithmetic wraps.
 *
 * No library is used, because none of them checks that the data end within the input. Here the keys
 * are added up before any data are read.
 */
#include <errno.h>
#include <string.h>

#include <base/cursor.h>

#include "decoders.h"
#include "undo.h"

enum { HEADER = 4, VERSION_MAX = 1, KEYS_OF_BYTE = 4, HALF = 4 /* bits */ };

struct packed {
	uint32_t elem_size; /* of an integer, bytes */
	bool is_halves;	    /* the unit of lengths is a half byte, otherwise a byte */
	bool is_delta;
	uint64_t n; /* integers */
};

/* Units of data of an integer, by its key. */
static const uint8_t bytes_of_key[] = {1, 2, 3, 4}, halves_of_key[] = {0, 1, 2, 4};

static unsigned int units_of(const struct packed *p, const uint8_t *keys, uint64_t i)
{
	const unsigned int key = keys[i / KEYS_OF_BYTE] >> i % KEYS_OF_BYTE * 2 & 3;
	return (p->is_halves ? halves_of_key : bytes_of_key)[key];
}

/* Returns the bytes of data that the keys state. */
static uint64_t data_size(const struct packed *p, const uint8_t *keys)
{
	uint64_t units = 0;
	for (uint64_t i = 0; i < p->n; i++)
		units += units_of(p, keys, i);
	return p->is_halves ? div_up_u64(units, 2) : units;
}

/* Reads an integer of some units. *at counts the units in front of it. */
static uint32_t read_integer(const struct packed *p, const uint8_t *data, uint64_t *at,
			     unsigned int units)
{
	uint32_t v = 0;
	for (unsigned int k = 0; k < units; k++, ++*at)
		v |= p->is_halves ? (data[*at / 2] >> *at % 2 * HALF & 0xfu) << k * HALF
				  : (uint32_t)data[*at] << 8 * k;
	return v;
}

static void unpack(const struct packed *p, const uint8_t *keys, const uint8_t *data, uint8_t *out)
{
	uint64_t at = 0;
	uint32_t last = 0;
	for (uint64_t i = 0; i < p->n; i++) {
		uint32_t v = read_integer(p, data, &at, units_of(p, keys, i));
		if (p->is_delta)
			v = last + (v >> 1 ^ -(v & 1));
		last = v;
		for (uint32_t b = 0; b < p->elem_size; b++)
			*out++ = (uint8_t)(v >> 8 * b);
	}
}

/* Decodes the packed integers to exactly `size` bytes. */
static int decode(const struct packed *p, const uint8_t *in, size_t n, size_t size,
		  struct bytes *out, struct err *err)
{
	const uint64_t nkeys = div_up_u64(p->n, KEYS_OF_BYTE);
	if (nkeys > n)
		return err_set(err, -EIO, "VBZ: %zu bytes are too few for %llu integers", n,
			       (unsigned long long)p->n);
	const uint64_t ndata = data_size(p, in);
	if (ndata != n - nkeys)
		return err_set(err, -EIO, "VBZ: the keys state %llu bytes of data, there are %llu",
			       (unsigned long long)ndata, (unsigned long long)(n - nkeys));
	const int rc = bytes_reserve(out, size);
	if (rc)
		return err_errno(err, rc, "VBZ");
	unpack(p, in, in + nkeys, out->data);
	out->len = size;
	return 0;
}

/* Checks the parameters. */
static int packed_of(const struct undo *u, struct packed *p, struct err *err)
{
	enum { PARAMS_MIN = 3 };
	const uint32_t version = undo_param(u, 0, 0);
	*p = (struct packed){.elem_size = undo_param(u, 1, 0), .is_delta = undo_param(u, 2, 0)};
	if (u->f->nparams < PARAMS_MIN)
		return err_set(err, -EIO, "VBZ: %u parameters", u->f->nparams);
	if (version > VERSION_MAX)
		return err_set(err, -EOPNOTSUPP, "VBZ: version %u is not built in", version);
	if (p->elem_size > 4 || p->elem_size == 3)
		return err_set(err, -EIO, "VBZ: integers of %u bytes", p->elem_size);
	p->is_halves = version == 1 && p->elem_size == 1;
	return 0;
}

int undo_vbz(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	enum { LEVEL = 3, LEVEL_DEFAULT = 1 };
	struct bytes frame auto_bytes = {0};
	struct cursor c = cursor_of(in, n);
	const uint32_t size = cur_u32(&c);
	struct packed p;
	int rc = packed_of(u, &p, err);
	if (rc)
		return rc;
	if (!cur_ok(&c) || size > u->limit || (p.elem_size && size % p.elem_size))
		return err_set(err, -EIO,
			       "VBZ: %zu bytes state %u bytes in integers of %u, at most %llu "
			       "are expected",
			       n, size, p.elem_size, (unsigned long long)u->limit);
	n -= HEADER;
	in += HEADER;
	p.n = p.elem_size ? size / p.elem_size : 0;
	const uint64_t most = p.elem_size ? div_up_u64(p.n, KEYS_OF_BYTE) + 4 * p.n : size;
	if (undo_param(u, LEVEL, LEVEL_DEFAULT) != 0) {
		rc = zstd_decode(in, n, most, &frame, err);
		if (rc)
			return err_wrap(err, rc, "VBZ");
		in = frame.data;
		n = frame.len;
	}
	if (p.elem_size)
		return decode(&p, in, n, size, out, err);
	if (n != size)
		return err_set(err, -EIO, "VBZ: %zu bytes instead of %u", n, size);
	rc = bytes_append(out, in, n);
	return rc ? err_errno(err, rc, "VBZ") : 0;
}
