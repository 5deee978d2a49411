/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type that is given to the service in place of a type of HDF5. Many types of HDF5 have no form
 * in the service's JSON, or the service refuses them. Their elements are nevertheless stored, under
 * a *stand-in*: a type that the service accepts and whose elements have the same stored bytes. The
 * exact type is next to it in the member "hsmount" (hdf5_type.h).
 *
 *   type                                              stand-in
 *   compound with gaps or in another order            the same members, packed
 *   member name that is not ASCII                     the same member with an ASCII name
 *   bitfield, time, integer of unusual precision      integer of the same size: 1, 2, 4, 8 bytes
 *   name in an enumeration that is not UTF-8          the same enumeration with an ASCII name
 *   enumeration inside an array or a sequence         its integer
 *   compound with one member of variable length       that member
 *   array of arrays                                   one array with the dimensions of both
 *   array type of a dataset or an attribute, of up    compound with the items as its members,
 *     to 1024 references or items of variable length    or the item if there is only one
 *   sequence of anything but numbers, strings and     sequence of bytes
 *     object references
 *   other types of fixed size: long double and other  opaque of the same stored size
 *     unusual floats, integers of other sizes, arrays
 *     of compounds, array types of datasets and
 *     attributes
 */
#ifndef HSDS_STAND_IN_H
#define HSDS_STAND_IN_H

#include <stdbool.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/dtype.h>

struct stand_in {
	const struct dtype *type; /* equal to the exact type if that needs no stand-in */
	/* The service sees some elements as bytes without a meaning, or an array as a compound. So
	 * a value in JSON is written in base64. */
	bool is_bytes;
};

/* Finds the stand-in of t. *why becomes NULL, or the reason why t has none, such as "a region
 * reference"; it is a constant string. The types are in the arena. Fails with -ENOMEM or -E2BIG. */
int schema_stand_in(struct arena *a, const struct dtype *t, struct stand_in *out, const char **why,
		    struct err *err);

/* Returns true if the elements of a stand-in are stored in the same bytes as those of the exact
 * type. */
bool schema_carries(const struct dtype *stand_in, const struct dtype *exact);

/* Returns true for an IEEE 754 float of 2, 4 or 8 bytes. */
bool schema_is_ieee(const struct dtype *t);

#endif
