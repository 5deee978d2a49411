/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain of schema v1: which requests an open sends, what catalogs are good for, and how chunks
 * are found without a listing.
 *
 *   /            group 1: links a, ints, text; no link to group 9
 *   /a           group 2: link b
 *   /a/b         group 3: link deep
 *   /a/b/deep    dataset 6, with the committed type 8, which no link names
 *   /ints        dataset 4, with a reference to group 9
 *   /text        dataset 5: strings
 */
#include "domain_fixture.h"

#include <errno.h>

#include "schema/hsds/hsds1.h"
#include <bucket/schemas.h>

#define ID(kind, n)  kind "-953ef986-e555-11f1-b213-02fc0000000" n
#define HEAD(id)     "'id':'" id "','root':'" ID("g", "1") "','created':17.5,'lastModified':18"
#define HARD(id, at) "{'class':'H5L_TYPE_HARD','id':'" id "','created':" at "}"
#define I32	     "{'class':'H5T_INTEGER','base':'H5T_STD_I32LE'}"
#define STRING	     "{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8','length':'H5T_VARIABLE'}"
#define SHAPE(dims)  "'shape':{'class':'H5S_SIMPLE','dims':" dims "}"

static const struct {
	const char *id, *json;
} documents[] = {
	{ID("g", "1"),
	 "{" HEAD(ID("g", "1")) ",'links':{'a':" HARD(ID("g", "2"), "1") ",'ints':" HARD(
		 ID("d", "4"), "2") ",'text':" HARD(ID("d", "5"), "3") "},"
								       "'attributes':{}}"},
	{ID("g", "2"),
	 "{" HEAD(ID("g", "2")) ",'links':{'b':" HARD(ID("g", "3"), "1.5") "},"
									   "'attributes':{}}"},
	{ID("g", "3"),
	 "{" HEAD(ID("g", "3")) ",'links':{'deep':" HARD(ID("d", "6"), "1") "},"
									    "'attributes':{}}"},
	{ID("d", "4"), "{" HEAD(ID("d", "4")) ",'type':" I32 "," SHAPE(
			       "[10]") ",'layout':{'dims':[4]},'acls':{},'stats':{},"
				       "'attributes':{'r':{'type':{'class':'H5T_REFERENCE',"
				       "'base':'H5T_STD_REF_OBJ'},'shape':{'class':'H5S_SCALAR'},"
				       "'value':'groups/" ID("g", "9") "'}}}"},
	{ID("d", "5"), "{" HEAD(ID("d", "5")) ",'type':" STRING "," SHAPE(
			       "[8]") ",'layout':{'dims':[2]},'attributes':{}}"},
	{ID("d", "6"),
	 "{" HEAD(ID("d", "6")) ",'type':{'class':'H5T_INTEGER',"
				"'base':'H5T_STD_I32LE','id':'" ID("t", "8") "'}," SHAPE(
					"[4]") ",'layout':{'dims':[4]},"
					       "'attributes':{}}"},
	{ID("t", "8"), "{" HEAD(ID("t", "8")) ",'type':" I32 ",'attributes':{}}"},
	{ID("g", "9"), "{" HEAD(ID("g", "9")) ",'links':{},'attributes':{}}"},
};

static void put_document(struct store *store, const char *id_text, const char *json)
{
	struct schema_id id;
	char key[SCHEMA_KEY_MAX + 1];
	assert_true(schema_id_parse(id_text, strlen(id_text), &id));
	assert_true(hsds1_object_key(&id, key, sizeof(key)) > 0);
	assert_int_equal(small_put(store, key, json), 0);
}

static struct fixture *start(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(small_put(f->store, "v1.h5/.domain.json",
				   "{'root':'" ID("g", "1") "','owner':'ann','acls':{},"
							    "'created':1.5,'lastModified':2}"),
			 0);
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++)
		put_document(f->store, documents[i].id, documents[i].json);
	return f;
}

