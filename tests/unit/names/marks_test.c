/* SPDX-License-Identifier: Apache-2.0 */
/* Domains that a listing shows (struct schema_mark): Zarr stores beside domains of HSDS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <bucket/schemas.h>
#include <names/names.h>
#include <store/implement.h>
#include <store/page.h>

#include "small_domain.h"

struct fixture {
	struct env env;
	struct store *store;
	struct names *names;
};

static int open_names(struct fixture *f)
{
	const struct names_options opt = {.env = &f->env,
					  .store = f->store,
					  .schemas = schema_all(),
					  .ttl_ns = UINT64_C(3600000000000)};
	f->names = names_new(&opt);
	return f->names ? 0 : -1;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = small_domain_new(&f->env);
	*state = f;
	return open_names(f);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	names_free(f->names);
	store_free(f->store);
	pool_free(f->env.pool);
	free(f);
	return 0;
}

static int collect(void *arg, const char *name, enum names_kind kind)
{
	static const char *const kinds[] = {
		[NAMES_DOMAIN] = "", [NAMES_DIR] = "/", [NAMES_OBJECT] = "*"};
	char *text = arg;
	snprintf(text + strlen(text), 64, "%s%s ", name, kinds[kind]);
	return 0;
}

static void check_list(struct fixture *f, const char *dir, const char *expected)
{
	char text[1024] = "";
	assert_int_equal(names_list(f->names, dir, collect, text, NULL), 0);
	assert_string_equal(text, expected);
}

/* The kind of a name: that of the node, and the bucket's path of a domain. */
static void check_name(struct fixture *f, const char *name, enum names_kind kind, const char *path)
{
	auto_names_node struct names_node *n = NULL;
	struct err err = ERR_INIT;
	if (names_resolve(f->names, name, &n, &err))
		fail_msg("%s: %s", name, err.msg);
	assert_int_equal(n->kind, kind);
	assert_string_equal(n->path, path);
}

static void check_none(struct fixture *f, const char *name)
{
	auto_names_node struct names_node *n = NULL;
	assert_int_equal(names_resolve(f->names, name, &n, NULL), -ENOENT);
}

static void a_store_is_a_file_and_a_directory(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *n = NULL;
	small_put(f->store, "x.zarr/.zgroup", "{}");
	small_put(f->store, "x.zarr/a/.zarray", "{}");
	small_put(f->store, "y.nc/zarr.json", "{}");
	small_put(f->store, "s/a/.zarray", "{}");
	check_name(f, "x.zarr.nc", NAMES_DOMAIN, "x.zarr");
	check_name(f, "x.zarr", NAMES_DIR, "x.zarr");
	check_name(f, "y.nc", NAMES_DOMAIN, "y.nc");
	check_name(f, "s/a.nc", NAMES_DOMAIN, "s/a");
	check_list(f, "", "d.h5 s/ x.zarr.nc y.nc ");
	check_list(f, "s", "a.nc ");
	assert_int_equal(names_resolve(f->names, "y.nc", &n, NULL), 0);
	assert_int_equal(n->doc.kind, NAMES_DOC_STORE);
	assert_string_equal(n->doc.document->schema->name, "zarr3");
	check_none(f, "y.nc.nc");
	check_none(f, "d.h5.nc");
	check_none(f, "z.nc");
}

static void what_is_in_a_store_is_no_store(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, "x.zarr/.zgroup", "{}");
	small_put(f->store, "x.zarr/g/.zgroup", "{}");
	small_put(f->store, "x.zarr/g/a/.zarray", "{}");
	check_none(f, "x.zarr/g.nc");
	check_name(f, "x.zarr/g", NAMES_DIR, "x.zarr/g");
	check_none(f, "x.zarr/g/a.nc");
	check_list(f, "x.zarr", ".zgroup* g/ ");
	check_list(f, "x.zarr/g", ".zgroup* a/ ");
}

