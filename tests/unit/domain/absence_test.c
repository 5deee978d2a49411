/* SPDX-License-Identifier: Apache-2.0 */
/* What proves that a chunk is absent, and what does not. Each test is named after a defect by which
 * stored data read as fill values. */
#include "domain_fixture.h"

#include <store/implement.h>
#include <bucket/schemas.h>

#include <errno.h>

#define INTS(member)                                                                               \
	"{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32 ",'shape':{'class':'H5S_SIMPLE',"          \
				   "'dims':[12]},'attributes':{},'layout':{'class':"               \
				   "'H5D_CHUNKED','dims':[4]},'creationProperties':{" member "}}"
#define STRINGS(member)                                                                            \
	"{" SMALL_HEAD(SMALL_STRINGS) ",'type':{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8',"   \
				      "'strPad':'H5T_STR_NULLTERM','length':'H5T_VARIABLE'},"      \
				      "'shape':{'class':'H5S_SIMPLE','dims':[2]},'attributes':{}," \
				      "'layout':{'class':'H5D_CHUNKED','dims':[2]},"               \
				      "'creationProperties':{" member "}}"
#define REF(cls)                                                                                   \
	"'layout':{'class':'" cls "','dims':[4],'file_uri':'a/b.h5',"                              \
	"'chunks':{}}"
#define CHUNKLOCATOR  "'initializer':['chunklocator','--h5path=/x','--filepath=a/b.h5']"
#define GZIP	      "'filters':[{'class':'H5Z_FILTER_DEFLATE','id':1,'level':4}]"
#define CHUNK(number) SMALL_PREFIX "/d/0002-000000-000001/" number
#define STRING_CHUNK  SMALL_PREFIX "/d/0002-000000-000002/0"

static uint64_t clock_ns;

static uint64_t fake_now(const struct env *env)
{
	return clock_ns;
}

static int setup_with_clock(void **state)
{
	int rc = setup(state);
	struct fixture *f = *state;
	clock_ns = UINT64_C(1000000000000);
	f->env.now = fake_now;
	return rc;
}

static int open_domain(struct fixture *f, struct err *err)
{
	domain_unref(f->domain);
	f->domain = NULL;
	return domain_open(
		&(struct domain_bucket){.env = &f->env, .store = f->store, .schemas = schema_all()},
		"d.h5", NULL, &f->domain, err);
}

static uint32_t number_of(const struct fixture *f, const char *id)
{
	for (uint32_t i = 0; i < tree_count(domain_tree(f->domain)); i++)
		if (strcmp(tree_object(domain_tree(f->domain), tree_nth(domain_tree(f->domain), i))
				   ->o.id,
			   id) == 0)
			return tree_nth(domain_tree(f->domain), i);
	fail_msg("%s is not in the domain", id);
	return 0;
}

struct seen {
	unsigned int calls;
	int code;
	bool absent;
	uint64_t len;
	struct err err;
};

static void see(void *arg, struct chunk_result *chunk)
{
	struct seen *seen = arg;
	seen->calls++;
	seen->code = chunk->code;
	seen->absent = chunk->absent;
	seen->len = chunk->data.elems.fixed.len;
	err_copy(&seen->err, &chunk->err);
	elems_release(&chunk->data.elems);
}

static struct seen get_chunk(struct fixture *f, const char *id, uint64_t number)
{
	struct seen seen = {0};
	const struct chunk_source chunks = domain_chunk_source(f->domain);
	const struct chunk_request request = {.dataset = number_of(f, id), .number = number};
	chunks.get(chunks.ctx, &request, see, &seen);
	assert_int_equal(seen.calls, 1);
	return seen;
}

static void assert_absent(struct fixture *f, const char *id, uint64_t number)
{
	const struct seen seen = get_chunk(f, id, number);
	if (seen.code)
		fail_msg("%s", seen.err.msg);
	assert_true(seen.absent);
}

