/* SPDX-License-Identifier: Apache-2.0 */
/* One update, from the file to the bucket: see update/update.h. */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <update/apply.h>
#include <update/complete.h>
#include <domain/puts.h>
#include <journal/gc_log.h>
#include <overlay/draft_plan.h>

#include "update_garbage.h"

enum { UPDATE_ARENA = 1 << 30, REPLANS = 4 };

/* ---- begin and end ---- */

static int init(struct update *u, struct update_base *b, const struct update_options *opt,
		struct update_result *out, struct err *err)
{
	*u = (struct update){.base = b, .opt = opt, .result = out};
	u->schema = domain_schema(b->domain);
	u->arena = arena_new(UPDATE_ARENA);
	if (!u->arena)
		return err_no_memory(err);
	if (!u->schema->editor)
		return err_set(err, -EOPNOTSUPP, "domains of schema %s cannot be changed in place",
			       u->schema->name);
	return 0;
}

static void release(struct update *u)
{
	store_pending_free(&u->listing);
	scan_free(u->now);
	bytes_release(&u->chunks);
	bytes_release(&u->operations);
	bytes_release(&u->targets);
	arena_free(u->arena);
}

/* ---- what has changed ---- */

/* If this fails with an error of is_refusal(), the file is the reason. */
static int find_changes(struct update *u, struct err *err)
{
	struct update_known as_before = {.base = u->base, .since = &u->since};
	const struct h5file_known known = {.is_known = update_is_known, .ctx = &as_before};
	int rc = update_find_file(u, err);
	if (!rc)
		rc = scan_open(u->opt->env, &u->file, true, &known, &u->now, err);
	if (rc)
		return rc;
	rc = update_read_user_block(u, err);
	if (!rc)
		rc = update_match(u, err);
	if (!rc)
		rc = update_adopt(u, err);
	if (!rc)
		rc = update_read_chunks(u, err);
	if (!rc)
		rc = tree_change(u->before->tree, u->now->tree, u->same, u->arena, &u->change, err);
	if (!rc)
		rc = update_check(u, err);
	if (!rc)
		rc = update_find_chunks(u, err);
	u->result->objects = scan_count_read(u->now);
	u->result->nodes = u->now->nodes;
	return rc || !update_judge ? rc : update_judge(u, err);
}

/* Returns whether an error means that the file is damaged, or that a domain cannot hold it. An -EIO
 * of the disk that has the snapshot does not, nor one of a request while the plan is made. */
static bool is_refusal(const struct update *u, int rc, bool is_planning)
{
	if (atomic_load(&u->failed))
		return false;
	return rc == -EOPNOTSUPP ||
	       (rc == -EIO && (!is_planning || atomic_load(&u->now->is_damaged)));
}

/* ---- applying ---- */

/* A plan that runs. */
struct running {
	struct update *u;
	const struct plan *plan;
};

/* Notes the new version of an object or a chunk. If there is no memory for it, the next update
 * takes the version of the opened domain, and fails with -ESTALE. */
static void note_version(void *ctx, uint32_t operation, const char *etag)
{
	struct update_base *b = ((struct running *)ctx)->u->base;
	const struct update_target *all = (const void *)b->targets.data, *t = &all[operation];
	if (((struct running *)ctx)->plan->operations[operation].phase == PHASE_SUMMARY)
		update_summary_done(b, etag);
	if (t->is_claim && etag)
		b->scan->version[t->before] = arena_strndup(b->scan->arena, etag, strlen(etag));
	if (t->object == OBJECT_NONE || !etag)
		return;
	char *copy = arena_strndup(b->next->arena, etag, strlen(etag));
	if (!t->is_chunk) {
		b->next->version[t->object] = copy;
		return;
	}
	if (copy)
		chunk_versions_add(&b->next->chunks[t->object].versions, t->chunk, copy);
}

