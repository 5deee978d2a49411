/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5's byte shuffle (filter 2): byte 0 of every element, then byte 1 of every element, and so on.
 * The n % elem_size bytes after the last whole element stay as they are. */
#ifndef DATA_SHUFFLE_H
#define DATA_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* `to` has n bytes that do not overlap `from`. If elem_size is 0 or 1, the bytes are copied. */
void shuffle_bytes(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size);
void unshuffle_bytes(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size);
/* Writes only the `len` bytes from `at` on, of the n bytes that unshuffle_bytes() would write. */
void unshuffle_range(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size, size_t at,
		     size_t len);

#endif
