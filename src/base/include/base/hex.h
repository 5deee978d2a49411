/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, of either case. Pure. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Returns the digit's value, 0 to 15, or -1 if c is not a digit. */
static inline int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Writes 2 n lower-case digits and a NUL. */
static inline void hex_encode(const uint8_t *bytes, size_t n, char *text)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * n] = '\0';
}

#endif
