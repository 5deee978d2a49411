/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets that grow. A chunk object outside of the shape is no chunk, but becomes one when the
 * dataset grows over it. Such an object may be left over from a commit that has failed, or from a
 * commit that is running in another mount. So before a dataset grows, the new places that get no
 * chunk are looked at, and chunks are put at new places only if nothing is there.
 *
 * If something is found either way, the commit first claims the dataset: it puts the document with
 * the old shape and another time, on the condition that nobody has changed it. From then on, no
 * other commit that has begun can put its shape. Then the places are listed again. What is left
 * over at the place of a chunk is overwritten, and everything else within the new shape is deleted,
 * on the condition that it has the version of the listing. The shape comes last.
 *
 *   look -> nothing is there: chunks, shape
 *        -> something is there, or a put at a new place finds an object:
 *           plan: claim, chunks over what is there, deletes, shape
 *           after the claim: list; if it differs from the plan: plan again, without the claim
 */
#include "update_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEADS_PER_PAGE = 8, /* so many HEADs cost as much as a page of a listing */
	HEADS = 64,	    /* at the same time */
};

struct growth {
	struct update *u;
	const struct object_change *c;
	const struct grid *before, *now;
	uint64_t *put; /* numbers of the new places that get a chunk, sorted */
	size_t nput;
	struct bytes found; /* of struct leftover */
	struct err *err;
};

/* An object at a new place. */
struct leftover {
	const char *key, *version;
};

/* ---- places ---- */

/* Returns the number of chunks that both shapes have. */
static uint64_t count_common(const struct growth *g)
{
	uint64_t n = g->before->nchunks && g->now->nchunks ? 1 : 0;
	for (uint32_t i = 0; i < g->now->rank; i++)
		n *= min_u64(g->now->count[i], g->before->count[i]);
	return n;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static const struct update_target *target_of(const struct update *u, size_t i)
{
	return &((const struct update_target *)(const void *)u->targets.data)[i];
}

static struct plan_operation *operation_of(const struct update *u, size_t i)
{
	return &((struct plan_operation *)(void *)u->operations.data)[i];
}

static size_t count_operations(const struct update *u)
{
	return u->operations.len / sizeof(struct plan_operation);
}

/* Returns whether operation i changes a new place of the dataset. */
static bool is_at_new_place(const struct update *u, size_t i, uint32_t dataset)
{
	const struct update_target *t = target_of(u, i);
	return t->is_chunk && t->owner == dataset && operation_of(u, i)->phase == PHASE_NEW_CHUNKS;
}

static int find_puts(struct growth *g)
{
	const struct update *u = g->u;
	g->put = arena_array(u->arena, count_operations(u) + 1, sizeof(*g->put));
	if (!g->put)
		return err_no_memory(g->err);
	for (size_t i = 0; i < count_operations(u); i++)
		if (is_at_new_place(u, i, g->c->after) && operation_of(u, i)->action == PLAN_PUT)
			g->put[g->nput++] = target_of(u, i)->chunk;
	if (g->nput)
		qsort(g->put, g->nput, sizeof(*g->put), compare_numbers);
	return 0;
}

/* ---- HEADs ---- */

struct heads {
	struct growth *g;
	uint64_t *places;
	size_t n;
};

/* Adds the places of a box of chunks that get no chunk. */
static void add_box(struct heads *h, const uint64_t *lo, const uint64_t *hi)
{
	const struct growth *g = h->g;
	const uint32_t rank = g->now->rank;
	uint64_t at[DSPACE_MAX_RANK];
	uint32_t k = rank;
	for (uint32_t i = 0; i < rank; i++)
		if (lo[i] >= hi[i])
			return;
	memcpy(at, lo, rank * sizeof(*at));
	while (k > 0) {
		const uint64_t number = grid_number(g->now, at);
		if (!g->nput ||
		    !bsearch(&number, g->put, g->nput, sizeof(*g->put), compare_numbers))
			h->places[h->n++] = number;
		for (k = rank; k > 0 && ++at[k - 1] == hi[k - 1]; k--)
			at[k - 1] = lo[k - 1];
	}
}

/* Lists the new places: for each dimension, those that are outside of the old shape in it, and
 * within it in all dimensions before it. */
static void list_places(struct heads *h)
{
	const struct grid *now = h->g->now, *before = h->g->before;
	uint64_t lo[DSPACE_MAX_RANK] = {0}, hi[DSPACE_MAX_RANK];
	memcpy(hi, now->count, now->rank * sizeof(*hi));
	if (!before->nchunks) {
		add_box(h, lo, hi);
		return;
	}
	for (uint32_t i = 0; i < now->rank; i++) {
		lo[i] = before->count[i];
		add_box(h, lo, hi);
		lo[i] = 0;
		hi[i] = min_u64(now->count[i], before->count[i]);
	}
}

static bool request_head(void *arg, size_t i, struct store_request *req)
{
	const struct heads *h = arg;
	const struct update *u = h->g->u;
	char key[SCHEMA_KEY_MAX + 1];
	store_request_reset(req, STORE_HEAD);
	if (u->schema->writer->chunk_key(u->now->tree, h->g->c->after, h->places[i], key,
					 sizeof(key)) < 0)
		return false;
	store_request_key(req, key);
	req->priority = STORE_COMMIT;
	req->cancelled = cancelled_by(u->opt->cancelled);
	return true;
}

enum { FOUND = 1 };

static int take_head(void *arg, size_t i, struct store_request *req)
{
	const struct heads *h = arg;
	if (!req->key[0])
		return err_set(h->g->err, -ENAMETOOLONG, "the key of a chunk is too long");
	const int rc = store_failure(&req->answer, h->g->err);
	return rc || store_absence(&req->answer) ? rc : FOUND;
}

/* Returns 1 if an object is at one of the places, 0 if not, or a negative errno. */
static int ask_heads(struct growth *g, uint64_t n)
{
	struct heads h = {.g = g};
	auto_free uint64_t *places = h.places = calloc(n + 1, sizeof(*places));
	if (!places)
		return err_no_memory(g->err);
	list_places(&h);
	const struct store_sequence heads = {
		.n = h.n, .window = HEADS, .request = request_head, .take = take_head, .arg = &h};
	const int rc = store_run_sequence(g->u->opt->store, &heads);
	if (rc < 0)
		atomic_store(&g->u->failed, true);
	return rc == -ENOMEM ? err_no_memory(g->err) : rc;
}

/* ---- listings ---- */

static int take_page(struct growth *g, const struct store_page *page)
{
	const struct update *u = g->u;
	const struct object *o = object_of(u->now, g->c->after);
	uint64_t number, ignored;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (item->is_prefix || !u->schema->chunk_of_key(o, item->key, &number) ||
		    update_renumber(g->now, g->before, number, &ignored))
			continue;
		const struct leftover l = {
			.key = arena_strndup(u->arena, item->key, strlen(item->key)),
			.version =
				arena_strndup(u->arena, item->meta.etag, strlen(item->meta.etag))};
		if (!l.key || !l.version || bytes_append(&g->found, &l, sizeof(l)))
			return err_no_memory(g->err);
	}
	return 0;
}

