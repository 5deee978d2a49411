/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a domain with a hint: the requests that are made, and the result. */
#include "revalidate.h"

#include <errno.h>

#include <base/mem.h>
#include <store/implement.h>
#include <bucket/schemas.h>

/* A document as an earlier look-up may have read it. */
static struct schema_document *make_document(const char *root, const char *etag)
{
	const struct domain_info info = {.root = root, .owner = ""};
	struct schema_document *d = schema_document_new(&info, etag);
	assert_non_null(d);
	d->schema = schema_all()[0];
	return d;
}

static void a_root_that_is_right_costs_nothing_more(void **state)
{
	struct cost cold, hinted;
	struct schema_document *document = make_document(SMALL_ROOT, "");
	const struct domain_hint hint = {.document = document};
	struct domain *a = open_with(*state, NULL, &cold), *b = open_with(*state, &hint, &hinted);
	assert_int_equal(tree_count(domain_tree(a)), tree_count(domain_tree(b)));
	assert_int_equal(hinted.gets, cold.gets);
	assert_int_equal(hinted.lists, cold.lists);
	domain_unref(a);
	domain_unref(b);
	schema_document_unref(document);
}

/* The document was read during this open and is not requested again. */
static void a_document_that_was_just_read_is_taken(void **state)
{
	struct cost cold, hinted;
	struct domain *a = open_with(*state, NULL, &cold);
	struct store_counts before, after;
	struct fixture *f = *state;
	struct schema_document *document = make_document(SMALL_ROOT, "\"just read\"");
	const struct domain_hint hint = {.document = document, .is_fresh = true};
	struct domain *b = open_with(f, &hint, &hinted);
	assert_int_equal(hinted.gets, cold.gets - 1);
	assert_int_equal(hinted.lists, cold.lists);
	assert_int_equal(tree_count(domain_tree(a)), tree_count(domain_tree(b)));
	/* It is the current version: that of `a` was another. */
	const struct domain_hint both = {.document = document, .is_fresh = true, .previous = a};
	store_count_read(f->store, &before);
	struct domain *c = open_with(f, &both, &hinted);
	store_count_read(f->store, &after);
	assert_ptr_not_equal(c, a);
	assert_int_equal(hinted.gets, 0);
	assert_int_equal(hinted.lists, 1);
	assert_string_equal(domain_info(c)->owner, "");
	domain_unref(a);
	domain_unref(b);
	domain_unref(c);
	schema_document_unref(document);
}

/* An older document is requested conditionally, and its body is not sent. */
static void an_older_document_is_requested_conditionally(void **state)
{
	struct fixture *f = *state;
	struct cost cold, hinted;
	struct store_meta meta;
	assert_int_equal(call_head(f->store, "d.h5/.domain.json", &meta, NULL), 0);
	struct domain *a = open_with(f, NULL, &cold);
	struct schema_document *document = make_document(SMALL_ROOT, meta.etag);
	const struct domain_hint hint = {.document = document};
	struct domain *b = open_with(f, &hint, &hinted);
	assert_int_equal(hinted.gets, cold.gets);
	assert_int_equal(hinted.bytes, cold.bytes - meta.size);
	domain_unref(a);
	domain_unref(b);
	schema_document_unref(document);
}

static void a_root_that_has_changed_is_noticed(void **state)
{
	static const char other[] = "g-33333333-44444444-9999-9999aa-aaaaaa";
	struct cost cold, hinted;
	struct schema_document *document = make_document(other, "");
	const struct domain_hint hint = {.document = document};
	struct domain *a = open_with(*state, NULL, &cold), *b = open_with(*state, &hint, &hinted);
	assert_int_equal(tree_count(domain_tree(a)), tree_count(domain_tree(b)));
	assert_string_equal(tree_object(domain_tree(b), tree_nth(domain_tree(b), 0))->o.id,
			    SMALL_ROOT);
	assert_int_equal(hinted.gets, cold.gets);
	assert_int_equal(hinted.lists, 2 * cold.lists);
	/* If the document names the root of the earlier snapshot again, that is compared. */
	const struct domain_hint both = {.document = document, .previous = a};
	struct domain *c = open_with(*state, &both, &hinted);
	assert_ptr_equal(c, a);
	domain_unref(a);
	domain_unref(b);
	domain_unref(c);
	schema_document_unref(document);
}

