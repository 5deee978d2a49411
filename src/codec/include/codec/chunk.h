/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the chunks of a bucket and of HDF5 files to elements, and encodes elements as chunk
 * objects or as an HDF5 file stores them. The functions are pure, with bytes in and bytes out; any
 * thread may call them. Sources: HSDS chunk objects (doc/BUCKET.md), Blosc 1 frames (c-blosc,
 * README_CHUNK_FORMAT.rst), RFC 1950, 1951, 1952 and 8878.
 */
#ifndef CODEC_CHUNK_H
#define CODEC_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/mem.h>
#include <codec/chain.h>
#include <data/chunk_data.h>
#include <data/dtype.h>
#include <data/filter.h>
#include <data/object.h>

enum { CODEC_REF_TEXT = 48 /* size of a reference in a chunk object, bytes */ };

/* How to decode a chunk: the chain of its dataset, and what differs between its chunks. Everything
 * is borrowed. */
struct codec_chunk {
	const struct codec_chain *chain;
	uint32_t filter_mask; /* bit i is set if filter i of the file was not applied */
	/* The number of elements that must be stored (grid_covered()) if the chain is `certain`. */
	uint64_t covered;
	uint64_t max_bytes; /* limit of a decoded chunk of variable length */
	const struct object_resolver *resolver;
	bool accepts_shuffled; /* bytes that are shuffled as elements of the type may stay so */
};

/* Returns the size of one element of t in a chunk object, in bytes. It is t->size, except that
 * compounds are packed there, and that each reference takes CODEC_REF_TEXT. Returns 0 if t contains
 * a vlen, because its elements have no fixed size, and UINT64_MAX if the size is above 2^40. */
uint64_t codec_stored_elem_size(const struct dtype *t);

/* Decodes a chunk by running the steps of its chain. *out gets the elements in their form in
 * data/elems.h: sequences as slots and heap, references as object numbers. *out is empty before the
 * call; it belongs to the caller on success, and is empty after an error. *stored remains the
 * caller's. If no step has made new bytes, those of *stored may be moved to *out instead of copied,
 * and *stored is then empty. In a chunk object, only the zeros that HSDS writes after arrays of
 * vlens may follow the last element. Fails with -EIO if the chunk is damaged, with -EOPNOTSUPP if a
 * compressor is not built in or if items of a sequence are more than four times as large as they
 * are stored, and with -ENOMEM. */
int codec_chunk_decode(const struct codec_chunk *c, struct bytes *stored, struct chunk_data *out,
		       struct err *err);

/* Gets the decoded size of a chunk object of variable length, in bytes. If the chain is not one of
 * codec_plan_object(), this is the size of the elements. `head` has the first n bytes of the
 * object. A Blosc frame states the size in its header; an object without a filter has its own size.
 * If the bytes begin like a zlib stream, the whole object is needed and inflated. Fails with
 * -EAGAIN if n is too small: less than 16 and less than object_size, or less than object_size for a
 * zlib stream. Fails with -EFBIG if the size of a frame or of an object without a filter is above
 * max_bytes, with -EIO if a zlib stream is damaged or longer than max_bytes, and with -ENOMEM. */
int codec_decoded_size(const struct codec_chunk *c, const uint8_t *head, size_t n,
		       uint64_t object_size, uint64_t *decoded, struct err *err);

/* Writes the elements start + i * step of type t to out, for i in [first, first + n). Fails with
 * -EOPNOTSUPP if t is neither an integer that uses all its bits nor an IEEE float. */
int codec_arange(const struct dtype *t, double start, double step, uint64_t first, uint64_t n,
		 uint8_t *out, struct err *err);

/* ---- filters of an HDF5 file ---- */

/* Copies the filters of p that every libhdf5 has and that codec_slot_make() encodes (shuffle,
 * deflate, fletcher32), in their order. The other filters are left out. out may be p. */
void codec_stored_pipeline(const struct pipeline *p, struct pipeline *out);
/* Returns the encoded size of a chunk of n bytes with a pipeline of codec_stored_pipeline(), in
 * bytes. It depends on nothing else: each deflate adds 6, and 5 for each block of 65,535 bytes (at
 * least one); each fletcher32 adds 4. Returns UINT64_MAX on overflow. */
uint64_t codec_stored_size(const struct pipeline *p, uint64_t n);

