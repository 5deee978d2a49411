/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes foreign text. Keys, link names and server responses appear in messages. A newline in one
 * of them would forge a line of the log, and an escape sequence would control the terminal. Pure;
 * any thread.
 */
#include <base/printable.h>

#include <stdint.h>
#include <string.h>

#include <base/utf8.h>

size_t printable(char *out, size_t cap, const char *in)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *s = (const uint8_t *)in;
	size_t left = strlen(in), len = 0;
	while (left > 0) {
		size_t n = utf8_length((const char *)s, left);
		if (n && !(s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0))) {
			if (cap - len <= n)
				break;
			memcpy(out + len, s, n);
			len += n;
			s += n;
			left -= n;
			continue;
		}
		/* One byte at a time: the second byte of a C1 control is not UTF-8 by itself. */
		if (cap - len <= 4)
			break;
		out[len++] = '\\';
		out[len++] = 'x';
		out[len++] = hex[*s >> 4];
		out[len++] = hex[*s & 15];
		s++;
		left--;
	}
	out[len] = '\0';
	return len;
}
