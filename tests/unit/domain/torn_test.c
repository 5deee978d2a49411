/* SPDX-License-Identifier: Apache-2.0 */
/* Another program changes a domain between two requests of an open. What is opened is the domain as
 * it was before, or as it was afterwards. */
#include "gate.h"
#include "revalidate.h"
#include <bucket/schemas.h>

#define ID_NEW	  SMALL_ID("g", "0009-000000-000001")
#define KEY_ROOT  SMALL_PREFIX "/.group.json"
#define KEY_CHUNK SMALL_PREFIX "/d/0002-000000-000001/3"

enum { OLD = 10, GROWN = 16 };

/* The dataset grows by a chunk, and the root group gets a new group. */
static void change(struct store *inner)
{
	assert_int_equal(call_put(inner, KEY_CHUNK, "0123456789abcdef", 16, NULL, NULL, NULL), 0);
	assert_int_equal(
		small_put(inner, SMALL_KEY_INTS,
			  "{" SMALL_HEAD(
				  SMALL_INTS) ",'type':" SMALL_I32 ",'shape':{'class':'H5S_SIMPLE',"
					      "'dims':[16],'maxdims':[0]},"
					      "'attributes':{},"
					      "'layout':{'class':'H5D_CHUNKED','dims':[4]}}"),
		0);
	assert_int_equal(small_put(inner, SMALL_PREFIX "/g/0009-000000-000001/.group.json",
				   "{" SMALL_HEAD(ID_NEW) ",'links':{},'attributes':{}}"),
			 0);
	assert_int_equal(
		small_put(
			inner, KEY_ROOT,
			"{" SMALL_HEAD(SMALL_ROOT) ",'links':{"
						   "'ints':" SMALL_HARD(
							   SMALL_INTS,
							   "1") ","
								"'new':" SMALL_HARD(
									ID_NEW,
									"2") "},'attributes':{}}"),
		0);
}

static struct domain *open_through(struct gate *g, struct fixture *f, struct domain *previous)
{
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	const struct domain_hint hint = {.previous = previous};
	if (domain_open(&(struct domain_bucket){.env = &f->env,
						.store = &g->base,
						.schemas = schema_all()},
			"d.h5", &hint, &d, &err))
		fail_msg("request %u: %s", g->other_at, err.msg);
	return d;
}

static uint32_t number_of(const struct domain *d, const char *id)
{
	for (uint32_t i = 0; i < tree_count(domain_tree(d)); i++)
		if (strcmp(tree_object(domain_tree(d), tree_nth(domain_tree(d), i))->o.id, id) == 0)
			return tree_nth(domain_tree(d), i);
	return OBJECT_NONE;
}

static uint64_t length_of(const struct domain *d)
{
	return find(d, SMALL_INTS)->dataset.space.dims[0];
}

static bool lists_chunk(const struct domain *d, uint64_t chunk)
{
	const struct chunk_list *l = domain_chunks(d, number_of(d, SMALL_INTS));
	for (uint64_t i = 0; i < l->n; i++)
		if (l->numbers[i] == chunk)
			return true;
	return false;
}

static void check(const struct domain *d, unsigned int at, bool is_small)
{
	const bool linked = find(d, SMALL_ROOT)->group.nlinks == 2 && !find(d, SMALL_GROUP);
	const bool grown = length_of(d) == GROWN;
	if (linked != (find(d, ID_NEW) != NULL))
		fail_msg("request %u: the new group is missing", at);
	assert_true(grown || length_of(d) == OLD);
	/* The documents of a large domain are not compared with a listing. */
	if (is_small && (linked != grown || lists_chunk(d, 3) != grown))
		fail_msg("request %u: the domain is of two moments", at);
}

/* Changes the domain before each request of an open. Returns how often the open has seen this. */
static unsigned int at_each_request(bool is_small, bool is_known)
{
	unsigned int seen = 0;
	bool reached = true;
	for (unsigned int at = 1; reached; at++) {
		struct fixture *f;
		assert_int_equal(setup((void **)&f), 0);
		if (!is_small)
			put_many_chunks(f);
		struct gate *g = gate_new(f->store);
		struct domain *old = is_known ? open_through(g, f, NULL) : NULL;
		g->n = 0;
		g->other_at = at;
		g->other = change;
		struct domain *d = open_through(g, f, old);
		reached = g->n >= at;
		check(d, at, is_small);
		seen += length_of(d) == GROWN;
		/* The next open shows the change in any case. */
		g->other_at = 0;
		struct domain *later = open_through(g, f, d);
		assert_int_equal(length_of(later), reached ? GROWN : OLD);
		assert_int_equal(find(later, ID_NEW) != NULL, reached);
		domain_unref(later);
		domain_unref(d);
		domain_unref(old);
		f->store = &g->base;
		assert_int_equal(teardown((void **)&f), 0);
	}
	return seen;
}

static void a_change_is_seen_whole(void **state)
{
	for (unsigned int i = 0; i < 4; i++)
		assert_true(at_each_request(i % 2, i / 2) > 1);
}

#define OTHER	  "g-33333333-44444444-bbbb-bbbbcc-cccccc"
#define KEY_OTHER "db/33333333-44444444/.group.json"

/* Another program deletes the domain. */
static void delete_all(struct store *inner)
{
	auto_page struct store_page page = {0};
	assert_int_equal(call_delete(inner, "d.h5/.domain.json", NULL, NULL), 0);
	assert_int_equal(call_list_all(inner, SMALL_PREFIX "/", false, 1000, &page, NULL), 0);
	for (size_t i = 0; i < page.n; i++)
		assert_int_equal(call_delete(inner, page.items[i].key, NULL, NULL), 0);
}

