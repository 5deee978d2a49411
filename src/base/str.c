/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows: see str.h. A text is for one thread. */
#include <base/str.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void spoil(struct str *s)
{
	str_wipe(s);
	s->bad = true;
}

void str_addn(struct str *s, const char *text, size_t n)
{
	if (s->bad)
		return;
	if (bytes_reserve(&s->b, n + 1)) {
		spoil(s);
		return;
	}
	if (n)
		memcpy(s->b.data + s->b.len, text, n);
	s->b.len += n;
	s->b.data[s->b.len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addf(struct str *s, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || s->bad || bytes_reserve(&s->b, (size_t)n + 1)) {
		spoil(s);
	} else {
		vsnprintf((char *)s->b.data + s->b.len, (size_t)n + 1, fmt, again);
		s->b.len += (size_t)n;
	}
	va_end(again);
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
