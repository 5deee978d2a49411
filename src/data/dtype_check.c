/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of datatypes: dtype_checked() checks every field, copies the type into the arena and
 * computes its derived members.
 *
 * Invariants of every struct dtype: 0 < size <= DTYPE_MAX_SIZE; bit fields lie inside size; members
 * lie inside their compound and do not overlap; depth <= DTYPE_MAX_DEPTH; nodes <= DTYPE_MAX_NODES,
 * which bounds a walk over a type whose parts are shared many times; child types are checked types.
 */
#include "dtype.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int check_bits(const struct dtype *t, uint32_t bit_offset, uint32_t precision,
		      struct err *err)
{
	if (precision == 0)
		return err_set(err, -EINVAL, "number of 0 bits");
	if ((uint64_t)bit_offset + precision > (uint64_t)t->size * 8)
		return err_set(err, -EINVAL, "bits %u to %u in a number of %u bytes", bit_offset,
			       bit_offset + precision, t->size);
	return 0;
}

/* Returns whether two bit ranges overlap. */
static bool overlap(uint32_t a, uint32_t a_size, uint32_t b, uint32_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* libhdf5 counts the locations of parts from bit 0 of the element, whatever the bit offset is. */
static int check_float(const struct dtype *t, struct err *err)
{
	uint32_t bits = (uint32_t)t->size * 8;
	uint32_t sign = t->floating.sign_loc;
	uint32_t exp = t->floating.exp_loc, exp_size = t->floating.exp_size;
	uint32_t mant = t->floating.mant_loc, mant_size = t->floating.mant_size;
	if (exp_size == 0 || mant_size == 0)
		return err_set(err, -EINVAL, "float without exponent or mantissa");
	if (sign >= bits || exp + exp_size > bits || mant + mant_size > bits)
		return err_set(err, -EINVAL, "part of a float outside of its %u bits", bits);
	if (overlap(sign, 1, exp, exp_size) || overlap(sign, 1, mant, mant_size) ||
	    overlap(exp, exp_size, mant, mant_size))
		return err_set(err, -EINVAL, "parts of a float overlap");
	if (t->floating.norm > DTYPE_NORM_IMPLIED)
		return err_set(err, -EINVAL, "unknown mantissa normalisation %u", t->floating.norm);
	if (t->floating.lo_pad > 1 || t->floating.hi_pad > 1 || t->floating.internal_pad > 1)
		return err_set(err, -EINVAL, "padding bit of a float is neither 0 nor 1");
	return check_bits(t, t->floating.bit_offset, t->floating.precision, err);
}

static int check_text(enum dtype_pad pad, enum dtype_cset cset, struct err *err)
{
	if (pad > DTYPE_PAD_SPACEPAD)
		return err_set(err, -EINVAL, "unknown string padding %u", pad);
	if (cset > DTYPE_CSET_UTF8)
		return err_set(err, -EINVAL, "unknown character set %u", cset);
	return 0;
}

static int check_reference(const struct dtype *t, struct err *err)
{
	static const uint32_t sizes[] = {
		[DTYPE_REF_OBJECT] = DTYPE_OBJREF_SIZE,
		[DTYPE_REF_REGION] = DTYPE_REGREF_SIZE,
	};
	if (t->reference.kind > DTYPE_REF_REGION)
		return err_set(err, -EINVAL, "unknown reference type %u", t->reference.kind);
	if (t->size != sizes[t->reference.kind])
		return err_set(err, -EINVAL, "reference of %u bytes instead of %u", t->size,
			       sizes[t->reference.kind]);
	if (t->reference.revised_size && (t->reference.kind != DTYPE_REF_OBJECT ||
					  t->reference.revised_size < DTYPE_OBJREF_SIZE ||
					  t->reference.revised_size > DTYPE_REVISED_MAX))
		return err_set(err, -EINVAL, "revised reference of %u bytes",
			       t->reference.revised_size);
	return 0;
}

static int check_enum(const struct dtype *t, struct err *err)
{
	const struct dtype *base = t->enumeration.base;
	auto_free const char **names = NULL;
	uint32_t n = t->enumeration.n;
	if (!base || base->cls != DTYPE_INTEGER)
		return err_set(err, -EINVAL, "the base type of an enumeration is not an integer");
	if (t->size != base->size)
		return err_set(err, -EINVAL, "enumeration of %u bytes; its base type has %u",
			       t->size, base->size);
	if (n == 0 || !t->enumeration.names || !t->enumeration.values)
		return err_set(err, -EINVAL, "enumeration without members");
	if (n > DTYPE_MAX_MEMBERS)
		return err_set(err, -E2BIG, "enumeration of %u members; the limit is %d", n,
			       DTYPE_MAX_MEMBERS);
	names = calloc(n, sizeof(*names));
	if (!names)
		return err_set(err, -ENOMEM, "out of memory: enumeration of %u members", n);
	memcpy(names, t->enumeration.names, n * sizeof(*names));
	return dtype_check_names(names, n, err);
}

static int check_vlen(const struct dtype *t, struct err *err)
{
	const struct dtype *base = t->vlen.base;
	if (!base)
		return err_set(err, -EINVAL, "variable-length type without a base type");
	if (t->size != DTYPE_VLEN_SIZE)
		return err_set(err, -EINVAL, "variable-length type of %u bytes", t->size);
	if (!t->vlen.is_string)
		return 0;
	/* libhdf5 writes an unsigned byte as base type. */
	if (base->size != 1 || (base->cls != DTYPE_STRING && base->cls != DTYPE_INTEGER))
		return err_set(err, -EINVAL,
			       "the base type of a variable-length string is not a character");
	return check_text(t->vlen.pad, t->vlen.cset, err);
}

int dtype_array_extent(const struct dtype *base, uint32_t rank, const uint32_t *dims,
		       uint64_t *nelems, uint32_t *size, struct err *err)
{
	uint64_t n = 1;
	if (!base)
		return err_set(err, -EINVAL, "array type without a base type");
	if (rank == 0)
		return err_set(err, -EINVAL, "array type without dimensions");
	if (rank > DTYPE_MAX_RANK)
		return err_set(err, -E2BIG, "array type of %u dimensions; the limit is %d", rank,
			       DTYPE_MAX_RANK);
	for (uint32_t i = 0; i < rank; i++) {
		if (dims[i] == 0)
			return err_set(err, -EINVAL, "dimension %u of an array type is 0", i);
		n *= dims[i]; /* no overflow: n is at most DTYPE_MAX_SIZE */
		if (n * base->size > DTYPE_MAX_SIZE)
			return err_set(err, -E2BIG, "array type of more than %d bytes",
				       DTYPE_MAX_SIZE);
	}
	*nelems = n;
	*size = (uint32_t)(n * base->size);
	return 0;
}

static int check_array(const struct dtype *t, struct err *err)
{
	uint64_t nelems;
	uint32_t size;
	int r = dtype_array_extent(t->array.base, t->array.rank, t->array.dims, &nelems, &size,
				   err);
	if (r < 0)
		return r;
	if (t->size != size)
		return err_set(err, -EINVAL, "array type of %u bytes; its elements take %u",
			       t->size, size);
	return 0;
}

static int compare_offsets(const void *a, const void *b)
{
	const struct dtype_member *x = *(const struct dtype_member *const *)a;
	const struct dtype_member *y = *(const struct dtype_member *const *)b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Checks that members lie inside the compound and do not overlap. */
static int check_offsets(const struct dtype *t, struct err *err)
{
	uint32_t n = t->compound.n;
	auto_free const struct dtype_member **by_offset = calloc(n, sizeof(*by_offset));
	uint64_t end = 0;
	if (!by_offset)
		return err_set(err, -ENOMEM, "out of memory: compound of %u members", n);
	for (uint32_t i = 0; i < n; i++)
		by_offset[i] = &t->compound.members[i];
	qsort(by_offset, n, sizeof(*by_offset), compare_offsets);
	for (uint32_t i = 0; i < n; i++) {
		const struct dtype_member *m = by_offset[i];
		if (m->offset < end)
			return err_set(err, -EINVAL, "members %s and %s overlap",
				       by_offset[i - 1]->name, m->name);
		end = (uint64_t)m->offset + m->type->size;
		if (end > t->size)
			return err_set(err, -EINVAL,
				       "member %s ends at %" PRIu64 " in a compound of %u bytes",
				       m->name, end, t->size);
	}
	return 0;
}

static int check_compound(const struct dtype *t, struct err *err)
{
	auto_free const char **names = NULL;
	uint32_t n = t->compound.n;
	int r;
	if (n == 0 || !t->compound.members)
		return err_set(err, -EINVAL, "compound without members");
	if (n > DTYPE_MAX_MEMBERS)
		return err_set(err, -E2BIG, "compound of %u members; the limit is %d", n,
			       DTYPE_MAX_MEMBERS);
	names = calloc(n, sizeof(*names));
	if (!names)
		return err_set(err, -ENOMEM, "out of memory: compound of %u members", n);
	for (uint32_t i = 0; i < n; i++) {
		names[i] = t->compound.members[i].name;
		if (!t->compound.members[i].type)
			return err_set(err, -EINVAL, "member %u has no type", i);
	}
	r = dtype_check_names(names, n, err);
	return r < 0 ? r : check_offsets(t, err);
}

static int check(const struct dtype *t, struct err *err)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		if (t->cls != DTYPE_INTEGER && t->integer.is_signed)
			return err_set(err, -EINVAL, "signed bitfield or time");
		return check_bits(t, t->integer.bit_offset, t->integer.precision, err);
	case DTYPE_FLOAT:
		return check_float(t, err);
	case DTYPE_STRING:
		return check_text(t->string.pad, t->string.cset, err);
	case DTYPE_OPAQUE:
		if (!t->opaque.tag)
			return err_set(err, -EINVAL, "opaque type without a tag");
		if (strlen(t->opaque.tag) > DTYPE_MAX_TAG)
			return err_set(err, -E2BIG, "opaque tag of more than %d bytes",
				       DTYPE_MAX_TAG);
		return 0;
	case DTYPE_COMPOUND:
		return check_compound(t, err);
	case DTYPE_REFERENCE:
		return check_reference(t, err);
	case DTYPE_ENUM:
		return check_enum(t, err);
	case DTYPE_VLEN:
		return check_vlen(t, err);
	case DTYPE_ARRAY:
		return check_array(t, err);
	}
	return err_set(err, -EINVAL, "unknown datatype class %u", t->cls);
}