static void other_names_come_first(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, "x.zarr/.zgroup", "{}");
	small_put(f->store, "x.zarr.nc", "an object");
	small_put(f->store, "h.h5/.domain.json", "{'root': '" SMALL_ROOT "'}");
	small_put(f->store, "h.h5/.zgroup", "{}");
	check_name(f, "x.zarr.nc", NAMES_OBJECT, "x.zarr.nc");
	check_name(f, "h.h5", NAMES_DOMAIN, "h.h5");
	check_none(f, "h.h5.nc");
	check_list(f, "", "d.h5 h.h5 x.zarr.nc* ");
}

/* A writable mount puts such a document into each directory that it makes. */
static void the_document_of_a_folder_hides_nothing(void **state)
{
	struct fixture *f = *state;
	small_put(f->store, "x.zarr/.domain.json", "{'owner': 'ann'}");
	check_name(f, "x.zarr", NAMES_DIR, "x.zarr");
	check_list(f, "", "d.h5 x.zarr/ ");
	small_put(f->store, "x.zarr/.zgroup", "{}");
	names_changed(f->names, "x.zarr/.zgroup");
	check_name(f, "x.zarr", NAMES_DIR, "x.zarr");
	check_name(f, "x.zarr.nc", NAMES_DOMAIN, "x.zarr");
	check_list(f, "", "d.h5 x.zarr.nc ");
	call_delete(f->store, "x.zarr/.zgroup", NULL, NULL);
	names_changed(f->names, "x.zarr/.zgroup");
	check_none(f, "x.zarr.nc");
	check_list(f, "", "d.h5 x.zarr/ ");
}

/* Any of the marks, not only the one that is looked for first. */
static void a_mark_is_found_among_many_keys(void **state)
{
	struct fixture *f = *state;
	char key[64], name[32], path[32];
	for (unsigned int m = 0; schema_mark_name(schema_all(), m); m++) {
		snprintf(path, sizeof(path), "big%u", m);
		snprintf(name, sizeof(name), "big%u.nc", m);
		for (int i = 0; i < 100; i++) {
			snprintf(key, sizeof(key), "%s/%d", path, i);
			small_put(f->store, key, "x");
		}
		snprintf(key, sizeof(key), "%s/%s", path, schema_mark_name(schema_all(), m));
		small_put(f->store, key, "{}");
		check_name(f, name, NAMES_DOMAIN, path);
	}
	check_list(f, "", "big0.nc big1.nc big2.nc big3.nc d.h5 ");
}

/* ---- a service that refuses a listing and fails to look for a mark ---- */

static void submit_closed(struct store *s, struct store_request *req)
{
	if (req->op == STORE_LIST && strncmp(req->key, "closed/", 7) == 0)
		store_fail(s, req, -EACCES, "refused");
	else if (req->op == STORE_HEAD && strcmp(req->key, "closed/zarr.json") == 0)
		store_fail(s, req, -EIO, "failed");
	else
		store_pass(s, req);
}

static const struct store_ops closed_ops = {
	.name = "closed",
	.submit = submit_closed,
	.completed = store_complete,
	.free = store_wrapper_free,
};

/* It is not known whether the store is one of the first mark, so the second one does not count. */
static void a_mark_that_is_not_known_is_not_passed_over(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *n = NULL;
	struct store *closed = calloc(1, sizeof(*closed));
	assert_non_null(closed);
	small_put(f->store, "x.zarr/.zgroup", "{}");
	small_put(f->store, "closed/.zgroup", "{}");
	names_free(f->names);
	store_wrap(closed, &closed_ops, f->store, 0, 0);
	f->store = closed;
	assert_int_equal(open_names(f), 0);
	check_name(f, "x.zarr.nc", NAMES_DOMAIN, "x.zarr"); /* the bucket has stores */
	assert_int_equal(names_resolve(f->names, "closed.nc", &n, NULL), -EIO);
	check_name(f, "closed", NAMES_DIR, "closed");
}

