/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks external links: whether a mount shows a file at the path to which they lead. HDF5 permits
 * an external link that leads to nothing, so that is a note. The path within that file is not
 * followed. Each domain that the links name is looked up once.
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <engine/parts.h>
#include <image/image.h>
#include <names/names.h>

struct external {
	uint32_t group;
	const struct link *link;
};

static int compare(const void *x, const void *y)
{
	const struct external *a = x, *b = y;
	const int order = strcmp(a->link->domain, b->link->domain);
	if (order || a->group == b->group)
		return order ? order : strcmp(a->link->name, b->link->name);
	return a->group < b->group ? -1 : 1;
}

/* Copies the external links of reachable groups to out, unless it is NULL. Returns their number. */
static size_t collect(const struct tree *t, struct external *out)
{
	size_t n = 0;
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const uint32_t number = tree_nth(t, i);
		const struct object *o = &tree_object(t, number)->o;
		for (uint32_t k = 0; o->kind == OBJECT_GROUP && k < o->group.nlinks; k++) {
			if (o->group.links[k].cls != LINK_EXTERNAL)
				continue;
			if (out)
				out[n] = (struct external){number, &o->group.links[k]};
			n++;
		}
	}
	return n;
}

/* Looks up the domain of a link. *problem becomes NULL if a mount shows a file. Otherwise it says
 * what is wrong. */
static int look_up(struct domain_check *dc, const char *dir, const char *domain,
		   const char **problem, struct err *why)
{
	auto_names_node struct names_node *n = NULL;
	char path[STORE_KEY_MAX + 1];
	*problem = NULL;
	const char *suffix = domain_schema(dc->d)->suffix;
	int rc = image_external_path(dir, domain, names_of_domain, suffix, path, sizeof(path));
	if (rc)
		return err_set(why, rc, "the path is too long");
	rc = names_resolve(dc->e->bucket.names, path, &n, why);
	if (!rc && n->kind == NAMES_DIR)
		*problem = "is a folder";
	if (rc == -ENOENT)
		*problem = "does not exist";
	return *problem ? 0 : rc;
}

static int report(struct domain_check *dc, const struct external *e, const char *problem)
{
	auto_str struct str names = {0};
	str_add_printable(&names, e->link->name);
	str_add(&names, "\" leads to the domain \"");
	str_add_printable(&names, e->link->domain);
	return check_find_at(dc, ENGINE_CHECK_NOTE, e->group, NULL,
			     "external link \"%s\", which %s", str_text(&names), problem);
}

/* Checks n links to the same domain. */
static int check_target(struct domain_check *dc, const char *dir, const struct external *links,
			size_t n)
{
	const char *domain = links[0].link->domain, *problem;
	struct err why = ERR_INIT;
	int rc = 0;
	if (look_up(dc, dir, domain, &problem, &why))
		return check_find_at(dc, ENGINE_CHECK_UNCHECKED, links[0].group, NULL,
				     "the domain \"%s\" of external links cannot be looked up: %s",
				     domain, why.msg);
	for (size_t i = 0; !rc && problem && i < n; i++)
		rc = report(dc, &links[i], problem);
	return rc;
}

int check_external_links(struct domain_check *dc, const char *dir)
{
	const size_t n = collect(dc->tree, NULL);
	int rc = 0;
	if (n == 0)
		return 0;
	struct external *links = calloc(n, sizeof(*links));
	if (!links)
		return err_no_memory(dc->c->err);
	collect(dc->tree, links);
	qsort(links, n, sizeof(*links), compare);
	for (size_t i = 0, same; !rc && i < n; i += same) {
		for (same = 1; i + same < n; same++)
			if (strcmp(links[i].link->domain, links[i + same].link->domain) != 0)
				break;
		rc = check_target(dc, dir, &links[i], same);
	}
	free(links);
	return rc;
}