/* Adds the derived members of a child type that occurs n times in an element. */
static int derive_from(struct dtype *t, const struct dtype *child, uint64_t n, struct err *err)
{
	uint64_t nvlens, surplus;
	if (child->depth >= DTYPE_MAX_DEPTH)
		return err_set(err, -E2BIG, "datatype nested more than %d deep", DTYPE_MAX_DEPTH);
	if (t->depth < child->depth + 1)
		t->depth = (uint8_t)(child->depth + 1);
	t->nodes += child->nodes;
	if (t->nodes > DTYPE_MAX_NODES)
		return err_set(err, -E2BIG, "datatype of more than %d parts", DTYPE_MAX_NODES);
	t->has_vlen |= child->has_vlen;
	t->has_vstring |= child->has_vstring;
	t->has_ref |= child->has_ref;
	t->has_array |= child->has_array;
	t->has_complex |= child->has_complex;
	t->has_revised |= child->has_revised;
	if (!mul_u64(child->surplus, n, &surplus) || !add_u64(t->surplus, surplus, &surplus) ||
	    surplus > DTYPE_MAX_SIZE)
		return err_set(err, -E2BIG, "more than %d bytes of references in one element",
			       DTYPE_MAX_SIZE);
	t->surplus = (uint32_t)surplus;
	if (!mul_u64(child->nvlens, n, &nvlens) || !add_u64(t->nvlens, nvlens, &t->nvlens))
		return err_set(err, -E2BIG, "too many variable-length values in one element");
	return 0;
}

