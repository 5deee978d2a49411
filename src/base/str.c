/* SPDX-License-Identifier: Apache-2.0 */
/* See str.h. */
#include <base/str.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/printable.h>
#include <base/utf8.h>

static void spoil(struct str *s)
{
	str_wipe(s);
	s->bad = true;
}

void str_reserve(struct str *s, size_t n)
{
	if (s->bad)
		return;
	if (bytes_reserve(&s->b, n + 1))
		spoil(s);
	else
		s->b.data[s->b.len] = '\0';
}

void str_addn(struct str *s, const char *text, size_t n)
{
	str_reserve(s, n);
	if (s->bad)
		return;
	if (n)
		memcpy(s->b.data + s->b.len, text, n);
	s->b.len += n;
	s->b.data[s->b.len] = '\0';
}

int str_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void str_add(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addv(struct str *s, const char *fmt, va_list ap)
{
	const size_t room = s->b.cap - s->b.len;
	va_list again;
	if (s->bad)
		return;
	va_copy(again, ap);
	const int n = vsnprintf(room ? (char *)s->b.data + s->b.len : NULL, room, fmt, ap);
	if (n < 0 || ((size_t)n >= room && bytes_reserve(&s->b, (size_t)n + 1))) {
		spoil(s);
	} else {
		if ((size_t)n >= room)
			vsnprintf((char *)s->b.data + s->b.len, (size_t)n + 1, fmt, again);
		s->b.len += (size_t)n;
	}
	va_end(again);
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str_addv(s, fmt, ap);
	va_end(ap);
}

size_t str_add_character(struct str *s, const char *text, size_t n)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	const size_t len = utf8_length(text, n);
	if (len)
		str_addn(s, text, len);
	else
		str_add(s, replacement);
	return len ? len : 1;
}

void str_add_json(struct str *s, const char *text)
{
	str_add(s, "\"");
	for (size_t left = strlen(text), n = 0; left; text += n, left -= n) {
		const unsigned char c = (unsigned char)*text;
		n = 1;
		if (c < 0x20)
			str_addf(s, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			str_addf(s, "\\%c", c);
		else
			n = str_add_character(s, text, left);
	}
	str_add(s, "\"");
}

void str_add_printable(struct str *s, const char *text)
{
	const size_t cap = 4 * strlen(text) + 1; /* a byte becomes four at most */
	if (s->bad)
		return;
	if (bytes_reserve(&s->b, cap))
		spoil(s);
	else
		s->b.len += printable((char *)s->b.data + s->b.len, cap, text);
}

void str_add_time(struct str *s, int64_t ns)
{
	enum { NS = 1000000000 };
	int64_t frac = ns % NS;
	time_t seconds = (time_t)(ns / NS);
	if (frac < 0) {
		frac += NS;
		seconds--;
	}
	struct tm tm;
	char date[64];
	if (gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		str_addf(s, "%s.%06dZ", date, (int)(frac / 1000));
	else
		str_add(s, "unknown");
}

void str_cut(struct str *s, size_t n)
{
	if (n < s->b.len) {
		s->b.len = n;
		s->b.data[n] = '\0';
	}
}

const char *str_text(const struct str *s)
{
	return s->b.data ? (const char *)s->b.data : "";
}

char *str_take(struct str *s)
{
	if (!s->b.data)
		str_addn(s, "", 0);
	char *text = (char *)s->b.data;
	s->b = (struct bytes){0};
	return text;
}

void str_release(struct str *s)
{
	bytes_release(&s->b);
}

void str_wipe(struct str *s)
{
	if (s->b.data)
		explicit_bzero(s->b.data, s->b.cap);
	bytes_release(&s->b);
}
