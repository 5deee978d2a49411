/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all of an image and reports what cannot be read. */
#ifndef ENGINE_VERIFY_H
#define ENGINE_VERIFY_H

#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <image/image.h>

struct verify_result {
	uint64_t bytes;	   /* that were read */
	uint64_t failures; /* ranges that could not be read: one for each damaged chunk */
};
/* Returns the bytes of an image that are not in a hole, as far as that is known without requests. A
 * sparse copy stores only these. */
uint64_t verify_data_bytes(const struct image *img);

/* Calls sink->line with the message of each failure. Returns 0, or the error that has stopped it:
 * -ENOMEM or the sink's result. */
int verify_image(struct image *img, const struct engine_info_sink *sink, struct verify_result *out,
		 struct err *err);

#endif
