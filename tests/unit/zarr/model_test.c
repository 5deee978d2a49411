/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of a store: keys, nodes, precedence, the consolidated view, and what a root needs. */
#include "zarr_store.h"

#define GROUP2 "{\"zarr_format\":2}"
#define ARRAY2                                                                                     \
	"{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i4\",\"compressor\":null,"   \
	"\"fill_value\":0,\"order\":\"C\",\"filters\":null}"
#define GROUP3 "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define ARRAY3                                                                                     \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int16\","        \
	"\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"           \
	"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"                          \
	"\"codecs\":[{\"name\":\"bytes\"}]}"

static void a_key_names_a_document_and_a_path(void **state)
{
	static const struct {
		const char *key;
		enum zarr_document_kind kind;
		size_t n;
	} rows[] = {
		{".zgroup", ZARR_V2_GROUP, 0},	   {"a/.zarray", ZARR_V2_ARRAY, 1},
		{"g/a/.zattrs", ZARR_V2_ATTRS, 3}, {"zarr.json", ZARR_V3, 0},
		{"g/zarr.json", ZARR_V3, 1},	   {".zmetadata", ZARR_CONSOLIDATED, 0},
		{"a/0.0", ZARR_NONE, 1},	   {"a/.zarray2", ZARR_NONE, 1},
		{"a.zarray", ZARR_NONE, 0},	   {"/.zarray", ZARR_NONE, 0},
		{"a//.zarray", ZARR_V2_ARRAY, 2},  {"", ZARR_NONE, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = 99;
		assert_int_equal(zarr_document_of_key(rows[i].key, &n), rows[i].kind);
		assert_int_equal(n, rows[i].n);
	}
	assert_string_equal(zarr_document_name(ZARR_V2_ATTRS), ".zattrs");
	assert_null(zarr_document_name(ZARR_NONE));
}

static void groups_are_shown_by_name_and_without_documents(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", GROUP2},   {"z/.zgroup", GROUP2},	       {"b/c/.zarray", ARRAY2},
		{"a/.zarray", ARRAY2}, {"empty/.zattrs", "{\"a\":1}"}, {NULL, NULL},
	};
	assert_store(docs, false,
		     "group /\n"
		     "_Anonymous_Dim_4 (4) dimension\n"
		     "a (4) chunk(2) int32 fill 0\n"
		     "group /b\n"
		     "b/c (4) chunk(2) int32 fill 0\n"
		     "group /z\n");
}

static void one_document_at_a_path_wins(void **state)
{
	static const struct store_doc v2[] = {
		{".zgroup", GROUP2},	 {"a/.zarray", ARRAY2}, {"a/.zgroup", GROUP2},
		{"a/b/.zarray", ARRAY2}, {NULL, NULL},
	};
	static const struct store_doc v3[] = {
		{"zarr.json", GROUP3},	 {".zgroup", GROUP2},	  {"a/.zarray", ARRAY2},
		{"a/zarr.json", ARRAY3}, {"old/.zarray", ARRAY2}, {NULL, NULL},
	};
	assert_store(v2, false,
		     "group /\n"
		     "_Anonymous_Dim_4 (4) dimension\n"
		     "a (4) chunk(2) int32 fill 0\n"
		     "note: a: it is an array; the group of the same name is left out\n");
	assert_store(v3, false,
		     "group /\n"
		     "_Anonymous_Dim_4 (4) dimension\n"
		     "a (4) chunk(2) int16 fill 0 keys c/\n");
}

static void a_store_may_be_an_array(void **state)
{
	static const struct store_doc v2[] = {
		{".zarray", ARRAY2},
		{".zattrs", "{\"_ARRAY_DIMENSIONS\":[\"x\"],\"u\":\"m\"}"},
		{NULL, NULL},
	};
	static const struct store_doc v3[] = {{"zarr.json", ARRAY3}, {NULL, NULL}};
	assert_store(v2, false,
		     "group /\n"
		     "x (4) dimension\n"
		     "data (4) chunk(2) int32 fill 0\n"
		     "  @u \"m\"\n"
		     "  @_FillValue int32 0\n");
	assert_store(v3, false,
		     "group /\n"
		     "_Anonymous_Dim_4 (4) dimension\n"
		     "data (4) chunk(2) int16 fill 0 keys c/\n");
}

