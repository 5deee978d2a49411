/* SPDX-License-Identifier: Apache-2.0 */
/* Domains of more objects than one page of a listing has are listed in ranges. */
#include "many.h"

#include <hsds/hsds.h>

static unsigned int rounds;

/* Counts rounds of requests. */
static int counted_round(struct schema_loader *l, uint32_t *n, struct err *err)
{
	const int rc = hsds2_ops.round(l, n, err);
	rounds += !rc && *n;
	return rc;
}

static int open_code(struct store *s, struct fixture *f, struct domain **out)
{
	static struct schema_ops counted;
	static const struct schema_ops *const schemas[] = {&counted, NULL};
	struct err err = ERR_INIT;
	counted = hsds2_ops;
	counted.round = counted_round;
	rounds = 0;
	const struct domain_bucket bucket = {.env = &f->env, .store = s, .schemas = schemas};
	return domain_open(&bucket, "d.h5", NULL, out, &err);
}

/* Opens the domain, which has n groups besides its root group, and counts the listings. */
static unsigned int lists_of(struct fixture *f, unsigned int n)
{
	struct gate *g = gate_new(f->store);
	struct domain *d;
	assert_int_equal(open_code(&g->base, f, &d), 0);
	const unsigned int lists = atomic_load(&g->ops[STORE_LIST]);
	assert_int_equal(tree_count(domain_tree(d)), n + 1);
	assert_false(domain_sees_chunks(d));
	domain_unref(d);
	f->store = &g->base;
	return lists;
}

static void spread_ids_take_two_rounds(void **state)
{
	enum { N = 6000 };
	struct fixture *f = *state;
	put_spread(f, N);
	/* 6 pages would be enough if they were requested one after the other. */
	assert_in_range(lists_of(f, N), 4 + 6, 4 + 6 + 6);
	assert_in_range(rounds, 3, 4); /* the last one is that of the documents */
}

/* More objects than 16 ranges of a page have. */
static void a_long_range_is_divided(void **state)
{
	enum { N = 20000 };
	struct fixture *f = *state;
	put_spread(f, N);
	assert_in_range(lists_of(f, N), 4 + 20, 4 + 16 + 20 + 16);
	assert_in_range(rounds, 4, 5);
}

static void close_ids_are_found_as_well(void **state)
{
	enum { N = 5000 };
	struct fixture *f = *state;
	put_groups(f, N);
	assert_in_range(lists_of(f, N), 4 + 5, 4 + 5 + 3 * 16);
	assert_in_range(rounds, 4, 7);
}

static void submit_short(struct store *s, struct store_request *req)
{
	if (req->op == STORE_LIST)
		req->list.max = (uint32_t)min_u64(req->list.max, 100);
	store_pass(s, req);
}

static void pages_may_be_short(void **state)
{
	static const struct store_ops ops = {.name = "short",
					     .submit = submit_short,
					     .completed = store_complete,
					     .free = store_wrapper_free};
	enum { N = 3000 };
	struct fixture *f = *state;
	put_spread(f, N);
	struct store *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	store_wrap(s, &ops, f->store, 0, 0);
	f->store = s;
	lists_of(f, N);
	assert_in_range(rounds, 3, 8);
}

/* With more keys than four for each object, the rest is listed with a delimiter. */
static void many_chunks_are_not_listed(void **state)
{
	enum { N = 2500, CHUNKS = 12000 };
	struct fixture *f = *state;
	char key[128];
	for (int i = 0; i < CHUNKS; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%d_0", 10000 + i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
	put_spread(f, N);
	assert_in_range(lists_of(f, N), 4, 30);
	assert_in_range(rounds, 4, 16);
}

/* Another program changes a document after it was listed. */
static void change(struct store *inner)
{
	struct fixture f = {.store = inner};
	put_spread_group(&f, 7, 99);
}

static void a_change_after_the_listing_is_seen(void **state)
{
	enum { N = 1500 };
	struct fixture *f = *state;
	put_spread(f, N);
	const unsigned int lists = lists_of(f, N);
	struct gate *g = gate_of(f->store);
	struct domain *d;
	g->n = 0;
	g->other_at = 1 + lists + 1; /* before the first document of an object */
	g->other = change;
	atomic_store(&g->ops[STORE_LIST], 0);
	assert_int_equal(open_code(&g->base, f, &d), 0);
	assert_true(atomic_load(&g->ops[STORE_LIST]) > lists); /* loaded again */
	assert_int_equal(domain_modified_ns(d) / 1000000000, 1700000001);
	char id[32], whole[64];
	spread_id(7, id);
	snprintf(whole, sizeof(whole), "g-11111111-22222222-%s", id);
	assert_int_equal(find(d, whole)->modified_ns / 1000000000, 99);
	domain_unref(d);
}

/* The ETags in listings have another form than those of gets. */
static void list_oddly(struct store *s, struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	for (size_t i = 0; req->op == STORE_LIST && i < page->n; i++)
		strncat(page->items[i].meta.etag, "-odd", 5);
	store_complete(s, req);
}

/* If no document has the version that is listed, the service writes versions differently: the
 * domain has not changed, and is not loaded again. */
static void odd_versions_in_listings_are_no_change(void **state)
{
	static const struct store_ops ops = {.name = "odd",
					     .submit = store_pass,
					     .completed = list_oddly,
					     .free = store_wrapper_free};
	enum { N = 1500 };
	struct fixture *f = *state;
	put_spread(f, N);
	const unsigned int lists = lists_of(f, N);
	struct store *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	store_wrap(s, &ops, f->store, 0, 0);
	f->store = s;
	assert_int_equal(lists_of(f, N), lists);
	assert_int_equal(atomic_load(&gate_of(f->store)->ops[STORE_GET]), 2 + N + 5);
}

static void a_range_that_fails_fails_the_open(void **state)
{
	enum { N = 1500 };
	struct fixture *f = *state;
	put_spread(f, N);
	const unsigned int lists = lists_of(f, N);
	struct gate *g = gate_of(f->store);
	for (unsigned int at = 2; at <= 1 + lists; at++) {
		struct domain *d = NULL;
		g->n = 0;
		g->at = at;
		g->code = -EIO;
		assert_int_equal(open_code(&g->base, f, &d), -EIO);
		assert_null(d);
	}
	g->at = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spread_ids_take_two_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_range_is_divided, setup, teardown),
		cmocka_unit_test_setup_teardown(close_ids_are_found_as_well, setup, teardown),
		cmocka_unit_test_setup_teardown(pages_may_be_short, setup, teardown),
		cmocka_unit_test_setup_teardown(many_chunks_are_not_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_change_after_the_listing_is_seen, setup,
						teardown),
		cmocka_unit_test_setup_teardown(odd_versions_in_listings_are_no_change, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_range_that_fails_fails_the_open, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
