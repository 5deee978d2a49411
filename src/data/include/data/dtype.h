/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 datatypes (File Format Specification, IV.A.2.d) in memory. The constructors below allocate a
 * struct dtype in an arena; it is constant from then on, and several types may share a part. The
 * constructors check sizes, depth, ranks and names, and compute the derived members at the end of
 * the struct. So code that receives a dtype does not check it again.
 */
#ifndef DATA_DTYPE_H
#define DATA_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

enum {
	DTYPE_MAX_DEPTH = 32,	   /* nesting of compound, array, vlen, enum */
	DTYPE_MAX_MEMBERS = 65535, /* the file has 16 bits for the number of members */
	DTYPE_MAX_RANK = 32,
	DTYPE_MAX_SIZE = 1 << 30,    /* bytes of one element */
	DTYPE_MAX_NODES = 1 << 20,   /* parts of a type, counted as often as they occur */
	DTYPE_MAX_DESCRIBED = 65535, /* the file has 16 bits for the size of a message */
	DTYPE_MAX_TAG = 255,	     /* bytes of an opaque tag; the file has 8 bits for it */
	DTYPE_VLEN_SIZE = 16,	     /* in the file: count, collection address, index */
	DTYPE_OBJREF_SIZE = 8,
	DTYPE_REGREF_SIZE = 12, /* in the file: collection address, index */
	DTYPE_REVISED_MAX = 64, /* of H5T_STD_REF; libhdf5 writes 18 */
};

/* Numbered as in the datatype message. */
enum dtype_class {
	DTYPE_INTEGER = 0,
	DTYPE_FLOAT = 1,
	DTYPE_TIME = 2,
	DTYPE_STRING = 3, /* fixed length; variable-length strings are DTYPE_VLEN */
	DTYPE_BITFIELD = 4,
	DTYPE_OPAQUE = 5,
	DTYPE_COMPOUND = 6,
	DTYPE_REFERENCE = 7,
	DTYPE_ENUM = 8,
	DTYPE_VLEN = 9,
	DTYPE_ARRAY = 10,
};

enum dtype_pad { DTYPE_PAD_NULLTERM = 0, DTYPE_PAD_NULLPAD = 1, DTYPE_PAD_SPACEPAD = 2 };
enum dtype_cset { DTYPE_CSET_ASCII = 0, DTYPE_CSET_UTF8 = 1 };
enum dtype_ref { DTYPE_REF_OBJECT = 0, DTYPE_REF_REGION = 1 };
/* Mantissa normalisation, numbered as in the message. */
enum dtype_norm { DTYPE_NORM_NONE = 0, DTYPE_NORM_ALWAYS_SET = 1, DTYPE_NORM_IMPLIED = 2 };

struct dtype;

struct dtype_member {
	const char *name; /* NUL-terminated, not empty; may be other bytes than UTF-8 */
	uint32_t offset;  /* bytes from the start of the compound */
	const struct dtype *type;
};