/* The domain was deleted and created again: nothing of the earlier snapshot is used. */
static void a_domain_with_another_root_is_another_one(void **state)
{
	static const char other[] = "g-33333333-44444444-bbbb-bbbbcc-cccccc";
	struct fixture *f = *state;
	struct cost cost;
	char text[512];
	struct domain *a = open_with(f, NULL, &cost);
	snprintf(text, sizeof(text), "{'root':'%s','owner':'admin','acls':{}}", other);
	assert_int_equal(small_put(f->store, "d.h5/.domain.json", text), 0);
	snprintf(text, sizeof(text), "{'id':'%s','root':'%s','links':{},'attributes':{}}", other,
		 other);
	assert_int_equal(small_put(f->store, "db/33333333-44444444/.group.json", text), 0);
	struct domain *b = open_again(f, a, &cost);
	assert_ptr_not_equal(b, a);
	assert_int_equal(tree_count(domain_tree(b)), 1);
	assert_string_equal(domain_info(b)->root, other);
	assert_true(domain_sees_chunks(b));
	assert_int_equal(cost.gets, 2);	     /* the document and the root group */
	assert_int_equal(cost.lists, 1 + 4); /* of the old root and of the new one */
	domain_unref(a);
	domain_unref(b);
}

static void an_unchanged_domain_is_the_same_snapshot(void **state)
{
	struct cost cost;
	struct domain *a = open_with(*state, NULL, &cost), *b = open_again(*state, a, &cost);
	assert_true(domain_sees_chunks(a));
	assert_ptr_equal(a, b);
	/* The document, conditionally, and the listing. */
	assert_int_equal(cost.gets, 1);
	assert_int_equal(cost.bytes, 0);
	assert_int_equal(cost.heads, 0);
	assert_int_equal(cost.lists, 1);
	domain_unref(a);
	domain_unref(b);
}

/* The copy that a later version of the service keeps is no change of the domain. */
static void a_copy_of_the_service_is_noticed(void **state)
{
	static const char *const keys[] = {SMALL_PREFIX "/x.summary.json",
					   SMALL_PREFIX "/.summary.json"};
	struct fixture *f = *state;
	struct cost cost;
	struct domain *d = open_with(f, NULL, &cost);
	assert_false(domain_has_copy(d));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_int_equal(small_put(f->store, keys[i], "{}"), 0);
		struct domain *now = open_again(f, d, &cost);
		assert_ptr_equal(now, d);
		assert_int_equal(domain_has_copy(d), i == 1);
		domain_unref(now);
	}
	struct domain *cold = open_with(f, NULL, &cost);
	assert_true(domain_has_copy(cold));
	domain_unref(cold);
	assert_int_equal(call_delete(f->store, keys[1], NULL, NULL), 0);
	struct domain *now = open_again(f, d, &cost);
	assert_false(domain_has_copy(d));
	domain_unref(now);
	domain_unref(d);
}

static void only_what_changed_is_read_again(void **state)
{
	static const struct {
		const char *key, *body;
		bool changed;
		uint64_t gets; /* besides the domain's document */
	} cases[] = {
		/* The service's summary does not belong to the domain. */
		{SMALL_PREFIX "/.info.json", "{}", false, 0},
		{SMALL_PREFIX "/d/0002-000000-000001/2", "0123456789abcdef", true, 0},
		{SMALL_KEY_TYPE,
		 "{" SMALL_HEAD(SMALL_TYPE) ",'type':" SMALL_I32 ",'attributes':{}}", true, 1},
		{"d.h5/.domain.json", "{'root':'" SMALL_ROOT "','owner':'other','acls':{}}", true,
		 0},
		/* Damaged documents are requested whenever another document has changed. */
		{SMALL_KEY_STRINGS, "{}", true, 1},
		{SMALL_KEY_GROUP, "{" SMALL_HEAD(SMALL_GROUP) ",'links':{},'attributes':{}}", true,
		 2},
	};
	struct fixture *f = *state;
	struct cost cost;
	struct domain *d = open_with(f, NULL, &cost);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(small_put(f->store, cases[i].key, cases[i].body), 0);
		struct domain *now = open_again(f, d, &cost);
		assert_int_equal(now != d, cases[i].changed);
		assert_int_equal(cost.gets, 1 + cases[i].gets);
		assert_int_equal(cost.lists, 1);
		domain_unref(d);
		d = now;
	}
	assert_string_equal(domain_info(d)->owner, "other");
	assert_null(find(d, SMALL_STRINGS));
	assert_int_equal(find(d, SMALL_GROUP)->group.nlinks, 0);
	/* The result is that of an open without a hint. */
	struct domain *cold = open_with(f, NULL, &cost);
	assert_int_equal(tree_count(domain_tree(cold)), tree_count(domain_tree(d)));
	assert_int_equal(domain_modified_ns(cold), domain_modified_ns(d));
	domain_unref(cold);
	domain_unref(d);
}

