/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain describes how a stored chunk becomes elements: the steps in the order of decoding, each
 * with the most bytes that it may yield. A schema plans the chain of a dataset once, when it reads
 * the document. What differs between the chunks of a dataset is in struct codec_chunk
 * (codec/chunk.h). The functions are pure; any thread may call them.
 */
#ifndef CODEC_CHAIN_H
#define CODEC_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <base/mem.h>
#include <data/dtype.h>
#include <data/filter.h>

enum codec_step_kind {
	/* Undoes one filter of an HDF5 file. */
	STEP_FILTER,
	/* Undoes what HSDS did to a chunk object: a Blosc frame, a zlib stream, its own form of
	 * bitshuffle, or nothing. The form is detected in the bytes (chunk.c). */
	STEP_SERVICE,
	/* Undoes one codec of a Zarr array. */
	STEP_ARRAY,
	/* Converts the elements of a chunk object, in which compounds are packed, references are
	 * text and sequences are counted, to those of data/elems.h. It is the last step. */
	STEP_ELEMENTS,
};

#define CODEC_UNKNOWN UINT64_MAX

/* A codec of a Zarr array, for codec_plan_array(). */
enum codec_array_codec {
	CODEC_ZLIB,    /* one zlib stream */
	CODEC_GZIP,    /* members of RFC 1952, one after the other */
	CODEC_ZSTD,    /* frames of RFC 8878, one after the other, with or without a stated size */
	CODEC_BLOSC,   /* a Blosc 1 frame */
	CODEC_BZ2,     /* bzip2 streams, one after the other */
	CODEC_LZ4,     /* the decoded size (u32 LE), then one LZ4 block */
	CODEC_SHUFFLE, /* HDF5's shuffle; bytes behind the last whole element are not moved */
	CODEC_CRC32C,  /* a CRC-32C (u32 LE) behind the bytes */
	CODEC_TRANSPOSE, /* the axes of the chunk in another order */
	CODEC_WIDEN,	 /* IEEE half precision, shown as single precision in the same byte order */
};
struct codec_array_step {
	enum codec_array_codec codec;
	uint32_t elem_size; /* SHUFFLE, TRANSPOSE: bytes, not 0; SHUFFLE accepts any other size */
	bool big_endian;    /* WIDEN */
	/* TRANSPOSE. The two arrays are borrowed as long as the chain is used. */
	uint32_t rank;
	const uint64_t *shape; /* of the decoded chunk */
	const uint32_t *order; /* axis i of the stored chunk is axis order[i] of the decoded one */
};

struct codec_step {
	enum codec_step_kind kind;
	uint64_t largest; /* most bytes that the step may yield */
	/* Bytes that the step yields if the mask of the chunk excludes no filter, or CODEC_UNKNOWN.
	 */
	uint64_t exact;
	union {
		struct {
			const struct filter *filter;
			uint32_t elem_size; /* for a shuffle whose parameters do not state it */
			uint32_t bit;	    /* in the filter mask of a chunk */
		};
		struct {
			/* These members say which forms the bytes may have. */
			bool recorded;	 /* the dataset records a filter */
			bool compressor; /* one of them compresses */
			bool deflate;	 /* one of them is deflate */
			bool bitshuffle;
			bool stream;	  /* a zlib stream is possible */
			bool shuffled;	  /* the bytes in such a stream are shuffled */
			uint32_t unknown; /* id of the first other compressor; 0 if none */
			/* Describes how the service encodes chunks. If it is NULL, a chunk is
			 * encoded as a zlib stream of this level, or without a filter if the level
			 * is negative. */
			const struct service_filters *served;
			int level;
		};
		struct codec_array_step array;
	};
};

struct codec_chain {
	const struct dtype *type;
	uint64_t nelems;    /* number of elements in a whole chunk */
	uint64_t elem_size; /* bytes of a stored element; 0 if its length is variable */
	/* Bytes of the stored elements without filters. CODEC_UNKNOWN if their length is variable,
	 * or if there are more than can be decoded. */
	uint64_t plain;
	/* The filters are certainly those of the file. A chunk may then be longer than its
	 * elements, or shorter if those outside of the extent are missing. */
	bool certain;
	uint32_t n;
	const struct codec_step *steps;
};

