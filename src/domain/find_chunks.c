/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which chunks of a dataset are stored, after the domain was opened: for lseek, because
 * an open asks only for what it needs (chunk_inventory.c). Chunks with objects of their own are
 * listed, page by page. Those whose places are recorded, in a chunk table or in the indexes of
 * shards, are looked up one after the other; a read of a record or an index is enough for many of
 * them. If no listing shows the chunks, a byte of each is requested, but only of few, and not if
 * some that are spread over the dataset are all stored.
 *
 * What is found is complete or not used. As for a read (chunk_fetch.c), a chunk counts as absent
 * only if the dataset's document is still the version that was opened, and no earlier load has
 * found the chunk.
 *
 * Threads: any. The functions block, and hold no lock meanwhile.
 */
#include <domain/domain.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/wait.h>

#include "domain_internal.h"

enum {
	PAGES_MAX = 128,       /* of listings of one dataset */
	PLACES_MAX = 1 << 20,  /* chunks of one dataset that are looked up */
	OBJECTS_MAX = 1 << 12, /* chunks of one dataset that are requested */
	AT_ONCE = 64,	       /* look-ups */
};

static int add_number(struct bytes *numbers, uint64_t number, struct err *err)
{
	return bytes_append(numbers, &number, sizeof(number)) ? err_no_memory(err) : 0;
}

/* ---- listings ---- */

static int take_page(const struct domain *d, const struct object *o, const struct store_page *page,
		     struct bytes *numbers, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < page->n; i++) {
		uint64_t number;
		if (d->schema->chunk_of_key(o, page->items[i].key, &number))
			rc = add_number(numbers, number, err);
	}
	return rc;
}

static int list_all(struct domain *d, const struct object *o, const char *prefix,
		    struct bytes *numbers, struct err *err)
{
	auto_request struct store_request *req = store_request_new(d->store, STORE_LIST);
	auto_free char *after = NULL;
	unsigned int pages = 0;
	int rc = req ? 0 : err_no_memory(err);
	for (bool more = true; !rc && more;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		if (after)
			store_request_start_after(req, after);
		req->list.complete = true;
		store_run(d->store, req);
		rc = store_failure(&req->answer, err);
		if (rc)
			return err_wrap(err, rc, "listing %s", prefix);
		const struct store_page *page = &req->answer.page;
		more = page->more;
		rc = take_page(d, o, page, numbers, err);
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (!rc && more && !after)
			rc = err_no_memory(err);
		if (!rc && more && ++pages == PAGES_MAX)
			rc = err_set(err, -E2BIG, "its chunks take more than %d listings",
				     PAGES_MAX);
	}
	return rc;
}

/* ---- places ---- */

struct look_up {
	struct waiter *waiter;
	int code;
	bool absent;
	struct err err;
};

static void looked_up(void *arg, struct chunk_result *chunk)
{
	struct look_up *l = arg;
	l->code = chunk->code;
	l->absent = chunk->absent;
	if (chunk->code)
		err_copy(&l->err, &chunk->err);
	chunk_data_release(&chunk->data);
	wait_done(l->waiter);
}

/* The order in which chunks are looked up: 0, step, 2 * step and so on, modulo their number. */
struct order {
	uint64_t nchunks, step;
};

static uint64_t nth(const struct order *o, uint64_t i)
{
	return i * o->step % o->nchunks;
}

/* Looks up n chunks, from the first-th one on. */
static int look_up_some(struct domain *d, uint32_t number, const struct order *order,
			uint64_t first, unsigned int n, struct bytes *numbers, struct err *err)
{
	struct look_up l[AT_ONCE] = {0};
	struct waiter waiter;
	int rc = 0;
	wait_init(&waiter, n);
	for (unsigned int i = 0; i < n; i++) {
		l[i].waiter = &waiter;
		domain_fetch_chunk(d,
				   &(struct chunk_request){.dataset = number,
							   .number = nth(order, first + i),
							   .only_place = true},
				   looked_up, &l[i]);
	}
	wait_all(&waiter);
	for (unsigned int i = 0; !rc && i < n; i++) {
		rc = l[i].code;
		if (rc)
			err_copy(err, &l[i].err);
		else if (!l[i].absent)
			rc = add_number(numbers, nth(order, first + i), err);
	}
	return rc;
}

/* Looks up all chunks from the first-th one on. */
static int look_up_rest(struct domain *d, uint32_t number, const struct order *order,
			uint64_t first, struct bytes *numbers, struct err *err)
{
	int rc = 0;
	for (uint64_t i = first; !rc && i < order->nchunks; i += AT_ONCE)
		rc = look_up_some(d, number, order, i,
				  (unsigned int)min_u64(AT_ONCE, order->nchunks - i), numbers, err);
	return rc;
}

static int look_up_all(struct domain *d, uint32_t number, uint64_t nchunks, struct bytes *numbers,
		       struct err *err)
{
	if (nchunks > PLACES_MAX)
		return err_set(err, -E2BIG,
			       "there may be %" PRIu64 " chunks, and at most %d "
			       "are looked up",
			       nchunks, PLACES_MAX);
	return look_up_rest(d, number, &(struct order){nchunks, 1}, 0, numbers, err);
}