static void assert_fails(struct fixture *f, const char *id, uint64_t number, int code)
{
	const struct seen seen = get_chunk(f, id, number);
	assert_int_equal(seen.code, code);
	assert_true(seen.err.msg[0]);
}

static struct store_counts counts(const struct fixture *f)
{
	struct store_counts out;
	store_count_read(f->store, &out);
	return out;
}

/* Adds more keys than one page of a listing, of an object that the domain does not have. */
static void make_large(struct fixture *f)
{
	for (unsigned int i = 0; i < DOMAIN_LISTING; i++) {
		char key[128];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-00aaaa/%u", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
}

/* ---- data in another file ---- */

static void chunks_of_an_unknown_ref_layout_are_an_error(void **state)
{
	struct fixture *f = *state;
	for (size_t large = 0; large < 2; large++) {
		if (large)
			make_large(f);
		small_put(f->store, SMALL_KEY_INTS, INTS(REF("H5D_SCATTERED_REF")));
		assert_int_equal(open_domain(f, NULL), 0);
		assert_false(domain_chunks(f->domain, number_of(f, SMALL_INTS))->listed);
		for (uint64_t chunk = 0; chunk < 3; chunk++)
			assert_fails(f, SMALL_INTS, chunk, -EOPNOTSUPP);
		assert_int_equal(get_chunk(f, SMALL_STRINGS, 0).code, 0);
	}
}

static void strings_of_a_ref_layout_are_an_error(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_STRINGS, STRINGS(REF("H5D_CHUNKED_REF")));
	assert_int_equal(open_domain(f, NULL), 0);
	const struct chunk_list *chunks = domain_chunks(f->domain, number_of(f, SMALL_STRINGS));
	assert_true(chunks->unknown);
	assert_false(chunks->listed);
}

/* The service fills the table when it is first read. Stored chunks can be read, the others are
 * unknown.
 */
static void chunks_of_a_table_that_is_not_filled_are_an_error(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_INTS, INTS(CHUNKLOCATOR));
	assert_int_equal(open_domain(f, NULL), 0);
	assert_false(domain_chunks(f->domain, number_of(f, SMALL_INTS))->listed);
	assert_fails(f, SMALL_INTS, 0, -EOPNOTSUPP);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
	assert_fails(f, SMALL_INTS, 2, -EOPNOTSUPP);
}

#define VAST(layout)                                                                               \
	"{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32                                            \
				   ",'shape':{'class':'H5S_SIMPLE','dims':[1125899906842624]},"    \
				   "'attributes':{},'layout':{" layout ",'file_uri':'a/b.h5'}}"

/* Only the listed chunks need room in the file of a mount. */
static void vast_data_whose_chunks_are_listed_are_shown(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_INTS,
		  VAST("'class':'H5D_CHUNKED_REF','dims':[1024],'chunks':{'7':[100,4096,0]}"));
	assert_int_equal(open_domain(f, NULL), 0);
	const struct chunk_list *chunks = domain_chunks(f->domain, number_of(f, SMALL_INTS));
	assert_true(chunks->listed && chunks->n == 1 && chunks->numbers[0] == 7);
}

static void vast_data_in_another_file_hide_no_other_dataset(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_INTS,
		  VAST("'class':'H5D_CONTIGUOUS_REF','dims':[1024],'offset':0,"
		       "'size':4503599627370496"));
	assert_int_equal(open_domain(f, NULL), 0);
	const char *problem = NULL;
	for (uint32_t i = 0; (problem = tree_problem(domain_tree(f->domain), i)); i++)
		if (strstr(problem, "elements kept elsewhere"))
			break;
	assert_non_null(problem);
	assert_int_equal(get_chunk(f, SMALL_STRINGS, 0).code, 0);
}

/* ---- what a listing proves ---- */

