/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins of types, see stand_in.h. A stand-in is nested as its type is, except that compounds of
 * one member and arrays of arrays may be flattened. The depth of the type limits the recursion.
 * Pure.
 */
#include "stand_in.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>

enum { SPREAD_MAX = 1024 /* members of a compound that stands for an array */ };

enum place { PLACE_TOP, PLACE_MEMBER, PLACE_ARRAY, PLACE_VLEN };

struct search {
	struct arena *arena;
	bool is_bytes;
	const char *why;
	struct err *err;
};

static const struct dtype *find(struct search *s, const struct dtype *t, enum place place);

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

/* Sets the reason why a type has no stand-in. If a function returns NULL without a reason, a
 * constructor has failed, and the error is in s->err. */
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

/* The service would take an integer that does not use all bits of the element for another number:
 * it knows neither its offset nor its sign. */
static const struct dtype *integer(struct search *s, const struct dtype *t)
{
	const uint32_t size = t->size;
	const bool is_signed = t->cls == DTYPE_TIME || t->integer.is_signed;
	const bool is_whole = !t->integer.bit_offset && t->integer.precision == 8 * size;
	if ((size != 1 && size != 2 && size != 4 && size != 8) ||
	    (t->cls == DTYPE_INTEGER && !is_whole))
		return opaque(s, t);
	if (t->cls == DTYPE_INTEGER)
		return t;
	return dtype_integer(s->arena, size, is_signed, t->integer.big_endian, s->err);
}

/* ---- names ---- */

/* Returns whether the service accepts a name of a member of a compound. */
static bool is_ascii(const char *name)
{
	for (; *name; name++)
		if (*name < 0x20 || *name > 0x7e)
			return false;
	return true;
}

/* Returns whether a name of a member of an enumeration is written as it is. The service accepts any
 * text there. But bytes that are not UTF-8 would be lone surrogates, at which its clients may
 * fail. */
