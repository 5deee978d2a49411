/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datatype message, 0x03 (Spec IV.A.2.d). Pure functions. Recursion is at most DTYPE_MAX_DEPTH
 * deep.
 *
 *   +0 u8   bits 0-3 class, bits 4-7 version
 *   +1 u24  class bit field
 *   +4 u32  size of an element
 *   +8      properties:
 *     integer, bitfield  u16 bit offset, u16 precision
 *     time               u16 precision
 *     float              u16 bit offset, u16 precision, u8 exponent location, u8 exponent size,
 *                        u8 mantissa location, u8 mantissa size, u32 exponent bias
 *     opaque             tag; its length is in the bit field
 *     compound           for each member: name, byte offset, [version 1: u8 rank, 3 reserved,
 *                        u32 permutation, u32 reserved, 4 u32 dims], member's datatype
 *     enum               base datatype, all names, all values
 *     vlen               base datatype
 *     array              u8 rank, [version 2: 3 reserved], u32 dims[rank],
 *                        [version 2: u32 permutation[rank]], base datatype
 *     complex            base datatype of the real and the imaginary part
 *
 * Names end with a NUL. In versions 1 and 2 they are padded to a multiple of 8. Byte offsets have 4
 * bytes; in version 3 they have as few as the size of the compound needs. Versions of nested types
 * may differ.
 */
#include <stdlib.h>
#include <string.h>

#include <h5/message.h>

#include "msg.h"
#include "msg_dtype.h"

enum {
	NAME_ALIGN = 8,
	TAG_MAX = 255,
	V1_MEMBER_DIMS = 4,
	V1_MEMBER_EXTRA = 28, /* bytes of a version 1 member from its rank to its dims */
	MEMBER_MIN = 11,      /* bytes of the smallest member (name, offset, head of its type) */
	ENUM_NAME_MIN = 2,
	/* Versions 1 and 2 take less than 8 times the bytes of version 3: a member 52 for 11. */
	SURELY_SHORT = DTYPE_MAX_DESCRIBED / 8,
	/* Version 4 added revised references, and version 5 complex numbers. All else is as in
	 * version 3. */
	FIRST_COMPLEX = 5,
	LAST_VERSION = 5,
	CLASS_COMPLEX = 11,
};

/* Class bit field. */
enum {
	BIT_BIG_ENDIAN = 1 << 0,
	BITS_PADDING = 3 << 1, /* integer, bitfield */
	BIT_SIGNED = 1 << 3,
	BIT_FLOAT_LO_PAD = 1 << 1,
	BIT_FLOAT_HI_PAD = 1 << 2,
	BIT_FLOAT_INTERNAL_PAD = 1 << 3,
	FLOAT_NORM_SHIFT = 4,
	BIT_FLOAT_VAX = 1 << 6,
	FLOAT_SIGN_SHIFT = 8,
	STRING_CSET_SHIFT = 4,
	VLEN_PAD_SHIFT = 4,
	VLEN_CSET_SHIFT = 8,
	HALF_BYTE = 0xf,
	VLEN_SEQUENCE = 0,
	VLEN_STRING = 1,
	FIRST_REVISED = 2, /* kinds of references, since version 4 */
	LAST_REVISED = 4,
	COMPLEX_HOMOGENEOUS = 1 << 0,
	COMPLEX_FORM = 3 << 1, /* 0: rectangular */
};

/*
 * Encoding. The versions are those that libhdf5 writes. An atomic type has version 1 and an array
 * version 2. libhdf5 builds a compound member by member: when it adds a member with a higher
 * version, it raises the compound and its earlier members to that version, but not its later
 * members. `floor` is the version to which an outer compound has raised this type. A type that
 * would be too large for a message has version 3 throughout, which is the shortest.
 */

static unsigned int version_of(const struct dtype *t, unsigned int floor)
{
	switch (t->cls) {
	case DTYPE_ARRAY:
		return floor > 2 ? floor : 2;
	case DTYPE_COMPOUND:
		return t->has_array && floor < 2 ? 2 : floor;
	case DTYPE_ENUM:
		return floor;
	case DTYPE_VLEN:
		return version_of(t->vlen.base, floor);
	default:
		return 1;
	}
}

