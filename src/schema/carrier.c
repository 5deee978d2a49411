/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carriers of types; see carrier.h. A carrier is nested as its type is, except that compounds of
 * one member and arrays of arrays may be flattened. Recursion is limited by the depth of the type.
 * Pure.
 */
#include "carrier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>

enum { SPREAD_MAX = 1024 /* members of a compound that carries an array */ };

enum place { PLACE_TOP, PLACE_MEMBER, PLACE_ARRAY, PLACE_VLEN };

struct search {
	struct arena *arena;
	bool is_bytes;
	const char *why;
	struct err *err;
};

static const struct dtype *find(struct search *s, const struct dtype *t, enum place place);

bool schema_is_integer(const struct dtype *t)
{
	const uint32_t size = t->size;
	return t->cls == DTYPE_INTEGER && t->integer.bit_offset == 0 &&
	       t->integer.precision == 8 * size &&
	       (size == 1 || size == 2 || size == 4 || size == 8);
}

bool schema_is_ieee(const struct dtype *t)
{
	const uint32_t exp_size = t->size == 2 ? 5 : t->size == 4 ? 8 : 11;
	return t->cls == DTYPE_FLOAT && (t->size == 2 || t->size == 4 || t->size == 8) &&
	       t->floating.bit_offset == 0 && t->floating.precision == 8 * t->size &&
	       t->floating.sign_loc == 8 * t->size - 1 && t->floating.exp_size == exp_size &&
	       t->floating.exp_loc + exp_size == t->floating.sign_loc &&
	       t->floating.mant_loc == 0 && t->floating.mant_size == t->floating.exp_loc &&
	       t->floating.exp_bias == (1u << (exp_size - 1)) - 1 &&
	       t->floating.norm == DTYPE_NORM_IMPLIED && !t->floating.lo_pad &&
	       !t->floating.hi_pad && !t->floating.internal_pad;
}

/* The code of a constructor that failed is in s->err. */
static const struct dtype *refuse(struct search *s, const char *why)
{
	s->why = why;
	return NULL;
}

static const struct dtype *opaque(struct search *s, const struct dtype *t)
{
	if (!dtype_is_plain(t))
		return refuse(s,
			      "an array of compounds with references or variable-length members");
	s->is_bytes = true;
	return dtype_opaque(s->arena, t->packed, "", s->err);
}

static const struct dtype *integer(struct search *s, const struct dtype *t)
{
	const uint32_t size = t->size;
	const bool is_signed = t->cls == DTYPE_TIME || t->integer.is_signed;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return opaque(s, t);
	return dtype_integer(s->arena, size, is_signed, t->integer.big_endian, s->err);
}

static const struct dtype *enumeration(struct search *s, const struct dtype *t, enum place place)
{
	const struct dtype *base = find(s, t->enumeration.base, place);
	if (!base || base->cls != DTYPE_INTEGER || place == PLACE_ARRAY || place == PLACE_VLEN)
		return base;
	if (base == t->enumeration.base)
		return t;
	return dtype_enum(s->arena, base, t->enumeration.n, t->enumeration.names,
			  t->enumeration.values, s->err);
}

/* ---- compounds ---- */

static bool is_ascii(const char *name)
{
	for (; *name; name++)
		if (*name < 0x20 || *name > 0x7e)
			return false;
	return true;
}

/* An ASCII name that no other member of the type has. */
static const char *member_name(struct search *s, const struct dtype *t, uint32_t i)
{
	char name[64];
	const char *given = t->compound.members[i].name;
	if (is_ascii(given))
		return given;
	for (uint32_t attempt = 0;; attempt++) {
		bool taken = false;
		snprintf(name, sizeof(name), attempt ? "member_%u_%u" : "member_%u", i, attempt);
		for (uint32_t k = 0; k < t->compound.n && !taken; k++)
			taken = strcmp(t->compound.members[k].name, name) == 0;
		if (!taken)
			break;
	}
	const char *copy = arena_strndup(s->arena, name, strlen(name));
	if (!copy)
		err_set(s->err, -ENOMEM, "out of memory: type");
	return copy;
}

