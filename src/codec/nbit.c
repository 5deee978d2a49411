/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N-bit (filter 5): of every number, only the bits that its type uses are stored, the most
 * significant bit first, one number after the other. All other bits become zero.
 *
 * Filter parameter 0 is the number of parameters. Parameter 1 is not 0 if nothing was packed.
 * Parameter 2 is the number of elements. From 3 on, the parameters describe the type:
 *
 *   number    1, size, byte order (0 little-endian, 1 big-endian), precision, bit offset
 *   array     2, size, type of the items
 *   compound  3, size, number of members, then for each: offset, type
 *   other     4, size; whole bytes
 *
 * libhdf5 has an error, which the encoder and the decoder share. After an array of arrays or of
 * compounds, it takes the parameters that describe the items, from their size on, for the next
 * member of the compound around the array. So that member is not stored, and bits of another place
 * are stored instead. This decoder does the same, because only then are the bits of later members
 * found.
 *
 * Source: H5Z_FILTER_NBIT in the HDF5 reference manual; the parameters are internal to libhdf5. The
 * parameters are checked once, before any byte is read: sizes, offsets, depth, and that there are
 * enough bits. The unpacking then needs no checks.
 */
#include "undo.h"

#include <errno.h>
#include <stdbool.h>

#include <data/dtype.h>

#include "bits.h"

enum nbit_class { NBIT_NUMBER = 1, NBIT_ARRAY = 2, NBIT_COMPOUND = 3, NBIT_OTHER = 4 };
enum { PARAM_COUNT = 0, PARAM_PLAIN = 1, PARAM_ELEMS = 2, PARAM_TYPE = 3 };

/* A position in the filter's parameters. It never moves beyond their end. */
struct params {
	const uint32_t *at;
	uint32_t left;
	bool bad;
};

static uint32_t next(struct params *p)
{
	if (p->left == 0) {
		p->bad = true;
		return 0;
	}
	p->left--;
	return *p->at++;
}

struct shape {
	uint32_t size; /* bytes */
	uint64_t bits; /* that are stored; at most 8 * size */
};

static bool check(struct params *p, uint32_t room, unsigned int depth, struct shape *s);

static bool check_number(struct params *p, struct shape *s)
{
	const uint32_t order = next(p);
	const uint64_t precision = next(p);
	const uint64_t offset = next(p);
	s->bits = precision;
	return order <= 1 && precision >= 1 && precision + offset <= UINT64_C(8) * s->size;
}

static bool check_array(struct params *p, unsigned int depth, struct shape *s)
{
	struct shape item;
	if (p->left > 0 && *p->at == NBIT_OTHER) { /* the size of the items has no meaning here */
		next(p);
		next(p);
		s->bits = UINT64_C(8) * s->size;
		return true;
	}
	const bool again = p->left > 0 && *p->at != NBIT_NUMBER;
	struct params next_member = *p;
	next(&next_member);
	if (!check(p, s->size, depth + 1, &item) || s->size % item.size != 0)
		return false;
	if (again)
		*p = next_member;
	s->bits = s->size / item.size * item.bits;
	return true;
}

static bool check_compound(struct params *p, unsigned int depth, struct shape *s)
{
	const uint32_t n = next(p);
	uint64_t used = 0;
	s->bits = 0;
	for (uint32_t i = 0; i < n && !p->bad; i++) {
		struct shape member;
		const uint32_t offset = next(p);
		if (offset > s->size || !check(p, s->size - offset, depth + 1, &member))
			return false;
		s->bits += member.bits;
		used += member.size;
		if (used > s->size)
			return false;
	}
	return true;
}

/* Checks the type at p, which may have at most `room` bytes. */
static bool check(struct params *p, uint32_t room, unsigned int depth, struct shape *s)
{
	const uint32_t cls = next(p);
	s->size = next(p);
	s->bits = UINT64_C(8) * s->size;
	if (p->bad || depth >= DTYPE_MAX_DEPTH || s->size == 0 || s->size > room)
		return false;
	bool ok = cls == NBIT_OTHER;
	if (cls == NBIT_NUMBER)
		ok = check_number(p, s);
	else if (cls == NBIT_ARRAY)
		ok = check_array(p, depth, s);
	else if (cls == NBIT_COMPOUND)
		ok = check_compound(p, depth, s);
	return ok && !p->bad;
}

struct number {
	uint32_t size, precision, offset;
	bool big_endian;
};

static struct number next_number(struct params *p)
{
	struct number t;
	t.size = next(p);
	t.big_endian = next(p) != 0;
	t.precision = next(p);
	t.offset = next(p);
	return t;
}

