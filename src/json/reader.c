/* SPDX-License-Identifier: Apache-2.0 */
/* The lexical pass before Jansson and its inverse; see reader.h. */
#include <json/reader.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <base/hex.h>

enum {
	DLE = 0x10,
	TAG_NUL = '0',
	TAG_DLE = '1',
	TAG_SURROGATE = 's',
	TAG_LITERAL = 'n',
	TAG_APART = 'a',     /* in no document */
	BYTE_ORDER_MARK = 3, /* bytes */
	/* Estimated memory of a value in Jansson, bytes. */
	COST_SCALAR = 40,
	COST_STRING = 64,
	COST_CONTAINER = 120,
	COST_APART = 120, /* what the caller makes of a member that is kept apart */
	/* Longer numbers may be out of the range of int64_t or double. They become text, which
	 * numbers.c parses. */
	INT_DIGITS = 19, /* of INT64_MAX */
	SAFE_REAL_LEN = 250,
	SAFE_EXPONENT_DIGITS = 2,
};
#define COST_MAX ((uint64_t)2 << 30)

/* The state of the pass: text[pos, n) has not been read, text[0, kept) is in out already. Nothing
 * is copied before the first rewrite. */
struct pass {
	const char *text;
	size_t n;
	size_t pos;
	size_t kept;
	struct bytes out;
	unsigned int depth;
	uint64_t cost;
	bool lenient;
	/* The object that is kept apart. Positions are those in the text that Jansson gets. */
	const char *const *path; /* its name, or that of the object that contains it and its name */
	unsigned int levels;	 /* names of the path; 0 if nothing is kept apart */
	bool at_member;		 /* a name of the path was read, and then nothing but a colon */
	bool in_parent;		 /* in the value of the first name, if there are two */
	bool in_member;
	uint64_t cost_before; /* of the document without it */
	struct apart {
		size_t from, to; /* of the object; to is 0 if there is none */
	} apart;
};

/* Returns the byte at a position; past the end NUL, which no token contains. */
static inline char at(const struct pass *p, size_t pos)
{
	return pos < p->n ? p->text[pos] : '\0';
}

static int replace(struct pass *p, size_t from, size_t to, const char *with, size_t n)
{
	int rc = bytes_append(&p->out, p->text + p->kept, from - p->kept);
	if (!rc)
		rc = bytes_append(&p->out, with, n);
	p->kept = to;
	return rc;
}

/* ---- strings ---- */