static void emit_head(struct emit *e, unsigned int version, const struct dtype *t, uint32_t bits)
{
	emit_u8(e, (uint8_t)(version << 4 | t->cls));
	emit_u24(e, bits);
	emit_u32(e, t->size);
}

static void emit_name(struct emit *e, const char *name, unsigned int version)
{
	size_t from = e->pos;
	emit_bytes(e, name, strlen(name) + 1);
	if (version < 3)
		emit_align(e, from, NAME_ALIGN);
}

/* Returns the bytes of the offset of a member in a compound of `size` bytes. */
static unsigned int offset_width(unsigned int version, uint32_t size)
{
	if (version < 3)
		return 4;
	return size > 0xffffff ? 4 : size > 0xffff ? 3 : size > 0xff ? 2 : 1;
}

static void encode_integer(struct emit *e, const struct dtype *t)
{
	emit_head(e, 1, t,
		  (t->integer.big_endian ? BIT_BIG_ENDIAN : 0) |
			  (t->integer.is_signed && t->cls == DTYPE_INTEGER ? BIT_SIGNED : 0));
	if (t->cls != DTYPE_TIME)
		emit_u16(e, t->integer.bit_offset);
	emit_u16(e, t->integer.precision);
}

static void encode_float(struct emit *e, const struct dtype *t)
{
	emit_head(e, 1, t,
		  (t->floating.big_endian ? BIT_BIG_ENDIAN : 0) |
			  (t->floating.lo_pad ? BIT_FLOAT_LO_PAD : 0) |
			  (t->floating.hi_pad ? BIT_FLOAT_HI_PAD : 0) |
			  (t->floating.internal_pad ? BIT_FLOAT_INTERNAL_PAD : 0) |
			  (uint32_t)t->floating.norm << FLOAT_NORM_SHIFT |
			  (uint32_t)t->floating.sign_loc << FLOAT_SIGN_SHIFT);
	emit_u16(e, t->floating.bit_offset);
	emit_u16(e, t->floating.precision);
	emit_u8(e, t->floating.exp_loc);
	emit_u8(e, t->floating.exp_size);
	emit_u8(e, t->floating.mant_loc);
	emit_u8(e, t->floating.mant_size);
	emit_u32(e, t->floating.exp_bias);
}

/* A tag is padded to a multiple of 8, except if that is 256, which its length field cannot hold.
 * libhdf5 reads a tag of any length. */
static void encode_opaque(struct emit *e, const struct dtype *t)
{
	size_t len = strlen(t->opaque.tag);
	size_t padded = (size_t)align_u64(len, NAME_ALIGN);
	if (padded > TAG_MAX)
		padded = len;
	emit_head(e, 1, t, (uint32_t)padded);
	emit_bytes(e, t->opaque.tag, len);
	emit_zero(e, padded - len);
}

static void encode_any(struct emit *e, const struct dtype *t, unsigned int floor);

static void encode_compound(struct emit *e, const struct dtype *t, unsigned int floor)
{
	unsigned int version = version_of(t, floor);
	unsigned int raised = version; /* floor of the members so far */
	emit_head(e, version, t, t->compound.n);
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		emit_name(e, m->name, version);
		emit_uint(e, m->offset, offset_width(version, t->size));
		if (version == 1)
			emit_zero(e, V1_MEMBER_EXTRA);
		encode_any(e, m->type, raised);
		if (m->type->has_array)
			raised = floor;
	}
}

static void encode_vlen(struct emit *e, const struct dtype *t, unsigned int floor)
{
	if (!t->vlen.is_string) {
		emit_head(e, version_of(t, floor), t, VLEN_SEQUENCE);
		encode_any(e, t->vlen.base, floor);
		return;
	}
	/* libhdf5 writes an unsigned byte as the base type of a variable-length string. */
	const struct dtype byte = {.cls = DTYPE_INTEGER, .size = 1, .integer = {.precision = 8}};
	emit_head(e, 1, t,
		  VLEN_STRING | (uint32_t)t->vlen.pad << VLEN_PAD_SHIFT |
			  (uint32_t)t->vlen.cset << VLEN_CSET_SHIFT);
	encode_integer(e, &byte);
}

