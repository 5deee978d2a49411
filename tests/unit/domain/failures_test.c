/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th request of the store fails: the error reaches the caller with its code, the key and the
 * reason, and the next attempt succeeds. */
#include "domain_fixture.h"

#include <errno.h>

#include <zlib.h>

#include <store/implement.h>
#include <bucket/schemas.h>

#define STRINGS_CHUNK SMALL_PREFIX "/d/0002-000000-000002/0"
#define INTS_CHUNK    SMALL_PREFIX "/d/0002-000000-000001/1"

static int open_domain(struct fixture *f, struct store *store, struct err *err)
{
	domain_unref(f->domain);
	f->domain = NULL;
	return domain_open(
		&(struct domain_bucket){.env = &f->env, .store = store, .schemas = schema_all()},
		"d.h5", NULL, &f->domain, err);
}

static uint32_t number_of(const struct fixture *f, const char *id)
{
	const struct tree *tree = domain_tree(f->domain);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, id) == 0)
			return tree_nth(tree, i);
	fail_msg("no object %s", id);
	return 0;
}

/* The strings with a zlib filter. A zlib stream does not begin with its decoded size, so the chunk
 * is read whole when the domain is opened. */
static void compress_strings(struct fixture *f)
{
	static const char text[40] = {6,   0,	0,   0,	  'f', 'i', 'r', 's', 't', '!',
				      26,  0,	0,   0,	  'q', 'w', 'e', 'r', 't', 'y',
				      'u', 'i', 'o', 'p', 'a', 's', 'd', 'f', 'g', 'h',
				      'j', 'k', 'l', 'z', 'x', 'c', 'v', 'b', 'n', 'm'};
	uint8_t body[256];
	uLongf n = sizeof(body);
	assert_int_equal(compress(body, &n, (const Bytef *)text, sizeof(text)), Z_OK);
	small_put(f->store, SMALL_KEY_STRINGS,
		  "{" SMALL_HEAD(SMALL_STRINGS) ",'type':{'class':'H5T_STRING','charSet':"
						"'H5T_CSET_UTF8','strPad':'H5T_STR_NULLTERM',"
						"'length':'H5T_VARIABLE'},'shape':{'class':"
						"'H5S_SIMPLE','dims':[2]},'attributes':{},"
						"'layout':{'class':'H5D_CHUNKED','dims':[2]},"
						"'creationProperties':{'filters':[{'class':"
						"'H5Z_FILTER_DEFLATE','id':1,'level':4}]}}");
	assert_int_equal(call_put(f->store, STRINGS_CHUNK, body, n, NULL, NULL, NULL), 0);
}

static void make_large(struct fixture *f)
{
	for (unsigned int i = 0; i < DOMAIN_LISTING; i++) {
		char key[128];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-00aaaa/%u", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
}

/* Opens with the n-th request failing. False: the open succeeds. */
static bool open_fails(struct fixture *f, unsigned int n, const char *name, int code)
{
	struct err err = ERR_INIT;
	char spec[64];
	snprintf(spec, sizeof(spec), "fail:%u:%s", n, name);
	struct store *faulty = store_fault_new(f->store, spec, NULL);
	assert_non_null(faulty);
	f->store = faulty;
	const int rc = open_domain(f, faulty, &err);
	if (rc == 0)
		return false;
	if (rc != code)
		fail_msg("request %u: %d instead of %d: %s", n, rc, code, err.msg);
	if (!strstr(err.msg, "domain /d.h5: ") ||
	    !(strstr(err.msg, "injected failure") ||
	      (code == -ENOMEM && strstr(err.msg, "out of memory"))) ||
	    !(strstr(err.msg, SMALL_PREFIX) || strstr(err.msg, "d.h5/.domain.json")))
		fail_msg("request %u: the error has no reason: %s", n, err.msg);
	assert_null(f->domain);
	if (open_domain(f, faulty, &err))
		fail_msg("request %u: the failure stays: %s", n, err.msg);
	return true;
}

static uint64_t requests_of_open(struct fixture *f)
{
	struct store_counts before, after;
	uint64_t n = 0;
	struct store *counting = store_count_new(f->store, NULL);
	f->store = counting;
	store_count_read(counting, &before);
	assert_int_equal(open_domain(f, counting, NULL), 0);
	store_count_read(counting, &after);
	for (int op = 0; op < STORE_OPS; op++)
		n += after.calls[op] - before.calls[op];
	return n;
}

/* The document, the listing of everything, those of groups, datasets and datatypes, six documents,
 * the object of the dangling link, the chunk of strings twice. The listing of everything makes the
 * other three unnecessary. If the object cannot be asked for, the domain is listed again. */
static bool is_needed(unsigned int n)
{
	return !(n >= 3 && n <= 5) && n != 12;
}

static void each_request_of_an_open_may_fail(void **state)
{
	struct fixture *f = *state;
	compress_strings(f);
	assert_int_equal(requests_of_open(f), 14);
	for (unsigned int n = 1; n <= 14; n++)
		if (open_fails(f, n, "EIO", -EIO) != is_needed(n))
			fail_msg("request %u", n);
}

/* Here the listing of everything is too long, and the listing of the strings is added. */
static void each_request_of_a_large_domain_may_fail(void **state)
{
	struct fixture *f = *state;
	compress_strings(f);
	make_large(f);
	const uint64_t requests = requests_of_open(f);
	assert_in_range(requests, 15, 16);
	unsigned int opened = 0;
	for (unsigned int n = 1; n <= requests; n++)
		opened += !open_fails(f, n, "EIO", -EIO);
	assert_int_equal(opened, 1); /* the object of the dangling link */
}

/* Opens a domain again of which one document has changed. */
static void each_request_of_a_reopen_may_fail(void **state)
{
	struct fixture *f = *state;
	unsigned int failed = 0;
	assert_int_equal(open_domain(f, f->store, NULL), 0);
	small_put(f->store, SMALL_KEY_TYPE,
		  "{" SMALL_HEAD(SMALL_TYPE) ",'type':" SMALL_I32 ",'attributes':{}, 'x':1}");
	for (unsigned int n = 1; n <= 5; n++) {
		const struct domain_hint hint = {.previous = f->domain};
		struct domain *d = NULL;
		struct err err = ERR_INIT;
		char spec[64];
		snprintf(spec, sizeof(spec), "fail:%u:EIO", n);
		f->store = store_fault_new(f->store, spec, NULL);
		const int rc = domain_open(&(struct domain_bucket){.env = &f->env,
								   .store = f->store,
								   .schemas = schema_all()},
					   "d.h5", &hint, &d, &err);
		if (rc == 0) {
			assert_ptr_not_equal(d, f->domain);
			domain_unref(d);
			continue;
		}
		failed++;
		assert_null(d);
		if (rc != -EIO || !strstr(err.msg, "injected failure"))
			fail_msg("request %u: %d: %s", n, rc, err.msg);
		assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
								     .store = f->store,
								     .schemas = schema_all()},
					     "d.h5", &hint, &d, NULL),
				 0);
		assert_ptr_not_equal(d, f->domain);
		domain_unref(d);
	}
	/* The domain document and the changed document. If the listing fails, all is loaded again.
	 */
	assert_int_equal(failed, 2);
}

