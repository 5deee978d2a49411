/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw data of a dataset that are byte ranges of HDF5 files, which the domain only refers to: the
 * layouts H5D_CONTIGUOUS_REF, H5D_CHUNKED_REF and H5D_CHUNKED_REF_INDIRECT of HSDS.
 *
 * The grid of such a dataset has the chunks of the file. A contiguous dataset is cut by
 * grid_cut() into chunks of REFERENCE_CUT bytes, each of which is one range.
 */
#ifndef DATA_REFERENCE_H
#define DATA_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { REFERENCE_CUT = 256 << 10 };

enum reference_layout {
	REFERENCE_CONTIGUOUS, /* one range holds all elements */
	REFERENCE_CHUNKED,    /* the document lists the ranges of the chunks */
	REFERENCE_TABLE,      /* a chunk table, which is another dataset, has the ranges */
};

/* An HDF5 file, as the domain refers to it. Texts are NUL-terminated. */
struct reference_file {
	const char *uri;    /* as recorded: "bucket/key", "/key" (in the bucket of the
				domain), "s3://bucket/key", "file:///path" */
	const char *h5path; /* of the dataset in the file; NULL if not recorded */
	/* The version that the domain was made from. NULL and UINT64_MAX mean that it is not
	 * recorded. */
	const char *etag;
	uint64_t size; /* bytes */
};

struct reference_chunk {
	uint64_t number; /* in the grid */
	uint64_t offset, size;
	uint32_t filter_mask; /* bit i is set if filter i was not applied */
};

struct reference {
	enum reference_layout layout;
	/* With REFERENCE_TABLE, uri is NULL if each record of the table names its file. */
	struct reference_file file;
	/* The dataset records all filters that were applied in the file. Otherwise it may lack
	 * some, because HSDS drops those that it cannot apply itself, and filter masks. */
	bool exact;
	uint64_t offset, size; /* of REFERENCE_CONTIGUOUS: the range */
	uint64_t nchunks;      /* of REFERENCE_CHUNKED; a chunk without an entry is absent */
	const struct reference_chunk *chunks; /* in the order of their numbers */
	/* With REFERENCE_TABLE, the number of the dataset whose element at the coordinates of a
	 * chunk is the record of its range, or OBJECT_NONE if the domain does not have it. */
	uint32_t table;
};

#endif