static void a_listing_proves_absence_without_a_request(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(open_domain(f, NULL), 0);
	const struct store_counts before = counts(f);
	/* A chunk that is written later does not belong to this snapshot. */
	assert_int_equal(call_put(f->store, CHUNK("0"), "0123456789abcdef", 16, NULL, NULL, NULL),
			 0);
	assert_absent(f, SMALL_INTS, 0);
	const struct store_counts after = counts(f);
	assert_int_equal(after.calls[STORE_GET] + after.calls[STORE_HEAD],
			 before.calls[STORE_GET] + before.calls[STORE_HEAD]);
}

static void a_listing_proves_that_a_value_is_computed(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, SMALL_KEY_INTS, INTS("'initializer':['arange','--start=1']"));
	assert_int_equal(open_domain(f, NULL), 0);
	const struct store_counts before = counts(f);
	assert_int_equal(get_chunk(f, SMALL_INTS, 2).len, 16);
	assert_int_equal(counts(f).calls[STORE_GET], before.calls[STORE_GET]);
	/* Chunk 1 is stored. When it is deleted, it is not computed. */
	assert_int_equal(call_delete(f->store, CHUNK("1"), NULL, NULL), 0);
	assert_fails(f, SMALL_INTS, 1, -ESTALE);
}

/* In a large domain, only the chunks of variable-length datasets are listed. */
static void a_listed_chunk_of_strings_that_is_deleted_is_stale(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_int_equal(call_delete(f->store, STRING_CHUNK, NULL, NULL), 0);
	assert_fails(f, SMALL_STRINGS, 0, -ESTALE);
}

/* A wrapper that removes the versions from listings. */
static void pass(struct store *s, struct store_request *req)
{
	store_pass(s, req);
}

static void take_versions_away(struct store *s, struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	for (size_t i = 0; i < page->n; i++)
		page->items[i].meta.etag[0] = '\0';
	store_complete(s, req);
}

static void a_chunk_that_was_listed_without_a_version_is_stale(void **state)
{
	static const struct store_ops ops = {
		.name = "blind", .submit = pass, .completed = take_versions_away};
	struct fixture *f = *state;
	struct store *inner = f->store;
	struct store blind = {0};
	store_wrap(&blind, &ops, inner, 0, 0);
	f->store = &blind;
	assert_int_equal(open_domain(f, NULL), 0);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
	assert_int_equal(call_delete(inner, CHUNK("1"), NULL, NULL), 0);
	assert_fails(f, SMALL_INTS, 1, -ESTALE);
	domain_unref(f->domain);
	f->domain = NULL;
	f->store = inner;
}

/* ---- chunks that are deleted while the file is open ---- */

static void a_chunk_that_goes_with_its_dataset_is_stale(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_false(domain_sees_chunks(f->domain));
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
	assert_int_equal(call_delete(f->store, CHUNK("1"), NULL, NULL), 0);
	assert_int_equal(call_delete(f->store, SMALL_KEY_INTS, NULL, NULL), 0);
	assert_fails(f, SMALL_INTS, 1, -ESTALE);
	assert_fails(f, SMALL_INTS, 0, -ESTALE);
}

/* Even if the dataset gets its old document again, and also for chunks that are stored. */
static void a_chunk_that_goes_when_its_dataset_changes_stays_stale(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_int_equal(call_delete(f->store, CHUNK("1"), NULL, NULL), 0);
	small_put(f->store, SMALL_KEY_INTS, INTS("'fillValue':1"));
	assert_fails(f, SMALL_INTS, 1, -ESTALE);
	assert_int_equal(call_put(f->store, CHUNK("1"), "0123456789abcdef", 16, NULL, NULL, NULL),
			 0);
	clock_ns += UINT64_C(5000000000);
	const struct store_counts before = counts(f);
	assert_fails(f, SMALL_INTS, 1, -ESTALE);
	assert_fails(f, SMALL_INTS, 2, -ESTALE);
	assert_int_equal(counts(f).calls[STORE_GET], before.calls[STORE_GET]);
	assert_int_equal(get_chunk(f, SMALL_STRINGS, 0).code, 0); /* another dataset */
	assert_int_equal(open_domain(f, NULL), 0);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
}

