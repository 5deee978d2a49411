/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of an update, and the bodies of chunks. */
#include "update_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <store/put_queue.h>

/* ---- chunks ---- */

struct chunk_plan {
	struct update *u;
	const struct chunk_change *c;
	struct chunk_context *context; /* of the dataset; NULL at first */
	struct chunk_parts *parts;
	char version[STORE_ETAG_MAX];
	struct update_operation what;
};

static bool is_smaller(const struct grid *now, const struct grid *before)
{
	for (uint32_t i = 0; i < now->rank; i++)
		if (now->dims[i] < before->dims[i])
			return true;
	return false;
}

static bool is_outside(const struct grid *from, const struct grid *of, uint64_t number)
{
	uint64_t ignored;
	return !update_renumber(from, of, number, &ignored);
}

static uint32_t phase_of(const struct update *u, const struct chunk_change *c)
{
	const uint32_t before = u->same[c->dataset];
	if (before == OBJECT_NONE)
		return PHASE_NEW_CHUNKS;
	const struct grid *now = &dataset_of(u->now, c->dataset)->grid;
	const struct grid *old = &dataset_of(u->before, before)->grid;
	if (c->is_gone)
		return is_outside(old, now, c->number) ? PHASE_CUT : PHASE_CHUNKS;
	if (is_outside(now, old, c->number))
		return PHASE_NEW_CHUNKS;
	return is_smaller(now, old) ? PHASE_CUT : PHASE_CHUNKS;
}

static int chunk_key(const struct chunk_plan *p, char key[SCHEMA_KEY_MAX + 1], struct err *err)
{
	const struct update *u = p->u;
	const struct chunk_change *c = p->c;
	const struct tree *t = c->is_gone ? u->before->tree : u->now->tree;
	const uint32_t number = c->is_gone ? u->same[c->dataset] : c->dataset;
	const int rc = u->schema->writer->chunk_key(t, number, c->number, key, SCHEMA_KEY_MAX + 1);
	return rc < 0 ? err_set(err, rc, "dataset %s: the key of chunk %" PRIu64 " is too long",
				u->now->paths[c->dataset], c->number)
		      : 0;
}

/* Returns whether the domain had this chunk in its shape when it was opened. */
static bool was_opened(const struct chunk_plan *p, uint32_t *dataset, uint64_t *number)
{
	const struct update *u = p->u;
	const struct chunk_change *c = p->c;
	const struct scan *s = c->is_gone ? u->before : u->now;
	const struct grid *from =
		&dataset_of(s, c->is_gone ? u->same[c->dataset] : c->dataset)->grid;
	*dataset = u->now->opened[c->dataset];
	return *dataset != OBJECT_NONE &&
	       update_renumber(from,
			       &tree_object(domain_tree(u->base->domain), *dataset)->o.dataset.grid,
			       c->number, number);
}

/* Finds the known version of the object of a chunk: that of the last update that has put or deleted
 * it, or else that of the opened domain. Versions of chunks outside of the opened shape are not
 * known. */
static int find_version(struct chunk_plan *p, bool *is_absent)
{
	const struct update *u = p->u;
	const struct chunk_change *c = p->c;
	uint32_t dataset;
	uint64_t number;
	if (c->version) {
		strcpy(p->version, c->version);
		return 0;
	}
	if (!was_opened(p, &dataset, &number))
		return 0;
	/* The file did not have the chunk after the last update, so the bucket did not have it
	 * either. */
	*is_absent = c->is_new && !u->base->is_image;
	return *is_absent ? 0
			  : domain_chunk_version(u->base->domain, dataset, number, p->version,
						 is_absent);
}

/* Returns whether the chunk is outside of the old shape. update_look() finds out what is there. */
static bool is_unknown_place(const struct chunk_plan *p)
{
	return p->what.op.phase == PHASE_NEW_CHUNKS && p->u->same[p->c->dataset] != OBJECT_NONE &&
	       !p->version[0];
}

/* Sets the condition of the operation. */
static int set_condition(struct chunk_plan *p, struct err *err)
{
	bool is_absent = false;
	p->version[0] = '\0';
	const int rc = find_version(p, &is_absent);
	if (rc)
		return err_set(err, rc, "a chunk of dataset %s has changed in the bucket",
			       p->u->now->paths[p->c->dataset]);
	if (is_absent || is_unknown_place(p))
		p->what.op.condition = PLAN_IF_ABSENT;
	else if (p->version[0])
		p->what.op.condition = PLAN_IF_VERSION;
	p->what.op.version = p->version;
	p->what.is_absent = is_absent;
	return 0;
}

static int take_part(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct chunk_plan *p = ctx;
	return chunk_add_part(&p->parts, p->context, p->c->number, chunk) ? err_no_memory(err) : 0;
}

/* Returns whether the body is a range of the snapshot that can be read without the bucket. */
static bool is_range(const struct chunk_plan *p, const struct bytes *body, uint64_t *offset)
{
	const struct chunk_parts *parts = p->parts;
	const struct update *u = p->u;
	const uint64_t addr = parts->parts[0].addr;
	*offset = u->user_block + addr;
	return parts->is_verbatim && !parts->parts[0].data &&
	       update_is_held(u, addr, addr + body->len);
}

