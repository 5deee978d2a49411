/* SPDX-License-Identifier: Apache-2.0 */
/* What the service sees of each type, and that the exact type and its values are loaded again. */
#include "schema_test.h"

#include <data/tree_diff.h>
#include <bucket/schemas.h>

#include "emitted.h"
#include "schema/hsds/stand_in.h"
#include "shape_arena.h"
#include "storages.h"

static const struct dtype *number(struct arena *a, enum dtype_class cls, uint32_t size,
				  uint16_t offset, uint16_t precision)
{
	struct dtype t = {.cls = cls, .size = size};
	t.integer.bit_offset = offset;
	t.integer.precision = precision;
	return dtype_checked(a, &t, NULL);
}

static const struct dtype *bitfield(struct arena *a)
{
	return number(a, DTYPE_BITFIELD, 2, 0, 16);
}

static const struct dtype *time_type(struct arena *a)
{
	return number(a, DTYPE_TIME, 4, 0, 32);
}

static const struct dtype *odd_integer(struct arena *a)
{
	return number(a, DTYPE_INTEGER, 4, 2, 24);
}

static const struct dtype *long_integer(struct arena *a)
{
	return number(a, DTYPE_INTEGER, 16, 0, 128);
}

static const struct dtype *long_double(struct arena *a)
{
	struct dtype t = {.cls = DTYPE_FLOAT, .size = 16};
	t.floating.precision = 80;
	t.floating.sign_loc = 79;
	t.floating.exp_loc = 64;
	t.floating.exp_size = 15;
	t.floating.mant_size = 64;
	t.floating.exp_bias = 16383;
	return dtype_checked(a, &t, NULL);
}

static const struct dtype *brain_float(struct arena *a)
{
	struct dtype t = {.cls = DTYPE_FLOAT, .size = 2};
	t.floating.precision = 16;
	t.floating.sign_loc = 15;
	t.floating.exp_loc = 7;
	t.floating.exp_size = 8;
	t.floating.mant_size = 7;
	t.floating.exp_bias = 127;
	t.floating.norm = DTYPE_NORM_IMPLIED;
	return dtype_checked(a, &t, NULL);
}

static const struct dtype *i4(struct arena *a)
{
	return dtype_integer(a, 4, true, false, NULL);
}

static const struct dtype *text(struct arena *a)
{
	return dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
}

static const struct dtype *compound(struct arena *a, const char *name, const struct dtype *t,
				    uint32_t offset, uint32_t size)
{
	const struct dtype_member m[] = {{"a", offset, i4(a)}, {name, offset + 4, t}};
	return dtype_compound(a, 2, m, size, NULL);
}

static const struct dtype *padded(struct arena *a)
{
	return compound(a, "b", dtype_ieee(a, 8, true, NULL), 4, 24);
}

static const struct dtype *greek(struct arena *a)
{
	return compound(a, "\xce\xb1", text(a), 0, 20);
}

static const struct dtype *enumeration(struct arena *a)
{
	static const char *const names[] = {"no", "yes"};
	return dtype_enum(a, dtype_integer(a, 1, true, false, NULL), 2, names,
			  (const uint8_t *)"\0\1", NULL);
}

static const struct dtype *array(struct arena *a, const struct dtype *t)
{
	static const uint32_t dims[] = {3};
	return dtype_array(a, t, 1, dims, NULL);
}

static const struct dtype *top_array(struct arena *a)
{
	return array(a, i4(a));
}

static const struct dtype *member_array(struct arena *a)
{
	return compound(a, "b", array(a, array(a, enumeration(a))), 0, 0 + 4 + 9);
}

static const struct dtype *array_of_compounds(struct arena *a)
{
	return compound(a, "b", array(a, padded(a)), 0, 4 + 72);
}

static const struct dtype *vlen_of_compounds(struct arena *a)
{
	return dtype_vlen(a, padded(a), NULL);
}

static const struct dtype *vlen_of_texts(struct arena *a)
{
	return dtype_vlen(a, text(a), NULL);
}

static const struct dtype *vlen_of_enums(struct arena *a)
{
	return dtype_vlen(a, enumeration(a), NULL);
}

static const struct dtype *single_text(struct arena *a)
{
	const struct dtype_member m = {"only", 0, text(a)};
	return dtype_compound(a, 1, &m, 0, NULL);
}

static const struct dtype *array_of_texts(struct arena *a)
{
	return array(a, text(a));
}

static const struct dtype *array_of_one_text(struct arena *a)
{
	static const uint32_t dims[] = {1, 1};
	return dtype_array(a, text(a), 2, dims, NULL);
}

static const struct dtype *lone_tag(struct arena *a)
{
	return dtype_opaque(a, 5, "\xff", NULL);
}

