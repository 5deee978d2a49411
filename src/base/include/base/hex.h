/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, of either case. Pure. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

/* The digit's value, 0 to 15; -1 for what is none. */
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

#endif
