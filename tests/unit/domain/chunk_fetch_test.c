/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks by number: stored, absent, damaged, computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>

#include "store_calls.h"

#include "small_domain.h"

#include <store/implement.h>
#include <bucket/schemas.h>

struct fixture {
	struct env env;
	struct store *store;
	struct domain *domain;
	struct chunk_result chunk;
	unsigned int calls;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = small_domain_new(&f->env);
	*state = f;
	return f->store ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	elems_release(&f->chunk.data.elems);
	domain_unref(f->domain);
	store_free(f->store);
	pool_free(f->env.pool);
	free(f);
	return 0;
}

static void keep(void *arg, struct chunk_result *chunk)
{
	struct fixture *f = arg;
	elems_release(&f->chunk.data.elems);
	f->chunk = *chunk;
	f->calls++;
}

/* The object's number in the tree. Opens the domain at the first call. */
static uint32_t find(struct fixture *f, const char *id)
{
	if (!f->domain)
		assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
								     .store = f->store,
								     .schemas = schema_all()},
					     "d.h5", NULL, &f->domain, NULL),
				 0);
	const struct tree *tree = domain_tree(f->domain);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, id) == 0)
			return tree_nth(tree, i);
	fail_msg("no object %s", id);
	return 0;
}

static void get_request(struct fixture *f, const struct chunk_request *request)
{
	const struct chunk_source chunks = domain_chunk_source(f->domain);
	const unsigned int calls = f->calls;
	chunks.get(chunks.ctx, request, keep, f);
	assert_int_equal(f->calls, calls + 1);
}

static void get(struct fixture *f, const char *id, uint64_t number)
{
	get_request(f, &(struct chunk_request){.dataset = find(f, id), .number = number});
}

static void a_stored_chunk_is_decoded(void **state)
{
	struct fixture *f = *state;
	get(f, SMALL_INTS, 1);
	assert_int_equal(f->chunk.code, 0);
	assert_false(f->chunk.absent);
	assert_int_equal(f->chunk.data.elems.fixed.len, sizeof(small_ints_chunk));
	assert_memory_equal(f->chunk.data.elems.fixed.data, small_ints_chunk,
			    sizeof(small_ints_chunk));
}

static void a_missing_chunk_is_absent(void **state)
{
	struct fixture *f = *state;
	get(f, SMALL_INTS, 0);
	assert_int_equal(f->chunk.code, 0);
	assert_true(f->chunk.absent);
	assert_int_equal(f->chunk.data.elems.fixed.len, 0);
}

static void a_chunk_of_the_wrong_length_names_its_key(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/2", "short");
	get(f, SMALL_INTS, 2);
	assert_int_equal(f->chunk.code, -EIO);
	assert_non_null(strstr(f->chunk.err.msg, SMALL_PREFIX "/d/0002-000000-000001/2"));
}

static void a_huge_chunk_is_not_fetched(void **state)
{
	struct fixture *f = *state;
	char *big = calloc(1, 1 << 20);
	assert_int_equal(call_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/2", big, 1 << 20,
				  NULL, NULL, NULL),
			 0);
	free(big);
	get(f, SMALL_INTS, 2);
	assert_true(f->chunk.code < 0);
	assert_int_equal(f->chunk.fetched, 0);
}

static void variable_length_items_go_to_the_heap(void **state)
{
	struct fixture *f = *state;
	get(f, SMALL_STRINGS, 0);
	assert_int_equal(f->chunk.code, 0);
	assert_int_equal(f->chunk.data.elems.fixed.len, 32);
	struct elems_vlen first = elems_get_vlen(f->chunk.data.elems.fixed.data);
	assert_int_equal(first.count, 2);
	assert_memory_equal(f->chunk.data.elems.heap.data + first.offset, "ab", 2);
	assert_int_equal(elems_get_vlen(f->chunk.data.elems.fixed.data + 16).count, 0);
}