/* Returns the bytes of a datatype message of version 3 (File Format Specification, IV.A.2.d)
 * without those of child types: a head of 8 bytes and the properties of the class. */
static uint64_t description_bytes(const struct dtype *t)
{
	const uint64_t head = 8, numbers = 4;
	uint64_t size = head;
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
		return head + numbers;
	case DTYPE_TIME:
		return head + 2;
	case DTYPE_FLOAT:
		return head + 12;
	case DTYPE_OPAQUE:
		return head + min_u64(align_u64(strlen(t->opaque.tag), 8), DTYPE_MAX_TAG);
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++)
			size += strlen(t->compound.members[i].name) + 1 +
				(t->size > 0xffffff ? 4
				 : t->size > 0xffff ? 3
				 : t->size > 0xff   ? 2
						    : 1);
		return size;
	case DTYPE_ENUM:
		for (uint32_t i = 0; i < t->enumeration.n; i++)
			size += strlen(t->enumeration.names[i]) + 1 + t->size;
		return size;
	case DTYPE_ARRAY:
		return head + 1 + 4 * (uint64_t)t->array.rank;
	case DTYPE_VLEN: /* the encoder writes an integer as the base type of a string */
		return t->vlen.is_string ? head + head + numbers : head;
	default:
		return head;
	}
}

static void describe(struct dtype *t)
{
	uint64_t size = description_bytes(t);
	if (t->cls == DTYPE_COMPOUND)
		for (uint32_t i = 0; i < t->compound.n; i++)
			size += t->compound.members[i].type->described;
	else if (t->cls == DTYPE_ENUM)
		size += t->enumeration.base->described;
	else if (t->cls == DTYPE_ARRAY)
		size += t->array.base->described;
	else if (t->cls == DTYPE_VLEN && !t->vlen.is_string)
		size += t->vlen.base->described;
	t->described = (uint32_t)min_u64(size, UINT32_MAX);
}