static void a_root_that_cannot_be_read_fails(void **state)
{
	static const struct {
		struct store_doc docs[3];
		const char *text;
	} rows[] = {
		{{{".zgroup", "oops"}},
		 "-5: .zgroup: not JSON: JSON: '[' or '{' expected near 'oops' (near byte 4)\n"},
		{{{".zgroup", "{\"zarr_format\":1}"}},
		 "-95: .zgroup: zarr_format 1 is not known\n"},
		{{{"zarr.json",
		   "{\"zarr_format\":\"https://purl.org/zarr/spec/protocol/core/3.0\"}"}},
		 "-95: zarr.json: Zarr v3 of the 2022 draft is not supported\n"},
		{{{"zarr.json", "{\"zarr_format\":4,\"node_type\":\"group\"}"}},
		 "-95: zarr.json: zarr_format 4 is not known\n"},
		{{{"zarr.json", "{\"zarr_format\":\"3\",\"node_type\":\"group\"}"}},
		 "-5: zarr.json: zarr_format is not known\n"},
		{{{"zarr.json", "{\"zarr_format\":3.5,\"node_type\":\"group\"}"}},
		 "-5: zarr.json: zarr_format is not known\n"},
		{{{"zarr.json", "{\"zarr_format\":3}"}},
		 "-5: zarr.json: zarr.json has no 'node_type'\n"},
		{{{"zarr.json", "{\"zarr_format\":3,\"node_type\":7}"}},
		 "-5: zarr.json: node_type '' is not known\n"},
		{{{"zarr.json", "{\"node_type\":\"group\"}"}},
		 "-5: zarr.json: zarr.json has no 'zarr_format'\n"},
		{{{"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"x\":1}"}},
		 "-95: zarr.json: 'x' must be understood and is not\n"},
		{{{".zarray", "{\"zarr_format\":2}"}}, "-5: .zarray: .zarray has no 'shape'\n"},
		{{{".zmetadata", "{}"}},
		 "-5: no document of the store can be read: .zmetadata: zarr_consolidated_format "
		 "is "
		 "not 1\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_store(rows[i].docs, false, rows[i].text);
}

/* A problem of a store that may be sound is no damage. */
static void kinds_of_problems(void **state)
{
#define A2(members) "{\"zarr_format\":2,\"shape\":[3],\"chunks\":[2]," members "}"
#define A3(members)                                                                                \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"chunk_key_encoding\":"         \
	"{\"name\":\"default\"},\"fill_value\":0," members "}"
#define GRID3 "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}}"
#define I4    "\"dtype\":\"<i4\""
	static const struct {
		const char *key, *text;
		enum tree_problem_kind kind;
	} rows[] = {
		{"a/.zarray", "{", TREE_DAMAGE},
		{"a/.zarray", A2("\"dtype\":\"<U5\""), TREE_UNSUPPORTED},
		{"a/.zarray", A2("\"dtype\":[[\"x\",\"<f4\"]]"), TREE_UNSUPPORTED},
		{"a/.zarray", A2("\"dtype\":5"), TREE_DAMAGE},
		{"a/.zarray", A2(I4 ",\"compressor\":{\"id\":\"zfpy\"}"), TREE_UNSUPPORTED},
		{"a/.zarray", A2(I4 ",\"compressor\":{\"level\":1}"), TREE_DAMAGE},
		{"a/.zarray", A2(I4 ",\"fill_value\":\"x\""), TREE_DAMAGE},
		{"a/.zarray", A2(I4 ",\"order\":\"K\""), TREE_DAMAGE},
		{"a/.zattrs", "{\"CLASS\":1}", TREE_ALTERED},
		{"a/.zattrs", "[]x", TREE_DAMAGE},
		{"a/.zattrs", "{\"_FillValue\":\"x\"}", TREE_DAMAGE},
		{"a/.zattrs", "{\"_FillValue\":null}", TREE_ALTERED},
		{"a/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\".\"]}", TREE_ALTERED},
		{"a/.zattrs", "{\"_ARRAY_DIMENSIONS\":[7]}", TREE_DAMAGE},
		{"a/zarr.json", A3("\"data_type\":\"string\",\"codecs\":[]," GRID3),
		 TREE_UNSUPPORTED},
		{"a/zarr.json", A3("\"data_type\":1,\"codecs\":[]," GRID3), TREE_DAMAGE},
		{"a/zarr.json", A3("\"data_type\":\"int8\",\"codecs\":[\"gzip\",\"bytes\"]," GRID3),
		 TREE_DAMAGE},
		{"a/zarr.json",
		 A3("\"data_type\":\"int8\",\"codecs\":[\"sharding_indexed\"]," GRID3),
		 TREE_DAMAGE},
		{"a/zarr.json",
		 A3("\"data_type\":\"int8\",\"codecs\":[],\"chunk_grid\":{\"name\":\"other\"}"),
		 TREE_UNSUPPORTED},
		{"a/zarr.json", A3("\"data_type\":\"int8\",\"codecs\":[],\"x\":{}," GRID3),
		 TREE_UNSUPPORTED},
		{"a/zarr.json", "{\"zarr_format\":4}", TREE_UNSUPPORTED},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool is_v3 = strcmp(rows[i].key, "a/zarr.json") == 0;
		const bool has_array = is_v3 || strcmp(rows[i].key, "a/.zarray") == 0;
		const struct store_doc docs[] = {
			{is_v3 ? "zarr.json" : ".zgroup",
			 is_v3 ? "{\"zarr_format\":3,\"node_type\":\"group\"}" : GROUP2},
			{rows[i].key, rows[i].text},
			{has_array ? NULL : "a/.zarray", A2(I4)},
			{NULL, NULL}};
		struct store s;
		store_load(&s, docs);
		assert_int_equal(s.rc, 0);
		if (tree_problems(s.tree) != 1 || tree_problem_kind(s.tree, 0) != rows[i].kind)
			fail_msg("row %zu: %s", i, str_text(&s.text));
		for (int kind = 0; kind < TREE_PROBLEM_KINDS; kind++)
			assert_int_equal(tree_problems_of(s.tree, (enum tree_problem_kind)kind),
					 kind == (int)rows[i].kind);
		store_end(&s);
	}
}

static void damage_costs_one_node(void **state)
{
	static const struct store_doc v2[] = {
		{".zgroup", GROUP2}, {".zattrs", "{"},
		{"a/.zarray", "[]"}, {"b/.zarray", ARRAY2},
		{"c/.zgroup", "1"},  {"c/d/.zarray", ARRAY2},
		{"e/.zarray", ""},   {"b/.zattrs", "{\"u\":1}x"},
		{NULL, NULL},
	};
	static const struct store_doc v3[] = {
		{"zarr.json", GROUP3},
		{"a/zarr.json", "{\"zarr_format\":3,\"node_type\":\"thing\"}"},
		{"b/zarr.json", "{\"zarr_format\":2,\"node_type\":\"group\"}"},
		{"c/zarr.json", "x"},
		{"c/d/zarr.json", GROUP3},
		{NULL, NULL},
	};
	assert_store(
		v2, false,
		"group /\n"
		"_Anonymous_Dim_4 (4) dimension\n"
		"b (4) chunk(2) int32 fill 0\n"
		"note: .zattrs: not JSON: JSON: string or '}' expected near end of file (near "
		"byte 1)\n"
		"note: a/.zarray: not JSON: JSON: the document is not an object\n"
		"note: b/.zattrs: not JSON: JSON: end of file expected near 'x' (near byte 8)\n"
		"note: c/.zgroup: not JSON: JSON: '[' or '{' expected near '1' (near byte 1)\n"
		"note: e/.zarray: not JSON: empty document\n");
	assert_store(
		v3, false,
		"group /\n"
		"note: a/zarr.json: node_type 'thing' is not known\n"
		"note: b/zarr.json: zarr_format 2 is not known\n"
		"note: c/zarr.json: not JSON: JSON: '[' or '{' expected near 'x' (near byte 1)\n");
}

static void names_become_links_if_they_can(void **state)
{
	static char long_name[400] = "";
	char key[420];
	memset(long_name, 'n', 300);
	snprintf(key, sizeof(key), "%s/.zgroup", long_name);
	const struct store_doc docs[] = {
		{".zgroup", GROUP2},
		{"a\nb/.zgroup", GROUP2},
		{"back\\slash/.zgroup", GROUP2},
		{"per%cent/.zgroup", GROUP2},
		{"../.zgroup", GROUP2},
		{"./x/.zgroup", GROUP2},
		{"g//.zgroup", GROUP2},
		{"//.zgroup", GROUP2},
		{key, GROUP2},
		{"...//x/.zarray", ARRAY2},
		{"\xff/.zgroup", GROUP2},
		{NULL, NULL},
	};
	struct store s;
	store_load(&s, docs);
	assert_int_equal(s.rc, 0);
	const struct object *root = &tree_object(s.tree, 0)->o;
	assert_int_equal(root->group.nlinks, 5);
	assert_string_equal(root->group.links[0].name, "a\nb");
	assert_string_equal(root->group.links[1].name, "back\\slash");
	assert_int_equal(strlen(root->group.links[2].name), 300);
	assert_string_equal(root->group.links[3].name, "per%cent");
	assert_false(root->group.links[4].utf8);
	assert_int_equal(tree_problems(s.tree), 5);
	assert_string_equal(tree_problem(s.tree, 0),
			    "../.zgroup: the name \"..\" cannot be that of a link");
	assert_string_equal(tree_problem(s.tree, 2),
			    "g//.zgroup: the name \"\" cannot be that of a link");
	store_end(&s);
}

/* ---- the consolidated view ---- */

#define META2(members) "{\"zarr_consolidated_format\":1,\"metadata\":{" members "}}"

static int collect(void *ctx, const char *key)
{
	str_addf(ctx, "%s ", key);
	return 0;
}

struct removal {
	struct zarr_model *m;
	const char *key;
};

static int remove_one(void *ctx, const char *key)
{
	const struct removal *r = ctx;
	if (strcmp(key, r->key) == 0)
		zarr_model_remove(r->m, key);
	return 0;
}

static void the_consolidated_view_yields_to_documents(void **state)
{
	static const char meta[] = META2(
		"\".zgroup\":" GROUP2 ",\"a/.zarray\":" ARRAY2 ",\"g/gone/.zarray\":" ARRAY2
		",\"a/.zattrs\":{\"u\":\"old\",\"n\":NaN},\"bad/.zarray\":3,\".zmetadata\":{}");
	static const char attrs[] = "{\"u\":\"new\"}";
	auto_str struct str keys = {0};
	struct store s;
	store_begin(&s, ZARR_CONSOLIDATED);
	assert_false(zarr_model_is_consolidated(s.model));
	assert_int_equal(store_add(&s, "a/.zattrs", attrs, strlen(attrs)), 0);
	assert_int_equal(store_add(&s, ".zmetadata", meta, strlen(meta)), 0);
	assert_true(zarr_model_is_consolidated(s.model));
	assert_int_equal(zarr_model_consolidated(s.model, collect, &keys), 0);
	assert_string_equal(str_text(&keys), ".zgroup a/.zarray g/gone/.zarray bad/.zarray ");
	struct removal r = {.m = s.model, .key = "g/gone/.zarray"};
	assert_int_equal(zarr_model_consolidated(s.model, remove_one, &r), 0);
	assert_false(zarr_model_has(s.model, r.key));
	assert_true(zarr_model_has(s.model, "a/.zattrs"));
	assert_int_equal(zarr_model_kind(s.model, "a"), ZARR_ARRAY);
	assert_int_equal(zarr_model_kind(s.model, ""), ZARR_GROUP);
	assert_int_equal(zarr_model_kind(s.model, "g"), ZARR_NO_NODE);
	assert_int_equal(zarr_model_kind(s.model, "nowhere/x"), ZARR_NO_NODE);
	store_finish(&s);
	assert_int_equal(s.rc, 0);
	store_print(&s);
	assert_string_equal(str_text(&s.text), "group /\n"
					       "_Anonymous_Dim_4 (4) dimension\n"
					       "a (4) chunk(2) int32 fill 0\n"
					       "  @u \"new\"\n"
					       "note: bad/.zarray: not a JSON object\n");
	const char *etag;
	for (uint32_t i = 0; i < tree_numbers(s.tree); i++)
		if (strcmp(tree_object(s.tree, i)->o.id, "a") == 0)
			assert_string_equal(zarr_model_object(s.model, i, &etag), "a/.zarray");
	assert_string_equal(zarr_model_object(s.model, 0, &etag), ".zgroup");
	assert_string_equal(etag, "");
	assert_string_equal(zarr_model_object(s.model, 1000, &etag), "");
	assert_null(etag);
	store_end(&s);
}

static void values_of_the_consolidated_view_keep_their_form(void **state)
{
	static const struct store_doc docs[] = {
		{".zmetadata",
		 META2("\".zgroup\":" GROUP2
		       ",\".zattrs\":{\"nan\":NaN,\"big\":18446744073709551615,"
		       "\"real\":2.0,\"third\":0.1,\"dle\":\"\\u0010n1\",\"utf8\":\"\\u00e9\"}")},
		{NULL, NULL},
	};
	assert_store(docs, false,
		     "group /\n"
		     "  @nan float64 nan\n"
		     "  @big uint64 18446744073709551615\n"
		     "  @real float64 2\n"
		     "  @third float64 0.10000000000000001\n"
		     "  @dle \"\020n1\"\n"
		     "  @utf8 \"\xc3\xa9\"\n");
}

static void a_damaged_view_is_ignored(void **state)
{
	static const struct {
		const char *text, *note;
	} rows[] = {
		{"{\"metadata\":{}}", ".zmetadata: zarr_consolidated_format is not 1"},
		{"{\"zarr_consolidated_format\":2,\"metadata\":{}}",
		 ".zmetadata: zarr_consolidated_format is not 1"},
		{"{\"zarr_consolidated_format\":1}", ".zmetadata: it has no 'metadata'"},
		{"{\"zarr_consolidated_format\":1,\"metadata\":[]}",
		 ".zmetadata: it has no 'metadata'"},
		{"", ".zmetadata: empty document"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct store_doc docs[] = {
			{".zgroup", GROUP2}, {".zmetadata", rows[i].text}, {NULL, NULL}};
		struct store s;
		store_load(&s, docs);
		assert_int_equal(s.rc, 0);
		assert_false(zarr_model_is_consolidated(s.model));
		assert_int_equal(tree_problems(s.tree), 1);
		assert_memory_equal(tree_problem(s.tree, 0), rows[i].note, strlen(rows[i].note));
		store_end(&s);
	}
}

#define GROUP3_WITH(members) "{\"zarr_format\":3,\"node_type\":\"group\"," members "}"

static void the_root_of_v3_may_have_all_documents(void **state)
{
	static const char root[] = GROUP3_WITH(
		"\"attributes\":{\"t\":1},\"consolidated_metadata\":{\"kind\":\"inline\","
		"\"must_understand\":false,\"metadata\":{\"g\":" GROUP3_WITH(
			"\"consolidated_metadata\":{\"kind\":\"inline\",\"metadata\":{"
			"\"no\":{}}}") ","
				       "\"g/a\":" ARRAY3 ",\"bad\":7,\"\":{}}}");
	const struct store_doc docs[] = {{"zarr.json", root}, {NULL, NULL}};
	struct store s;
	store_load(&s, docs);
	assert_true(zarr_model_is_consolidated(s.model));
	assert_string_equal(str_text(&s.text), "group /\n"
					       "  @t int32 1\n"
					       "_Anonymous_Dim_4 (4) dimension\n"
					       "group /g\n"
					       "g/a (4) chunk(2) int16 fill 0 keys c/\n"
					       "note: bad/zarr.json: not a JSON object\n");
	store_end(&s);
}

static void another_kind_of_view_is_ignored(void **state)
{
	static const char *const views[] = {
		"null",
		"{\"kind\":\"other\",\"metadata\":{\"g\":" GROUP3 "}}",
		"{\"kind\":\"inline\",\"metadata\":[]}",
		"7",
	};
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		char root[400];
		snprintf(root, sizeof(root),
			 "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":%s}",
			 views[i]);
		const struct store_doc docs[] = {{"zarr.json", root}, {NULL, NULL}};
		assert_store(docs, false, "group /\n");
	}
}

static int refuse_arrays(void *ctx, struct object *o, struct err *err)
{
	return o->kind == OBJECT_DATASET ? err_set(err, -EFBIG, "too large") : 0;
}

static void an_object_that_is_not_accepted_is_left_out(void **state)
{
	struct store s;
	store_begin(&s, ZARR_V2_GROUP);
	s.finish.accept = refuse_arrays;
	assert_int_equal(store_add(&s, ".zgroup", GROUP2, strlen(GROUP2)), 0);
	assert_int_equal(store_add(&s, "a/.zarray", ARRAY2, strlen(ARRAY2)), 0);
	store_finish(&s);
	assert_int_equal(s.rc, 0);
	store_print(&s);
	assert_string_equal(str_text(&s.text), "group /\nnote: a/.zarray: too large\n");
	store_end(&s);
}

static char slash(void *ctx, const char *path)
{
	return strcmp(path, "b") == 0 ? '/' : 0;
}

static void a_listing_shows_the_separator(void **state)
{
	static const char text[] = "{\"shape\":[4,4],\"chunks\":[2,2],\"dtype\":\"|u1\"}";
	struct store s;
	store_begin(&s, ZARR_V2_GROUP);
	s.finish.separator = slash;
	assert_int_equal(store_add(&s, "a/.zarray", text, strlen(text)), 0);
	assert_int_equal(store_add(&s, "b/.zarray", text, strlen(text)), 0);
	store_finish(&s);
	store_print(&s);
	assert_string_equal(str_text(&s.text), "group /\n"
					       "_Anonymous_Dim_4 (4) dimension\n"
					       "a (4,4) chunk(2,2) uint8\n"
					       "b (4,4) chunk(2,2) uint8 keys /\n");
	for (uint32_t i = 0; i < tree_count(s.tree); i++) {
		const struct object *o = &tree_object(s.tree, tree_nth(s.tree, i))->o;
		const struct zarr_locator *l =
			o->kind == OBJECT_DATASET ? o->dataset.locator : NULL;
		if (!l || !l->path)
			continue;
		assert_string_equal(l->path, o->id);
		assert_string_equal(l->store, "b/s");
		assert_int_equal(l->rank, 2);
		assert_int_equal(l->is_guessed, strcmp(l->path, "a") == 0);
	}
	store_end(&s);
}

/* With a tree of any size, the result is the tree or -ENOMEM. */
static void memory_may_be_short(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", GROUP2},
		{".zattrs", "{\"t\":\"x\",\"l\":[\"a\",\"b\"],\"n\":[1,2],\"a/b\":{}}"},
		{"a/.zarray", "{\"shape\":[4,5],\"chunks\":[2,5],\"dtype\":\"<c8\",\"order\":\"F\","
			      "\"filters\":[{\"id\":\"shuffle\"}],\"fill_value\":[1,2]}"},
		{"a/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"x\",\"y\"],\"_FillValue\":[0,0]}"},
		{"g/x/.zarray", ARRAY2},
		{"g/x/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"x\"]}"},
		{NULL, NULL},
	};
	int last = -ENOMEM;
	for (size_t limit = 0; limit < 64 << 10 && last; limit += 16) {
		struct tree *t = tree_new(limit);
		struct zarr_model *m = zarr_model_new(t, ZARR_V2_GROUP);
		const struct zarr_finish f = {.store = "s"};
		struct err err = ERR_INIT;
		for (size_t i = 0; docs[i].key; i++)
			assert_int_equal(zarr_model_add(m, docs[i].key, "e", docs[i].text,
							strlen(docs[i].text), &err),
					 0);
		last = zarr_model_finish(m, &f, &err);
		if (last && last != -ENOMEM)
			fail_msg("%d %s", last, err.msg);
		zarr_model_free(m);
		tree_free(t);
	}
	assert_int_equal(last, 0);
}

