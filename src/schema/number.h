/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in JSON values. They are converted as numpy does it, because the service and its clients
 * read the values with numpy:
 *
 *   to an integer  modulo 2^n, so 300 in an int8 is 44. A real is rounded toward zero, then limited
 *                  to the range of 64 bits; NaN becomes 0
 *   to a float     to the nearest value, ties to even; a value out of range becomes infinite
 */
#ifndef SCHEMA_NUMBER_H
#define SCHEMA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schema_num {
	uint64_t bits; /* the value as an integer, modulo 2^64 */
	double real;   /* the value as a real */
};

struct schema_num schema_num_int(int64_t v);
struct schema_num schema_num_real(double v);
/* Parses text such as "5", " -7 ", "2.7", "1e400", "nan", "-Infinity", and integers of any length.
 * False: it is not a number. */
bool schema_num_text(const char *s, size_t n, struct schema_num *out);

#endif