/* Stores a chunk of dataset d-…<n>. */
static void put_chunk(struct fixture *f, uint32_t number, uint64_t chunk, const void *data,
		      size_t n)
{
	char key[SCHEMA_KEY_MAX + 1];
	assert_true(domain_chunk_key(f->domain, number, chunk, key, sizeof(key)) > 0);
	assert_int_equal(call_put(f->store, key, data, n, NULL, NULL, NULL), 0);
}

static int open_domain(const struct fixture *f, const char *path, const struct domain_hint *hint,
		       struct domain **out, struct err *err)
{
	const struct domain_bucket bucket = {
		.env = &f->env, .store = f->store, .schemas = schema_all()};
	return domain_open(&bucket, path, hint, out, err);
}

struct requests {
	uint64_t gets, heads, lists;
};

/* Opens the domain again, and counts the requests. */
static struct requests open_counted(struct fixture *f, struct domain *previous)
{
	const struct domain_hint hint = {.previous = previous};
	struct store_counts before, after;
	struct domain *opened = NULL;
	struct err err = ERR_INIT;
	store_count_read(f->store, &before);
	if (open_domain(f, "v1.h5", &hint, &opened, &err))
		fail_msg("%s", err.msg);
	store_count_read(f->store, &after);
	domain_unref(f->domain);
	f->domain = opened;
	return (struct requests){
		.gets = after.calls[STORE_GET] - before.calls[STORE_GET],
		.heads = after.calls[STORE_HEAD] - before.calls[STORE_HEAD],
		.lists = after.calls[STORE_LIST] - before.calls[STORE_LIST],
	};
}

static uint32_t number_of(const struct domain *d, const char *id)
{
	const struct tree *t = domain_tree(d);
	for (uint32_t i = 0; i < tree_count(t); i++)
		if (strcmp(tree_object(t, tree_nth(t, i))->o.id, id) == 0)
			return tree_nth(t, i);
	return OBJECT_NONE;
}

static void check_whole(const struct domain *d)
{
	assert_int_equal(tree_count(domain_tree(d)), 7);
	assert_int_equal(tree_problems(domain_tree(d)), 0);
	assert_int_equal(number_of(d, ID("g", "9")), OBJECT_NONE);
	assert_true(number_of(d, ID("t", "8")) != OBJECT_NONE);
	assert_string_equal(domain_schema(d)->name, "hsds1");
	assert_false(domain_sees_chunks(d));
}

/* Requests for the chunks of /text, whose sizes an image needs. */
enum { TEXT_CHUNKS = 4 };

static void the_tree_is_walked_link_by_link(void **state)
{
	struct fixture *f = start(state);
	const struct requests r = open_counted(f, NULL);
	check_whole(f->domain);
	/* the domain, three catalogs, 7 objects; group 9 is not read */
	assert_int_equal(r.gets, 1 + 3 + 7 + TEXT_CHUNKS);
	assert_int_equal(r.lists + r.heads, 0);
	assert_true(domain_modified_ns(f->domain) == INT64_C(18000000000));
}

/* Catalogs name objects that are gone, that no link names, damaged ones, and those of others. */
static void catalogs_are_hints(void **state)
{
	struct fixture *f = start(state);
	put_document(f->store, ID("g", "a"), "{damaged");
	put_document(f->store, ID("g", "b"),
		     "{'id':'" ID("g", "b") "','root':'" ID("g", "c") "','links':{}}");
	small_put(f->store, "v1.h5/.groups.txt",
		  ID("g", "9") " e 1 2\n" ID("g", "a") " e 1 2\n" ID("g", "b") " e\n" ID(
			  "g", "d") "\n" ID("g", "2") "\n" ID("g", "2") "\n" ID("g",
										"1") "\nnoise\n");
	small_put(f->store, "v1.h5/.datasets.txt", ID("d", "6") " e 1 2 0 0\n");
	const struct requests r = open_counted(f, NULL);
	check_whole(f->domain);
	/* 9, a, b and d are read for nothing */
	assert_int_equal(r.gets, 1 + 3 + 7 + 4 + TEXT_CHUNKS);
}