/* Finds all objects at new places. They are in the order of their keys. */
static int list_found(struct growth *g)
{
	const struct update *u = g->u;
	auto_request struct store_request *req = store_request_new(u->opt->store, STORE_LIST);
	auto_free char *after = NULL;
	char prefix[SCHEMA_KEY_MAX + 1];
	int rc = u->schema->chunk_prefix(object_of(u->now, g->c->after), prefix, sizeof(prefix));
	if (rc < 0 || !req)
		return req ? err_set(g->err, rc, "the chunks of a dataset cannot be listed")
			   : err_no_memory(g->err);
	g->found.len = 0;
	rc = 0;
	for (bool more = true; !rc && more;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		if (after)
			store_request_start_after(req, after);
		req->list.complete = true;
		req->priority = STORE_COMMIT;
		req->cancelled = cancelled_by(u->opt->cancelled);
		store_run(u->opt->store, req);
		rc = store_failure(&req->answer, g->err);
		if (rc)
			atomic_store(&g->u->failed, true);
		const struct store_page *page = &req->answer.page;
		more = !rc && page->more;
		if (!rc)
			rc = take_page(g, page);
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (more && !after)
			rc = err_no_memory(g->err);
	}
	return rc;
}

/* ---- the plan ---- */

static int compare_leftovers(const void *a, const void *b)
{
	return strcmp(((const struct leftover *)a)->key, ((const struct leftover *)b)->key);
}

static struct leftover *find_leftover(const struct growth *g, const char *key)
{
	const struct leftover l = {.key = key};
	const size_t n = g->found.len / sizeof(l);
	return n ? bsearch(&l, g->found.data, n, sizeof(l), compare_leftovers) : NULL;
}

static void set_version(struct plan_operation *op, const char *version)
{
	op->condition = version[0] ? PLAN_IF_VERSION : PLAN_ALWAYS;
	op->version = version;
}

