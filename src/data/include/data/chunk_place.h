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
	/* NULL: the object `key` holds the chunk. Otherwise this HDF5 file holds it. It is valid as
	 * long as this struct, the caller's buffer and the tree. */
	const struct reference_file *file;
	/* The caller's buffer of `room` bytes: the key of the object that holds the chunk; if
	 * `file` is set, the URI of a file that a record names, or empty. */
	char *key;
	size_t room;
	uint64_t offset;
	uint64_t length;      /* CHUNK_TO_END: from offset to the end of the object */
	uint32_t filter_mask; /* bit i: filter i of the file was not applied */
	/* For SCHEMA_NEEDS_RECORD: element number `record`, in row-major order, of the dataset
	 * `table`. */
	uint32_t table;
	uint64_t record;
	/* For SCHEMA_NEEDS_INDEX: a record that is stored says that there is no such chunk. */
	bool denied;
	struct reference_file record_file; /* memory for `file` */
};

#endif
