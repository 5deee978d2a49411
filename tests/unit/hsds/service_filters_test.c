/* SPDX-License-Identifier: Apache-2.0 */
/* What the service does to chunk objects, by the list of filters in the document. */
#include "schema_test.h"

#include <codec/chain.h>

#define DATASET                                                                                    \
	"\"type\":\"H5T_STD_I32LE\",\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[10]},"           \
	"\"layout\":{\"dims\":[10]},\"creationProperties\":{"
#define CLASS(c)      "\"class\":\"H5Z_FILTER_" c "\""
#define NAME(n)	      "\"name\":\"" n "\""
#define USER(id, n)   "{" CLASS("USER") ",\"id\":" id "," NAME(n) "}"
#define SHUFFLE	      "{" CLASS("SHUFFLE") ",\"id\":2," NAME("shuffle") "}"
#define BITSHUFFLE    "{" CLASS("BITSHUFFLE") ",\"id\":32008," NAME("bitshuffle") "}"
#define DEFLATE(more) "{" CLASS("DEFLATE") ",\"id\":1" more "}"
#define SCALE	      "{" CLASS("SCALEOFFSET") ",\"id\":6," NAME("scaleoffset") "}"

static struct parsed parse_filters(const char *filters, const char *hsmount)
{
	char text[1024];
	snprintf(text, sizeof(text), DATASET "\"filters\":[%s]%s}", filters, hsmount);
	return parse_dataset(text);
}

static void choices_of_the_service(void **state)
{
	static const struct {
		const char *filters;
		const char *compressor;
		uint32_t level;
		enum service_shuffle shuffle;
	} rows[] = {
		{"", NULL, 0, SERVED_SHUFFLE_NONE},
		{DEFLATE(",\"level\":4," NAME("gzip")), "zlib", 4, SERVED_SHUFFLE_NONE},
		{DEFLATE(",\"level\":0"), "zlib", 0, SERVED_SHUFFLE_NONE},
		{DEFLATE(""), "zlib", 5, SERVED_SHUFFLE_NONE},
		{DEFLATE(",\"level\":10"), "zlib", 5, SERVED_SHUFFLE_NONE},
		{DEFLATE("," NAME("deflate")), "zlib", 5, SERVED_SHUFFLE_NONE},
		{SHUFFLE "," DEFLATE(",\"level\":9"), "zlib", 9, SERVED_SHUFFLE_BYTE},
		{DEFLATE(",\"level\":9") "," SHUFFLE, "zlib", 9, SERVED_SHUFFLE_BYTE},
		{"{" CLASS("SHUFFLE") "}," DEFLATE(",\"level\":9"), "zlib", 9, SERVED_SHUFFLE_BYTE},
		{SHUFFLE, NULL, 0, SERVED_SHUFFLE_BYTE},
		{BITSHUFFLE, NULL, 0, SERVED_SHUFFLE_BIT},
		{"{" CLASS("SHUFFLE") "," NAME("bitshuffle") "}", NULL, 0, SERVED_SHUFFLE_BIT},
		{"{" CLASS("SHUFFLE") "," NAME("other") "}", NULL, 0, SERVED_SHUFFLE_NONE},
		{BITSHUFFLE "," USER("32015", "zstd"), "zstd", 5, SERVED_SHUFFLE_BIT},
		{USER("32001", "blosclz"), "blosclz", 5, SERVED_SHUFFLE_NONE},
		{USER("32003", "snappy"), "snappy", 5, SERVED_SHUFFLE_NONE},
		{USER("32004", "lz4"), "lz4", 5, SERVED_SHUFFLE_NONE},
		{USER("32005", "lz4hc"), "lz4hc", 5, SERVED_SHUFFLE_NONE},
		{USER("1", "gzip"), "zlib", 5, SERVED_SHUFFLE_NONE},
		{"{" CLASS("USER") "," NAME("lz4") ",\"level\":7}", "lz4", 7, SERVED_SHUFFLE_NONE},
		{"{" CLASS("LZ4") ",\"id\":32004}", "lz4", 5, SERVED_SHUFFLE_NONE},
		{"{" CLASS("BLOSC") "," NAME("zstd") "}", "zstd", 5, SERVED_SHUFFLE_NONE},
		/* only recorded */
		{USER("1", "deflate"), NULL, 0, SERVED_SHUFFLE_NONE},
		{USER("307", "bzip2"), NULL, 0, SERVED_SHUFFLE_NONE},
		{USER("32008", "bitshuffle"), NULL, 0, SERVED_SHUFFLE_NONE},
		{"{" CLASS("FLETCHER32") ",\"id\":3," NAME("fletcher32") "}", NULL, 0,
		 SERVED_SHUFFLE_NONE},
		{"{" CLASS("NBIT") "," NAME("nbit") "}," DEFLATE(""), "zlib", 5,
		 SERVED_SHUFFLE_NONE},
		{"\"gzip\",1", NULL, 0, SERVED_SHUFFLE_NONE},
		/* the first compressor */
		{SCALE "," SHUFFLE "," DEFLATE(""), NULL, 5, SERVED_SHUFFLE_BYTE},
		{DEFLATE("") "," SCALE, "zlib", 5, SERVED_SHUFFLE_NONE},
		{USER("32004", "lz4") "," USER("32015", "zstd"), "lz4", 5, SERVED_SHUFFLE_NONE},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_filters(rows[i].filters, "");
		const struct service_filters *s = codec_chain_served(p.o.dataset.chain);
		if (p.rc)
			fail_msg("%s for: %s", p.err.msg, rows[i].filters);
		if (!rows[i].compressor != !s->compressor || s->level != rows[i].level ||
		    s->shuffle != rows[i].shuffle || s->refused)
			fail_msg("%s: %s %u %d", rows[i].filters,
				 s->compressor ? s->compressor : "none", s->level, s->shuffle);
		if (s->compressor)
			assert_string_equal(s->compressor, rows[i].compressor);
		parsed_release(&p);
	}
}

