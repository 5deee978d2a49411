/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale-offset (filter 6): of every number, its distance from the least number is stored, in as
 * many bits as the chunk needs.
 *
 *   +0   u32 LE  bits of a number
 *   +4   u8      number of bytes of the least value that are valid
 *   +5   u64 LE  least value: an integer, or the bits of a float
 *   +13          8 unused bytes
 *   +21          numbers, the most significant bit first
 *
 * If all bits of a number are stored, the numbers follow as they are, little-endian. If no bits are
 * stored, all numbers are the least value. The stored number with all bits set is the fill value,
 * if the dataset has one. A float is the stored integer, divided by 10 to the power of the scale
 * factor, plus the least value (D-scaling; libhdf5 does not implement E-scaling).
 *
 * The filter parameters are: 0 method, 1 scale factor, 2 number of elements, 3 class, 4 size, 5
 * whether the type is signed, 6 byte order, 7 whether there is a fill value, 8 and 9 fill value;
 * those up to 19 are unused here. If the scale factor of an integer type is the number of its bits,
 * the filter does not change the chunk.
 *
 * The arithmetic is that of libhdf5, in the type of the dataset, so that the results have the same
 * bits.
 */
#include "undo.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <base/cursor.h>

#include "bits.h"

enum { PARAMS = 20, HEADER = 21, UNUSED = 8, LEAST_MAX = 8 };
enum { METHOD_FLOAT_D = 0, METHOD_FLOAT_E = 1, METHOD_INTEGER = 2 };
enum { CLASS_INTEGER = 0, CLASS_FLOAT = 1 };

struct packing {
	uint32_t size; /* bytes of a number: 1, 2, 4 or 8 */
	bool is_float, big_endian, has_fill;
	uint32_t bits;	  /* of a stored number */
	uint64_t least;	  /* in its low bytes */
	uint64_t fill;	  /* in its low bytes */
	uint64_t is_fill; /* the stored number that stands for the fill value */
	int32_t scale;
	uint64_t elems;
};

/* Returns false if the parameters are not those of libhdf5. */
static bool read_params(const struct undo *u, struct packing *k)
{
	const uint32_t *p = u->f->params;
	if (u->f->nparams != PARAMS)
		return false;
	*k = (struct packing){
		.scale = (int32_t)p[1],
		.elems = p[2],
		.is_float = p[3] == CLASS_FLOAT,
		.size = p[4],
		.big_endian = p[6] == 1,
		.has_fill = p[7] == 1,
		.fill = p[8] | (uint64_t)p[9] << 32,
	};
	if (k->is_float)
		return p[0] == METHOD_FLOAT_D && (k->size == 4 || k->size == 8);
	return p[3] == CLASS_INTEGER && p[0] == METHOD_INTEGER &&
	       (k->size == 1 || k->size == 2 || k->size == 4 || k->size == 8) &&
	       k->scale <= (int32_t)(8 * k->size);
}

static bool read_header(const uint8_t *in, size_t n, struct packing *k)
{
	struct cursor c = cursor_of(in, n);
	k->bits = cur_u32(&c);
	const uint8_t valid = cur_u8(&c);
	struct cursor least = cur_sub(&c, LEAST_MAX);
	k->least = cur_uint(&least, valid < LEAST_MAX ? valid : LEAST_MAX);
	cur_skip(&c, UNUSED);
	if (!cur_ok(&c) || k->bits > 8 * k->size)
		return false;
	k->is_fill = k->bits < 64 ? (UINT64_C(1) << k->bits) - 1 : UINT64_MAX;
	return true;
}

static inline void put(uint8_t *to, uint64_t v, uint32_t size, bool big_endian)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		big_endian = !big_endian;
	switch (size) {
	case 1:
		*to = (uint8_t)v;
		break;
	case 2: {
		const uint16_t half = (uint16_t)v;
		const uint16_t x = big_endian ? __builtin_bswap16(half) : half;
		memcpy(to, &x, sizeof(x));
		break;
	}
	case 4: {
		const uint32_t word = (uint32_t)v;
		const uint32_t x = big_endian ? __builtin_bswap32(word) : word;
		memcpy(to, &x, sizeof(x));
		break;
	}
	default: {
		const uint64_t x = big_endian ? __builtin_bswap64(v) : v;
		memcpy(to, &x, sizeof(x));
	}
	}
}

