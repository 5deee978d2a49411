/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter pipelines. A pipeline lists its filters in the order in which a writer applies them, as
 * the creation properties of a dataset do. Filters have the ids under which they are registered for
 * HDF5.
 */
#ifndef DATA_FILTER_H
#define DATA_FILTER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FILTER_MAX = 32,	  /* filters in a pipeline, H5Z_MAX_NFILTERS */
	FILTER_MAX_PARAMS = 65535 /* the file has 16 bits for their number */
};

enum filter_id {
	FILTER_DEFLATE = 1,
	FILTER_SHUFFLE = 2,
	FILTER_FLETCHER32 = 3,
	FILTER_SZIP = 4,
	FILTER_NBIT = 5,
	FILTER_SCALEOFFSET = 6,
	FILTER_BZIP2 = 307,
	FILTER_LZF = 32000,
	FILTER_BLOSC = 32001,
	FILTER_LZ4 = 32004,
	FILTER_BITSHUFFLE = 32008,
	FILTER_ZFP = 32013,
	FILTER_ZSTD = 32015,
	FILTER_VBZ = 32020,
	/* These round numbers when they are written. To read them, nothing is undone. */
	FILTER_BITGROOM = 32022,
	FILTER_BITROUND = 32023,
};

struct filter {
	uint32_t id;	  /* enum filter_id or any other registered id */
	const char *name; /* as recorded; may be NULL */
	uint32_t nparams;
	const uint32_t *params; /* nparams numbers, which live as long as the tree or file */
};

struct pipeline {
	uint32_t n;
	struct filter f[FILTER_MAX];
};

/* The filters that a new chunk object has if a dataset records these: deflate if the dataset
 * records any filter that compresses, and before it shuffle if it records shuffle before the first
 * one that compresses; otherwise none. N-bit and scale-offset do not count as compression. The
 * level is the recorded one if deflate is the first filter that compresses, otherwise 6; shuffle
 * keeps its recorded parameters. These are the forms that the service serves. out may be p.
 */
void pipeline_of_object(const struct pipeline *p, struct pipeline *out);

/* Returns whether the filters have the same ids and parameters. */
bool filters_equal(const struct filter *a, uint32_t na, const struct filter *b, uint32_t nb);

enum service_shuffle { SERVED_SHUFFLE_NONE, SERVED_SHUFFLE_BYTE, SERVED_SHUFFLE_BIT };

/* What the service does to a chunk object when it stores it. Zeros: nothing. */
struct service_filters {
	const char *compressor; /* its name in Blosc; NULL if none */
	uint32_t level;		/* of the compressor, 0 to 9 */
	enum service_shuffle shuffle;
	/* The name of a compressor that the service lists but does not have, so that it cannot read
	 * a chunk, or NULL. */
	const char *refused;
};

#endif