static const struct dtype *compound(struct search *s, const struct dtype *t, enum place place)
{
	const uint32_t n = t->compound.n;
	bool same = t->is_packed;
	if (n == 1 && t->has_vlen)
		return find(s, t->compound.members[0].type, place);
	struct dtype_member *members = arena_array(s->arena, n, sizeof(*members));
	if (!members) {
		err_set(s->err, -ENOMEM, "out of memory: compound of %u members", n);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		members[i].type = find(s, m->type, PLACE_MEMBER);
		members[i].name = members[i].type ? member_name(s, t, i) : NULL;
		if (!members[i].name)
			return NULL;
		same = same && members[i].type == m->type && members[i].name == m->name;
	}
	return same ? t : dtype_compound(s->arena, n, members, 0, s->err);
}

/* ---- arrays and sequences ---- */

/* The dimensions of an array of arrays, and the type of its items. */
static const struct dtype *flatten(const struct dtype *t, uint32_t *rank,
				   uint32_t dims[static DTYPE_MAX_RANK], uint64_t *nelems)
{
	*rank = 0;
	*nelems = 1;
	for (; t->cls == DTYPE_ARRAY; t = t->array.base) {
		*nelems *= t->array.nelems; /* at most DTYPE_MAX_SIZE */
		for (uint32_t d = 0; d < t->array.rank; d++, ++*rank)
			if (*rank < DTYPE_MAX_RANK)
				dims[*rank] = t->array.dims[d];
	}
	if (*rank > DTYPE_MAX_RANK) {
		*rank = 1;
		dims[0] = (uint32_t)*nelems;
	}
	return t;
}

/* The service cannot store an array type of references or of items of variable length. It can store
 * a compound that has the items as its members. A single item needs no compound. */
static const struct dtype *spread(struct search *s, const struct dtype *item, uint64_t n)
{
	struct dtype_member *members;
	if (n > SPREAD_MAX)
		return refuse(s, "an array type of more than 1024 references or variable-length "
				 "items");
	s->is_bytes = true;
	if (n == 1)
		return item;
	members = arena_array(s->arena, (size_t)n, sizeof(*members));
	for (uint32_t i = 0; members && i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "item_%" PRIu32, i);
		members[i].name = arena_strndup(s->arena, name, strlen(name));
		members[i].type = item;
		if (!members[i].name)
			members = NULL;
	}
	if (!members) {
		err_set(s->err, -ENOMEM, "out of memory: type");
		return NULL;
	}
	return dtype_compound(s->arena, (uint32_t)n, members, 0, s->err);
}

static const struct dtype *array(struct search *s, const struct dtype *t, enum place place)
{
	uint32_t rank, dims[DTYPE_MAX_RANK];
	uint64_t nelems;
	if (dtype_is_plain(t) && place == PLACE_TOP)
		return opaque(s, t);
	const bool was_bytes = s->is_bytes;
	const struct dtype *items = flatten(t, &rank, dims, &nelems);
	const struct dtype *base = find(s, items, PLACE_ARRAY);
	if (!base)
		return NULL;
	if (base->cls == DTYPE_COMPOUND || base->cls == DTYPE_OPAQUE) {
		s->is_bytes = was_bytes;
		return opaque(s, t);
	}
	if (place == PLACE_TOP)
		return spread(s, base, nelems);
	if (base == t->array.base)
		return t;
	return dtype_array(s->arena, base, rank, dims, s->err);
}

static const struct dtype *vlen(struct search *s, const struct dtype *t)
{
	const struct dtype *given = t->vlen.base;
	if (t->vlen.is_string)
		return t;
	const struct dtype *base = find(s, given, PLACE_VLEN);
	if (!base)
		return NULL;
	if (base->cls == DTYPE_INTEGER || base->cls == DTYPE_FLOAT ||
	    base->cls == DTYPE_REFERENCE || base->cls == DTYPE_STRING)
		return base == given ? t : dtype_vlen(s->arena, base, s->err);
	if (given->has_ref)
		return refuse(s, "a sequence of items that contain references");
	s->is_bytes = true;
	base = dtype_integer(s->arena, 1, false, false, s->err);
	return base ? dtype_vlen(s->arena, base, s->err) : NULL;
}