/* If a link names an object that a catalog named too, its damage is reported after all. */
static void a_damaged_object_is_left_out(void **state)
{
	struct fixture *f = start(state);
	put_document(f->store, ID("g", "3"), "{damaged");
	small_put(f->store, "v1.h5/.groups.txt", ID("g", "3") "\n" ID("g", "2") "\n");
	open_counted(f, NULL);
	const struct tree *t = domain_tree(f->domain);
	assert_int_equal(tree_count(t), 4); /* 1, 2, 4, 5 */
	assert_int_equal(tree_problems(t), 2);
	assert_non_null(strstr(tree_problem(t, 0), ID("g", "3") ": the object is left out"));
	assert_non_null(strstr(tree_problem(t, 1), "hard link \"b\" is left out"));
}

static void a_catalog_of_many_lines_is_bounded(void **state)
{
	enum { LINES = 100000, LINE = 48 };
	struct fixture *f = start(state);
	auto_free char *text = malloc((size_t)LINES * LINE + 1);
	size_t n = 0;
	for (int i = 0; i < LINES; i++)
		n += (size_t)snprintf(text + n, LINE, "d-%08x-e555-11f1-b213-02fc00000001 e 1\n",
				      (unsigned int)i);
	assert_int_equal(call_put(f->store, "v1.h5/.datasets.txt", text, n, NULL, NULL, NULL), 0);
	const struct requests r = open_counted(f, NULL);
	check_whole(f->domain);
	assert_true(r.gets > 1000 && r.gets < 1100);
}

static void an_unchanged_domain_takes_one_round(void **state)
{
	struct fixture *f = start(state);
	open_counted(f, NULL);
	struct domain *first = domain_ref(f->domain);
	const struct requests r = open_counted(f, first);
	assert_ptr_equal(f->domain, first);
	assert_int_equal(r.gets, 1); /* conditional */
	assert_int_equal(r.heads, 7);
	assert_int_equal(r.lists, 0);
	domain_unref(first);
}

static void a_changed_domain_is_walked_again(void **state)
{
	struct fixture *f = start(state);
	open_counted(f, NULL);
	struct domain *first = domain_ref(f->domain);
	put_document(f->store, ID("g", "3"),
		     "{" HEAD(ID("g", "3")) ",'links':{'orphan':" HARD(ID("g", "9"),
								       "1") "},"
									    "'attributes':{}}");
	const struct requests r = open_counted(f, first);
	assert_ptr_not_equal(f->domain, first);
	assert_int_equal(r.lists, 0);
	assert_int_equal(tree_count(domain_tree(f->domain)), 6); /* without 6 and 8 */
	assert_true(number_of(f->domain, ID("g", "9")) != OBJECT_NONE);
	assert_int_equal(tree_problems(domain_tree(f->domain)), 0);
	/* No catalogs: the earlier objects are the hints. */
	assert_int_equal(r.gets, 1 + 8 + TEXT_CHUNKS);
	domain_unref(first);
}

static void an_id_of_v2_is_left_out(void **state)
{
	struct fixture *f = start(state);
	put_document(f->store, ID("g", "2"),
		     "{" HEAD(ID("g", "2")) ",'links':{'b':" HARD(ID("g", "3"), "1") ",'new':" HARD(
			     SMALL_INTS, "2") "},'attributes':{}}");
	open_counted(f, NULL);
	const struct tree *t = domain_tree(f->domain);
	assert_int_equal(tree_count(t), 7);
	assert_int_equal(tree_problems(t), 1);
	assert_non_null(strstr(tree_problem(t, 0), "link \"new\" is left out: " SMALL_INTS
						   " is an id of schema v2 in a domain of schema "
						   "v1"));
}

/* A v2 domain with an id of v1. */
static void an_id_of_v1_is_left_out(void **state)
{
	struct fixture *f = start(state);
	assert_int_equal(small_put(f->store, SMALL_KEY_GROUP,
				   "{" SMALL_HEAD(SMALL_GROUP) ",'links':{'old':" SMALL_HARD(
					   ID("g", "2"), "1") "},'attributes':{}}"),
			 0);
	assert_int_equal(open_domain(f, "d.h5", NULL, &f->domain, NULL), 0);
	const struct tree *t = domain_tree(f->domain);
	assert_string_equal(domain_schema(f->domain)->name, "hsds2");
	bool found = false;
	for (uint32_t i = 0; i < tree_problems(t); i++)
		found |= strstr(tree_problem(t, i),
				"is an id of schema v1 in a domain of schema v2") != NULL;
	assert_true(found);
	assert_true(number_of(f->domain, SMALL_INTS) != OBJECT_NONE);
}

