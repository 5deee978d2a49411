/* SPDX-License-Identifier: Apache-2.0 */
/* Values of attributes, as JSON and as base64. */
#include "schema_test.h"

#include <time.h>

#define I8     "\"H5T_STD_I8LE\""
#define I32    "\"H5T_STD_I32LE\""
#define F64    "\"H5T_IEEE_F64LE\""
#define F16    "\"H5T_IEEE_F16BE\""
#define REF    "\"H5T_STD_REF_OBJ\""
#define VSTR   "{\"class\":\"H5T_STRING\",\"length\":\"H5T_VARIABLE\"}"
#define VI16   "{\"class\":\"H5T_VLEN\",\"base\":\"H5T_STD_I16\"}"
#define STR(n) "{\"class\":\"H5T_STRING\",\"length\":" #n "}"
#define SPACED "{\"class\":\"H5T_STRING\",\"length\":4,\"strPad\":\"H5T_STR_SPACEPAD\"}"
#define BOOL   "{\"class\":\"H5T_ENUM\",\"base\":" I8 ",\"mapping\":{\"FALSE\":0,\"TRUE\":1}}"
#define ARR3   "{\"class\":\"H5T_ARRAY\",\"dims\":[3],\"base\":" I8 "}"
#define PAIR                                                                                       \
	"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"x\",\"type\":" I8                     \
	"},{\"name\":\"s\",\"type\":" STR(2) "}]}"
/* {n, s}: a number and a variable-length string */
#define NAMED                                                                                      \
	"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"n\",\"type\":" I8                     \
	"},{\"name\":\"s\",\"type\":" VSTR "}]}"
#define TEXTS "{\"class\":\"H5T_ARRAY\",\"dims\":[2],\"base\":" VSTR "}"
#define REFS  "{\"class\":\"H5T_ARRAY\",\"dims\":[2],\"base\":" REF "}"
#define MIXED                                                                                      \
	"{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"s\",\"type\":{\"class\":\"H5T_"       \
	"STRING\","                                                                                \
	"\"length\":2,\"strPad\":\"H5T_STR_SPACEPAD\"}},{\"name\":\"a\",\"type\":{\"class\":"      \
	"\"H5T_"                                                                                   \
	"ARRAY\",\"dims\":[2,2],\"base\":" F16 "}},{\"name\":\"x\",\"type\":" I8 "}]}"
#define ONE	  "{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"x\",\"type\":" I8 "}]}"
#define DIMS(d)	  "\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":" d "}"
#define SCALAR	  "\"shape\":{\"class\":\"H5S_SCALAR\"}"
#define VALUE(v)  ",\"value\":" v
#define BASE64(v) ",\"encoding\":\"base64\",\"value\":\"" v "\""

/* Appends an element to out as hex, depth first. A sequence is in []; - is a sequence without a
 * value or a null reference. */
static void show(const struct dtype *t, const struct elems *e, const uint8_t *at, char *out,
		 size_t cap)
{
	size_t n = strlen(out);
	if (t->cls == DTYPE_VLEN) {
		struct elems_vlen v = elems_get_vlen(at);
		snprintf(out + n, cap - n, v.is_set ? "[" : "-");
		if (!v.is_set)
			return;
		for (uint32_t i = 0; i < v.count; i++)
			show(t->vlen.base, e, e->heap.data + v.offset + i * t->vlen.base->size, out,
			     cap);
		n = strlen(out);
		snprintf(out + n, cap - n, "]");
	} else if (t->cls == DTYPE_REFERENCE) {
		snprintf(out + n, cap - n, "%c", at[0] ? '0' + at[0] : '-');
	} else if (t->cls == DTYPE_COMPOUND) {
		for (uint32_t i = 0; i < t->compound.n; i++)
			show(t->compound.members[i].type, e, at + t->compound.members[i].offset,
			     out, cap);
	} else if (t->cls == DTYPE_ARRAY) {
		for (uint64_t i = 0; i < t->array.nelems; i++)
			show(t->array.base, e, at + i * t->array.base->size, out, cap);
	} else {
		hex_of(at, t->size, out + n, cap - n);
	}
}

struct row {
	const char *type, *members;
	const char *expected; /* "!reason": the attribute is left out for this reason */
};

