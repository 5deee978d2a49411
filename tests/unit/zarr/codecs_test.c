/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of both versions: the steps in the order of decoding, the filters that a file records, and
 * what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <data/describe.h>

#include "schema/zarr/model_internal.h"

static const char *step_name(enum codec_array_codec codec)
{
	static const char *const names[] = {
		[CODEC_ZLIB] = "zlib",
		[CODEC_GZIP] = "gzip",
		[CODEC_ZSTD] = "zstd",
		[CODEC_BLOSC] = "blosc",
		[CODEC_BZ2] = "bz2",
		[CODEC_LZ4] = "lz4",
		[CODEC_SHUFFLE] = "shuffle",
		[CODEC_CRC32C] = "crc32c",
		[CODEC_TRANSPOSE] = "transpose",
		[CODEC_WIDEN] = "widen",
	};
	return names[codec];
}

static void print_steps(const struct zarr_codecs *c, struct str *out)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct codec_array_step *s = &c->steps[i];
		str_addf(out, "%s%s", i ? " " : "", step_name(s->codec));
		if (s->codec == CODEC_SHUFFLE)
			str_addf(out, "(%u)", s->elem_size);
		if (s->codec == CODEC_WIDEN)
			str_add(out, s->big_endian ? "(big)" : "");
		if (s->codec != CODEC_TRANSPOSE)
			continue;
		assert_int_equal(s->rank, 3);
		str_addf(out, "(%u: %llux%llux%llu by %u%u%u)", s->elem_size,
			 (unsigned long long)s->shape[0], (unsigned long long)s->shape[1],
			 (unsigned long long)s->shape[2], s->order[0], s->order[1], s->order[2]);
	}
	if (c->nfilters) {
		struct pipeline p = {.n = c->nfilters};
		memcpy(p.f, c->filters, c->nfilters * sizeof(*p.f));
		str_add(out, " | ");
		describe_filters(out, &p);
	}
}

struct parsed {
	struct zarr_build *b;
	struct zarr_array a;
	struct err err;
	int rc;
	struct json_text_area area;
};

/* The codecs of chunks of 2 x 3 x 5 elements. */
static void parse(struct parsed *p, const char *text, struct zarr_element element, bool is_v3)
{
	static const uint64_t chunk[] = {2, 3, 5};
	json_t *doc;
	memset(p, 0, sizeof(*p));
	p->a = (struct zarr_array){.element = element, .rank = 3, .shape = chunk, .chunk = chunk};
	p->b = calloc(1, sizeof(*p->b));
	assert_non_null(p->b);
	p->b->arena = p->b->scratch = arena_new(1 << 20);
	json_text_area_begin(&p->area);
	assert_int_equal(json_text_load(text, strlen(text), &doc, &p->err), 0);
	p->rc = is_v3 ? zarr_codecs_v3(p->b, &p->a, json_object_get(doc, "codecs"), &p->err)
		      : zarr_codecs_v2(p->b, &p->a, doc, &p->err);
}

static void release(struct parsed *p)
{
	json_text_area_end(&p->area);
	bytes_release(&p->b->text);
	zarr_share_end(p->b);
	arena_free(p->b->arena);
	free(p->b);
}

static void assert_codecs(const char *text, struct zarr_element element, bool is_v3,
			  const char *expected)
{
	auto_str struct str out = {0};
	struct parsed p;
	parse(&p, text, element, is_v3);
	if (p.rc)
		str_addf(&out, "%d %s", p.rc, p.err.msg);
	else
		print_steps(&p.a.codecs, &out);
	if (p.a.element.big_endian && is_v3)
		str_add(&out, " big");
	assert_string_equal(str_text(&out), expected);
	release(&p);
}

static const struct zarr_element u1 = {.kind = ZARR_UINT, .size = 1};
static const struct zarr_element i4 = {.kind = ZARR_INT, .size = 4};
static const struct zarr_element f2 = {.kind = ZARR_FLOAT, .size = 2, .big_endian = true};