static const struct dtype *latin1_member(struct arena *a)
{
	return compound(a,
			"T (\xb0"
			"C)",
			dtype_ieee(a, 8, false, NULL), 0, 12);
}

static const struct dtype *latin1_enum(struct arena *a)
{
	static const char *const names[] = {"member_1", "gr\xfcn", "gr\xc3\xbcn", "\xed\xb3\xbc"};
	return dtype_enum(a, dtype_integer(a, 1, false, false, NULL), 4, names,
			  (const uint8_t *)"\1\2\3\4", NULL);
}

static const struct dtype *vlen_of_latin1(struct arena *a)
{
	return dtype_vlen(a, latin1_enum(a), NULL);
}

static const struct row {
	const struct dtype *(*make)(struct arena *a);
	const char *seen;  /* a part of the document */
	const char *value; /* "" : base64 */
} rows[] = {
	{bitfield, "\"base\": \"H5T_STD_U16LE\", \"hsmount\": {\"class\": \"H5T_BITFIELD\"",
	 "[513, "},
	{time_type, "\"base\": \"H5T_STD_I32LE\", \"hsmount\": {\"class\": \"H5T_TIME\"", "["},
	{odd_integer, "\"H5T_OPAQUE\", \"size\": 4, \"tag\": \"\", \"hsmount\"", ""},
	{long_integer, "\"H5T_OPAQUE\", \"size\": 16, \"tag\": \"\", \"hsmount\"", ""},
	{long_double, "\"H5T_OPAQUE\", \"size\": 16, \"tag\": \"\", \"hsmount\"", ""},
	{brain_float, "\"H5T_OPAQUE\", \"size\": 2, \"tag\": \"\", \"hsmount\"", ""},
	{padded, "}], \"hsmount\": {\"class\": \"H5T_COMPOUND\", \"size\": 24", "[["},
	{greek, "{\"name\": \"member_1\", \"type\": {\"class\": \"H5T_STRING\"", "[["},
	{top_array, "\"H5T_OPAQUE\", \"size\": 12, \"tag\": \"\", \"hsmount\"", ""},
	{member_array, "\"H5T_ARRAY\", \"dims\": [3, 3], \"base\": {\"class\": \"H5T_INTEGER\"",
	 "[["},
	{array_of_compounds, "\"H5T_OPAQUE\", \"size\": 36, \"tag\": \"\"}}], \"hsmount\"", ""},
	{vlen_of_compounds, "\"base\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_U8LE\"}",
	 ""},
	{vlen_of_texts, "\"base\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_U8LE\"}", ""},
	{vlen_of_enums, "\"base\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_I8LE\"}", "[["},
	{single_text, "\"type\": {\"class\": \"H5T_STRING\"", "[\"text\", "},
	{array_of_texts, "{\"name\": \"item_2\", \"type\": {\"class\": \"H5T_STRING\"", ""},
	{array_of_one_text, "\"type\": {\"class\": \"H5T_STRING\"", ""},
	{latin1_member, "{\"name\": \"member_1\", \"type\": {\"class\": \"H5T_FLOAT\"", "[["},
	{latin1_member, "{\"name\": \"T (\\udcb0C)\", \"offset\": 4, ", "[["},
	{latin1_enum,
	 "\"mapping\": {\"member_1\": 1, \"member_1_1\": 2, \"gr\\u00fcn\": 3, "
	 "\"member_3\": 4}, \"hsmount\": {\"class\": \"H5T_ENUM\", ",
	 "["},
	{latin1_enum,
	 "\"names\": [\"member_1\", \"gr\\udcfcn\", \"gr\\u00fcn\", "
	 "\"\\udced\\udcb3\\udcbc\"]",
	 "["},
	{vlen_of_latin1, "\"base\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_U8LE\"}",
	 "[["},
	{lone_tag, "\"H5T_OPAQUE\", \"size\": 5, \"tag\": \"\", \"hsmount\"", ""},
};

/* Elements of the bytes 1, 2, 3 …; strings are "text". */
static void fill(const struct dtype *t, uint8_t *at, struct elems *e)
{
	static uint8_t zero[256];
	uint8_t items[256];
	uint64_t offset = 0;
	uint32_t n = 2;
	switch (t->cls) {
	case DTYPE_COMPOUND:
		for (uint32_t i = 0; i < t->compound.n; i++)
			fill(t->compound.members[i].type, at + t->compound.members[i].offset, e);
		break;
	case DTYPE_ARRAY:
		for (uint64_t i = 0; i < t->array.nelems; i++)
			fill(t->array.base, at + i * t->array.base->size, e);
		break;
	case DTYPE_VLEN:
		memcpy(items, zero, sizeof(items));
		if (t->vlen.is_string)
			memcpy(items, "text", n = 4);
		else
			for (uint32_t i = 0; i < n; i++)
				fill(t->vlen.base, items + i * t->vlen.base->size, e);
		assert_int_equal(elems_heap_add(e, items, n * t->vlen.base->size, &offset), 0);
		elems_put_vlen(at, n, offset);
		break;
	default:
		for (uint32_t i = 0; i < t->size; i++)
			at[i] = (uint8_t)(1 + i);
	}
}

