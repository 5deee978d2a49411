/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as JSON values spell them, and numbers as bytes of an HDF5 type. Conversions are those of
 * numpy, through which the service and its clients read the same values:
 *
 *   to integers: modulo 2^n (300 in an int8 is 44); a fraction is cut toward zero, then what is
 *     beyond 64 bits is clamped to them; NaN is 0.
 *   to floats: nearest even, beyond the range infinite.
 */
#ifndef SCHEMA_NUMBER_H
#define SCHEMA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schema_num {
	uint64_t bits; /* as an integer, modulo 2^64 */
	double real;
};

struct schema_num schema_num_int(int64_t v);
struct schema_num schema_num_real(double v);
/* "5", " -7 ", "2.7", "1e400", "nan", "-Infinity", integers of any length. False: no number. */
bool schema_num_text(const char *s, size_t n, struct schema_num *out);

/* size: 1 to 8. */
void schema_put_int(uint8_t *at, uint32_t size, bool big_endian, uint64_t bits);
/* size: 2, 4 or 8. */
void schema_put_float(uint8_t *at, uint32_t size, bool big_endian, double v);

#endif