/* The store is being converted in place. */
static void documents_of_v3_win_in_a_store_of_v2(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", GROUP2},	 {"a/.zarray", ARRAY2},	  {"a/zarr.json", ARRAY3},
		{"b/zarr.json", ARRAY3}, {"b/.zgroup", GROUP2},	  {"c/zarr.json", GROUP3},
		{"c/.zarray", ARRAY2},	 {"c/d/.zarray", ARRAY2}, {NULL, NULL},
	};
	assert_store(docs, false,
		     "group /\n"
		     "_Anonymous_Dim_4 (4) dimension\n"
		     "a (4) chunk(2) int16 fill 0 keys c/\n"
		     "b (4) chunk(2) int16 fill 0 keys c/\n"
		     "group /c\n"
		     "c/d (4) chunk(2) int32 fill 0\n");
}

static int stop(void *ctx, const char *key)
{
	++*(int *)ctx;
	return 7;
}

static void calls_for_the_view_end_with_a_result(void **state)
{
	static const char meta[] = META2("\".zgroup\":" GROUP2 ",\"a/.zarray\":" ARRAY2);
	struct store s;
	int calls = 0;
	store_begin(&s, ZARR_CONSOLIDATED);
	assert_int_equal(store_add(&s, ".zmetadata", meta, strlen(meta)), 0);
	assert_int_equal(zarr_model_consolidated(s.model, stop, &calls), 7);
	assert_int_equal(calls, 1);
	store_end(&s);
}

