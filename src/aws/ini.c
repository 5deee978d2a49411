/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser reads line by line. A key without a value opens a nested block of indented members.
 * All strings are in one arena; values may be secrets and are overwritten before it is freed. Pure.
 */
#include <aws/ini.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct reading {
	struct ini *out;
	const char *section; /* NULL before the first */
	const char *outer;   /* the key whose nested block may follow, or NULL */
};

struct span {
	const char *s;
	size_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span t)
{
	while (t.n && is_blank(t.s[t.n - 1]))
		t.n--;
	while (t.n && is_blank(*t.s)) {
		t.s++;
		t.n--;
	}
	return t;
}

/* Removes a comment after a value; the comment begins after a blank. */
static struct span without_comment(struct span t)
{
	for (size_t i = 1; i < t.n; i++)
		if ((t.s[i] == '#' || t.s[i] == ';') && is_blank(t.s[i - 1]))
			t.n = i;
	return trim(t);
}

static int read_section(struct reading *r, struct span line)
{
	const char *end = memchr(line.s, ']', line.n);
	r->outer = NULL;
	if (!end) {
		r->section = NULL;
		return 0;
	}
	const struct span name = trim((struct span){line.s + 1, (size_t)(end - line.s - 1)});
	r->section = arena_strndup(r->out->arena, name.s, name.n);
	return r->section ? 0 : -ENOMEM;
}

static const char *full_key(struct reading *r, struct span key, bool nested)
{
	if (!nested)
		return arena_strndup(r->out->arena, key.s, key.n);
	const size_t n = strlen(r->outer);
	char *both = arena_alloc(r->out->arena, n + key.n + 2);
	if (both) {
		memcpy(both, r->outer, n);
		both[n] = '.';
		memcpy(both + n + 1, key.s, key.n);
	}
	return both;
}

static int read_pair(struct reading *r, struct span line, bool indented)
{
	const char *equals = memchr(line.s, '=', line.n);
	if (!equals || !r->section)
		return 0;
	const struct span key = trim((struct span){line.s, (size_t)(equals - line.s)});
	const struct span value = without_comment(
		trim((struct span){equals + 1, (size_t)(line.s + line.n - equals - 1)}));
	if (!key.n)
		return 0;
	const bool nested = indented && r->outer;
	struct ini_entry *entry = arena_alloc(r->out->arena, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->section = r->section;
	entry->key = full_key(r, key, nested);
	entry->value = arena_strndup(r->out->arena, value.s, value.n);
	if (!entry->key || !entry->value)
		return -ENOMEM;
	entry->next = r->out->entries;
	r->out->entries = entry;
	if (!nested)
		r->outer = value.n ? NULL : entry->key;
	return 0;
}

static int read_line(struct reading *r, struct span line)
{
	const bool indented = line.n && is_blank(*line.s);
	line = trim(line);
	if (!line.n || *line.s == '#' || *line.s == ';')
		return 0;
	return *line.s == '[' ? read_section(r, line) : read_pair(r, line, indented);
}

int ini_parse(const char *text, size_t n, struct ini *out, struct err *err)
{
	/* Enough for the largest file: an entry takes at least three bytes of it. */
	const size_t arena_limit = (size_t)INI_SIZE_MAX * 64;
	/* Some editors put it before the first line. */
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct reading r = {.out = out};
	*out = (struct ini){0};
	if (n > INI_SIZE_MAX)
		return err_set(err, -EINVAL, "the file has more than %d bytes", INI_SIZE_MAX);
	if (memchr(text, '\0', n))
		return err_set(err, -EINVAL, "the file contains a NUL byte");
	if (n >= sizeof(byte_order_mark) - 1 &&
	    memcmp(text, byte_order_mark, sizeof(byte_order_mark) - 1) == 0) {
		text += sizeof(byte_order_mark) - 1;
		n -= sizeof(byte_order_mark) - 1;
	}
	out->arena = arena_new(arena_limit);
	if (!out->arena)
		return err_no_memory(err);
	while (n) {
		const char *end = memchr(text, '\n', n);
		const size_t len = end ? (size_t)(end - text) : n;
		if (read_line(&r, (struct span){text, len})) {
			ini_release(out);
			return err_no_memory(err);
		}
		text += len + (end != NULL);
		n -= len + (end != NULL);
	}
	return 0;
}

const char *ini_get(const struct ini *ini, const char *section, const char *key)
{
	for (const struct ini_entry *e = ini->entries; e; e = e->next)
		if (strcmp(e->section, section) == 0 && strcmp(e->key, key) == 0)
			return e->value;
	return NULL;
}

void ini_release(struct ini *ini)
{
	for (struct ini_entry *e = ini->entries; e; e = e->next) {
		/* The arena owns the strings, so they may be changed here. */
		char *value;
		memcpy(&value, &e->value, sizeof(value));
		explicit_bzero(value, strlen(value));
	}
	if (ini->arena)
		arena_free(ini->arena);
	*ini = (struct ini){0};
}