static int phase_done(void *ctx, uint32_t phase, struct err *err)
{
	const struct running *r = ctx;
	const int rc = phase == PHASE_CLAIM ? update_look_again(r->u, r->plan, err) : 0;
	r->u->replans |= rc == -EAGAIN;
	return rc;
}

static int confirm(void *ctx, struct err *err)
{
	const struct running *r = ctx;
	return update_confirm(r->u, r->plan, err);
}

/* Returns whether the operation has put a chunk at a new place of a dataset, and has met an object
 * that the plan does not know. */
static bool meets_leftover(const struct update *u, const struct plan *plan, uint32_t operation)
{
	const struct update_target *all = (const void *)u->base->targets.data;
	const struct scan *now = u->base->next;
	if (operation == APPLY_NO_CONFLICT || all[operation].is_new || !all[operation].is_chunk ||
	    plan->operations[operation].phase != PHASE_NEW_CHUNKS)
		return false;
	const char *id = tree_object(now->tree, all[operation].owner)->o.id;
	const struct tree *before = u->base->scan->tree;
	for (uint32_t i = 0; i < tree_count(before); i++) {
		const uint32_t number = tree_nth(before, i);
		enum growth_state *state = &u->base->growth[number];
		if (strcmp(tree_object(before, number)->o.id, id) != 0)
			continue;
		if (*state == GROWTH_FREE)
			*state = GROWTH_FOUND;
		return true;
	}
	return false;
}

/* Runs the operations of the plan that are not done yet. */
static int run_plan(struct update *u, struct plan *plan, bool is_repeated, struct err *err)
{
	struct apply_result done;
	struct running r = {.u = u, .plan = plan};
	const struct apply apply = {.env = u->opt->env,
				    .store = u->opt->store,
				    .draft = u->opt->draft,
				    .snapshot = u->opt->snapshot,
				    .plan = plan,
				    .is_repeated = is_repeated,
				    .puts = u->opt->puts,
				    .cancelled = u->opt->cancelled,
				    .done = note_version,
				    .phase_done = phase_done,
				    .ctx = &r};
	const struct complete complete = {.apply = &apply,
					  .schema = u->schema,
					  .path = domain_path(u->base->domain),
					  .confirm = confirm,
					  .ctx = &r};
	int rc = complete_run(&complete, &done, err);
	u->result->puts += done.puts;
	u->result->deletes += done.deletes;
	u->result->bytes += done.bytes;
	u->replans |= rc == -ESTALE && meets_leftover(u, plan, done.conflict);
	if (rc == -ESTALE && !(u->replans && u->may_replan))
		complete_withdraw(&complete);
	if (!rc)
		rc = apply_note_removed(&apply, u->opt->log, complete.path, &u->result->removed,
					err);
	return rc;
}

static int run(struct update *u, bool is_repeated, struct err *err)
{
	struct plan plan;
	int rc = draft_get_plan(u->opt->draft, &plan, err);
	if (rc)
		return rc;
	rc = run_plan(u, &plan, is_repeated, err);
	const uint64_t number = plan.number;
	struct domain_puts *puts = rc ? NULL : update_puts(u, &plan);
	plan_release(&plan);
	if (!rc && !u->opt->keeps_plan)
		rc = draft_remove_plan(u->opt->draft, err);
	if (!rc) {
		u->result->documents = puts;
		update_base_end(u->base);
		return 0;
	}
	domain_puts_free(puts);
	gc_log_clear(u->opt->log, &u->result->removed); /* the plan still has it */
	if (u->replans && u->may_replan && update_base_restart(u->base, number))
		return err_no_memory(err);
	return rc;
}

/* Lists the objects that the operations change, each of them once. */
static int list_subject(const struct update *u, struct plan_subject *out, struct err *err)
{
	const struct update_target *all = (const void *)u->targets.data;
	const size_t n = u->targets.len / sizeof(*all);
	const uint32_t numbers = tree_numbers(u->now->tree);
	auto_free bool *has = calloc((size_t)numbers + 1, sizeof(*has));
	out->objects = arena_array(u->arena, (size_t)numbers + 1, sizeof(*out->objects));
	if (!has || !out->objects)
		return err_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const uint32_t owner = all[i].owner;
		if (owner == OBJECT_NONE || all[i].is_new || has[owner])
			continue;
		has[owner] = true;
		out->objects[out->count++] = tree_object(u->now->tree, owner)->o.id;
	}
	return 0;
}

