/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs of both versions: the steps in the order of decoding, the filters that a file records, and
 * what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
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

/* ---- shards ---- */

/* Adds a line for each shard: the shape of its inner chunks along the dimensions of the array, the
 * order of its axes, the number of inner chunks, its index, and the codecs around it. */
static void print_shards(const struct zarr_codecs *c, struct str *out)
{
	for (uint32_t i = 0; i < c->nshards; i++) {
		const struct zarr_shard *s = c->shards[i];
		str_addf(out, "; %llux%llux%llu by %u%u%u, %u%s%s%s",
			 (unsigned long long)s->inner[0], (unsigned long long)s->inner[1],
			 (unsigned long long)s->inner[2], s->order[0], s->order[1], s->order[2],
			 s->nchunks, s->at_start ? " start" : "", s->big_endian ? " big" : "",
			 s->has_checksum ? " crc" : "");
		for (uint32_t k = 0; k < s->naround; k++)
			str_addf(out, " %s", step_name(s->around[k].codec));
	}
}

/* The shards have 4 x 6 x 10 elements. */
static void assert_shards(const char *codecs, const char *expected)
{
	static const uint64_t shard[] = {4, 6, 10};
	auto_str struct str text = {0}, out = {0};
	struct parsed p;
	str_addf(&text, "{\"codecs\":%s}", codecs);
	parse(&p, str_text(&text), i4, true);
	/* Once more, for an array of another shape. */
	p.a = (struct zarr_array){.element = i4, .rank = 3, .shape = shard, .chunk = shard};
	json_t *doc;
	err_clear(&p.err);
	assert_int_equal(json_text_load(str_text(&text), text.b.len, &doc, &p.err), 0);
	p.rc = zarr_codecs_v3(p.b, &p.a, json_object_get(doc, "codecs"), &p.err);
	if (p.rc) {
		str_addf(&out, "%d %s", p.rc, p.err.msg);
	} else {
		print_steps(&p.a.codecs, &out);
		print_shards(&p.a.codecs, &out);
		str_addf(&out, "; %s", p.a.codecs.text ? p.a.codecs.text : "");
		assert_ptr_equal(p.a.shard, shard);
		assert_ptr_equal(p.a.chunk, p.a.codecs.shards[p.a.codecs.nshards - 1]->inner);
	}
	assert_string_equal(str_text(&out), expected);
	release(&p);
}

#define SHARD(shape, codecs, more)                                                                 \
	"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape                 \
	",\"codecs\":[" codecs "]" more "}}"
#define INDEX(codecs) ",\"index_codecs\":[" codecs "]"
#define CRC	      "{\"name\":\"crc32c\"}"

