/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks soft links. HDF5 permits a soft link that leads to nothing, so that is a note. A path is
 * followed through the links of the tree; a soft link in a path continues with its own path. A path
 * that leads through an external link is not followed. The work on one link is limited.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4096, SOFT_MAX = 16 /* soft links in a path, as in libhdf5 */ };
_Static_assert(STEPS_MAX == 4096 && SOFT_MAX == 16, "the texts of check_link()");

struct entry {
	uint32_t group;
	const struct link *link;
};

/* All links, by group and name. */
struct links {
	const struct tree *tree;
	struct entry *entries;
	size_t n;
};

enum outcome { FOUND, ELSEWHERE, DANGLING, MANY_LINKS, MANY_NAMES };

static int compare(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return strcmp(a->link->name, b->link->name);
}

/* Returns the link of a group whose name is the first n bytes of a text, or NULL. */
static const struct link *find(const struct links *l, uint32_t group, const char *name, size_t n)
{
	size_t low = 0, high = l->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct entry *e = &l->entries[middle];
		int order = e->group != group ? (e->group < group ? -1 : 1)
					      : strncmp(e->link->name, name, n);
		if (order == 0 && e->group == group && e->link->name[n])
			order = 1; /* the link's name is longer */
		if (order == 0)
			return e->link;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct walk {
	const struct links *l;
	uint32_t at; /* object number */
	unsigned int steps, soft;
};

static enum outcome follow(struct walk *w, const char *path);

static enum outcome follow_link(struct walk *w, const struct link *link)
{
	switch (link->cls) {
	case LINK_HARD:
		w->at = link->target;
		return FOUND;
	case LINK_SOFT:
		return ++w->soft > SOFT_MAX ? MANY_LINKS : follow(w, link->path);
	default:
		return ELSEWHERE;
	}
}

/* Follows a path from the object w->at. The recursion is at most SOFT_MAX deep. */
static enum outcome follow(struct walk *w, const char *path)
{
	enum outcome outcome = FOUND;
	if (*path == '/')
		w->at = 0;
	while (outcome == FOUND && *(path += strspn(path, "/"))) {
		const size_t n = strcspn(path, "/");
		if (++w->steps > STEPS_MAX)
			return MANY_NAMES;
		if (n != 1 || *path != '.') {
			const struct link *link = find(w->l, w->at, path, n);
			outcome = link ? follow_link(w, link) : DANGLING;
		}
		path += n;
	}
	return outcome;
}

static int check_link(struct domain_check *dc, const struct links *l, const struct entry *e)
{
	static const char *const texts[] = {
		[DANGLING] = "which does not exist",
		[MANY_LINKS] = "through more than 16 soft links, perhaps in a circle",
		[MANY_NAMES] = "through more than 4096 names",
	};
	struct walk w = {.l = l, .at = e->group, .soft = 1};
	auto_str struct str name = {0};
	const enum outcome outcome = follow(&w, e->link->path);
	if (outcome == FOUND || outcome == ELSEWHERE)
		return 0;
	str_add_printable(&name, e->link->name);
	str_add(&name, "\" leads to \"");
	str_add_printable(&name, e->link->path);
	return check_find_at(dc, ENGINE_CHECK_NOTE, e->group, NULL, "soft link \"%s\", %s",
			     str_text(&name), texts[outcome]);
}

/* Returns the number of links, or of soft links only, in reachable groups. */
static uint64_t count(const struct tree *t, bool soft_only)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		for (uint32_t k = 0; o->kind == OBJECT_GROUP && k < o->group.nlinks; k++)
			n += !soft_only || o->group.links[k].cls == LINK_SOFT;
	}
	return n;
}

int check_links(struct domain_check *dc)
{
	struct links l = {.tree = dc->tree};
	int rc = 0;
	if (count(dc->tree, true) == 0)
		return 0;
	l.entries = calloc(count(dc->tree, false), sizeof(*l.entries));
	if (!l.entries)
		return err_no_memory(dc->c->err);
	for (uint32_t i = 0; i < tree_count(l.tree); i++) {
		const uint32_t number = tree_nth(l.tree, i);
		const struct object *o = &tree_object(l.tree, number)->o;
		for (uint32_t k = 0; o->kind == OBJECT_GROUP && k < o->group.nlinks; k++)
			l.entries[l.n++] =
				(struct entry){.group = number, .link = &o->group.links[k]};
	}
	qsort(l.entries, l.n, sizeof(*l.entries), compare);
	for (size_t i = 0; !rc && i < l.n; i++)
		if (l.entries[i].link->cls == LINK_SOFT)
			rc = check_link(dc, &l, &l.entries[i]);
	free(l.entries);
	return rc;
}