static void check(const struct row *row)
{
	char got[1024] = "";
	struct parsed p = parse_attr(row->type, row->members);
	assert_int_equal(p.rc, 0);
	if (row->expected[0] == '!') {
		if (p.o.nattrs != 0 || p.skips != 1)
			fail_msg("accepted: %s %s", row->type, row->members);
		assert_contains(p.what, "attribute \"a\": ");
		assert_contains(p.what, row->expected + 1);
		parsed_release(&p);
		return;
	}
	if (p.o.nattrs != 1)
		fail_msg("%s for: %s %s", p.what, row->type, row->members);
	const struct attribute *a = &p.o.attrs[0];
	const struct elems_visitor none = {0};
	uint8_t *bytes = malloc(attribute_bytes(a) + 1);
	assert_non_null(bytes);
	assert_true(elems_end(&a->value) <= attribute_bytes(a));
	assert_true(dtype_is_plain(a->type) || a->value.fixed.len % a->type->size == 0);
	elems_read(&a->value, 0, bytes, attribute_bytes(a));
	assert_int_equal(elems_visit(a->type, bytes, a->space.nelems, a->value.heap.data,
				     a->value.heap.len, &none, NULL),
			 0);
	for (uint64_t i = 0; i < a->space.nelems; i++)
		show(a->type, &a->value, bytes + i * a->type->size, got, sizeof(got));
	if (strcmp(got, row->expected) != 0)
		fail_msg("%s, not %s for: %s %s", got, row->expected, row->type, row->members);
	free(bytes);
	parsed_release(&p);
}

static void check_all(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&rows[i]);
}
#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof((rows)[0]))

static void integers(void **state)
{
	static const struct row rows[] = {
		{I32, SCALAR VALUE("-2"), "feffffff"},
		{"\"H5T_STD_I32BE\"", SCALAR VALUE("-2"), "fffffffe"},
		{I32, SCALAR VALUE("[7]"), "07000000"},
		{I32, SCALAR VALUE("[[7]]"), "07000000"},
		{I32, DIMS("[1]") VALUE("5"), "05000000"},
		{I32, DIMS("[1]") VALUE("[\"5\"]"), "05000000"},
		{I32, DIMS("[1]") VALUE("[\" -5 \"]"), "fbffffff"},
		{I32, DIMS("[1]") VALUE("[\"2.7\"]"), "02000000"},
		{I32, DIMS("[2]") VALUE("[2.7,-2.7]"), "02000000feffffff"},
		{I32, DIMS("[2]") VALUE("[1,null]"), "0100000000000000"},
		{I32, DIMS("[2]") VALUE("[true,false]"), "0100000000000000"},
		{I32, DIMS("[2]") VALUE("null"), "0000000000000000"},
		{I32, DIMS("[2]"), "0000000000000000"},
		{I32, DIMS("[2]") ",\"encoding\":\"base64\"", "0000000000000000"},
		{I8, DIMS("[2]") VALUE("[300,-129]"), "2c7f"},
		{I8, DIMS("[3]") VALUE("[NaN,Infinity,-Infinity]"), "00ff00"},
		{"\"H5T_STD_U64LE\"", SCALAR VALUE("18446744073709551615"), "ffffffffffffffff"},
		{"\"H5T_STD_U64BE\"", SCALAR VALUE("9223372036854775808"), "8000000000000000"},
		{"\"H5T_STD_I64LE\"", SCALAR VALUE("-9223372036854775808"), "0000000000000080"},
		{"\"H5T_STD_I64BE\"", SCALAR VALUE("9007199254740993"), "0020000000000001"},
		{"\"H5T_STD_I64BE\"", SCALAR VALUE("18446744073709551617"), "0000000000000001"},
		{"\"H5T_STD_I64BE\"", SCALAR VALUE("1e30"), "ffffffffffffffff"},
		{"\"H5T_STD_B8LE\"", SCALAR VALUE("165"), "a5"},
		{I32, SCALAR VALUE("\"0x10\""), "!not a number"},
		{I32, SCALAR VALUE("\"\""), "!not a number"},
		{I32, SCALAR VALUE("\"5\\u0000\""), "!not a number"},
		{I32, SCALAR VALUE("{}"), "!not a number"},
		{I32, SCALAR VALUE("[]"), "!not a number"},
		{I32, SCALAR VALUE("[1,2]"), "!not a number"},
	};
	CHECK(rows);
}