static const struct dtype *find(struct search *s, const struct dtype *t, enum place place)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
		return schema_is_integer(t) ? t : integer(s, t);
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		return integer(s, t);
	case DTYPE_FLOAT:
		return schema_is_ieee(t) ? t : opaque(s, t);
	case DTYPE_STRING:
		return t;
	case DTYPE_OPAQUE:
		return utf8_valid(t->opaque.tag, strlen(t->opaque.tag)) ? t : opaque(s, t);
	case DTYPE_COMPOUND:
		return compound(s, t, place);
	case DTYPE_REFERENCE:
		return t->reference.kind == DTYPE_REF_OBJECT ? t : refuse(s, "a region reference");
	case DTYPE_ENUM:
		return enumeration(s, t, place);
	case DTYPE_VLEN:
		return vlen(s, t);
	case DTYPE_ARRAY:
		return array(s, t, place);
	}
	return refuse(s, "a type of an unknown class");
}

int schema_carrier(struct arena *a, const struct dtype *t, struct carrier *out, const char **why,
		   struct err *err)
{
	struct err cause = ERR_INIT;
	struct search s = {.arena = a, .err = &cause};
	*why = NULL;
	*out = (struct carrier){.type = find(&s, t, PLACE_TOP)};
	out->is_bytes = s.is_bytes;
	if (out->type)
		return 0;
	*why = s.why;
	if (s.why)
		return 0;
	if (err)
		err_copy(err, &cause);
	return cause.code;
}

/* ---- comparison ---- */

static const struct dtype *unwrap(const struct dtype *t)
{
	while (t->cls == DTYPE_COMPOUND && t->compound.n == 1)
		t = t->compound.members[0].type;
	return t;
}

/* Whether the members of a compound, or a type that is not an array, are the items of an array. */
static bool carries_items(const struct dtype *carrier, const struct dtype *exact)
{
	const bool is_spread = carrier->cls == DTYPE_COMPOUND;
	uint32_t rank, dims[DTYPE_MAX_RANK];
	uint64_t n;
	exact = flatten(exact, &rank, dims, &n);
	if (n != (is_spread ? carrier->compound.n : 1))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!schema_carries(is_spread ? carrier->compound.members[i].type : carrier, exact))
			return false;
	return true;
}

bool schema_carries(const struct dtype *carrier, const struct dtype *exact)
{
	uint32_t rank, dims[DTYPE_MAX_RANK];
	uint64_t n, m;
	if (dtype_is_plain(exact) || dtype_is_plain(carrier))
		return dtype_is_plain(exact) && dtype_is_plain(carrier) &&
		       carrier->packed == exact->packed;
	carrier = unwrap(carrier);
	exact = unwrap(exact);
	if (exact->cls == DTYPE_ARRAY && carrier->cls != DTYPE_ARRAY)
		return carries_items(carrier, exact);
	if (carrier->cls != exact->cls)
		return false;
	switch (exact->cls) {
	case DTYPE_COMPOUND:
		if (carrier->compound.n != exact->compound.n)
			return false;
		for (uint32_t i = 0; i < exact->compound.n; i++)
			if (!schema_carries(carrier->compound.members[i].type,
					    exact->compound.members[i].type))
				return false;
		return true;
	case DTYPE_ARRAY:
		carrier = flatten(carrier, &rank, dims, &n);
		exact = flatten(exact, &rank, dims, &m);
		return n == m && schema_carries(carrier, exact);
	case DTYPE_VLEN:
		if (carrier->vlen.is_string || exact->vlen.is_string)
			return carrier->vlen.is_string && exact->vlen.is_string;
		return (dtype_is_plain(carrier->vlen.base) && carrier->vlen.base->packed == 1) ||
		       schema_carries(carrier->vlen.base, exact->vlen.base);
	case DTYPE_REFERENCE:
		return carrier->reference.kind == exact->reference.kind;
	default:
		return false;
	}
}