static void few_objects_among_many_chunks_are_compared_one_by_one(void **state)
{
	struct fixture *f = *state;
	struct cost cost;
	put_many_chunks(f);
	struct domain *a = open_with(f, NULL, &cost), *b = open_again(f, a, &cost);
	assert_false(domain_sees_chunks(a));
	assert_ptr_equal(a, b);
	assert_int_equal(cost.gets, 1);
	assert_int_equal(cost.heads, tree_count(domain_tree(a)));
	assert_int_equal(cost.lists, 0);
	assert_int_equal(cost.bytes, 0);
	domain_unref(b);
	assert_int_equal(small_put(f->store, SMALL_KEY_TYPE,
				   "{" SMALL_HEAD(SMALL_TYPE) ",'type':" SMALL_I32
							      ",'attributes':{}} "),
			 0);
	struct cost cold;
	b = open_again(f, a, &cost);
	assert_ptr_not_equal(a, b);
	domain_unref(a);
	a = open_with(f, NULL, &cold);
	/* All documents are requested, and the body of one is sent. */
	assert_int_equal(cost.lists, cold.lists);
	assert_true(cost.bytes < cold.bytes / 2);
	assert_int_equal(tree_count(domain_tree(a)), tree_count(domain_tree(b)));
	domain_unref(a);
	domain_unref(b);
}

static void many_objects_are_compared_by_a_listing(void **state)
{
	struct fixture *f = *state;
	struct cost cold, cost;
	put_many_groups(f);
	struct domain *a = open_with(f, NULL, &cold), *b = open_again(f, a, &cost);
	assert_false(domain_sees_chunks(a));
	assert_int_equal(tree_count(domain_tree(a)), MANY + 1);
	assert_ptr_equal(a, b);
	assert_int_equal(cost.gets, 1);
	assert_int_equal(cost.heads, 0);
	assert_int_equal(cost.lists, 2);
	domain_unref(b);
	assert_int_equal(
		small_put(f->store, SMALL_PREFIX "/g/0005-000000-000007/.group.json",
			  "{'id':'g-11111111-22222222-0005-000000-000007','root':'" SMALL_ROOT
			  "','created':1,'lastModified':99,'links':{},'attributes':{}}"),
		0);
	b = open_again(f, a, &cost);
	assert_ptr_not_equal(a, b);
	assert_false(domain_sees_chunks(b));
	assert_int_equal(tree_count(domain_tree(b)), MANY + 1);
	assert_int_equal(cost.heads, 1); /* of the document that seems to have changed */
	assert_int_equal(cost.gets, 2);
	assert_int_equal(cost.lists, 2);
	domain_unref(a);
	domain_unref(b);
}

/* Opens with an earlier snapshot, which must be the same or not. */
static void expect_cost(struct fixture *f, struct domain *a, bool same, struct cost expected)
{
	struct cost cost;
	struct domain *b = open_again(f, a, &cost);
	assert_int_equal(a == b, same);
	assert_int_equal(cost.gets, expected.gets);
	assert_int_equal(cost.heads, expected.heads);
	assert_int_equal(cost.lists, expected.lists);
	domain_unref(b);
}

#define GROUP(i) SMALL_PREFIX "/g/0005-000000-" i "/.group.json"

