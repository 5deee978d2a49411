/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python writes it; see writer.h. Pure. */
#include <json/writer.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <base/utf8.h>

#include <json/base64.h>

static void put(struct writer *w, const char *s, size_t n)
{
	if (!w->bad && bytes_append(w->out, s, n))
		w->bad = true;
}

static void separate(struct writer *w)
{
	if (w->behind)
		put(w, ", ", 2);
	w->behind = true;
}

void write_json(struct writer *w, const char *text, size_t n)
{
	separate(w);
	put(w, text, n);
}

static void put_literal(struct writer *w, const char *s)
{
	write_json(w, s, strlen(s));
}

void write_open(struct writer *w, char bracket)
{
	separate(w);
	put(w, &bracket, 1);
	w->behind = false;
}

void write_close(struct writer *w, char bracket)
{
	put(w, &bracket, 1);
	w->behind = true;
}

/* ---- text ---- */

/* Returns the code point of a character of n bytes, which utf8_length() has checked. */
static uint32_t code_point(const uint8_t *s, size_t n)
{
	uint32_t c = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static void put_unit(struct writer *w, uint32_t unit)
{
	char text[8];
	snprintf(text, sizeof(text), "\\u%04x", unit & 0xffff);
	put(w, text, 6);
}

static void put_escaped(struct writer *w, uint32_t c)
{
	static const char from[] = "\"\\\b\f\n\r\t";
	static const char to[] = "\"\\bfnrt";
	const char *at = c && c < 0x80 ? strchr(from, (int)c) : NULL;
	if (at) {
		const char pair[] = {'\\', to[at - from]};
		put(w, pair, 2);
	} else if (c > 0xffff) {
		put_unit(w, 0xd800 + ((c - 0x10000) >> 10));
		put_unit(w, 0xdc00 + (c & 0x3ff));
	} else {
		put_unit(w, c);
	}
}

static bool is_direct(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes text without separators. */
static void put_text(struct writer *w, const char *text, size_t n)
{
	put(w, "\"", 1);
	for (size_t i = 0; i < n;) {
		size_t run = 0;
		while (i + run < n && is_direct(text[i + run]))
			run++;
		put(w, text + i, run);
		i += run;
		if (i == n)
			break;
		const size_t len = utf8_length(text + i, n - i);
		const uint8_t *at = (const uint8_t *)text + i;
		if (len)
			put_escaped(w, code_point(at, len));
		else
			put_unit(w, 0xdc00u + *at); /* 0x80 or more */
		i += len ? len : 1;
	}
	put(w, "\"", 1);
}

void write_text(struct writer *w, const char *text, size_t n)
{
	separate(w);
	put_text(w, text, n);
}

void write_word(struct writer *w, const char *word)
{
	write_text(w, word, strlen(word));
}

void write_key_text(struct writer *w, const char *text, size_t n)
{
	write_text(w, text, n);
	put(w, ": ", 2);
	w->behind = false;
}

void write_key(struct writer *w, const char *word)
{
	write_key_text(w, word, strlen(word));
}

/* ---- other values ---- */

void write_uint(struct writer *w, uint64_t v)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, v);
	put_literal(w, text);
}

void write_int(struct writer *w, int64_t v)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, v);
	put_literal(w, text);
}

void write_real(struct writer *w, double v)
{
	char text[40];
	if (isnan(v) || isinf(v)) {
		put_literal(w, isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		const double again = strtod(text, NULL);
		if (memcmp(&again, &v, sizeof(v)) == 0)
			break;
	}
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
	put_literal(w, text);
}

void write_bool(struct writer *w, bool v)
{
	put_literal(w, v ? "true" : "false");
}

void write_null(struct writer *w)
{
	put_literal(w, "null");
}

void write_time(struct writer *w, int64_t ns)
{
	char text[40];
	snprintf(text, sizeof(text), "%" PRId64 ".%06" PRId64, ns / 1000000000,
		 ns % 1000000000 / 1000);
	put_literal(w, text);
}

void write_base64(struct writer *w, const void *bytes, size_t n)
{
	separate(w);
	put(w, "\"", 1);
	if (!w->bad && base64_encode(bytes, n, w->out))
		w->bad = true;
	put(w, "\"", 1);
}

/* ---- members ---- */

void write_member_word(struct writer *w, const char *key, const char *word)
{
	write_key(w, key);
	write_word(w, word);
}

void write_member_uint(struct writer *w, const char *key, uint64_t v)
{
	write_key(w, key);
	write_uint(w, v);
}

void write_member_open(struct writer *w, const char *key, char bracket)
{
	write_key(w, key);
	write_open(w, bracket);
}

void write_member_list(struct writer *w, const char *key, uint32_t n, const uint32_t *numbers)
{
	write_member_open(w, key, '[');
	for (uint32_t i = 0; i < n; i++)
		write_uint(w, numbers[i]);
	write_close(w, ']');
}