static void floats(void **state)
{
	static const struct row rows[] = {
		{F64, DIMS("[2]") VALUE("[1,2.5]"), "000000000000f03f0000000000000440"},
		{F64, SCALAR VALUE("NaN"), "000000000000f87f"},
		{F64, SCALAR VALUE("[\"nan\"]"), "000000000000f87f"},
		{F64, SCALAR VALUE("NaN") ",\"hsmount\":{\"value\":\"AQAAAAAA+P8=\"}",
		 "010000000000f8ff"},
		{F64, SCALAR VALUE("NaN") ",\"hsmount\":{\"value\":\"AQA=\"}", "!bytes"},
		{F64, SCALAR VALUE("NaN") ",\"hsmount\":{\"value\":1.5}", "!not text"},
		{F64, DIMS("[2]") VALUE("[0,null]"), "0000000000000000000000000000f87f"},
		{F64, SCALAR VALUE("null"), "0000000000000000"},
		{F64, DIMS("[2]") VALUE("[Infinity,-Infinity]"),
		 "000000000000f07f000000000000f0ff"},
		{F64, SCALAR VALUE("1e400"), "000000000000f07f"},
		{F64, SCALAR VALUE("1.5e400"), "000000000000f07f"},
		{F64, SCALAR VALUE("-1.5E+400"), "000000000000f0ff"},
		{F64, SCALAR VALUE("1.5e-400"), "0000000000000000"},
		{F64, SCALAR VALUE("1.5e100"), "3b255fb8836ebb54"},
		{F64, SCALAR VALUE("1.5e99"), "63b7e5f902f28554"},
		{F64, SCALAR VALUE("5e-324"), "0100000000000000"},
		{F64, SCALAR VALUE("1e-400"), "0000000000000000"},
		{F64, SCALAR VALUE("18446744073709551615"), "000000000000f043"},
		{F64, SCALAR VALUE("\"-1.5e0\""), "000000000000f8bf"},
		{"\"H5T_IEEE_F32BE\"", DIMS("[3]") VALUE("[0.1,1e39,true]"),
		 "3dcccccd7f8000003f800000"},
		/* binary16: ties to even, the greatest, overflow, subnormals */
		{"\"H5T_IEEE_F16BE\"", DIMS("[4]") VALUE("[1.5,-2,0.1,65504]"), "3e00c0002e667bff"},
		{"\"H5T_IEEE_F16BE\"", DIMS("[4]") VALUE("[65519.99,65520,-65520,1e9]"),
		 "7bff7c00fc007c00"},
		{"\"H5T_IEEE_F16BE\"", DIMS("[4]") VALUE("[2049,2051,1.0004882812500002,-0.0]"),
		 "680068023c018000"},
		{"\"H5T_IEEE_F16BE\"",
		 DIMS("[5]") VALUE("[6.103515625e-05,6.097555160522461e-05,5.960464477539063e-08,"
				   "2.980232238769531e-08,6.1005353927612305e-05]"),
		 "040003ff000100000400"},
		{"\"H5T_IEEE_F16BE\"", DIMS("[2]") VALUE("[NaN,2047.6]"), "7e006800"},
		{F64, SCALAR VALUE("\"nan(1)\""), "!not a number"},
		{F64, SCALAR VALUE("\"0x1p3\""), "!not a number"},
		{F64, SCALAR VALUE("\"1.5.\""), "!\"1.5.\" is not a number"},
	};
	CHECK(rows);
}

static void text(void **state)
{
	static const struct row rows[] = {
		{STR(4), SCALAR VALUE("\"ab\""), "61620000"},
		{SPACED, DIMS("[2]") VALUE("[\"ab\",null]"), "6162202020202020"},
		{STR(3), SCALAR VALUE("\"abcdef\""), "616263"},
		{STR(3), SCALAR VALUE("\"a\\u00e9\\u00e9\""), "61c3a9"},
		{STR(2), SCALAR VALUE("\"a\\u00e9\""), "61c3"},
		{STR(4), SCALAR VALUE("\"a\\u0000b\""), "61006200"},
		{STR(4), SCALAR VALUE("\"\\u0010\""), "10000000"},
		{STR(4), SCALAR VALUE("\"\\udce9\""), "edb3a900"},
		{"{\"class\":\"H5T_OPAQUE\",\"size\":4,\"tag\":\"\"}", SCALAR VALUE("\"xyz\""),
		 "78797a00"},
		{VSTR, DIMS("[3]") VALUE("[\"ab\",null,\"\"]"), "[6162]-[]"},
		{VSTR, DIMS("[2]") VALUE("null"), "--"},
		{VSTR, DIMS("[2]") BASE64("AAAAAAEAAABh"), "[][61]"},
		{VSTR, SCALAR VALUE("[\"a\\u0000b\"]"), "[610062]"},
		{STR(3), SCALAR VALUE("5"), "!not text"},
		{VSTR, SCALAR VALUE("{}"), "!not text"},
	};
	CHECK(rows);
}