/* Overwrites what was found at the places of chunks, and deletes the others. */
static int plan_leftovers(struct growth *g)
{
	struct update *u = g->u;
	struct leftover *all = (void *)g->found.data;
	const size_t n = g->found.len / sizeof(*all);
	if (n)
		qsort(all, n, sizeof(*all), compare_leftovers);
	auto_free bool *is_planned = calloc(n + 1, sizeof(*is_planned));
	if (!is_planned)
		return err_no_memory(g->err);
	for (size_t i = 0; i < count_operations(u); i++) {
		struct plan_operation *op = operation_of(u, i);
		if (!is_at_new_place(u, i, g->c->after))
			continue;
		const struct leftover *l = find_leftover(g, op->key);
		if (l) {
			set_version(op, l->version);
			is_planned[l - all] = true;
		}
	}
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		struct update_operation what = {
			.op = {.action = PLAN_DELETE, .phase = PHASE_NEW_CHUNKS},
			.key = all[i].key,
			.target = {.object = OBJECT_NONE, .owner = g->c->after, .is_chunk = true}};
		set_version(&what.op, all[i].version);
		if (!is_planned[i])
			rc = update_add(u, &what, NULL, g->err);
	}
	u->counts_changed |= n > 0;
	return rc;
}

/* ---- datasets ---- */

static bool grows(const struct update *u, const struct object_change *c, struct growth *g)
{
	const struct object *o = object_of(u->now, c->after);
	if (o->kind != OBJECT_DATASET || !c->shape || o->dataset.reference ||
	    o->dataset.initializer != INITIALIZER_NONE)
		return false;
	g->c = c;
	g->now = &o->dataset.grid;
	g->before = &object_of(u->before, c->before)->dataset.grid;
	return g->now->nchunks > count_common(g);
}

static enum growth_state *state_of(const struct growth *g)
{
	return &g->u->base->growth[g->c->before];
}

static int look(struct growth *g)
{
	const uint64_t common = count_common(g);
	int rc = find_puts(g);
	if (rc)
		return rc;
	const uint64_t empty = g->now->nchunks - common - g->nput;
	const uint64_t pages = common / STORE_PAGE_MAX + 1;
	const bool is_known = *state_of(g) != GROWTH_FREE;
	if (!is_known && empty <= HEADS_PER_PAGE * pages) {
		rc = empty ? ask_heads(g, empty) : 0;
		if (rc != FOUND)
			return rc;
	}
	rc = list_found(g);
	if (rc || (!is_known && !g->found.len))
		return rc;
	if (!is_known)
		*state_of(g) = GROWTH_FOUND;
	return plan_leftovers(g);
}

int update_look(struct update *u, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < u->change.nchanged; i++) {
		struct growth g = {.u = u, .err = err};
		if (grows(u, &u->change.changed[i], &g))
			rc = look(&g);
		bytes_release(&g.found);
	}
	return rc;
}

/* Returns 1 if the new places still have what the plan has found there, 0 if not, or a negative
 * errno. */
static int is_as_planned(struct growth *g, const struct plan *plan)
{
	const struct update_target *targets = (const void *)g->u->base->targets.data;
	size_t n = 0;
	const int rc = list_found(g);
	if (rc)
		return rc;
	if (g->found.len)
		qsort(g->found.data, g->found.len / sizeof(struct leftover),
		      sizeof(struct leftover), compare_leftovers);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct plan_operation *op = &plan->operations[i];
		if (op->phase != PHASE_NEW_CHUNKS || targets[i].owner != g->c->after ||
		    op->condition != PLAN_IF_VERSION)
			continue;
		const struct leftover *l = find_leftover(g, op->key);
		if (!l || strcmp(l->version, op->version) != 0)
			return 0;
		n++;
	}
	return n == g->found.len / sizeof(struct leftover);
}

static int look_again(struct update *u, const struct plan *plan, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < u->change.nchanged; i++) {
		struct growth g = {.u = u, .err = err};
		if (!grows(u, &u->change.changed[i], &g) || *state_of(&g) != GROWTH_FOUND)
			continue;
		const int same = is_as_planned(&g, plan);
		bytes_release(&g.found);
		if (same >= 0)
			*state_of(&g) = GROWTH_CLAIMED;
		if (same <= 0)
			rc = same ? same : -EAGAIN;
	}
	return rc;
}

int update_look_again(struct update *u, const struct plan *plan, struct err *err)
{
	if (!u->change.nchanged)
		return 0; /* an earlier call has made the plan, and the puts have conditions */
	u->now = u->base->next; /* it has become that, with the plan */
	const int rc = look_again(u, plan, err);
	u->now = NULL;
	return rc;
}