/* A root group with an attribute of two elements, a dataset and a committed type. */
static struct tree *tree_of(const struct row *row)
{
	static const uint64_t dims[] = {2};
	struct tree *t = tree_new(64 << 20);
	struct arena *a = tree_arena(t);
	uint32_t number;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(tree_add(t, &number, NULL), 0);
	const struct dtype *type = row->make(a);
	assert_non_null(type);
	struct object *root = tree_edit(t, 0), *ds = tree_edit(t, 1), *named = tree_edit(t, 2);
	root->nattrs = 1;
	root->attrs = arena_alloc(a, sizeof(*root->attrs));
	*root->attrs = (struct attribute){.name = "a", .type = type, .committed = OBJECT_NONE};
	dspace_simple(shape_arena(), &root->attrs->space, 1, dims, NULL, NULL);
	bytes_append_zero(&root->attrs->value.fixed, 2 * type->size);
	for (uint32_t i = 0; i < 2; i++)
		fill(type, root->attrs->value.fixed.data + i * type->size, &root->attrs->value);
	root->group.nlinks = 2;
	root->group.links = arena_array(a, 2, sizeof(struct link));
	root->group.links[0] = (struct link){.name = "d", .target = 1};
	root->group.links[1] = (struct link){.name = "t", .target = 2};
	named->kind = OBJECT_DATATYPE;
	named->datatype = type;
	ds->kind = OBJECT_DATASET;
	ds->dataset.type = type;
	ds->dataset.committed = 2;
	ds->dataset.requested = LAYOUT_CHUNKED;
	ds->dataset.alloc_time = ALLOC_TIME_INCR;
	ds->dataset.space = root->attrs->space;
	grid_init(shape_arena(), &ds->dataset.grid, 1, dims, dims, NULL);
	ds->dataset.fill_defined = true;
	bytes_append_zero(&ds->dataset.fill.fixed, type->size);
	fill(type, ds->dataset.fill.fixed.data, &ds->dataset.fill);
	assert_int_equal(tree_finish(t, NULL), 0);
	return t;
}

static int show(void *ctx, const char *path, const char *what)
{
	print_error("%s: %s\n", path, what);
	return 0;
}

static void carried_types_are_loaded_again(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tree_diff_sink sink = {.difference = show};
		struct tree *again, *t = tree_of(&rows[i]);
		struct emitted e;
		struct err err = ERR_INIT;
		char value[64];
		uint64_t n;
		assert_int_equal(schema_all()[0]->writer->adopt(t, STORAGE(1), 1000, &err), 0);
		assert_int_equal(emitted_init(&e, t, &err), 0);
		const struct bytes *root = &e.docs[0].text; /* .group.json is the first key */
		assert_int_equal(bytes_append(&e.docs[0].text, "", 1), 0);
		assert_contains((const char *)root->data, rows[i].seen);
		e.docs[0].text.len--;
		snprintf(value, sizeof(value), "\"value\": %s",
			 rows[i].value[0] ? rows[i].value : "\"");
		assert_contains((const char *)root->data, value);
		assert_int_equal(!strstr((const char *)root->data, "\"encoding\": \"base64\""),
				 rows[i].value[0] != '\0');
		assert_int_equal(emitted_load(&e, &again, &err), 0);
		assert_int_equal(tree_problems(again), 0);
		assert_int_equal(tree_diff(t, again, 0, &sink, NULL, &n, &err), 0);
		assert_int_equal(n, 0);
		assert_true(dtype_equal(tree_object(t, 1)->o.dataset.type,
					tree_object(again, 1)->o.kind == OBJECT_DATASET
						? tree_object(again, 1)->o.dataset.type
						: tree_object(again, 2)->o.dataset.type));
		tree_free(again);
		emitted_release(&e);
		tree_free(t);
	}
}

/* ---- the member hsmount of a type ---- */

#define U2 "\"class\":\"H5T_INTEGER\",\"base\":\"H5T_STD_U16LE\""
#define BITS(s)                                                                                    \
	"{\"class\":\"H5T_BITFIELD\",\"size\":" s ",\"order\":\"LE\",\"offset\":0,\"precision\":"  \
	"8}"

#define SHORT                                                                                      \
	"{\"class\":\"H5T_INTEGER\",\"size\":2,\"order\":\"LE\",\"offset\":0,\"precision\":16}"