static bool is_text(const char *name)
{
	return utf8_valid(name, strlen(name));
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns "member_<i>", or "member_<i>_<attempt>" if the type has such a name already. */
static const char *new_name(struct search *s, uint32_t i, const char *const *sorted, uint32_t n)
{
	char text[64];
	const char *name = text;
	snprintf(text, sizeof(text), "member_%u", i);
	for (uint32_t attempt = 1; bsearch(&name, sorted, n, sizeof(*sorted), compare); attempt++)
		snprintf(text, sizeof(text), "member_%u_%u", i, attempt);
	return arena_strndup(s->arena, text, strlen(text));
}

/* Replaces the names for which is_served() is false by ASCII names that the type does not have.
 * Sets *same to false if there are any. */
static int serve_names(struct search *s, bool (*is_served)(const char *), const char **names,
		       uint32_t n, bool *same)
{
	auto_free const char **sorted = NULL;
	for (uint32_t i = 0; i < n; i++) {
		if (is_served(names[i]))
			continue;
		if (!sorted) {
			sorted = calloc(n, sizeof(*sorted));
			if (!sorted)
				return err_errno(s->err, -ENOMEM, "type");
			memcpy(sorted, names, n * sizeof(*sorted));
			qsort(sorted, n, sizeof(*sorted), compare);
		}
		names[i] = new_name(s, i, sorted, n);
		if (!names[i])
			return err_errno(s->err, -ENOMEM, "type");
		*same = false;
	}
	return 0;
}

static const struct dtype *enumeration(struct search *s, const struct dtype *t, enum place place)
{
	const uint32_t n = t->enumeration.n;
	const struct dtype *base = find(s, t->enumeration.base, place);
	if (!base || base->cls != DTYPE_INTEGER || place == PLACE_ARRAY || place == PLACE_VLEN)
		return base;
	bool same = base == t->enumeration.base;
	auto_free const char **names = calloc(n, sizeof(*names));
	if (!names) {
		err_errno(s->err, -ENOMEM, "type");
		return NULL;
	}
	memcpy(names, t->enumeration.names, n * sizeof(*names));
	if (serve_names(s, is_text, names, n, &same))
		return NULL;
	return same ? t : dtype_enum(s->arena, base, n, names, t->enumeration.values, s->err);
}

/* ---- compounds ---- */

/* Makes a compound of the stand-ins of the members, in the order of the type. */
static const struct dtype *packed(struct search *s, const struct dtype *t,
				  struct dtype_member *members, const char **names)
{
	const uint32_t n = t->compound.n;
	bool same = t->is_packed;
	for (uint32_t i = 0; i < n; i++) {
		const struct dtype_member *m = &t->compound.members[i];
		members[i].type = find(s, m->type, PLACE_MEMBER);
		if (!members[i].type)
			return NULL;
		names[i] = m->name;
		same = same && members[i].type == m->type;
	}
	if (serve_names(s, is_ascii, names, n, &same))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		members[i].name = names[i];
	return same ? t : dtype_compound(s->arena, n, members, 0, s->err);
}

static const struct dtype *compound(struct search *s, const struct dtype *t, enum place place)
{
	const uint32_t n = t->compound.n;
	if (n == 1 && t->has_vlen)
		return find(s, t->compound.members[0].type, place);
	auto_free struct dtype_member *members = calloc(n, sizeof(*members));
	auto_free const char **names = calloc(n, sizeof(*names));
	if (members && names)
		return packed(s, t, members, names);
	err_errno(s->err, -ENOMEM, "compound of %u members", n);
	return NULL;
}

/* ---- arrays and sequences ---- */

/* Gets the dimensions of an array of arrays, and returns the type of its items. */
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

/* The service cannot store an array type of references or of items of variable length. But it can
 * store a compound that has the items as its members. A single item needs no compound. */
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

int schema_stand_in(struct arena *a, const struct dtype *t, struct stand_in *out, const char **why,
		    struct err *err)
{
	struct err cause = ERR_INIT;
	struct search s = {.arena = a, .err = &cause};
	*why = NULL;
	*out = (struct stand_in){.type = find(&s, t, PLACE_TOP)};
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

/* Returns whether the members of a compound are the items of an array. A stand-in that is neither a
 * compound nor an array counts as one member. */
static bool carries_items(const struct dtype *stand_in, const struct dtype *exact)
{
	const bool is_spread = stand_in->cls == DTYPE_COMPOUND;
	uint32_t rank, dims[DTYPE_MAX_RANK];
	uint64_t n;
	exact = flatten(exact, &rank, dims, &n);
	if (n != (is_spread ? stand_in->compound.n : 1))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!schema_carries(is_spread ? stand_in->compound.members[i].type : stand_in,
				    exact))
			return false;
	return true;
}

bool schema_carries(const struct dtype *stand_in, const struct dtype *exact)
{
	uint32_t rank, dims[DTYPE_MAX_RANK];
	uint64_t n, m;
	if (dtype_is_plain(exact) || dtype_is_plain(stand_in))
		return dtype_is_plain(exact) && dtype_is_plain(stand_in) &&
		       stand_in->packed == exact->packed;
	stand_in = unwrap(stand_in);
	exact = unwrap(exact);
	if (exact->cls == DTYPE_ARRAY && stand_in->cls != DTYPE_ARRAY)
		return carries_items(stand_in, exact);
	if (stand_in->cls != exact->cls)
		return false;
	switch (exact->cls) {
	case DTYPE_COMPOUND:
		if (stand_in->compound.n != exact->compound.n)
			return false;
		for (uint32_t i = 0; i < exact->compound.n; i++)
			if (!schema_carries(stand_in->compound.members[i].type,
					    exact->compound.members[i].type))
				return false;
		return true;
	case DTYPE_ARRAY:
		stand_in = flatten(stand_in, &rank, dims, &n);
		exact = flatten(exact, &rank, dims, &m);
		return n == m && schema_carries(stand_in, exact);
	case DTYPE_VLEN:
		if (stand_in->vlen.is_string || exact->vlen.is_string)
			return stand_in->vlen.is_string && exact->vlen.is_string;
		return (dtype_is_plain(stand_in->vlen.base) && stand_in->vlen.base->packed == 1) ||
		       schema_carries(stand_in->vlen.base, exact->vlen.base);
	case DTYPE_REFERENCE:
		return stand_in->reference.kind == exact->reference.kind;
	default:
		return false;
	}
}
