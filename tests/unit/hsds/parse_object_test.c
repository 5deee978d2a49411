/* SPDX-License-Identifier: Apache-2.0 */
/* Members that all objects have: id, times, attributes. */
#include "schema_test.h"

#define SCALAR_I8                                                                                  \
	"\"type\":\"H5T_STD_I8LE\",\"shape\":{\"class\":\"H5S_SCALAR\"},\"value\":1,\"created\":"

static void reads_identity_and_times(void **state)
{
	struct parsed p = parse_group("\"links\":{},\"attributes\":{}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.kind, OBJECT_GROUP);
	assert_string_equal(p.o.id, GROUP_ID);
	assert_int_equal(p.o.created_ns, 1500000000);
	assert_int_equal(p.o.modified_ns, 2250000000);
	assert_int_equal(p.o.nattrs, 0);
	assert_int_equal(p.o.group.nlinks, 0);
	parsed_release(&p);
}

static void refuses_other_documents(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"{\"root\":\"" ROOT_ID "\"}", "id: missing"},
		{"{\"id\":7,\"root\":\"" ROOT_ID "\"}", "id: not an id"},
		{"{\"id\":\"" ROOT_ID "\",\"root\":\"" ROOT_ID "\"}", "id: the document has"},
		{"{\"id\":\"" DATASET_ID "\",\"root\":\"" ROOT_ID "\"}", "id: the document has"},
		{"{\"id\":\"" GROUP_ID "\"}", "root: missing"},
		{"{\"id\":\"" GROUP_ID "\",\"root\":\"" GROUP_ID "\"}", "root: the document has"},
		{"{" HEAD(GROUP_ID) ",\"links\":[]}", "links: not an object"},
		{"{" HEAD(GROUP_ID) ",\"attributes\":7}", "attributes: not an object"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_bytes(GROUP_ID, rows[i].text, strlen(rows[i].text));
		assert_int_equal(p.rc, -EIO);
		assert_contains(p.err.msg, "group " GROUP_ID ": ");
		assert_contains(p.err.msg, rows[i].why);
		assert_int_equal(p.o.kind, OBJECT_GROUP);
		assert_int_equal(p.o.nattrs, 0);
		parsed_release(&p);
	}
}

static void attributes_in_creation_order(void **state)
{
	struct parsed p = parse_group("\"attributes\":{\"c\":{" SCALAR_I8 "2.5},\"b\":{" SCALAR_I8
				      "1.5},\"a\":{" SCALAR_I8 "1.5},\"first\":{" SCALAR_I8
				      "0.5},\"sl/ash\":{" SCALAR_I8 "9}}");
	static const char *const want[] = {"first", "a", "b", "c", "sl/ash"};
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.nattrs, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(p.o.attrs[i].name, want[i]);
	assert_int_equal(p.o.attrs[0].created_ns, 500000000);
	assert_true(p.o.attrs[0].committed == OBJECT_NONE);
	parsed_release(&p);
}

static void broken_attributes_are_left_out(void **state)
{
	static const struct {
		const char *attr, *what;
	} rows[] = {
		{"\"\":{" SCALAR_I8 "1}", "attribute \"\": the name is empty"},
		{"\"a\\u0000\":{" SCALAR_I8 "1}", "it contains a NUL"},
		{"\"a\\udce9\":{" SCALAR_I8 "1}", "surrogate"},
		{"\"a\":null", "attribute \"a\": not an object"},
		{"\"a\":{}", "attribute \"a\": type: missing"},
		{"\"a\":{\"type\":\"H5T_STD_I7LE\"}",
		 "attribute \"a\": type: unknown base \"H5T_STD_I7LE\""},
		{"\"a\\n\\u001b[0m\":{}", "attribute \"a\\x0a\\x1b[0m\": type"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text), "\"attributes\":{\"z\":{" SCALAR_I8 "1},%s}",
			 rows[i].attr);
		struct parsed p = parse_group(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.nattrs, 1);
		assert_int_equal(p.skips, 1);
		assert_contains(p.what, rows[i].what);
		parsed_release(&p);
	}
}