/* A path in the view of as many bytes as a key may have, or one more. */
static void load_long_path(struct store *s, size_t n)
{
	auto_str struct str meta = {0};
	str_add(&meta, "{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":{},\"");
	for (size_t i = 0; i < n; i++)
		str_add(&meta, i % 100 == 50 ? "/" : "p");
	str_add(&meta, "/.zgroup\":{}}}");
	const struct store_doc docs[] = {{".zmetadata", str_text(&meta)}, {NULL, NULL}};
	store_load(s, docs);
	assert_int_equal(s->rc, 0);
}

static void paths_have_a_limit(void **state)
{
	struct store s;
	load_long_path(&s, 1024);
	assert_int_equal(tree_problems(s.tree), 0);
	assert_int_equal(tree_count(s.tree), 1 + 11);
	store_end(&s);
	load_long_path(&s, 1025);
	assert_int_equal(tree_count(s.tree), 1);
	assert_int_equal(tree_problems(s.tree), 1);
	assert_non_null(
		strstr(tree_problem(s.tree, 0), "...: the path has 1025 bytes, the limit is 1024"));
	store_end(&s);
}

static void objects_have_the_time_of_the_store(void **state)
{
	static const struct store_doc stores[][4] = {
		{{".zgroup", GROUP2}, {"g/a/.zarray", ARRAY2}, {NULL, NULL}},
		{{".zarray", ARRAY2}, {NULL, NULL}},
	};
	for (size_t i = 0; i < 2; i++) {
		struct store s;
		store_begin(&s, i ? ZARR_V2_ARRAY : ZARR_V2_GROUP);
		s.finish.modified_ns = 77;
		for (const struct store_doc *d = stores[i]; d->key; d++)
			assert_int_equal(store_add(&s, d->key, d->text, strlen(d->text)), 0);
		store_finish(&s);
		assert_int_equal(s.rc, 0);
		for (uint32_t k = 0; k < tree_count(s.tree); k++) {
			const struct object *o = &tree_object(s.tree, tree_nth(s.tree, k))->o;
			assert_int_equal(o->modified_ns, 77);
			assert_true(o->kind != OBJECT_GROUP || o->attrs_ordered);
		}
		store_end(&s);
	}
}