#define NAMED(name)                                                                                \
	"{" U2 ",\"hsmount\":{\"class\":\"H5T_COMPOUND\",\"size\":2,\"fields\":[{\"name\":" name   \
	",\"offset\":0,\"type\":" SHORT "}]}}"

#define REF	"\"class\":\"H5T_REFERENCE\",\"base\":\"H5T_STD_REF_OBJ\""
#define REFS(n) "\"hsmount\":{\"class\":\"H5T_ARRAY\",\"dims\":[" n "],\"base\":{" REF "}}"

static void damaged_exact_types_are_refused(void **state)
{
	static const struct {
		const char *type, *why;
	} bad[] = {
		{"{" U2 ",\"hsmount\":" BITS("1") "}", "not stored in the same bytes"},
		{"{" U2 ",\"hsmount\":" BITS("4") "}", "not stored in the same bytes"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_VLEN\",\"base\":" BITS("2") "}}",
		 "not stored in the same bytes"},
		{"{" REF "," REFS("2") "}", "not stored in the same bytes"},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"a\",\"type\":{" REF
		 "}},{\"name\":\"b\",\"type\":{" REF "}}]," REFS("3") "}",
		 "not stored in the same bytes"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_NONE\"}}", "unknown class"},
		{"{" U2 ",\"hsmount\":7}", "no class"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_BITFIELD\",\"size\":2,\"offset\":0,"
		 "\"precision\":8}}",
		 "order"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_BITFIELD\",\"size\":2,\"order\":\"LE\","
		 "\"offset\":9,\"precision\":8}}",
		 "bits 9 to 17"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_FLOAT\",\"size\":2,\"order\":\"LE\","
		 "\"offset\":0,\"precision\":16,\"sign\":15,\"exponent\":[7,8],\"mantissa\":"
		 "[0,7,2],\"padding\":[0,0,0]}}",
		 "exponent: not a list of 3"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_FLOAT\",\"size\":2,\"order\":\"LE\","
		 "\"offset\":0,\"precision\":16,\"sign\":15,\"exponent\":[7,8,127],\"mantissa\":"
		 "[0,7,3],\"padding\":[0,0,0]}}",
		 "out of range"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_COMPOUND\",\"size\":2,\"fields\":[]}}",
		 "compound with 0 fields"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_COMPOUND\",\"size\":3,\"fields\":[{\"name\":"
		 "\"a\",\"offset\":2,\"type\":" BITS("2") "}]}}",
		 "member a ends at 4"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_ENUM\",\"base\":{\"class\":\"H5T_INTEGER\","
		 "\"size\":2,\"order\":\"LE\",\"offset\":0,\"precision\":16,\"signed\":true},"
		 "\"names\":[\"a\"],\"values\":\"AA==\"}}",
		 "not 1 values of 2 bytes"},
		{NAMED("7"), "name: not a text"},
		{NAMED("\"\""), "member 0 has no name"},
		{NAMED("\"\\u0000\""), "name: it contains a NUL"},
		{NAMED("\"\\ud800\""), "a lone surrogate that stands for no byte"},
		{NAMED("\"\\udc7f\""), "a lone surrogate that stands for no byte"},
		{NAMED("\"\\udd00\""), "a lone surrogate that stands for no byte"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_ENUM\",\"base\":" SHORT
		 ",\"names\":[\"\\udfff\"],\"values\":\"AAA=\"}}",
		 "enum member 0: it contains a lone surrogate"},
		{"{" U2
		 ",\"hsmount\":{\"class\":\"H5T_OPAQUE\",\"size\":2,\"tag_base64\":\"AA==\"}}",
		 "tag_base64"},
		{"{" U2
		 ",\"hsmount\":{\"class\":\"H5T_ARRAY\",\"dims\":[0],\"base\":" BITS("2") "}}",
		 "dimension 0"},
		{"{" U2 ",\"hsmount\":{\"class\":\"H5T_REFERENCE\",\"base\":"
		 "\"H5T_STD_REF_DSETREG\"}}",
		 "unknown base"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct parsed p = parse_type(bad[i].type);
		assert_int_equal(p.rc, -EIO);
		assert_contains(p.err.msg, bad[i].why);
		parsed_release(&p);
	}
	struct parsed p = parse_type("{" U2 ",\"hsmount\":" BITS("2") "}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.datatype->cls, DTYPE_BITFIELD);
	assert_int_equal(p.o.datatype->integer.precision, 8);
	parsed_release(&p);
	/* The smallest and the largest byte, beside a character. */
	p = parse_type(NAMED("\"\\udc80\\u00fc\\udcff\""));
	assert_int_equal(p.rc, 0);
	assert_string_equal(p.o.datatype->compound.members[0].name, "\x80\xc3\xbc\xff");
	parsed_release(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(carried_types_are_loaded_again),
		cmocka_unit_test(damaged_exact_types_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