static void a_domain_without_its_root_fails(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	small_put(f->store, "v1.h5/.domain.json", "{'root':'" ID("g", "1") "','owner':'ann'}");
	assert_int_equal(open_domain(f, "v1.h5", NULL, &f->domain, &err), -EIO);
	assert_non_null(strstr(err.msg, ID("g", "1") " does not exist"));
}

struct got {
	struct chunk_result chunk;
	unsigned int calls;
};

static void keep(void *arg, struct chunk_result *chunk)
{
	struct got *got = arg;
	got->chunk = *chunk;
	got->calls++;
}

static struct got get(struct fixture *f, const char *id, uint64_t chunk)
{
	const struct chunk_source source = domain_chunk_source(f->domain);
	const struct chunk_request request = {.dataset = number_of(f->domain, id), .number = chunk};
	struct got got = {0};
	source.get(source.ctx, &request, keep, &got);
	assert_int_equal(got.calls, 1);
	return got;
}

static void chunks_are_requested_one_by_one(void **state)
{
	struct fixture *f = start(state);
	static const int32_t data[4] = {1, 2, 3, 4};
	struct store_counts before, after;
	open_counted(f, NULL);
	put_chunk(f, number_of(f->domain, ID("d", "4")), 1, data, sizeof(data));
	store_count_read(f->store, &before);
	struct got got = get(f, ID("d", "4"), 1);
	assert_int_equal(got.chunk.code, 0);
	assert_memory_equal(got.chunk.data.elems.fixed.data, data, sizeof(data));
	elems_release(&got.chunk.data.elems);
	got = get(f, ID("d", "4"), 2);
	assert_int_equal(got.chunk.code, 0);
	assert_true(got.chunk.absent);
	store_count_read(f->store, &after);
	assert_int_equal(after.calls[STORE_GET] - before.calls[STORE_GET], 2);
	assert_int_equal(after.calls[STORE_LIST], before.calls[STORE_LIST]);
}

/* ---- which chunks are stored ---- */

static uint64_t stopped(const struct env *env)
{
	(void)env;
	return UINT64_C(1000000000000);
}

/* The dataset /ints gets n chunks. Returns its number. */
static uint32_t open_ints(struct fixture *f, unsigned int n)
{
	char text[512];
	snprintf(text, sizeof(text),
		 "{" HEAD(ID("d", "4")) ",'type':" I32 "," SHAPE("[%u]") ",'layout':{'dims':[4]},"
									 "'attributes':{}}",
		 4 * n);
	f->env.now = stopped;
	put_document(f->store, ID("d", "4"), text);
	open_counted(f, NULL);
	return number_of(f->domain, ID("d", "4"));
}

/* Asks which chunks are stored. *r becomes the number of requests. */
static int find(struct fixture *f, uint32_t number, struct chunk_list *list, struct requests *r,
		struct err *err)
{
	const struct chunk_source source = domain_chunk_source(f->domain);
	struct store_counts before, after;
	store_count_read(f->store, &before);
	const int rc = source.find(source.ctx, number, list, err);
	store_count_read(f->store, &after);
	r->gets = after.calls[STORE_GET] - before.calls[STORE_GET];
	r->heads = after.calls[STORE_HEAD] - before.calls[STORE_HEAD];
	r->lists = after.calls[STORE_LIST] - before.calls[STORE_LIST];
	return rc;
}

static const int32_t ints[4] = {1, 2, 3, 4};

/* A byte of each chunk is requested. When a chunk was found to be absent, the document is checked;
 * as the clock stands, one check counts for all. */