/* ---- requests ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Returns an order in which the first chunks are spread evenly over the dataset, and do not fall in
 * with a period of those that are stored: the step is about the golden section. It visits each
 * chunk once, because step and number have no common divisor. */
static struct order spread(uint64_t nchunks)
{
	struct order o = {.nchunks = nchunks, .step = nchunks * 610 / 987};
	while (common_divisor(o.step, nchunks) != 1)
		o.step++;
	return o;
}

/* If the first chunks are all stored, the dataset has few holes or none. */
static int request_all(struct domain *d, uint32_t number, uint64_t nchunks, struct bytes *numbers,
		       struct err *err)
{
	if (nchunks > OBJECTS_MAX)
		return err_set(err, -E2BIG,
			       "no listing shows its chunks, there may be %" PRIu64
			       ", and at most %d are requested",
			       nchunks, OBJECTS_MAX);
	const struct order order = spread(nchunks);
	const unsigned int first = (unsigned int)min_u64(AT_ONCE, nchunks);
	int rc = look_up_some(d, number, &order, 0, first, numbers, err);
	if (!rc && first < nchunks && numbers->len == first * sizeof(uint64_t))
		rc = err_set(err, -EOPNOTSUPP, "%u of its chunks are all stored", first);
	return rc ? rc : look_up_rest(d, number, &order, first, numbers, err);
}

/* ---- all together ---- */

struct check {
	struct waiter waiter;
	int code;
	struct err *err;
};

static void rechecked(void *arg, int code, const struct err *err)
{
	struct check *c = arg;
	c->code = code;
	if (code)
		err_copy(c->err, err);
	wait_done(&c->waiter);
}

/* Fails with -ESTALE if the chunks that are absent may have had values when the domain was opened.
 */
static int check_absence(struct domain *d, uint32_t number, const struct chunk_list *list,
			 struct err *err)
{
	struct check c = {.err = err};
	struct domain_recheck r = {.done = rechecked, .arg = &c};
	if (domain_versions_lost_any(d, number, list))
		return err_set(err, -ESTALE, "a chunk was deleted since it was read first");
	wait_init(&c.waiter, 1);
	domain_recheck(d, number, &r);
	wait_all(&c.waiter);
	return c.code;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* A chunk may have been found by two keys, if the schema has two forms of them. */
static void sort_once(struct bytes *numbers)
{
	uint64_t *at = (uint64_t *)(void *)numbers->data;
	const size_t n = numbers->len / sizeof(*at);
	size_t kept = 0;
	if (n)
		qsort(at, n, sizeof(*at), compare);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || at[i] != at[kept - 1])
			at[kept++] = at[i];
	numbers->len = kept * sizeof(*at);
}

static bool has_places(const struct dataset *ds)
{
	return ds->shard || (ds->reference && ds->reference->layout == REFERENCE_TABLE);
}

/* Returns whether each chunk is an object that can be requested. */
static bool has_objects(const struct domain *d, uint32_t number, const struct dataset *ds)
{
	char key[SCHEMA_KEY_MAX + 1];
	return !d->schema->marks && ds->grid.nchunks > 0 &&
	       domain_chunk_key(d, number, 0, key, sizeof(key)) >= 0;
}

/* Returns whether a chunk that is not stored reads as the fill value. */
static bool can_be_absent(const struct domain *d, const struct dataset *ds)
{
	return !ds->absence_unknown && ds->initializer == INITIALIZER_NONE &&
	       !(d->missing_chunks_fail && d->schema->marks);
}

int domain_find_chunks(struct domain *d, uint32_t number, struct chunk_list *out, struct err *err)
{
	const struct object *o = &tree_object(d->tree, number)->o;
	const struct dataset *ds = &o->dataset;
	char prefix[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes numbers = {0};
	int rc = -EOPNOTSUPP;
	*out = (struct chunk_list){0};
	if (can_be_absent(d, ds) && has_places(ds))
		rc = look_up_all(d, number, ds->grid.nchunks, &numbers, err);
	else if (can_be_absent(d, ds) && d->schema->chunk_prefix(o, prefix, sizeof(prefix)) > 0)
		rc = list_all(d, o, prefix, &numbers, err);
	else if (can_be_absent(d, ds) && has_objects(d, number, ds))
		rc = request_all(d, number, ds->grid.nchunks, &numbers, err);
	else
		return err_set(err, rc, "the store does not show which chunks it has");
	sort_once(&numbers);
	const struct chunk_list list = {.listed = true,
					.n = numbers.len / sizeof(uint64_t),
					.numbers = (const uint64_t *)(const void *)numbers.data};
	if (!rc)
		rc = check_absence(d, number, &list, err);
	if (rc)
		return err_wrap(err, rc, "domain /%s: dataset %s", d->path, o->id);
	*out = list;
	numbers = (struct bytes){0};
	return 0;
}
