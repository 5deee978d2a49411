/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "hsmount" of a type. It has the exact type of HDF5 if the service's JSON cannot
 * express it. It is next to the members of the stand-in (stand_in.h), at the top level of the type:
 *
 *   {"class": "H5T_INTEGER", "base": "H5T_STD_U8LE",
 *    "hsmount": {"class": "H5T_BITFIELD", "size": 1, "order": "LE", "offset": 0, "precision": 8}}
 *
 *   class            members
 *   INTEGER          size, order ("LE" or "BE"), signed, offset, precision (bits)
 *   BITFIELD, TIME   size, order, offset, precision
 *   FLOAT            size, order, offset, precision, sign, exponent [position, bits, bias],
 *                    mantissa [position, bits, normalisation], padding [low, high, internal]:
 *                    the numbers of the datatype message
 *   STRING           length, charSet, strPad, as in the service's form
 *   OPAQUE           size; the tag as text in "tag", or in base64 in "tag_base64"
 *   COMPOUND         size, fields [{name, offset, type}]
 *   REFERENCE        base
 *   ENUM             base, names [], values: base64 of the values in the form of the base
 *   ARRAY            dims, base
 *   VLEN             base
 *
 * Types that are parts of the exact type have the same form. In a name of a field or of an enum
 * member, a byte that is not UTF-8 is written as a lone surrogate, as Python's "surrogateescape"
 * does.
 */
#ifndef HSDS_HDF5_TYPE_H
#define HSDS_HDF5_TYPE_H

#include "parse.h"

#include <json/writer.h>

void schema_hdf5_type_write(struct writer *w, const struct dtype *t);
int schema_hdf5_type_parse(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
			   struct err *err);

/* The names of the classes, by enum dtype_class. */
extern const char *const schema_class_names[DTYPE_ARRAY + 1];

/* type_string.c. Parses a string type, whose form is the same in the service's types and in exact
 * ones. */
int schema_type_string(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		       struct err *err);
/* Writes the members charSet, strPad and length. */
void schema_write_string_type(struct writer *w, const struct dtype *t);

#endif
