/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a domain after this process has changed it: which requests are made, and that only the
 * store decides what is current. */
#include "revalidate.h"

#include <domain/puts.h>

#define KEY_NEW	  SMALL_PREFIX "/g/0006-000000-000001/.group.json"
#define ID_NEW	  SMALL_ID("g", "0006-000000-000001")
#define GROUP(id) "{" SMALL_HEAD(id) ",'links':{},'attributes':{}}"
#define INTS	  "'ints':" SMALL_HARD(SMALL_INTS, "2")
#define TYPE	  "'type':" SMALL_HARD(SMALL_TYPE, "4")
#define SUB	  "'sub':" SMALL_HARD(SMALL_GROUP, "1")
#define NEW	  "'new':" SMALL_HARD(ID_NEW, "5")

/* A domain of each size: it fits into one page of a listing; documents are compared one by one; and
 * by a listing. The links of all lead to objects. */
enum size { SMALL, MANY_CHUNKS, MANY_GROUPS, SIZES };

struct puts_fixture {
	struct fixture *f;
	const char *parent, *key; /* the group that the tests change */
	struct domain *before;
	struct domain_puts *puts;
	uint64_t objects;
};

/* The text of the group with these links. */
static const char *group(const struct puts_fixture *p, const char *links)
{
	static char text[1024];
	snprintf(text, sizeof(text),
		 "{'id':'%s','root':'" SMALL_ROOT "','created':1,'lastModified':2,"
		 "'links':{%s},'attributes':{}}",
		 p->parent, links);
	return text;
}

static void put_size(struct puts_fixture *p, enum size size)
{
	p->parent = SMALL_ROOT;
	p->key = SMALL_PREFIX "/.group.json";
	if (size == MANY_GROUPS) {
		put_many_groups(p->f);
		p->parent = SMALL_ID("g", "0005-000000-000000");
		p->key = SMALL_PREFIX "/g/0005-000000-000000/.group.json";
	}
	assert_int_equal(small_put(p->f->store, p->key, group(p, INTS "," TYPE)), 0);
	if (size == MANY_CHUNKS)
		put_many_chunks(p->f);
}

/* Puts a document as a commit does, and notes it. */
static void put(struct puts_fixture *p, const char *id, const char *key, const char *json)
{
	struct store_meta meta;
	char *text = strdup(json);
	assert_non_null(text);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(call_put(p->f->store, key, text, strlen(text), NULL, &meta, NULL), 0);
	assert_int_equal(domain_puts_add(p->puts, id, meta.etag, text, strlen(text)), 0);
	free(text);
}

static void begin(struct puts_fixture *p, struct fixture *f, enum size size)
{
	struct cost cost;
	*p = (struct puts_fixture){.f = f};
	put_size(p, size);
	p->before = open_with(f, NULL, &cost);
	p->objects = tree_count(domain_tree(p->before));
	p->puts = domain_puts_new(NULL, false, false);
	assert_non_null(p->puts);
}

static struct domain *reopen(struct puts_fixture *p, struct cost *cost)
{
	const struct domain_hint hint = {.previous = p->before, .puts = p->puts};
	return open_with(p->f, &hint, cost);
}

static void end(struct puts_fixture *p)
{
	struct cost cost;
	/* The next test begins with a small domain. */
	domain_unref(p->before);
	domain_puts_free(p->puts);
	store_free(p->f->store);
	p->f->store = store_count_new(small_domain_new(&p->f->env), NULL);
	assert_non_null(p->f->store);
	domain_unref(open_with(p->f, NULL, &cost));
}

/* One round, and no text. The conditional request for the domain's document is one of the gets. */
static void check_one_round(enum size size, const struct cost *cost, uint64_t objects)
{
	assert_int_equal(cost->gets, 1);
	assert_int_equal(cost->lists, size == SMALL ? 1 : size == MANY_CHUNKS ? 0 : 2);
	assert_int_equal(cost->heads, size == MANY_CHUNKS ? objects : 0);
	assert_int_equal(cost->bytes, 0);
}

static void what_was_put_is_not_fetched(void **state)
{
	for (enum size size = 0; size < SIZES; size++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		put(&p, ID_NEW, KEY_NEW, GROUP(ID_NEW));
		put(&p, p.parent, p.key, group(&p, INTS "," TYPE "," NEW));
		struct domain *d = reopen(&p, &cost);
		check_one_round(size, &cost, p.objects + 1);
		assert_non_null(find(d, ID_NEW));
		assert_int_equal(find(d, p.parent)->group.nlinks, 3);
		assert_int_equal(domain_sees_chunks(d), size == SMALL);
		/* It is an earlier snapshot like any other. */
		struct domain *again = open_again(p.f, d, &cost);
		assert_ptr_equal(again, d);
		domain_unref(again);
		domain_unref(d);
		end(&p);
	}
}

