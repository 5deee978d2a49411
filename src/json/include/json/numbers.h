/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in JSON values. They are converted as numpy does it, because the service and its clients
 * read the values with numpy:
 *
 *   to an integer  modulo 2^n, so 300 in an int8 is 44. A real is rounded toward zero, then limited
 *                  to the range of 64 bits; NaN becomes 0
 *   to a float     to the nearest value, ties to even; a value out of range becomes infinite
 */
#ifndef JSON_NUMBERS_H
#define JSON_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_number {
	uint64_t bits; /* the value as an integer, modulo 2^64 */
	double real;   /* the value as a real */
};

struct json_number json_number_int(int64_t v);
struct json_number json_number_real(double v);
/* Parses text such as "5", " -7 ", "2.7", "1e400", "nan", "-Infinity", and integers of any length.
 * Returns false if it is not a number. */
bool json_number_text(const char *s, size_t n, struct json_number *out);

#endif