static void enums_and_references(void **state)
{
	static const struct row rows[] = {
		{BOOL, DIMS("[5]") VALUE("[1,0,true,\"TRUE\",\"1\"]"), "0100010101"},
		{BOOL, SCALAR VALUE("\"MAYBE\""), "!\"MAYBE\" is not a number"},
		{REF,
		 DIMS("[4]") VALUE("[\"groups/" ROOT_ID "\",\"datasets/" DATASET_ID "\",\"" TYPE_ID
				   "\",\"" GROUP_ID "\"]"),
		 "1342"},
		{REF,
		 DIMS("[4]") VALUE("[\"\",null,\"datasets/" OTHER_ID "\",\"<HDF5 object "
				   "reference>\"]"),
		 "----"},
		{"\"H5T_STD_REF_DSETREG\"", SCALAR VALUE("\"anything\""), "-"},
		{REF, SCALAR VALUE("7"), "!not text"},
	};
	CHECK(rows);
}

static void shapes(void **state)
{
	static const struct row rows[] = {
		{I8, DIMS("[2,2]") VALUE("[[1,2],[3,4]]"), "01020304"},
		{I8, DIMS("[2,2]") VALUE("[1,2,3,4]"), "01020304"},
		{I8, DIMS("[1,3]") VALUE("[1,2,3]"), "010203"},
		{I8, DIMS("[3,1]") VALUE("[1,2,3]"), "010203"},
		{I8, DIMS("[3]") VALUE("[[1,2,3]]"), "010203"},
		{I8, DIMS("[2,1,2]") VALUE("[[[1,2]],[[3,4]]]"), "01020304"},
		{I8, DIMS("[2,1,2]") VALUE("[[1,2],[3,4]]"), "01020304"},
		{I8, DIMS("[0]") VALUE("[]"), ""},
		{I8, DIMS("[0]") VALUE("null"), ""},
		{I8, DIMS("[]") VALUE("5"), "05"},
		{I8, "\"shape\":{\"class\":\"H5S_NULL\"}" VALUE("null"), ""},
		{I8, DIMS("[3]") VALUE("[1,2]"), "!value: 2 values instead of 3"},
		{I8, DIMS("[3]") VALUE("[1,2,3,4]"), "!value: 4 values instead of 3"},
		{I8, DIMS("[3]") VALUE("1"), "!value: 1 value instead of 3"},
		{I8, DIMS("[2,2]") VALUE("[[1,2],[3,\"x\"]]"), "!value: [1]: [1]: \"x\""},
		{I8, DIMS("[2,2]") VALUE("[[1,2],[3]]"), "!value: [1]: 1 values"},
		{I8, DIMS("[9223372036854775807,2]"), "!shape: "},
		{I8, DIMS("[300000000]"), "!value: 300000000 bytes, the limit"},
		/* null, and null in brackets, may stand for many elements */
		{I8, DIMS("[3]") VALUE("[null]"), "000000"},
		{I8, DIMS("[2,2]") VALUE("[null,[3,4]]"), "00000304"},
		{I8, DIMS("[2,2]") VALUE("[[1,2],null]"), "01020000"},
		{I8, DIMS("[3,2]") VALUE("[null,[1,2],null]"), "000001020000"},
		{F16, DIMS("[2]") VALUE("[null]"), "7e007e00"},
		{F16, DIMS("[2,2]") VALUE("[null,[1,2]]"), "7e007e003c004000"},
		{F16, DIMS("[2,2]") VALUE("[[1,2],null]"), "3c0040007e007e00"},
		{F16, DIMS("[3,2]") VALUE("[null,null,[1,2]]"), "7e007e007e007e003c004000"},
		{F16, DIMS("[3,2]") VALUE("[null,[1,2],null]"), "7e007e003c0040007e007e00"},
		{SPACED, DIMS("[2,2]") VALUE("[null,[\"a\",\"\"]]"),
		 "20202020202020206120202020202020"},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[2,2],\"base\":" F16 "}",
		 DIMS("[2]") VALUE("[[null,[1,2]],[[1,2],null]]"),
		 "7e007e003c0040003c0040007e007e00"},
		{MIXED, DIMS("[2]") VALUE("[[\"a\",[null,null],1],[\"b\",[null,[1,2]],2]]"),
		 "61207e007e007e007e000162207e007e003c00400002"},
		{REFS, DIMS("[2]") VALUE("[[null,\"" DATASET_ID "\"],null]"), "-3--"},
		{VI16, DIMS("[2,2]") VALUE("[null,[[1],null]]"), "--[0100]-"},
		{VSTR, DIMS("[2,2]") VALUE("[null,[\"\",null]]"), "--[]-"},
		{F64, DIMS("[4611686018427387904]"), "!value: value size overflows"},
		{I8, DIMS("[-1]"), "!shape: dims: dimension 0 is not a size"},
		{I8, DIMS("[1.0]"), "!shape: dims: dimension 0 is not a size"},
		{I8, DIMS("\"3\""), "!shape: dims: not a list"},
		{I8, "\"shape\":{}", "!shape: no class"},
		{I8, "\"value\":1", "!shape: missing"},
		{I8, "\"shape\":{\"class\":\"H5S_X\"}", "!shape: unknown class \"H5S_X\""},
	};
	CHECK(rows);
}

