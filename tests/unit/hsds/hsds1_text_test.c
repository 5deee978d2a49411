/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of variable length that are JSON text become the bytes of the other form. */
#include "schema_test.h"

#include "schema/hsds/hsds1.h"
#include "schema/hsds/hsds_load.h"

#define ROOT	"g-953ef986-e555-11f1-b213-02fc00000001"
#define DATASET "d-953ef986-e555-11f1-b213-02fc00000002"
#define STRING                                                                                     \
	"{\"class\":\"H5T_STRING\",\"charSet\":\"H5T_CSET_UTF8\",\"length\":\"H5T_VARIABLE\"}"
#define VLEN "{\"class\":\"H5T_VLEN\",\"base\":\"H5T_STD_I16LE\"}"
#define PAIR                                                                                       \
	"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"a\",\"type\":\"H5T_STD_U8LE\"},"      \
	"{\"name\":\"b\",\"type\":" STRING "}]}"

struct dataset_test {
	struct arena *arena;
	struct tree *tree;
	struct hsds_space space;
	struct object o;
};

static void setup_dataset(struct dataset_test *t, const char *type, const char *dims)
{
	const struct schema_id id = test_id(DATASET), root = test_id(ROOT);
	char text[1024];
	struct err err = ERR_INIT;
	*t = (struct dataset_test){.arena = arena_new(1 << 20), .tree = tree_new(1 << 20)};
	t->space.base.tree = t->tree;
	t->space.root = root;
	snprintf(text, sizeof(text),
		 "{\"id\":\"" DATASET "\",\"root\":\"" ROOT "\",\"type\":%s,\"shape\":"
		 "{\"class\":\"H5S_SIMPLE\",\"dims\":%s},\"layout\":{\"dims\":%s}}",
		 type, dims, dims);
	if (schema_object_parse(t->arena, t->arena, &id, &root, text, strlen(text), NULL, NULL,
				NULL, NULL, &t->o, &err))
		fail_msg("%s", err.msg);
}

static void release_dataset(struct dataset_test *t)
{
	object_release(&t->o);
	tree_free(t->tree);
	arena_free(t->arena);
}

/* The text is in a block of exactly its size. */
static int convert(const struct dataset_test *t, const void *text, size_t n, uint64_t size,
		   struct bytes *out, struct err *err)
{
	char *exact = malloc(n ? n : 1);
	assert_non_null(exact);
	memcpy(exact, text, n);
	*out = (struct bytes){0};
	const int rc = hsds1_chunk_text(&t->space.base, &t->o, exact, n, size, out, err);
	free(exact);
	return rc;
}

static void texts(void **state)
{
	static const struct {
		const char *type, *dims, *text, *hex;
	} rows[] = {
		{STRING, "[2]", "[\"ab\",\"\"]", "02000000616200000000"},
		{STRING, "[2]", " [\"ab\",\"\"]", NULL},
		{STRING, "[2]", "[\"ab\", null]\n", "02000000616200000000"},
		{STRING, "[1,2]", "[[\"a\",\"b\"]]", "01000000610100000062"},
		{STRING, "[2]", "[0, 0]", NULL}, /* no strings: an error */
		{VLEN, "[2]", "[[1,2],[]]", "040000000100020000000000"},
		{PAIR, "[1]", "[[7,\"x\"]]", "070100000078"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dataset_test t;
		struct bytes out;
		struct err err = ERR_INIT;
		setup_dataset(&t, rows[i].type, rows[i].dims);
		const size_t n = strlen(rows[i].text);
		const int rc = convert(&t, rows[i].text, n, n, &out, &err);
		if (rows[i].hex) {
			assert_string_equal(err.msg, "");
			assert_int_equal(rc, 0);
			assert_hex(out.data, out.len, rows[i].hex);
		} else {
			assert_int_equal(rc, rows[i].text[0] == '[' ? -EIO : SCHEMA_NOT_TEXT);
		}
		bytes_release(&out);
		release_dataset(&t);
	}
}

/* Bytes of the other form that begin with "[", and text that is not JSON. */
static void other_bytes(void **state)
{
	char element[4 + 91] = {91};
	struct dataset_test t;
	struct bytes out;
	struct err err = ERR_INIT;
	setup_dataset(&t, STRING, "[1]");
	assert_int_equal(convert(&t, element, sizeof(element), sizeof(element), &out, &err),
			 SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "[\"a\"", 4, 4, &out, &err), SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "[\"a\"]}", 6, 6, &out, &err), SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "[", 1, 1, &out, &err), SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "", 0, 0, &out, &err), SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "{}", 2, 2, &out, &err), SCHEMA_NOT_TEXT);
	assert_int_equal(convert(&t, "[\"a\", 1]", 8, 8, &out, &err), -EIO);
	assert_contains(err.msg, "JSON text");
	/* A part of a text. */
	assert_int_equal(convert(&t, "[\"a\"", 4, 1000, &out, &err), -EAGAIN);
	assert_int_equal(convert(&t, element, 16, sizeof(element), &out, &err), SCHEMA_NOT_TEXT);
	release_dataset(&t);
}

static void types_of_fixed_size_have_no_text(void **state)
{
	struct dataset_test t;
	struct bytes out;
	setup_dataset(&t, "\"H5T_STD_U8LE\"", "[3]");
	assert_int_equal(convert(&t, "[1]", 3, 3, &out, NULL), SCHEMA_NOT_TEXT);
	release_dataset(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(other_bytes),
		cmocka_unit_test(types_of_fixed_size_have_no_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
