/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several schemas recognises a path. */
#include "schema_test.h"
#include <bucket/schemas.h>

/* A schema whose domains have two objects: a mark and a description. */
static int classify_marked(const char *path, const struct schema_listing *listing,
			   unsigned int *step, const struct schema_answer *answer,
			   struct schema_request *req, struct schema_document **out,
			   struct err *err)
{
	static const char *const names[] = {"mark", "description"};
	const struct domain_info info = {.root = path, .owner = ""};
	if (*step && answer->absent)
		return *step == 1 ? 0 : err_set(err, -EIO, "a mark without a description");
	if (*step == 2) {
		*out = schema_document_new(&info, answer->etag);
		return *out ? 0 : -ENOMEM;
	}
	snprintf(req->key, req->room, "%s/%s", path, names[(*step)++]);
	return SCHEMA_NEEDS_ANSWER;
}

static const struct schema_ops marked = {.name = "marked", .classify = classify_marked};

struct machine {
	struct schema_classify state;
	char key[SCHEMA_KEY_MAX + 1];
	struct schema_document *document;
	struct err err;
};

static int next(struct machine *a, const struct schema_answer *answer)
{
	const struct schema_ops *const schemas[] = {&marked, schema_all()[0], NULL};
	struct schema_request req = {.key = a->key, .room = sizeof(a->key)};
	return schema_classify(schemas, "x", &a->state, answer, &req, &a->document, &a->err);
}

static const struct schema_answer absent = {.absent = true, .etag = ""};

static void the_first_schema_that_recognises_a_path_wins(void **state)
{
	const struct schema_answer present = {.etag = "v1", .body = "", .len = 0};
	struct machine a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_NEEDS_ANSWER);
	assert_string_equal(a.key, "x/mark");
	assert_int_equal(next(&a, &present), SCHEMA_NEEDS_ANSWER);
	assert_string_equal(a.key, "x/description");
	assert_int_equal(next(&a, &present), 0);
	assert_non_null(a.document);
	assert_ptr_equal(a.document->schema, &marked);
	assert_string_equal(a.document->info.root, "x");
	assert_string_equal(a.document->etag, "v1");
	schema_document_unref(a.document);
}

static void other_paths_go_to_the_next_schema(void **state)
{
	static const char text[] = "{\"root\":\"" ROOT_ID "\",\"owner\":\"ann\",\"acls\":"
				   "{\"ann\":{\"read\":true},\"default\":{}}}";
	const struct schema_answer present = {.etag = "e", .body = text, .len = sizeof(text) - 1};
	struct machine a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_NEEDS_ANSWER);
	assert_int_equal(next(&a, &absent), SCHEMA_NEEDS_ANSWER);
	assert_string_equal(a.key, "x/.domain.json");
	assert_int_equal(next(&a, &present), 0);
	assert_ptr_equal(a.document->schema, schema_all()[0]);
	assert_string_equal(a.document->info.root, ROOT_ID);
	assert_string_equal(a.document->info.owner, "ann");
	assert_int_equal(a.document->info.nacls, 2);
	assert_string_equal(a.document->info.acls[0].user, "ann");
	assert_int_equal(a.document->info.acls[0].perms, DOMAIN_PERM_READ);
	assert_string_equal(a.document->info.acls[1].user, "default");
	schema_document_unref(a.document);
}

/* One document shows which schema a domain has: the form of its root. */
static void the_root_chooses_between_v1_and_v2(void **state)
{
	static const struct {
		const char *text, *schema;
	} rows[] = {
		{"{\"root\":\"" ROOT_ID "\",\"owner\":\"ann\"}", "hsds2"},
		{"{\"root\":\"g-953ef986-e555-11f1-b213-02fc00000001\",\"owner\":\"ann\"}",
		 "hsds1"},
		{"{\"owner\":\"ann\"}", "hsds2"}, /* a folder */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct schema_answer present = {
			.etag = "e", .body = rows[i].text, .len = strlen(rows[i].text)};
		struct machine a = {0};
		struct schema_request req = {.key = a.key, .room = sizeof(a.key)};
		assert_int_equal(schema_classify(schema_all(), "x", &a.state, NULL, &req,
						 &a.document, &a.err),
				 SCHEMA_NEEDS_ANSWER);
		assert_string_equal(a.key, "x/.domain.json");
		assert_int_equal(schema_classify(schema_all(), "x", &a.state, &present, &req,
						 &a.document, &a.err),
				 0);
		assert_string_equal(a.document->schema->name, rows[i].schema);
		/* Asked again, it begins with the same request. */
		a.state = schema_classify_again(schema_all(), a.document);
		struct schema_document *none;
		a.key[0] = '\0';
		assert_int_equal(
			schema_classify(schema_all(), "x", &a.state, NULL, &req, &none, &a.err),
			SCHEMA_NEEDS_ANSWER);
		assert_string_equal(a.key, "x/.domain.json");
		schema_document_unref(a.document);
	}
}

