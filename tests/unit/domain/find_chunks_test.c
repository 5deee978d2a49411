/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunks of a dataset are stored, found out after a domain was opened that is too large to be
 * listed whole: what that costs, and when nothing may be said. shard_test.c has arrays with shards,
 * and v1_test.c domains of version 1.
 */
#include "domain_fixture.h"

#include <errno.h>

#include <bucket/schemas.h>

#include "gate.h"

#include "domain/domain_internal.h"

#define CHUNK(number) SMALL_PREFIX "/d/0002-000000-000001/" number

static const char bytes[] = "0123456789abcdef";

static void put(struct fixture *f, const char *key)
{
	assert_int_equal(call_put(f->store, key, bytes, 16, NULL, NULL, NULL), 0);
}

/* Opens a domain with many other keys. Chunks 1, 9 and 10 of 25 are stored. */
static uint32_t open_large(struct fixture *f, struct gate **gate, const char *more)
{
	struct gate *g = *gate = gate_new(f->store);
	char text[512];
	f->store = &g->base;
	snprintf(text, sizeof(text),
		 "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32
					    ",'shape':{'class':'H5S_SIMPLE','dims':[100]},"
					    "'attributes':{}%s,'layout':{'class':'H5D_CHUNKED',"
					    "'dims':[4]}}",
		 more);
	assert_int_equal(small_put(f->store, SMALL_KEY_INTS, text), 0);
	put(f, CHUNK("9"));
	put(f, CHUNK("10"));
	for (unsigned int i = 0; i < DOMAIN_LISTING; i++) {
		char key[128];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-00aaaa/%u", i);
		put(f, key);
	}
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = &g->base,
							     .schemas = schema_all()},
				     "d.h5", NULL, &f->domain, NULL),
			 0);
	assert_false(domain_sees_chunks(f->domain));
	gate_count(g);
	for (uint32_t i = 0; i < tree_count(domain_tree(f->domain)); i++) {
		const uint32_t number = tree_nth(domain_tree(f->domain), i);
		if (strcmp(tree_object(domain_tree(f->domain), number)->o.id, SMALL_INTS) == 0)
			return number;
	}
	fail_msg("the dataset is not in the domain");
	return 0;
}

static int find(struct fixture *f, uint32_t number, struct chunk_list *out, struct err *err)
{
	const struct chunk_source source = domain_chunk_source(f->domain);
	return source.find(source.ctx, number, out, err);
}

static void fails(struct fixture *f, uint32_t number, int code, const char *message)
{
	struct chunk_list list = {.n = 1};
	struct err err = ERR_INIT;
	assert_int_equal(find(f, number, &list, &err), code);
	assert_true(!list.listed && !list.n && !list.numbers);
	if (!strstr(err.msg, message))
		fail_msg("\"%s\" is not in: %s", message, err.msg);
}

static void a_listing_and_a_check_of_the_document(void **state)
{
	struct fixture *f = *state;
	struct chunk_list list;
	struct gate *g;
	const uint32_t number = open_large(f, &g, "");
	assert_int_equal(find(f, number, &list, NULL), 0);
	assert_true(list.listed && !list.decoded && list.n == 3);
	assert_true(list.numbers[0] == 1 && list.numbers[1] == 9 && list.numbers[2] == 10);
	assert_true(g->n == 2 && g->ops[STORE_LIST] == 1 && g->ops[STORE_HEAD] == 1);
	free((void *)(uintptr_t)list.numbers);
}

static void many_pages(void **state)
{
	enum { MANY = 2500 };
	struct fixture *f = *state;
	struct chunk_list list;
	struct gate *g;
	const uint32_t number = open_large(f, &g, "");
	for (unsigned int i = 0; i < MANY; i++) {
		char key[128];
		snprintf(key, sizeof(key), CHUNK("x%06u"), i);
		put(f, key);
	}
	gate_count(g);
	assert_int_equal(find(f, number, &list, NULL), 0);
	assert_int_equal(list.n, 3);
	assert_int_equal(g->ops[STORE_LIST], 3);
	free((void *)(uintptr_t)list.numbers);
}

static void one_key_on_a_page(struct store *s, struct store_request *req)
{
	req->list.max = 1;
	store_pass(s, req);
}

static void too_many_pages(void **state)
{
	enum { LIMIT = 128 };
	static const struct store_ops ops = {
		.name = "pages", .submit = one_key_on_a_page, .completed = store_complete};
	struct fixture *f = *state;
	struct chunk_list list;
	struct store pages;
	struct gate *g;
	const uint32_t number = open_large(f, &g, "");
	store_wrap(&pages, &ops, &g->base, 0, 0);
	f->domain->store = &pages;
	for (unsigned int i = 0; i < LIMIT - 4; i++) { /* besides the document and three chunks */
		char key[128];
		snprintf(key, sizeof(key), CHUNK("x%06u"), i);
		put(f, key);
	}
	gate_count(g);
	assert_int_equal(find(f, number, &list, NULL), 0);
	assert_int_equal(g->ops[STORE_LIST], LIMIT);
	free((void *)(uintptr_t)list.numbers);
	put(f, CHUNK("y"));
	gate_count(g);
	fails(f, number, -E2BIG, "domain /d.h5: dataset " SMALL_INTS ": its chunks take more than");
	assert_int_equal(g->n, LIMIT);
}

/* The chunk may have been deleted with the old version of its dataset. */
static void a_dataset_that_has_changed(void **state)
{
	struct fixture *f = *state;
	struct gate *g;
	const uint32_t number = open_large(f, &g, "");
	assert_int_equal(small_put(f->store, SMALL_KEY_INTS, "{}"), 0);
	gate_count(g);
	fails(f, number, -ESTALE, "has changed since the file was opened");
	assert_int_equal(g->n, 2);
}

static void take(void *arg, struct chunk_result *chunk)
{
	*(bool *)arg = !chunk->code && !chunk->absent;
	chunk_data_release(&chunk->data);
}

static void a_chunk_that_was_read_and_deleted(void **state)
{
	struct fixture *f = *state;
	struct gate *g;
	bool is_read = false;
	const uint32_t number = open_large(f, &g, "");
	const struct chunk_source source = domain_chunk_source(f->domain);
	source.get(source.ctx, &(struct chunk_request){.dataset = number, .number = 9}, take,
		   &is_read);
	assert_true(is_read);
	assert_int_equal(call_delete(f->store, CHUNK("9"), NULL, NULL), 0);
	fails(f, number, -ESTALE, "deleted since it was read first");
	assert_true(domain_is_outdated(f->domain));
}

/* Nothing is said if the store has failed. */
static void each_request_fails(void **state)
{
	struct fixture *f = *state;
	struct gate *g;
	const uint32_t number = open_large(f, &g, "");
	for (unsigned int i = 1; i <= 2; i++) {
		gate_count(g);
		g->at = i;
		g->code = -EACCES;
		fails(f, number, -EACCES, "domain /d.h5: dataset " SMALL_INTS);
	}
}

static void chunks_that_are_not_stored_have_other_values(void **state)
{
	struct fixture *f = *state;
	struct gate *g;
	const uint32_t number =
		open_large(f, &g, ",'creationProperties':{'initializer':['arange']}");
	fails(f, number, -EOPNOTSUPP, "does not show");
	assert_int_equal(g->n, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_listing_and_a_check_of_the_document),
		TEST(many_pages),
		TEST(too_many_pages),
		TEST(a_dataset_that_has_changed),
		TEST(a_chunk_that_was_read_and_deleted),
		TEST(each_request_fails),
		TEST(chunks_that_are_not_stored_have_other_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