static void compounds_arrays_sequences(void **state)
{
	static const struct row rows[] = {
		{PAIR, SCALAR VALUE("[1,\"ab\"]"), "016162"},
		{PAIR, SCALAR VALUE("[[1,\"ab\"]]"), "016162"},
		{PAIR, DIMS("[1]") VALUE("[1,\"ab\"]"), "016162"},
		{PAIR, DIMS("[2]") VALUE("[[1,\"ab\"],[2,\"c\"]]"), "016162026300"},
		{PAIR, DIMS("[1,1]") VALUE("[[[1,\"ab\"]]]"), "016162"},
		{PAIR, DIMS("[2]") VALUE("[null,[2,\"c\"]]"), "000000026300"},
		{ONE, DIMS("[2]") VALUE("[[1],2]"), "0102"},
		{ARR3, SCALAR VALUE("[1,2,3]"), "010203"},
		{ARR3, DIMS("[2]") VALUE("[[1,2,3],[4,5,6]]"), "010203040506"},
		{VI16, DIMS("[3]") VALUE("[[1,2],[],null]"), "[01000200][]-"},
		{VI16, SCALAR VALUE("[]"), "[]"},
		{VI16, SCALAR VALUE("[1,2,3]"), "[010002000300]"},
		{VI16, SCALAR VALUE("[[1,2,3]]"), "[010002000300]"},
		{VI16, DIMS("[2]") VALUE("[5,[6]]"), "[0500][0600]"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" VI16 "}",
		 DIMS("[2]") VALUE("[[[1,2],[3]],[[],[4]]]"), "[[01000200][0300]][[][0400]]"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" VSTR "}", SCALAR VALUE("[\"a\",\"bc\"]"),
		 "[[61][6263]]"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" PAIR "}",
		 SCALAR VALUE("[[1,\"a\"],[2,\"b\"]]"), "[016100026200]"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" REF "}",
		 SCALAR VALUE("[\"" DATASET_ID "\",\"\"]"), "[3-]"},
		{PAIR, SCALAR VALUE("[1]"), "!1 values for a compound of 2"},
		{PAIR, SCALAR VALUE("7"), "!0 values for a compound of 2"},
		{PAIR, DIMS("[2]") VALUE("[[1,\"a\"],[1,2]]"),
		 "!value: [1]: field \"s\": not text"},
		{ARR3, SCALAR VALUE("[1,2]"), "!2 values instead of 3"},
		{VI16, SCALAR VALUE("[1,\"x\"]"), "!value: item 1: \"x\" is not a number"},
	};
	CHECK(rows);
}