struct dtype {
	enum dtype_class cls;
	uint32_t size; /* bytes of one element in an HDF5 file */
	union {
		struct {
			bool big_endian;
			bool is_signed;
			uint16_t bit_offset;
			uint16_t precision;
		} integer; /* also of bitfields and times, where is_signed is false */
		struct {
			bool big_endian;
			uint16_t bit_offset, precision;
			uint8_t sign_loc;
			uint8_t exp_loc, exp_size;
			uint8_t mant_loc, mant_size;
			uint32_t exp_bias;
			enum dtype_norm norm;
			uint8_t lo_pad, hi_pad, internal_pad;
		} floating;
		struct {
			enum dtype_pad pad;
			enum dtype_cset cset;
		} string;
		struct {
			const char *tag; /* NUL-terminated, at most 255 bytes of any kind */
		} opaque;
		struct {
			uint32_t n;
			const struct dtype_member
				*members; /* in the order of the datatype message */
			bool was_complex; /* in the file it is a complex number (H5T_COMPLEX) */
		} compound;
		struct {
			enum dtype_ref kind;
			/* If it is not 0, it is a revised reference (H5T_STD_REF) in the file, of
			 * so many bytes. */
			uint32_t revised_size;
		} reference;
		struct {
			const struct dtype *base; /* an integer type */
			uint32_t n;
			const char *const *names; /* as those of members */
			const uint8_t *values; /* n * base->size bytes in the byte order of base */
		} enumeration;
		struct {
			const struct dtype *base; /* of a string: a string or integer of 1 byte */
			bool is_string;
			enum dtype_pad pad;
			enum dtype_cset cset;
		} vlen;
		struct {
			const struct dtype *base;
			uint32_t rank;
			uint32_t dims[DTYPE_MAX_RANK];
			uint64_t nelems; /* product of dims */
		} array;
	};
	/* Derived from the above. */
	uint8_t depth;	  /* 1 for an atomic type */
	uint32_t nodes;	  /* this type and its parts, each as often as it occurs */
	uint32_t packed;  /* bytes of one element without the gaps of compounds; at most size */
	bool is_packed;	  /* no compound has gaps, and members stand in the order of their type */
	bool has_vlen;	  /* it is or contains a variable-length type */
	bool has_vstring; /* it is or contains a variable-length string */
	bool has_ref;	  /* it is or contains a reference */
	bool has_array;	  /* it is or contains an array (message version 2) */
	/* It is or contains, in the file from which it was read, such a number or reference. Two
	 * types that differ in nothing else are equal. */
	bool has_complex, has_revised;
	/* Bytes by which revised references make an element larger in the file, without those
	 * inside vlens. */
	uint32_t surplus;
	uint64_t nvlens; /* vlen elements in an element, without those inside vlens */
	/* Bytes of the shortest datatype message (version 3), at most UINT32_MAX. A type with more
	 * than DTYPE_MAX_DESCRIBED does not fit in a message. */
	uint32_t described;
};

/* All constructors allocate in the arena, and copy names and tags. On failure they return NULL with
 * err set; the code is -EINVAL if the type is not valid, -E2BIG if it is over a limit, or
 * -ENOMEM. */
const struct dtype *dtype_integer(struct arena *a, uint32_t size, bool is_signed, bool big_endian,
				  struct err *err);
/* Makes an IEEE 754 type of 2, 4 or 8 bytes. */
const struct dtype *dtype_ieee(struct arena *a, uint32_t size, bool big_endian, struct err *err);
const struct dtype *dtype_bitfield(struct arena *a, uint32_t size, bool big_endian,
				   struct err *err);
const struct dtype *dtype_string(struct arena *a, uint32_t size, enum dtype_pad pad,
				 enum dtype_cset cset, struct err *err);
const struct dtype *dtype_opaque(struct arena *a, uint32_t size, const char *tag, struct err *err);
const struct dtype *dtype_reference(struct arena *a, enum dtype_ref kind, struct err *err);
const struct dtype *dtype_vlen_string(struct arena *a, enum dtype_pad pad, enum dtype_cset cset,
				      struct err *err);
const struct dtype *dtype_vlen(struct arena *a, const struct dtype *base, struct err *err);
/* dims has `rank` dimensions, each > 0. */
const struct dtype *dtype_array(struct arena *a, const struct dtype *base, uint32_t rank,
				const uint32_t *dims, struct err *err);
/* values has n * base->size bytes in the byte order of base. No two names are equal. */
const struct dtype *dtype_enum(struct arena *a, const struct dtype *base, uint32_t n,
			       const char *const *names, const uint8_t *values, struct err *err);
/* Members lie inside `size`, do not overlap, and have different names. If size is 0, members are
 * packed, and their offsets are computed instead of read. */
const struct dtype *dtype_compound(struct arena *a, uint32_t n, const struct dtype_member *members,
				   uint32_t size, struct err *err);
/* Makes a type of any class from a struct that the caller has filled in, such as a decoded datatype
 * message. Makes all checks of the constructors above, copies the struct without its child types,
 * and computes the derived members. */
const struct dtype *dtype_checked(struct arena *a, const struct dtype *t, struct err *err);

bool dtype_equal(const struct dtype *a, const struct dtype *b);

/* Returns true if the type is plain: it neither is nor contains a vlen or reference type (elems.h),
 * so the bytes of its elements are those of the file. */
static inline bool dtype_is_plain(const struct dtype *t)
{
	return !t->has_vlen && !t->has_ref;
}

#endif
