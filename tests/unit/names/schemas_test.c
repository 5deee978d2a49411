/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket with domains of two schemas. One of them needs two requests to classify a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <names/names.h>
#include <bucket/schemas.h>

#include "small_domain.h"

/* One of its names is changed while a document is read. */
static struct names *changing;
static const char *changed;

static int classify_marked(const char *path, const struct schema_listing *listing,
			   unsigned int *step, const struct schema_answer *answer,
			   struct schema_request *ask, struct schema_document **out,
			   struct err *err)
{
	static const char *const names[] = {"mark", "description"};
	const struct domain_info info = {.root = "the root", .owner = "mark", .modified_ns = 7};
	if (changing)
		names_changed(changing, changed);
	if (*step && answer->absent)
		return *step == 1 ? 0 : err_set(err, -EIO, "no description");
	if (*step == 2) {
		*out = schema_document_new(&info, "");
		return *out ? 0 : -ENOMEM;
	}
	snprintf(ask->key, ask->room, "%s/%s", path, names[(*step)++]);
	return SCHEMA_NEEDS_ANSWER;
}

static bool is_marked(const char *key)
{
	const char *last = strrchr(key, '/');
	return last && (strcmp(last, "/mark") == 0 || strcmp(last, "/description") == 0);
}

static bool is_nothing(const char *key)
{
	return false;
}

static const struct schema_ops marked = {
	.name = "marked",
	.suffix = ".h5",
	.is_document = is_marked,
	.is_storage = is_nothing,
	.classify = classify_marked,
};

struct fixture {
	struct env env;
	struct store *store;
	const struct schema_ops *schemas[3];
	struct names *names;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = small_domain_new(&f->env);
	f->schemas[0] = &marked;
	f->schemas[1] = schema_all()[0];
	const struct names_options opt = {.env = &f->env,
					  .store = f->store,
					  .schemas = f->schemas,
					  .ttl_ns = UINT64_C(3600000000000)};
	f->names = names_new(&opt);
	*state = f;
	return f->names ? 0 : -1;
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

static void each_domain_has_the_schema_that_knows_it(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *one = NULL, *two = NULL;
	small_put(f->store, "m.h5/mark", "x");
	small_put(f->store, "m.h5/description", "x");
	assert_int_equal(names_resolve(f->names, "m.h5", &one, NULL), 0);
	assert_int_equal(one->kind, NAMES_DOMAIN);
	assert_ptr_equal(one->doc.document->schema, &marked);
	assert_string_equal(one->doc.document->info.owner, "mark");
	assert_int_equal(names_resolve(f->names, "d.h5", &two, NULL), 0);
	assert_int_equal(two->kind, NAMES_DOMAIN);
	assert_ptr_equal(two->doc.document->schema, schema_all()[0]);
}

static int collect(void *arg, const char *name, enum names_kind kind)
{
	char *text = arg;
	snprintf(text + strlen(text), 64, "%s%s ", name, kind == NAMES_DOMAIN ? "" : "?");
	return 0;
}

static void a_directory_shows_domains_of_both(void **state)
{
	struct fixture *f = *state;
	char text[256] = "";
	small_put(f->store, "m.h5/mark", "x");
	small_put(f->store, "m.h5/description", "x");
	assert_int_equal(names_list(f->names, "", collect, text, NULL), 0);
	assert_string_equal(text, "d.h5 m.h5 ");
}

static void what_a_schema_cannot_read_is_broken(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *node = NULL;
	small_put(f->store, "m.h5/mark", "x");
	assert_int_equal(names_resolve(f->names, "m.h5", &node, NULL), 0);
	assert_int_equal(node->doc.kind, NAMES_DOC_BROKEN);
	assert_non_null(strstr(node->doc.why, "m.h5/description: no description"));
}

/* What was read before a change does not get into the cache. */
static void an_answer_older_than_a_change_is_not_cached(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *node = NULL, *cached = NULL;
	small_put(f->store, "m.h5/mark", "x");
	small_put(f->store, "m.h5/description", "x");
	changing = f->names;
	changed = "m.h5";
	assert_int_equal(names_resolve(f->names, "m.h5", &node, NULL), 0);
	changing = NULL;
	assert_null(names_recall(f->names, "m.h5"));
	names_node_unref(node);
	assert_int_equal(names_resolve(f->names, "m.h5", &node, NULL), 0);
	cached = names_recall(f->names, "m.h5");
	assert_ptr_equal(cached, node);
	names_changed(f->names, "m.h5");
	assert_null(names_recall(f->names, "m.h5"));
}

/* Even if something else is changed meanwhile. */
static void a_name_that_is_found_is_not_absent_any_more(void **state)
{
	struct fixture *f = *state;
	auto_names_node struct names_node *node = NULL, *again = NULL;
	assert_int_equal(names_resolve(f->names, "m.h5", &node, NULL), -ENOENT);
	small_put(f->store, "m.h5/mark", "x");
	small_put(f->store, "m.h5/description", "x");
	assert_int_equal(names_resolve_for_change(f->names, "m.h5", &node, NULL), 0);
	assert_null(node);
	changing = f->names;
	changed = "other.h5";
	assert_int_equal(names_resolve(f->names, "m.h5", &node, NULL), 0);
	changing = NULL;
	assert_int_equal(names_resolve_for_change(f->names, "m.h5", &again, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_domain_has_the_schema_that_knows_it),
		TEST(a_directory_shows_domains_of_both),
		TEST(what_a_schema_cannot_read_is_broken),
		TEST(an_answer_older_than_a_change_is_not_cached),
		TEST(a_name_that_is_found_is_not_absent_any_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
