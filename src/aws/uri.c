/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding. Pure. */
#include <aws/uri.h>

#include <base/hex.h>

#include <errno.h>
#include <string.h>

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~", c));
}

void uri_encode(struct str *out, const char *bytes, size_t n, bool keep_slash)
{
	static const char hex[] = "0123456789ABCDEF";
	for (size_t i = 0, plain; i < n; i = plain + 1) {
		for (plain = i; plain < n; plain++)
			if (!is_unreserved(bytes[plain]) && !(keep_slash && bytes[plain] == '/'))
				break;
		str_addn(out, &bytes[i], plain - i);
		if (plain < n) {
			const unsigned char c = (unsigned char)bytes[plain];
			str_addn(out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
		}
	}
}

int uri_decode(const char *text, size_t n, char *out)
{
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		char c = text[i];
		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			const int high = n - i > 2 ? hex_digit(text[i + 1]) : -1;
			const int low = n - i > 2 ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (c == '\0')
			return -EILSEQ;
		out[len++] = c;
	}
	out[len] = '\0';
	return 0;
}