static void each_chunk_is_requested(void **state)
{
	enum { MANY = 300, FIRST = 7, SECOND = 299 };
	struct fixture *f = start(state);
	struct chunk_list list;
	struct requests r;
	const uint32_t number = open_ints(f, MANY);
	put_chunk(f, number, FIRST, ints, sizeof(ints));
	put_chunk(f, number, SECOND, ints, sizeof(ints));
	assert_int_equal(find(f, number, &list, &r, NULL), 0);
	assert_true(list.listed && list.n == 2);
	assert_true(list.numbers[0] == FIRST && list.numbers[1] == SECOND);
	assert_true(r.gets == MANY && r.heads == 1 && r.lists == 0);
	free((void *)(uintptr_t)list.numbers);
}

/* A period of the chunks that are stored does not hide the others. */
static void every_third_chunk_is_stored(void **state)
{
	struct fixture *f = start(state);
	for (unsigned int n = 297; n <= 303; n++) {
		struct chunk_list list;
		struct requests r;
		const uint32_t number = open_ints(f, n);
		for (unsigned int i = 0; i < n; i += 3)
			put_chunk(f, number, i, ints, sizeof(ints));
		assert_int_equal(find(f, number, &list, &r, NULL), 0);
		assert_true(list.n == (n + 2) / 3 && r.gets == n);
		for (unsigned int i = 0; i < list.n; i++)
			assert_int_equal(list.numbers[i], 3 * i);
		free((void *)(uintptr_t)list.numbers);
	}
}

