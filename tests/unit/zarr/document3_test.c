/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of Zarr v3: what must be there, what must be understood, types, grids, keys, fill
 * values. */
#include "zarr_store.h"

#define TYPE	  "\"data_type\":\"int32\","
#define SHAPE	  "\"shape\":[5],"
#define GRID	  "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
#define KEYS	  "\"chunk_key_encoding\":\"default\","
#define FILL	  "\"fill_value\":1,"
#define CODECS	  "\"codecs\":[\"bytes\"]"
#define LINE(...) "a (5) chunk(2) " __VA_ARGS__

static void assert_array(const char *members, const char *line)
{
	char text[65536], got[8192];
	snprintf(text, sizeof(text), "{\"zarr_format\":3,\"node_type\":\"array\",%s}", members);
	const struct store_doc docs[] = {
		{"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}"},
		{"a/zarr.json", text},
		{NULL, NULL},
	};
	store_line(docs, got, sizeof(got));
	assert_string_equal(got, line);
}

static void members_are_mandatory_or_known(void **state)
{
	static const char *const rows[][2] = {
		{SHAPE TYPE GRID KEYS FILL CODECS, LINE("int32 fill 1 keys c/")},
		{TYPE GRID KEYS FILL CODECS, "note: a/zarr.json: zarr.json has no 'shape'"},
		{SHAPE GRID KEYS FILL CODECS, "note: a/zarr.json: zarr.json has no 'data_type'"},
		{SHAPE TYPE KEYS FILL CODECS, "note: a/zarr.json: zarr.json has no 'chunk_grid'"},
		{SHAPE TYPE GRID FILL CODECS,
		 "note: a/zarr.json: zarr.json has no 'chunk_key_encoding'"},
		{SHAPE TYPE GRID KEYS CODECS, "note: a/zarr.json: zarr.json has no 'fill_value'"},
		{SHAPE TYPE GRID KEYS "\"fill_value\":null",
		 "note: a/zarr.json: zarr.json has no 'codecs'"},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"ext\":{\"must_understand\":false}",
		 LINE("int32 fill 1 keys c/")},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"must_understand\":\"false\"",
		 LINE("int32 fill 1 keys c/")},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"ext\":{\"must_understand\":true}",
		 "note: a/zarr.json: 'ext' must be understood and is not"},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"ext\":false",
		 "note: a/zarr.json: 'ext' must be understood and is not"},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"storage_transformers\":[]",
		 LINE("int32 fill 1 keys c/")},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"storage_transformers\":[{\"name\":\"x\"}]",
		 "note: a/zarr.json: storage_transformers [{\"name\":\"x\"}] are not known"},
		{SHAPE TYPE GRID KEYS FILL CODECS ",\"attributes\":null,\"dimension_names\":null",
		 LINE("int32 fill 1 keys c/")},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_array(rows[i][0], rows[i][1]);
}

