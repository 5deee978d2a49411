/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk bytes: from what a bucket stores to elements, and from elements to what an HDF5 file
 * stores. Pure: bytes in, bytes out. Sources: formats of HSDS chunk objects (doc/BUCKET.md),
 * Blosc 1 frame format (c-blosc README_CHUNK_FORMAT), RFC 1950/1951.
 */
#ifndef CODEC_CHUNK_H
#define CODEC_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <data/chunk_place.h>
#include <data/dtype.h>
#include <data/elems.h>
#include <data/filter.h>
#include <data/object.h>

enum { CODEC_REF_TEXT = 48 /* bytes of a reference in a stored chunk */ };

struct codec_chunk {
	const struct dtype *type;
	uint64_t nelems; /* of the full chunk shape */
	const struct pipeline *pipeline;
	enum chunk_encoding encoding;
	uint64_t max_bytes; /* a decoded variable-length chunk may not be larger */
	const struct object_resolver *resolver;
};

/* Bytes of one element of t in a stored chunk: like t->size but each reference CODEC_REF_TEXT; 0
 * for types with a vlen inside (no fixed size), UINT64_MAX over 2^40. */
uint64_t codec_stored_elem_size(const struct dtype *t);

/* Undoes the filters by sniffing (Blosc1 frame incl. the bitshuffle flag and HSDS's own
 * bitshuffle header, zlib, raw), then turns stored elements into file form (dtype elems.h): vlen
 * sequences into slots and heap, reference texts into object numbers. stored: borrowed; when the
 * type is plain and nothing is filtered *stored is moved into out (and emptied) instead of copied.
 * -EIO: damaged, with the reason; -EOPNOTSUPP: a compressor that is not built in. Trailing bytes:
 * only the zeros that HSDS leaves behind arrays of vlen. */
int codec_chunk_decode(const struct codec_chunk *c, struct bytes *stored, struct elems *out,
		       struct err *err);

/* Decoded size of a stored variable-length chunk from its first bytes (at least 16 when the object
 * has them) and its object size: Blosc1 header -> nbytes, raw -> object_size. -EAGAIN when the
 * whole object is needed (zlib); given whole, it is inflated (-EIO when damaged, or beyond
 * max_bytes). Claims beyond max_bytes: -EFBIG. */
int codec_decoded_size(const struct pipeline *p, const uint8_t *head, size_t n,
		       uint64_t object_size, uint64_t max_bytes, uint64_t *decoded,
		       struct err *err);

/* Elements of a sequence start + i * step for i in [first, first + n), in t's file form. t: integer
 * or float, else -EOPNOTSUPP. */
int codec_arange(const struct dtype *t, double start, double step, uint64_t first, uint64_t n,
		 uint8_t *out, struct err *err);

/* ---- the "stored" filter form of an HDF5 file ---- */

/* The filters of p that every libhdf5 has and that we encode (shuffle, deflate, fletcher32), in
 * order; others are left out. */
void codec_stored_pipeline(const struct pipeline *p, struct pipeline *out);
/* Bytes of a chunk of n bytes under a pipeline of the above: n, + 5 per 65,535-byte block (one at
 * least) + 6 for each deflate, + 4 for each fletcher32. A pure function. */
uint64_t codec_stored_size(const struct pipeline *p, uint64_t n);
/* Encodes n plain bytes into out, exactly codec_stored_size() bytes. elem_size: for shuffle. */
int codec_stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
			size_t n, uint8_t *out, size_t out_n, struct err *err);
/* The way back, for any stream of these filters (real deflate too): at most max bytes. As in
 * libhdf5, bytes behind a zlib stream are ignored. -EIO damaged, -EOPNOTSUPP another filter. */
int codec_hdf5_decode(const struct pipeline *p, uint32_t filter_mask, uint32_t elem_size,
		      const uint8_t *in, size_t n, size_t max, struct bytes *out, struct err *err);

#endif