static void the_document_is_asked_for_once_in_a_second(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(open_domain(f, NULL), 0);
	const struct store_counts before = counts(f);
	for (int second = 0; second < 3; second++) {
		assert_absent(f, SMALL_INTS, 0);
		assert_absent(f, SMALL_INTS, 2);
		clock_ns += UINT64_C(999999999);
		assert_absent(f, SMALL_INTS, 0);
		clock_ns += 1;
	}
	assert_int_equal(counts(f).calls[STORE_HEAD] - before.calls[STORE_HEAD], 3);
	assert_int_equal(counts(f).calls[STORE_GET] - before.calls[STORE_GET], 9);
}

static void a_document_that_cannot_be_asked_for_proves_nothing(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(open_domain(f, NULL), 0);
	struct store *whole = f->store;
	f->store = store_fault_new(whole, "fail:2:EACCES@*/0002-000000-000001/.dataset.json", NULL);
	assert_non_null(f->store);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_fails(f, SMALL_INTS, 0, -EACCES);
	assert_absent(f, SMALL_INTS, 0); /* the failure is not cached */
}

/* ---- failures while a domain is opened ---- */

static void open_with_fault(struct fixture *f, const char *spec, int code, const char *what)
{
	struct err err = ERR_INIT;
	f->store = store_fault_new(f->store, spec, NULL);
	assert_non_null(f->store);
	assert_int_equal(open_domain(f, &err), code);
	assert_non_null(strstr(err.msg, what));
	if (open_domain(f, &err))
		fail_msg("%s", err.msg);
	const struct chunk_list *chunks = domain_chunks(f->domain, number_of(f, SMALL_STRINGS));
	assert_false(chunks->unknown);
	assert_int_equal(chunks->n, 1);
	assert_true(chunks->decoded[0] == sizeof(small_strings_chunk));
}

/* A zlib stream of stored blocks */
static void compress_strings(struct fixture *f)
{
	static const uint8_t body[] = {0x78, 0x01, 0x01, 10, 0, 0xf5, 0xff, 2,	  0,	0,   0,
				       'a',  'b',  0,	 0,  0, 0,    0x04, 0x4e, 0x00, 0xc6};
	small_put(f->store, SMALL_KEY_STRINGS, STRINGS(GZIP));
	assert_int_equal(call_put(f->store, STRING_CHUNK, body, sizeof(body), NULL, NULL, NULL), 0);
}

static void a_chunk_that_could_not_be_measured_fails_the_opening(void **state)
{
	compress_strings(*state);
	open_with_fault(*state, "fail:1:EIO@*/0002-000000-000002/0", -EIO, STRING_CHUNK);
}

static void a_chunk_that_may_not_be_measured_fails_the_opening(void **state)
{
	compress_strings(*state);
	open_with_fault(*state, "fail:1:EACCES@*/0002-000000-000002/0", -EACCES, STRING_CHUNK);
}

/* It is deleted after it was listed, so the file would be laid out for a version that is gone. */
static void a_chunk_that_goes_before_it_is_measured_fails_the_opening(void **state)
{
	compress_strings(*state);
	open_with_fault(*state, "fail:1:ENOENT@*/0002-000000-000002/0", -ESTALE, STRING_CHUNK);
}

static void chunks_that_could_not_be_listed_fail_the_opening(void **state)
{
	make_large(*state);
	open_with_fault(*state, "fail:1:EIO@*/0002-000000-000002/", -EIO,
			"listing " SMALL_PREFIX "/d/0002-000000-000002/");
}

static void a_damaged_chunk_is_an_error_for_itself_alone(void **state)
{
	struct fixture *f = *state;
	compress_strings(f);
	assert_int_equal(call_put(f->store, STRING_CHUNK, "no zlib", 7, NULL, NULL, NULL), 0);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_fails(f, SMALL_STRINGS, 0, -EIO);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
}