static int add_put(struct chunk_plan *p, const struct bytes *body, struct err *err)
{
	struct plan_operation *op = &p->what.op;
	op->action = PLAN_PUT;
	p->u->counts_changed |= p->c->is_new;
	if (!is_range(p, body, &op->offset))
		return update_add(p->u, &p->what, body, err);
	op->body = PLAN_RANGE;
	op->length = body->len;
	plan_digest(body->data, body->len, op->sha256);
	return update_add(p->u, &p->what, NULL, err);
}

/* Adds the delete of a chunk that is gone, or that has only fill values and so is not stored,
 * unless the bucket has no object for it. */
static int add_delete(struct chunk_plan *p, struct err *err)
{
	if (p->what.is_absent || is_unknown_place(p) || p->u->same[p->c->dataset] == OBJECT_NONE)
		return 0;
	p->what.op.action = PLAN_DELETE;
	p->u->counts_changed = true;
	return update_add(p->u, &p->what, NULL, err);
}

static int plan_put(struct chunk_plan *p, struct err *err)
{
	struct update *u = p->u;
	auto_bytes struct bytes body = {0};
	int rc = h5file_chunks(u->now->file, p->c->dataset, p->c->number, p->c->number + 1,
			       take_part, p, err);
	if (!rc && !p->parts)
		rc = err_set(err, -EIO, "its index has changed");
	if (!rc)
		rc = chunk_make(p->parts, &body, err);
	if (rc < 0 && p->parts)
		chunk_explain(p->parts, err);
	const bool is_fill = rc == PUT_NOTHING;
	if (rc >= 0)
		rc = set_condition(p, err);
	if (!rc)
		rc = is_fill ? add_delete(p, err) : add_put(p, &body, err);
	chunk_free(p->parts);
	p->parts = NULL;
	return rc;
}

static int plan_chunk(struct chunk_plan *p, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	const uint32_t opened = p->u->now->opened[p->c->dataset];
	if (opened != OBJECT_NONE && domain_has_own_list(p->u->base->domain, opened))
		p->u->base->lists_changed = true;
	p->what = (struct update_operation){
		.op = {.phase = phase_of(p->u, p->c)},
		.key = key,
		.target = {.object = p->c->is_gone ? OBJECT_NONE : p->c->dataset,
			   .owner = p->c->dataset,
			   .is_new = p->u->same[p->c->dataset] == OBJECT_NONE,
			   .is_chunk = true,
			   .chunk = p->c->number},
	};
	int rc = chunk_key(p, key, err);
	if (rc)
		return rc;
	if (!p->c->is_gone)
		return plan_put(p, err);
	rc = set_condition(p, err);
	return rc ? rc : add_delete(p, err);
}

static int enter_dataset(struct chunk_plan *p, struct err *err)
{
	struct update *u = p->u;
	const struct chunk_origin from = {.file = u->now->file,
					  .tree = u->now->tree,
					  .schema = u->schema,
					  .paths = u->now->paths,
					  .is_damaged = &u->now->is_damaged};
	if (p->context && p->context->number == p->c->dataset)
		return 0;
	chunk_context_unref(p->context);
	p->context = chunk_context_new(&from, p->c->dataset);
	if (!p->context)
		return err_no_memory(err);
	if (u->now->opened[p->c->dataset] != OBJECT_NONE)
		chunk_context_serve(p->context);
	return 0;
}

static int plan_chunks(struct update *u, struct err *err)
{
	const struct chunk_change *all = (const void *)u->chunks.data;
	const struct cancelled stop = cancelled_by(u->opt->cancelled);
	struct chunk_plan p = {.u = u};
	int rc = 0;
	for (size_t i = 0; !rc && i < u->chunks.len / sizeof(*all); i++) {
		p.c = &all[i];
		rc = is_cancelled(&stop) ? err_set(err, -ECANCELED, "interrupted")
					 : enter_dataset(&p, err);
		if (!rc)
			rc = plan_chunk(&p, err);
	}
	chunk_context_unref(p.context);
	return rc;
}

/* ---- what the service keeps of the domain ---- */

/* Adds the delete of the service's copy of values, which would otherwise stay and be wrong. The
 * claims of the same phase change no value. */
static int plan_copy(struct update *u, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct storage storage;
	const struct update_operation what = {
		.op = {.action = PLAN_DELETE, .phase = PHASE_CLAIM},
		.key = key,
		.target = {.object = OBJECT_NONE, .owner = OBJECT_NONE},
	};
	if (!u->operations.len || !domain_has_copy(u->base->domain) ||
	    !schema_storage_of(domain_document(u->base->domain), &storage))
		return 0;
	const int n = snprintf(key, sizeof(key), "%s%s", storage.prefix, u->schema->storage->copy);
	return (size_t)n < sizeof(key) ? update_add(u, &what, NULL, err) : 0;
}

int update_plan(struct update *u, struct err *err)
{
	int rc = plan_chunks(u, err);
	if (!rc)
		update_summary_begin(u);
	if (!rc)
		rc = update_look(u, err);
	if (!rc)
		rc = update_plan_user_block(u, err);
	if (!rc)
		rc = update_plan_documents(u, err);
	if (!rc)
		rc = update_plan_summary(u, err);
	return rc ? rc : plan_copy(u, err);
}