static void attribute_order_tracking(void **state)
{
	static const struct {
		const char *props;
		bool ordered;
	} rows[] = {
		{"{}", false},
		{"null", false},
		{"\"BwAAAA==\"", false},
		{"{\"CreateOrder\":1}", true},
		{"{\"CreateOrder\":0}", false},
		{"{\"CreateOrder\":true}", true},
		{"{\"attributeCreationOrder\":\"H5P_CRT_ORDER_INDEXED\"}", true},
		{"{\"attributeCreationOrder\":\"H5P_CRT_ORDER_TRACKED\"}", true},
		{"{\"attributeCreationOrder\":\"H5P_CRT_ORDER_NONE\"}", false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text), "\"creationProperties\":%s", rows[i].props);
		struct parsed p = parse_group(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.attrs_ordered, rows[i].ordered);
		parsed_release(&p);
	}
}

/* If memory runs out, the parser fails; it does not leave out parts of the document. */
static void out_of_memory_is_an_error(void **state)
{
	static const char text[] = "{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":{" SCALAR_I8
						      "1},\"b\":{" SCALAR_I8 "1}}}";
	struct schema_id id = test_id(GROUP_ID);
	struct schema_id root = test_id(ROOT_ID);
	unsigned int done = 0;
	for (size_t limit = 64; limit < 8192; limit += 64) {
		struct parsed p = {.arena = arena_new(limit), .err = ERR_INIT};
		assert_non_null(p.arena);
		p.rc = schema_object_parse(p.arena, p.arena, &id, &root, text, sizeof(text) - 1,
					   NULL, NULL, test_skip, &p, &p.o, &p.err);
		assert_true(p.rc == 0 || p.rc == -ENOMEM);
		assert_int_equal(p.rc, p.err.code);
		assert_int_equal(p.skips, 0);
		assert_int_equal(p.o.nattrs, p.rc ? 0 : 2);
		done += p.rc == 0;
		parsed_release(&p);
	}
	assert_true(done > 0 && done < 127);
}

/* Objects of a domain share their simple types, and memory of a type is used once. */
static void simple_types_are_shared(void **state)
{
	static const char text[] =
		"{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":{" SCALAR_I8 "1},\"b\":{" SCALAR_I8
				   "2},\"c\":{\"type\":\"H5T_STD_I16LE\",\"shape\":"
				   "{\"class\":\"H5S_SCALAR\"},\"value\":3}}}";
	struct schema_id id = test_id(GROUP_ID), root = test_id(ROOT_ID);
	struct arena *a = arena_new(1 << 20);
	struct schema_types types = {0};
	struct object o[3];
	size_t used[3];
	for (int i = 0; i < 3; i++) {
		const size_t before = arena_used(a);
		assert_int_equal(schema_object_parse(a, a, &id, &root, text, sizeof(text) - 1, NULL,
						     i < 2 ? &types : NULL, NULL, NULL, &o[i],
						     NULL),
				 0);
		used[i] = arena_used(a) - before;
		assert_int_equal(o[i].nattrs, 3);
	}
	/* "c" is older than the others. */
	const struct dtype *t = o[0].attrs[1].type;
	assert_int_equal(t->size, 1);
	assert_ptr_equal(o[0].attrs[2].type, t);
	assert_ptr_equal(o[1].attrs[1].type, t);
	assert_ptr_not_equal(o[0].attrs[0].type, t);
	assert_int_equal(o[0].attrs[0].type->size, 2);
	assert_ptr_equal(o[1].attrs[0].type, o[0].attrs[0].type);
	assert_ptr_not_equal(o[2].attrs[1].type, t);
	assert_int_equal(used[0] - used[1], 2 * (used[2] - used[1]) / 3);
	for (int i = 0; i < 3; i++)
		object_release(&o[i]);
	arena_free(a);
}

#define PAD(pad, len)                                                                              \
	"\"type\":{\"class\":\"H5T_STRING\",\"charSet\":\"H5T_CSET_ASCII\","                       \
	"\"strPad\":\"H5T_STR_" pad "\",\"length\":" #len                                          \
	"},\"shape\":{\"class\":\"H5S_SCALAR\"},"
#define ATTR(name, pad, len, value) "\"" name "\":{" PAD(pad, len) "\"value\":\"" value "\"}"

static void assert_text(const struct attribute *a, const char *text)
{
	char value[32];
	assert_true(attribute_bytes(a) <= sizeof(value));
	elems_read(&a->value, 0, value, attribute_bytes(a));
	assert_int_equal(strnlen(value, attribute_bytes(a)), attribute_bytes(a) - 1);
	assert_string_equal(value, text);
}

/* The terminators that hsload removes are restored on dimension scales. */
static void scales_are_terminated(void **state)
{
	static const struct {
		const char *class, *name;
		uint32_t class_size, name_size;
		enum dtype_pad class_pad, name_pad;
	} rows[] = {
		{ATTR("CLASS", "NULLPAD", 15, "DIMENSION_SCALE"), ATTR("NAME", "NULLPAD", 3, "lat"),
		 16, 4, DTYPE_PAD_NULLTERM, DTYPE_PAD_NULLTERM},
		{ATTR("CLASS", "NULLPAD", 20, "DIMENSION_SCALE"), ATTR("NAME", "NULLPAD", 8, "lat"),
		 16, 4, DTYPE_PAD_NULLTERM, DTYPE_PAD_NULLTERM},
		{ATTR("CLASS", "NULLTERM", 16, "DIMENSION_SCALE"), ATTR("NAME", "NULLPAD", 1, ""),
		 16, 1, DTYPE_PAD_NULLTERM, DTYPE_PAD_NULLTERM},
		{ATTR("CLASS", "NULLPAD", 15, "DIMENSION_SCALE"),
		 ATTR("NAME", "NULLTERM", 4, "lat"), 16, 4, DTYPE_PAD_NULLTERM, DTYPE_PAD_NULLTERM},
		{ATTR("CLASS", "SPACEPAD", 15, "DIMENSION_SCALE"),
		 ATTR("NAME", "SPACEPAD", 3, "lat"), 15, 3, DTYPE_PAD_SPACEPAD, DTYPE_PAD_SPACEPAD},
		{ATTR("CLASS", "NULLPAD", 16, "DIMENSION_SCALES"),
		 ATTR("NAME", "NULLPAD", 3, "lat"), 16, 3, DTYPE_PAD_NULLPAD, DTYPE_PAD_NULLPAD},
		{ATTR("CLASS", "NULLPAD", 5, "IMAGE"), ATTR("NAME", "NULLPAD", 3, "lat"), 5, 3,
		 DTYPE_PAD_NULLPAD, DTYPE_PAD_NULLPAD},
		{ATTR("OTHER", "NULLPAD", 15, "DIMENSION_SCALE"), ATTR("NAME", "NULLPAD", 3, "lat"),
		 15, 3, DTYPE_PAD_NULLPAD, DTYPE_PAD_NULLPAD},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_printed(
			DATASET_ID,
			"{" HEAD(DATASET_ID) ",\"type\":\"H5T_STD_I8LE\",\"shape\":{\"class\":"
					     "\"H5S_SCALAR\"},\"attributes\":{%s,%s}}",
			rows[i].class, rows[i].name);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.nattrs, 2);
		/* The attributes have no times, so they are sorted by name. */
		const bool name_first = strcmp(p.o.attrs[0].name, "NAME") == 0;
		const struct attribute *class = &p.o.attrs[name_first],
				       *name = &p.o.attrs[!name_first];
		assert_int_equal(class->type->size, rows[i].class_size);
		assert_int_equal(class->type->string.pad, rows[i].class_pad);
		assert_int_equal(attribute_bytes(class), rows[i].class_size);
		if (rows[i].class_pad == DTYPE_PAD_NULLTERM)
			assert_text(class, "DIMENSION_SCALE");
		assert_int_equal(name->type->size, rows[i].name_size);
		assert_int_equal(name->type->string.pad, rows[i].name_pad);
		assert_int_equal(attribute_bytes(name), rows[i].name_size);
		if (rows[i].name_pad == DTYPE_PAD_NULLTERM)
			assert_text(name, rows[i].name_size > 1 ? "lat" : "");
		parsed_release(&p);
	}
}

static void groups_are_no_scales(void **state)
{
	struct parsed p =
		parse_group("\"attributes\":{" ATTR("CLASS", "NULLPAD", 15, "DIMENSION_SCALE") "}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.attrs[0].type->size, 15);
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_identity_and_times),
		cmocka_unit_test(refuses_other_documents),
		cmocka_unit_test(attributes_in_creation_order),
		cmocka_unit_test(scales_are_terminated),
		cmocka_unit_test(groups_are_no_scales),
		cmocka_unit_test(broken_attributes_are_left_out),
		cmocka_unit_test(attribute_order_tracking),
		cmocka_unit_test(out_of_memory_is_an_error),
		cmocka_unit_test(simple_types_are_shared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