static void encode_array(struct emit *e, const struct dtype *t, unsigned int floor)
{
	unsigned int version = version_of(t, floor);
	emit_head(e, version, t, 0);
	emit_u8(e, (uint8_t)t->array.rank);
	if (version < 3)
		emit_zero(e, 3);
	for (uint32_t i = 0; i < t->array.rank; i++)
		emit_u32(e, t->array.dims[i]);
	for (uint32_t i = 0; i < t->array.rank && version < 3; i++)
		emit_u32(e, i); /* permutation */
	encode_any(e, t->array.base, floor);
}

static void encode_any(struct emit *e, const struct dtype *t, unsigned int floor)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_TIME:
	case DTYPE_BITFIELD:
		encode_integer(e, t);
		break;
	case DTYPE_FLOAT:
		encode_float(e, t);
		break;
	case DTYPE_STRING:
		emit_head(e, 1, t, t->string.pad | (uint32_t)t->string.cset << STRING_CSET_SHIFT);
		break;
	case DTYPE_OPAQUE:
		encode_opaque(e, t);
		break;
	case DTYPE_COMPOUND:
		encode_compound(e, t, floor);
		break;
	case DTYPE_REFERENCE:
		emit_head(e, 1, t, t->reference.kind);
		break;
	case DTYPE_ENUM:
		emit_head(e, version_of(t, floor), t, t->enumeration.n);
		encode_any(e, t->enumeration.base, floor);
		for (uint32_t i = 0; i < t->enumeration.n; i++)
			emit_name(e, t->enumeration.names[i], version_of(t, floor));
		emit_bytes(e, t->enumeration.values,
			   (size_t)t->enumeration.n * t->enumeration.base->size);
		break;
	case DTYPE_VLEN:
		encode_vlen(e, t, floor);
		break;
	case DTYPE_ARRAY:
		encode_array(e, t, floor);
		break;
	}
}

void h5_dtype_encode(struct emit *e, const struct dtype *t)
{
	struct emit count = emit_count();
	if (t->described > SURELY_SHORT)
		encode_any(&count, t, 1);
	encode_any(e, t, count.pos > DTYPE_MAX_DESCRIBED ? 3 : 1);
}

/* Decoding. */

struct head {
	uint8_t version;
	uint8_t cls;
	uint32_t bits;
	uint32_t size;
};

struct reader {
	const struct h5_file *f;
	struct cursor *c;
	struct arena *a;
	unsigned int depth;
	struct err *err; /* never NULL, because it holds the error code of constructors */
};

typedef int decode_fn(struct reader *r, const struct head *h, const struct dtype **out);

static decode_fn decode_any_body;
static int decode_any(struct reader *r, const struct dtype **out);

/* Takes the result of a constructor; t is NULL if it has failed. */
static int built(struct reader *r, const struct dtype *t, const struct dtype **out)
{
	*out = t;
	return t ? 0 : h5_msg_refused(r->err->code, "datatype", r->err);
}

static int damaged(struct reader *r, const char *what)
{
	return err_set(r->err, -EIO, "datatype: %s", what);
}

static int ended(struct reader *r)
{
	return h5_msg_end(r->c, "datatype", r->err);
}

static const char *read_name(struct cursor *c, uint8_t version)
{
	size_t len = 0;
	const char *name = cur_cstr(c, &len);
	if (version < 3)
		cur_skip(c, (size_t)(align_u64(len + 1, NAME_ALIGN) - (len + 1)));
	return name;
}