/* A chain with the memory of its steps. The chain points into it, so it must not be moved. */
struct codec_plan {
	struct codec_chain chain;
	struct codec_step steps[FILTER_MAX];
};

enum codec_object_form {
	OBJECT_SHUFFLED,   /* a zlib stream is shuffled if the recorded filters say so */
	OBJECT_UNSHUFFLED, /* a zlib stream is never shuffled */
};
/* Plans the chain of chunk objects. `p` has the filters that the dataset records; it is not used
 * after the call. `served` says how the service encodes chunks of the dataset; it is borrowed as
 * long as the chain is used. If it is NULL, chunks are encoded in the form of new chunk objects
 * (pipeline_of_object()). */
void codec_plan_object(struct codec_plan *plan, const struct dtype *t, uint64_t nelems,
		       const struct pipeline *p, enum codec_object_form form,
		       const struct service_filters *served);
/* Plans the chain of chunks in an HDF5 file. t is plain. `filters` has n filters, at most
 * FILTER_MAX, which are borrowed as long as the chain is used. `certain` is true if they are
 * certainly those of the file. */
void codec_plan_file(struct codec_plan *plan, const struct dtype *t, uint64_t nelems,
		     const struct filter *filters, uint32_t n, bool certain);
/* Plans the chain of the chunks of a Zarr array. Each chunk has exactly nelems elements. t is
 * plain. elem_size is the size of a stored element in bytes: half of t->size if one of the steps is
 * CODEC_WIDEN, and t->size otherwise. `steps` has n steps in the order of decoding. They are not
 * used after the call, but the arrays of CODEC_TRANSPOSE are borrowed as long as the chain is used.
 * If the chunk is larger than any that can be decoded, the chain has no steps, and `plain` is
 * CODEC_UNKNOWN. Fails with -EINVAL if there are more than FILTER_MAX steps, if the elements have 0
 * bytes, or if a step does not fit: a compressor or a checksum follows CODEC_TRANSPOSE or
 * CODEC_WIDEN, or the shape is not that of the chunk, or the order is no permutation. */
int codec_plan_array(struct codec_plan *plan, const struct dtype *t, uint32_t elem_size,
		     uint64_t nelems, const struct codec_array_step *steps, uint32_t n);
/* Plans the chain of bytes that are no elements: a shard that is encoded as a whole. They are
 * decoded to at most `most` bytes. The steps are those of codec_plan_array(), without
 * CODEC_TRANSPOSE and CODEC_WIDEN. The chain has no type. Fails with -EINVAL if there are more than
 * FILTER_MAX steps, or if a step does not fit. */
int codec_plan_bytes(struct codec_plan *plan, uint64_t most, const struct codec_array_step *steps,
		     uint32_t n);
/* Returns a copy of the chain in the arena, with a copy of `served` and of the arrays of
 * CODEC_TRANSPOSE. The type and the filters are borrowed. Returns NULL if out of memory. */
const struct codec_chain *codec_chain_copy(const struct codec_chain *c, struct arena *a);
/* Returns whether two chains of codec_plan_array() have the same type and the same steps. */
bool codec_chain_equal(const struct codec_chain *a, const struct codec_chain *b);
/* Returns how the service encodes the chunks of a chain of codec_plan_object(). Returns NULL if c
 * is NULL, or if chunks are encoded in the form of new chunk objects. */
const struct service_filters *codec_chain_served(const struct codec_chain *c);

/* The size of a stored chunk. */
struct codec_size {
	bool is_filtered; /* a filter is recorded */
	uint64_t exact;	  /* stored bytes, or CODEC_UNKNOWN */
	uint64_t most;	  /* stored bytes */
	uint64_t plain;	  /* most bytes without filters. CODEC_UNKNOWN if too many to decode */
};
struct codec_size codec_chunk_size(const struct codec_chain *c);

#endif
