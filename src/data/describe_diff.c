/* SPDX-License-Identifier: Apache-2.0 */
/* The first difference of two datatypes as text. Recursion is at most DTYPE_MAX_DEPTH deep. Any
 * thread. */
#include <data/describe.h>

#include <string.h>

static void instead(struct str *out, const char *what, uint64_t a, uint64_t b)
{
	str_addf(out, "%s %llu instead of %llu", what, (unsigned long long)b,
		 (unsigned long long)a);
}

/* Returns whether two numbers differ, and describes them if they do. */
static bool differs(struct str *out, const char *what, uint64_t a, uint64_t b)
{
	if (a != b)
		instead(out, what, a, b);
	return a != b;
}

static void whole(struct str *out, const struct dtype *a, const struct dtype *b)
{
	describe_type(out, b);
	str_add(out, " instead of ");
	describe_type(out, a);
}

static void float_diff(struct str *out, const struct dtype *a, const struct dtype *b)
{
	const struct {
		const char *what;
		uint64_t a, b;
	} parts[] = {
		{"precision", a->floating.precision, b->floating.precision},
		{"bit offset", a->floating.bit_offset, b->floating.bit_offset},
		{"sign at bit", a->floating.sign_loc, b->floating.sign_loc},
		{"exponent at bit", a->floating.exp_loc, b->floating.exp_loc},
		{"bits of the exponent", a->floating.exp_size, b->floating.exp_size},
		{"mantissa at bit", a->floating.mant_loc, b->floating.mant_loc},
		{"bits of the mantissa", a->floating.mant_size, b->floating.mant_size},
		{"exponent bias", a->floating.exp_bias, b->floating.exp_bias},
		{"mantissa normalisation", a->floating.norm, b->floating.norm},
		{"low padding", a->floating.lo_pad, b->floating.lo_pad},
		{"high padding", a->floating.hi_pad, b->floating.hi_pad},
		{"internal padding", a->floating.internal_pad, b->floating.internal_pad},
	};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (differs(out, parts[i].what, parts[i].a, parts[i].b))
			return;
	whole(out, a, b); /* the byte order */
}

static void text_diff(struct str *out, enum dtype_pad pad_a, enum dtype_pad pad_b,
		      enum dtype_cset cset_a, enum dtype_cset cset_b)
{
	static const char *const pads[] = {"NUL-terminated", "NUL-padded", "space-padded"};
	static const char *const csets[] = {"ASCII", "UTF-8"};
	if (pad_a != pad_b)
		str_addf(out, "%s instead of %s", pads[pad_b], pads[pad_a]);
	else
		str_addf(out, "%s instead of %s", csets[cset_b], csets[cset_a]);
}

static void compound_diff(struct str *out, const struct dtype *a, const struct dtype *b)
{
	if (differs(out, "number of members", a->compound.n, b->compound.n))
		return;
	for (uint32_t i = 0; i < a->compound.n; i++) {
		const struct dtype_member *ma = &a->compound.members[i];
		const struct dtype_member *mb = &b->compound.members[i];
		const bool named = strcmp(ma->name, mb->name) == 0;
		if (named && ma->offset == mb->offset && dtype_equal(ma->type, mb->type))
			continue;
		str_addf(out, "member \"%s\"", mb->name);
		if (!named)
			str_addf(out, " instead of \"%s\"", ma->name);
		else
			str_add(out, ": ");
		if (named && !differs(out, "offset", ma->offset, mb->offset))
			describe_type_diff(out, ma->type, mb->type);
		return;
	}
	whole(out, a, b);
}

static void enum_diff(struct str *out, const struct dtype *a, const struct dtype *b)
{
	if (!dtype_equal(a->enumeration.base, b->enumeration.base)) {
		describe_type_diff(out, a->enumeration.base, b->enumeration.base);
		return;
	}
	if (differs(out, "number of symbols", a->enumeration.n, b->enumeration.n))
		return;
	for (uint32_t i = 0; i < a->enumeration.n; i++) {
		const char *na = a->enumeration.names[i], *nb = b->enumeration.names[i];
		const size_t at = (size_t)i * a->size;
		if (strcmp(na, nb) != 0) {
			str_addf(out, "symbol \"%s\" instead of \"%s\"", nb, na);
			return;
		}
		if (memcmp(a->enumeration.values + at, b->enumeration.values + at, a->size) != 0) {
			str_addf(out, "the number of symbol \"%s\"", na);
			return;
		}
	}
}

void describe_type_diff(struct str *out, const struct dtype *a, const struct dtype *b)
{
	if (a->cls != b->cls ||
	    (a->size != b->size && a->cls != DTYPE_COMPOUND && a->cls != DTYPE_ARRAY)) {
		whole(out, a, b);
		return;
	}
	switch (a->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		if (!differs(out, "precision", a->integer.precision, b->integer.precision) &&
		    !differs(out, "bit offset", a->integer.bit_offset, b->integer.bit_offset))
			whole(out, a, b); /* signed, or the byte order */
		return;
	case DTYPE_FLOAT:
		float_diff(out, a, b);
		return;
	case DTYPE_STRING:
		text_diff(out, a->string.pad, b->string.pad, a->string.cset, b->string.cset);
		return;
	case DTYPE_OPAQUE:
		str_addf(out, "tag \"%s\" instead of \"%s\"", b->opaque.tag, a->opaque.tag);
		return;
	case DTYPE_COMPOUND:
		compound_diff(out, a, b);
		if (a->size != b->size)
			str_addf(out, " (%u bytes instead of %u)", b->size, a->size);
		return;
	case DTYPE_REFERENCE:
		whole(out, a, b);
		return;
	case DTYPE_ENUM:
		enum_diff(out, a, b);
		return;
	case DTYPE_VLEN:
		if (a->vlen.is_string != b->vlen.is_string)
			whole(out, a, b);
		else if (a->vlen.is_string)
			text_diff(out, a->vlen.pad, b->vlen.pad, a->vlen.cset, b->vlen.cset);
		else
			describe_type_diff(out, a->vlen.base, b->vlen.base);
		return;
	case DTYPE_ARRAY:
		if (a->array.rank != b->array.rank ||
		    memcmp(a->array.dims, b->array.dims, a->array.rank * sizeof(*a->array.dims)))
			whole(out, a, b);
		else
			describe_type_diff(out, a->array.base, b->array.base);
		return;
	}
}
