/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents that an update puts. Those of new objects are written whole. Those of objects that
 * have changed are read, which also shows whether another program has changed them, and get their
 * new members.
 */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"

enum { READS = 32 /* documents that are read at the same time */ };

struct documents {
	struct update *u;
	const struct object_change *changed;
	uint32_t *first, *phase; /* see update_order() */
	struct err *err;
};

static int object_key(const struct update *u, uint32_t number, char key[SCHEMA_KEY_MAX + 1],
		      struct err *err)
{
	const int n = u->schema->new_object_key(u->now->tree, number, key, SCHEMA_KEY_MAX + 1);
	return n < 0 ? err_set(err, n, "%s: the key of the object is too long",
			       u->now->paths[number])
		     : 0;
}

/* ---- new objects ---- */

static int add_new(struct update *u, uint32_t number, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes text = {0};
	const struct update_operation what = {
		.op = {.action = PLAN_PUT, .condition = PLAN_IF_ABSENT, .phase = PHASE_NEW_OBJECTS},
		.key = key,
		.target = {.object = number},
	};
	int rc = object_key(u, number, key, err);
	if (!rc)
		rc = u->schema->emit_object(u->now->tree, number, &text, err);
	if (rc)
		return err_wrap(err, rc, "object %s", u->now->paths[number]);
	return update_add(u, &what, &text, err);
}

/* ---- objects that have changed ---- */

static const char *version_before(const struct documents *d, const struct object_change *c)
{
	const char *version = d->u->before->version[c->before];
	return version && *version ? version : NULL;
}

static int stale(const struct documents *d, const struct object_change *c)
{
	return err_set(d->err, -ESTALE, "another program has changed %s",
		       d->u->now->paths[c->after]);
}

/* Puts the document with a part of the change. */
static int add_edited(const struct documents *d, const struct store_request *req,
		      const struct object_change *c, struct update_operation *what)
{
	struct update *u = d->u;
	auto_bytes struct bytes text = {0};
	const struct schema_edit edit = {.before = u->before->tree,
					 .after = u->now->tree,
					 .change = c,
					 .now_ns = u->opt->now_ns};
	const struct bytes *body = &req->answer.body;
	int rc = u->schema->edit_object(body->data, body->len, &edit, &text, d->err);
	if (rc)
		return err_wrap(d->err, rc, "object %s", u->now->paths[c->after]);
	return update_add(u, what, &text, d->err);
}

/* The part of the change that adds links. Its arrays are in the arena of the update. */
static int only_gains(const struct documents *d, const struct object_change *c,
		      struct object_change *out)
{
	struct part_change *links = arena_array(d->u->arena, c->nlinks + 1, sizeof(*links));
	if (!links)
		return err_set(d->err, -ENOMEM, "out of memory");
	*out = (struct object_change){.before = c->before, .after = c->after, .links = links};
	for (uint32_t i = 0; i < c->nlinks; i++)
		if (c->links[i].before == CHANGE_NONE)
			links[out->nlinks++] = c->links[i];
	return 0;
}

static bool request_document(void *arg, size_t i, struct store_request *req)
{
	const struct documents *d = arg;
	const uint32_t number = d->changed[i].after;
	char key[SCHEMA_KEY_MAX + 1];
	if (d->u->schema->new_object_key(d->u->now->tree, number, key, sizeof(key)) < 0)
		return false;
	store_request_key(req, key);
	req->max = SCHEMA_JSON_MAX;
	req->cancelled = cancelled_by(d->u->opt->cancelled);
	return true;
}

static int take_document(void *arg, size_t i, struct store_request *req)
{
	const struct documents *d = arg;
	const struct object_change *c = &d->changed[i];
	const char *version = version_before(d, c), *now = req->answer.meta.etag;
	char key[SCHEMA_KEY_MAX + 1];
	int rc = object_key(d->u, c->after, key, d->err);
	if (rc)
		return rc;
	rc = store_failure(&req->answer, d->err);
	if (rc) {
		/* The bucket is the reason, not the file. */
		atomic_store(&d->u->failed, true);
		return rc;
	}
	if (store_absence(&req->answer) || (version && strcmp(now, version) != 0))
		return stale(d, c);
	struct update_operation what = {
		.op = {.action = PLAN_PUT,
		       .condition = now[0] ? PLAN_IF_VERSION : PLAN_ALWAYS,
		       .version = now,
		       .phase = d->phase[i] ? d->phase[i] : PHASE_OBJECTS},
		.key = key,
		.target = {.object = c->after},
	};
	if (d->first[i]) {
		struct object_change gains;
		const uint32_t last = what.op.phase;
		what.op.phase = d->first[i];
		rc = only_gains(d, c, &gains);
		if (!rc)
			rc = add_edited(d, req, &gains, &what);
		/* Its version is that of the put before: see apply.h. */
		what.op.phase = last;
	}
	return rc ? rc : add_edited(d, req, c, &what);
}

static int add_changed(struct documents *d)
{
	struct update *u = d->u;
	const struct store_sequence reads = {.n = u->change.nchanged,
					     .window = READS,
					     .request = request_document,
					     .take = take_document,
					     .arg = d};
	const int rc = store_run_sequence(u->opt->store, &reads);
	return rc == -ENOMEM ? err_set(d->err, rc, "out of memory") : rc;
}

int update_plan_documents(struct update *u, struct err *err)
{
	const struct tree_change *change = &u->change;
	struct documents d = {.u = u, .changed = change->changed, .err = err};
	int rc = 0;
	u->counts_changed |= change->nadded || change->nremoved;
	for (uint32_t i = 0; !rc && i < change->nadded; i++)
		rc = add_new(u, change->added[i], err);
	if (rc || !change->nchanged)
		return rc;
	d.first = arena_array(u->arena, change->nchanged, sizeof(*d.first));
	d.phase = arena_array(u->arena, change->nchanged, sizeof(*d.phase));
	rc = d.first && d.phase ? update_order(u, d.first, d.phase, err)
				: err_set(err, -ENOMEM, "out of memory");
	return rc ? rc : add_changed(&d);
}
