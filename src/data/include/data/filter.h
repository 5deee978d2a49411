/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter pipelines. A pipeline lists its filters in the order in which a writer applies them, as
 * the creation properties of a dataset do. Filters have the ids under which they are registered for
 * HDF5.
 */
#ifndef DATA_FILTER_H
#define DATA_FILTER_H

#include <stdint.h>

enum { FILTER_MAX = 32 /* filters in a pipeline, H5Z_MAX_NFILTERS */, FILTER_MAX_PARAMS = 32 };

enum filter_id {
	FILTER_DEFLATE = 1,
	FILTER_SHUFFLE = 2,
	FILTER_FLETCHER32 = 3,
	FILTER_SZIP = 4,
	FILTER_NBIT = 5,
	FILTER_SCALEOFFSET = 6,
	FILTER_LZF = 32000,
	FILTER_BLOSC = 32001,
	FILTER_LZ4 = 32004,
	FILTER_BITSHUFFLE = 32008,
	FILTER_ZSTD = 32015,
};

struct filter {
	uint32_t id;	  /* enum filter_id or any other registered id */
	const char *name; /* as recorded; may be NULL */
	uint32_t nparams;
	uint32_t params[FILTER_MAX_PARAMS];
};

struct pipeline {
	uint32_t n;
	struct filter f[FILTER_MAX];
};

#endif