static int decode_integer(struct reader *r, const struct head *h, const struct dtype **out)
{
	struct dtype t = {.cls = (enum dtype_class)h->cls, .size = h->size};
	t.integer.big_endian = h->bits & BIT_BIG_ENDIAN;
	if (h->cls != DTYPE_TIME) {
		t.integer.is_signed = h->cls == DTYPE_INTEGER && h->bits & BIT_SIGNED;
		t.integer.bit_offset = cur_u16(r->c);
	}
	t.integer.precision = cur_u16(r->c);
	int rc = ended(r);
	/* Without unused bits, the kind of padding has no meaning. */
	if (!rc && h->cls != DTYPE_TIME && h->bits & BITS_PADDING &&
	    t.integer.precision < h->size * UINT64_C(8))
		return err_set(r->err, -EOPNOTSUPP,
			       "datatype: padding of unused bits with ones is not supported");
	return rc ? rc : built(r, dtype_checked(r->a, &t, r->err), out);
}

static int decode_float(struct reader *r, const struct head *h, const struct dtype **out)
{
	struct dtype t = {.cls = DTYPE_FLOAT, .size = h->size};
	uint32_t norm = h->bits >> FLOAT_NORM_SHIFT & 3;
	if (h->bits & BIT_FLOAT_VAX)
		return err_set(r->err, -EOPNOTSUPP, "datatype: VAX byte order is not supported");
	if (norm > DTYPE_NORM_IMPLIED)
		return damaged(r, "invalid mantissa normalization");
	t.floating.big_endian = h->bits & BIT_BIG_ENDIAN;
	t.floating.lo_pad = (h->bits & BIT_FLOAT_LO_PAD) != 0;
	t.floating.hi_pad = (h->bits & BIT_FLOAT_HI_PAD) != 0;
	t.floating.internal_pad = (h->bits & BIT_FLOAT_INTERNAL_PAD) != 0;
	t.floating.norm = (enum dtype_norm)norm;
	t.floating.sign_loc = (uint8_t)(h->bits >> FLOAT_SIGN_SHIFT);
	t.floating.bit_offset = cur_u16(r->c);
	t.floating.precision = cur_u16(r->c);
	t.floating.exp_loc = cur_u8(r->c);
	t.floating.exp_size = cur_u8(r->c);
	t.floating.mant_loc = cur_u8(r->c);
	t.floating.mant_size = cur_u8(r->c);
	t.floating.exp_bias = cur_u32(r->c);
	int rc = ended(r);
	return rc ? rc : built(r, dtype_checked(r->a, &t, r->err), out);
}

static int decode_string(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t pad = h->bits & HALF_BYTE, cset = h->bits >> STRING_CSET_SHIFT & HALF_BYTE;
	if (pad > DTYPE_PAD_SPACEPAD || cset > DTYPE_CSET_UTF8)
		return damaged(r, "invalid padding or character set of a string");
	return built(
		r, dtype_string(r->a, h->size, (enum dtype_pad)pad, (enum dtype_cset)cset, r->err),
		out);
}

static int decode_opaque(struct reader *r, const struct head *h, const struct dtype **out)
{
	char tag[TAG_MAX + 1] = "";
	size_t len = h->bits & TAG_MAX;
	const uint8_t *stored = cur_bytes(r->c, len);
	if (!stored)
		return ended(r);
	memcpy(tag, stored, len);
	return built(r, dtype_opaque(r->a, h->size, tag, r->err), out);
}

static int decode_reference(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t kind = h->bits & HALF_BYTE;
	if (kind >= FIRST_REVISED && kind <= LAST_REVISED) {
		const struct dtype t = {
			.cls = DTYPE_REFERENCE,
			.size = DTYPE_OBJREF_SIZE,
			.reference = {.kind = DTYPE_REF_OBJECT, .revised_size = h->size}};
		return built(r, dtype_checked(r->a, &t, r->err), out);
	}
	if (kind > DTYPE_REF_REGION)
		return err_set(r->err, -EOPNOTSUPP, "datatype: unsupported reference type %" PRIu32,
			       kind);
	return built(r, dtype_reference(r->a, (enum dtype_ref)kind, r->err), out);
}