static void shards_have_inner_chunks(void **state)
{
	static const char *const rows[][2] = {
		{SHARD("[2,3,5]", LITTLE, INDEX(LITTLE "," CRC)), "; 2x3x5 by 012, 8 crc; "},
		{SHARD("[4,6,10]", LITTLE ",\"zstd\"", INDEX(BIG) ",\"index_location\":\"start\""),
		 "zstd; 4x6x10 by 012, 1 start big; zstd"},
		/* Without index_codecs, those of most writers. */
		{SHARD("[1,1,1]", "", ",\"index_location\":\"end\""), "; 1x1x1 by 012, 240 crc; "},
		/* The index is that of 10 x 4 x 6 elements. The chunks of the dataset have 1 x 2 x
		 * 5. */
		{ORDER("[2,0,1]") "," SHARD("[5,1,2]", ORDER("[1,0,2]") "," LITTLE,
					    INDEX("\"bytes\"")),
		 "transpose(4: 5x1x2 by 102) transpose(4: 1x2x5 by 201); 1x2x5 by 201, 24; "
		 "transpose, transpose"},
		{SHARD("[2,6,10]",
		       ORDER("[2,1,0]") "," SHARD("[5,3,1]", LITTLE ",\"numcodecs.zlib\"",
						  INDEX("\"bytes\"")) ",\"gzip\"",
		       INDEX(LITTLE "," CRC)) "," CRC ",\"zstd\"",
		 "zlib transpose(4: 1x3x5 by 210); 2x6x10 by 012, 2 crc crc32c zstd; 1x3x5 by 210, "
		 "8 gzip; transpose, zlib, gzip around shards, crc32c around shards, zstd around "
		 "shards"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[2048];
		snprintf(text, sizeof(text), "[%s]", rows[i][0]);
		assert_shards(text, rows[i][1]);
	}
}

static void shards_that_are_refused(void **state)
{
#define NAME "codec 'sharding_indexed': "
	static const char *const rows[][2] = {
		{"\"sharding_indexed\"", "-5 " NAME "chunk_shape: not a list"},
		{SHARD("[2,3]", LITTLE, ""), "-5 " NAME "chunk_shape has 2 numbers, shape has 3"},
		{SHARD("[2,4,5]", LITTLE, ""),
		 "-5 " NAME "inner chunks of length 4 do not divide the length 6 of axis 1"},
		{SHARD("[2,0,5]", LITTLE, ""),
		 "-5 " NAME "inner chunks of length 0 do not divide the length 6 of axis 1"},
		{SHARD("[2,12,5]", LITTLE, ""),
		 "-5 " NAME "inner chunks of length 12 do not divide the length 6 of axis 1"},
		{ORDER("[2,0,1]") "," SHARD("[2,3,5]", LITTLE, ""),
		 "-5 " NAME "inner chunks of length 3 do not divide the length 4 of axis 1"},
		{SHARD("[2,3,5]", LITTLE, INDEX(LITTLE ",\"gzip\"")),
		 "-95 " NAME "an index with the codec 'gzip' is not known"},
		{SHARD("[2,3,5]", LITTLE, INDEX(CRC)),
		 "-5 " NAME "index_codecs: codec 'crc32c' is at a wrong place"},
		{SHARD("[2,3,5]", LITTLE, INDEX(LITTLE "," CRC "," CRC)),
		 "-5 " NAME "index_codecs: codec 'crc32c' is at a wrong place"},
		{SHARD("[2,3,5]", LITTLE, INDEX("\"bytes\",\"bytes\"")),
		 "-5 " NAME "index_codecs: codec 'bytes' is at a wrong place"},
		{SHARD("[2,3,5]", LITTLE, ",\"index_codecs\":{}"),
		 "-5 " NAME "index_codecs: not a list"},
		{SHARD("[2,3,5]", LITTLE, INDEX("7")),
		 "-5 " NAME "index_codecs: codec 7 has no name"},
		{SHARD("[2,3,5]", LITTLE,
		       INDEX("{\"name\":\"bytes\",\"configuration\":{\"endian\":1}}")),
		 "-5 " NAME "index_codecs: codec 'bytes': endian 1 is not known"},
		{SHARD("[2,3,5]", LITTLE, ",\"index_location\":\"middle\""),
		 "-5 " NAME "index_location \"middle\" is not known"},
		{SHARD("[2,3,5]", LITTLE, "") "," SHARD("[2,3,5]", LITTLE, ""),
		 "-5 codec 'sharding_indexed' is at a wrong place"},
		{LITTLE "," SHARD("[2,3,5]", LITTLE, ""),
		 "-5 codec 'sharding_indexed' is at a wrong place"},
		{SHARD("[2,3,5]", LITTLE ",\"mine\"", ""), "-95 codec 'mine' is not known"},
		{SHARD("[2,3,5]", LITTLE, "") ",\"mine\"", "-95 codec 'mine' is not known"},
		{"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3,5]}}",
		 "-5 codecs: not a list"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[2048];
		snprintf(text, sizeof(text), "[%s]", rows[i][0]);
		assert_shards(text, rows[i][1]);
	}
}

/* The depth of a document has a limit, too. */
static void shards_inside_of_each_other(void **state)
{
	for (int depth = 1; depth <= 20; depth += depth < 5 ? 1 : 15) {
		auto_str struct str text = {0};
		struct parsed p;
		str_add(&text, "{\"codecs\":");
		for (int i = 0; i < depth; i++)
			str_add(&text, "[{\"name\":\"sharding_indexed\",\"configuration\":{"
				       "\"chunk_shape\":[1,1,1],\"codecs\":");
		str_add(&text, "[]");
		for (int i = 0; i < depth; i++)
			str_add(&text, "}}]");
		str_add(&text, "}");
		parse(&p, str_text(&text), i4, true);
		assert_int_equal(p.rc, depth <= 4 ? 0 : -EOPNOTSUPP);
		if (depth <= 4)
			assert_int_equal(p.a.codecs.nshards, depth);
		else
			assert_string_equal(p.err.msg,
					    NAME "more than 4 shards inside of each other");
		release(&p);
	}
}

/* The codecs of all lists count together. */
static void shards_have_few_codecs(void **state)
{
	auto_str struct str text = {0};
	struct parsed p;
	str_add(&text, "{\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{"
		       "\"chunk_shape\":[2,3,5],\"codecs\":[\"bytes\"");
	for (int i = 0; i < 16; i++)
		str_add(&text, ",\"zstd\"");
	str_add(&text, "]}}");
	for (int i = 0; i < 16; i++)
		str_add(&text, ",\"zstd\"");
	str_add(&text, "]}");
	parse(&p, str_text(&text), i4, true);
	assert_int_equal(p.rc, -EOPNOTSUPP);
	assert_string_equal(p.err.msg, "34 codecs are over the limit of 32");
	release(&p);
}

static void shards_have_at_most_a_million_inner_chunks(void **state)
{
	static const uint64_t large[][3] = {
		{1 << 20, 1, 1}, {1 << 20, 2, 1}, {UINT64_C(1) << 62, UINT64_C(1) << 62, 1}};
	static const char *const expected[] = {
		NULL, "shard of 2097152 inner chunks is over the limit of 1048576",
		"shard of 18446744073709551615 inner chunks is over the limit of 1048576"};
	for (size_t i = 0; i < 3; i++) {
		struct parsed p;
		json_t *doc;
		const char *text = "{\"codecs\":[" SHARD("[1,1,1]", LITTLE, "") "]}";
		parse(&p, text, i4, true);
		p.a = (struct zarr_array){
			.element = i4, .rank = 3, .shape = large[i], .chunk = large[i]};
		assert_int_equal(json_text_load(text, strlen(text), &doc, &p.err), 0);
		p.rc = zarr_codecs_v3(p.b, &p.a, json_object_get(doc, "codecs"), &p.err);
		assert_int_equal(p.rc, expected[i] ? -EOPNOTSUPP : 0);
		if (expected[i])
			assert_string_equal(p.err.msg, expected[i]);
		release(&p);
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
		cmocka_unit_test(shards_have_inner_chunks),
		cmocka_unit_test(shards_that_are_refused),
		cmocka_unit_test(shards_inside_of_each_other),
		cmocka_unit_test(shards_have_few_codecs),
		cmocka_unit_test(shards_have_at_most_a_million_inner_chunks),
		cmocka_unit_test(half_precision_is_widened_at_the_end),
		cmocka_unit_test(the_locator_says_what_is_stored),
		cmocka_unit_test(chains_have_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
