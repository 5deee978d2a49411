/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of filter 3, a u32 LE that follows the data. */
#ifndef CODEC_FLETCHER32_H
#define CODEC_FLETCHER32_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

enum { FLETCHER32_SIZE = 4 };

/* Checks the checksum at the end of n bytes. *data_n becomes the number of bytes before it. Fails
 * with -EIO if the checksum is wrong or missing. */
int fletcher32_check(const uint8_t *in, size_t n, size_t *data_n, struct err *err);

#endif