static void base64(void **state)
{
	static const struct row rows[] = {
		{STR(4), SCALAR BASE64("6XTpJQ=="), "e974e925"},
		{STR(6), SCALAR BASE64("6XTpJQ=="), "e974e9250000"},
		{"\"H5T_STD_U16BE\"", DIMS("[3]") BASE64("AAEAAgAD"), "000100020003"},
		{PAIR, DIMS("[2]") BASE64("AWFiAmNk"), "016162026364"},
		{VI16, DIMS("[2]") BASE64("BAAAAAEAAgAAAAAA"), "[01000200][]"},
		{VSTR, DIMS("[2]") BASE64("AgAAAP9hAQAAAGI="), "[ff61][62]"},
		/* datasets/d-00112233-44556677-0002-000000-000000 and a NUL */
		{REF,
		 SCALAR BASE64("ZGF0YXNldHMvZC0wMDExMjIzMy00NDU1NjY3Ny0wMDAyLTAwMDAwMC0wMDAwMDAA"),
		 "3"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" VI16 "}",
		 SCALAR BASE64("CgAAAAIAAAABAAAAAAA="), "[[0100][]]"},
		/* compounds and arrays whose parts have no fixed size */
		{NAMED, DIMS("[2]") BASE64("AQIAAABhYgIAAAAA"), "01[6162]02[]"},
		{TEXTS, DIMS("[2]") BASE64("AQAAAGEAAAAAAgAAAGJjAQAAAGQ="), "[61][][6263][64]"},
		{"{\"class\":\"H5T_VLEN\",\"base\":" NAMED "}",
		 SCALAR BASE64("DAAAAAECAAAAYWICAAAAAA=="), "[01[6162]02[]]"},
		{NAMED, SCALAR BASE64("AQ=="), "!element 0: field \"s\": base64: a sequence"},
		{NAMED, DIMS("[2]") BASE64("AQAAAAA="), "!element 1: field \"n\": base64: too few"},
		{TEXTS, SCALAR BASE64("AQAAAGEDAAAAYg=="), "!a sequence states 3 bytes, more"},
		{I8, DIMS("[0]") BASE64(""), ""},
		{STR(4), SCALAR BASE64("6XTpJQ"), "!not base64"},
		{STR(4), SCALAR BASE64("6XTpJQ=A"), "!not base64"},
		{STR(4), SCALAR BASE64("6XTpJR=="), "!not base64"},
		{STR(4), SCALAR BASE64("6XT pJQ="), "!not base64"},
		{STR(4), SCALAR BASE64("=AAA"), "!not base64"},
		{STR(2), SCALAR BASE64("6XTpJQ=="), "!2 bytes too many"},
		{I8, DIMS("[4]") BASE64("AAEC"), "!element 3: base64: too few"},
		{I8, DIMS("[2]") BASE64("AAEC"), "!1 bytes too many"},
		{VI16, SCALAR BASE64("AwAAAAEAAgAD"),
		 "!a sequence has 3 bytes, not a multiple of the item size 2"},
		{VI16, SCALAR BASE64("CQAAAAEAAgAD"), "!a sequence states 9 bytes, more"},
		{VI16, SCALAR BASE64("/////w=="), "!a sequence states 4294967295 bytes, more"},
		{REF, SCALAR BASE64("ZGF0"), "!inside a reference"},
		{I8, SCALAR ",\"encoding\":\"gzip\",\"value\":1", "!unknown encoding"},
		{I8, SCALAR ",\"encoding\":\"base64\",\"value\":1", "!not text"},
	};
	CHECK(rows);
}

/* A million elements are parsed in one pass, without an allocation for each. */
static void many_elements(void **state)
{
	enum { N = 1000000 };
	size_t cap = 12 * (size_t)N;
	char *text = malloc(cap);
	assert_non_null(text);
	size_t n = (size_t)snprintf(text, cap,
				    "{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":{\"type\":" I32
						       "," DIMS("[1000,1000]") ",\"value\":[");
	for (int i = 0; i < N; i++)
		n += (size_t)snprintf(text + n, cap - n, "%s%d", i ? "," : "", i);
	n += (size_t)snprintf(text + n, cap - n, "]}}}");
	struct parsed p = parse_bytes(GROUP_ID, text, n);
	free(text);
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.nattrs, 1);
	assert_int_equal(p.o.attrs[0].value.fixed.len, 4 * N);
	assert_hex(p.o.attrs[0].value.fixed.data + 4 * (N - 1), 4, "3f420f00");
	parsed_release(&p);
}