/* After the first page, each range has a page. A range that has grown has two. */
static void a_long_listing_is_made_in_ranges(void **state)
{
	enum { GROUPS = 3500, PAGES = 4 };
	struct fixture *f = *state;
	struct cost cold;
	char key[128];
	put_groups(f, GROUPS);
	struct domain *a = open_with(f, NULL, &cold);
	assert_int_equal(tree_count(domain_tree(a)), GROUPS + 1);
	expect_cost(f, a, true, (struct cost){.gets = 1, .lists = PAGES});
	/* Keys of no document of the domain, in a range in the middle. */
	for (int i = 0; i < 600; i++) {
		snprintf(key, sizeof(key), GROUP("000600") "%d", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
	expect_cost(f, a, true, (struct cost){.gets = 1, .lists = PAGES + 1});
	/* The last document: no other range shows that it is gone. */
	assert_int_equal(call_delete(f->store, GROUP("000dab"), NULL, NULL), 0);
	expect_cost(f, a, false, (struct cost){.gets = 1, .heads = 1, .lists = PAGES + 1});
	domain_unref(a);
}

/* Without a part of the listing, the documents are compared one by one. */
static void a_listing_that_fails_in_the_middle_is_no_proof(void **state)
{
	struct fixture *f = *state;
	struct cost cost;
	char key[128];
	put_groups(f, MANY);
	struct domain *a = open_with(f, NULL, &cost);
	/* More than four keys for each object. */
	for (int i = 0; i < 5 * MANY; i++) {
		snprintf(key, sizeof(key), GROUP("000400") "%d", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
	struct domain *b = open_again(f, a, &cost);
	assert_ptr_equal(a, b);
	assert_int_equal(cost.gets, 1);
	assert_int_equal(cost.heads, MANY + 1);
	assert_true(cost.lists <= 2 * 4 * MANY / 1000 + 1);
	domain_unref(a);
	domain_unref(b);
}

static void submit_short(struct store *s, struct store_request *req)
{
	if (req->op == STORE_LIST)
		req->list.max = (uint32_t)min_u64(req->list.max, 300);
	store_pass(s, req);
}

/* A store whose pages are shorter than those of S3. */
static struct store *short_pages(struct store *inner)
{
	static const struct store_ops ops = {.name = "short",
					     .submit = submit_short,
					     .completed = store_complete,
					     .free = store_wrapper_free};
	struct store *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	store_wrap(s, &ops, inner, 0, 0);
	return s;
}

static void a_short_page_is_not_the_end(void **state)
{
	struct fixture *f = *state;
	struct cost cold, cost;
	char key[128];
	store_free(f->store);
	f->store = store_count_new(short_pages(small_domain_new(&f->env)), NULL);
	assert_non_null(f->store);
	put_groups(f, 400);
	for (int i = 0; i < 700; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%d_0", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
	struct domain *a = open_with(f, NULL, &cold), *b = open_again(f, a, &cost);
	assert_false(domain_sees_chunks(a));
	assert_ptr_equal(a, b);
	domain_unref(b);
	/* Now a listing shows the domain whole. */
	for (int i = 0; i < 700; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%d_0", i);
		assert_int_equal(call_delete(f->store, key, NULL, NULL), 0);
	}
	b = open_again(f, a, &cost);
	assert_ptr_not_equal(a, b);
	assert_true(domain_sees_chunks(b));
	domain_unref(a);
	a = open_again(f, b, &cost);
	assert_ptr_equal(a, b);
	assert_true(domain_sees_chunks(a));
	domain_unref(a);
	domain_unref(b);
}

static void a_domain_that_is_gone_is_gone(void **state)
{
	struct fixture *f = *state;
	struct cost cost;
	struct domain *a = open_with(f, NULL, &cost), *b = NULL;
	const struct domain_hint hint = {.previous = a};
	assert_int_equal(call_delete(f->store, "d.h5/.domain.json", NULL, NULL), 0);
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "d.h5", &hint, &b, NULL),
			 -ENOENT);
	assert_int_equal(small_put(f->store, "d.h5/.domain.json", "{'owner':'a','acls':{}}"), 0);
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "d.h5", &hint, &b, NULL),
			 -EISDIR);
	assert_null(b);
	domain_unref(a);
}

/* An object that cannot be read for the moment must not be left out of a file. */
static void a_failing_store_fails_the_opening(void **state)
{
	static const char *const faults[] = {
		"fail:1+:EIO@*/0002-000000-000002/.dataset.json",
		"fail:1+:EIO@" SMALL_PREFIX "/",
		"fail:1+:EIO@d.h5/.domain.json",
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct store *inner = small_domain_new(&f->env);
		struct store *faulty = store_fault_new(inner, faults[i], NULL);
		struct domain *d = NULL;
		assert_non_null(faulty);
		assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
								     .store = faulty,
								     .schemas = schema_all()},
					     "d.h5", NULL, &d, NULL),
				 -EIO);
		assert_null(d);
		store_free(faulty);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_root_that_is_right_costs_nothing_more),
		TEST(a_document_that_was_just_read_is_taken),
		TEST(an_older_document_is_requested_conditionally),
		TEST(a_root_that_has_changed_is_noticed),
		TEST(a_domain_with_another_root_is_another_one),
		TEST(an_unchanged_domain_is_the_same_snapshot),
		TEST(a_copy_of_the_service_is_noticed),
		TEST(only_what_changed_is_read_again),
		TEST(few_objects_among_many_chunks_are_compared_one_by_one),
		TEST(many_objects_are_compared_by_a_listing),
		TEST(a_long_listing_is_made_in_ranges),
		TEST(a_listing_that_fails_in_the_middle_is_no_proof),
		TEST(a_short_page_is_not_the_end),
		TEST(a_domain_that_is_gone_is_gone),
		TEST(a_failing_store_fails_the_opening),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
