/* SPDX-License-Identifier: Apache-2.0 */
/* Which stored chunks of a file can be chunk objects as they are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "stored_encode.h"
#include "decode_elems.h"

enum { N = 40 };

struct fixture {
	struct arena *arena;
	const struct dtype *i32, *ref, *padded, *packed;
	uint8_t plain[N];
};

static int setup(void **state)
{
	static struct fixture f;
	struct arena *a = f.arena = arena_new(1 << 20);
	f.i32 = dtype_integer(a, 4, true, false, NULL);
	f.ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	const struct dtype_member m[] = {{"a", 0, f.i32}, {"b", 4, f.i32}};
	f.packed = dtype_compound(a, 2, m, 8, NULL);
	f.padded = dtype_compound(a, 2, m, 10, NULL);
	for (size_t i = 0; i < N; i++)
		f.plain[i] = (uint8_t)(i * i);
	*state = &f;
	return f.padded && f.packed && f.ref ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->arena);
	return 0;
}

/* What libhdf5 would store with the filters that the mask leaves. */
static struct bytes stored_with(const struct fixture *f, const struct pipeline *p, uint32_t mask)
{
	struct pipeline applied = {0};
	struct bytes b = {0};
	for (uint32_t i = 0; i < p->n; i++)
		if (!(mask & (1u << i)))
			applied.f[applied.n++] = p->f[i];
	codec_stored_pipeline(&applied, &applied);
	const size_t n = (size_t)codec_stored_size(&applied, N);
	assert_int_equal(bytes_append_zero(&b, n), 0);
	assert_int_equal(stored_encode(&applied, 4, f->plain, N, b.data), 0);
	return b;
}

