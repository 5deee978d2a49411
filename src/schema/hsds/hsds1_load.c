/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of schema v1. The keys of a domain's objects have nothing in common, so no listing
 * shows them. The loader begins with the root group and follows links: each round reads the
 * documents of all objects that the documents of the previous round name. An object is read if a
 * group that was read has a hard link to it, if a dataset or an attribute uses it as its committed
 * datatype, or if it is the chunk table of a dataset. An object that only a reference names gets a
 * number, but is not read.
 *
 * To read a deep tree in few rounds, the loader also reads objects on suspicion: those that the
 * catalogs of the domain name, or those of the earlier load. These are only hints. A catalog may be
 * missing or stale, and it may name objects of other domains. Therefore
 *
 *   - whether an object is in the tree depends on links alone;
 *   - if an object that no link has named yet cannot be used, it is left out without a note. If a
 *     link names it later, it is read again;
 *   - only the first bytes of a catalog are read, and the number of objects that were read on
 *     suspicion alone is at most HINTS_FIRST plus the number of those that links name.
 *
 * The stages are:
 *
 *   HEADS     if there is an earlier load, unless the tree is loaded in any case: a HEAD for each
 *             of its reachable and missing objects. If none has changed, the load is complete;
 *   CATALOGS  if there is no earlier load: the catalogs and the root group;
 *   WALK      documents, round by round, until the links name no new object.
 *
 * Pure.
 */
#include "hsds1.h"

#include <stdlib.h>

#include "hsds_load.h"

enum {
	CATALOG_BYTES = 4 << 20, /* bytes of a catalog that are read; a line has about 80 */
	HINTS_FIRST = 1024,
	KINDS = OBJECT_DATATYPE + 1,
};

enum stage { START, HEADS, CATALOGS, WALK, END };

/* Flags: what is known of an object. */
enum {
	REACHED = 1 << 0,   /* links lead to it */
	READ = 1 << 1,	    /* its document was read, and the object is in the tree or broken */
	SUSPECTED = 1 << 2, /* it was read, or tried, before a link named it */
};

struct hsds1_loader {
	struct hsds_loader hsds;
	enum stage stage;
	struct bytes state;   /* of a byte for each object */
	struct bytes round;   /* of uint32_t; objects of the current round */
	struct bytes reached; /* of uint32_t; reached by links, and not followed yet */
	uint32_t nreached, nsuspected;
	struct bytes hints; /* of struct schema_id */
	size_t next_hint;   /* its offset in hints */
	int failed;	    /* the error of number_of() if it could not add an object */
};

static struct hsds1_loader *self(struct schema_loader *l)
{
	return (struct hsds1_loader *)l;
}

static uint32_t nth(const struct bytes *list, size_t i)
{
	return ((const uint32_t *)(const void *)list->data)[i];
}

static uint32_t count(const struct bytes *list)
{
	return (uint32_t)(list->len / sizeof(uint32_t));
}

/* ---- objects ---- */

static int add_object(struct hsds1_loader *l, const struct schema_id *id)
{
	struct hsds_space *s = l->hsds.space;
	struct tree *tree = l->hsds.base.load.tree;
	const struct hsds_entry entry = {.id = *id, .etag = ""};
	struct err ignored = ERR_INIT;
	uint32_t number;
	if (bytes_append_zero(&l->state, 1))
		return -ENOMEM;
	int rc = tree_add(tree, &number, &ignored);
	return !rc && hsds_space_add(s, tree_arena(tree), &entry) ? -ENOMEM : rc;
}

/* Returns the number of an object that a document names. A new object gets a number, because its
 * document may be read later. */
static uint32_t number_of(void *loader, const struct schema_id *id)
{
	struct hsds1_loader *l = loader;
	uint32_t number = hsds_number(l->hsds.space, id);
	if (number != OBJECT_NONE || id->form != SCHEMA_ID_V1 || l->failed)
		return number;
	number = l->hsds.space->n;
	l->failed = add_object(l, id);
	return l->failed ? OBJECT_NONE : number;
}

static int check_numbers(const struct hsds1_loader *l, struct err *err)
{
	if (l->failed == -E2BIG)
		return err_set(err, -E2BIG, "the domain has more than %u objects",
			       TREE_MAX_OBJECTS);
	return l->failed ? err_no_memory(err) : 0;
}

/* ---- links ---- */

