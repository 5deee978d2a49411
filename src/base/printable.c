/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes foreign text fit for a line of a log or a terminal. Keys, link names and server replies
 * end up in messages; a newline in one of them would forge a line, an escape sequence would
 * drive the terminal. Pure; any thread.
 */
#include "printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the UTF-8 sequence at s (RFC 3629: no overlong forms, no surrogates, nothing over
 * U+10FFFF), 0 when it is none. The NUL at the end of s stops the look ahead. */
static size_t utf8_length(const uint8_t *s)
{
	uint8_t lo = 0x80, hi = 0xbf; /* range of the second byte */
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static bool is_control(const uint8_t *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

size_t printable(char *out, size_t cap, const char *in)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *s = (const uint8_t *)in;
	size_t len = 0;

	while (*s) {
		size_t n = utf8_length(s);

		if (n && !is_control(s)) {
			if (cap - len <= n)
				break;
			memcpy(out + len, s, n);
			len += n;
			s += n;
			continue;
		}
		/* Byte by byte: the second byte of a C1 control is no UTF-8 by itself. */
		if (cap - len <= 4)
			break;
		out[len++] = '\\';
		out[len++] = 'x';
		out[len++] = hex[*s >> 4];
		out[len++] = hex[*s & 15];
		s++;
	}
	out[len] = '\0';
	return len;
}