/* ---- failures that must not stay in a snapshot ---- */

/* Opens again, with the open domain as the earlier snapshot. */
static int open_again(struct fixture *f, struct err *err)
{
	const struct domain_hint hint = {.previous = f->domain};
	struct domain *m = NULL;
	int rc = domain_open(
		&(struct domain_bucket){.env = &f->env, .store = f->store, .schemas = schema_all()},
		"d.h5", &hint, &m, err);
	if (rc)
		return rc;
	domain_unref(f->domain);
	f->domain = m;
	return 0;
}

/* While the bucket refuses to list it, a small domain is read as a large one. */
static void a_listing_that_was_refused_is_asked_for_again(void **state)
{
	struct fixture *f = *state;
	f->store = store_fault_new(f->store, "fail:1:EACCES@" SMALL_PREFIX "/", NULL);
	assert_int_equal(open_domain(f, NULL), 0);
	assert_false(domain_sees_chunks(f->domain));
	const struct domain *refused = f->domain;
	assert_int_equal(open_again(f, NULL), 0);
	assert_ptr_not_equal(f->domain, refused);
	assert_true(domain_sees_chunks(f->domain));
}

/* In a large domain, documents are compared one by one, damaged ones too. */
static void a_damaged_document_is_read_again_when_it_changes(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	small_put(f->store, SMALL_KEY_INTS, "{'id':");
	assert_int_equal(open_domain(f, NULL), 0);
	const struct domain *damaged = f->domain;
	assert_int_equal(tree_count(domain_tree(f->domain)), 4);
	assert_int_equal(open_again(f, NULL), 0);
	assert_ptr_equal(f->domain, damaged);
	small_put(f->store, SMALL_KEY_INTS, INTS("'fillValue':1"));
	assert_int_equal(open_again(f, NULL), 0);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
}

/* An object with chunks but without a document: the document may be written later. */
static void a_missing_document_is_read_when_it_comes(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	assert_int_equal(call_delete(f->store, SMALL_KEY_INTS, NULL, NULL), 0);
	assert_int_equal(open_domain(f, NULL), 0);
	const struct domain *missing = f->domain;
	assert_int_equal(open_again(f, NULL), 0);
	assert_ptr_equal(f->domain, missing);
	small_put(f->store, SMALL_KEY_INTS, INTS("'fillValue':1"));
	assert_int_equal(open_again(f, NULL), 0);
	assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_with_clock, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(chunks_of_an_unknown_ref_layout_are_an_error),
		TEST(strings_of_a_ref_layout_are_an_error),
		TEST(chunks_of_a_table_that_is_not_filled_are_an_error),
		TEST(vast_data_whose_chunks_are_listed_are_shown),
		TEST(vast_data_in_another_file_hide_no_other_dataset),
		TEST(a_listing_proves_absence_without_a_request),
		TEST(a_listing_proves_that_a_value_is_computed),
		TEST(a_listed_chunk_of_strings_that_is_deleted_is_stale),
		TEST(a_chunk_that_was_listed_without_a_version_is_stale),
		TEST(a_chunk_that_goes_with_its_dataset_is_stale),
		TEST(a_chunk_that_goes_when_its_dataset_changes_stays_stale),
		TEST(the_document_is_asked_for_once_in_a_second),
		TEST(a_document_that_cannot_be_asked_for_proves_nothing),
		TEST(a_chunk_that_could_not_be_measured_fails_the_opening),
		TEST(a_chunk_that_may_not_be_measured_fails_the_opening),
		TEST(a_chunk_that_goes_before_it_is_measured_fails_the_opening),
		TEST(chunks_that_could_not_be_listed_fail_the_opening),
		TEST(a_damaged_chunk_is_an_error_for_itself_alone),
		TEST(a_listing_that_was_refused_is_asked_for_again),
		TEST(a_damaged_document_is_read_again_when_it_changes),
		TEST(a_missing_document_is_read_when_it_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