/* Unpacks a number of more than 8 bytes, from its highest byte to its lowest. */
static void unpack_long(struct bits *in, const struct number *t, uint8_t *to)
{
	const uint64_t end = (uint64_t)t->offset + t->precision;
	for (uint32_t k = t->size; k-- > 0;) {
		const uint64_t low = max_u64(UINT64_C(8) * k, t->offset);
		const uint64_t high = min_u64(UINT64_C(8) * k + 8, end);
		const uint64_t v = high > low ? bits_take(in, (unsigned int)(high - low)) : 0;
		to[t->big_endian ? t->size - 1 - k : k] = (uint8_t)(v << low % 8);
	}
}

static inline void unpack_number(struct bits *in, const struct number *t, uint8_t *to)
{
	if (t->size > 8) {
		unpack_long(in, t, to);
		return;
	}
	const uint64_t v = bits_take(in, t->precision) << t->offset;
	for (uint32_t k = 0; k < t->size; k++)
		to[t->big_endian ? t->size - 1 - k : k] = (uint8_t)(v >> 8 * k);
}

static void unpack_bytes(struct bits *in, uint8_t *to, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)bits_take(in, 8);
}

static void unpack(struct bits *in, struct params *p, uint8_t *to);

static void unpack_array(struct bits *in, struct params *p, uint8_t *to)
{
	const uint32_t size = next(p);
	const struct params item = *p;
	const uint32_t cls = next(p);
	if (cls == NBIT_OTHER) {
		next(p);
		unpack_bytes(in, to, size);
	} else if (cls == NBIT_NUMBER) {
		const struct number t = next_number(p);
		for (uint32_t i = 0; i < size; i += t.size)
			unpack_number(in, &t, to + i);
	} else {
		const uint32_t item_size = *p->at;
		for (uint32_t i = 0; i < size / item_size; i++) {
			struct params at = item;
			unpack(in, &at, to + (size_t)i * item_size);
		}
	}
}

/* Unpacks one element of the type at p. The recursion is not deeper than that of check(). */
static void unpack(struct bits *in, struct params *p, uint8_t *to)
{
	switch (next(p)) {
	case NBIT_NUMBER: {
		const struct number t = next_number(p);
		unpack_number(in, &t, to);
		break;
	}
	case NBIT_ARRAY:
		unpack_array(in, p, to);
		break;
	case NBIT_COMPOUND:
		next(p); /* size */
		for (uint32_t n = next(p); n > 0; n--) {
			const uint32_t offset = next(p);
			unpack(in, p, to + offset);
		}
		break;
	default:
		unpack_bytes(in, to, next(p));
	}
}

static void unpack_all(struct bits *in, struct params type, uint32_t size, struct bytes *out)
{
	if (*type.at == NBIT_NUMBER) {
		next(&type);
		const struct number t = next_number(&type);
		for (size_t i = 0; i < out->len; i += t.size)
			unpack_number(in, &t, out->data + i);
		return;
	}
	for (size_t i = 0; i < out->len; i += size) {
		struct params p = type;
		unpack(in, &p, out->data + i);
	}
}

int undo_nbit(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out, struct err *err)
{
	const uint32_t nparams = u->f->nparams;
	const uint32_t *params = u->f->params;
	if (nparams < PARAM_TYPE || params[PARAM_COUNT] != nparams)
		return err_set(err, -EIO, "nbit: invalid parameters");
	if (params[PARAM_PLAIN]) {
		if (n > u->limit)
			return err_set(err, -EIO, "nbit: %zu bytes, at most %llu are expected", n,
				       (unsigned long long)u->limit);
		int rc = bytes_append(out, in, n);
		return rc ? err_errno(err, rc, "nbit") : 0;
	}
	const struct params type = {.at = params + PARAM_TYPE, .left = nparams - PARAM_TYPE};
	struct params p = type;
	struct shape s;
	if (!check(&p, UINT32_MAX, 0, &s))
		return err_set(err, -EIO, "nbit: the parameters do not describe a type");
	const uint64_t size = (uint64_t)params[PARAM_ELEMS] * s.size; /* both have 32 bits */
	uint64_t bits = 0;
	if (size > u->limit)
		return err_set(err, -EIO,
			       "nbit: the parameters state %llu bytes, at most %llu are "
			       "expected",
			       (unsigned long long)size, (unsigned long long)u->limit);
	if (!mul_u64(s.bits, params[PARAM_ELEMS], &bits) || div_up_u64(bits, 8) > n)
		return err_set(err, -EIO,
			       "nbit: %zu bytes are too few for %u elements of %llu bits", n,
			       params[PARAM_ELEMS], (unsigned long long)s.bits);
	int rc = bytes_append_zero(out, (size_t)size);
	if (rc)
		return err_errno(err, rc, "nbit");
	struct bits b = {.next = in, .left = n};
	unpack_all(&b, type, s.size, out);
	return 0;
}