/* Decodes the type of a member of version 1, which may have dimensions of its own. */
static int decode_member_dims(struct reader *r, const struct dtype **type)
{
	uint32_t dims[V1_MEMBER_DIMS];
	struct cursor c = cur_sub(r->c, V1_MEMBER_EXTRA);
	uint8_t rank = cur_u8(&c);
	cur_skip(&c, 3 + 4 + 4);
	for (unsigned int i = 0; i < V1_MEMBER_DIMS; i++)
		dims[i] = cur_u32(&c);
	if (!cur_ok(&c))
		return ended(r);
	if (rank > V1_MEMBER_DIMS)
		return damaged(r, "a member has more than 4 dimensions");
	int rc = decode_any(r, type);
	if (rc || !rank)
		return rc;
	return built(r, dtype_array(r->a, *type, rank, dims, r->err), type);
}

static int decode_member(struct reader *r, const struct head *h, struct dtype_member *m)
{
	m->name = read_name(r->c, h->version);
	m->offset = (uint32_t)cur_uint(r->c, offset_width(h->version, h->size));
	if (!cur_ok(r->c))
		return ended(r);
	return h->version == 1 ? decode_member_dims(r, &m->type) : decode_any(r, &m->type);
}

static int decode_compound(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t n = h->bits & 0xffff;
	if (!n || !h->size)
		return damaged(r, "a compound has no members or no size");
	if (n > cur_left(r->c) / MEMBER_MIN)
		return damaged(r, "a compound has more members than the message has room for");
	auto_free struct dtype_member *members = calloc(n, sizeof(*members));
	if (!members)
		return err_set(r->err, -ENOMEM, "datatype: out of memory");
	for (uint32_t i = 0; i < n; i++) {
		int rc = decode_member(r, h, &members[i]);
		if (rc)
			return rc;
	}
	uint32_t size = h->size;
	int rc = h5_dtype_widen_members(r->f, n, members, &size);
	if (rc)
		return err_set(r->err, rc, "datatype: a compound is too large");
	return built(r, dtype_compound(r->a, n, members, size, r->err), out);
}

/* A complex number becomes a compound, as h5py and netCDF write it. */
static int decode_complex(struct reader *r, const struct head *h, const struct dtype **out)
{
	struct dtype_member parts[] = {{.name = "r"}, {.name = "i"}};
	const struct dtype *base;
	int rc = decode_any(r, &base);
	if (rc)
		return rc;
	if (base->cls != DTYPE_FLOAT || base->size > DTYPE_MAX_SIZE / 2 ||
	    !(h->bits & COMPLEX_HOMOGENEOUS) || h->bits & COMPLEX_FORM)
		return err_set(r->err, -EOPNOTSUPP,
			       "datatype: complex numbers (H5T_COMPLEX) whose parts are no floats");
	parts[0].type = parts[1].type = base;
	parts[1].offset = base->size;
	const struct dtype t = {.cls = DTYPE_COMPOUND,
				.size = 2 * base->size,
				.compound = {.n = 2, .members = parts, .was_complex = true}};
	return built(r, dtype_checked(r->a, &t, r->err), out);
}

static int decode_enum(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t n = h->bits & 0xffff;
	const struct dtype *base;
	int rc = decode_any(r, &base);
	if (rc)
		return rc;
	if (!n || n > cur_left(r->c) / ENUM_NAME_MIN)
		return damaged(
			r, "an enumeration has no members, or more than the message has room for");
	auto_free const char **names = calloc(n, sizeof(*names));
	if (!names)
		return err_set(r->err, -ENOMEM, "datatype: out of memory");
	for (uint32_t i = 0; i < n; i++)
		names[i] = read_name(r->c, h->version);
	const uint8_t *values = cur_bytes(r->c, (size_t)n * base->size);
	if (!values)
		return ended(r);
	return built(r, dtype_enum(r->a, base, n, names, values, r->err), out);
}