static int reach(struct hsds1_loader *l, uint32_t number)
{
	if (number == OBJECT_NONE || l->state.data[number] & REACHED)
		return 0;
	l->state.data[number] |= REACHED;
	l->nreached++;
	if (l->state.data[number] & SUSPECTED)
		l->nsuspected--;
	return bytes_append(&l->reached, &number, sizeof(number));
}

/* Reaches all objects to which an object leads. */
static int follow_object(struct hsds1_loader *l, uint32_t number)
{
	const struct tree_object *to = tree_object(l->hsds.base.load.tree, number);
	const struct object *o = &to->o;
	int rc = 0;
	if (to->broken)
		return 0;
	for (uint32_t i = 0; !rc && i < o->nattrs; i++)
		rc = reach(l, o->attrs[i].committed);
	if (!rc && o->kind == OBJECT_DATASET)
		rc = reach(l, o->dataset.committed);
	if (!rc && o->kind == OBJECT_DATASET && o->dataset.reference)
		rc = reach(l, o->dataset.reference->table);
	for (uint32_t i = 0; !rc && o->kind == OBJECT_GROUP && i < o->group.nlinks; i++)
		if (o->group.links[i].cls == LINK_HARD)
			rc = reach(l, o->group.links[i].target);
	return rc;
}

/* Makes the next round: all objects that were reached and have not been read. */
static int follow(struct hsds1_loader *l)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < count(&l->round); i++)
		if ((l->state.data[nth(&l->round, i)] & (REACHED | READ)) == (REACHED | READ))
			rc = follow_object(l, nth(&l->round, i));
	l->round.len = 0;
	while (!rc && l->reached.len) {
		const uint32_t number = nth(&l->reached, count(&l->reached) - 1);
		l->reached.len -= sizeof(number);
		rc = l->state.data[number] & READ
			     ? follow_object(l, number)
			     : bytes_append(&l->round, &number, sizeof(number));
	}
	return rc;
}

/* ---- hints ---- */

static int add_hint(void *ctx, const struct schema_id *id)
{
	struct hsds1_loader *l = ctx;
	return bytes_append(&l->hints, id, sizeof(*id)) ? -ENOMEM : 0;
}

/* Adds objects that hints name to the round, on suspicion. */
static int suspect(struct hsds1_loader *l)
{
	int rc = 0;
	while (!rc && !l->failed && l->next_hint < l->hints.len &&
	       l->nsuspected < HINTS_FIRST + l->nreached) {
		struct schema_id id;
		memcpy(&id, l->hints.data + l->next_hint, sizeof(id));
		l->next_hint += sizeof(id);
		const uint32_t number = number_of(l, &id);
		if (number == OBJECT_NONE || l->state.data[number])
			continue;
		l->state.data[number] |= SUSPECTED;
		l->nsuspected++;
		rc = bytes_append(&l->round, &number, sizeof(number));
	}
	return rc;
}

/* ---- rounds ---- */

static int begin(struct hsds1_loader *l, struct err *err)
{
	int rc = add_object(l, &l->hsds.space->root);
	if (!rc)
		rc = reach(l, 0);
	const struct hsds_space *old = l->hsds.previous;
	for (uint32_t i = 0; !rc && old && i < tree_count(old->base.tree); i++)
		rc = add_hint(l, &old->entries[tree_nth(old->base.tree, i)].id);
	return rc ? err_no_memory(err) : 0;
}

/* Ends the load. Objects that were not read are those that links do not lead to; they are marked as
 * broken. */
static void finish(struct hsds1_loader *l)
{
	struct hsds_space *s = l->hsds.space;
	s->base.modified_ns = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct tree_object *o = tree_object(s->base.tree, i);
		if (!(l->state.data[i] & READ))
			hsds_mark_broken(&l->hsds, i);
		else if (l->state.data[i] & REACHED && !o->broken &&
			 o->o.modified_ns > s->base.modified_ns)
			s->base.modified_ns = o->o.modified_ns;
	}
}

static int walk(struct hsds1_loader *l, uint32_t *n, struct err *err)
{
	int rc = check_numbers(l, err);
	if (rc)
		return rc;
	rc = follow(l);
	if (!rc && l->round.len)
		rc = suspect(l);
	if (rc)
		return err_no_memory(err);
	rc = check_numbers(l, err);
	*n = count(&l->round);
	if (!rc && *n == 0) {
		finish(l);
		l->stage = END;
	}
	return rc;
}