static void what_is_kept(void **state)
{
	struct fixture *f = *state;
	enum { DEFLATED = N + 11, SUM = 4 };
	static const struct {
		const char *name;
		uint32_t ids[4];
		uint32_t mask;
		size_t keep;
	} cases[] = {
		{"no filter", {0}, 0, N},
		{"checksum", {FILTER_FLETCHER32}, 0, N},
		{"two checksums", {FILTER_FLETCHER32, FILTER_FLETCHER32}, 0, N},
		{"deflate", {FILTER_DEFLATE}, 0, DEFLATED},
		{"shuffle, deflate", {FILTER_SHUFFLE, FILTER_DEFLATE}, 0, DEFLATED},
		{"shuffle, deflate, checksum",
		 {FILTER_SHUFFLE, FILTER_DEFLATE, FILTER_FLETCHER32},
		 0,
		 DEFLATED},
		{"deflate, checksum, masked", {FILTER_DEFLATE, FILTER_FLETCHER32}, 2, DEFLATED},
		{"checksum inside of the stream",
		 {FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
		 0,
		 0},
		{"checksum inside of the stream, masked",
		 {FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
		 1,
		 DEFLATED},
		{"shuffle alone", {FILTER_SHUFFLE}, 0, 0},
		{"shuffle alone, masked", {FILTER_SHUFFLE}, 1, N},
		{"shuffle, checksum", {FILTER_SHUFFLE, FILTER_FLETCHER32}, 0, 0},
		{"checksum, shuffle", {FILTER_FLETCHER32, FILTER_SHUFFLE}, 0, 0},
		{"deflate, shuffle", {FILTER_DEFLATE, FILTER_SHUFFLE}, 0, 0},
		{"deflate twice", {FILTER_DEFLATE, FILTER_DEFLATE}, 0, 0},
		{"deflate, masked", {FILTER_SHUFFLE, FILTER_DEFLATE}, 2, 0},
		{"shuffle, masked", {FILTER_SHUFFLE, FILTER_DEFLATE}, 1, 0},
		{"all masked", {FILTER_SHUFFLE, FILTER_DEFLATE}, UINT32_MAX, 0},
		{"lzf, masked", {FILTER_LZF}, 1, 0},
		{"unknown, masked", {32011}, 1, N},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pipeline p = {0};
		for (; p.n < 4 && cases[i].ids[p.n]; p.n++)
			p.f[p.n].id = cases[i].ids[p.n];
		struct bytes b = stored_with(f, &p, cases[i].mask);
		size_t keep = 99;
		assert_int_equal(
			codec_verbatim(&p, cases[i].mask, f->i32, b.data, b.len, &keep, NULL), 0);
		if (keep != cases[i].keep)
			fail_msg("%s: %zu bytes instead of %zu", cases[i].name, keep,
				 cases[i].keep);
		/* What is kept is decoded to the same elements. */
		struct codec_plan plan;
		const struct codec_chunk c = {.chain = &plan.chain};
		codec_plan_object(&plan, f->i32, N / 4, &p, OBJECT_SHUFFLED, NULL);
		struct elems out = {0};
		b.len = keep;
		if (keep > 0) {
			assert_int_equal(decode_elems(&c, &b, &out, NULL), 0);
			assert_memory_equal(out.fixed.data, f->plain, N);
		}
		elems_release(&out);
		bytes_release(&b);
	}
}

static void other_filters_are_not_kept(void **state)
{
	struct fixture *f = *state;
	static const uint32_t ids[] = {FILTER_SZIP,  FILTER_NBIT, FILTER_SCALEOFFSET,
				       FILTER_BZIP2, FILTER_LZF,  FILTER_BLOSC,
				       FILTER_LZ4,   FILTER_ZSTD, FILTER_BITSHUFFLE};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct pipeline p = {.n = 1};
		size_t keep = 99;
		p.f[0].id = ids[i];
		assert_int_equal(codec_verbatim(&p, 0, f->i32, f->plain, N, &keep, NULL), 0);
		assert_int_equal(keep, 0);
	}
}

static void types(void **state)
{
	struct fixture *f = *state;
	const struct pipeline none = {0};
	size_t keep = 99;
	assert_int_equal(codec_verbatim(&none, 0, f->packed, f->plain, N, &keep, NULL), 0);
	assert_int_equal(keep, N);
	assert_int_equal(codec_verbatim(&none, 0, f->padded, f->plain, N, &keep, NULL), 0);
	assert_int_equal(keep, 0);
	assert_int_equal(codec_verbatim(&none, 0, f->ref, f->plain, N, &keep, NULL), 0);
	assert_int_equal(keep, 0);
}

/* A shuffle with other elements than those of the type, and "bitshuffle" under its id. */
static void other_shuffles(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint32_t nparams, size;
		const char *name;
		bool kept;
	} cases[] = {{1, 4, NULL, true},
		     {0, 0, NULL, true},
		     {1, 2, NULL, false},
		     {1, 0, NULL, false},
		     {1, 4, "bitshuffle", false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pipeline p = {.n = 2};
		p.f[0] = (struct filter){FILTER_SHUFFLE, cases[i].name, cases[i].nparams,
					 &cases[i].size};
		p.f[1].id = FILTER_DEFLATE;
		size_t keep = 99;
		assert_int_equal(
			codec_verbatim(&p, 0, f->i32, (const uint8_t *)"\x78\x9c", 2, &keep, NULL),
			0);
		assert_int_equal(keep > 0, cases[i].kept);
	}
}

static void damaged(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = {.n = 2};
	p.f[0].id = FILTER_DEFLATE;
	p.f[1].id = FILTER_FLETCHER32;
	struct bytes b = stored_with(f, &p, 0);
	struct err err = ERR_INIT;
	size_t keep = 99;
	b.data[9] ^= 1;
	assert_int_equal(codec_verbatim(&p, 0, f->i32, b.data, b.len, &keep, &err), -EIO);
	assert_non_null(strstr(err.msg, "fletcher32: the checksum is"));
	assert_int_equal(keep, 0);
	assert_int_equal(codec_verbatim(&p, 0, f->i32, b.data, 3, &keep, &err), -EIO);
	assert_non_null(strstr(err.msg, "too few"));
	/* The bytes are no zlib stream: the decoder reports it. */
	p.n = 1;
	b.data[0] = 0x79;
	assert_int_equal(codec_verbatim(&p, 0, f->i32, b.data, b.len, &keep, &err), 0);
	assert_int_equal(keep, 0);
	assert_int_equal(codec_verbatim(&p, 0, f->i32, b.data, 1, &keep, &err), 0);
	assert_int_equal(keep, 0);
	bytes_release(&b);
}

/* A library ignores what follows the stream. */
static void the_length_of_a_stream(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = {.n = 1};
	p.f[0].id = FILTER_DEFLATE;
	struct bytes b = stored_with(f, &p, 0);
	const size_t whole = b.len;
	size_t length = 0;
	uint64_t decoded = 0;
	assert_int_equal(codec_verbatim_length(b.data, b.len, 1 << 20, &length, &decoded, NULL), 0);
	assert_int_equal(length, whole);
	assert_true(decoded > 3);
	assert_int_equal(bytes_append(&b, "more", 4), 0);
	assert_int_equal(codec_verbatim_length(b.data, b.len, 1 << 20, &length, &decoded, NULL), 0);
	assert_int_equal(length, whole);
	assert_int_equal(codec_verbatim_length(b.data, whole - 1, 1 << 20, &length, &decoded, NULL),
			 -EIO);
	assert_int_equal(codec_verbatim_length(b.data, b.len, 3, &length, &decoded, NULL), -EIO);
	bytes_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept), cmocka_unit_test(other_filters_are_not_kept),
		cmocka_unit_test(types),	cmocka_unit_test(other_shuffles),
		cmocka_unit_test(damaged),	cmocka_unit_test(the_length_of_a_stream),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
