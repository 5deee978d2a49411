/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of datatypes: two types are equal if they describe the same elements. Recursion is at
 * most DTYPE_MAX_DEPTH deep and visits at most DTYPE_MAX_NODES types. The function is pure; any
 * thread may call it. */
#include <data/dtype.h>

#include <string.h>

static bool equal_float(const struct dtype *a, const struct dtype *b)
{
	return a->floating.big_endian == b->floating.big_endian &&
	       a->floating.bit_offset == b->floating.bit_offset &&
	       a->floating.precision == b->floating.precision &&
	       a->floating.sign_loc == b->floating.sign_loc &&
	       a->floating.exp_loc == b->floating.exp_loc &&
	       a->floating.exp_size == b->floating.exp_size &&
	       a->floating.mant_loc == b->floating.mant_loc &&
	       a->floating.mant_size == b->floating.mant_size &&
	       a->floating.exp_bias == b->floating.exp_bias &&
	       a->floating.norm == b->floating.norm && a->floating.lo_pad == b->floating.lo_pad &&
	       a->floating.hi_pad == b->floating.hi_pad &&
	       a->floating.internal_pad == b->floating.internal_pad;
}

static bool equal_compound(const struct dtype *a, const struct dtype *b)
{
	if (a->compound.n != b->compound.n)
		return false;
	for (uint32_t i = 0; i < a->compound.n; i++) {
		const struct dtype_member *ma = &a->compound.members[i];
		const struct dtype_member *mb = &b->compound.members[i];
		if (ma->offset != mb->offset || strcmp(ma->name, mb->name) != 0 ||
		    !dtype_equal(ma->type, mb->type))
			return false;
	}
	return true;
}

bool dtype_equal(const struct dtype *a, const struct dtype *b)
{
	if (a == b)
		return true;
	if (a->cls != b->cls || a->size != b->size)
		return false;
	switch (a->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		return a->integer.big_endian == b->integer.big_endian &&
		       a->integer.is_signed == b->integer.is_signed &&
		       a->integer.bit_offset == b->integer.bit_offset &&
		       a->integer.precision == b->integer.precision;
	case DTYPE_FLOAT:
		return equal_float(a, b);
	case DTYPE_STRING:
		return a->string.pad == b->string.pad && a->string.cset == b->string.cset;
	case DTYPE_OPAQUE:
		return strcmp(a->opaque.tag, b->opaque.tag) == 0;
	case DTYPE_COMPOUND:
		return equal_compound(a, b);
	case DTYPE_REFERENCE:
		return a->reference.kind == b->reference.kind;
	case DTYPE_ENUM:
		if (a->enumeration.n != b->enumeration.n ||
		    !dtype_equal(a->enumeration.base, b->enumeration.base))
			return false;
		for (uint32_t i = 0; i < a->enumeration.n; i++)
			if (strcmp(a->enumeration.names[i], b->enumeration.names[i]) != 0)
				return false;
		return memcmp(a->enumeration.values, b->enumeration.values,
			      (size_t)a->enumeration.n * a->size) == 0;
	case DTYPE_VLEN:
		if (a->vlen.is_string != b->vlen.is_string)
			return false;
		/* The base type of a string has no meaning: some writers use a string, some an
		 * integer. */
		if (a->vlen.is_string)
			return a->vlen.pad == b->vlen.pad && a->vlen.cset == b->vlen.cset;
		return dtype_equal(a->vlen.base, b->vlen.base);
	case DTYPE_ARRAY:
		return a->array.rank == b->array.rank &&
		       memcmp(a->array.dims, b->array.dims,
			      a->array.rank * sizeof(*a->array.dims)) == 0 &&
		       dtype_equal(a->array.base, b->array.base);
	}
	return false;
}