/* Returns the code unit of a \uXXXX at pos, or -1 if there is none. */
static int unit_at(const struct pass *p, size_t pos)
{
	if (at(p, pos) != '\\' || at(p, pos + 1) != 'u')
		return -1;
	int unit = 0;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(at(p, pos + i));
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* Called at a backslash inside a string. */
static int pass_escape(struct pass *p)
{
	size_t from = p->pos;
	int unit = unit_at(p, from);
	if (unit < 0) {
		p->pos += 2;
		const bool quote = p->lenient && at(p, from + 1) == '\'';
		return quote ? replace(p, from, p->pos, "'", 1) : 0;
	}
	p->pos += 6;
	if (unit == 0 || unit == DLE) {
		static const char nul[] = {'\\', 'u', '0', '0', '1', '0', TAG_NUL};
		static const char dle[] = {'\\', 'u', '0', '0', '1', '0', TAG_DLE};
		return replace(p, from, p->pos, unit ? dle : nul, sizeof(nul));
	}
	if (is_high(unit) && is_low(unit_at(p, p->pos))) {
		p->pos += 6;
		return 0;
	}
	if (is_high(unit) || is_low(unit)) {
		char lone[] = "\\u0010s0000";
		memcpy(lone + 7, p->text + from + 2, 4);
		return replace(p, from, p->pos, lone, sizeof(lone) - 1);
	}
	return 0;
}

/* Called at an opening quote. Moves pos past the closing quote. */
static int pass_string(struct pass *p)
{
	size_t from = p->pos++;
	while (p->pos < p->n) {
		char c = p->text[p->pos];
		if (c == '"') {
			p->pos++;
			break;
		}
		if (c == '\\') {
			int rc = pass_escape(p);
			if (rc)
				return rc;
		} else {
			p->pos++;
		}
	}
	p->cost += COST_STRING + (p->pos - from);
	return 0;
}

/* ---- numbers ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t skip_digits(const struct pass *p, size_t pos)
{
	while (is_digit(at(p, pos)))
		pos++;
	return pos;
}

/* Returns true if [from, to) is a JSON number that may be out of Jansson's range. */
static bool is_unsafe_number(const struct pass *p, size_t from, size_t to)
{
	size_t pos = from + (at(p, from) == '-');
	size_t digits = skip_digits(p, pos) - pos;
	bool leading_zero = at(p, pos) == '0' && digits > 1;
	bool real = false;
	size_t exponent = 0;
	pos += digits;
	if (digits == 0 || leading_zero)
		return false;
	if (at(p, pos) == '.') {
		size_t end = skip_digits(p, pos + 1);
		if (end == pos + 1)
			return false;
		pos = end;
		real = true;
	}
	if (at(p, pos) == 'e' || at(p, pos) == 'E') {
		pos++;
		pos += at(p, pos) == '+' || at(p, pos) == '-';
		exponent = skip_digits(p, pos) - pos;
		if (exponent == 0)
			return false;
		pos += exponent;
		real = true;
	}
	if (pos != to)
		return false;
	if (real)
		return exponent > SAFE_EXPONENT_DIGITS || to - from > SAFE_REAL_LEN;
	return digits > INT_DIGITS ||
	       (digits == INT_DIGITS &&
		memcmp(p->text + to - INT_DIGITS, "9223372036854775807", INT_DIGITS) > 0);
}

static bool is_word(const struct pass *p, size_t from, size_t to, const char *word)
{
	return to - from == strlen(word) && memcmp(p->text + from, word, to - from) == 0;
}

/* Returns true if [from, to) is a number that Jansson refuses or whose value it would change. */
static bool is_other_word(const struct pass *p, size_t from, size_t to)
{
	static const char *const strict[] = {"NaN", "Infinity", "-Infinity"};
	static const char *const lenient[] = {"nan", "-nan", "-NaN", "inf", "-inf", "-0"};
	bool found = false;
	if (is_digit(at(p, from)))
		return false;
	for (size_t i = 0; i < sizeof(strict) / sizeof(strict[0]); i++)
		found = found || is_word(p, from, to, strict[i]);
	for (size_t i = 0; p->lenient && i < sizeof(lenient) / sizeof(lenient[0]); i++)
		found = found || is_word(p, from, to, lenient[i]);
	return found;
}

static bool is_key(const struct pass *p, size_t pos)
{
	while (at(p, pos) == ' ' || at(p, pos) == '\t' || at(p, pos) == '\n' || at(p, pos) == '\r')
		pos++;
	return at(p, pos) == ':';
}

/* Called at the first byte of a number or word. Anything else remains as it is, and Jansson refuses
 * it. */
static int pass_literal(struct pass *p)
{
	size_t from = p->pos;
	for (char c = at(p, p->pos); is_digit(c) || (c >= 'a' && c <= 'z') ||
				     (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
	     c = at(p, p->pos))
		p->pos++;
	size_t to = p->pos;
	if (!is_other_word(p, from, to) && !is_unsafe_number(p, from, to))
		return 0;
	if (is_key(p, to))
		return 0;
	static const char open[] = {'"', '\\', 'u', '0', '0', '1', '0', TAG_LITERAL};
	int rc = replace(p, from, from, open, sizeof(open));
	if (!rc)
		rc = replace(p, to, to, "\"", 1);
	p->cost += COST_STRING + (to - from);
	return rc;
}

/* ---- the object that is kept apart ---- */

/* Returns where the byte at pos will be in the text that Jansson gets. */
static size_t rewritten_pos(const struct pass *p)
{
	return p->out.len + p->pos - p->kept;
}

/* Returns true if text[0, n), a string in quotes, is the name. Escapes may spell it, too. */
static bool is_name(const char *text, size_t n, const char *name)
{
	if (!memchr(text, '\\', n))
		return n == strlen(name) + 2 && memcmp(text + 1, name, n - 2) == 0;
	struct json_text_mark mark;
	json_text_area_mark(&mark);
	const json_t *decoded = json_loadb(text, n, JSON_DECODE_ANY, NULL);
	const bool same = json_is_string(decoded) && strcmp(json_string_value(decoded), name) == 0;
	json_text_area_rewind(&mark);
	return same;
}

/* Called after a name was read. If a name of the path occurs again, the object that was found
 * before stays in the document. */
static void pass_name(struct pass *p, size_t from)
{
	if (p->levels == 0 || p->depth != 1u + p->in_parent || !is_key(p, p->pos))
		return;
	p->at_member = is_name(p->text + from, p->pos - from, p->path[p->in_parent]);
	if (p->at_member) {
		p->cost += (p->apart.to - p->apart.from) * COST_CONTAINER;
		p->apart = (struct apart){0};
	}
}

/* Called at a byte that is in no string, number or word. */
static void pass_apart(struct pass *p, char c)
{
	const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
	if (c == '{' && p->at_member && p->depth == p->levels) {
		/* Only one of the values is in memory at a time, so what they cost does not add
		 * up. */
		p->cost_before = p->cost;
		p->apart.from = rewritten_pos(p);
		p->in_member = true;
	} else if (c == '{' && p->at_member) {
		p->in_parent = true;
	}
	if (!is_space && c != ':')
		p->at_member = false;
	if (c == ',' && p->in_member && p->depth == p->levels + 1) {
		p->cost_before += COST_APART;
		p->cost = p->cost_before;
	}
}

/* ---- the document ---- */

static int pass_document(struct pass *p, struct err *err)
{
	int rc = 0;
	while (!rc && p->pos < p->n) {
		char c = p->text[p->pos];
		if (c == '"') {
			const size_t from = p->pos;
			p->at_member = false;
			rc = pass_string(p);
			pass_name(p, from);
		} else if (c == '-' || is_digit(c) || (c >= 'A' && c <= 'Z') ||
			   (c >= 'a' && c <= 'z')) {
			p->at_member = false;
			rc = pass_literal(p);
		} else {
			pass_apart(p, c);
			p->pos++;
			if (c == ',') {
				p->cost += COST_SCALAR;
			} else if (c == '[' || c == '{') {
				p->cost += COST_CONTAINER;
				if (++p->depth > JSON_TEXT_DEPTH)
					return err_set(err, -EIO,
						       "JSON nested deeper than %d levels",
						       JSON_TEXT_DEPTH);
			} else if ((c == ']' || c == '}') && p->depth > 0) {
				p->depth--;
				if (p->in_member && p->depth == p->levels) {
					p->apart.to = rewritten_pos(p);
					p->cost = p->cost_before;
					p->in_member = false;
				}
				if (p->depth == 1)
					p->in_parent = false;
			}
		}
		if (p->cost > COST_MAX)
			return err_set(err, -EIO, "JSON document with too many values");
	}
	/* Jansson would read it as a whole, whatever memory it takes. */
	if (!rc && p->in_member)
		return err_set(err, -EIO, "JSON: the document ends within \"%s\"",
			       p->path[p->levels - 1]);
	if (!rc && p->kept > 0)
		rc = bytes_append(&p->out, p->text + p->kept, p->n - p->kept);
	return rc ? err_errno(err, rc, "JSON") : 0;
}

/* ---- loading ---- */

static int refuse(const json_error_t *why, size_t before, struct err *err)
{
	if (json_error_code(why) == json_error_out_of_memory)
		return err_errno(err, -ENOMEM, "JSON");
	return err_set(err, -EIO, "JSON: %s (near byte %zu)", why->text,
		       before + (size_t)why->position);
}

/* Jansson gets the document with a text in place of the object that is kept apart. */
static int load(const struct piece *all, const struct apart *apart, json_t **doc, struct err *err)
{
	static const char mark[] = {'"', '\\', 'u', '0', '0', '1', '0', TAG_APART, '"'};
	const char *text = all->data;
	auto_bytes struct bytes rest = {0};
	json_error_t why;
	int rc = 0;
	if (apart->to) {
		rc = bytes_append(&rest, text, apart->from);
		if (!rc)
			rc = bytes_append(&rest, mark, sizeof(mark));
		if (!rc)
			rc = bytes_append(&rest, text + apart->to, all->n - apart->to);
	}
	if (rc)
		return err_errno(err, rc, "JSON");
	*doc = apart->to ? json_loadb((const char *)rest.data, rest.len, 0, &why)
			 : json_loadb(text, all->n, 0, &why);
	const bool after = (size_t)why.position > apart->from;
	if (!*doc)
		return refuse(&why, after && apart->to ? all->n - rest.len : 0, err);
	return json_is_object(*doc) ? 0 : err_set(err, -EIO, "JSON: the document is not an object");
}

/* Returns true if the document has the object that was kept apart. Removes its mark then. */
static bool take_mark(const struct pass *p, json_t *doc)
{
	json_t *parent = p->levels > 1 ? json_object_get(doc, p->path[0]) : doc;
	const char *member = p->path[p->levels - 1];
	const char *mark = json_string_value(json_object_get(parent, member));
	if (!mark || mark[0] != DLE || mark[1] != TAG_APART)
		return false;
	json_object_del(parent, member);
	return true;
}

static bool has_byte_order_mark(const char *text, size_t n)
{
	static const char mark[BYTE_ORDER_MARK] = {'\xef', '\xbb', '\xbf'};
	return n >= sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0;
}

int json_text_load_as(const void *bytes, size_t n, const struct json_text_how *how,
		      struct json_text *out, struct err *err)
{
	const char *text = bytes;
	*out = (struct json_text){0};
	if (how->lenient && has_byte_order_mark(text, n)) {
		text += BYTE_ORDER_MARK;
		n -= BYTE_ORDER_MARK;
	}
	if (n == 0)
		return err_set(err, -EIO, "empty document");
	if (n > JSON_TEXT_MAX)
		return err_set(err, -EIO, "document of %zu bytes, the limit is %d", n,
			       JSON_TEXT_MAX);
	/* Jansson reads a number that a NUL follows as if the NUL were not there. */
	if (memchr(text, '\0', n))
		return err_set(err, -EIO, "JSON: it contains the byte 0");
	struct pass p = {.text = text, .n = n, .lenient = how->lenient, .path = how->path};
	while (p.levels < JSON_TEXT_PATH && how->path[p.levels])
		p.levels++;
	int rc = pass_document(&p, err);
	const struct piece all =
		p.kept ? (struct piece){p.out.data, p.out.len} : (struct piece){text, n};
	if (!rc)
		rc = load(&all, &p.apart, &out->doc, err);
	out->rewritten = p.out;
	if (!rc && p.apart.to && take_mark(&p, out->doc)) {
		out->apart = (const char *)all.data + p.apart.from;
		out->apart_len = p.apart.to - p.apart.from;
	}
	if (rc) {
		json_decref(out->doc);
		bytes_release(&out->rewritten);
		*out = (struct json_text){0};
	}
	return rc;
}

int json_text_load_apart(const void *text, size_t n, const char *member, struct json_text *out,
			 struct err *err)
{
	return json_text_load_as(text, n, &(struct json_text_how){.path = {member}}, out, err);
}

static int load_whole(const void *text, size_t n, bool lenient, json_t **doc, struct err *err)
{
	struct json_text json;
	const struct json_text_how how = {.lenient = lenient};
	const int rc = json_text_load_as(text, n, &how, &json, err);
	*doc = json.doc;
	bytes_release(&json.rewritten);
	return rc;
}

int json_text_load(const void *text, size_t n, json_t **doc, struct err *err)
{
	return load_whole(text, n, false, doc, err);
}

int json_text_load_lenient(const void *text, size_t n, json_t **doc, struct err *err)
{
	return load_whole(text, n, true, doc, err);
}

/* ---- members, one by one ---- */

void json_text_members_begin(struct json_text_members *m, const struct json_text *json)
{
	*m = (struct json_text_members){
		.text = json->apart,
		.n = json->apart_len,
	};
	json_text_area_mark(&m->mark);
}

void json_text_members_end(struct json_text_members *m)
{
	m->name = m->value = NULL;
	json_text_area_rewind(&m->mark);
}

/* Skips space. The byte that follows, which is read; NUL at the end. */
static char next_byte(struct json_text_members *m)
{
	while (m->pos < m->n && m->text[m->pos] && strchr(" \t\n\r", m->text[m->pos]))
		m->pos++;
	return m->pos < m->n ? m->text[m->pos++] : '\0';
}

static int next_value(struct json_text_members *m, json_t **out, struct err *err)
{
	json_error_t why;
	*out = json_loadb(m->text + m->pos, m->n - m->pos, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK,
			  &why);
	if (!*out)
		return refuse(&why, m->pos, err);
	m->pos += (size_t)why.position;
	return 0;
}

int json_text_next(struct json_text_members *m, struct err *err)
{
	const bool first = m->pos == 0;
	json_text_members_end(m);
	if (first)
		next_byte(m); /* the opening brace */
	char c = next_byte(m);
	if (c == '}' && m->pos == m->n)
		return 0;
	if (!first)
		c = c == ',' ? next_byte(m) : '\0';
	if (c != '"')
		return err_set(err, -EIO, "JSON: a name or \"}\" expected");
	m->pos--;
	int rc = next_value(m, &m->name, err);
	if (!rc && next_byte(m) != ':')
		rc = err_set(err, -EIO, "JSON: \":\" expected");
	if (!rc)
		rc = next_value(m, &m->value, err);
	return rc ? rc : 1;
}

/* ---- decoding ---- */

/* Converts the four hex digits of a surrogate to the three bytes of its generalized UTF-8. */
static void decode_surrogate(const char *digits, char out[static 3])
{
	unsigned int unit = 0;
	for (int i = 0; i < 4; i++)
		unit = unit << 4 | ((unsigned int)hex_digit(digits[i]) & 0xf);
	out[0] = (char)(0xe0 | unit >> 12);
	out[1] = (char)(0x80 | (unit >> 6 & 0x3f));
	out[2] = (char)(0x80 | (unit & 0x3f));
}

int json_string_decode(const char *s, size_t n, struct bytes *scratch, struct json_string *out)
{
	*out = (struct json_string){.s = s, .n = n, .utf8 = true};
	if (!memchr(s, DLE, n))
		return 0;
	if (n >= 2 && s[0] == DLE && s[1] == TAG_LITERAL) {
		out->literal = true;
		out->s += 2;
		out->n -= 2;
		return 0;
	}
	scratch->len = 0;
	int rc = bytes_reserve(scratch, n + 1); /* decoded text is never longer */
	for (size_t i = 0; !rc && i < n;) {
		char plain[3] = {s[i]};
		size_t len = 1;
		size_t used = 1;
		if (s[i] == DLE && n - i >= 6 && s[i + 1] == TAG_SURROGATE) {
			decode_surrogate(s + i + 2, plain);
			len = 3;
			used = 6;
			out->utf8 = false;
		} else if (s[i] == DLE && n - i >= 2) {
			plain[0] = s[i + 1] == TAG_NUL ? '\0' : DLE;
			out->has_nul |= plain[0] == '\0';
			used = 2;
		}
		rc = bytes_append(scratch, plain, len);
		i += used;
	}
	size_t len = scratch->len;
	if (!rc)
		rc = bytes_append(scratch, "", 1);
	out->s = (const char *)scratch->data;
	out->n = len;
	return rc;
}

const char *json_text_word(const json_t *object, const char *member)
{
	return json_string_value(json_object_get(object, member));
}
