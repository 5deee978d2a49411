/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: JSON values of every kind, names, what is hidden and what is refused. */
#include "zarr_store.h"

/* The attributes of the root group, as lines without the indentation. */
static void assert_attributes(const char *json, const char *lines)
{
	struct store s;
	auto_str struct str expected = {0};
	const struct store_doc docs[] = {{".zgroup", "{}"}, {".zattrs", json}, {NULL, NULL}};
	store_load(&s, docs);
	str_addf(&expected, "group /\n%s", lines);
	assert_string_equal(str_text(&s.text), str_text(&expected));
	store_end(&s);
}

static void values_of_every_kind(void **state)
{
	static const char *const rows[][2] = {
		{"\"m\"", "\"m\""},
		{"\"\"", "\"\""},
		{"\"caf\\u00e9 \\ud83d\\ude00\"", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\""},
		{"true", "uint8 1"},
		{"[true,false]", "uint8 1 0"},
		{"1", "int32 1"},
		{"-2147483648", "int32 -2147483648"},
		{"2147483647", "int32 2147483647"},
		{"2147483648", "int64 2147483648"},
		{"-2147483649", "int64 -2147483649"},
		{"9223372036854775807", "int64 9223372036854775807"},
		{"[-1,9223372036854775807]", "int64 -1 9223372036854775807"},
		{"[-9223372036854775808,9223372036854775808]",
		 "float64 -9.2233720368547758e+18 9.2233720368547758e+18"},
		{"-9223372036854775808", "int64 -9223372036854775808"},
		{"9223372036854775808", "uint64 9223372036854775808"},
		{"18446744073709551615", "uint64 18446744073709551615"},
		{"1180591620717411303424", "float64 1.1805916207174113e+21"},
		{"-9223372036854775809", "float64 -9.2233720368547758e+18"},
		{"1.0", "float64 1"},
		{"-0.0", "float64 -0"},
		{"1e300", "float64 1.0000000000000001e+300"},
		{"1e400", "float64 inf"},
		{"Infinity", "float64 inf"},
		{"-Infinity", "float64 -inf"},
		{"[1,2,3]", "int32 1 2 3"},
		{"[1,4294967296]", "int64 1 4294967296"},
		{"[1,18446744073709551615]", "uint64 1 18446744073709551615"},
		{"[-1,18446744073709551615]", "float64 -1 1.8446744073709552e+19"},
		{"[1,2.5]", "float64 1 2.5"},
		{"[1,Infinity]", "float64 1 inf"},
		{"[\"a\",\"\",\"\\u00fc\"]", "$\"a\" $\"\" $\"\xc3\xbc\""},
		{"[]", "\"[]\""},
		{"null", "\"null\""},
		{"{}", "\"{}\""},
		{"{\"b\": 1, \"a\": [null, true]}", "\"{\"b\":1,\"a\":[null,true]}\""},
		{"[1, \"a\"]", "\"[1,\"a\"]\""},
		{"[1, true]", "\"[1,true]\""},
		{"[[1, 2], [3, 4.0]]", "\"[[1,2],[3,4.0]]\""},
		{"[{\"x\": NaN, \"y\": \"\\u00e9\\n\\\"\\\\\\u0001\"}]",
		 "\"[{\"x\":NaN,\"y\":\"\xc3\xa9\\n\\\"\\\\\\u0001\"}]\""},
		{"[0.1,[]]", "\"[0.1,[]]\""},
		{"[1e15,1e16,1e-4,1e-5,123456.789,-0.0,5e-324,[]]",
		 "\"[1000000000000000.0,1e+16,0.0001,1e-05,123456.789,-0.0,5e-324,[]]\""},
		{"[-0,1e300,-nan,inf,1e400,[]]", "\"[0,1e+300,NaN,Infinity,Infinity,[]]\""},
		{"-0", "int32 0"},
		{"-nan", "float64 -nan"},
		{"[18446744073709551616,[]]", "\"[18446744073709551616,[]]\""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char json[256], line[256];
		snprintf(json, sizeof(json), "{\"a\":%s}", rows[i][0]);
		snprintf(line, sizeof(line), "  @a %s\n", rows[i][1]);
		assert_attributes(json, line);
	}
}

static void names_are_changed_or_refused(void **state)
{
	char json[1024], note[1024], name[300] = "";
	memset(name, 'n', 256);
	assert_attributes("{\"a/b\":1,\"c:d\":2,\"e\\u0301\":3}",
			  "  @a_b int32 1\n  @c:d int32 2\n  @e\xcc\x81 int32 3\n");
	assert_attributes(
		"{\"a/b\":1,\"a_b\":2}",
		"  @a_b int32 2\nnote: .zattrs: attribute \"a_b\" is left out: another one "
		"has this name\n");
	assert_attributes(
		"{\"a/b_c\":1,\"a_b/c\":2}",
		"  @a_b_c int32 1\nnote: .zattrs: attribute \"a_b_c\" is left out: another "
		"one has this name\n");
	assert_attributes("{\"\":1}",
			  "note: .zattrs: attribute \"\" is left out: its name is empty\n");
	assert_attributes("{\"a\\u0000b\":1}",
			  "note: .zattrs: attribute \"a\" is left out: its name is not UTF-8\n");
	assert_attributes("{\"\\udc00\":1}", "note: .zattrs: attribute \"\\xed\\xb0\\x80\" is left "
					     "out: its name is not UTF-8\n");
	snprintf(json, sizeof(json), "{\"%s\":1}", name);
	snprintf(note, sizeof(note),
		 "note: .zattrs: attribute \"%.80s\" is left out: its name has more than 255 "
		 "bytes\n",
		 name);
	assert_attributes(json, note);
	json[257] = '"'; /* one character less */
	json[258] = ' ';
	name[255] = '\0';
	snprintf(note, sizeof(note), "  @%s int32 1\n", name);
	assert_attributes(json, note);
}

static void reserved_names_are_left_out(void **state)
{
	static const char *const told[] = {"CLASS",	     "NAME",	      "DIMENSION_LIST",
					   "REFERENCE_LIST", "_Netcdf4Dimid", "_nc3_strict",
					   "_Codecs",	     "_Format",	      "_Netcdf4x"};
	static const char *const hidden[] = {"_NCProperties", "_ARRAY_DIMENSIONS", "_nczarr_attr",
					     "_NCZARR_ARRAY", "_nczarr_attrs",	   ".zattr_type"};
	char json[128], note[256];
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		snprintf(json, sizeof(json), "{\"%s\":\"DIMENSION_SCALE\"}", told[i]);
		snprintf(note, sizeof(note),
			 "note: .zattrs: attribute \"%s\" is left out: the name is reserved\n",
			 told[i]);
		assert_attributes(json, note);
	}
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		snprintf(json, sizeof(json), "{\"%s\":\"x\",\"y\":1}", hidden[i]);
		assert_attributes(json, "  @y int32 1\n");
	}
	assert_attributes("{\"_nczarr_maxstrlen\":3}", "  @_nczarr_maxstrlen int32 3\n");
}

