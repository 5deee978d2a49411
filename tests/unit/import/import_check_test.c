/* SPDX-License-Identifier: Apache-2.0 */
/* What a domain cannot hold is refused, or left out with everything that leads to it. */
#include "import_fixture.h"
#include <base/checksum.h>
#include <bucket/schemas.h>

#include "data_file.h"

static const struct refusal {
	const char *path, *attribute, *link;
	bool comment;
} * refused; /* of the test that runs; ends with a path of NULL */

static uint32_t number_of(const struct tree *t, const char *path)
{
	for (uint32_t i = 0; i < tree_count(t); i++)
		if (strcmp(tree_object(t, tree_nth(t, i))->o.id, path) == 0)
			return tree_nth(t, i);
	fail_msg("no object %s", path);
	return 0;
}

static int refuse(const struct tree *t, schema_refusal_fn fn, void *ctx)
{
	int rc = 0;
	for (const struct refusal *r = refused; !rc && r->path; r++)
		rc = fn(ctx, &(struct schema_refusal){.object = number_of(t, r->path),
						      .attribute = r->attribute,
						      .link = r->link,
						      .comment = r->comment,
						      .why = "not for the test"});
	return rc;
}

/* writer: of the result. */
static struct schema_ops refusing(struct schema_writer *writer)
{
	struct schema_ops ops = *schema_all()[0];
	*writer = *ops.writer;
	writer->refusals = refuse;
	ops.writer = writer;
	return ops;
}

static void test_refused(void **state)
{
	static const struct refusal some[] = {{.path = "/lzf"},
					      {.path = "/", .attribute = "title"},
					      {.path = "/", .link = "soft"},
					      {.path = "/lzf", .comment = true},
					      {.path = NULL}};
	struct schema_writer writer;
	const struct schema_ops ops = refusing(&writer);
	struct world w;
	struct err err;
	world_init(&w, 0);
	w.opt.schema = &ops;
	refused = some;
	assert_int_equal(world_import(&w, NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "4 parts of the file cannot be stored"));
	assert_non_null(strstr(err.msg, "--skip-unsupported"));
	assert_string_equal(w.notes, "/lzf: not for the test\n"
				     "/, attribute title: not for the test\n"
				     "/, link soft: not for the test\n"
				     "/lzf, comment: not for the test\n");
	assert_int_equal(world_keys(&w, ""), 0);
	world_release(&w);
}

/* A message shows 20 lines, and the number of the others. */
static void test_many_refused(void **state)
{
	static const struct {
		unsigned int n;
		const char *rest; /* the last line; NULL: there is none */
	} cases[] = {{20, NULL}, {21, "and 1 more\n"}, {23, "and 3 more\n"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct refusal all[24] = {0};
		struct schema_writer writer;
		const struct schema_ops ops = refusing(&writer);
		struct world w;
		struct err err;
		world_init(&w, 0);
		w.opt.schema = &ops;
		for (unsigned int k = 0; k < cases[i].n; k++)
			all[k] = (struct refusal){.path = "/lzf"};
		refused = all;
		assert_int_equal(world_import(&w, NULL, &err), -EOPNOTSUPP);
		unsigned int lines = 0;
		for (const char *at = w.notes; (at = strstr(at, "/lzf: ")); at++)
			lines++;
		assert_int_equal(lines, 20);
		const char *rest = strstr(w.notes, "and ");
		assert_int_equal(!rest, !cases[i].rest);
		if (rest)
			assert_string_equal(rest, cases[i].rest);
		world_release(&w);
	}
}

static bool has_text(struct world *w, const char *text)
{
	auto_page struct store_page page = {0};
	bool found = false;
	assert_int_equal(call_list_all(w->store, "", false, UINT32_MAX, &page, NULL), 0);
	for (size_t i = 0; i < page.n; i++) {
		struct call_result res;
		assert_int_equal(
			call_get(w->store, page.items[i].key, 0, STORE_TO_END, 0, NULL, &res, NULL),
			0);
		found = found ||
			(res.body.len && memmem(res.body.data, res.body.len, text, strlen(text)));
		bytes_release(&res.body);
	}
	return found;
}

/* The group "below" is left out, and with it the two datasets in it. The link to the dataset that a
 * reference names goes, too: the reference becomes null. */
static void test_left_out(void **state)
{
	static const struct refusal some[] = {{.path = "/lzf"},
					      {.path = "/", .attribute = "title"},
					      {.path = "/", .link = "soft"},
					      {.path = "/chunked"},
					      {.path = NULL}};
	struct schema_writer writer;
	const struct schema_ops ops = refusing(&writer);
	struct import_result result;
	struct world w;
	world_init(&w, 0);
	w.opt.schema = &ops;
	w.opt.skip_unsupported = true;
	refused = some;
	world_must_import(&w, &result);
	assert_int_equal(result.left_out, 4);
	assert_non_null(strstr(w.notes, "/, link soft: not for the test\n"));
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS - 2);
	assert_int_equal(result.chunks, CHUNKS - 2 - 4 - 1); /* the reference was not null */
	assert_false(has_text(&w, "title"));
	assert_false(has_text(&w, "soft"));
	assert_false(has_text(&w, "chunked"));
	assert_false(has_text(&w, "datasets/"));
	assert_true(has_text(&w, "records"));
	world_release(&w);
}

