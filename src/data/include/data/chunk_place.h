/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a chunk in the store: an object, a part of it, and how the chunk is encoded there.
 */
#ifndef DATA_CHUNK_PLACE_H
#define DATA_CHUNK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/reference.h>

#define CHUNK_TO_END UINT64_MAX

/* How a stored chunk is encoded. codec/ implements each encoding. */
enum chunk_encoding {
	ENCODING_HSDS,	     /* inflate, then unshuffle if the dataset records shuffle */
	ENCODING_HSDS_PLAIN, /* the same, but an inflated chunk is never unshuffled */
	ENCODING_HDF5,	     /* as in an HDF5 file: the filters of the pipeline and filter_mask */
};

struct chunk_place {
	bool absent; /* the chunk is not stored; the other fields are not valid */
	/* The HDF5 file that holds the chunk, or NULL if the object `key` holds it. It is valid as
	 * long as this struct, the caller's buffer and the tree. */
	const struct reference_file *file;
	/* The caller's buffer of `room` bytes. It holds the key of the object that holds the chunk.
	 * If `file` is set, it holds the URI of a file that a record names, or is empty. */
	char *key;
	size_t room;
	uint64_t offset;
	uint64_t length;      /* CHUNK_TO_END means up to the end of the object */
	uint32_t filter_mask; /* of ENCODING_HDF5; bit i is set if filter i was not applied */
	enum chunk_encoding encoding;
	/* With SCHEMA_NEEDS_RECORD, the record is element number `record`, in row-major order, of
	 * the dataset `table`. */
	uint32_t table;
	uint64_t record;
	/* With SCHEMA_NEEDS_INDEX, this is true if a record that is stored says that there is no
	 * such chunk. */
	bool denied;
	struct reference_file record_file; /* memory for `file` */
};

#endif