/* Nothing leads to a removed object, so it does not matter whether it exists. */
static void what_was_removed_may_be_deleted(void **state)
{
	for (unsigned int i = 0; i < 2 * SIZES; i++) {
		const enum size size = i / 2;
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		put(&p, p.parent, p.key, group(&p, INTS));
		assert_int_equal(domain_puts_add(p.puts, SMALL_TYPE, NULL, NULL, 0), 0);
		put(&p, SMALL_INTS, SMALL_KEY_INTS,
		    "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32
					       ",'shape':{'class':'H5S_SCALAR'},'attributes':{}}");
		if (i % 2)
			assert_int_equal(call_delete(p.f->store, SMALL_KEY_TYPE, NULL, NULL), 0);
		struct domain *d = reopen(&p, &cost);
		check_one_round(size, &cost, 2);
		assert_null(find(d, SMALL_TYPE));
		assert_non_null(find(d, SMALL_INTS));
		domain_unref(d);
		end(&p);
	}
}

/* Another program has changed the same object, or another one, after the commit. */
static void only_the_store_decides(void **state)
{
	for (enum size size = 0; size < SIZES; size++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		put(&p, p.parent, p.key, group(&p, INTS "," TYPE));
		assert_int_equal(small_put(p.f->store, p.key, group(&p, INTS "," SUB)), 0);
		struct domain *d = reopen(&p, &cost);
		assert_non_null(find(d, SMALL_GROUP));
		assert_true(cost.bytes > 0);
		domain_unref(d);
		end(&p);
	}
}

static void an_object_that_is_gone_is_noticed(void **state)
{
	for (enum size size = 0; size < SIZES; size++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		put(&p, ID_NEW, KEY_NEW, GROUP(ID_NEW));
		put(&p, p.parent, p.key, group(&p, INTS "," NEW));
		assert_int_equal(call_delete(p.f->store, KEY_NEW, NULL, NULL), 0);
		struct domain *d = reopen(&p, &cost);
		assert_null(find(d, ID_NEW));
		assert_int_equal(find(d, p.parent)->group.nlinks, 1);
		domain_unref(d);
		end(&p);
	}
}

/* An object that is in the domain, but not in what was put, is found all the same. */
static void a_gap_is_filled(void **state)
{
	for (enum size size = 0; size < SIZES; size++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		assert_int_equal(small_put(p.f->store, KEY_NEW, GROUP(ID_NEW)), 0);
		put(&p, p.parent, p.key, group(&p, INTS "," NEW));
		struct domain *d = reopen(&p, &cost);
		assert_non_null(find(d, ID_NEW));
		assert_int_equal(find(d, p.parent)->group.nlinks, 2);
		assert_int_equal(tree_problems(domain_tree(d)), 0);
		domain_unref(d);
		end(&p);
	}
}

/* A text or a version that is not known is fetched. */
static void what_is_not_known_is_fetched(void **state)
{
	for (unsigned int i = 0; i < 2 * SIZES; i++) {
		static const char text[] = "{}";
		struct puts_fixture p;
		struct store_meta meta;
		struct cost cost;
		begin(&p, *state, i / 2);
		assert_int_equal(small_put(p.f->store, p.key, group(&p, INTS "," SUB)), 0);
		assert_int_equal(call_head(p.f->store, p.key, &meta, NULL), 0);
		assert_int_equal(domain_puts_add(p.puts, p.parent, i % 2 ? meta.etag : "",
						 i % 2 ? NULL : text, strlen(text)),
				 0);
		struct domain *d = reopen(&p, &cost);
		assert_int_equal(find(d, p.parent)->group.nlinks, 2);
		domain_unref(d);
		end(&p);
	}
}

/* The path has another domain now. */
static void puts_of_another_domain_do_not_count(void **state)
{
	static const char other[] = "g-11111111-33333333-0001-000000-000001";
	for (enum size size = 0; size < SIZES; size++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, size);
		assert_int_equal(domain_puts_add(p.puts, other, "etag", "{}", 2), 0);
		struct domain *d = reopen(&p, &cost);
		check_one_round(size, &cost, p.objects);
		assert_int_equal(tree_count(domain_tree(d)), p.objects);
		domain_unref(d);
		end(&p);
	}
}