/* Puts the plan into the journal. From then on the update can only be completed. */
static int put_plan(struct update *u, struct err *err)
{
	const struct plan_operation *operations = (const void *)u->operations.data;
	const uint32_t n = (uint32_t)(u->operations.len / sizeof(*operations));
	struct plan_subject subject = {.root = domain_document(u->base->domain)->info.root,
				       .earlier = (void *)u->base->earlier.data,
				       .nearlier =
					       (uint32_t)(u->base->earlier.len / sizeof(uint64_t))};
	int rc = update_list_removed(u, &subject, err);
	if (!rc)
		rc = list_subject(u, &subject, err);
	if (!rc)
		rc = u->opt->begin(u->opt->ctx, err);
	if (!rc)
		rc = draft_put_plan(u->opt->draft, operations, n, &subject, err);
	if (rc)
		return rc;
	update_base_begin(u->base, u->now, &u->targets);
	u->now = NULL;
	return 0;
}

/* Ends an update that leaves the bucket as it is. The scan becomes the base nevertheless, because
 * addresses in the file may have changed. */
static int end_without_plan(struct update *u, struct err *err)
{
	int rc = draft_remove_plan(u->opt->draft, err); /* bodies of chunks that are not put */
	if (rc)
		return rc;
	update_base_begin(u->base, u->now, &u->targets);
	u->now = NULL;
	update_base_end(u->base);
	return 0;
}

static int update(struct update *u, struct err *err)
{
	if (update_is_pending(u->base))
		return run(u, true, err);
	int rc = update_base_scan(u->base, u->opt->env, err);
	if (rc)
		return rc;
	u->before = u->base->scan;
	rc = find_changes(u, err);
	u->result->refused = is_refusal(u, rc, false);
	if (rc)
		return rc;
	rc = update_plan(u, err);
	u->result->refused = is_refusal(u, rc, true);
	if (rc)
		return rc;
	if (!u->operations.len)
		return end_without_plan(u, err);
	rc = put_plan(u, err);
	return rc ? rc : run(u, false, err);
}

/* Withdraws a plan that was to be replaced by another one, which could not be made. */
static void withdraw_replaced(const struct update_base *b, const struct update_options *opt)
{
	struct plan plan;
	const struct apply apply = {.env = opt->env,
				    .store = opt->store,
				    .draft = opt->draft,
				    .plan = &plan,
				    .cancelled = opt->cancelled};
	const struct complete complete = {.apply = &apply,
					  .schema = domain_schema(b->domain),
					  .path = domain_path(b->domain)};
	if (draft_get_plan(opt->draft, &plan, NULL))
		return;
	complete_withdraw(&complete);
	plan_release(&plan);
}

int domain_update(struct update_base *b, const struct update_options *opt,
		  struct update_result *out, struct err *err)
{
	struct err own;
	struct update u;
	int rc;
	bool again = true;
	err = err ? err : &own;
	*out = (struct update_result){.removed = GC_NONE};
	for (unsigned int left = REPLANS; again; left--) {
		*err = (struct err)ERR_INIT;
		rc = init(&u, b, opt, out, err);
		u.may_replan = left > 0;
		if (!rc)
			rc = update(&u, err);
		again = rc && u.replans && u.may_replan && !update_is_pending(b);
		release(&u);
	}
	if (rc == -ESTALE && b->earlier.len && !update_is_pending(b))
		withdraw_replaced(b, opt);
	if (rc == -EAGAIN)
		rc = err_set(err, -ESTALE, "another program changes the dataset all the time");
	out->lists_changed = b->lists_changed;
	return rc;
}
