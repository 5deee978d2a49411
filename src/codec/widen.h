/* SPDX-License-Identifier: Apache-2.0 */
/* Converts IEEE half precision to single precision. */
#ifndef CODEC_WIDEN_H
#define CODEC_WIDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Converts n numbers of 2 bytes to numbers of 4 bytes in the same byte order. Every value is kept
 * exactly, and a NaN keeps its sign and the bits of its payload. `to` and `from` do not overlap. */
void widen_halves(uint8_t *to, const uint8_t *from, size_t n, bool big_endian);

#endif
