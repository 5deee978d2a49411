/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes of an HDF5 integer or IEEE 754 type. Pure. */
#ifndef DATA_NUMBER_H
#define DATA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the low `size` bytes (1 to 8) of an integer. */
void number_put_int(uint8_t *at, uint32_t size, bool big_endian, uint64_t bits);
/* Writes the nearest value of an IEEE 754 type of `size` bytes (2, 4 or 8); ties go to even, values
 * out of range become infinite. */
void number_put_float(uint8_t *at, uint32_t size, bool big_endian, double v);
/* The reverse: the bytes of an integer as its low bits, and of an IEEE 754 type as a double, which
 * has the same value. A NaN keeps its sign and the leading bits of its payload. */
uint64_t number_get_int(const uint8_t *at, uint32_t size, bool big_endian);
double number_get_float(const uint8_t *at, uint32_t size, bool big_endian);

#endif
