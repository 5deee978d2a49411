/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded scanner for the members of a JSON object, and replacements in a text; see splice.h. */
#include <json/splice.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json/reader.h>

/* ---- the scanner ---- */

struct text {
	const char *s;
	size_t n, pos;
};

static char at(const struct text *t)
{
	return t->pos < t->n ? t->s[t->pos] : '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct text *t)
{
	while (is_space(at(t)))
		t->pos++;
}

/* Moves past white space, and past c if that follows. */
static bool skip(struct text *t, char c)
{
	skip_space(t);
	if (at(t) != c)
		return false;
	t->pos++;
	return true;
}

/* Called behind an opening quote. Moves past the closing one, or returns false if there is none. */
static bool skip_string(struct text *t)
{
	while (t->pos < t->n && t->s[t->pos] != '"')
		t->pos += t->s[t->pos] == '\\' ? 2 : 1;
	t->pos++;
	return t->pos <= t->n;
}

/* Moves to what follows a value, which is a comma or a closing bracket. Returns false if neither
 * follows. */
static bool skip_value(struct text *t)
{
	size_t depth = 0;
	while (t->pos < t->n) {
		const char c = t->s[t->pos];
		if (depth == 0 && (c == ',' || c == '}' || c == ']'))
			return true;
		t->pos++;
		if (c == '"' && !skip_string(t))
			return false;
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
	}
	return false;
}

/* Reads the next member, without its name. Returns false if the text is malformed. */
static bool next_member(struct text *t, struct splice_member *m)
{
	skip_space(t);
	m->start = t->pos;
	if (!skip(t, '"') || !skip_string(t))
		return false;
	m->name_end = t->pos;
	if (!skip(t, ':'))
		return false;
	skip_space(t);
	m->value = t->pos;
	if (!skip_value(t))
		return false;
	m->end = t->pos;
	while (m->end > m->value && is_space(t->s[m->end - 1]))
		m->end--;
	return m->end > m->value;
}

/* Reads the name of a member with escapes as that of a document. */
static int decode_name(const struct text *t, const struct splice_member *m, struct arena *a,
		       const char **out, struct err *err)
{
	auto_bytes struct bytes text = {0};
	auto_json json_t *doc = NULL;
	int rc = bytes_append(&text, "{", 1);
	if (!rc)
		rc = bytes_append(&text, t->s + m->start, m->name_end - m->start);
	if (!rc)
		rc = bytes_append(&text, ":0}", 3);
	if (rc)
		return err_set(err, rc, "out of memory");
	rc = json_text_load(text.data, text.len, &doc, err);
	if (rc)
		return rc;
	const char *name = json_object_iter_key(json_object_iter(doc));
	*out = name ? arena_strndup(a, name, strlen(name)) : NULL;
	return *out ? 0 : err_no_memory(err);
}

static int name_member(const struct text *t, struct arena *a, struct splice_member *m,
		       struct err *err)
{
	const char *name = t->s + m->start + 1;
	const size_t n = m->name_end - m->start - 2;
	if (memchr(name, '\\', n))
		return decode_name(t, m, a, &m->name, err);
	m->name = arena_strndup(a, name, n);
	return m->name ? 0 : err_no_memory(err);
}

static int malformed(struct err *err)
{
	return err_set(err, -EIO, "the document has an unusual form");
}

/* Called behind the opening bracket. Counts the members, and stores them in `out` if it is not
 * NULL. */
static int walk(struct text t, struct arena *a, struct splice_member *out, size_t *n,
		struct err *err)
{
	struct splice_member m;
	*n = 0;
	if (skip(&t, '}'))
		return 0;
	do {
		int rc = next_member(&t, &m) ? 0 : malformed(err);
		if (!rc && out)
			rc = name_member(&t, a, &m, err);
		if (rc)
			return rc;
		if (out)
			out[*n] = m;
		++*n;
	} while (skip(&t, ','));
	return at(&t) == '}' ? 0 : malformed(err);
}

int splice_scan(const char *text, size_t n, size_t start, struct arena *a,
		struct splice_object *out, struct err *err)
{
	struct text t = {.s = text, .n = n, .pos = start};
	*out = (struct splice_object){0};
	if (!skip(&t, '{'))
		return malformed(err);
	out->inside = t.pos;
	const int rc = walk(t, a, NULL, &out->n, err);
	if (rc)
		return rc;
	struct splice_member *members = arena_array(a, out->n ? out->n : 1, sizeof(*members));
	if (!members)
		return err_no_memory(err);
	out->members = members;
	return walk(t, a, members, &out->n, err);
}

const struct splice_member *splice_find(const struct splice_object *o, const char *name,
					size_t *count)
{
	const struct splice_member *found = NULL;
	size_t n = 0;
	for (size_t i = 0; i < o->n; i++) {
		if (strcmp(o->members[i].name, name) != 0)
			continue;
		found = &o->members[i];
		n++;
	}
	if (count)
		*count = n;
	return found;
}

size_t splice_end(const struct splice_object *o)
{
	return o->n ? o->members[o->n - 1].end : o->inside;
}

/* ---- replacements ---- */

struct splice_edit {
	size_t start, end;
	size_t from, len; /* in the new bytes */
	size_t order;
};

void splice_init(struct splice *s, const char *text, size_t n)
{
	*s = (struct splice){.text = text, .n = n};
	s->w.out = &s->fresh;
}

void splice_release(struct splice *s)
{
	bytes_release(&s->edits);
	bytes_release(&s->fresh);
}

void splice_begin(struct splice *s, bool behind)
{
	s->begun = s->fresh.len;
	s->w.behind = behind;
}

static void add(struct splice *s, size_t start, size_t end, size_t from)
{
	const struct splice_edit e = {.start = start,
				      .end = end,
				      .from = from,
				      .len = s->fresh.len - from,
				      .order = s->edits.len};
	if (bytes_append(&s->edits, &e, sizeof(e)))
		s->w.bad = true;
}

void splice_commit(struct splice *s, size_t start, size_t end)
{
	add(s, start, end, s->begun);
}

void splice_remove_member(struct splice *s, const struct splice_object *o, size_t i, bool first)
{
	const struct splice_member *m = &o->members[i];
	if (!first)
		add(s, m[-1].end, m->end, s->fresh.len);
	else
		add(s, m->start, i + 1 < o->n ? m[1].start : m->end, s->fresh.len);
}

static int compare(const void *a, const void *b)
{
	const struct splice_edit *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

int splice_apply(struct splice *s, struct bytes *out, struct err *err)
{
	struct splice_edit *edits = (struct splice_edit *)s->edits.data;
	const size_t n = s->edits.len / sizeof(*edits);
	size_t pos = 0;
	int rc = 0;
	if (s->w.bad)
		return err_no_memory(err);
	if (n)
		qsort(edits, n, sizeof(*edits), compare);
	for (size_t i = 0; !rc && i < n; i++) {
		if (edits[i].start < pos || edits[i].end < edits[i].start || edits[i].end > s->n)
			return malformed(err);
		rc = bytes_append(out, s->text + pos, edits[i].start - pos);
		if (!rc)
			rc = bytes_append(out, s->fresh.data + edits[i].from, edits[i].len);
		pos = edits[i].end;
	}
	if (!rc)
		rc = bytes_append(out, s->text + pos, s->n - pos);
	return rc ? err_set(err, rc, "out of memory") : 0;
}
