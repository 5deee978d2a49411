/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive-descent reader over the bounded cursor, with a depth. Pure. */
#include "flat_json.h"

#include <base/cursor.h>
#include <base/hex.h>

#include <errno.h>
#include <string.h>

struct reading {
	struct cursor in;
	const char *name;
	struct str *out;
	bool found;
};

static int peek(const struct cursor *c)
{
	return cur_left(c) ? *c->pos : -1;
}

static void skip_blank(struct cursor *c)
{
	while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r')
		cur_skip(c, 1);
}

static void fail(struct reading *r)
{
	r->in.bad = true;
}

static bool accept(struct reading *r, char c)
{
	skip_blank(&r->in);
	if (peek(&r->in) != c)
		return false;
	cur_skip(&r->in, 1);
	return true;
}

static void expect(struct reading *r, char c)
{
	if (!accept(r, c))
		fail(r);
}

/* ---- strings ---- */

static uint32_t hex4(struct reading *r)
{
	uint32_t v = 0;
	for (int i = 0; i < 4; i++) {
		const int digit = hex_digit(cur_u8(&r->in));
		if (digit < 0) {
			fail(r);
			return 0;
		}
		v = v << 4 | (uint32_t)digit;
	}
	return v;
}

static void add_utf8(struct str *out, uint32_t c)
{
	const char bytes[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
			       (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))};
	const char two[2] = {(char)(0xc0 | c >> 6), bytes[3]};
	const char three[3] = {(char)(0xe0 | c >> 12), bytes[2], bytes[3]};
	const char one = (char)c;
	if (c < 0x80)
		str_addn(out, &one, 1);
	else if (c < 0x800)
		str_addn(out, two, sizeof(two));
	else if (c < 0x10000)
		str_addn(out, three, sizeof(three));
	else
		str_addn(out, bytes, sizeof(bytes));
}

static void read_unicode(struct reading *r, struct str *out)
{
	uint32_t c = hex4(r);
	if (c >= 0xd800 && c < 0xdc00) {
		if (cur_u8(&r->in) != '\\' || cur_u8(&r->in) != 'u')
			fail(r);
		const uint32_t low = hex4(r);
		if (low < 0xdc00 || low > 0xdfff)
			fail(r);
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if ((c >= 0xdc00 && c < 0xe000) || c == 0) {
		fail(r); /* half a pair; or a NUL, which nobody's secret holds */
	}
	if (cur_ok(&r->in))
		add_utf8(out, c);
}

static void read_escape(struct reading *r, struct str *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char c = (char)cur_u8(&r->in);
	const char *at = c ? strchr(from, c) : NULL;
	if (c == 'u')
		read_unicode(r, out);
	else if (at)
		str_addn(out, to + (at - from), 1);
	else
		fail(r);
}

/* Behind the opening quote. */
static void read_string(struct reading *r, struct str *out)
{
	while (cur_ok(&r->in)) {
		const char c = (char)cur_u8(&r->in);
		if (c == '"')
			return;
		if (c == '\\')
			read_escape(r, out);
		else if ((unsigned char)c < 0x20)
			fail(r);
		else
			str_addn(out, &c, 1);
	}
}

/* ---- values ---- */

static void read_value(struct reading *r, unsigned int depth);

static void read_member(struct reading *r, unsigned int depth)
{
	auto_secret struct str name = {0}, value = {0};
	expect(r, '"');
	read_string(r, &name);
	expect(r, ':');
	if (depth > 1 || !accept(r, '"')) {
		read_value(r, depth);
		return;
	}
	read_string(r, &value);
	if (!str_ok(&name) || !str_ok(&value))
		r->out->bad = true;
	if (r->found || strcmp(str_text(&name), r->name) != 0)
		return;
	r->found = true;
	str_add(r->out, str_text(&value));
}

static void read_members(struct reading *r, unsigned int depth)
{
	if (accept(r, '}'))
		return;
	do
		read_member(r, depth);
	while (cur_ok(&r->in) && accept(r, ','));
	expect(r, '}');
}

static void read_elements(struct reading *r, unsigned int depth)
{
	if (accept(r, ']'))
		return;
	do
		read_value(r, depth);
	while (cur_ok(&r->in) && accept(r, ','));
	expect(r, ']');
}

/* Numbers, true, false, null: their characters are checked, not their grammar. */
static void read_word(struct reading *r)
{
	size_t n = 0;
	while (peek(&r->in) > 0 &&
	       strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", peek(&r->in))) {
		cur_skip(&r->in, 1);
		n++;
	}
	if (n == 0)
		fail(r);
}

static void read_value(struct reading *r, unsigned int depth)
{
	auto_secret struct str ignored = {0};
	if (depth >= FLAT_JSON_DEPTH_MAX)
		fail(r);
	if (!cur_ok(&r->in))
		return;
	if (accept(r, '{'))
		read_members(r, depth + 1);
	else if (accept(r, '['))
		read_elements(r, depth + 1);
	else if (accept(r, '"'))
		read_string(r, &ignored);
	else
		read_word(r);
}

int flat_json_get(const char *text, size_t n, const char *name, struct str *out)
{
	struct reading r = {.in = cursor_of(text, n), .name = name, .out = out};
	expect(&r, '{');
	if (cur_ok(&r.in))
		read_members(&r, 1);
	skip_blank(&r.in);
	if (!cur_ok(&r.in) || cur_left(&r.in))
		return -EINVAL;
	if (!str_ok(out))
		return -ENOMEM;
	return r.found ? 0 : -ENOENT;
}
