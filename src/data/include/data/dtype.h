/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datatypes as HDF5 knows them (File Format Specification, IV.A.2.d), without the bytes of any
 * format. A struct dtype is built once by the constructors below, in an arena, and then constant;
 * types share parts freely. Constructors check what they are given (sizes, depth, ranks, names)
 * and derive the facts at the end of the struct, so whoever holds a dtype need not check again.
 */
#ifndef DATA_DTYPE_H
#define DATA_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>

enum {
	DTYPE_MAX_DEPTH = 32,	   /* nesting of compound, array, vlen, enum */
	DTYPE_MAX_MEMBERS = 65535, /* the member count has 16 bits in the file */
	DTYPE_MAX_RANK = 32,
	DTYPE_MAX_SIZE = 1 << 30,    /* bytes of one element */
	DTYPE_MAX_NODES = 1 << 20,   /* types inside a type: parts may be shared, walks must end */
	DTYPE_MAX_DESCRIBED = 65535, /* a message's size has 16 bits in the file */
	DTYPE_MAX_TAG = 255,	     /* bytes of an opaque tag; its length has 8 bits in the file */
	DTYPE_VLEN_SIZE = 16,	     /* file form: count, collection address, index */
	DTYPE_OBJREF_SIZE = 8,
	DTYPE_REGREF_SIZE = 12, /* collection address, index */
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
	const char *name; /* UTF-8, NUL-terminated, not empty */
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
		} integer; /* also bitfield (is_signed false) and time */
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
			const char *tag; /* NUL-terminated, at most 255 bytes */
		} opaque;
		struct {
			uint32_t n;
			const struct dtype_member *members; /* in order of offset as given */
		} compound;
		struct {
			enum dtype_ref kind;
		} reference;
		struct {
			const struct dtype *base; /* an integer type */
			uint32_t n;
			const char *const *names;
			const uint8_t *values; /* n * base->size bytes, in base's byte order */
		} enumeration;
		struct {
			const struct dtype *base; /* strings: 1-byte string or integer type */
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
	/* Derived. */
	uint8_t depth;	     /* 1 for an atomic type */
	uint32_t nodes;	     /* this type and all inside, each as often as it occurs */
	bool has_vlen;	     /* a vlen somewhere inside */
	bool has_vstring;    /* a vlen string somewhere inside */
	bool has_ref;	     /* a reference somewhere inside */
	bool has_array;	     /* an array somewhere inside (message version 2) */
	uint64_t vlen_slots; /* vlen items per element, those inside vlens not counted */
	uint32_t described;  /* bytes of its shortest description in a file (version 3), at most
				UINT32_MAX; messages have DTYPE_MAX_DESCRIBED */
};

/* All constructors: allocated in a; NULL with err set (-EINVAL what makes no sense, -E2BIG over a
 * limit, -ENOMEM). Names and tags are copied. */
const struct dtype *dtype_integer(struct arena *a, uint32_t size, bool is_signed, bool big_endian,
				  struct err *err);
/* IEEE 754: size 2, 4 or 8. */
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
/* dims: rank of them, each > 0. */
const struct dtype *dtype_array(struct arena *a, const struct dtype *base, uint32_t rank,
				const uint32_t *dims, struct err *err);
/* values: n * base->size bytes in base's byte order; names distinct. */
const struct dtype *dtype_enum(struct arena *a, const struct dtype *base, uint32_t n,
			       const char *const *names, const uint8_t *values, struct err *err);
/* members: offset and size inside size, not overlapping, names distinct. size 0: packed, offsets
 * are computed and those given are ignored. */
const struct dtype *dtype_compound(struct arena *a, uint32_t n, const struct dtype_member *members,
				   uint32_t size, struct err *err);
/* Any type whose fields the caller has filled in (a decoded datatype message): checks everything
 * that the constructors above check, copies it (not its children), derives the facts. */
const struct dtype *dtype_checked(struct arena *a, const struct dtype *t, struct err *err);

bool dtype_equal(const struct dtype *a, const struct dtype *b);

/* True when elements can be moved as they are: no vlen and no reference inside. */
static inline bool dtype_is_plain(const struct dtype *t)
{
	return !t->has_vlen && !t->has_ref;
}

#endif