int hsds1_round(struct schema_loader *base, uint32_t *n, struct err *err)
{
	struct hsds1_loader *l = self(base);
	int rc = 0;
	*n = 0;
	switch (l->stage) {
	case START:
		if (l->hsds.previous && !base->load.reload) {
			hsds_compare_all(&l->hsds);
			l->stage = HEADS;
			*n = l->hsds.nheads;
			return 0;
		}
		break;
	case HEADS:
		if (!l->hsds.changed) {
			base->same = true;
			l->stage = END;
			return 0;
		}
		break;
	case CATALOGS:
		l->stage = WALK;
		return walk(l, n, err);
	case WALK:
		return walk(l, n, err);
	case END:
		return 0;
	}
	rc = begin(l, err);
	l->stage = l->hsds.previous ? WALK : CATALOGS;
	if (rc || l->stage == WALK)
		return rc ? rc : walk(l, n, err);
	*n = 1 + KINDS;
	rc = follow(l); /* the round consists of the root group */
	return rc ? err_no_memory(err) : 0;
}

static bool request_catalog(const struct hsds1_loader *l, enum object_kind kind,
			    struct schema_request *req)
{
	req->length = CATALOG_BYTES;
	return hsds1_catalog_key(l->hsds.base.load.path, kind, req->key, req->room) >= 0;
}

bool hsds1_request(struct schema_loader *base, uint32_t i, struct schema_request *req)
{
	const struct hsds1_loader *l = self(base);
	switch (l->stage) {
	case HEADS:
		return hsds_request_head(&l->hsds, i, req);
	case CATALOGS:
		return i ? request_catalog(l, (enum object_kind)(i - 1), req)
			 : hsds_request_document(&l->hsds, 0, req);
	case WALK:
		return hsds_request_document(&l->hsds, nth(&l->round, i), req);
	case START:
	case END:
		break;
	}
	return false;
}

/* A catalog that cannot be read gives no hints. */
static int answer_catalog(struct hsds1_loader *l, enum object_kind kind,
			  const struct schema_answer *answer, struct err *err)
{
	if (!answer || answer->absent || answer->code)
		return 0;
	return hsds1_catalog_parse(answer->body, answer->len, kind, add_hint, l)
		       ? err_no_memory(err)
		       : 0;
}

static int answer_object(struct hsds1_loader *l, uint32_t number,
			 const struct schema_answer *answer, struct err *err)
{
	bool used = true;
	int rc = l->state.data[number] & REACHED
			 ? hsds_answer_document(&l->hsds, number, answer, err)
			 : hsds_try_document(&l->hsds, number, answer, &used, err);
	if (!rc && used)
		l->state.data[number] |= READ;
	return rc ? rc : check_numbers(l, err);
}

int hsds1_answer(struct schema_loader *base, uint32_t i, const struct schema_answer *answer,
		 struct err *err)
{
	struct hsds1_loader *l = self(base);
	switch (l->stage) {
	case HEADS:
		return answer ? hsds_answer_head(&l->hsds, i, answer, err)
			      : err_set(err, -EIO, "the key of an object cannot be made");
	case CATALOGS:
		return i ? answer_catalog(l, (enum object_kind)(i - 1), answer, err)
			 : answer_object(l, 0, answer, err);
	case WALK:
		return answer_object(l, nth(&l->round, i), answer, err);
	case START:
	case END:
		break;
	}
	return 0;
}

int hsds1_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err)
{
	struct hsds_loader *l = NULL;
	int rc = load->whole_only ? err_set(err, -E2BIG,
					    "no listing shows the keys of a domain of schema v1")
				  : hsds_loader_new(load, sizeof(struct hsds1_loader), &l, err);
	if (!rc)
		l->number = number_of;
	if (!rc && load->listed)
		rc = load->listed(load->ctx, NULL);
	if (rc && l)
		hsds1_loader_free(&l->base);
	*out = rc ? NULL : &l->base;
	return rc;
}

void hsds1_loader_free(struct schema_loader *base)
{
	struct hsds1_loader *l = self(base);
	if (!l)
		return;
	bytes_release(&l->state);
	bytes_release(&l->round);
	bytes_release(&l->reached);
	bytes_release(&l->hints);
	free(l);
}
