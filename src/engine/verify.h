/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all of an image and tells what cannot be read. */
#ifndef ENGINE_VERIFY_H
#define ENGINE_VERIFY_H

#include <stdint.h>

#include <hsmount/err.h>
#include <image/image.h>

struct verify_result {
	uint64_t bytes;	   /* that were read */
	uint64_t failures; /* ranges that could not be: one for each damaged chunk */
};
/* tell: once for each failure; non-zero stops and is returned. -ENOMEM. */
int verify_image(struct image *img, int (*tell)(void *arg, const char *what), void *arg,
		 struct verify_result *out, struct err *err);

#endif