/* A program that copies a dense dataset does not request each chunk twice. */
static void a_few_chunks_show_that_a_dataset_is_dense(void **state)
{
	enum { MANY = 300, HOLE = 1, ASKED = 64 };
	struct fixture *f = start(state);
	struct chunk_list list;
	struct requests r;
	struct err err = ERR_INIT;
	const uint32_t number = open_ints(f, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		if (i != HOLE)
			put_chunk(f, number, i, ints, sizeof(ints));
	assert_int_equal(find(f, number, &list, &r, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "64 of its chunks are all stored"));
	assert_true(!list.listed && r.gets == ASKED && r.heads + r.lists == 0);
	/* Of so few, all are requested. */
	const uint32_t few = open_ints(f, 64);
	assert_int_equal(find(f, few, &list, &r, &err), 0);
	assert_true(list.n == 63 && list.numbers[HOLE] == HOLE + 1);
	assert_true(r.gets == 64 && r.heads == 1);
	free((void *)(uintptr_t)list.numbers);
}

static void too_many_chunks_to_request(void **state)
{
	enum { MOST = 4096 };
	struct fixture *f = start(state);
	struct chunk_list list;
	struct requests r;
	struct err err = ERR_INIT;
	assert_int_equal(find(f, open_ints(f, MOST), &list, &r, &err), 0);
	assert_true(list.listed && !list.n && r.gets == MOST);
	free((void *)(uintptr_t)list.numbers);
	assert_int_equal(find(f, open_ints(f, MOST + 1), &list, &r, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "no listing shows its chunks, there may be 4097, and"));
	assert_int_equal(r.gets + r.heads + r.lists, 0);
}

/* A chunk may be lost with the version of its dataset that was opened, or after it was read. */
static void absence_that_proves_nothing(void **state)
{
	struct fixture *f = start(state);
	struct chunk_list list;
	struct requests r;
	struct err err = ERR_INIT;
	char key[SCHEMA_KEY_MAX + 1];
	uint32_t number = open_ints(f, 20);
	put_chunk(f, number, 9, ints, sizeof(ints));
	struct got got = get(f, ID("d", "4"), 9);
	elems_release(&got.chunk.data.elems);
	domain_chunk_key(f->domain, number, 9, key, sizeof(key));
	assert_int_equal(call_delete(f->store, key, NULL, NULL), 0);
	assert_int_equal(find(f, number, &list, &r, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "deleted since it was read first"));
	number = open_ints(f, 21);
	put_document(f->store, ID("d", "4"), "{}");
	assert_int_equal(find(f, number, &list, &r, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "has changed since the file was opened"));
}

static void sizes_of_strings_are_measured(void **state)
{
	static const uint8_t binary[] = {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0};
	static const char text[] = "[\"c\", \"def\"]", bad[] = "[\"c\"]";
	struct fixture *f = start(state);
	open_counted(f, NULL);
	const uint32_t number = number_of(f->domain, ID("d", "5"));
	put_chunk(f, number, 0, binary, sizeof(binary));
	put_chunk(f, number, 1, text, sizeof(text) - 1);
	put_chunk(f, number, 3, bad, sizeof(bad) - 1);
	const struct requests r = open_counted(f, NULL);
	const struct chunk_list *list =
		domain_chunks(f->domain, number_of(f->domain, ID("d", "5")));
	assert_true(list->listed);
	assert_int_equal(list->n, 3);
	assert_int_equal(list->numbers[1], 1);
	assert_int_equal(list->decoded[0], 10);
	assert_int_equal(list->decoded[1], 4 + 1 + 4 + 3);
	assert_true(list->decoded[2] == UINT64_MAX);
	assert_int_equal(list->bytes, sizeof(binary) + sizeof(text) - 1 + sizeof(bad) - 1);
	assert_int_equal(r.lists, 0);
	assert_int_equal(tree_problems(domain_tree(f->domain)), 1);
	struct got got = get(f, ID("d", "5"), 1);
	assert_int_equal(got.chunk.code, 0);
	const struct elems_vlen second = elems_get_vlen(got.chunk.data.elems.fixed.data + 16);
	assert_int_equal(second.count, 3);
	assert_memory_equal(got.chunk.data.elems.heap.data + second.offset, "def", 3);
	elems_release(&got.chunk.data.elems);
	got = get(f, ID("d", "5"), 2);
	assert_true(got.chunk.absent); /* shown by the open */
	got = get(f, ID("d", "5"), 3);
	assert_int_equal(got.chunk.code, -EIO);
}

/* A grid that is too large is not measured: only this dataset fails. */
static void too_many_chunks_of_strings(void **state)
{
	struct fixture *f = start(state);
	put_document(f->store, ID("d", "5"),
		     "{" HEAD(ID("d", "5")) ",'type':" STRING "," SHAPE(
			     "[100000]") ",'layout':{'dims':[1]},'attributes':{}}");
	const struct requests r = open_counted(f, NULL);
	const struct tree *t = domain_tree(f->domain);
	assert_int_equal(r.gets, 1 + 3 + 7);
	assert_true(domain_chunks(f->domain, number_of(f->domain, ID("d", "5")))->unknown);
	assert_int_equal(tree_problems(t), 1);
	assert_non_null(strstr(tree_problem(t, 0), "its chunks are not known: no listing shows "
						   "them, and there may be 100000"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int count_no_listing(void *ctx, const struct schema_listed *listed)
{
	assert_null(listed);
	++*(unsigned int *)ctx;
	return 0;
}

/* Whoever waits for the listing of the keys is told that there is none. */
static void no_listing_comes(void **state)
{
	struct fixture *f = start(state);
	unsigned int calls = 0;
	struct domain_plan plan = {.listed = count_no_listing, .ctx = &calls};
	const struct domain_hint hint = {.plan = &plan};
	assert_int_equal(open_domain(f, "v1.h5", &hint, &f->domain, NULL), 0);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_tree_is_walked_link_by_link),
		TEST(catalogs_are_hints),
		TEST(a_damaged_object_is_left_out),
		TEST(a_catalog_of_many_lines_is_bounded),
		TEST(an_unchanged_domain_takes_one_round),
		TEST(a_changed_domain_is_walked_again),
		TEST(an_id_of_v2_is_left_out),
		TEST(an_id_of_v1_is_left_out),
		TEST(a_domain_without_its_root_fails),
		TEST(chunks_are_requested_one_by_one),
		TEST(each_chunk_is_requested),
		TEST(every_third_chunk_is_stored),
		TEST(a_few_chunks_show_that_a_dataset_is_dense),
		TEST(too_many_chunks_to_request),
		TEST(absence_that_proves_nothing),
		TEST(sizes_of_strings_are_measured),
		TEST(too_many_chunks_of_strings),
		TEST(no_listing_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
