/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents whose versions show that the domain still has what an update has changed: see
 * update/confirm.h. They are those of the domain, of each dataset whose chunks have changed, and of
 * the groups on one path of links from the root group to each object that has changed.
 *
 * Each of them must have the version of the base, or that which the update has put. So it had this
 * version all the time since the last phase of the plan began. Documents that the last phase has
 * put had it at that time, too, because each put has a condition. They are not asked again.
 */
#include "update_internal.h"

#include <stdlib.h>
#include <string.h>

#include <update/confirm.h>

struct documents {
	struct update *u;
	const struct scan *now;
	uint32_t *parent; /* by number: a group that links the object, or OBJECT_NONE */
	bool *is_needed;  /* by number */
	struct bytes docs;
	struct bytes ids; /* of const char *: the objects that have changed */
};

/* ---- paths ---- */

/* Finds a shortest path to each object, in the order of a breadth-first search. */
static int find_parents(struct documents *d, struct err *err)
{
	const struct tree *t = d->now->tree;
	const uint32_t root = tree_nth(t, 0);
	auto_free uint32_t *queue = calloc(tree_numbers(t) + 1, sizeof(*queue));
	size_t begin = 0, end = 0;
	if (!queue)
		return err_no_memory(err);
	for (uint32_t i = 0; i < tree_numbers(t); i++)
		d->parent[i] = OBJECT_NONE;
	queue[end++] = root;
	while (begin < end) {
		const uint32_t at = queue[begin++];
		const struct object *o = object_of(d->now, at);
		for (uint32_t i = 0; o->kind == OBJECT_GROUP && i < o->group.nlinks; i++) {
			const struct link *l = &o->group.links[i];
			if (l->cls != LINK_HARD || l->target == OBJECT_NONE || l->target == root ||
			    d->parent[l->target] != OBJECT_NONE)
				continue;
			d->parent[l->target] = at;
			queue[end++] = l->target;
		}
	}
	return 0;
}

/* ---- what is needed ---- */

/* Returns the last phase that puts a document or a chunk. */
static uint32_t last_phase(const struct plan *plan)
{
	uint32_t last = 0;
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->operations[i].phase != PHASE_SUMMARY)
			last = (uint32_t)max_u64(last, plan->operations[i].phase);
	return last;
}

static const struct update_target *target_of(const struct documents *d, uint32_t i)
{
	const struct update_target *all = (const void *)d->u->base->targets.data;
	return &all[i];
}

static int find_needed(struct documents *d, const struct plan *plan, struct err *err)
{
	const uint32_t last = last_phase(plan);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct update_target *t = target_of(d, i);
		if (t->owner == OBJECT_NONE)
			continue;
		const char *id = object_of(d->now, t->owner)->id;
		if (!t->is_new && bytes_append(&d->ids, &id, sizeof(id)))
			return err_no_memory(err);
		d->is_needed[t->owner] |= t->is_chunk;
		for (uint32_t at = d->parent[t->owner]; at != OBJECT_NONE && !d->is_needed[at];
		     at = d->parent[at])
			d->is_needed[at] = true;
	}
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct update_target *t = target_of(d, i);
		const bool is_put = t->owner != OBJECT_NONE && !t->is_chunk;
		if (is_put && (plan->operations[i].phase == last || t->is_new))
			d->is_needed[t->owner] = false;
	}
	return 0;
}

/* ---- documents ---- */

static int add(struct documents *d, const char *key, const char *version, struct err *err)
{
	const struct confirm_document doc = {.key = arena_strndup(d->u->arena, key, strlen(key)),
					     .version = version};
	return doc.key && !bytes_append(&d->docs, &doc, sizeof(doc)) ? 0 : err_no_memory(err);
}

static int list_documents(struct documents *d, struct err *err)
{
	const struct update *u = d->u;
	const struct tree *t = d->now->tree;
	char key[SCHEMA_KEY_MAX + 1];
	int rc = u->schema->documents->key(domain_path(u->base->domain), key, sizeof(key));
	rc = rc < 0 ? err_set(err, rc, "the key of the domain is too long")
		    : add(d, key, u->base->document, err);
	for (uint32_t i = 0; !rc && i < tree_numbers(t); i++) {
		if (!d->is_needed[i])
			continue;
		const char *version = d->now->version[i];
		rc = u->schema->writer->object_key(t, i, key, sizeof(key));
		rc = rc < 0 ? err_set(err, rc, "%s: the key of the object is too long",
				      d->now->paths[i])
			    : add(d, key, version ? version : "", err);
	}
	return rc;
}

static int ask(const struct documents *d, struct err *err)
{
	const struct update *u = d->u;
	const struct confirm c = {.env = u->opt->env,
				  .store = u->opt->store,
				  .schema = u->schema,
				  .cancelled = u->opt->cancelled,
				  .path = domain_path(u->base->domain),
				  .root = domain_document(u->base->domain)->info.root,
				  .objects = (const void *)d->ids.data,
				  .count = d->ids.len / sizeof(const char *),
				  .known = u->base->domain};
	return confirm_documents(&c, (const void *)d->docs.data,
				 d->docs.len / sizeof(struct confirm_document), u->base->document,
				 err);
}

int update_confirm(struct update *u, const struct plan *plan, struct err *err)
{
	struct documents d = {.u = u, .now = u->base->next};
	const size_t n = tree_numbers(d.now->tree);
	auto_free uint32_t *parent = d.parent = calloc(n + 1, sizeof(*parent));
	auto_free bool *is_needed = d.is_needed = calloc(n + 1, sizeof(*is_needed));
	int rc = parent && is_needed ? find_parents(&d, err) : err_no_memory(err);
	if (!rc)
		rc = find_needed(&d, plan, err);
	if (!rc)
		rc = list_documents(&d, err);
	if (!rc)
		rc = ask(&d, err);
	bytes_release(&d.docs);
	bytes_release(&d.ids);
	return rc;
}
