/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of Zarr v2: types, shapes, chunks, fill values, separators. */
#include "zarr_store.h"

/* The array "a" with these members, as a line and notes. */
static void assert_array(const char *members, const char *attributes, const char *line)
{
	char text[65536], got[8192];
	snprintf(text, sizeof(text), "{\"zarr_format\":2,%s}", members);
	const struct store_doc docs[] = {
		{".zgroup", "{\"zarr_format\":2}"},
		{"a/.zarray", text},
		{attributes ? "a/.zattrs" : NULL, attributes},
		{NULL, NULL},
	};
	store_line(docs, got, sizeof(got));
	assert_string_equal(got, line);
}

static void assert_typed(const char *dtype, const char *fill, const char *line)
{
	char members[2048];
	snprintf(members, sizeof(members),
		 "\"shape\":[3],\"chunks\":[2],\"dtype\":%s,\"fill_value\":%s", dtype, fill);
	assert_array(members, NULL, line);
}

static void types_of_numbers_are_known(void **state)
{
	static const char *const rows[][2] = {
		{"|b1", "uint8 |   @dtype \"bool\""},
		{"|i1", "int8"},
		{"<u1", "uint8"},
		{"<i2", "int16"},
		{">i4", "int32 (big-endian)"},
		{"<i8", "int64"},
		{"=u2", "uint16"},
		{"u4", "uint32"},
		{">u8", "uint64 (big-endian)"},
		{"|i2", "int16"},
		{"<f2", "float32"},
		{">f2", "float32 (big-endian)"},
		{"<f4", "float32"},
		{">f8", "float64 (big-endian)"},
		{"<c8", "_Complex64"},
		{">c8", "_Complex64_big"},
		{"<c16", "_Complex128"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dtype[32], line[128];
		snprintf(dtype, sizeof(dtype), "\"%s\"", rows[i][0]);
		snprintf(line, sizeof(line), "a (3) chunk(2) %s", rows[i][1]);
		assert_typed(dtype, "null", line);
	}
}

static void other_types_are_left_out(void **state)
{
	static const char *const rows[] = {
		"\"<i3\"",
		"\"<i16\"",
		"\"<f16\"",
		"\"|S4\"",
		"\"<U1\"",
		"\"|V3\"",
		"\"|O\"",
		"\"<M8[s]\"",
		"\"\"",
		"\"<\"",
		"\"<i\"",
		"\"i04\"",
		"\"<b4\"",
		"\"<i-4\"",
		"\"<i+4\"",
		"\"<i4+\"",
		"\"<i999\"",
		"\"<c4\"",
		"[[\"a\",\"<i4\"]]",
		"7",
		"\"<f4 \"",
		"\"T\"",
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[128];
		snprintf(line, sizeof(line), "note: a/.zarray: dtype %s is not known", rows[i]);
		assert_typed(rows[i], "null", line);
	}
	assert_typed("null", "0", "note: a/.zarray: dtype null is not known");
}

static void fill_values_have_many_forms(void **state)
{
	static const struct {
		const char *dtype, *fill, *shown;
	} rows[] = {
		{"<i4", "5", "fill 5"},
		{"<i4", "\"5\"", "fill 5"},
		{"<i4", "[-5]", "fill -5"},
		{"<i4", "5.0", "fill 5"},
		{"<i4", "\"\"", "fill 0"},
		{"<i4", "\"+5\"", "fill 5"},
		{"<i8", "\"+9007199254740993\"", "fill 9007199254740993"},
		{"<i4", "\"-5\"", "fill -5"},
		{"<i4", "\"5e0\"", "fill 5"},
		{"<i4", "true", "fill 1"},
		{"<u2", "65535", "fill 65535"},
		{"<i2", "32767", "fill 32767"},
		{">i2", "-32768", "fill -32768"},
		{"|i1", "-128", "fill -128"},
		{"|u1", "255", "fill 255"},
		{"<u8", "18446744073709551615", "fill 18446744073709551615"},
		{"<u8", "\"18446744073709551615\"", "fill 18446744073709551615"},
		{"<i8", "-9223372036854775808", "fill -9223372036854775808"},
		{"<u8", "1.8446744073709550e19", "fill 18446744073709549568"},
		{"<f4", "1.5", "fill 1.5"},
		{"<f4", "1e300", "fill inf"},
		{"<f8", "NaN", "fill nan"},
		{"<f8", "\"NaN\"", "fill nan"},
		{"<f8", "\"-nan\"", "fill -nan"},
		{"<f8", "\"Infinity\"", "fill inf"},
		{"<f8", "-Infinity", "fill -inf"},
		{"<f8", "\"-inf\"", "fill -inf"},
		{"<f8", "\"-9.5\"", "fill -9.5"},
		{"<f8", "[2]", "fill 2"},
		{"<f8", "-0.0", "fill -0"},
		{"<f8", "\"AAAAAAAA+H8=\"", "fill nan"},
		{"<f4", "\"AAAAAAAA8D8=\"", "fill 1"},
		{">f8", "1e400", "fill inf"},
		{"<f2", "65504", "fill 65504"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dtype[32], members[256], got[1024];
		snprintf(dtype, sizeof(dtype), "\"%s\"", rows[i].dtype);
		snprintf(members, sizeof(members),
			 "{\"shape\":[3],\"chunks\":[2],\"dtype\":%s,\"fill_value\":%s}", dtype,
			 rows[i].fill);
		const struct store_doc docs[] = {{".zgroup", "{}"}, {"a/.zarray", members}, {0}};
		store_line(docs, got, sizeof(got));
		const char *fill = strstr(got, "fill ");
		assert_non_null(fill);
		/* The sign of a NaN is not that of the text. */
		if (!strstr(rows[i].shown, "nan"))
			assert_string_equal(fill, rows[i].shown);
		else
			assert_non_null(strstr(fill, "nan"));
	}
}

static void fill_values_of_other_types(void **state)
{
	assert_typed("\"|b1\"", "true", "a (3) chunk(2) uint8 fill 1 |   @dtype \"bool\"");
	assert_typed("\"|b1\"", "\"true\"", "a (3) chunk(2) uint8 fill 1 |   @dtype \"bool\"");
	assert_typed("\"|b1\"", "\"false\"", "a (3) chunk(2) uint8 fill 0 |   @dtype \"bool\"");
	assert_typed("\"|b1\"", "2",
		     "a (3) chunk(2) uint8 |   @dtype \"bool\" | note: a: fill_value 2 does not "
		     "fit bool");
	assert_typed("\"|b1\"", "-1",
		     "a (3) chunk(2) uint8 |   @dtype \"bool\" | note: a: fill_value -1 does not "
		     "fit bool");
	assert_typed("\"|b1\"", "0", "a (3) chunk(2) uint8 fill 0 |   @dtype \"bool\"");
	assert_typed("\"<c8\"", "[1,\"NaN\"]", "a (3) chunk(2) _Complex64 fill {1 nan}");
	assert_typed("\">c16\"", "2.5", "a (3) chunk(2) _Complex128_big fill {2.5 0}");
	assert_typed("\"<i4\"", "null", "a (3) chunk(2) int32");
}

static void a_fill_value_that_does_not_fit_is_not_defined(void **state)
{
	static const char *const rows[][3] = {
		{"<i1", "128", "int8"},
		{"<i1", "-129", "int8"},
		{"|u1", "256", "uint8"},
		{"<u2", "65536", "uint16"},
		{"<i8", "9223372036854775808", "int64"},
		{"<u8", "1.8446744073709552e+19", "uint64"},
		{"<i4", "\"-\"", "int32"},
		{"<i4", "\"+\"", "int32"},
		{"<i4", "\"5.5\"", "int32"},
		{"|u1", "-1", "uint8"},
		{"<u8", "18446744073709551616", "uint64"},
		{"<i4", "1.5", "int32"},
		{"<i4", "NaN", "int32"},
		{"<i4", "\"x\"", "int32"},
		{"<i4", "{}", "int32"},
		{"<i4", "[1,2]", "int32"},
		{"<f4", "\"x\"", "float32"},
		{"<f4", "[]", "float32"},
		{"<f4", "\"0x7fc00000\"", "float32"},
		{"<c8", "[1,2,3]", "complex64"},
		{"<c8", "[1,{}]", "complex64"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char dtype[32], end[256], members[256], got[1024];
		snprintf(dtype, sizeof(dtype), "\"%s\"", rows[i][0]);
		snprintf(members, sizeof(members),
			 "{\"shape\":[3],\"chunks\":[2],\"dtype\":%s,\"fill_value\":%s}", dtype,
			 rows[i][1]);
		snprintf(end, sizeof(end), " | note: a: fill_value %s does not fit %s", rows[i][1],
			 rows[i][2]);
		const struct store_doc docs[] = {{".zgroup", "{}"}, {"a/.zarray", members}, {0}};
		store_line(docs, got, sizeof(got));
		assert_null(strstr(got, "fill "));
		assert_non_null(strstr(got, end));
	}
}

static void shapes_and_chunks(void **state)
{
	static const char *const rows[][3] = {
		{"[]", "[]", "a () uint8"},
		{"[3,5]", "[2,2]", "a (3,5) chunk(2,2) uint8"},
		{"[3]", "[10]", "a (3) max(10) chunk(10) uint8"},
		{"[0]", "[4]", "a (0) max(4) chunk(4) uint8"},
		{"[0]", "[0]", "a (0) max(1) chunk(1) uint8"},
		{"[0,3]", "[0,2]", "a (0,3) max(1,3) chunk(1,2) uint8"},
		{"[3]", "true", "a (3) chunk(3) uint8"},
		{"[3]", "null", "a (3) chunk(3) uint8"},
		{"[3.0]", "[\"2\"]", "a (3) chunk(2) uint8"},
		{"[4611686018427387904]", "[1]", "a (4611686018427387904) chunk(1) uint8"},
		{"[268435456]", "[268435456]", "a (268435456) chunk(268435456) uint8"},
		{"[3]", "[0]", "note: a/.zarray: the chunk length of dimension 0 is 0"},
		{"[3]", "[1,1]", "note: a/.zarray: chunks has 2 numbers, shape has 1"},
		{"[3]", "[]", "note: a/.zarray: chunks has 0 numbers, shape has 1"},
		{"[-3]", "[1]", "note: a/.zarray: shape: -3 is not a length"},
		{"[3]", "[-1]", "note: a/.zarray: chunks: -1 is not a length"},
		{"[1.5]", "[1]", "note: a/.zarray: shape: 1.5 is not a length"},
		{"[true]", "[1]", "note: a/.zarray: shape: true is not a length"},
		{"[9223372036854775808]", "[1]",
		 "note: a/.zarray: shape: 9223372036854775808 is not a length"},
		{"[1e19]", "[1]", "note: a/.zarray: shape: 1e+19 is not a length"},
		{"[-0]", "[1]", "a (0) max(1) chunk(1) uint8"},
		{"[9223372036854775808.0]", "[1]",
		 "note: a/.zarray: shape: 9.223372036854776e+18 is not a length"},
		{"[\"9223372036854775808\"]", "[1]",
		 "note: a/.zarray: shape: \"9223372036854775808\" is not a length"},
		{"[\"99999999999999999999\"]", "[1]",
		 "note: a/.zarray: shape: \"99999999999999999999\" is not a length"},
		{"[\"2.0\"]", "[1]", "note: a/.zarray: shape: \"2.0\" is not a length"},
		{"[\"-1\"]", "[1]", "note: a/.zarray: shape: \"-1\" is not a length"},
		{"[\"\"]", "[1]", "note: a/.zarray: shape: \"\" is not a length"},
		{"[NaN]", "[1]", "note: a/.zarray: shape: NaN is not a length"},
		{"[\"x\"]", "[1]", "note: a/.zarray: shape: \"x\" is not a length"},
		{"3", "[1]", "note: a/.zarray: shape: not a list"},
		{"[3]", "3", "note: a/.zarray: chunks: not a list"},
		{"[9223372036854775807,3]", "[1,1]",
		 "note: a/.zarray: dataspace of more than 2^63 elements"},
		{"[3]", "[1099511627776]",
		 "note: a/.zarray: chunk of 1099511627776 bytes is over the limit of 268435456"},
		{"[3,3]", "[9223372036854775807,9223372036854775807]",
		 "note: a/.zarray: chunk of 18446744073709551615 bytes is over the limit of "
		 "268435456"},
		/* Larger chunks are cut: to parts of equal length, unless they are the last. */
		{"[268435457]", "[268435457]", "a (268435457) chunk(16777216) uint8"},
		{"[9000,721,1440]", "[487,721,1440]", "a (9000,721,1440) chunk(1,721,1440) uint8"},
		{"[9000,721,1440]", "[450,721,1440]", "a (9000,721,1440) chunk(15,721,1440) uint8"},
		{"[9,99999,9]", "[3,99999,9999]",
		 "a (9,99999,9) max(9,99999,9999) "
		 "chunk(1,1677,9999) uint8"},
		{"[9,99999,9]", "[3,33333,9999]",
		 "a (9,99999,9) max(9,99999,9999) "
		 "chunk(1,813,9999) uint8"},
		{"[3]", "[268435457]", "a (3) max(16777216) chunk(16777216) uint8"},
		/* A prime. */
		{"[999999999]", "[268435459]",
		 "note: a/.zarray: chunk of 268435459 bytes is over the limit of 268435456, and "
		 "its shape cannot be divided evenly"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char members[256];
		snprintf(members, sizeof(members), "\"shape\":%s,\"chunks\":%s,\"dtype\":\"|u1\"",
			 rows[i][0], rows[i][1]);
		assert_array(members, NULL, rows[i][2]);
	}
	/* Half precision takes twice the bytes when it is shown. */
	assert_array("\"shape\":[67108864],\"chunks\":true,\"dtype\":\"<f2\"", NULL,
		     "a (67108864) chunk(67108864) float32");
	assert_array("\"shape\":[67108865],\"chunks\":true,\"dtype\":\"<f2\"", NULL,
		     "a (67108865) chunk(4194304) float32");
	assert_array("\"shape\":[67108864],\"chunks\":true,\"dtype\":\"<f4\"", NULL,
		     "a (67108864) chunk(67108864) float32");
}

/* A shape of n ones. */
static void list_of_ones(int n, char *out)
{
	strcpy(out, "[");
	for (int i = 0; i < n; i++)
		strcat(out, i ? ",1" : "1");
	strcat(out, "]");
}

static void the_rank_has_a_limit(void **state)
{
	char ones[256], members[1024], got[1024];
	for (int rank = 31; rank <= 33; rank++) {
		list_of_ones(rank, ones);
		snprintf(members, sizeof(members), "{\"shape\":%s,\"chunks\":%s,\"dtype\":\"|u1\"}",
			 ones, ones);
		const struct store_doc docs[] = {{".zgroup", "{}"}, {"a/.zarray", members}, {0}};
		store_line(docs, got, sizeof(got));
		if (rank <= 32)
			assert_memory_equal(got, "a (1,1,", 7);
		else
			assert_string_equal(got, "note: a/.zarray: shape: rank 33 is over HDF5's "
						 "limit of 32");
	}
}

static void members_may_be_missing_or_wrong(void **state)
{
	static const char *const rows[][2] = {
		{"\"shape\":[3],\"chunks\":[2]", "note: a/.zarray: .zarray has no 'dtype'"},
		{"\"shape\":[3],\"dtype\":\"|u1\"", "note: a/.zarray: .zarray has no 'chunks'"},
		{"\"chunks\":[3],\"dtype\":\"|u1\"", "note: a/.zarray: .zarray has no 'shape'"},
		{"\"zarr_format\":3,\"chunks\":[3]", "note: a/.zarray: zarr_format 3 is not known"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":\"K\"",
		 "note: a/.zarray: order \"K\" is not known"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":null,\"future\":1",
		 "a (3) chunk(2) uint8"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"<i2\",\"filters\":[{\"id\":\"shuffle\"}]"
		 ","
		 "\"compressor\":{\"id\":\"zlib\",\"level\":6}",
		 "a (3) chunk(2) int16 shuffle, deflate(6)"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"dimension_separator\":\"/\"",
		 "a (3) chunk(2) uint8 keys /"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"dimension_separator\":\".\"",
		 "a (3) chunk(2) uint8"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"dimension_separator\":null",
		 "a (3) chunk(2) uint8"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"dimension_separator\":7",
		 "note: a/.zarray: dimension_separator 7 is not known"},
		{"\"shape\":[3],\"chunks\":[2],\"dtype\":\"|u1\",\"dimension_separator\":\"-\"",
		 "note: a/.zarray: dimension_separator \"-\" is not known"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_array(rows[i][0], NULL, rows[i][1]);
}

static void the_mask_follows_from_the_fill_value(void **state)
{
	static const char names[] = "{\"_ARRAY_DIMENSIONS\":[\"x\"]}";
#define OF(type, fill) "\"shape\":[3],\"chunks\":[3],\"dtype\":\"" type "\",\"fill_value\":" fill
	assert_array(OF("<i4", "7"), names, "a (3) chunk(3) int32 fill 7 |   @_FillValue int32 7");
	assert_array(OF(">f4", "\"NaN\""), names,
		     "a (3) chunk(3) float32 (big-endian) fill nan |   @_FillValue float32 "
		     "(big-endian) nan");
	assert_array(OF("<f2", "0.5"), names,
		     "a (3) chunk(3) float32 fill 0.5 |   @_FillValue float32 0.5");
	assert_array(OF("<i4", "null"), names, "a (3) chunk(3) int32");
	assert_array(OF("|b1", "true"), names, "a (3) chunk(3) uint8 fill 1 |   @dtype \"bool\"");
	assert_array(OF("<c8", "1"), names, "a (3) chunk(3) _Complex64 fill {1 0}");
	assert_array(OF("<i4", "7"), NULL, "a (3) chunk(3) int32 fill 7");
	assert_array(OF("<i4", "7"), "{\"_FillValue\":8,\"_ARRAY_DIMENSIONS\":[\"x\"]}",
		     "a (3) chunk(3) int32 fill 7 |   @_FillValue int32 8");
	assert_array(OF("|b1", "true"), "{\"dtype\":\"mine\"}",
		     "a (3) chunk(3) uint8 fill 1 |   @dtype \"mine\"");
}

/* netCDF-C 4.8.0 to 4.9.2 stores little-endian numbers whatever the type says. */
static void the_writer_decides_the_byte_order(void **state)
{
	static const char *const rows[][2] = {
		{"version=2,netcdf=4.9.0,nczarr=2.0.0", "int32"},
		{"version=2,netcdf=4.8.0,nczarr=1.0.0", "int32"},
		{"version=2,netcdf=4.8.1-development,nczarr=1.0.0", "int32"},
		{"version=2,netcdf=4.9.2,nczarr=2.0.0", "int32"},
		{"version=2,netcdf=4.8.0-development,nczarr=1.0.0", "int32 (big-endian)"},
		{"version=2,netcdf=4.9.3-development,nczarr=2.0.0", "int32 (big-endian)"},
		{"version=2,netcdf=4.7.4,nczarr=1.0.0", "int32 (big-endian)"},
		{"version=2,netcdf=4.10.2,nczarr=2.0.0", "int32 (big-endian)"},
		{"version=2,netcdf=4.9.0,hdf5=1.10.8", "int32 (big-endian)"},
		{"netcdf=x,nczarr=", "int32 (big-endian)"},
		{"", "int32 (big-endian)"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char attrs[128], line[128], got[1024];
		const bool by_netcdf = strstr(rows[i][0], "nczarr=") && !strstr(rows[i][0], "=x");
		snprintf(attrs, sizeof(attrs), "{\"_NCProperties\":\"%s\"}", rows[i][0]);
		snprintf(line, sizeof(line), "a (3) chunk(3) %s fill 1%s", rows[i][1],
			 by_netcdf ? "" : " |   @_FillValue int32 (big-endian) 1");
		const struct store_doc docs[] = {
			{".zgroup", "{}"},
			{".zattrs", attrs},
			{"a/.zarray", "{" OF(">i4", "1") "}"},
			{"a/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"x\"]}"},
			{0},
		};
		store_line(docs, got, sizeof(got));
		assert_string_equal(got, line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_of_numbers_are_known),
		cmocka_unit_test(other_types_are_left_out),
		cmocka_unit_test(fill_values_have_many_forms),
		cmocka_unit_test(fill_values_of_other_types),
		cmocka_unit_test(a_fill_value_that_does_not_fit_is_not_defined),
		cmocka_unit_test(shapes_and_chunks),
		cmocka_unit_test(the_rank_has_a_limit),
		cmocka_unit_test(members_may_be_missing_or_wrong),
		cmocka_unit_test(the_mask_follows_from_the_fill_value),
		cmocka_unit_test(the_writer_decides_the_byte_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
