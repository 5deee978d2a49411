/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that are too large, and what a domain charges for the values in its documents. */
#include "domain_fixture.h"

#include <errno.h>

#include <base/budget.h>
#include <bucket/schemas.h>

static void open_domain(struct fixture *f)
{
	struct err err = ERR_INIT;
	domain_unref(f->domain);
	f->domain = NULL;
	if (domain_open(&(struct domain_bucket){.env = &f->env,
						.store = f->store,
						.schemas = schema_all()},
			"d.h5", NULL, &f->domain, &err))
		fail_msg("%s", err.msg);
}

/* The problem that names this key, or NULL. */
static const char *problem_of(struct fixture *f, const char *key)
{
	const char *problem;
	for (uint32_t i = 0; (problem = tree_problem(domain_tree(f->domain), i)); i++)
		if (strstr(problem, key))
			return problem;
	return NULL;
}

static bool has_ints(struct fixture *f)
{
	const struct tree *tree = domain_tree(f->domain);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, SMALL_INTS) == 0)
			return true;
	return false;
}

/* type: of the elements; more: members behind the layout. */
static void put_ints(struct fixture *f, const char *type, uint64_t elements, uint64_t chunk,
		     const char *more)
{
	char text[4096];
	snprintf(text, sizeof(text),
		 "{" SMALL_HEAD(
			 SMALL_INTS) ",'type':%s,'shape':{'class':'H5S_SIMPLE','dims':[%llu],"
				     "'maxdims':[0]},'layout':{'class':'H5D_CHUNKED','dims':[%llu]}"
				     "%s}",
		 type, (unsigned long long)elements, (unsigned long long)chunk, more);
	assert_int_equal(small_put(f->store, SMALL_KEY_INTS, text), 0);
	open_domain(f);
}

static void a_chunk_has_a_largest_size(void **state)
{
	static const struct {
		const char *type;
		uint64_t elements, chunk;
		bool fits;
	} rows[] = {
		{SMALL_I32, 1 << 27, CHUNK_BYTES_MAX / 4, true},
		{SMALL_I32, 1 << 27, CHUNK_BYTES_MAX / 4 + 1, false},
		{SMALL_I32, 0, CHUNK_BYTES_MAX / 4 + 1, true}, /* it has no chunk */
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_ints(f, rows[i].type, rows[i].elements, rows[i].chunk, ",'attributes':{}");
		const char *problem = problem_of(f, SMALL_KEY_INTS);
		if (has_ints(f) != rows[i].fits || !problem != rows[i].fits)
			fail_msg("row %zu: %s", i, problem ? problem : "no problem");
		if (problem)
			assert_non_null(strstr(problem, "a chunk is larger than 268435456 bytes"));
	}
}

static void computed_elements_must_fit_into_the_file(void **state)
{
	static const char arange[] =
		",'attributes':{},'creationProperties':{'initializer':['arange','--start=5']}";
	const uint64_t most = DATASET_DENSE_MAX / 4, chunk = 1 << 20;
	struct fixture *f = *state;
	put_ints(f, SMALL_I32, most, chunk, arange);
	assert_true(has_ints(f));
	put_ints(f, SMALL_I32, most + 1, chunk, arange);
	assert_false(has_ints(f));
	assert_non_null(problem_of(f, SMALL_KEY_INTS));
	assert_non_null(strstr(problem_of(f, SMALL_KEY_INTS), "computed elements of more than"));
	/* Elements that are not computed need no room unless they are stored. */
	put_ints(f, SMALL_I32, most + 1, chunk, ",'attributes':{}");
	assert_true(has_ints(f));
}

#define STRING(length)                                                                             \
	"{'class':'H5T_STRING','charSet':'H5T_CSET_ASCII','strPad':'H5T_STR_NULLTERM',"            \
	"'length':" length "}"

/* The bytes that the domain charges if there are `length` letters between `before` and `after` in
 * the document. */