static void types_have_names(void **state)
{
	static const char *const rows[][3] = {
		{"\"bool\"", "false", LINE("uint8 fill 0 keys c/ |   @dtype \"bool\"")},
		{"{\"name\":\"int8\"}", "-1", LINE("int8 fill -1 keys c/")},
		{"\"int16\"", "-2", LINE("int16 fill -2 keys c/")},
		{"\"int64\"", "-8", LINE("int64 fill -8 keys c/")},
		{"\"uint8\"", "1", LINE("uint8 fill 1 keys c/")},
		{"\"uint16\"", "2", LINE("uint16 fill 2 keys c/")},
		{"\"uint32\"", "4", LINE("uint32 fill 4 keys c/")},
		{"\"complex128\"", "[1,2]", LINE("_Complex128 fill {1 2} keys c/")},
		{"\"complex_float32\"", "[1,2]", LINE("_Complex64 fill {1 2} keys c/")},
		{"\"uint64\"", "18446744073709551615",
		 LINE("uint64 fill 18446744073709551615 keys c/")},
		{"\"float16\"", "\"0x3c00\"", LINE("float32 fill 1 keys c/")},
		{"\"float16\"", "\"0xfc00\"", LINE("float32 fill -inf keys c/")},
		{"\"float16\"", "\"0x0001\"", LINE("float32 fill 5.9604644775390625e-08 keys c/")},
		{"\"float32\"", "\"0x3f800000\"", LINE("float32 fill 1 keys c/")},
		{"\"float64\"", "\"0xbff0000000000000\"", LINE("float64 fill -1 keys c/")},
		{"\"float64\"", "\"AAAAAAAA8D8=\"", LINE("float64 fill 1 keys c/")},
		{"\"complex64\"", "[\"0x3f800000\",\"Infinity\"]",
		 LINE("_Complex64 fill {1 inf} keys c/")},
		{"\"complex_float64\"", "[\"AAAAAAAA8D8=\",2]",
		 LINE("_Complex128 fill {1 2} keys c/")},
		{"\"int32\"", "null", LINE("int32 keys c/")},
		{"\"int32\"", "\"\"", LINE("int32 fill 0 keys c/")},
		{"\"int16\"", "99999",
		 LINE("int16 keys c/ | note: a: fill_value 99999 does not fit int16")},
		{"\"float32\"", "\"0x3f8000001\"",
		 LINE("float32 keys c/ | note: a: fill_value \"0x3f8000001\" does not fit "
		      "float32")},
		{"\"float16\"", "\"0x7c00\"", LINE("float32 fill inf keys c/")},
		{"\"float16\"", "\"0x03ff\"", LINE("float32 fill 6.0975551605224609e-05 keys c/")},
		{"\"float16\"", "\"0xc500\"", LINE("float32 fill -5 keys c/")},
		{"\"float16\"", "\"0X7bff\"", LINE("float32 fill 65504 keys c/")},
		{"\"float32\"", "\"0x1\"", LINE("float32 fill 1.4012984643248171e-45 keys c/")},
		{"\"float32\"", "\"0xC0A00000\"", LINE("float32 fill -5 keys c/")},
		{"\"float32\"", "\"0xg\"",
		 LINE("float32 keys c/ | note: a: fill_value \"0xg\" does not fit float32")},
		{"\"float32\"", "\"1x1\"",
		 LINE("float32 keys c/ | note: a: fill_value \"1x1\" does not fit float32")},
		{"\"float32\"", "\"0y1\"",
		 LINE("float32 keys c/ | note: a: fill_value \"0y1\" does not fit float32")},
		{"\"float64\"", "\"0x3ff00000000000000\"",
		 LINE("float64 keys c/ | note: a: fill_value \"0x3ff00000000000000\" does not fit "
		      "float64")},
		{"\"float64\"", "\"AAAAAAAA8D8A\"",
		 LINE("float64 keys c/ | note: a: fill_value \"AAAAAAAA8D8A\" does not fit "
		      "float64")},
		{"\"float32\"", "\"0x\"",
		 LINE("float32 keys c/ | note: a: fill_value \"0x\" does not fit float32")},
		{"\"string\"", "\"\"", "note: a/zarr.json: data_type \"string\" is not known"},
		{"\"r16\"", "[0,0]", "note: a/zarr.json: data_type \"r16\" is not known"},
		{"{\"configuration\":{}}", "0",
		 "note: a/zarr.json: data_type {\"configuration\":{}} is not known"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char members[1024];
		snprintf(members, sizeof(members),
			 "\"data_type\":%s,\"fill_value\":%s," SHAPE GRID KEYS CODECS, rows[i][0],
			 rows[i][1]);
		assert_array(members, rows[i][2]);
	}
}

static void grids_are_regular(void **state)
{
#define REGULAR(shape) "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" shape "}}"
	static const char *const rows[][2] = {
		{REGULAR("[5]"), "a (5) chunk(5) int32 fill 1 keys c/"},
		{REGULAR("[9]"), "a (5) max(9) chunk(9) int32 fill 1 keys c/"},
		{REGULAR("[0]"), "note: a/zarr.json: the chunk length of dimension 0 is 0"},
		{REGULAR("[1,1]"), "note: a/zarr.json: chunk_shape has 2 numbers, shape has 1"},
		{REGULAR("null"), "note: a/zarr.json: chunk_shape: not a list"},
		{"\"regular\"", "note: a/zarr.json: chunk_shape: not a list"},
		{"{\"name\":\"rectilinear\"}",
		 "note: a/zarr.json: chunk_grid 'rectilinear' is not known"},
		{"[]", "note: a/zarr.json: chunk_grid '[]' is not known"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char members[1024];
		snprintf(members, sizeof(members), "\"chunk_grid\":%s," SHAPE TYPE KEYS FILL CODECS,
			 rows[i][0]);
		assert_array(members, rows[i][1]);
	}
}

static void keys_have_two_encodings(void **state)
{
#define WITH(name, separator)                                                                      \
	"{\"name\":\"" name "\",\"configuration\":{\"separator\":" separator "}}"
	static const char *const rows[][2] = {
		{"\"default\"", LINE("int32 fill 1 keys c/")},
		{WITH("default", "\".\""), LINE("int32 fill 1 keys c.")},
		{"{\"name\":\"v2\"}", LINE("int32 fill 1")},
		{WITH("v2", "\"/\""), LINE("int32 fill 1 keys /")},
		{WITH("v2", "\"-\""),
		 "note: a/zarr.json: chunk_key_encoding: separator \"-\" is not known"},
		{WITH("default", "7"),
		 "note: a/zarr.json: chunk_key_encoding: separator 7 is not known"},
		{"\"fanout\"", "note: a/zarr.json: chunk_key_encoding 'fanout' is not known"},
		{"3", "note: a/zarr.json: chunk_key_encoding '3' is not known"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char members[1024];
		snprintf(members, sizeof(members),
			 "\"chunk_key_encoding\":%s," SHAPE TYPE GRID FILL CODECS, rows[i][0]);
		assert_array(members, rows[i][1]);
	}
}

static void the_mask_is_an_attribute(void **state)
{
#define ATTR(value) SHAPE GRID KEYS CODECS ",\"attributes\":{\"_FillValue\":" value "},"
	static const char *const rows[][2] = {
		{ATTR("\"AAAAAAAA+H8=\"") "\"data_type\":\"float32\",\"fill_value\":0",
		 LINE("float32 fill 0 keys c/ |   @_FillValue float32 nan")},
		{ATTR("-1") "\"data_type\":\"int16\",\"fill_value\":0",
		 LINE("int16 fill 0 keys c/ |   @_FillValue int16 -1")},
		{ATTR("true") "\"data_type\":\"bool\",\"fill_value\":false",
		 LINE("uint8 fill 0 keys c/ |   @_FillValue uint8 1 |   @dtype \"bool\"")},
		{ATTR("[\"AAAAAAAA8D8=\",\"AAAAAAAA+H8=\"]") "\"data_type\":\"complex64\",\"fill_"
							     "value\":[0,0]",
		 LINE("_Complex64 fill {0 0} keys c/ |   @_FillValue ! {1 nan}")},
		{ATTR("\"AAAA\"") "\"data_type\":\"float32\",\"fill_value\":0",
		 LINE("float32 fill 0 keys c/ | note: a/zarr.json: attribute \"_FillValue\" is "
		      "left "
		      "out: \"AAAA\" does not fit float32")},
		{ATTR("null") "\"data_type\":\"float32\",\"fill_value\":0",
		 LINE("float32 fill 0 keys c/ | note: a/zarr.json: attribute \"_FillValue\" is "
		      "left "
		      "out: it has no value")},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_array(rows[i][0], rows[i][1]);
}

/* netCDF-C for v3 stores no attribute _FillValue. Its own fill values are no masks. */
static void netcdf_for_v3_has_its_mask_in_the_fill_value(void **state)
{
	static const char *const rows[][2] = {
		{"\"data_type\":\"int16\",\"fill_value\":-5", "  @_FillValue int16 -5"},
		{"\"data_type\":\"int16\",\"fill_value\":-32767", ""},
		{"\"data_type\":\"int8\",\"fill_value\":-127", ""},
		{"\"data_type\":\"uint8\",\"fill_value\":255", ""},
		{"\"data_type\":\"int64\",\"fill_value\":-9223372036854775806", ""},
		{"\"data_type\":\"uint64\",\"fill_value\":18446744073709551614", ""},
		{"\"data_type\":\"float32\",\"fill_value\":9.96921e+36", ""},
		{"\"data_type\":\"float64\",\"fill_value\":9.96921e+36", ""},
		{"\"data_type\":\"float64\",\"fill_value\":2", "  @_FillValue float64 2"},
		{"\"data_type\":\"uint16\",\"fill_value\":65535", ""},
		{"\"data_type\":\"int32\",\"fill_value\":-2147483647", ""},
		{"\"data_type\":\"int64\",\"fill_value\":-9223372036854775807",
		 "  @_FillValue int64 -9223372036854775807"},
		{"\"data_type\":\"uint64\",\"fill_value\":18446744073709551615",
		 "  @_FillValue uint64 18446744073709551615"},
		{"\"data_type\":\"float32\",\"fill_value\":9.97e+36",
		 "  @_FillValue float32 9.9699997147108112e+36"},
		{"\"data_type\":\"float32\",\"fill_value\":9.9692e+36", ""},
		{"\"data_type\":\"bool\",\"fill_value\":true", "  @dtype \"bool\""},
		{"\"data_type\":\"complex64\",\"fill_value\":[1,2]", ""},
		/* An empty text is the fill value of characters. */
		{"\"data_type\":\"uint8\",\"fill_value\":\"\"", "  @_FillValue uint8 0"},
		{"\"data_type\":\"int8\",\"fill_value\":\"\"", ""},
		{"\"data_type\":\"uint16\",\"fill_value\":\"\"", ""},
		{"\"data_type\":\"int16\",\"fill_value\":\"\"", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024], got[1024];
		snprintf(text, sizeof(text),
			 "{\"zarr_format\":3,\"node_type\":\"array\"," SHAPE GRID KEYS CODECS
			 ",%s}",
			 rows[i][0]);
		const struct store_doc docs[] = {
			{"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{"
				      "\"_NCProperties\":\"version=2,netcdf=4.9.3-development,"
				      "nczarr=3.0.0\"}}"},
			{"a/zarr.json", text},
			{NULL, NULL},
		};
		store_line(docs, got, sizeof(got));
		const char *attribute = strstr(got, "  @");
		assert_string_equal(attribute ? attribute : "", rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_mandatory_or_known),
		cmocka_unit_test(types_have_names),
		cmocka_unit_test(grids_are_regular),
		cmocka_unit_test(keys_have_two_encodings),
		cmocka_unit_test(the_mask_is_an_attribute),
		cmocka_unit_test(netcdf_for_v3_has_its_mask_in_the_fill_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