/* A domain that this process has made, and never opened. */
static void a_new_domain_is_not_fetched(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct puts_fixture p;
		struct cost cost;
		begin(&p, *state, i ? MANY_CHUNKS : SMALL);
		domain_puts_free(p.puts);
		domain_unref(p.before);
		p.before = NULL;
		p.puts = domain_puts_new(NULL, true, i == 0);
		put(&p, ID_NEW, KEY_NEW, GROUP(ID_NEW));
		put(&p, p.parent, p.key, group(&p, NEW));
		struct domain *d = reopen(&p, &cost);
		assert_int_equal(tree_count(domain_tree(d)), 2);
		assert_int_equal(cost.lists, i == 0);
		assert_int_equal(cost.heads, i ? 2 : 0);
		/* The small domain has more objects than were put. */
		assert_int_equal(cost.gets, i ? 1 : 6);
		domain_unref(d);
		end(&p);
	}
}

/* ---- many texts ---- */

enum { MANY_TEXTS = 2000, LONG = 6 << 10 /* bytes of a document; all have 12 MiB */ };

/* Puts a document of LONG bytes. Its ETag is noted if `puts` is not NULL. */
static void put_long(struct fixture *f, int i, char mark, struct domain_puts *puts)
{
	char key[128], id[128], *text = malloc(LONG + 1);
	struct store_meta meta;
	assert_non_null(text);
	snprintf(id, sizeof(id), "g-11111111-22222222-0005-000000-%06x", (unsigned)i);
	snprintf(key, sizeof(key), SMALL_PREFIX "/g/0005-000000-%06x/.group.json", (unsigned)i);
	const int n = sprintf(text,
			      "{\"id\":\"%s\",\"root\":\"" SMALL_ROOT
			      "\",\"created\":1,\"lastModified\":1,\"links\":{},"
			      "\"attributes\":{},\"mark\":\"%c",
			      id, mark);
	memset(text + n, 'x', LONG - (size_t)n);
	strcpy(text + LONG - 2, "\"}");
	assert_int_equal(call_put(f->store, key, text, LONG, NULL, &meta, NULL), 0);
	if (puts)
		assert_int_equal(domain_puts_add(puts, id, meta.etag, text, LONG), 0);
	free(text);
}

static struct domain *open_keeping(struct fixture *f, bool keeps, const struct domain_hint *hint,
				   struct cost *cost)
{
	const struct domain_bucket bucket = {
		.env = &f->env, .store = f->store, .schemas = schema_all(), .keeps_texts = keeps};
	return open_bucket(f, &bucket, hint, cost);
}

/* An open after a commit costs what an open of an unchanged domain costs, if there is memory for
 * the texts of all documents: those that the commit has put, and all others. */
static void texts_are_kept_as_memory_allows(void **state)
{
	static const struct {
		uint64_t metadata; /* bytes */
		bool keeps;
		int changed; /* documents */
		bool fetches;
	} cases[] = {
		{512 << 20, true, 1, false},
		{512 << 20, true, 1500, false}, /* the texts of the commit have 9 MiB */
		{512 << 20, false, 1, true},	/* nothing is committed by this process */
		{40 << 20, true, 1, true},	/* a share of the memory */
	};
	struct fixture *f = *state;
	put_groups(f, MANY_TEXTS);
	for (int i = 0; i < MANY_TEXTS; i++)
		put_long(f, i, 'a', NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct budget *budget = budget_new(&(struct budget_limits){
			.metadata_min = cases[i].metadata, .option = "cache_size"});
		struct cost cost;
		assert_non_null(budget);
		f->env.budget = budget;
		struct domain *before = open_keeping(f, cases[i].keeps, NULL, &cost);
		struct domain_puts *puts = domain_puts_new(budget, false, false);
		assert_non_null(puts);
		for (int n = 0; n < cases[i].changed; n++)
			put_long(f, n, (char)('b' + i), puts);
		const struct domain_hint hint = {.previous = before, .puts = puts};
		struct domain *d = open_keeping(f, cases[i].keeps, &hint, &cost);
		assert_ptr_not_equal(d, before);
		assert_int_equal(tree_count(domain_tree(d)), MANY_TEXTS + 1);
		assert_int_equal(cost.lists, (MANY_TEXTS + 1) / DOMAIN_LISTING + 1);
		assert_int_equal(cost.heads, 0);
		if (!cases[i].fetches)
			assert_int_equal(cost.gets, 1); /* the domain's document */
		else
			assert_in_range(cost.gets, 100, MANY_TEXTS);
		domain_puts_free(puts);
		domain_unref(before);
		domain_unref(d);
		f->env.budget = NULL;
		budget_free(budget); /* fails if a charge is left */
	}
}