static void codecs_of_v2(void **state)
{
	static const char *const rows[][2] = {
		{"{}", ""},
		{"{\"compressor\":null,\"filters\":null,\"order\":\"C\"}", ""},
		{"{\"compressor\":{\"id\":\"zlib\",\"level\":1},\"filters\":[]}",
		 "zlib | deflate(1)"},
		{"{\"compressor\":{\"id\":\"gzip\",\"level\":\"5\"}}", "gzip | deflate(5)"},
		{"{\"compressor\":{\"id\":\"zlib\",\"level\":-1}}", "zlib | deflate(4)"},
		{"{\"compressor\":{\"id\":\"zlib\",\"level\":9}}", "zlib | deflate(9)"},
		{"{\"compressor\":{\"id\":\"zlib\",\"level\":10}}", "zlib | deflate(4)"},
		{"{\"compressor\":{\"id\":\"zlib\"}}", "zlib | deflate(4)"},
		{"{\"compressor\":{\"id\":\"zlib\",\"level\":0}}", "zlib | deflate(0)"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":null}]}",
		 "shuffle(4) | shuffle"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":2147483647}]}",
		 "shuffle(2147483647)"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":2147483648}]}",
		 "-5 codec 'shuffle': elementsize 2147483648 is not known"},
		{"{\"filters\":[{\"id\":\"shuffle\"},{\"id\":\"shuffle\"}]}",
		 "shuffle(4) shuffle(4)"},
		{"{\"compressor\":{\"id\":\"zstd\"}}", "zstd"},
		{"{\"compressor\":{\"id\":\"blosc\",\"shuffle\":\"BIT\"}}", "blosc"},
		{"{\"compressor\":{\"id\":\"bz2\"}}", "bz2"},
		{"{\"compressor\":{\"id\":\"lz4\"}}", "lz4"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":4}],"
		 "\"compressor\":{\"id\":\"zlib\",\"level\":9}}",
		 "zlib shuffle(4) | shuffle, deflate(9)"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":\"0\"}]}",
		 "shuffle(4) | shuffle"},
		{"{\"filters\":[{\"id\":\"shuffle\"}],\"compressor\":{\"id\":\"zstd\"}}",
		 "zstd shuffle(4)"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":8}],"
		 "\"compressor\":{\"id\":\"zlib\"}}",
		 "zlib shuffle(8)"},
		{"{\"filters\":[{\"id\":\"shuffle\"},{\"id\":\"zlib\"},{\"id\":\"crc32c\"}]}",
		 "crc32c zlib shuffle(4)"},
		{"{\"filters\":[{\"id\":\"zlib\"}],\"compressor\":{\"id\":\"shuffle\"}}",
		 "shuffle(4) zlib"},
		{"{\"filters\":[{\"id\":\"zlib\"}],\"compressor\":{\"id\":\"zlib\"}}", "zlib zlib"},
		{"{\"order\":\"F\",\"compressor\":{\"id\":\"zlib\"}}",
		 "zlib transpose(4: 2x3x5 by 210)"},
		{"{\"compressor\":{\"id\":\"crc32c\",\"location\":\"start\"}}",
		 "-95 codec 'crc32c': location 'start' is not known"},
		{"{\"compressor\":{\"id\":\"crc32c\",\"location\":\"end\"}}", "crc32c"},
		{"{\"filters\":[{\"id\":\"x\"},{\"id\":\"zlib\"}]}", "-95 codec 'x' is not known"},
		{"{\"filters\":[{\"id\":\"zlib\"},{\"id\":\"delta\"}],\"compressor\":{\"id\":"
		 "\"zlib\"}}",
		 "-95 codec 'delta' is not known"},
		{"{\"compressor\":{\"id\":\"lzma\"}}", "-95 codec 'lzma' is not known"},
		{"{\"filters\":[{\"id\":\"pickle\"}]}",
		 "-95 codec pickle: decoding it would run code from the store"},
		{"{\"compressor\":{\"level\":1}}", "-5 codec {\"level\":1} has no 'id'"},
		{"{\"compressor\":\"zlib\"}", "-5 codec \"zlib\" has no 'id'"},
		{"{\"filters\":{}}", "-5 filters: not a list"},
		{"{\"filters\":[null]}", "-5 codec null has no 'id'"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":-1}]}",
		 "-5 codec 'shuffle': elementsize -1 is not known"},
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":4294967296}]}",
		 "-5 codec 'shuffle': elementsize 4294967296 is not known"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_codecs(rows[i][0], i4, false, rows[i][1]);
}

static void codecs_of_v3(void **state)
{
#define LITTLE	     "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG	     "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define ORDER(order) "{\"name\":\"transpose\",\"configuration\":{\"order\":" order "}}"
	static const char *const rows[][2] = {
		{"[]", ""},
		{"[" LITTLE "]", ""},
		{"[" BIG "]", " big"},
		{"[\"bytes\"]", ""},
		{"[\"endian\",\"zstd\",{\"name\":\"crc32c\"}]", "crc32c zstd"},
		{"[\"zstd\"]", "zstd"},
		{"[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":3}}]",
		 "gzip | deflate(3)"},
		{"[" LITTLE
		 ",{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}},"
		 "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":2}}]",
		 "zlib shuffle(4) | shuffle, deflate(2)"},
		{"[" BIG ",\"blosc\",\"numcodecs.bz2\",\"numcodecs.lz4\"]", "lz4 bz2 blosc big"},
		{"[" ORDER("[2,0,1]") "," LITTLE "]", "transpose(4: 2x3x5 by 201)"},
		/* 2 x 3 x 5 becomes 5 x 2 x 3, and then 5 x 3 x 2. */
		{"[" ORDER("[2,0,1]") "," ORDER("[0,2,1]") "," LITTLE ",\"zstd\"]",
		 "zstd transpose(4: 5x2x3 by 021) transpose(4: 2x3x5 by 201)"},
		{"[" ORDER("\"F\"") "]", "transpose(4: 2x3x5 by 210)"},
		{"[" ORDER("\"C\"") "]", ""},
		{"[" ORDER("[0,1,2]") "]", ""},
		{"[" ORDER("[0,1,1]") "]", "-5 codec 'transpose': order [0,1,1] for rank 3"},
		{"[" ORDER("[0,1]") "]", "-5 codec 'transpose': order [0,1] for rank 3"},
		{"[" ORDER("[0,1,3]") "]", "-5 codec 'transpose': order [0,1,3] for rank 3"},
		{"[" ORDER("[0,1,-1]") "]", "-5 codec 'transpose': order [0,1,-1] for rank 3"},
		{"[" ORDER("\"K\"") "]", "-5 codec 'transpose': order \"K\" for rank 3"},
		{"[\"transpose\"]", "-5 codec 'transpose': order  for rank 3"},
		{"[\"bytes\",\"bytes\"]", "-5 codec 'bytes' is at a wrong place"},
		{"[\"zstd\",\"bytes\"]", "-5 codec 'bytes' is at a wrong place"},
		{"[\"bytes\"," ORDER("[0,1,2]") "]", "-5 codec 'transpose' is at a wrong place"},
		{"[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"middle\"}}]",
		 "-5 codec 'bytes': endian \"middle\" is not known"},
		{"[{\"name\":\"sharding_indexed\",\"configuration\":{}}]",
		 "-95 codec 'sharding_indexed' is not known"},
		{"[\"bytes\",{\"name\":\"x\",\"must_understand\":false}]",
		 "-95 codec 'x' is not known"},
		{"[\"numcodecs.bytes\"]", "-95 codec 'numcodecs.bytes' is not known"},
		{"[\"numcodecs.delta\"]", "-95 codec 'delta' is not known"},
		{"[{\"configuration\":{}}]", "-5 codec {\"configuration\":{}} has no name"},
		{"[7]", "-5 codec 7 has no name"},
		{"{}", "-5 codecs: not a list"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), "{\"codecs\":%s}", rows[i][0]);
		assert_codecs(text, i4, true, rows[i][1]);
	}
}