/* ---- a prefix of 1,000,000 keys: a wrapper that makes up their listing ---- */

enum { HUGE_KEYS = 1000000 };
static const char huge[] = "huge/";
static const size_t huge_len = sizeof(huge) - 1;

struct huge_store {
	struct store base;
	unsigned int requests, lists;
	size_t items;
};

static int list_huge(struct huge_store *h, struct store_request *req)
{
	struct store_page *page = &req->answer.page;
	const char *last = req->list.start_after;
	const int first = last && strlen(last) > huge_len ? atoi(last + huge_len) : 0;
	if (store_page_init(page))
		return -ENOMEM;
	for (int i = first; i < HUGE_KEYS && !page->more; i++) {
		const struct store_meta meta = {.size = 1, .etag = "1"};
		char key[32];
		snprintf(key, sizeof(key), "%s%07d", huge, i);
		if (strncmp(key, req->key, strlen(req->key)) != 0 ||
		    (last && strcmp(key, last) <= 0))
			continue;
		if (page->n == req->list.max || page->n == STORE_PAGE_MAX)
			store_page_set_more(page);
		else if (store_page_add(page, key, &meta))
			return -ENOMEM;
	}
	h->items += page->n;
	return 0;
}

static void submit_huge(struct store *s, struct store_request *req)
{
	struct huge_store *h = (struct huge_store *)s;
	h->requests++;
	h->lists += req->op == STORE_LIST;
	if (req->op != STORE_LIST || strncmp(req->key, huge, huge_len) != 0)
		store_pass(s, req);
	else if (list_huge(h, req))
		store_fail(s, req, -EIO, "out of memory");
	else
		store_present(s, req);
}

static const struct store_ops huge_ops = {
	.name = "huge",
	.submit = submit_huge,
	.completed = store_complete,
	.free = store_wrapper_free,
};

static int setup_huge(void **state)
{
	if (setup(state))
		return -1;
	struct fixture *f = *state;
	names_free(f->names);
	struct huge_store *h = calloc(1, sizeof(*h));
	if (!h)
		return -1;
	store_wrap(&h->base, &huge_ops, f->store, 0, 0);
	f->store = &h->base;
	return open_names(f);
}

/* A look-up asks for one page of what is below the name, and never goes through all keys. */
static void a_name_in_a_prefix_of_a_million_keys(void **state)
{
	static const struct {
		const char *name;
		int rc;
	} rows[] = {
		{"huge", 0},	      {"huge.nc", -ENOENT},   {"huge/0500000", 0},
		{"huge/x", -ENOENT},  {"huge/x.nc", -ENOENT}, {"huge/0500000.nc", -ENOENT},
		{"huge/05", -ENOENT},
	};
	struct fixture *f = *state;
	struct huge_store *h = (struct huge_store *)f->store;
	small_put(f->store, "x.zarr/.zgroup", "{}");
	small_put(f->store, "huge/0500000", "x");
	check_name(f, "x.zarr.nc", NAMES_DOMAIN, "x.zarr"); /* the bucket has stores */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_names_node struct names_node *n = NULL;
		struct err err = ERR_INIT;
		h->requests = h->lists = 0;
		h->items = 0;
		const int rc = names_resolve(f->names, rows[i].name, &n, &err);
		if (rc != rows[i].rc)
			fail_msg("%s: %d %s", rows[i].name, rc, err.msg);
		assert_in_range(h->lists, 1, 2);
		assert_in_range(h->requests, 1, 12);
		assert_in_range(h->items, i == 0, 65);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_store_is_a_file_and_a_directory),
		TEST(what_is_in_a_store_is_no_store),
		TEST(other_names_come_first),
		TEST(the_document_of_a_folder_hides_nothing),
		TEST(a_mark_is_found_among_many_keys),
		TEST(a_mark_that_is_not_known_is_not_passed_over),
		cmocka_unit_test_setup_teardown(a_name_in_a_prefix_of_a_million_keys, setup_huge,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