/* Elements that were never set take no memory. */
static void unset_elements_take_no_memory(void **state)
{
	static const struct {
		const char *type, *members;
		size_t memory;	   /* bytes allocated */
		uint64_t repeated; /* bytes of repetitions of a null that is not zero */
	} rows[] = {
		{I8, DIMS("[268435455]"), 0, 0},
		{I8, DIMS("[268435455]") VALUE("null"), 0, 0},
		{I8, DIMS("[268435455]") VALUE("[null]"), 0, 0},
		{I8, DIMS("[1,268435455]") VALUE("[null]"), 0, 0},
		{I8, DIMS("[3,80000000]") VALUE("[null,null,null]"), 0, 0},
		{F16, DIMS("[1,134217728]") VALUE("[null]"), 2, 268435454},
		{F16, DIMS("[4,33554432]") VALUE("[null,null,null,null]"), 2, 268435454},
		{SPACED, DIMS("[67108864]") VALUE("[null]"), 4, 268435452},
		{"{\"class\":\"H5T_STRING\",\"length\":268435456}", SCALAR VALUE("\"ab\""), 2, 0},
		{"{\"class\":\"H5T_STRING\",\"length\":268435456,\"strPad\":"
		 "\"H5T_STR_SPACEPAD\"}",
		 SCALAR VALUE("\"ab\""), 3, 268435453},
		{"{\"class\":\"H5T_STRING\",\"length\":268435456}", SCALAR BASE64("6XTpJQ=="), 4,
		 0},
		{VSTR, DIMS("[1,16777216]") VALUE("[null]"), 0, 0},
		{REF, DIMS("[33554432]") VALUE("[null]"), 0, 0},
		{PAIR, DIMS("[1,80000000]") VALUE("[null]"), 0, 0},
		{ARR3, DIMS("[1,80000000]") VALUE("[null]"), 0, 0},
		{"{\"class\":\"H5T_ARRAY\",\"dims\":[2,100000000],\"base\":" I8 "}",
		 SCALAR VALUE("[null,null]"), 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const clock_t since = clock();
		struct parsed p = parse_attr(rows[i].type, rows[i].members);
		assert_int_equal(p.rc, 0);
		if (p.o.nattrs != 1)
			fail_msg("%s for: %s %s", p.what, rows[i].type, rows[i].members);
		const struct elems *e = &p.o.attrs[0].value;
		assert_int_equal(e->fixed.cap, rows[i].memory);
		assert_int_equal(e->repeated, rows[i].repeated);
		assert_int_equal(e->heap.cap, 0);
		/* CPU time of this process. A walk over all elements would take longer. */
		assert_true(clock() - since < CLOCKS_PER_SEC / 10);
		parsed_release(&p);
	}
}

/* A short document can require much memory. The sum for one object is limited. */
#define MANY                                                                                       \
	"{\"type\":{\"class\":\"H5T_VLEN\",\"base\":{\"class\":\"H5T_ARRAY\",\"dims\":"            \
	"[100000000],\"base\":" I8 "}}," SCALAR VALUE("[null]") "}"
#define FAR                                                                                        \
	"{\"type\":{\"class\":\"H5T_COMPOUND\",\"fields\":[{\"name\":\"x\",\"type\":{\"class\":"   \
	"\"H5T_ARRAY\",\"dims\":[100000000],\"base\":" I8 "}},{\"name\":\"y\",\"type\":" REF       \
	"}]}," SCALAR VALUE("[null,\"\"]") "}"
static void budget_is_shared(void **state)
{
	struct parsed p = parse_printed(
		GROUP_ID, "{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":{\"type\":" I8
					     "," DIMS("[200000000]") "},\"b\":" MANY ",\"c\":" MANY
								     ",\"d\":" MANY "}}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.nattrs, 3);
	assert_int_equal(p.skips, 1);
	assert_contains(p.what, "attribute \"d\": value: the values of the object take more");
	parsed_release(&p);
	p = parse_printed(GROUP_ID, "{" HEAD(GROUP_ID) ",\"attributes\":{\"a\":" MANY ",\"b\":" MANY
						       ",\"c\":" FAR "}}");
	assert_int_equal(p.skips, 1);
	assert_contains(p.what,
			"attribute \"c\": value: field \"y\": the values of the object take");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(floats),
		cmocka_unit_test(text),
		cmocka_unit_test(enums_and_references),
		cmocka_unit_test(shapes),
		cmocka_unit_test(compounds_arrays_sequences),
		cmocka_unit_test(base64),
		cmocka_unit_test(many_elements),
		cmocka_unit_test(unset_elements_take_no_memory),
		cmocka_unit_test(budget_is_shared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