/* The transposition moves elements as they are stored. A type that is changed has no filters in
 * the file. */
static void half_precision_is_widened_at_the_end(void **state)
{
	static const struct zarr_element little = {.kind = ZARR_FLOAT, .size = 2};
	assert_codecs("{\"order\":\"F\",\"compressor\":{\"id\":\"zlib\"}}", f2, false,
		      "zlib transpose(2: 2x3x5 by 210) widen(big)");
	assert_codecs("{\"codecs\":[" BIG ",\"gzip\"]}", little, true, "gzip widen(big) big");
	assert_codecs("{\"codecs\":[\"bytes\"]}", little, true, "widen");
	assert_codecs("{\"codecs\":[" BIG "]}", u1, true, "");
}

static void assert_text(const char *json, const char *text)
{
	struct parsed p;
	parse(&p, json, i4, false);
	assert_int_equal(p.rc, 0);
	if (text)
		assert_string_equal(p.a.codecs.text, text);
	else
		assert_null(p.a.codecs.text);
	release(&p);
}

static void the_locator_says_what_is_stored(void **state)
{
	static const char *const rows[][2] = {
		{"{\"filters\":[{\"id\":\"shuffle\",\"elementsize\":8}],\"compressor\":{\"id\":"
		 "\"zlib\",\"level\":\"5\"}}",
		 "shuffle(8), zlib(5)"},
		{"{\"order\":\"F\",\"compressor\":{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5}"
		 "}",
		 "transpose, blosc(lz4)"},
		{"{\"compressor\":{\"id\":\"zstd\",\"level\":-3}}", "zstd"},
		{"{\"compressor\":{\"id\":\"zstd\",\"level\":3}}", "zstd(3)"},
		{"{\"compressor\":{\"id\":\"blosc\",\"clevel\":5}}", "blosc"},
		{"{\"compressor\":{\"id\":\"zlib\",\"cname\":\"lz4\"}}", "zlib"},
		{"{\"filters\":[{\"id\":\"crc32c\"},{\"id\":\"lz4\"},{\"id\":\"bz2\"},{\"id\":"
		 "\"gzip\"}]}",
		 "crc32c, lz4, bz2, gzip"},
		{"{}", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_text(rows[i][0], rows[i][1]);
}

static void chains_have_a_limit(void **state)
{
	char text[4096] = "{\"codecs\":[\"bytes\"", v2[4096] = "{\"filters\":[{\"id\":\"zlib\"}";
	for (int i = 0; i < 32; i++) {
		strcat(text, ",\"zstd\"");
		strcat(v2, ",{\"id\":\"zlib\"}");
	}
	char *last = strrchr(v2, ','), *last3 = strrchr(text, ',');
	struct parsed p;
	strcpy(last, "]}"); /* 32 of them */
	strcpy(last3, "]}");
	parse(&p, v2, i4, false);
	assert_int_equal(p.a.codecs.n, 32);
	release(&p);
	parse(&p, text, i4, true);
	assert_int_equal(p.a.codecs.n, 31);
	release(&p);
	strcpy(last, ",{\"id\":\"zlib\"}]}");
	strcpy(last3, ",\"zstd\"]}");
	assert_codecs(text, i4, true, "-95 33 codecs are over the limit of 32");
	assert_codecs(v2, i4, false, "-95 33 codecs are over the limit of 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codecs_of_v2),
		cmocka_unit_test(codecs_of_v3),
		cmocka_unit_test(half_precision_is_widened_at_the_end),
		cmocka_unit_test(the_locator_says_what_is_stored),
		cmocka_unit_test(chains_have_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
