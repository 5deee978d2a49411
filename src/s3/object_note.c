/* SPDX-License-Identifier: Apache-2.0 */
/* See object_note.h. */
#include "object_note.h"

#include <string.h>

static const char digits[] = "0123456789ABCDEF";

/* As uri_encode(): RFC 3986, unreserved. */
static bool is_plain(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~", c));
}

static void encode(const char *note, char *value)
{
	for (; *note; note++) {
		const unsigned char c = (unsigned char)*note;
		if (is_plain(c)) {
			*value++ = (char)c;
			continue;
		}
		*value++ = '%';
		*value++ = digits[c >> 4];
		*value++ = digits[c & 15];
	}
	*value = '\0';
}

size_t s3_note_header(const char *note, char value[S3_NOTE_VALUE], struct sigv4_pair *header)
{
	if (!note)
		return 0;
	encode(note, value);
	*header = (struct sigv4_pair){S3_NOTE_HEADER, value};
	return 1;
}

static int digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* Returns the byte that three characters "%XX" stand for, or 0 if there is none. */
static unsigned char escaped(const char *text)
{
	const int high = digit(text[1]), low = high < 0 ? -1 : digit(text[2]);
	const unsigned char c = low < 0 ? 0 : (unsigned char)(high << 4 | low);
	return is_plain(c) ? 0 : c;
}

bool s3_note_read(const char *value, char note[STORE_NOTE_MAX + 1])
{
	size_t n = 0;
	for (; *value; n++) {
		const bool is_escape = *value == '%';
		const unsigned char c = (unsigned char)(is_escape ? escaped(value) : *value);
		if (n == STORE_NOTE_MAX || !c || (!is_escape && !is_plain(c)))
			return false;
		note[n] = (char)c;
		value += is_escape ? 3 : 1;
	}
	note[n] = '\0';
	return true;
}