static inline uint64_t take(struct bits *b, const struct packing *k)
{
	return k->bits ? bits_take(b, k->bits) : 0;
}

static void unpack_integers(const struct packing *k, struct bits *b, uint8_t *to)
{
	for (uint64_t i = 0; i < k->elems; i++, to += k->size) {
		const uint64_t v = take(b, k);
		put(to, k->has_fill && v == k->is_fill ? k->fill : v + k->least, k->size,
		    k->big_endian);
	}
}

static void unpack_floats(const struct packing *k, struct bits *b, uint8_t *to)
{
	const uint32_t least_bits = (uint32_t)k->least;
	const float unit = powf(10.0f, (float)k->scale);
	float least;
	memcpy(&least, &least_bits, sizeof(least));
	for (uint64_t i = 0; i < k->elems; i++, to += sizeof(float)) {
		const uint64_t v = take(b, k);
		const float f = (float)(int32_t)(uint32_t)v / unit + least;
		uint32_t raw;
		memcpy(&raw, &f, sizeof(raw));
		put(to, k->has_fill && v == k->is_fill ? k->fill : raw, sizeof(raw), k->big_endian);
	}
}

static void unpack_doubles(const struct packing *k, struct bits *b, uint8_t *to)
{
	const double unit = pow(10.0, (double)k->scale);
	double least;
	memcpy(&least, &k->least, sizeof(least));
	for (uint64_t i = 0; i < k->elems; i++, to += sizeof(double)) {
		const uint64_t v = take(b, k);
		const double f = (double)(int64_t)v / unit + least;
		uint64_t raw;
		memcpy(&raw, &f, sizeof(raw));
		put(to, k->has_fill && v == k->is_fill ? k->fill : raw, sizeof(raw), k->big_endian);
	}
}

static void unpack_plain(const struct packing *k, struct bits *b, uint8_t *to)
{
	const uint8_t *from = b->next;
	if (!k->big_endian) {
		memcpy(to, from, k->elems * k->size);
		return;
	}
	for (uint64_t i = 0; i < k->elems; i++, to += k->size, from += k->size)
		for (uint32_t j = 0; j < k->size; j++)
			to[j] = from[k->size - 1 - j];
}

static int too_long(const struct undo *u, uint64_t size, struct err *err)
{
	return err_set(err, -EIO, "scale-offset: %llu bytes, at most %llu are expected",
		       (unsigned long long)size, (unsigned long long)u->limit);
}

int undo_scaleoffset(const struct undo *u, const uint8_t *in, size_t n, struct bytes *out,
		     struct err *err)
{
	struct packing k;
	if (!read_params(u, &k))
		return err_set(err, -EIO, "scale-offset: invalid parameters");
	if (!k.is_float && k.scale == (int32_t)(8 * k.size)) {
		int rc = n > u->limit ? too_long(u, n, err) : bytes_append(out, in, n);
		return rc == -ENOMEM ? err_errno(err, rc, "scale-offset") : rc;
	}
	const uint64_t size = k.elems * k.size; /* elems has 32 bits */
	if (!read_header(in, n, &k))
		return err_set(err, -EIO, "scale-offset: %zu bytes have no valid header", n);
	if (size > u->limit)
		return too_long(u, size, err);
	if (div_up_u64(k.elems * k.bits, 8) > n - HEADER)
		return err_set(err, -EIO,
			       "scale-offset: %zu bytes are too few for %llu numbers of %u bits", n,
			       (unsigned long long)k.elems, k.bits);
	int rc = bytes_reserve(out, size ? (size_t)size : 1);
	if (rc)
		return err_errno(err, rc, "scale-offset");
	struct bits b = {.next = in + HEADER, .left = n - HEADER};
	if (k.bits == 8 * k.size)
		unpack_plain(&k, &b, out->data);
	else if (!k.is_float)
		unpack_integers(&k, &b, out->data);
	else if (k.size == sizeof(float))
		unpack_floats(&k, &b, out->data);
	else
		unpack_doubles(&k, &b, out->data);
	out->len = (size_t)size;
	return 0;
}