/* ... and makes another one of the same name. */
static void replace_all(struct store *inner)
{
	delete_all(inner);
	assert_int_equal(small_put(inner, KEY_OTHER,
				   "{'id':'" OTHER "','root':'" OTHER
				   "','links':{},'attributes':{}}"),
			 0);
	assert_int_equal(small_put(inner, "d.h5/.domain.json",
				   "{'root':'" OTHER "','owner':'admin','acls':{}}"),
			 0);
}

/* The objects of a domain disappear between two requests of an open. It shows the domain as it was,
 * the new one, or none; never an error. */
static void a_domain_that_disappears_is_absent(void **state)
{
	unsigned int absent = 0, other = 0;
	for (unsigned int i = 0; i < 4; i++) {
		bool reached = true;
		for (unsigned int at = 1; reached; at++) {
			struct fixture *f;
			assert_int_equal(setup((void **)&f), 0);
			struct gate *g = gate_new(f->store);
			struct domain *d = NULL, *old = i / 2 ? open_through(g, f, NULL) : NULL;
			struct schema_document *known = NULL;
			struct err err = ERR_INIT;
			if (old) {
				known = schema_document_new(domain_info(old), "1");
				known->schema = schema_all()[0];
			}
			const struct domain_hint hint = {.document = known, .is_fresh = old};
			gate_count(g);
			g->other_at = at;
			g->other = i % 2 ? replace_all : delete_all;
			const int rc = domain_open(&(struct domain_bucket){.env = &f->env,
									   .store = &g->base,
									   .schemas = schema_all()},
						   "d.h5", &hint, &d, &err);
			reached = g->n >= at;
			if (rc && (rc != -ENOENT || i % 2))
				fail_msg("request %u: %s", at, err.msg);
			absent += rc == -ENOENT;
			other += d && strcmp(domain_info(d)->root, OTHER) == 0;
			schema_document_unref(known);
			domain_unref(d);
			domain_unref(old);
			f->store = &g->base;
			assert_int_equal(teardown((void **)&f), 0);
		}
	}
	assert_true(absent > 2 && other > 2);
}

static struct gate *busy;

/* Before this request and all later ones. */
static void change_always(struct store *inner)
{
	static unsigned int n;
	char text[512];
	snprintf(text, sizeof(text),
		 "{" SMALL_HEAD(SMALL_ORPHAN) ",'links':{},'attributes':{},'n':%u}", n++);
	assert_int_equal(small_put(inner, SMALL_PREFIX "/g/0001-000000-0000ff/.group.json", text),
			 0);
	busy->other_at = busy->n + 1;
}

/* A domain that never stands still is opened all the same, in a limited number of requests. */
static void a_busy_domain_is_opened(void **state)
{
	struct fixture *f = *state;
	struct gate *g = busy = gate_new(f->store);
	f->store = &g->base;
	g->other_at = 1;
	g->other = change_always;
	struct domain *d = open_through(g, f, NULL);
	assert_non_null(find(d, SMALL_INTS));
	assert_true(g->n < 40);
	gate_open(g);
	/* It may lack something, so the next open loads it again. */
	struct domain *later = open_through(g, f, d);
	assert_ptr_not_equal(later, d);
	struct domain *same = open_through(g, f, later);
	assert_ptr_equal(same, later);
	domain_unref(same);
	domain_unref(later);
	domain_unref(d);
}

/* With very many remainders, another listing proves that they do not exist. A new object among them
 * is found all the same. */
static void many_remainders_cost_a_listing(void **state)
{
	enum { REMAINDERS = 1500 };
	struct fixture *f = *state;
	struct cost cost;
	char *text = malloc(REMAINDERS * 128);
	assert_non_null(text);
	int n = sprintf(text,
			"{" SMALL_HEAD(SMALL_ROOT) ",'links':{'ints':" SMALL_HARD(SMALL_INTS, "1"));
	for (int i = 0; i < REMAINDERS; i++)
		n += sprintf(text + n,
			     ",'n%d':{'class':'H5L_TYPE_HARD','created':2,"
			     "'id':'g-11111111-22222222-0007-000000-%06x'}",
			     i, i);
	sprintf(text + n, "},'attributes':{}}");
	assert_int_equal(small_put(f->store, KEY_ROOT, text), 0);
	free(text);
	f->domain = open_with(f, NULL, &cost);
	assert_int_equal(cost.heads, 0);
	assert_int_equal(cost.lists, 5); /* one more than usual */
	struct domain *same = open_again(f, f->domain, &cost);
	assert_ptr_equal(same, f->domain);
	assert_int_equal(cost.lists, 1);
	domain_unref(same);
	assert_int_equal(
		small_put(f->store, SMALL_PREFIX "/g/0007-000000-0005db/.group.json",
			  "{" SMALL_HEAD(SMALL_ID(
				  "g", "0007-000000-0005db")) ",'links':{},'attributes':{}}"),
		0);
	struct domain *later = open_again(f, f->domain, &cost);
	assert_non_null(find(later, SMALL_ID("g", "0007-000000-0005db")));
	domain_unref(later);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_seen_whole),
		cmocka_unit_test(a_domain_that_disappears_is_absent),
		cmocka_unit_test_setup_teardown(a_busy_domain_is_opened, setup, teardown),
		cmocka_unit_test_setup_teardown(many_remainders_cost_a_listing, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