static void compressors_that_the_service_lacks(void **state)
{
	static const struct {
		const char *filters, *name;
	} rows[] = {
		{USER("32000", "lzf"), "lzf"},
		{"{" CLASS("SZIP") ",\"id\":4," NAME("szip") "}", "szip"},
		{"{" CLASS("BLOSC") ",\"id\":32001," NAME("blosc") "}", "blosc"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = parse_filters(rows[i].filters, "");
		assert_int_equal(p.rc, 0);
		assert_null(codec_chain_served(p.o.dataset.chain)->compressor);
		assert_string_equal(codec_chain_served(p.o.dataset.chain)->refused, rows[i].name);
		parsed_release(&p);
	}
}

/* The service does not know what a file has recorded. */
static void filters_of_a_file(void **state)
{
	struct parsed p =
		parse_filters(DEFLATE(",\"level\":6"),
			      ",\"hsmount\":{\"filters\":[{\"id\":32000,\"parameters\":[]}]}");
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.dataset.filters[0].id, FILTER_LZF);
	assert_string_equal(codec_chain_served(p.o.dataset.chain)->compressor, "zlib");
	assert_null(codec_chain_served(p.o.dataset.chain)->refused);
	parsed_release(&p);
	/* A name that is no text. */
	p = parse_filters("{" CLASS("LZF") ",\"id\":32000," NAME("a\\u0000b") "}",
			  ",\"hsmount\":{\"filters\":[{\"id\":1,\"parameters\":[6]}]}");
	assert_int_equal(p.rc, 0);
	assert_string_equal(codec_chain_served(p.o.dataset.chain)->refused, "?");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices_of_the_service),
		cmocka_unit_test(compressors_that_the_service_lacks),
		cmocka_unit_test(filters_of_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
