/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct dtype -> "type": the stand-in in the service's form, the exact type if it is another one,
 * and the id of the committed datatype. Pure.
 */
#include "emit_document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <data/number.h>

#include "hdf5_type.h"

/* Numbers that are nested deeper than this are written as the name of a predefined type, because
 * the reader counts {"class", "base"} as two levels. */
enum { DEEP = DTYPE_MAX_DEPTH / 2 };

static void write_service(struct writer *w, const struct dtype *t, unsigned int depth);

/* Writes the name of a predefined type, such as "H5T_STD_I32LE". */
static void base_name(const struct dtype *t, char name[static 24])
{
	const bool big = t->cls == DTYPE_FLOAT ? t->floating.big_endian : t->integer.big_endian;
	const char *prefix = t->cls == DTYPE_FLOAT  ? "IEEE_F"
			     : t->integer.is_signed ? "STD_I"
						    : "STD_U";
	snprintf(name, 24, "H5T_%s%u%s", prefix, 8 * (t->size & 15), big ? "BE" : "LE");
}

static void write_mapping(struct writer *w, const struct dtype *t)
{
	const struct dtype *base = t->enumeration.base;
	const unsigned int unused = 64 - 8 * base->size; /* the size is at most 8 */
	write_member_open(w, "mapping", '{');
	for (uint32_t i = 0; i < t->enumeration.n; i++) {
		const char *name = t->enumeration.names[i];
		const uint64_t bits = number_get_int(t->enumeration.values + (size_t)i * base->size,
						     base->size, base->integer.big_endian);
		write_key_text(w, name, strlen(name));
		if (base->integer.is_signed)
			write_int(w, (int64_t)(bits << unused) >> unused);
		else
			write_uint(w, bits);
	}
	write_close(w, '}');
}

/* Writes the members of a stand-in. */
static void write_class(struct writer *w, const struct dtype *t, unsigned int depth)
{
	const bool is_string = t->cls == DTYPE_VLEN && t->vlen.is_string;
	char name[24];
	write_member_word(w, "class", schema_class_names[is_string ? DTYPE_STRING : t->cls]);
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_FLOAT:
		base_name(t, name);
		write_member_word(w, "base", name);
		break;
	case DTYPE_STRING:
		schema_write_string_type(w, t);
		break;
	case DTYPE_OPAQUE:
		write_member_uint(w, "size", t->size);
		write_member_word(w, "tag", t->opaque.tag);
		break;
	case DTYPE_REFERENCE:
		write_member_word(w, "base", "H5T_STD_REF_OBJ");
		break;
	case DTYPE_ENUM:
		write_key(w, "base");
		write_service(w, t->enumeration.base, depth + 1);
		write_mapping(w, t);
		break;
	case DTYPE_COMPOUND:
		write_member_open(w, "fields", '[');
		for (uint32_t i = 0; i < t->compound.n; i++) {
			write_open(w, '{');
			write_member_word(w, "name", t->compound.members[i].name);
			write_key(w, "type");
			write_service(w, t->compound.members[i].type, depth + 1);
			write_close(w, '}');
		}
		write_close(w, ']');
		break;
	case DTYPE_ARRAY:
		write_member_list(w, "dims", t->array.rank, t->array.dims);
		write_key(w, "base");
		write_service(w, t->array.base, depth + 1);
		break;
	case DTYPE_VLEN:
		if (t->vlen.is_string) {
			schema_write_string_type(w, t);
			break;
		}
		write_member_word(w, "size", "H5T_VARIABLE");
		write_key(w, "base");
		write_service(w, t->vlen.base, depth + 1);
		break;
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		break; /* never a stand-in */
	}
}

static void write_service(struct writer *w, const struct dtype *t, unsigned int depth)
{
	char name[24];
	if (depth > DEEP && (t->cls == DTYPE_INTEGER || t->cls == DTYPE_FLOAT)) {
		base_name(t, name);
		write_word(w, name);
		return;
	}
	write_open(w, '{');
	write_class(w, t, depth);
	write_close(w, '}');
}

int schema_emit_type(struct schema_emit *e, const struct dtype *t, uint32_t committed,
		     struct stand_in *stand_in)
{
	struct writer *w = &e->w;
	const char *why;
	int rc = schema_stand_in(e->arena, t, stand_in, &why, e->err);
	if (rc)
		return rc;
	if (why)
		return err_set(e->err, -EOPNOTSUPP, "the type has no form in this schema: %s", why);
	write_member_open(w, "type", '{');
	write_class(w, stand_in->type, 1);
	const struct object *o = committed == OBJECT_NONE
					 ? NULL
					 : schema_emit_target(e->tree, (uint64_t)committed + 1);
	if (o && o->kind == OBJECT_DATATYPE)
		write_member_word(w, "id", o->id);
	if (e->exact || (stand_in->type != t && !dtype_equal(stand_in->type, t))) {
		write_key(w, "hsmount");
		schema_hdf5_type_write(w, t);
	}
	write_close(w, '}');
	return 0;
}