static void an_open_without_memory_fails(void **state)
{
	struct fixture *f = *state;
	const uint64_t requests = requests_of_open(f);
	for (unsigned int n = 1; n <= requests; n++)
		if (open_fails(f, n, "ENOMEM", -ENOMEM) != is_needed(n))
			fail_msg("request %u", n);
}

/* ---- chunks ---- */

struct got {
	unsigned int calls;
	int code;
	struct err err;
};

static void take(void *arg, struct chunk_result *chunk)
{
	struct got *got = arg;
	got->calls++;
	got->code = chunk->code;
	err_copy(&got->err, &chunk->err);
	elems_release(&chunk->data.elems);
}

static struct got get_chunk(struct fixture *f, const char *id, uint64_t number)
{
	const struct chunk_source chunks = domain_chunk_source(f->domain);
	const struct chunk_request request = {.dataset = number_of(f, id), .number = number};
	struct got got = {0};
	chunks.get(chunks.ctx, &request, take, &got);
	assert_int_equal(got.calls, 1);
	return got;
}

static void a_chunk_s_error_has_its_key_and_reason(void **state)
{
	static const struct {
		const char *name;
		int code;
	} rows[] = {{"EIO", -EIO}, {"EACCES", -EACCES}, {"ETIMEDOUT", -ETIMEDOUT}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char spec[128];
		snprintf(spec, sizeof(spec), "fail:1:%s@%s", rows[i].name, INTS_CHUNK);
		f->store = store_fault_new(f->store, spec, NULL);
		assert_int_equal(open_domain(f, f->store, NULL), 0);
		const struct got got = get_chunk(f, SMALL_INTS, 1);
		assert_int_equal(got.code, rows[i].code);
		if (!strstr(got.err.msg, "domain /d.h5: chunk " INTS_CHUNK ": ") ||
		    !strstr(got.err.msg, "injected failure"))
			fail_msg("%s", got.err.msg);
		assert_int_equal(get_chunk(f, SMALL_INTS, 1).code, 0);
	}
}

/* If a chunk is absent, the document of its dataset is checked. If that fails, so does the read. */
static void an_absent_chunk_needs_its_document(void **state)
{
	struct fixture *f = *state;
	make_large(f);
	/* The open gets the document; the second request for it is the one for the chunk. */
	f->store = store_fault_new(f->store, "fail:2:EACCES@" SMALL_KEY_INTS, NULL);
	assert_int_equal(open_domain(f, f->store, NULL), 0);
	const struct got got = get_chunk(f, SMALL_INTS, 0);
	assert_int_equal(got.code, -EACCES);
	if (!strstr(got.err.msg, "the document of its dataset: ") ||
	    !strstr(got.err.msg, "injected failure"))
		fail_msg("%s", got.err.msg);
	assert_int_equal(get_chunk(f, SMALL_INTS, 0).code, 0);
}

