/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions: which array shares which one, what they are called, and names that cannot be used. */
#include "zarr_store.h"

struct row {
	const char *path, *shape, *names; /* names: JSON; NULL: none */
};

/* A store of v3 with these arrays; a shape of NULL stands for a group. */
static void load(struct store *s, const struct row *rows, size_t n)
{
	static const char root[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
	store_begin(s, ZARR_V3);
	assert_int_equal(store_add(s, "zarr.json", root, strlen(root)), 0);
	for (size_t i = 0; i < n; i++) {
		auto_str struct str key = {0}, text = {0};
		str_addf(&key, "%s/zarr.json", rows[i].path);
		if (rows[i].shape)
			str_addf(&text,
				 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":%s,"
				 "\"data_type\":\"int8\",\"chunk_grid\":{\"name\":\"regular\","
				 "\"configuration\":{\"chunk_shape\":%s}},\"chunk_key_encoding\":"
				 "\"v2\",\"fill_value\":null,\"codecs\":[\"bytes\"]",
				 rows[i].shape, rows[i].shape);
		else
			str_add(&text, "{\"zarr_format\":3,\"node_type\":\"group\"");
		if (rows[i].names)
			str_addf(&text, ",\"dimension_names\":%s", rows[i].names);
		str_add(&text, "}");
		assert_int_equal(store_add(s, str_text(&key), str_text(&text), text.b.len), 0);
	}
	store_finish(s);
	assert_int_equal(s->rc, 0);
}

static const struct attribute *find(const struct object *o, const char *name)
{
	for (uint32_t i = 0; i < o->nattrs; i++)
		if (strcmp(o->attrs[i].name, name) == 0)
			return &o->attrs[i];
	return NULL;
}

/* The dimensions of the variables, one line for each: "v: x g/y". A scale of rank 1 has itself. */
static void print_dims(struct store *s)
{
	str_cut(&s->text, 0);
	for (uint32_t i = 1; i < tree_count(s->tree); i++) {
		const struct object *o = &tree_object(s->tree, tree_nth(s->tree, i))->o;
		const struct zarr_locator *l =
			o->kind == OBJECT_DATASET ? o->dataset.locator : NULL;
		const struct attribute *a = find(o, "DIMENSION_LIST");
		if (!l)
			continue;
		if (!l->path) {
			str_addf(&s->text, "%s=%llu\n", o->id,
				 (unsigned long long)o->dataset.space.dims[0]);
			continue;
		}
		str_addf(&s->text, "%s:", o->id);
		if (!a && o->dataset.space.rank)
			str_add(&s->text, find(o, "_Netcdf4Coordinates") ? " self ..." : " self");
		for (uint64_t k = 0; a && k < a->space.nelems; k++) {
			str_add(&s->text, " ");
			store_element(&s->text, s, a->type, &a->value,
				      a->value.fixed.data + k * a->type->size);
		}
		str_add(&s->text, "\n");
	}
	for (uint32_t i = 0; tree_problem(s->tree, i); i++)
		str_addf(&s->text, "note: %s\n", tree_problem(s->tree, i));
}

static void assert_dims(const struct row *rows, size_t n, const char *text)
{
	struct store s;
	load(&s, rows, n);
	print_dims(&s);
	assert_string_equal(str_text(&s.text), text);
	store_end(&s);
}
#define ASSERT_DIMS(rows, text) assert_dims(rows, sizeof(rows) / sizeof((rows)[0]), text)

static void arrays_share_dimensions_by_name(void **state)
{
	static const struct row rows[] = {
		{"v", "[3,4]", "[\"y\",\"x\"]"},   {"x", "[4]", "[\"x\"]"},
		{"w", "[4,3]", "[\"x\",\"y\"]"},   {"s", "[]", "[]"},
		{"rep", "[4,4]", "[\"x\",\"x\"]"},
	};
	ASSERT_DIMS(rows, "y=3\n"
			  "rep: x x\n"
			  "s:\n"
			  "v: y x\n"
			  "w: x y\n"
			  "x: self\n");
}

static void a_group_above_may_have_the_dimension(void **state)
{
	static const struct row rows[] = {
		{"x", "[4]", "[\"x\"]"},	   {"g", NULL, NULL},
		{"g/v", "[4]", "[\"x\"]"},	   {"g/h/w", "[4]", "[\"x\"]"},
		{"k/v", "[5]", "[\"x\"]"},	   {"k/deep/er/v", "[4]", "[\"x\"]"},
		{"k/deep/er/w", "[5]", "[\"x\"]"},
	};
	ASSERT_DIMS(rows, "x: self\n"
			  "g/v: x\n"
			  "k/x=5\n"
			  "k/v: k/x\n"
			  "g/h/w: x\n"
			  "k/deep/er/v: x\n"
			  "k/deep/er/w: k/x\n");
}

static void lengths_may_conflict(void **state)
{
	static const struct row rows[] = {
		{"a", "[3]", "[\"x\"]"},   {"b", "[4]", "[\"x\"]"},
		{"c", "[4]", "[\"x\"]"},   {"d", "[5,6]", "[\"x_5\",\"x\"]"},
		{"e", "[5]", "[\"x\"]"},   {"f", "[7]", "[\"x_5\"]"},
		{"g", "[6]", "[\"x_6\"]"},
	};
	ASSERT_DIMS(rows, "x=3\n"
			  "x_4=4\n"
			  "x_5=5\n"
			  "x_6=6\n"
			  "x_5_7=7\n"
			  "a: x\n"
			  "b: x_4\n"
			  "c: x_4\n"
			  "d: x_5 x_6\n"
			  "e: x_5\n"
			  "f: x_5_7\n"
			  "g: x_6\n"
			  "note: b: dimension x is 4 here, 3 elsewhere: x_4\n"
			  "note: d: dimension x is 6 here, 3 elsewhere: x_6\n"
			  "note: f: dimension x_5 is 7 here, 5 elsewhere: x_5_7\n");
}

/* The name with the length has another length, too. */
static void a_conflict_may_leave_no_name(void **state)
{
	static const struct row rows[] = {
		{"a", "[3,9]", "[\"x\",\"x_4\"]"},
		{"b", "[4]", "[\"x\"]"},
	};
	ASSERT_DIMS(rows, "x=3\nx_4=9\n_Anonymous_Dim_4=4\na: x x_4\nb: _Anonymous_Dim_4\n");
}

static void coordinates_define_their_dimension_first(void **state)
{
	static const struct row rows[] = {
		{"a", "[3]", "[\"x\"]"},
		{"x", "[4]", "[\"x\"]"},
		{"z", "[2,4]", "[\"z\",\"x\"]"},
	};
	ASSERT_DIMS(rows, "x_3=3\n"
			  "a: x_3\n"
			  "x: self\n"
			  "z: self ...\n"
			  "note: a: dimension x is 3 here, 4 elsewhere: x_3\n");
}

static void dimensions_may_have_no_name(void **state)
{
	static const struct row rows[] = {
		{"a", "[3,3]", NULL},
		{"b", "[3,4]", "[null,\"\"]"},
		{"c", "[3,4]", "[\"x\"]"},
		{"d", "[3]", "[7]"},
		{"g/e", "[3]", "[\"a/b\"]"},
		{"g/f", "[3]", "\"x\""},
		{"h", "[5]", "[\"_nc4_non_coord_x\"]"},
		{"i", "[5]", "[\"..\"]"},
		{"j", "[5]", "[\"a\\u0000b\"]"},
		{"k", "[1]", "[\"_scalar_\"]"},
		{"l", "[5]", "[NaN]"},
	};
	ASSERT_DIMS(rows,
		    "_Anonymous_Dim_3=3\n"
		    "_Anonymous_Dim_4=4\n"
		    "_Anonymous_Dim_5=5\n"
		    "_Anonymous_Dim_1=1\n"
		    "a: _Anonymous_Dim_3 _Anonymous_Dim_3\n"
		    "b: _Anonymous_Dim_3 _Anonymous_Dim_4\n"
		    "c: _Anonymous_Dim_3 _Anonymous_Dim_4\n"
		    "d: _Anonymous_Dim_3\n"
		    "h: _Anonymous_Dim_5\n"
		    "i: _Anonymous_Dim_5\n"
		    "j: _Anonymous_Dim_5\n"
		    "k: _Anonymous_Dim_1\n"
		    "l: _Anonymous_Dim_5\n"
		    "g/a_b=3\n"
		    "g/e: g/a_b\n"
		    "g/f: _Anonymous_Dim_3\n"
		    "note: c/zarr.json: dimension_names has 1 names for 2 dimensions\n"
		    "note: d/zarr.json: 7 cannot be the name of a dimension\n"
		    "note: h/zarr.json: \"_nc4_non_coord_x\" cannot be the name of a dimension\n"
		    "note: i/zarr.json: \"..\" cannot be the name of a dimension\n"
		    "note: j/zarr.json: \"a\\u0000b\" cannot be the name of a dimension\n"
		    "note: k/zarr.json: dimension_names has 0 names for 1 dimensions\n"
		    "note: l/zarr.json: NaN cannot be the name of a dimension\n");
}

static void names_may_be_long(void **state)
{
	char names[10100] = "[\"", text[2000];
	struct store s;
	memset(names + 2, 'n', 10000);
	strcpy(names + 10002, "\"]");
	const struct row rows[] = {{"a", "[3]", names}};
	load(&s, rows, 1);
	print_dims(&s);
	snprintf(text, sizeof(text),
		 "_Anonymous_Dim_3=3\na: _Anonymous_Dim_3\nnote: a/zarr.json: %.80s... cannot be "
		 "the name of a dimension\n",
		 names + 1);
	assert_string_equal(str_text(&s.text), text);
	store_end(&s);
	strcpy(names + 257, "\"]"); /* 255 bytes */
	const struct row two[] = {{"a", "[3]", names}, {"b", "[4]", names}};
	load(&s, two, 2);
	print_dims(&s);
	assert_non_null(strstr(str_text(&s.text), "b: _Anonymous_Dim_4\n"));
	assert_int_equal(tree_problems(s.tree), 0);
	store_end(&s);
}

static void a_variable_may_be_named_like_a_dimension(void **state)
{
	static const struct row rows[] = {
		{"x", "[5]", "[\"y\"]"}, {"v", "[3]", "[\"x\"]"},
		{"s", "[]", NULL},	 {"w", "[7]", "[\"s\"]"},
		{"t", "[2]", "[\"u\"]"}, {"_nc4_non_coord_t", "[4]", "[\"t\"]"},
	};
	struct store s;
	load(&s, rows, sizeof(rows) / sizeof(rows[0]));
	store_print(&s);
	assert_string_equal(str_text(&s.text),
			    "group /\n"
			    "t (4) dimension\n"
			    "u (2) dimension\n"
			    "x (3) dimension\n"
			    "s (7) dimension\n"
			    "y (5) dimension\n"
			    "_nc4_non_coord_t (4) chunk(4) int8\n"
			    "_nc4_non_coord_s () int8\n"
			    "v (3) chunk(3) int8\n"
			    "w (7) chunk(7) int8\n"
			    "_nc4_non_coord_x (5) chunk(5) int8\n"
			    "note: t: its name is that of a dimension, and the name of its link is "
			    "taken\n");
	store_end(&s);
}

static void a_group_may_be_named_like_a_dimension(void **state)
{
	static const struct row rows[] = {
		{"v", "[3]", "[\"g\"]"},
		{"g", NULL, NULL},
		{"w", "[4]", "[\"h\"]"},
		{"h", NULL, NULL},
		{"h_4", NULL, NULL},
		{"z", "[6]", NULL},
		{"_Anonymous_Dim_6", NULL, NULL},
	};
	struct store s;
	load(&s, rows, sizeof(rows) / sizeof(rows[0]));
	store_print(&s);
	assert_string_equal(str_text(&s.text),
			    "group /\n"
			    "g_3 (3) dimension\n"
			    "_Anonymous_Dim_4 (4) dimension\n"
			    "group /_Anonymous_Dim_6\n"
			    "group /g\n"
			    "group /h\n"
			    "group /h_4\n"
			    "v (3) chunk(3) int8\n"
			    "w (4) chunk(4) int8\n"
			    "note: v: a group is called g like the dimension: g_3\n"
			    "note: z: no name is free for one of its dimensions\n");
	store_end(&s);
}

static void there_may_be_many_arrays_and_lengths(void **state)
{
	enum { GROUPS = 50, ARRAYS = 1000 };
	static char text[] =
		"{\"shape\":[          ],\"chunks\":[1],\"dtype\":\"<i4\",\"fill_value\":0}";
	static const char names[] = "{\"_ARRAY_DIMENSIONS\":[\"x\"],\"units\":\"m\"}";
	struct store s;
	store_begin(&s, ZARR_V2_GROUP);
	assert_int_equal(store_add(&s, ".zgroup", "{}", 2), 0);
	for (int i = 0; i < GROUPS * ARRAYS; i++) {
		char key[64], length[16];
		const int n = snprintf(length, sizeof(length), "%-10d", 1 + i % ARRAYS);
		memcpy(text + 10, length, (size_t)n);
		snprintf(key, sizeof(key), "g%d/a%d/.zarray", i / ARRAYS, i);
		assert_int_equal(store_add(&s, key, text, strlen(text)), 0);
		snprintf(key, sizeof(key), "g%d/a%d/.zattrs", i / ARRAYS, i);
		assert_int_equal(store_add(&s, key, names, strlen(names)), 0);
	}
	store_finish(&s);
	assert_int_equal(s.rc, 0);
	assert_int_equal(tree_count(s.tree), 1 + GROUPS + 2 * GROUPS * ARRAYS);
	store_end(&s);
}

/* A name with its length behind it has at most 255 bytes, too. */
static void a_name_with_its_length_may_be_long(void **state)
{
	for (size_t n = 252; n <= 254; n++) {
		char names[300], text[400];
		struct store s;
		snprintf(names, sizeof(names), "[\"%0*d\"]", (int)n, 0);
		const struct row rows[] = {{"a", "[3]", names}, {"b", "[4]", names}};
		load(&s, rows, 2);
		print_dims(&s);
		if (n + 2 <= 255)
			snprintf(text, sizeof(text), "\nb: %0*d_4\n", (int)n, 0);
		else
			snprintf(text, sizeof(text), "\nb: _Anonymous_Dim_4\n");
		assert_non_null(strstr(str_text(&s.text), text));
		store_end(&s);
	}
}

/* References and ids have more than one byte. */
static void there_may_be_more_than_255_dimensions(void **state)
{
	enum { DIMENSIONS = 300 };
	struct row rows[DIMENSIONS];
	char texts[DIMENSIONS][2][16];
	auto_str struct str expected = {0};
	struct store s;
	for (int i = 0; i < DIMENSIONS; i++) {
		snprintf(texts[i][0], sizeof(texts[i][0]), "a%03d", i);
		snprintf(texts[i][1], sizeof(texts[i][1]), "[\"d%03d\"]", i);
		rows[i] = (struct row){texts[i][0], "[5]", texts[i][1]};
		str_addf(&expected, "d%03d=5\n", i);
	}
	for (int i = 0; i < DIMENSIONS; i++)
		str_addf(&expected, "a%03d: d%03d\n", i, i);
	load(&s, rows, DIMENSIONS);
	print_dims(&s);
	assert_string_equal(str_text(&s.text), str_text(&expected));
	const struct object *root = &tree_object(s.tree, 0)->o;
	const uint8_t id[] = {299 - 256, 1, 0, 0};
	for (int i = 1; i <= 2; i++) { /* the last dimension, and the last variable */
		const struct object *o =
			&tree_object(s.tree, root->group.links[i * DIMENSIONS - 1].target)->o;
		const struct attribute *a =
			find(o, i == 1 ? "_Netcdf4Dimid" : "_Netcdf4Coordinates");
		assert_non_null(a);
		assert_memory_equal(a->value.fixed.data, id, sizeof(id));
	}
	store_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_share_dimensions_by_name),
		cmocka_unit_test(a_group_above_may_have_the_dimension),
		cmocka_unit_test(lengths_may_conflict),
		cmocka_unit_test(a_conflict_may_leave_no_name),
		cmocka_unit_test(coordinates_define_their_dimension_first),
		cmocka_unit_test(dimensions_may_have_no_name),
		cmocka_unit_test(names_may_be_long),
		cmocka_unit_test(a_variable_may_be_named_like_a_dimension),
		cmocka_unit_test(a_group_may_be_named_like_a_dimension),
		cmocka_unit_test(there_may_be_more_than_255_dimensions),
		cmocka_unit_test(there_may_be_many_arrays_and_lengths),
		cmocka_unit_test(a_name_with_its_length_may_be_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
