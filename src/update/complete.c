/* SPDX-License-Identifier: Apache-2.0 */
/* See update/complete.h. */
#include <update/complete.h>

#include <errno.h>
#include <string.h>

#include <update/confirm.h>
#include <schema/schema.h>

#include <domain/documents.h>
#include <overlay/draft_plan.h>
#include "update_internal.h"

enum { LOOKS = 4 /* at an object that changes all the time */ };

/* ---- requests ---- */

/* Sends a HEAD, or the DELETE of one version, which fails with -ESTALE if the object has another
 * one. If `version` is NULL, any version is meant. */
static int send(const struct complete *c, enum store_op op, const char *key, const char *version,
		struct store_request *req, struct err *err)
{
	store_request_reset(req, op);
	store_request_key(req, key);
	req->wants_mark = op == STORE_HEAD;
	req->cond.if_match = version;
	req->cancelled = cancelled_by(c->apply->cancelled);
	store_run(c->apply->store, req);
	return store_failure(&req->answer, err);
}

static bool has_own_mark(const struct complete *c, const struct store_answer *a)
{
	return a->has_mark && a->mark[0] && plan_has_mark(c->apply->plan, a->mark);
}

/* ---- which dataset a chunk belongs to ---- */

/* Writes the key of the document of the dataset that has a chunk. Returns how many bytes of it all
 * keys of the dataset begin with; 0 if the plan does not say which dataset that is. */
static size_t find_document(const struct complete *c, const char *chunk, char *key, size_t room)
{
	const struct plan_subject *s = &c->apply->plan->subject;
	size_t folder;
	for (uint32_t i = 0; s->root && c->schema->editor && i < s->count; i++)
		if (c->schema->editor->key_of_id(s->root, s->objects[i], key, room, &folder) >= 0 &&
		    folder && strncmp(chunk, key, folder) == 0)
			return folder;
	return 0;
}

/* Returns the last put of a document, or NULL if there is none. */
static struct plan_operation *last_put(const struct plan *plan, const char *key)
{
	struct plan_operation *last = NULL;
	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_operation *op = &plan->operations[i];
		if (op->action == PLAN_PUT && strcmp(op->key, key) == 0 &&
		    (!last || op->phase > last->phase))
			last = op;
	}
	return last;
}

/* Returns whether an operation puts a chunk at a new place of a dataset that was there before. */
static bool is_growth(const struct plan_operation *op)
{
	return op->phase == PHASE_NEW_CHUNKS && op->action == PLAN_PUT &&
	       op->condition != PLAN_ALWAYS;
}

/* ---- deletes outside of a shape ---- */

/* Returns 1 if the document has the shape of the plan, 0 if not, or a negative errno. */
static int has_own_shape(const struct complete *c, const char *chunk, struct store_request *req,
			 struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	if (!find_document(c, chunk, key, sizeof(key)))
		return 0;
	const int rc = send(c, STORE_HEAD, key, NULL, req, err);
	return rc ? rc : !store_absence(&req->answer) && has_own_mark(c, &req->answer);
}

static int look_at_cut(const struct complete *c, const char *key, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->apply->store, STORE_HEAD);
	char version[STORE_ETAG_MAX];
	int rc = req ? -ESTALE : err_no_memory(err);
	for (unsigned int i = 0; rc == -ESTALE && i < LOOKS; i++) {
		rc = send(c, STORE_HEAD, key, NULL, req, err);
		if (rc || store_absence(&req->answer))
			return rc;
		memcpy(version, req->answer.meta.etag, sizeof(version));
		rc = has_own_shape(c, key, req, err);
		if (rc <= 0 || !version[0])
			return rc < 0 ? rc : 0;
		rc = send(c, STORE_DELETE, key, version, req, err);
	}
	return rc;
}

/* Returns 1 if the run goes on after a conflict, 0 if not, or a negative errno. */
static int settle_cut(const struct complete *c, uint32_t i, struct err *err)
{
	if (i == APPLY_NO_CONFLICT)
		return 0;
	struct plan_operation *op = &c->apply->plan->operations[i];
	if (op->action != PLAN_DELETE || op->phase != PHASE_CUT)
		return 0;
	struct err own = ERR_INIT;
	const int rc = look_at_cut(c, op->key, &own);
	if (rc) {
		err_copy(err, &own);
		return rc;
	}
	op->done = true;
	draft_note_operation(c->apply->draft, i, PLAN_DONE, NULL);
	return 1;
}

/* ---- running ---- */

/* Returns whether the plan lets a dataset grow, and finds the operations that show it. A crash of
 * the machine must not forget that the request for a shape may have arrived: the chunks would be
 * withdrawn, although the commit has been acknowledged (see is_outside()). */
static bool find_growth(const struct complete *c)
{
	bool grows = false;
	char key[SCHEMA_KEY_MAX + 1];
	size_t folder = 0; /* of the dataset whose document has the key */
	for (uint32_t i = 0; i < c->apply->plan->count; i++) {
		const struct plan_operation *op = &c->apply->plan->operations[i];
		if (!is_growth(op) || (folder && strncmp(op->key, key, folder) == 0))
			continue;
		grows = true;
		folder = find_document(c, op->key, key, sizeof(key));
		struct plan_operation *shape = folder ? last_put(c->apply->plan, key) : NULL;
		if (shape)
			shape->shows = true;
	}
	return grows;
}

/* Reads again which operations are done, because the run goes on with them. */
static int refresh(const struct complete *c, struct err *err)
{
	struct plan now;
	const int rc = draft_get_plan(c->apply->draft, &now, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < now.count && i < c->apply->plan->count; i++) {
		c->apply->plan->operations[i].done |= now.operations[i].done;
		c->apply->plan->operations[i].sent = now.operations[i].sent;
	}
	plan_release(&now);
	return 0;
}