static void an_initializer_computes_what_is_not_stored(void **state)
{
	static const int32_t expected[4] = {29, 32, 35, 38}; /* 5 + 3 * (8..11) */
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_INTS,
		  "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32 ",'shape':{'class':'H5S_SIMPLE',"
					     "'dims':[12]},'attributes':{},"
					     "'creationProperties':{'initializer':['arange','--"
					     "start=5','--step=3']},"
					     "'layout':{'class':'H5D_CHUNKED','dims':[4]}}");
	get(f, SMALL_INTS, 2);
	assert_int_equal(f->chunk.code, 0);
	assert_int_equal(f->chunk.data.elems.fixed.len, sizeof(expected));
	assert_memory_equal(f->chunk.data.elems.fixed.data, expected, sizeof(expected));
}

/* A wrapper that records the expected versions and priorities of gets. */
struct spy {
	struct store base;
	unsigned int hinted, unhinted, prefetched;
};

static void spy_submit(struct store *s, struct store_request *req)
{
	struct spy *spy = (struct spy *)s;
	struct store_meta meta;
	if (req->op == STORE_GET) {
		assert_int_equal(call_head(s->inner, req->key, &meta, NULL), 0);
		if (req->known_etag)
			assert_string_equal(req->known_etag, meta.etag);
		spy->hinted += req->known_etag != NULL;
		spy->prefetched += req->priority == STORE_PREFETCH;
		spy->unhinted += req->known_etag == NULL;
	}
	store_pass(s, req);
}

static void spy_wrap(struct spy *spy, struct fixture *f)
{
	static const struct store_ops ops = {
		.name = "spy", .submit = spy_submit, .completed = store_complete};
	*spy = (struct spy){0};
	store_wrap(&spy->base, &ops, f->store, 0, 0);
	f->store = &spy->base;
}

static void spy_unwrap(struct spy *spy, struct fixture *f)
{
	f->store = spy->base.inner;
}

/* All but the get of the domain document, which comes before the listings. */
static void gets_name_the_listed_version(void **state)
{
	struct fixture *f = *state;
	struct spy spy;
	spy_wrap(&spy, f);
	get(f, SMALL_INTS, 1);
	spy_unwrap(&spy, f);
	assert_int_equal(spy.unhinted, 1);
	assert_int_equal(spy.hinted, 6 + 1); /* documents, a chunk */
}

static void a_prefetch_has_the_priority_of_a_prefetch(void **state)
{
	struct fixture *f = *state;
	struct spy spy;
	spy_wrap(&spy, f);
	get_request(f, &(struct chunk_request){.dataset = find(f, SMALL_INTS), .number = 1});
	assert_int_equal(spy.prefetched, 0);
	get_request(f, &(struct chunk_request){
			       .dataset = find(f, SMALL_INTS), .number = 1, .prefetch = true});
	assert_int_equal(spy.prefetched, 1);
	spy_unwrap(&spy, f);
}

/* The chunk is replaced, then deleted, while the file is open. */
static void a_chunk_of_another_version_is_stale(void **state)
{
	static const char key[] = SMALL_PREFIX "/d/0002-000000-000001/1";
	struct fixture *f = *state;
	get(f, SMALL_INTS, 1);
	assert_int_equal(f->chunk.code, 0);
	assert_int_equal(call_put(f->store, key, "another, of 16 b", 16, NULL, NULL, NULL), 0);
	get(f, SMALL_INTS, 1);
	assert_int_equal(f->chunk.code, -ESTALE);
	assert_int_equal(call_delete(f->store, key, NULL, NULL), 0);
	get(f, SMALL_INTS, 1);
	assert_int_equal(f->chunk.code, -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stored_chunk_is_decoded, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_chunk_is_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chunk_of_the_wrong_length_names_its_key, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_huge_chunk_is_not_fetched, setup, teardown),
		cmocka_unit_test_setup_teardown(variable_length_items_go_to_the_heap, setup,
						teardown),
		cmocka_unit_test_setup_teardown(gets_name_the_listed_version, setup, teardown),
		cmocka_unit_test_setup_teardown(a_prefetch_has_the_priority_of_a_prefetch, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_chunk_of_another_version_is_stale, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_initializer_computes_what_is_not_stored, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
