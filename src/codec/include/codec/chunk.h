/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: decodes the chunk objects of a bucket to elements, and encodes elements as an HDF5 file
 * stores them. Pure: bytes in, bytes out. Any thread. Sources: HSDS chunk objects (doc/BUCKET.md),
 * Blosc 1 frames (c-blosc, README_CHUNK_FORMAT.rst), RFC 1950 and 1951.
 */
#ifndef CODEC_CHUNK_H
#define CODEC_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <codec/chain.h>
#include <data/dtype.h>
#include <data/elems.h>
#include <data/filter.h>
#include <data/object.h>

enum { CODEC_REF_TEXT = 48 /* size of a reference in a chunk object, bytes */ };

/* How to decode a chunk: the chain of its dataset, and what only this chunk has. Everything is
 * borrowed. */
struct codec_chunk {
	const struct codec_chain *chain;
	uint32_t filter_mask; /* bit i: filter i of the file was not applied */
	/* If the chain is `certain`: so many elements must be stored (grid_covered()). */
	uint64_t covered;
	uint64_t max_bytes; /* limit of a decoded chunk of variable length */
	const struct object_resolver *resolver;
};

/* Size of one element of t in a chunk object, bytes: t->size, but compounds are packed there, and
 * each reference takes CODEC_REF_TEXT. 0 if t contains a vlen, so that its elements have no fixed
 * size. UINT64_MAX above 2^40. */
uint64_t codec_stored_elem_size(const struct dtype *t);

/* Decodes a chunk by running the steps of its chain. *out has the elements in their form in
 * data/elems.h: sequences as slots and heap, references as object numbers. *out is empty
 * before, and is the caller's on success; it is empty after an error. *stored remains the caller's.
 * If no filter was applied, its bytes may be moved instead of copied, and it is empty afterwards.
 * The only bytes allowed after the last element are the zeros that HSDS writes after arrays of
 * vlens. -EIO: damaged; -EOPNOTSUPP: a compressor that is not built in, or items of a sequence that
 * are more than four times as large as they are stored; -ENOMEM. */
int codec_chunk_decode(const struct codec_chunk *c, struct bytes *stored, struct elems *out,
		       struct err *err);

/* Decoded size of a chunk object of variable length. head: its first n bytes, at least 16 if it has
 * so many. A Blosc frame states the size in its header; an object without a filter has its own
 * size. If the bytes begin like a zlib stream, the whole object is needed: -EAGAIN if n is less
 * than object_size; otherwise it is inflated, and -EIO means that it is damaged or longer than
 * max_bytes. -EFBIG: a stated size above max_bytes. */
int codec_decoded_size(const struct codec_chunk *c, const uint8_t *head, size_t n,
		       uint64_t object_size, uint64_t *decoded, struct err *err);

/* Writes the elements start + i * step of type t to out, for i in [first, first + n). -EOPNOTSUPP
 * unless t is a whole integer or an IEEE float. */
int codec_arange(const struct dtype *t, double start, double step, uint64_t first, uint64_t n,
		 uint8_t *out, struct err *err);

/* ---- filters of an HDF5 file ---- */

/* The filters of p that every libhdf5 has and that codec_stored_encode() encodes (shuffle, deflate,
 * fletcher32), in order, without the others. out may be p. */
void codec_stored_pipeline(const struct pipeline *p, struct pipeline *out);
/* Encoded size of a chunk of n bytes with a pipeline of codec_stored_pipeline(), bytes. It depends
 * on nothing else: each deflate adds 6, and 5 for each block of 65,535 bytes (at least one); each
 * fletcher32 adds 4. UINT64_MAX on overflow. */
uint64_t codec_stored_size(const struct pipeline *p, uint64_t n);
/* Encodes n bytes to out, which has exactly out_n = codec_stored_size() bytes. deflate does not
 * compress: it writes stored blocks. elem_size: for shuffle. -EINVAL: wrong out_n; -EOPNOTSUPP:
 * another filter; -ENOMEM. */
int codec_stored_encode(const struct pipeline *p, uint32_t elem_size, const uint8_t *plain,
			size_t n, uint8_t *out, size_t out_n, struct err *err);
/* Whether a decoder of the filter is built in. */
bool codec_filter_known(uint32_t id);
/* Decodes bytes that libhdf5 or a registered plug-in encoded with these filters, to at most max
 * bytes. Bit i of filter_mask: filter i was not applied. elem_size: for a shuffle whose parameters
 * do not state it. Bytes after a zlib stream are ignored, as in libhdf5. The caller checks that the
 * chunk is complete. *out is empty before, and the caller's on success; it is empty after an error.
 * -EIO: damaged or too long; -EOPNOTSUPP: a filter without a decoder, or a variant of one;
 * -ENOMEM. */
int codec_hdf5_decode(const struct pipeline *p, uint32_t filter_mask, uint32_t elem_size,
		      const uint8_t *in, size_t n, size_t max, struct bytes *out, struct err *err);

/* The limit for the bytes of a chunk with n bytes of elements. There may be more bytes, of which
 * libhdf5 uses the first n; this limit permits twice as many. */
uint64_t codec_hdf5_limit(uint64_t n);

/* ---- making chunk objects ---- */

/* How to encode a chunk object. Everything is borrowed. */
struct codec_encode {
	const struct codec_chain *chain; /* of codec_plan_object() */
	const struct object_namer *namer;
};
/* The reverse of codec_chunk_decode(): elements to the bytes of a chunk object, in the form that
 * the chain says (codec_chain_served()). in: nelems elements, all in `fixed`. *out is empty before,
 * and the caller's on success; it is empty after an error. -EFBIG: longer than 2^31 bytes; -EIO: a
 * slot of `in` is invalid; -EOPNOTSUPP: a compressor that the service or this program does not have
 * (with its name), region references, and items of a sequence that are more than four times as
 * large as they are stored; -ENOMEM. */
int codec_chunk_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		       struct err *err);

/* Whether the stored bytes of a chunk in an HDF5 file can be its chunk object as they are: the type
 * is plain and packed, and the filters that were applied are those of pipeline_of_object(), with or
 * without a fletcher32 behind them. If so, *keep is the number of bytes that the object has (the
 * checksum is checked and cut off); otherwise 0. Of a zlib stream, only the header is checked; the
 * size of a chunk without filters is not checked. -EIO if the checksum is wrong. */
int codec_verbatim(const struct pipeline *file, uint32_t filter_mask, const struct dtype *t,
		   const uint8_t *bytes, size_t n, size_t *keep, struct err *err);
/* The length of the zlib stream at the beginning of such bytes, of which a reader of HDF5 files
 * ignores the rest. All of it is decoded. plain: bytes of the elements; *decoded: bytes that there
 * are. -EIO: damaged, or more than `plain` bytes; -ENOMEM. */
int codec_verbatim_length(const uint8_t *bytes, size_t n, uint64_t plain, size_t *length,
			  uint64_t *decoded, struct err *err);

#endif