/* An absent document is requested once, although two schemas would have it. */
static void one_request_shows_that_there_is_no_domain(void **state)
{
	struct machine a = {.state.without_marks = true};
	struct schema_request req = {.key = a.key, .room = sizeof(a.key)};
	assert_int_equal(
		schema_classify(schema_all(), "x", &a.state, NULL, &req, &a.document, &a.err),
		SCHEMA_NEEDS_ANSWER);
	assert_int_equal(
		schema_classify(schema_all(), "x", &a.state, &absent, &req, &a.document, &a.err),
		0);
	assert_null(a.document);
}

static void a_path_that_no_schema_recognises_has_no_document(void **state)
{
	struct machine a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_NEEDS_ANSWER);
	assert_int_equal(next(&a, &absent), SCHEMA_NEEDS_ANSWER);
	assert_int_equal(next(&a, &absent), 0);
	assert_null(a.document);
}

/* The mark shows which schema the domain has, so no other schema is tried. */
static void a_broken_domain_is_an_error(void **state)
{
	const struct schema_answer present = {.etag = ""};
	struct machine a = {0};
	assert_int_equal(next(&a, NULL), SCHEMA_NEEDS_ANSWER);
	assert_int_equal(next(&a, &present), SCHEMA_NEEDS_ANSWER);
	assert_int_equal(next(&a, &absent), -EIO);
	assert_contains(a.err.msg, "without a description");
	assert_null(a.document);
}

static void a_path_that_is_too_long_is_no_domain(void **state)
{
	char path[SCHEMA_KEY_MAX + 1], key[SCHEMA_KEY_MAX + 1];
	struct schema_classify machine = {0};
	struct schema_request req = {.key = key, .room = sizeof(key)};
	struct schema_document *document;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(schema_classify(schema_all(), path, &machine, NULL, &req, &document, NULL),
			 0);
	assert_null(document);
}

static bool has_listed(const struct schema_listing *l, const char *key)
{
	return strcmp(l->keys, key) == 0;
}

/* A listing decides before the first request, and is not needed after it. */
static void a_listing_without_the_document_saves_the_request(void **state)
{
	static const struct {
		const char *listed;
		int first;
	} rows[] = {{"x/.domain.json", SCHEMA_NEEDS_ANSWER}, {"x/.zgroup", 0}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct schema_listing listing = {.has = has_listed, .keys = rows[i].listed};
		struct machine a = {.state = {.without_marks = true, .listing = &listing}};
		struct schema_request req = {.key = a.key, .room = sizeof(a.key)};
		assert_int_equal(schema_classify(schema_all(), "x", &a.state, NULL, &req,
						 &a.document, &a.err),
				 rows[i].first);
		assert_null(a.document);
	}
}

/* What the comments of the tables promise to the layers that call them. */
static void a_table_comes_with_those_that_it_needs(void **state)
{
	const struct schema_ops *const *all = schema_all();
	for (; *all; all++) {
		const struct schema_ops *s = *all;
		assert_true(!s->editor || (s->writer && s->storage));
		assert_true(!s->writer || (s->documents && s->storage));
		assert_true(!s->take_user_block == !s->user_block_key);
	}
	assert_string_equal(schema_of_new_domains(schema_all())->name, "hsds2");
	assert_null(schema_of_new_domains(all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_comes_with_those_that_it_needs),
		cmocka_unit_test(the_first_schema_that_recognises_a_path_wins),
		cmocka_unit_test(other_paths_go_to_the_next_schema),
		cmocka_unit_test(a_path_that_no_schema_recognises_has_no_document),
		cmocka_unit_test(a_broken_domain_is_an_error),
		cmocka_unit_test(the_root_chooses_between_v1_and_v2),
		cmocka_unit_test(a_listing_without_the_document_saves_the_request),
		cmocka_unit_test(one_request_shows_that_there_is_no_domain),
		cmocka_unit_test(a_path_that_is_too_long_is_no_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
