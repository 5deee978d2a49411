/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_test.h"

static void atomic_types(void **state)
{
	static const struct {
		const char *json;
		enum dtype_class cls;
		uint32_t size;
		bool big_endian, is_signed;
	} rows[] = {
		{"\"H5T_STD_I8LE\"", DTYPE_INTEGER, 1, false, true},
		{"\"H5T_STD_U16BE\"", DTYPE_INTEGER, 2, true, false},
		{"\"H5T_STD_I32\"", DTYPE_INTEGER, 4, false, true},
		{"{\"class\":\"H5T_INTEGER\",\"base\":\"H5T_STD_U64BE\"}", DTYPE_INTEGER, 8, true,
		 false},
		{"{\"class\":\"H5T_INTEGER\",\"base\":{\"class\":\"H5T_INTEGER\",\"base\":\"H5T_"
		 "STD_"
		 "I16LE\"}}",
		 DTYPE_INTEGER, 2, false, true},
		{"\"H5T_STD_B8LE\"", DTYPE_BITFIELD, 1, false, false},
		{"{\"class\":\"H5T_BITFIELD\",\"base\":\"H5T_STD_B32BE\"}", DTYPE_BITFIELD, 4, true,
		 false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_type(rows[i].json);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.kind, OBJECT_DATATYPE);
		assert_int_equal(p.o.datatype->cls, rows[i].cls);
		assert_int_equal(p.o.datatype->size, rows[i].size);
		assert_int_equal(p.o.datatype->integer.big_endian, rows[i].big_endian);
		assert_int_equal(p.o.datatype->integer.is_signed, rows[i].is_signed);
		parsed_release(&p);
	}
	static const struct {
		const char *json;
		uint32_t size;
		bool big_endian;
	} floats[] = {
		{"{\"class\":\"H5T_FLOAT\",\"base\":\"H5T_IEEE_F16BE\"}", 2, true},
		{"\"H5T_IEEE_F32LE\"", 4, false},
		{"\"H5T_IEEE_F64\"", 8, false},
	};
	for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++) {
		struct parsed p = parse_type(floats[i].json);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.datatype->cls, DTYPE_FLOAT);
		assert_int_equal(p.o.datatype->size, floats[i].size);
		assert_int_equal(p.o.datatype->floating.big_endian, floats[i].big_endian);
		parsed_release(&p);
	}
}

static void strings(void **state)
{
	static const struct {
		const char *members;
		uint32_t size;
		enum dtype_pad pad;
		enum dtype_cset cset;
	} rows[] = {
		{"\"length\":5", 5, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII},
		{"\"length\":5,\"strPad\":\"H5T_STR_SPACEPAD\",\"charSet\":\"H5T_CSET_UTF8\"", 5,
		 DTYPE_PAD_SPACEPAD, DTYPE_CSET_UTF8},
		{"\"length\":1,\"strPad\":\"H5T_STR_NULLTERM\",\"charSet\":\"H5T_CSET_ASCII\"", 1,
		 DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII},
		{"\"length\":\"H5T_VARIABLE\"", 16, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII},
		{"\"length\":\"H5T_VARIABLE\",\"strPad\":\"H5T_STR_NULLPAD\","
		 "\"charSet\":\"H5T_CSET_UTF8\"",
		 16, DTYPE_PAD_NULLPAD, DTYPE_CSET_UTF8},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char json[256];
		snprintf(json, sizeof(json), "{\"class\":\"H5T_STRING\",%s}", rows[i].members);
		struct parsed p = parse_type(json);
		assert_int_equal(p.rc, 0);
		const struct dtype *t = p.o.datatype;
		bool vlen = t->cls == DTYPE_VLEN;
		assert_int_equal(vlen, i >= 3);
		assert_int_equal(t->size, rows[i].size);
		assert_int_equal(vlen ? t->vlen.pad : t->string.pad, rows[i].pad);
		assert_int_equal(vlen ? t->vlen.cset : t->string.cset, rows[i].cset);
		assert_true(!vlen || t->vlen.is_string);
		parsed_release(&p);
	}
}