static int confirm(const struct complete *c, struct err *err)
{
	const struct confirm subject = {.env = c->apply->env,
					.store = c->apply->store,
					.schema = c->schema,
					.cancelled = c->apply->cancelled,
					.path = c->path};
	return c->confirm ? c->confirm(c->ctx, err) : confirm_plan(&subject, c->apply->plan, err);
}

/* Fails with -ESTALE if another program has put one of the shapes. It may have found the new places
 * empty, so a chunk that is put there now would be one of its own dataset until it is withdrawn. */
static int look_at_shapes(const struct complete *c, uint32_t *conflict, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->apply->store, STORE_HEAD);
	int rc = req ? 0 : err_no_memory(err);
	for (uint32_t i = 0; !rc && i < c->apply->plan->count; i++) {
		const struct plan_operation *op = &c->apply->plan->operations[i];
		const struct store_answer *a = &req->answer;
		if (!op->shows || op->done)
			continue;
		rc = send(c, STORE_HEAD, op->key, NULL, req, err);
		if (rc || store_absence(a) || !a->has_mark || !a->mark[0] ||
		    plan_has_mark(c->apply->plan, a->mark) ||
		    strcmp(a->meta.etag, op->version) == 0)
			continue;
		*conflict = i;
		rc = err_set(err, -ESTALE, "object %s: another program has changed it", op->key);
	}
	return rc;
}

int complete_run(const struct complete *c, struct apply_result *out, struct err *err)
{
	struct apply apply = *c->apply;
	struct apply_result part;
	*out = (struct apply_result){.conflict = APPLY_NO_CONFLICT};
	apply.notes_sent = find_growth(c);
	int rc = apply.notes_sent && apply.is_repeated ? look_at_shapes(c, &out->conflict, err) : 0;
	if (rc)
		return rc;
	while (true) {
		struct err why = ERR_INIT;
		rc = apply_run(&apply, &part, &why);
		out->puts += part.puts;
		out->deletes += part.deletes;
		out->bytes += part.bytes;
		out->conflict = part.conflict;
		if (rc == 0)
			break;
		const int goes_on = rc == -ESTALE ? settle_cut(c, part.conflict, &why) : 0;
		if (goes_on <= 0) {
			err_copy(err, &why);
			return goes_on ? goes_on : rc;
		}
		rc = refresh(c, err);
		if (rc)
			return rc;
	}
	return confirm(c, err);
}

/* ---- withdrawing ---- */

/* Returns 1 if the root group is gone, 0 if not, or a negative errno. */
static int is_gone(const struct complete *c, struct store_request *req, struct err *err)
{
	const struct document_place place = {.env = c->apply->env,
					     .store = c->apply->store,
					     .schema = c->schema,
					     .cancelled = c->apply->cancelled};
	char key[SCHEMA_KEY_MAX + 1];
	struct storage storage;
	int rc = schema_storage_of_root(c->schema, c->apply->plan->subject.root, &storage, err);
	if (!rc)
		rc = storage_root_key(&place, &storage, key, err);
	if (!rc)
		rc = send(c, STORE_HEAD, key, NULL, req, err);
	return rc ? rc : store_absence(&req->answer) != NULL;
}

/* Returns whether the plan has never put the shape that makes the chunk visible. */
static bool is_outside(const struct complete *c, const struct plan_operation *op)
{
	char key[SCHEMA_KEY_MAX + 1];
	if (!is_growth(op) || !find_document(c, op->key, key, sizeof(key)))
		return false;
	const struct plan_operation *shape = last_put(c->apply->plan, key);
	return shape && !shape->done && !shape->sent;
}

/* Removes an object that the plan has put. Returns 1 if it was removed, and 0 if it is not there,
 * or another request has put it. */
static int withdraw_object(const struct complete *c, uint32_t i, struct store_request *req,
			   struct err *err)
{
	const struct plan_operation *op = &c->apply->plan->operations[i];
	char version[STORE_ETAG_MAX];
	int rc = send(c, STORE_HEAD, op->key, NULL, req, err);
	if (rc || store_absence(&req->answer) || !has_own_mark(c, &req->answer))
		return rc;
	memcpy(version, req->answer.meta.etag, sizeof(version));
	/* If the plan is run again, it has to put the object again. */
	rc = draft_note_operation(c->apply->draft, i, PLAN_VOID, err);
	if (!rc)
		rc = send(c, STORE_DELETE, op->key, version[0] ? version : NULL, req, err);
	return rc == -ESTALE ? 0 : rc ? rc : 1;
}

static int withdraw(const struct complete *c, uint64_t *removed, struct err *err)
{
	auto_request struct store_request *req = store_request_new(c->apply->store, STORE_HEAD);
	int rc = req ? refresh(c, err) : err_no_memory(err);
	const int gone = rc ? rc : is_gone(c, req, err);
	rc = gone < 0 ? gone : 0;
	for (uint32_t i = 0; !rc && i < c->apply->plan->count; i++) {
		const struct plan_operation *op = &c->apply->plan->operations[i];
		if (op->action != PLAN_PUT || !(gone || is_outside(c, op)))
			continue;
		rc = withdraw_object(c, i, req, err);
		*removed += rc > 0;
		rc = rc < 0 ? rc : 0;
	}
	return rc;
}

uint64_t complete_withdraw(const struct complete *c)
{
	struct err why = ERR_INIT;
	uint64_t removed = 0;
	if (c->apply->plan->subject.root && withdraw(c, &removed, &why))
		log_warning(c->apply->env->log,
			    "domain /%s: objects that a failed commit has put may remain in the "
			    "bucket: %s",
			    c->path, why.msg);
	return removed;
}
