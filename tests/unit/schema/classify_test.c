/* SPDX-License-Identifier: Apache-2.0 */
/* Which schema a path belongs to, when there are several. */
#include "schema_test.h"

/* Knows the domains that have a mark and, beside it, a description. */
static int classify_marked(const char *path, unsigned int *step, const struct schema_answer *answer,
			   struct schema_ask *ask, struct schema_document **out, struct err *err)
{
	static const char *const names[] = {"mark", "description"};
	const struct domain_info info = {.root = path, .owner = ""};
	if (*step && answer->absent)
		return *step == 1 ? 0 : err_set(err, -EIO, "a mark without a description");
	if (*step == 2) {
		*out = schema_document_new(&info, answer->etag);
		return *out ? 0 : -ENOMEM;
	}
	snprintf(ask->key, ask->room, "%s/%s", path, names[(*step)++]);
	return SCHEMA_ASKS;
}

static const struct schema_ops marked = {.name = "marked", .classify = classify_marked};

struct asked {
	struct schema_classify state;
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_document *document;
	struct err err;
};

static int next(struct asked *a, const struct schema_answer *answer)
{
	const struct schema_ops *const schemas[] = {&marked, schema_all()[0], NULL};
	struct schema_ask ask = {.key = a->key, .room = sizeof(a->key)};
	return schema_classify(schemas, "x", &a->state, answer, &ask, &a->document, &a->err);
}

static const struct schema_answer absent = {.absent = true, .etag = ""};

static void the_first_schema_that_knows_a_path_has_it(void **state)
{
	const struct schema_answer there = {.etag = "v1", .body = "", .len = 0};
	struct asked a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_ASKS);
	assert_string_equal(a.key, "x/mark");
	assert_int_equal(next(&a, &there), SCHEMA_ASKS);
	assert_string_equal(a.key, "x/description");
	assert_int_equal(next(&a, &there), 0);
	assert_non_null(a.document);
	assert_ptr_equal(a.document->schema, &marked);
	assert_string_equal(a.document->info.root, "x");
	assert_string_equal(a.document->etag, "v1");
	schema_document_unref(a.document);
}

static void the_next_one_is_asked_for_what_none_before_it_knows(void **state)
{
	static const char text[] = "{\"root\":\"" ROOT_ID "\",\"owner\":\"ann\",\"acls\":"
				   "{\"ann\":{\"read\":true},\"default\":{}}}";
	const struct schema_answer there = {.etag = "e", .body = text, .len = sizeof(text) - 1};
	struct asked a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_ASKS);
	assert_int_equal(next(&a, &absent), SCHEMA_ASKS);
	assert_string_equal(a.key, "x/.domain.json");
	assert_int_equal(next(&a, &there), 0);
	assert_ptr_equal(a.document->schema, schema_all()[0]);
	assert_string_equal(a.document->info.root, ROOT_ID);
	assert_string_equal(a.document->info.owner, "ann");
	assert_int_equal(a.document->info.nacls, 2);
	assert_string_equal(a.document->info.acls[0].user, "ann");
	assert_int_equal(a.document->info.acls[0].perms, DOMAIN_PERM_READ);
	assert_string_equal(a.document->info.acls[1].user, "default");
	schema_document_unref(a.document);
}

static void what_no_schema_knows_is_nothing(void **state)
{
	struct asked a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_ASKS);
	assert_int_equal(next(&a, &absent), SCHEMA_ASKS);
	assert_int_equal(next(&a, &absent), 0);
	assert_null(a.document);
}

/* It is this schema's domain, so no other one is asked. */
static void a_broken_domain_is_an_error(void **state)
{
	const struct schema_answer there = {.etag = ""};
	struct asked a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_ASKS);
	assert_int_equal(next(&a, &there), SCHEMA_ASKS);
	assert_int_equal(next(&a, &absent), -EIO);
	assert_contains(a.err.msg, "without a description");
	assert_null(a.document);
}

static void a_path_that_is_too_long_is_no_domain(void **state)
{
	char path[SCHEMA_KEY_MAX + 1], key[SCHEMA_KEY_MAX + 1];
	struct schema_classify machine = {0};
	struct schema_ask ask = {.key = key, .room = sizeof(key)};
	struct schema_document *document;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(schema_classify(schema_all(), path, &machine, NULL, &ask, &document, NULL),
			 0);
	assert_null(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_schema_that_knows_a_path_has_it),
		cmocka_unit_test(the_next_one_is_asked_for_what_none_before_it_knows),
		cmocka_unit_test(what_no_schema_knows_is_nothing),
		cmocka_unit_test(a_broken_domain_is_an_error),
		cmocka_unit_test(a_path_that_is_too_long_is_no_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
