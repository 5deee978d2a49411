/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a chunk in the store: an object, a part of it, and how the chunk is encoded there.
 */
#ifndef DATA_CHUNK_PLACE_H
#define DATA_CHUNK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_TO_END UINT64_MAX

/* How a stored chunk is encoded. codec/ implements each encoding. */
enum chunk_encoding {
	ENCODING_HSDS,	    /* inflate, then unshuffle if the dataset records shuffle */
	ENCODING_HSDS_PLAIN /* the same, but an inflated chunk is never unshuffled */
};

struct chunk_place {
	bool absent; /* the chunk is not stored; the other fields are not valid */
	char *key;   /* key of the object that holds the chunk, in the caller's buffer */
	size_t room; /* bytes of that buffer */
	uint64_t offset;
	uint64_t length; /* CHUNK_TO_END: from offset to the end of the object */
	enum chunk_encoding encoding;
};

#endif