static int decode_vlen(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t kind = h->bits & HALF_BYTE;
	uint32_t pad = h->bits >> VLEN_PAD_SHIFT & HALF_BYTE;
	uint32_t cset = h->bits >> VLEN_CSET_SHIFT & HALF_BYTE;
	const struct dtype *base;
	int rc = decode_any(r, &base);
	if (rc)
		return rc;
	if (kind == VLEN_SEQUENCE)
		return built(r, dtype_vlen(r->a, base, r->err), out);
	if (kind != VLEN_STRING || pad > DTYPE_PAD_SPACEPAD || cset > DTYPE_CSET_UTF8)
		return damaged(r,
			       "invalid kind, padding or character set of a variable-length type");
	if (base->size != 1 || base->depth != 1)
		return damaged(r, "the base type of a variable-length string is not a byte");
	return built(r, dtype_vlen_string(r->a, (enum dtype_pad)pad, (enum dtype_cset)cset, r->err),
		     out);
}

static int decode_array(struct reader *r, const struct head *h, const struct dtype **out)
{
	uint32_t dims[DTYPE_MAX_RANK];
	uint8_t rank = cur_u8(r->c);
	if (rank > DTYPE_MAX_RANK)
		return damaged(r, "an array has more than 32 dimensions");
	if (h->version < 3) /* old programs wrote arrays in version 1, with the fields of 2 */
		cur_skip(r->c, 3);
	for (uint8_t i = 0; i < rank; i++)
		dims[i] = cur_u32(r->c);
	if (h->version < 3)
		cur_skip(r->c, 4U * rank);
	if (!cur_ok(r->c))
		return ended(r);
	const struct dtype *base;
	int rc = decode_any(r, &base);
	return rc ? rc : built(r, dtype_array(r->a, base, rank, dims, r->err), out);
}

static int decode_any_body(struct reader *r, const struct head *h, const struct dtype **out)
{
	static decode_fn *const decoders[] = {
		[DTYPE_INTEGER] = decode_integer,   [DTYPE_FLOAT] = decode_float,
		[DTYPE_TIME] = decode_integer,	    [DTYPE_STRING] = decode_string,
		[DTYPE_BITFIELD] = decode_integer,  [DTYPE_OPAQUE] = decode_opaque,
		[DTYPE_COMPOUND] = decode_compound, [DTYPE_REFERENCE] = decode_reference,
		[DTYPE_ENUM] = decode_enum,	    [DTYPE_VLEN] = decode_vlen,
		[DTYPE_ARRAY] = decode_array,	    [CLASS_COMPLEX] = decode_complex,
	};
	if (h->version < 1 || h->version > LAST_VERSION)
		return h5_msg_version(h->version, "datatype", r->err);
	if (h->cls >= sizeof(decoders) / sizeof(decoders[0]) ||
	    (h->cls == CLASS_COMPLEX && h->version < FIRST_COMPLEX))
		return err_set(r->err, -EOPNOTSUPP, "datatype: unsupported class %u", h->cls);
	int rc = decoders[h->cls](r, h, out);
	if (!rc && h5_dtype_file_size(r->f, *out) != h->size)
		rc = err_set(r->err, -EIO,
			     "datatype: class %u has %" PRIu32
			     " bytes, but its parts take %" PRIu32,
			     h->cls, h->size, h5_dtype_file_size(r->f, *out));
	return rc;
}

static int decode_any(struct reader *r, const struct dtype **out)
{
	uint8_t first = cur_u8(r->c);
	struct head h = {.version = first >> 4, .cls = first & HALF_BYTE};
	h.bits = cur_u24(r->c);
	h.size = cur_u32(r->c);
	int rc = ended(r);
	if (rc)
		return rc;
	if (r->depth == DTYPE_MAX_DEPTH)
		return err_set(r->err, -EOPNOTSUPP, "datatype: nested more than %d deep",
			       DTYPE_MAX_DEPTH);
	r->depth++;
	rc = decode_any_body(r, &h, out);
	r->depth--;
	return rc;
}

int h5_dtype_decode(const struct h5_file *f, struct cursor *c, struct arena *a,
		    const struct dtype **t, struct err *err)
{
	struct err own = ERR_INIT;
	struct reader r = {.f = f, .c = c, .a = a, .err = err ? err : &own};
	int rc = decode_any(&r, t);
	if (rc)
		*t = NULL;
	return rc;
}
