/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks are known to exist: all chunks of small domains; of large domains the chunks of
 * variable-length datasets, each listed by itself. */
#include "domain_fixture.h"
#include <bucket/schemas.h>

static const struct chunk_list *open_and_find(struct fixture *f, const char *id)
{
	domain_unref(f->domain);
	f->domain = NULL;
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "d.h5", NULL, &f->domain, NULL),
			 0);
	for (uint32_t i = 0; i < tree_count(domain_tree(f->domain)); i++) {
		uint32_t number = tree_nth(domain_tree(f->domain), i);
		if (strcmp(tree_object(domain_tree(f->domain), number)->o.id, id) == 0)
			return domain_chunks(f->domain, number);
	}
	fail_msg("%s is not in the domain", id);
	return NULL;
}

/* Adds more keys than one page of a listing has. */
static void make_large(struct fixture *f)
{
	for (unsigned int i = 0; i < DOMAIN_LISTING; i++) {
		char key[128];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%u", i);
		assert_int_equal(call_put(f->store, key, "0123456789abcdef", 16, NULL, NULL, NULL),
				 0);
	}
}

static void a_large_domain_is_not_listed_whole(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_false(open_and_find(f, SMALL_INTS)->listed);
	assert_false(domain_sees_chunks(f->domain));
	const struct chunk_list *strings = open_and_find(f, SMALL_STRINGS);
	assert_true(strings->listed);
	assert_int_equal(strings->n, 1);
	assert_int_equal(strings->decoded[0], sizeof(small_strings_chunk));
}

static void a_large_domain_costs_one_list_more_for_each_dataset_of_strings(void **state)
{
	struct fixture *f = *state;
	struct store_counts before, after;
	make_large(f);
	store_count_read(f->store, &before);
	open_and_find(f, SMALL_INTS);
	store_count_read(f->store, &after);
	assert_int_equal(after.calls[STORE_GET] - before.calls[STORE_GET], 7);
	assert_in_range(after.calls[STORE_LIST] - before.calls[STORE_LIST], 5, 6);
}

static void chunks_come_in_the_order_of_their_numbers(void **state)
{
	struct fixture *f = *state;
	small_put(
		f->store, SMALL_KEY_INTS,
		"{" SMALL_HEAD(
			SMALL_INTS) ",'type':" SMALL_I32
				    ",'shape':{'class':'H5S_SIMPLE','dims':[100]},'attributes':{},"
				    "'layout':{'class':'H5D_CHUNKED','dims':[4]}}");
	small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/10", "0123456789abcdef");
	small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/9", "0123456789abcdef");
	const struct chunk_list *chunks = open_and_find(f, SMALL_INTS);
	assert_int_equal(chunks->n, 3);
	assert_int_equal(chunks->numbers[0], 1);
	assert_int_equal(chunks->numbers[1], 9);
	assert_int_equal(chunks->numbers[2], 10);
}

static void chunks_are_found_by_their_numbers(void **state)
{
	static const uint64_t numbers[] = {1, 9, 10};
	static const struct {
		uint64_t number, from, find;
	} cases[] = {{0, 0, 3},	 {1, 0, 0},  {2, 1, 3},		{9, 1, 1},
		     {10, 2, 2}, {11, 3, 3}, {UINT64_MAX, 3, 3}};
	const struct chunk_list some = {.n = 3, .numbers = numbers}, none = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(chunk_list_from(&some, cases[i].number), cases[i].from);
		assert_int_equal(chunk_list_find(&some, cases[i].number), cases[i].find);
	}
	assert_int_equal(chunk_list_from(&none, 0), 0);
	assert_int_equal(chunk_list_find(&none, 0), 0);
}

static void a_chunk_in_the_wrong_partition_does_not_exist(void **state)
{
	struct fixture *f = *state;
	small_put(
		f->store, SMALL_KEY_INTS,
		"{" SMALL_HEAD(
			SMALL_INTS) ",'type':" SMALL_I32
				    ",'shape':{'class':'H5S_SIMPLE','dims':[100]},'attributes':{},"
				    "'layout':{'class':'H5D_CHUNKED','dims':[4],'partition_count':"
				    "5}}");
	/* chunk 3 belongs to 3 * 29 mod 5 = 2, chunk 4 to 1 */
	small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/p2/3", "0123456789abcdef");
	small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/p3/4", "0123456789abcdef");
	const struct chunk_list *chunks = open_and_find(f, SMALL_INTS);
	assert_int_equal(chunks->n, 1);
	assert_int_equal(chunks->numbers[0], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_large_domain_is_not_listed_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_large_domain_costs_one_list_more_for_each_dataset_of_strings, setup,
			teardown),
		cmocka_unit_test_setup_teardown(chunks_come_in_the_order_of_their_numbers, setup,
						teardown),
		cmocka_unit_test(chunks_are_found_by_their_numbers),
		cmocka_unit_test_setup_teardown(a_chunk_in_the_wrong_partition_does_not_exist,
						setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
