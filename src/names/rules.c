/* SPDX-License-Identifier: Apache-2.0 */
/* See rules.h. Pure, any thread. */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what a path of the bucket is shown as ---- */

enum { ANY = -1 };
enum { BARE = 0, NAMED = 1 };	     /* without and with an extension */
enum { FAILED = CHILDREN_MANY + 1 }; /* the listing failed */

/* The first row that fits applies. A document that cannot be read counts as that of a domain, so
 * that opening the file reports the reason. But if other keys follow below the path, it is shown as
 * a directory. A directory bucket also lists empty directories, which deleted domains leave behind:
 * these are not shown. */
static const struct {
	enum names_doc_kind doc;
	int named, children;
	struct names_rule rule;
} rules[] = {
	{NAMES_DOC_FOLDER, ANY, ANY, {.own = SHOWN_DIR}},

	{NAMES_DOC_ROOT, NAMED, ANY, {.own = SHOWN_DOMAIN}},
	{NAMES_DOC_ROOT, BARE, FAILED, {.own = SHOWN_UNLISTABLE, .bare = true, .if_listed = true}},
	{NAMES_DOC_ROOT, BARE, CHILDREN_MORE, {.own = SHOWN_DIR, .bare = true}},
	{NAMES_DOC_ROOT, BARE, ANY, {.bare = true}},

	{NAMES_DOC_BROKEN, ANY, FAILED, {.own = SHOWN_UNLISTABLE, .if_listed = true}},
	{NAMES_DOC_BROKEN, NAMED, CHILDREN_MORE, {.own = SHOWN_DIR}},
	{NAMES_DOC_BROKEN, NAMED, CHILDREN_DOC, {.own = SHOWN_DOMAIN}},
	{NAMES_DOC_BROKEN, NAMED, CHILDREN_NONE, {.own = SHOWN_DOMAIN, .if_listed = true}},
	{NAMES_DOC_BROKEN, BARE, CHILDREN_MORE, {.own = SHOWN_DIR, .bare = true}},
	{NAMES_DOC_BROKEN, BARE, CHILDREN_DOC, {.bare = true}},
	{NAMES_DOC_BROKEN, BARE, CHILDREN_NONE, {.bare = true, .if_listed = true}},

	{NAMES_DOC_NONE, ANY, FAILED, {.own = SHOWN_UNLISTABLE, .if_listed = true}},
	{NAMES_DOC_NONE, ANY, CHILDREN_MORE, {.own = SHOWN_DIR}},
	{NAMES_DOC_NONE, ANY, ANY, {.own = SHOWN_NOTHING}},
};
enum { NRULES = sizeof(rules) / sizeof(rules[0]) };

static bool fits(size_t i, enum names_doc_kind doc, const char *path)
{
	const int named = names_has_extension(names_last(path)) ? NAMED : BARE;
	return rules[i].doc == doc && (rules[i].named == ANY || rules[i].named == named);
}

struct names_rule names_rule(enum names_doc_kind doc, const char *path, int children)
{
	const int row = children < 0		    ? FAILED
			: children == CHILDREN_MANY ? CHILDREN_MORE
						    : children;
	for (size_t i = 0; i < NRULES; i++)
		if (fits(i, doc, path) && (rules[i].children == ANY || rules[i].children == row))
			return rules[i].rule;
	return (struct names_rule){.own = SHOWN_NOTHING};
}

struct names_rule names_doc_rule(const struct names_doc *doc, const char *path, int children)
{
	if (doc->kind != NAMES_DOC_STORE)
		return names_rule(doc->kind, path, children);
	if (names_is_file_name(doc->document->schema, names_last(path)))
		return (struct names_rule){.own = SHOWN_DOMAIN};
	return (struct names_rule){.own = SHOWN_DIR, .bare = true, .unlisted = true};
}

bool names_needs_children(enum names_doc_kind doc, const char *path)
{
	size_t i = 0;
	while (i < NRULES && !fits(i, doc, path))
		i++;
	return i < NRULES && rules[i].children != ANY;
}

