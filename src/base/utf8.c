/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629, section 4). Pure; any thread. */
#include <base/utf8.h>

#include <stdint.h>
#include <string.h>

size_t utf8_length(const char *text, size_t left)
{
	const uint8_t *s = (const uint8_t *)text;
	uint8_t lo = 0x80, hi = 0xbf; /* range of the second byte */
	size_t n;
	if (left == 0)
		return 0;
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
	if (n > left || s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_valid(const char *s, size_t n)
{
	while (n > 0) {
		size_t len = utf8_length(s, n);
		if (len == 0)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

bool utf8_is_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)s[i] >= 0x80)
			return false;
	return true;
}

bool utf8_in_xml(const char *s)
{
	for (; *s; s++) {
		const uint8_t c = (uint8_t)*s;
		if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
			return false;
		if (strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0)
			return false;
	}
	return true;
}
