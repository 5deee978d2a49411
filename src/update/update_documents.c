/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents that an update puts. Those of new objects are written whole. Those of objects that
 * have changed are read, and get their new members. This also shows whether another program has
 * changed them. Documents of objects that are removed are only asked for their versions: what
 * another program has written to such an object must not vanish unnoticed. All requests are made
 * side by side, before the plan is in the journal, so nothing is put if one version differs.
 */
#include "update_internal.h"

#include <errno.h>
#include <string.h>

#include <domain/documents.h>

enum { READS = 32 /* documents that are read at the same time */ };

struct documents {
	struct update *u;
	const struct object_change *changed;
	uint32_t *first, *phase; /* see update_order() */
	struct err *err;
};

/* Makes the key of an object of one of the two states. */
static int object_key(const struct update *u, const struct scan *s, uint32_t number,
		      char key[SCHEMA_KEY_MAX + 1], struct err *err)
{
	const int n = u->schema->writer->object_key(s->tree, number, key, SCHEMA_KEY_MAX + 1);
	return n < 0 ? err_set(err, n, "%s: the key of the object is too long", s->paths[number])
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
		.target = {.object = number, .owner = number, .is_new = true},
	};
	int rc = object_key(u, u->now, number, key, err);
	if (!rc)
		rc = u->schema->writer->emit_object(u->now->tree, number, &text, err);
	if (rc)
		return err_wrap(err, rc, "object %s", u->now->paths[number]);
	return update_add(u, &what, &text, err);
}

/* ---- objects that have changed ---- */

/* Puts the document with a change. `state` is one between the old and the new one, or NULL. */
static int add_edited(const struct documents *d, const struct store_request *req,
		      const struct object_change *c, const struct object *state,
		      struct update_operation *what)
{
	struct update *u = d->u;
	auto_bytes struct bytes text = {0};
	const struct schema_edit edit = {.before = u->before->tree,
					 .after = u->now->tree,
					 .change = c,
					 .state = state,
					 .now_ns = u->opt->now_ns};
	const struct bytes *body = &req->answer.body;
	int rc = u->schema->editor->edit_object(body->data, body->len, &edit, &text, d->err);
	if (rc)
		return err_wrap(d->err, rc, "object %s", u->now->paths[c->after]);
	return update_add(u, what, &text, d->err);
}

/* Puts the document as it is, with another time: see update_grow.c. */
static int add_claim(const struct documents *d, const struct store_request *req, size_t i,
		     const struct update_operation *last)
{
	struct update *u = d->u;
	const struct object_change none = {.before = d->changed[i].before,
					   .after = d->changed[i].after};
	struct update_operation what = *last;
	if (u->base->growth[none.before] != GROWTH_FOUND)
		return 0;
	what.op.phase = PHASE_CLAIM;
	what.target = (struct update_target){.object = OBJECT_NONE,
					     .owner = none.after,
					     .is_claim = true,
					     .before = none.before};
	return add_edited(d, req, &none, &tree_object(u->before->tree, none.before)->o, &what);
}

/* Puts the document with a state between the old and the new one, if there is one. The phase of
 * *what becomes that of the new state. */
static int add_between(const struct documents *d, const struct store_request *req, size_t i,
		       struct update_operation *what)
{
	const struct update *u = d->u;
	const struct object_change *c = &d->changed[i];
	const uint32_t last = what->op.phase;
	struct object state;
	struct object_change part = *c;
	int rc = 0;
	if (d->first[i]) {
		what->op.phase = d->first[i];
		rc = update_both_links(u, c, &state, &part, d->err);
	} else if (update_is_two_steps(u, c)) {
		rc = update_common_shape(u, c, &state, d->err);
	} else {
		return 0;
	}
	if (!rc)
		rc = add_edited(d, req, &part, &state, what);
	/* The second put expects the version of the first one: see apply.h. */
	what->op.phase = d->first[i] ? last : PHASE_GROW;
	return rc;
}

/* ---- requests ---- */

/* The requests are those of the objects that have changed, then of those that are removed. */
static bool is_removed(const struct documents *d, size_t i)
{
	return i >= d->u->change.nchanged;
}

/* Returns the number of the object before the change. */
static uint32_t number_before(const struct documents *d, size_t i)
{
	const struct tree_change *c = &d->u->change;
	return is_removed(d, i) ? c->removed[i - c->nchanged] : c->changed[i].before;
}

static bool request_document(void *arg, size_t i, struct store_request *req)
{
	const struct documents *d = arg;
	char key[SCHEMA_KEY_MAX + 1];
	if (object_key(d->u, d->u->before, number_before(d, i), key, NULL))
		return false;
	if (is_removed(d, i))
		store_request_reset(req, STORE_HEAD);
	store_request_key(req, key);
	req->max = is_removed(d, i) ? 0 : SCHEMA_DOCUMENT_MAX;
	req->cancelled = cancelled_by(d->u->opt->cancelled);
	return true;
}

static int check_version(const struct documents *d, size_t i, const struct store_request *req)
{
	const uint32_t number = number_before(d, i);
	const char *version = d->u->before->version[number];
	const bool is_known = version && *version;
	const int rc = store_failure(&req->answer, d->err);
	if (rc) {
		/* The bucket is the reason of the error, not the file. */
		atomic_store(&d->u->failed, true);
		return rc;
	}
	return store_absence(&req->answer) ||
			       (is_known && strcmp(req->answer.meta.etag, version) != 0)
		       ? err_set(d->err, -ESTALE, "another program has changed %s",
				 d->u->before->paths[number])
		       : 0;
}

static int take_document(void *arg, size_t i, struct store_request *req)
{
	const struct documents *d = arg;
	const struct object_change *c = &d->changed[i];
	const char *now = req->answer.meta.etag;
	char key[SCHEMA_KEY_MAX + 1];
	int rc = object_key(d->u, d->u->before, number_before(d, i), key, d->err);
	if (!rc)
		rc = check_version(d, i, req);
	if (rc || is_removed(d, i))
		return rc;
	struct update_operation what = {
		.op = {.action = PLAN_PUT,
		       .condition = now[0] ? PLAN_IF_VERSION : PLAN_ALWAYS,
		       .version = now,
		       .phase = d->phase[i] ? d->phase[i] : PHASE_OBJECTS},
		.key = key,
		.target = {.object = c->after, .owner = c->after},
	};
	rc = add_claim(d, req, i, &what);
	if (!rc)
		rc = add_between(d, req, i, &what);
	return rc ? rc : add_edited(d, req, c, NULL, &what);
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
	rc = d.first && d.phase ? update_order(u, d.first, d.phase, err) : err_no_memory(err);
	if (rc)
		return rc;
	const struct store_sequence reads = {.n = (size_t)change->nchanged + change->nremoved,
					     .window = READS,
					     .request = request_document,
					     .take = take_document,
					     .arg = &d};
	rc = store_run_sequence(u->opt->store, &reads);
	return rc == -ENOMEM ? err_no_memory(err) : rc;
}