/* Computes the packed size of an element. No sum exceeds size: members do not overlap, and the
 * child types satisfy the same. */
static void derive_packed(struct dtype *t)
{
	const struct dtype *base = t->array.base;
	t->packed = t->size;
	t->is_packed = true;
	if (t->cls == DTYPE_ARRAY) {
		t->array.nelems = t->size / base->size;
		t->packed = (uint32_t)(base->packed * t->array.nelems);
		t->is_packed = base->is_packed;
	}
	if (t->cls != DTYPE_COMPOUND)
		return;
	t->packed = 0;
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		t->is_packed = t->is_packed && m->type->is_packed && m->offset == t->packed;
		t->packed += m->type->packed;
	}
	t->is_packed = t->is_packed && t->packed == t->size;
}

static int derive(struct dtype *t, struct err *err)
{
	int r = 0;
	t->depth = 1;
	t->nodes = 1;
	derive_packed(t);
	t->has_vlen = t->cls == DTYPE_VLEN;
	t->has_vstring = t->has_vlen && t->vlen.is_string;
	t->has_ref = t->cls == DTYPE_REFERENCE;
	t->has_array = t->cls == DTYPE_ARRAY;
	t->has_complex = t->cls == DTYPE_COMPOUND && t->compound.was_complex;
	t->has_revised = t->has_ref && t->reference.revised_size;
	t->surplus = t->has_revised ? t->reference.revised_size - t->size : 0;
	t->nvlens = 0;
	switch (t->cls) {
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n && r == 0; i++)
			r = derive_from(t, t->compound.members[i].type, 1, err);
		return r;
	case DTYPE_ENUM:
		return derive_from(t, t->enumeration.base, 1, err);
	case DTYPE_VLEN:
		r = derive_from(t, t->vlen.base, 0, err);
		t->nvlens = 1;
		return r;
	case DTYPE_ARRAY:
		return derive_from(t, t->array.base, t->array.nelems, err);
	default:
		return 0;
	}
}

/* copy_members(), copy_symbols() and copy_parts() copy what t points to, without child types, into
 * the arena. They return false if memory is exhausted. */
static bool copy_members(struct arena *a, struct dtype *t)
{
	struct dtype_member *members = arena_array(a, t->compound.n, sizeof(*members));
	if (!members)
		return false;
	for (uint32_t i = 0; i < t->compound.n; i++) {
		const char *name = t->compound.members[i].name;
		members[i] = t->compound.members[i];
		members[i].name = arena_strndup(a, name, strlen(name));
		if (!members[i].name)
			return false;
	}
	t->compound.members = members;
	return true;
}

static bool copy_symbols(struct arena *a, struct dtype *t)
{
	size_t n = t->enumeration.n;
	const char **names = arena_array(a, n, sizeof(*names));
	uint8_t *values = arena_array(a, n, t->size);
	if (!names || !values)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *name = t->enumeration.names[i];
		names[i] = arena_strndup(a, name, strlen(name));
		if (!names[i])
			return false;
	}
	memcpy(values, t->enumeration.values, n * t->size);
	t->enumeration.names = names;
	t->enumeration.values = values;
	return true;
}

static bool copy_parts(struct arena *a, struct dtype *t)
{
	switch (t->cls) {
	case DTYPE_COMPOUND:
		return copy_members(a, t);
	case DTYPE_ENUM:
		return copy_symbols(a, t);
	case DTYPE_OPAQUE:
		t->opaque.tag = arena_strndup(a, t->opaque.tag, strlen(t->opaque.tag));
		return t->opaque.tag != NULL;
	case DTYPE_ARRAY:
		for (uint32_t i = t->array.rank; i < DTYPE_MAX_RANK; i++)
			t->array.dims[i] = 0;
		return true;
	default:
		return true;
	}
}

const struct dtype *dtype_checked(struct arena *a, const struct dtype *t, struct err *err)
{
	struct dtype *copy;
	struct dtype d = *t;
	if (d.size == 0 && d.cls != DTYPE_COMPOUND && d.cls != DTYPE_ENUM) {
		err_set(err, -EINVAL, "datatype of 0 bytes");
		return NULL;
	}
	if (d.size > DTYPE_MAX_SIZE) {
		err_set(err, -E2BIG, "datatype of %u bytes; the limit is %d", d.size,
			DTYPE_MAX_SIZE);
		return NULL;
	}
	if (check(&d, err) < 0 || derive(&d, err) < 0)
		return NULL;
	describe(&d);
	copy = arena_alloc(a, sizeof(*copy));
	if (!copy || !copy_parts(a, &d)) {
		err_set(err, -ENOMEM, "out of memory: datatype of %u bytes", d.size);
		return NULL;
	}
	*copy = d;
	return copy;
}