/* A slot is an encoded chunk of which parts are made when they are read: the blocks of a deflate
 * that is the last filter, and elements that are still shuffled although there is no filter.
 * deflate does not compress: it writes stored blocks. */

/* Makes a slot of the elements of a chunk, in place. If they are shuffled, the first filter is a
 * shuffle, or there is none. elem_size is the size of an element. A slot that is deflated
 * (codec_slot_is_deflated()) is read with codec_stored_read(), any other with chunk_data_read().
 * Fails with -EOPNOTSUPP if there is a filter that codec_stored_pipeline() leaves out, and with
 * -ENOMEM. */
int codec_slot_make(const struct pipeline *p, uint32_t elem_size, struct chunk_data *d,
		    struct err *err);
/* Copies bytes [at, at + n) of the stream of stored blocks that has the bytes of a slot. */
void codec_stored_read(const struct chunk_data *d, uint64_t at, uint8_t *out, size_t n);
/* Returns whether the last filter is a deflate. */
bool codec_slot_is_deflated(const struct pipeline *p);

/* Returns whether a decoder of the filter is built in. */
bool codec_filter_known(uint32_t id);
/* Decodes bytes that libhdf5 or a registered plug-in encoded with these filters, to at most max
 * bytes. Bit i of filter_mask is set if filter i was not applied. elem_size is for a shuffle whose
 * parameters do not state it. Bytes after a zlib stream are ignored, as in libhdf5. The caller
 * checks that the chunk is complete. *out is empty before the call; it belongs to the caller on
 * success, and is empty after an error. Fails with -EIO if the bytes are damaged or decode to more
 * than max, with -EOPNOTSUPP if there is no decoder for a filter or for this variant of it, and
 * with -ENOMEM. */
int codec_hdf5_decode(const struct pipeline *p, uint32_t filter_mask, uint32_t elem_size,
		      const uint8_t *in, size_t n, size_t max, struct bytes *out, struct err *err);

/* Returns the most bytes to which a chunk with n bytes of elements may decode. libhdf5 uses the
 * first n of them; this limit permits about twice as many. */
uint64_t codec_hdf5_limit(uint64_t n);

/* ---- making chunk objects ---- */

/* How to encode a chunk object. Everything is borrowed. */
struct codec_encode {
	const struct codec_chain *chain; /* of codec_plan_object() */
	const struct object_namer *namer;
};
/* Does the reverse of codec_chunk_decode(): encodes elements to the bytes of a chunk object, in the
 * form that the chain says (codec_chain_served()). `in` has nelems elements, all in `fixed`. *out
 * is empty before the call; it belongs to the caller on success, and is empty after an error. Fails
 * with -EFBIG if the result is longer than 2^31 bytes or the chunk too large for a Blosc frame, and
 * with -EIO if `in` has another size or an invalid slot. Fails with -EOPNOTSUPP for a compressor
 * that the service or this program does not have (the message has its name), for region references,
 * for items of a sequence that are more than four times as large as they are stored, and for
 * elements that are too large for bitshuffle. Also fails with -ENOMEM. */
int codec_chunk_encode(const struct codec_encode *c, const struct elems *in, struct bytes *out,
		       struct err *err);

/* Finds out whether the stored bytes of a chunk in an HDF5 file can be its chunk object as they
 * are. The type must be plain and packed, and the filters that were applied must be those of
 * pipeline_of_object(), which fletcher32 may follow. If so, *keep is the number of bytes that the
 * object has: the checksums are checked and cut off. Otherwise *keep is 0. Of a zlib stream, only
 * the header is checked; the size of a chunk without filters is not checked. Fails with -EIO if a
 * checksum is wrong. */
int codec_verbatim(const struct pipeline *file, uint32_t filter_mask, const struct dtype *t,
		   const uint8_t *bytes, size_t n, size_t *keep, struct err *err);
/* Gets the length of the zlib stream at the beginning of such bytes. A reader of HDF5 files ignores
 * the bytes after it. The function decodes the whole stream. `plain` is the number of bytes of the
 * elements; *decoded becomes the number of bytes to which the stream decodes. Fails with -EIO if
 * the stream is damaged or decodes to more than `plain` bytes, and with -ENOMEM. */
int codec_verbatim_length(const uint8_t *bytes, size_t n, uint64_t plain, size_t *length,
			  uint64_t *decoded, struct err *err);

#endif