/* Has an extension of files that libhdf5 or netCDF programs write. */
static bool is_hdf5(const char *name)
{
	static const char *const endings[] = {".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4"};
	const char *dot = name[0] ? strrchr(name + 1, '.') : NULL;
	for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

/* A prefix whose document can be read, or that has none, is not the file of a domain under its own
 * name: names_rule() shows such files without a listing. */
enum names_kind names_unlistable_kind(enum names_doc_kind doc, const char *path)
{
	return doc == NAMES_DOC_BROKEN && is_hdf5(names_last(path)) ? NAMES_DOMAIN : NAMES_DIR;
}

bool names_is_hidden(const struct schema_ops *const *schemas, const char *path)
{
	if (schema_is_document(schemas, path) || schema_is_storage(schemas, path))
		return true;
	auto_free char *prefix = names_join(path, "");
	return prefix && schema_is_storage(schemas, prefix);
}

/* ---- names and paths ---- */

const char *names_last(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

size_t names_parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

bool names_has_extension(const char *name)
{
	return name[0] != '\0' && strchr(name + 1, '.') != NULL;
}

const char *names_next_suffix(const struct schema_ops *const *schemas, size_t *i)
{
	for (; schemas[*i]; (*i)++) {
		size_t k = 0;
		while (k < *i && strcmp(schemas[k]->suffix, schemas[*i]->suffix) != 0)
			k++;
		if (k == *i)
			return schemas[(*i)++]->suffix;
	}
	return NULL;
}

bool names_is_file_name(const struct schema_ops *schema, const char *name)
{
	return schema->is_file_name ? schema->is_file_name(name) : names_has_extension(name);
}

/* Returns the length of the longest suffix that the name ends with, if the name is longer than it,
 * or 0. `marked` selects the suffixes of the schemas with marks, or those of the others. */
static size_t suffix_len(const struct schema_ops *const *schemas, const char *name, bool marked)
{
	const size_t n = strlen(name);
	size_t longest = 0;
	for (; *schemas; schemas++) {
		const size_t len = strlen((*schemas)->suffix);
		if (!(*schemas)->marks == !marked && n > len && len > longest &&
		    strcmp(name + n - len, (*schemas)->suffix) == 0)
			longest = len;
	}
	return longest;
}

bool names_ok(const char *name, size_t n)
{
	if (n == 0 || n > NAMES_MAX || memchr(name, '/', n) || memchr(name, '\0', n))
		return false;
	return !(n == 1 && name[0] == '.') && !(n == 2 && name[0] == '.' && name[1] == '.');
}

char *names_join(const char *dir, const char *name)
{
	char *path = NULL;
	return asprintf(&path, "%s%s%s", dir, dir[0] ? "/" : "", name) < 0 ? NULL : path;
}

char *names_with_suffix(const char *path, const char *suffix)
{
	char *out = NULL;
	return asprintf(&out, "%s%s", path, suffix) < 0 ? NULL : out;
}

bool names_is_probably_marked(const struct schema_ops *const *schemas, const char *path)
{
	const char *name = names_last(path);
	const size_t n = strlen(name);
	for (; *schemas; schemas++) {
		const char *ending = (*schemas)->usual_ending;
		const size_t len = ending ? strlen(ending) : n;
		if (n > len && strcasecmp(name + n - len, ending) == 0)
			return true;
	}
	return false;
}

/* Removes the suffix of the file of a domain from a path. *out becomes NULL if the path has none.
 */
static int without_suffix(const struct schema_ops *const *schemas, const char *path, bool marked,
			  char **out)
{
	const size_t len = suffix_len(schemas, names_last(path), marked);
	*out = len ? strndup(path, strlen(path) - len) : NULL;
	return len && !*out ? -ENOMEM : 0;
}

/* Returns whether the file of a domain of this name has another name. */
static bool has_file(const struct schema_ops *const *schemas, const char *name, bool marked)
{
	for (; *schemas; schemas++)
		if (!(*schemas)->marks == !marked && !names_is_file_name(*schemas, name))
			return true;
	return false;
}

static int find_bare(const struct schema_ops *const *schemas, const char *path, bool marked,
		     char **out)
{
	const int rc = without_suffix(schemas, path, marked, out);
	if (*out && !has_file(schemas, names_last(*out), marked)) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

int names_bare(const struct schema_ops *const *schemas, const char *path, char **out)
{
	return find_bare(schemas, path, false, out);
}

int names_marked(const struct schema_ops *const *schemas, const char *path, char **out)
{
	return find_bare(schemas, path, true, out);
}

const char *names_doc_suffix(const struct schema_ops *const *schemas, const struct names_doc *doc)
{
	return doc->document ? doc->document->schema->suffix : schemas[0]->suffix;
}

int names_of_domain(const char *suffix, char *path, size_t cap)
{
	const size_t n = strlen(path), len = strlen(suffix);
	if (names_has_extension(names_last(path)))
		return 0;
	if (cap < len + 1 || n > cap - len - 1)
		return -ENAMETOOLONG;
	memcpy(path + n, suffix, len + 1);
	return 0;
}

int names_shown(const char *suffix, const char *path, char shown[STORE_KEY_MAX + 1])
{
	const int n = snprintf(shown, STORE_KEY_MAX + 1, "%s", path);
	if (n > STORE_KEY_MAX || names_of_domain(suffix, shown, STORE_KEY_MAX + 1) ||
	    strlen(names_last(shown)) > NAMES_MAX)
		return -ENAMETOOLONG;
	return 0;
}