static void enums(void **state)
{
	struct parsed p = parse_type("{\"class\":\"H5T_ENUM\",\"base\":\"H5T_STD_I16BE\","
				     "\"mapping\":{\"RED\":1,\"G\\u00fcn\":-2,\"BIG\":\"3\"}}");
	assert_int_equal(p.rc, 0);
	const struct dtype *t = p.o.datatype;
	assert_int_equal(t->cls, DTYPE_ENUM);
	assert_int_equal(t->enumeration.n, 3);
	assert_string_equal(t->enumeration.names[0], "RED");
	assert_string_equal(t->enumeration.names[1], "Gün");
	assert_hex(t->enumeration.values, 6, "0001fffe0003");
	parsed_release(&p);
	p = parse_type("{\"class\":\"H5T_ENUM\",\"base\":{\"class\":\"H5T_INTEGER\",\"base\":"
		       "\"H5T_STD_I8LE\"},\"members\":[{\"name\":\"FALSE\",\"value\":false},"
		       "{\"name\":\"TRUE\",\"value\":true}]}");
	assert_int_equal(p.rc, 0);
	assert_hex(p.o.datatype->enumeration.values, 2, "0001");
	parsed_release(&p);
}

static void compound_types(void **state)
{
	struct parsed p = parse_type(
		"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"a\",\"type\":\"H5T_STD_I8LE\"}"
		","
		"{\"name\":\"b\",\"type\":{\"class\":\"H5T_ARRAY\",\"dims\":[2,3],\"base\":"
		"\"H5T_IEEE_F32BE\"}},{\"name\":\"c\",\"type\":{\"class\":\"H5T_VLEN\",\"size\":"
		"\"H5T_VARIABLE\",\"base\":\"H5T_STD_I32\"}},{\"name\":\"d\",\"type\":{\"class\":"
		"\"H5T_REFERENCE\",\"base\":\"H5T_STD_REF_OBJ\",\"length\":48}}]}");
	assert_int_equal(p.rc, 0);
	const struct dtype *t = p.o.datatype;
	assert_int_equal(t->compound.n, 4);
	assert_int_equal(t->size, 1 + 24 + 16 + 8); /* packed */
	assert_int_equal(t->compound.members[3].offset, 41);
	assert_int_equal(t->compound.members[1].type->array.rank, 2);
	assert_true(t->has_vlen && t->has_ref && t->has_array);
	parsed_release(&p);
	p = parse_type("{\"class\":\"H5T_ARRAY\",\"dims\":7,\"base\":\"H5T_STD_U8LE\"}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.datatype->array.rank, 1);
	assert_int_equal(p.o.datatype->size, 7);
	parsed_release(&p);
	p = parse_type("{\"class\":\"H5T_OPAQUE\",\"size\":6,\"tag\":\"t\\u00e4g\"}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.datatype->size, 6);
	assert_string_equal(p.o.datatype->opaque.tag, "täg");
	parsed_release(&p);
	p = parse_type("\"H5T_STD_REF_DSETREG\"");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.datatype->reference.kind, DTYPE_REF_REGION);
	parsed_release(&p);
}

static void committed(void **state)
{
	struct parsed p = parse_attr(
		"{\"class\":\"H5T_INTEGER\",\"base\":\"H5T_STD_I32LE\",\"id\":\"" TYPE_ID "\"}",
		"\"shape\":{\"class\":\"H5S_SCALAR\"},\"value\":1");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.attrs[0].committed, 3);
	parsed_release(&p);
	/* The id is not in the domain, or not that of a datatype: the type is valid without it. */
	static const char *const ids[] = {"t-99999999-44556677-0003-000000-000000", DATASET_ID, ""};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char type[256];
		snprintf(type, sizeof(type),
			 "{\"class\":\"H5T_INTEGER\",\"base\":\"H5T_STD_I32LE\",\"id\":\"%s\"}",
			 ids[i]);
		p = parse_attr(type, "\"shape\":{\"class\":\"H5S_SCALAR\"},\"value\":1");
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.nattrs, 1);
		assert_true(p.o.attrs[0].committed == OBJECT_NONE);
		parsed_release(&p);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *json, *why;
	} rows[] = {
		{"null", "no class"},
		{"7", "no class"},
		{"{}", "no class"},
		{"\"\"", "unknown base"},
		{"\"H5T_STD_I7LE\"", "unknown base \"H5T_STD_I7LE\""},
		{"\"H5T_STD_I32XE\"", "unknown base"},
		{"\"H5T_STD_\"", "unknown base"},
		{"\"H5T_IEEE_F8LE\"", "unknown base"},
		{"\"H5T_IEEE_F128LE\"", "unknown base"},
		{"\"" TYPE_ID "\"", "without a description"},
		{"\"datatypes/" TYPE_ID "\"", "without a description"},
		{"{\"class\":\"H5T_TIME\"}", "unknown class"},
		{"{\"class\":\"H5T_INTEGER\"}", "missing"},
		{"{\"class\":\"H5T_FLOAT\",\"base\":\"H5T_STD_I8LE\"}", "another class"},
		{"{\"class\":\"H5T_STRING\"}", "length: missing"},
		{"{\"class\":\"H5T_STRING\",\"length\":0}", "length: not a size"},
		{"{\"class\":\"H5T_STRING\",\"length\":-1}", "length: not a size"},
		{"{\"class\":\"H5T_STRING\",\"length\":4294967296}", "length: not a size"},
		{"{\"class\":\"H5T_STRING\",\"length\":1,\"strPad\":\"x\"}", "unknown strPad"},
		{"{\"class\":\"H5T_STRING\",\"length\":1,\"charSet\":\"x\"}", "unknown charSet"},
		{"\"H5T_OPAQUE\"", "unknown base"},
		{"{\"class\":\"H5T_OPAQUE\",\"tag\":\"x\"}", "size: missing"},
		{"{\"class\":\"H5T_OPAQUE\",\"size\":1,\"tag\":\"\\u0000\"}",
		 "tag: it contains a NUL"},
		{"{\"class\":\"H5T_REFERENCE\",\"base\":\"H5T_STD_REF_X\"}", "unknown base"},
		{"{\"class\":\"H5T_ENUM\",\"base\":\"H5T_IEEE_F32LE\",\"mapping\":{\"a\":1}}",
		 "not an integer"},
		{"{\"class\":\"H5T_ENUM\",\"base\":\"H5T_STD_I8LE\",\"mapping\":{\"a\":1.5}}",
		 "not an integer"},
		{"{\"class\":\"H5T_ENUM\",\"base\":\"H5T_STD_I8LE\",\"mapping\":[{\"value\":1}]}",
		 "no name"},
		{"{\"class\":\"H5T_COMPOUND\"}", "0 fields"},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"type\":\"H5T_STD_I8LE\"}]}",
		 "compound field 0: no name"},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"x\",\"type\":\"H5T_STD_"
		 "I8LE\"},"
		 "{\"name\":\"y\",\"type\":\"H5T_STD_I7LE\"}]}",
		 "type: compound field 1 \"y\": unknown base \"H5T_STD_I7LE\""},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"x\",\"type\":\"H5T_STD_"
		 "I8LE\"},"
		 "{\"name\":\"x\",\"type\":\"H5T_STD_I8LE\"}]}",
		 "x"},
		{"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"\\udc00\",\"type\":"
		 "\"H5T_STD_I8LE\"}]}",
		 "surrogate"},
		{"{\"class\":\"H5T_ARRAY\",\"base\":\"H5T_STD_I8LE\"}", "dims: missing"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[],\"base\":\"H5T_STD_I8LE\"}", "type"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[0],\"base\":\"H5T_STD_I8LE\"}", "type"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[1073741824,1073741824],\"base\":"
		 "\"H5T_STD_I8LE\"}",
		 "type"},
		{"{\"class\":\"H5T_VLEN\"}", "vlen base: missing"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_type(rows[i].json);
		if (p.rc != -EIO)
			fail_msg("%d for: %s", p.rc, rows[i].json);
		assert_contains(p.err.msg, "datatype " TYPE_ID ": ");
		assert_contains(p.err.msg, rows[i].why);
		parsed_release(&p);
	}
}

static void depth_is_limited(void **state)
{
	char json[4096] = "";
	size_t n = 0;
	unsigned int levels = DTYPE_MAX_DEPTH + 1;
	for (unsigned int i = 0; i < levels; i++)
		n += (size_t)snprintf(json + n, sizeof(json) - n,
				      "{\"class\":\"H5T_VLEN\",\"base\":");
	n += (size_t)snprintf(json + n, sizeof(json) - n, "\"H5T_STD_I8LE\"");
	memset(json + n, '}', levels);
	json[n + levels] = '\0';
	struct parsed p = parse_type(json);
	assert_int_equal(p.rc, -EIO);
	assert_contains(p.err.msg, "nested deeper than");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_types),
		cmocka_unit_test(strings),
		cmocka_unit_test(enums),
		cmocka_unit_test(compound_types),
		cmocka_unit_test(committed),
		cmocka_unit_test(refuses),
		cmocka_unit_test(depth_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
