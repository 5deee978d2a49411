/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constructors of datatypes. Each fills in a struct dtype and passes it to dtype_checked(), which
 * alone decides whether it is valid. Any thread may call them; an arena belongs to one thread.
 */
#include "dtype.h"

#include <errno.h>
#include <string.h>

static const struct dtype *integer(struct arena *a, struct dtype *t, const char *what,
				   bool big_endian, struct err *err)
{
	if (t->size > UINT16_MAX / 8) {
		err_set(err, -E2BIG, "%s of %u bytes; the limit is %d", what, t->size,
			UINT16_MAX / 8);
		return NULL;
	}
	t->integer.big_endian = big_endian;
	t->integer.precision = (uint16_t)(8 * t->size);
	return dtype_checked(a, t, err);
}

const struct dtype *dtype_integer(struct arena *a, uint32_t size, bool is_signed, bool big_endian,
				  struct err *err)
{
	struct dtype t = {.cls = DTYPE_INTEGER, .size = size, .integer = {.is_signed = is_signed}};
	return integer(a, &t, "integer", big_endian, err);
}

const struct dtype *dtype_bitfield(struct arena *a, uint32_t size, bool big_endian, struct err *err)
{
	struct dtype t = {.cls = DTYPE_BITFIELD, .size = size};
	return integer(a, &t, "bitfield", big_endian, err);
}

const struct dtype *dtype_ieee(struct arena *a, uint32_t size, bool big_endian, struct err *err)
{
	/* IEEE 754-2008, table 3.5: the width of the exponent determines the other parts. */
	uint8_t exp_size = size == 2 ? 5 : size == 4 ? 8 : 11;
	struct dtype t = {.cls = DTYPE_FLOAT, .size = size};
	if (size != 2 && size != 4 && size != 8) {
		err_set(err, -EINVAL, "IEEE float of %u bytes instead of 2, 4 or 8", size);
		return NULL;
	}
	t.floating.big_endian = big_endian;
	t.floating.precision = (uint16_t)(8 * size);
	t.floating.sign_loc = (uint8_t)(8 * size - 1);
	t.floating.exp_size = exp_size;
	t.floating.exp_loc = (uint8_t)(t.floating.sign_loc - exp_size);
	t.floating.mant_size = t.floating.exp_loc;
	t.floating.exp_bias = (1u << (exp_size - 1)) - 1;
	t.floating.norm = DTYPE_NORM_IMPLIED;
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_string(struct arena *a, uint32_t size, enum dtype_pad pad,
				 enum dtype_cset cset, struct err *err)
{
	struct dtype t = {.cls = DTYPE_STRING, .size = size};
	t.string.pad = pad;
	t.string.cset = cset;
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_opaque(struct arena *a, uint32_t size, const char *tag, struct err *err)
{
	struct dtype t = {.cls = DTYPE_OPAQUE, .size = size};
	t.opaque.tag = tag ? tag : "";
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_reference(struct arena *a, enum dtype_ref kind, struct err *err)
{
	struct dtype t = {.cls = DTYPE_REFERENCE};
	t.size = kind == DTYPE_REF_REGION ? DTYPE_REGREF_SIZE : DTYPE_OBJREF_SIZE;
	t.reference.kind = kind;
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_vlen_string(struct arena *a, enum dtype_pad pad, enum dtype_cset cset,
				      struct err *err)
{
	struct dtype t = {.cls = DTYPE_VLEN, .size = DTYPE_VLEN_SIZE};
	t.vlen.base = dtype_string(a, 1, pad, cset, err);
	if (!t.vlen.base)
		return NULL;
	t.vlen.is_string = true;
	t.vlen.pad = pad;
	t.vlen.cset = cset;
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_vlen(struct arena *a, const struct dtype *base, struct err *err)
{
	struct dtype t = {.cls = DTYPE_VLEN, .size = DTYPE_VLEN_SIZE};
	t.vlen.base = base;
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_array(struct arena *a, const struct dtype *base, uint32_t rank,
				const uint32_t *dims, struct err *err)
{
	struct dtype t = {.cls = DTYPE_ARRAY};
	if (dtype_array_extent(base, rank, dims, &t.array.nelems, &t.size, err) < 0)
		return NULL;
	t.array.base = base;
	t.array.rank = rank;
	memcpy(t.array.dims, dims, rank * sizeof(*dims));
	return dtype_checked(a, &t, err);
}

const struct dtype *dtype_enum(struct arena *a, const struct dtype *base, uint32_t n,
			       const char *const *names, const uint8_t *values, struct err *err)
{
	struct dtype t = {.cls = DTYPE_ENUM, .size = base ? base->size : 0};
	t.enumeration.base = base;
	t.enumeration.n = n;
	t.enumeration.names = names;
	t.enumeration.values = values;
	return dtype_checked(a, &t, err);
}

/* Makes a new array of the members with packed offsets. */
static int pack(uint32_t n, const struct dtype_member *members, struct dtype_member **out,
		uint32_t *size, struct err *err)
{
	struct dtype_member *packed;
	uint64_t end = 0; /* n and each size have at most 32 bits */
	if (n > DTYPE_MAX_MEMBERS)
		return err_set(err, -E2BIG, "compound of %u members; the limit is %d", n,
			       DTYPE_MAX_MEMBERS);
	packed = calloc(n ? n : 1, sizeof(*packed));
	if (!packed)
		return err_set(err, -ENOMEM, "out of memory: compound of %u members", n);
	for (uint32_t i = 0; i < n; i++) {
		packed[i] = members[i];
		packed[i].offset = (uint32_t)end;
		end += members[i].type ? members[i].type->size : 0;
		if (end > DTYPE_MAX_SIZE) {
			free(packed);
			return err_set(err, -E2BIG, "compound of more than %d bytes",
				       DTYPE_MAX_SIZE);
		}
	}
	*out = packed;
	*size = (uint32_t)end;
	return 0;
}

const struct dtype *dtype_compound(struct arena *a, uint32_t n, const struct dtype_member *members,
				   uint32_t size, struct err *err)
{
	struct dtype t = {.cls = DTYPE_COMPOUND, .size = size};
	auto_free struct dtype_member *packed = NULL;
	t.compound.n = n;
	t.compound.members = members;
	if (size == 0) {
		if (pack(n, members, &packed, &t.size, err) < 0)
			return NULL;
		t.compound.members = packed;
	}
	return dtype_checked(a, &t, err);
}
