/* SPDX-License-Identifier: Apache-2.0 */
/* Where the stored bytes of a chunk are, and what they have become there. */
#ifndef DATA_CHUNK_PLACE_H
#define DATA_CHUNK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_TO_END UINT64_MAX

/* How elements become the bytes of a stored chunk; codec/ knows what each means. */
enum chunk_encoding {
	ENCODING_HSDS,	    /* a zlib stream is shuffled where the dataset records shuffle */
	ENCODING_HSDS_PLAIN /* the same, but a zlib stream is never shuffled */
};

struct chunk_place {
	bool absent; /* nothing is stored of this chunk; the rest does not count */
	char *key;   /* of the object that holds it; in the caller's buffer of `room` bytes */
	size_t room;
	uint64_t offset,
		length; /* the part of the object; length CHUNK_TO_END: all behind offset */
	enum chunk_encoding encoding;
};

#endif