/* A store may have very many arrays that differ only in their names. */
static void equal_arrays_share_their_parts(void **state)
{
	static const char attrs[] = "{\"units\":\"m\",\"range\":[1,2]}";
	const struct object *first = NULL;
	struct store s;
	store_begin(&s, ZARR_V2_GROUP);
	store_add(&s, ".zgroup", GROUP2, strlen(GROUP2));
	for (char key[] = "a/.zarray"; key[0] < 'd'; key[0]++) {
		store_add(&s, key, ARRAY2, strlen(ARRAY2));
		strcpy(key + 2, ".zattrs");
		store_add(&s, key, attrs, strlen(attrs));
		strcpy(key + 2, ".zarray");
	}
	store_finish(&s);
	assert_int_equal(s.rc, 0);
	uint32_t arrays = 0;
	for (uint32_t i = 0; i < tree_numbers(s.tree); i++) {
		const struct object *o = &tree_object(s.tree, i)->o;
		if (o->id[1] || !strchr("abc", o->id[0]))
			continue;
		arrays++;
		first = first ? first : o;
		assert_ptr_equal(o->dataset.chain, first->dataset.chain);
		assert_ptr_equal(o->dataset.space.dims, first->dataset.space.dims);
		assert_int_equal(o->nattrs, first->nattrs);
		for (uint32_t k = 0; k < o->nattrs; k++) {
			assert_ptr_equal(o->attrs[k].name, first->attrs[k].name);
			assert_ptr_equal(o->attrs[k].type, first->attrs[k].type);
			assert_ptr_equal(o->attrs[k].space.dims, first->attrs[k].space.dims);
		}
	}
	assert_int_equal(arrays, 3);
	store_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_names_a_document_and_a_path),
		cmocka_unit_test(groups_are_shown_by_name_and_without_documents),
		cmocka_unit_test(one_document_at_a_path_wins),
		cmocka_unit_test(a_store_may_be_an_array),
		cmocka_unit_test(a_root_that_cannot_be_read_fails),
		cmocka_unit_test(kinds_of_problems),
		cmocka_unit_test(damage_costs_one_node),
		cmocka_unit_test(names_become_links_if_they_can),
		cmocka_unit_test(the_consolidated_view_yields_to_documents),
		cmocka_unit_test(values_of_the_consolidated_view_keep_their_form),
		cmocka_unit_test(a_damaged_view_is_ignored),
		cmocka_unit_test(the_root_of_v3_may_have_all_documents),
		cmocka_unit_test(another_kind_of_view_is_ignored),
		cmocka_unit_test(an_object_that_is_not_accepted_is_left_out),
		cmocka_unit_test(a_listing_shows_the_separator),
		cmocka_unit_test(memory_may_be_short),
		cmocka_unit_test(documents_of_v3_win_in_a_store_of_v2),
		cmocka_unit_test(calls_for_the_view_end_with_a_result),
		cmocka_unit_test(paths_have_a_limit),
		cmocka_unit_test(objects_have_the_time_of_the_store),
		cmocka_unit_test(equal_arrays_share_their_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
