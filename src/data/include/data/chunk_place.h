/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a chunk in the store: an object, or a part of it. */
#ifndef DATA_CHUNK_PLACE_H
#define DATA_CHUNK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <data/reference.h>

#define CHUNK_TO_END UINT64_MAX

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
	uint64_t length; /* CHUNK_TO_END means up to the end of the object */
	/* The object holds several chunks of the dataset, each of which is a range. `first` is the
	 * lowest of their numbers. */
	bool is_shared;
	uint64_t first;
	uint64_t object_size; /* bytes of the object, if it is shared and no shard */
	/* The rest of the chunk is outside of the extent, and is not stored. */
	bool ends_early;
	uint32_t filter_mask; /* bit i is set if filter i of the file was not applied */
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