static const struct attribute *first(const struct store *s)
{
	return &tree_object(s->tree, 0)->o.attrs[0];
}

/* {"a": "xx…"} with n characters. */
static void load_text(struct store *s, size_t n, const char *c)
{
	auto_str struct str json = {0};
	str_add(&json, "{\"a\":\"");
	for (size_t i = 0; i < n; i++)
		str_add(&json, c);
	str_add(&json, "\"}");
	const struct store_doc docs[] = {{".zgroup", "{}"}, {".zattrs", str_text(&json)}, {0}};
	store_load(s, docs);
	assert_int_equal(s->rc, 0);
}

static void a_long_text_has_variable_length(void **state)
{
	struct store s;
	load_text(&s, 64 << 10, "x");
	assert_int_equal(first(&s)->type->cls, DTYPE_STRING);
	assert_int_equal(first(&s)->type->size, 64 << 10);
	store_end(&s);
	load_text(&s, (64 << 10) + 1, "x");
	assert_int_equal(first(&s)->type->cls, DTYPE_VLEN);
	assert_int_equal(first(&s)->space.cls, DSPACE_SCALAR);
	store_end(&s);
	load_text(&s, 50 << 20, "x");
	assert_int_equal(elems_get_vlen(first(&s)->value.fixed.data).count, 50 << 20);
	store_end(&s);
}

static void texts_have_their_character_set(void **state)
{
	struct store s;
	load_text(&s, 3, "x");
	assert_int_equal(first(&s)->type->string.cset, DTYPE_CSET_ASCII);
	assert_int_equal(first(&s)->type->string.pad, DTYPE_PAD_NULLTERM);
	assert_int_equal(first(&s)->type->size, 3);
	assert_int_equal(first(&s)->space.cls, DSPACE_SCALAR);
	store_end(&s);
	load_text(&s, 3, "\xc3\xa9");
	assert_int_equal(first(&s)->type->string.cset, DTYPE_CSET_UTF8);
	assert_int_equal(first(&s)->type->size, 6);
	store_end(&s);
	load_text(&s, 0, "");
	assert_int_equal(first(&s)->type->size, 1);
	assert_int_equal(first(&s)->value.fixed.data[0], 0);
	store_end(&s);
}

/* The creation order of attributes has 16 bits in a file. */
static void there_may_be_many_attributes(void **state)
{
	auto_str struct str json = {0};
	struct store s;
	str_add(&json, "{\"a\":1");
	for (int i = 0; i < 100000; i++)
		str_addf(&json, ",\"x/%d\":%d", i, i);
	str_add(&json, "}");
	const struct store_doc docs[] = {{".zgroup", "{}"}, {".zattrs", str_text(&json)}, {0}};
	store_load(&s, docs);
	assert_int_equal(tree_object(s.tree, 0)->o.nattrs, 100002);
	assert_false(tree_object(s.tree, 0)->o.attrs_ordered);
	store_end(&s);
	load_text(&s, 1, "x");
	assert_true(tree_object(s.tree, 0)->o.attrs_ordered);
	store_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_every_kind),
		cmocka_unit_test(names_are_changed_or_refused),
		cmocka_unit_test(reserved_names_are_left_out),
		cmocka_unit_test(a_long_text_has_variable_length),
		cmocka_unit_test(texts_have_their_character_set),
		cmocka_unit_test(there_may_be_many_attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