static uint64_t memory_with(struct fixture *f, const char *type, const char *before, int length,
			    const char *after)
{
	char text[3000], more[4096];
	memset(text, 'x', sizeof(text));
	snprintf(more, sizeof(more), "%s%.*s%s", before, length, text, after);
	put_ints(f, type, 4, 4, more);
	assert_true(has_ints(f));
	return domain_memory(f->domain);
}

static void values_are_charged(void **state)
{
	static const char attribute[] = ",'attributes':{'a':{'type':" STRING(
		"'H5T_VARIABLE'") ",'shape':{'class':'H5S_SCALAR'},'created':1,'value':'";
	static const char fill[] = ",'attributes':{},'creationProperties':{'fillValue':'";
	struct fixture *f = *state;
	const uint64_t few = memory_with(f, SMALL_I32, attribute, 100, "'}}"),
		       many = memory_with(f, SMALL_I32, attribute, 3000, "'}}");
	assert_in_range(many - few, 2 * 2800, 4 * 2900); /* the document, and the value */
	const char *strings = STRING("'H5T_VARIABLE'");
	const uint64_t few_fill = memory_with(f, strings, fill, 100, "'}"),
		       many_fill = memory_with(f, strings, fill, 3000, "'}");
	assert_in_range(many_fill - few_fill, 2 * 2800, 4 * 2900);
}

/* Documents of more than 256 KiB are read one by one, after the others. */
static void a_large_document_takes_one_more_request(void **state)
{
	enum { LARGE = 300000 };
	static const char before[] = "{" SMALL_HEAD(SMALL_GROUP) ",'links':{'again':" SMALL_HARD(
		SMALL_INTS,
		"1") "},'attributes':{'a':{'type':" STRING("'H5T_VARIABLE'") ",'shape':{'class':'"
									     "H5S_SCALAR'},'"
									     "created':1,'value':'";
	struct fixture *f = *state;
	struct store_counts start, end;
	open_domain(f);
	const uint64_t memory = domain_memory(f->domain);
	char *text;
	assert_true(asprintf(&text, "%s%*d'}}}", before, LARGE, 1) > LARGE);
	assert_int_equal(small_put(f->store, SMALL_KEY_GROUP, text), 0);
	free(text);
	store_count_read(f->store, &start);
	open_domain(f);
	store_count_read(f->store, &end);
	assert_null(problem_of(f, SMALL_KEY_GROUP));
	assert_true(domain_memory(f->domain) > memory + LARGE);
	assert_int_equal(end.calls[STORE_GET] - start.calls[STORE_GET], 7 + 1);
}

/* The charge is returned when the domain is closed. */
static void an_open_that_does_not_fit_into_memory_fails(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	open_domain(f);
	const uint64_t bytes = domain_memory(f->domain);
	domain_unref(f->domain);
	f->domain = NULL;
	for (int enough = 0; enough < 2; enough++) {
		struct budget *budget = budget_new(
			&(struct budget_limits){.bytes = 2,
						.metadata_min = enough ? 2 * bytes : bytes / 2,
						.option = "cache_size"});
		struct budget_stats stats;
		f->env.budget = budget;
		const int rc = domain_open(&(struct domain_bucket){.env = &f->env,
								   .store = f->store,
								   .schemas = schema_all()},
					   "d.h5", NULL, &f->domain, &err);
		assert_int_equal(rc, enough ? 0 : -ENOMEM);
		if (!enough)
			assert_non_null(strstr(err.msg, "bytes of metadata"));
		domain_unref(f->domain);
		f->domain = NULL;
		budget_get_stats(budget, &stats);
		assert_int_equal(stats.used[BUDGET_TREES], 0);
		f->env.budget = NULL;
		budget_free(budget);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chunk_has_a_largest_size),
		TEST(computed_elements_must_fit_into_the_file),
		TEST(values_are_charged),
		TEST(a_large_document_takes_one_more_request),
		TEST(an_open_that_does_not_fit_into_memory_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