/* Texts give way to what a file needs to be read. */
static void texts_are_dropped_for_metadata(void **state)
{
	struct fixture *f = *state;
	struct budget *budget = budget_new(
		&(struct budget_limits){.metadata_min = 512 << 20, .option = "cache_size"});
	struct budget_charge others = {.budget = budget, .use = BUDGET_PLANS};
	struct budget_stats stats;
	struct cost cost;
	size_t len;
	const void *text;
	assert_non_null(budget);
	put_groups(f, MANY_TEXTS);
	for (int i = 0; i < MANY_TEXTS; i++)
		put_long(f, i, 'a', NULL);
	f->env.budget = budget;
	struct domain *d = open_keeping(f, true, NULL, &cost);
	budget_get_stats(budget, &stats);
	const uint64_t with = stats.used[BUDGET_TREES];
	assert_true(with > (uint64_t)MANY_TEXTS * LONG);
	domain_object_version(d, 0, &text, &len);
	assert_non_null(text);
	assert_true(domain_drop_texts(d));
	assert_false(domain_drop_texts(d));
	domain_object_version(d, 0, &text, &len);
	assert_null(text);
	budget_get_stats(budget, &stats);
	const uint64_t without = stats.used[BUDGET_TREES];
	assert_true(without + (uint64_t)MANY_TEXTS * LONG <= with);
	domain_unref(d);
	/* There is room for the tree, but not for the texts that are kept in any case. */
	assert_int_equal(budget_set(&others, stats.metadata_limit - without - (2 << 20), NULL), 0);
	d = open_keeping(f, true, NULL, &cost);
	assert_int_equal(tree_count(domain_tree(d)), MANY_TEXTS + 1);
	domain_object_version(d, 0, &text, &len);
	assert_null(text);
	domain_unref(d);
	budget_set(&others, 0, NULL);
	f->env.budget = NULL;
	budget_free(budget);
}

/* ---- the table ---- */

static uint32_t count(const struct domain_puts *p, size_t *texts)
{
	uint32_t n;
	struct schema_put *list = domain_puts_list(p, &n);
	assert_non_null(list);
	*texts = 0;
	for (uint32_t i = 0; i < n; i++)
		*texts += list[i].len;
	free(list);
	return n;
}

static void later_puts_count(void **state)
{
	struct domain_puts *a = domain_puts_new(NULL, false, false);
	struct domain_puts *b = domain_puts_new(NULL, false, false);
	size_t texts;
	assert_int_equal(domain_puts_add(a, "x", "1", "abc", 3), 0);
	assert_int_equal(domain_puts_add(a, "x", "2", "abcd", 4), 0);
	assert_int_equal(domain_puts_add(a, "y", "3", "ab", 2), 0);
	assert_int_equal(count(a, &texts), 2);
	assert_int_equal(texts, 6);
	assert_int_equal(domain_puts_add(b, "x", NULL, NULL, 0), 0);
	assert_int_equal(domain_puts_add(b, "z", "4", "a", 1), 0);
	a = domain_puts_join(a, b);
	assert_int_equal(count(a, &texts), 3);
	assert_int_equal(texts, 3);
	a = domain_puts_join(a, NULL);
	a = domain_puts_join(NULL, a);
	assert_int_equal(count(a, &texts), 3);
	/* A new domain has nothing of an earlier one. */
	b = domain_puts_new(NULL, true, true);
	assert_int_equal(domain_puts_add(b, "w", "5", "a", 1), 0);
	a = domain_puts_join(a, b);
	assert_int_equal(count(a, &texts), 1);
	domain_puts_free(a);
}

static void texts_are_bounded(void **state)
{
	struct budget *budget = budget_new(&(struct budget_limits){
		.bytes = 64 << 20, .metadata_min = 16 << 20, .option = "cache_size"});
	struct domain_puts *p = domain_puts_new(budget, false, false);
	char *text = calloc(1, DOMAIN_TEXTS_MIN), id[16];
	struct budget_stats stats;
	size_t texts;
	assert_non_null(text);
	for (int i = 0; i < 10; i++) {
		snprintf(id, sizeof(id), "id%d", i);
		assert_int_equal(domain_puts_add(p, id, "e", text, DOMAIN_TEXTS_MIN / 4), 0);
	}
	assert_int_equal(count(p, &texts), 10);
	assert_int_equal(texts, DOMAIN_TEXTS_MIN);
	budget_get_stats(budget, &stats);
	assert_true(stats.used[BUDGET_TREES] > DOMAIN_TEXTS_MIN);
	domain_puts_free(p);
	budget_get_stats(budget, &stats);
	assert_int_equal(stats.used[BUDGET_TREES], 0);
	budget_free(budget);
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_put_is_not_fetched),
		TEST(what_was_removed_may_be_deleted),
		TEST(only_the_store_decides),
		TEST(an_object_that_is_gone_is_noticed),
		TEST(a_gap_is_filled),
		TEST(what_is_not_known_is_fetched),
		TEST(puts_of_another_domain_do_not_count),
		TEST(a_new_domain_is_not_fetched),
		TEST(texts_are_kept_as_memory_allows),
		TEST(texts_are_dropped_for_metadata),
		cmocka_unit_test(later_puts_count),
		cmocka_unit_test(texts_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