/* Its decoded size is not known, so the file has no room for it. No request is made for it. */
static void a_chunk_that_was_damaged_at_the_open_stays_unreadable(void **state)
{
	struct fixture *f = *state;
	compress_strings(f);
	assert_int_equal(
		call_put(f->store, STRINGS_CHUNK, "\x78\x9c, no zlib", 11, NULL, NULL, NULL), 0);
	assert_int_equal(open_domain(f, f->store, NULL), 0);
	const char *problem;
	for (uint32_t i = 0; (problem = tree_problem(domain_tree(f->domain), i)); i++)
		if (strstr(problem, STRINGS_CHUNK ": chunk cannot be read"))
			break;
	assert_non_null(problem);
	const struct chunk_list *chunks = domain_chunks(f->domain, number_of(f, SMALL_STRINGS));
	assert_true(chunks->decoded[0] == UINT64_MAX);
	struct store_counts before, after;
	store_count_read(f->store, &before);
	const struct got got = get_chunk(f, SMALL_STRINGS, 0);
	store_count_read(f->store, &after);
	assert_int_equal(got.code, -EIO);
	assert_non_null(strstr(got.err.msg, "could not be read when the domain was opened"));
	assert_int_equal(after.calls[STORE_GET], before.calls[STORE_GET]);
}

/* A listing that is not complete proves nothing. */
static void see_list(struct store *s, struct store_request *req)
{
	if (req->op == STORE_LIST)
		assert_true(req->list.complete);
	store_pass(s, req);
}

/* As a dataset with more chunks than a list may have. */
static void fail_long_list(struct store *s, struct store_request *req)
{
	if (req->op == STORE_LIST && strstr(req->key, "/0002-000000-000002/"))
		store_fail(s, req, -E2BIG, "too many keys");
	else
		store_pass(s, req);
}

static void a_list_of_chunks_that_is_too_long_is_unknown(void **state)
{
	static const struct store_ops ops = {
		.name = "long", .submit = fail_long_list, .completed = store_complete};
	struct fixture *f = *state;
	struct store lists;
	make_large(f);
	store_wrap(&lists, &ops, f->store, 0, 0);
	assert_int_equal(open_domain(f, &lists, NULL), 0);
	const struct chunk_list *chunks = domain_chunks(f->domain, number_of(f, SMALL_STRINGS));
	assert_true(chunks->unknown);
	assert_false(chunks->listed);
	domain_unref(f->domain);
	f->domain = NULL;
}

static void listings_that_prove_absence_are_complete(void **state)
{
	static const struct store_ops ops = {
		.name = "lists", .submit = see_list, .completed = store_complete};
	struct fixture *f = *state;
	struct store lists;
	make_large(f);
	store_wrap(&lists, &ops, f->store, 0, 0);
	assert_int_equal(open_domain(f, &lists, NULL), 0);
	domain_unref(f->domain);
	f->domain = NULL;
}

/* ---- the time of the last change ---- */

#define AT(seconds)                                                                                \
	"{'id':'" SMALL_TYPE "','root':'" SMALL_ROOT "','created':1,'lastModified':" seconds       \
	",'type':" SMALL_I32 ",'attributes':{}}"

static int64_t modified(struct fixture *f)
{
	assert_int_equal(open_domain(f, f->store, NULL), 0);
	return domain_modified_ns(f->domain);
}

static void a_domain_changes_when_its_newest_document_does(void **state)
{
	const int64_t half = 500000000, second = 2 * half;
	struct fixture *f = *state;
	/* The object documents of the small domain are 1.5 s newer than the domain document. */
	assert_true(modified(f) == 1700000001 * second + half);
	small_put(f->store, SMALL_KEY_TYPE, AT("1700000005"));
	assert_true(modified(f) == 1700000005 * second);
	small_put(f->store, SMALL_KEY_TYPE, AT("1600000000"));
	assert_true(modified(f) == 1700000001 * second + half);
	small_put(f->store, "d.h5/.domain.json",
		  "{'root':'" SMALL_ROOT "','owner':'admin','acls':{},'created':1,"
		  "'lastModified':1700000009}");
	assert_true(modified(f) == 1700000009 * second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_request_of_an_open_may_fail),
		TEST(each_request_of_a_large_domain_may_fail),
		TEST(each_request_of_a_reopen_may_fail),
		TEST(an_open_without_memory_fails),
		TEST(a_chunk_s_error_has_its_key_and_reason),
		TEST(an_absent_chunk_needs_its_document),
		TEST(a_chunk_that_was_damaged_at_the_open_stays_unreadable),
		TEST(a_list_of_chunks_that_is_too_long_is_unknown),
		TEST(listings_that_prove_absence_are_complete),
		TEST(a_domain_changes_when_its_newest_document_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