/* The object itself stays. */
static void test_comment_left_out(void **state)
{
	static const struct refusal some[] = {{.path = "/group", .comment = true}, {.path = NULL}};
	struct schema_writer writer;
	const struct schema_ops ops = refusing(&writer);
	struct import_result result;
	struct world w;
	world_init(&w, 0);
	w.opt.schema = &ops;
	w.opt.skip_unsupported = true;
	refused = some;
	world_must_import(&w, &result);
	assert_int_equal(result.left_out, 1);
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS);
	world_release(&w);
}

static void test_group_left_out(void **state)
{
	static const struct refusal some[] = {{.path = "/group"}, {.path = NULL}};
	struct schema_writer writer;
	const struct schema_ops ops = refusing(&writer);
	struct world w;
	world_init(&w, 0);
	w.opt.schema = &ops;
	w.opt.skip_unsupported = true;
	refused = some;
	world_must_import(&w, NULL);
	assert_int_equal(world_objects(&w, w.opt.path), OBJECTS - 4);
	world_release(&w);
}

/* Without its root group nothing is left. */
static void test_root_refused(void **state)
{
	static const struct refusal some[] = {{.path = "/"}, {.path = NULL}};
	struct schema_writer writer;
	const struct schema_ops ops = refusing(&writer);
	struct world w;
	struct err err;
	world_init(&w, 0);
	w.opt.schema = &ops;
	w.opt.skip_unsupported = true;
	refused = some;
	assert_int_equal(world_import(&w, NULL, &err), -EOPNOTSUPP);
	assert_int_equal(world_keys(&w, ""), 0);
	world_release(&w);
}

/* A domain can hold such names, but clients cannot ask for the attributes. */
static void test_names_with_a_slash(void **state)
{
	struct world w;
	world_init(&w, 0);
	w.opt.file.open = world_open_rare;
	world_must_import(&w, NULL);
	assert_string_equal(w.notes,
			    "clients of HSDS cannot ask by name for 2 attributes whose name "
			    "contains \"/\", such as km/h of /; a mount shows them\n");
	world_release(&w);
}

/* indexes.h5 has a superblock of version 3. */
static struct bytes marked;

static int read_marked(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, marked.data + offset, n);
	return 0;
}

static int open_marked(void *ctx, struct source **out, struct err *err)
{
	static struct source source;
	source = (struct source){.size = marked.len, .read_at = read_marked};
	*out = &source;
	return 0;
}

static void test_open_flag(void **state)
{
	static const struct import_link link = {.bucket = "b", .key = "k"};
	struct world w;
	struct err err;
	marked = data_file("indexes.h5");
	marked.data[11] = 1;
	const uint32_t sum = checksum_lookup3(marked.data, 44, 0);
	for (int i = 0; i < 4; i++)
		marked.data[44 + i] = (uint8_t)(sum >> 8 * i);
	for (int linked = 0; linked < 2; linked++) {
		world_init(&w, 0);
		w.opt.file.open = open_marked;
		w.opt.link = linked ? &link : NULL;
		assert_int_equal(world_import(&w, NULL, &err), -EBUSY);
		assert_non_null(strstr(err.msg, "a program is writing it, or was killed"));
		assert_non_null(strstr(err.msg, "h5clear -s"));
		assert_int_equal(world_keys(&w, ""), 0);
		w.opt.ignore_open_flag = true;
		world_must_import(&w, NULL);
		assert_non_null(
			strstr(w.notes, "/data/run.h5: a program is writing it, or was killed"));
		world_release(&w);
	}
	bytes_release(&marked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),	       cmocka_unit_test(test_many_refused),
		cmocka_unit_test(test_left_out),       cmocka_unit_test(test_comment_left_out),
		cmocka_unit_test(test_group_left_out), cmocka_unit_test(test_root_refused),
		cmocka_unit_test(test_open_flag),      cmocka_unit_test(test_names_with_a_slash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
