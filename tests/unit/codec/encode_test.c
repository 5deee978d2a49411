/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: the bytes of chunk objects, filters, and that decoding returns the elements. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <codec/chunk.h>

#include "decode_elems.h"

struct fixture {
	struct arena *arena;
	const struct dtype *i16, *i32, *text, *ref, *region;
	const struct dtype *ints;   /* vlen of i16 */
	const struct dtype *nested; /* vlen of vlen of i16 */
	const struct dtype *texts;  /* array of 2 vlen strings */
	const struct dtype *padded; /* i16 at 1, i32 at 4, 12 bytes */
};

static const struct dtype *compound(struct arena *a, uint32_t size, const struct dtype *first,
				    uint32_t at, const struct dtype *second, uint32_t second_at)
{
	const struct dtype_member m[] = {{"a", at, first}, {"b", second_at, second}};
	return dtype_compound(a, 2, m, size, NULL);
}

static int setup(void **state)
{
	static struct fixture f;
	struct arena *a = f.arena = arena_new(1 << 20);
	const uint32_t two[] = {2};
	f.i16 = dtype_integer(a, 2, true, true, NULL);
	f.i32 = dtype_integer(a, 4, true, false, NULL);
	f.text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	f.ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	f.region = dtype_reference(a, DTYPE_REF_REGION, NULL);
	f.ints = dtype_vlen(a, f.i16, NULL);
	f.nested = dtype_vlen(a, f.ints, NULL);
	f.texts = dtype_array(a, f.text, 1, two, NULL);
	f.padded = compound(a, 12, f.i16, 1, f.i32, 4);
	*state = &f;
	return f.padded && f.texts && f.nested && f.region ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->arena);
	return 0;
}

/* Object number N is "datasets/d-N". */
static void name(void *ctx, uint64_t ref, char *text)
{
	memset(text, 0, OBJECT_REF_TEXT);
	snprintf(text, OBJECT_REF_TEXT, "datasets/d-%u", (unsigned int)(ref - 1));
}

static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	char copy[CODEC_REF_TEXT + 1] = {0};
	unsigned int number = 0;
	memcpy(copy, text, n);
	return sscanf(copy, "datasets/d-%u", &number) == 1 ? number + UINT64_C(1) : 0;
}

static const struct object_namer namer = {.name = name};
static const struct object_resolver resolver = {.resolve = resolve};

static int encode(const struct dtype *t, uint64_t nelems, const struct pipeline *p,
		  const struct elems *in, struct bytes *out, struct err *err)
{
	struct codec_plan plan;
	const struct codec_encode c = {.chain = &plan.chain, .namer = &namer};
	codec_plan_object(&plan, t, nelems, p, OBJECT_SHUFFLED, NULL);
	return codec_chunk_encode(&c, in, out, err);
}

static void decode(const struct dtype *t, uint64_t nelems, const struct pipeline *p,
		   struct bytes *stored, struct elems *out)
{
	struct err err = ERR_INIT;
	struct codec_plan plan;
	const struct codec_chunk c = {
		.chain = &plan.chain, .max_bytes = 1 << 24, .resolver = &resolver};
	codec_plan_object(&plan, t, nelems, p, OBJECT_SHUFFLED, NULL);
	if (decode_elems(&c, stored, out, &err))
		fail_msg("%s", err.msg);
}

static void add(struct elems *e, const void *bytes, size_t n)
{
	assert_int_equal(bytes_append(&e->fixed, bytes, n), 0);
}

/* Appends a slot with items of n bytes. */
static void add_vlen(struct elems *e, uint32_t count, const void *items, size_t n)
{
	uint8_t slot[DTYPE_VLEN_SIZE];
	uint64_t offset = 0;
	assert_int_equal(elems_heap_add(e, items, n, &offset), 0);
	elems_put_vlen(slot, count, offset);
	add(e, slot, sizeof(slot));
}

/* The elements are encoded to these bytes, and decoded from them. Releases e. */
static void expect(const struct dtype *t, uint64_t nelems, struct elems *e, const void *bytes,
		   size_t n)
{
	const struct pipeline none = {0};
	struct bytes out = {0};
	struct elems back;
	struct err err = ERR_INIT;
	if (encode(t, nelems, &none, e, &out, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(out.len, n);
	assert_memory_equal(out.data, bytes, n);
	decode(t, nelems, &none, &out, &back);
	assert_int_equal(back.fixed.len, e->fixed.len);
	if (t->has_vlen)
		assert_int_equal(back.heap.len, e->heap.len);
	else
		assert_memory_equal(back.fixed.data, e->fixed.data, e->fixed.len);
	elems_release(&back);
	elems_release(e);
	bytes_release(&out);
}

static void sequences(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0};
	add_vlen(&e, 2, "\1\2\3\4", 4);
	add(&e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", DTYPE_VLEN_SIZE); /* never set */
	add_vlen(&e, 1, "\5\6", 2);
	expect(f->ints, 3, &e, "\4\0\0\0\1\2\3\4\0\0\0\0\2\0\0\0\5\6", 18);
	add_vlen(&e, 3, "abc", 3);
	add_vlen(&e, 0, "", 0);
	expect(f->text, 2, &e, "\3\0\0\0abc\0\0\0\0", 11);
}

static void sequences_of_sequences(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0}, inner = {0};
	uint64_t offset = 0;
	uint8_t slot[DTYPE_VLEN_SIZE];
	assert_int_equal(elems_heap_add(&e, "\7\10", 2, &offset), 0);
	elems_put_vlen(slot, 1, offset);
	add(&inner, slot, sizeof(slot));
	elems_put_vlen(slot, 0, 0);
	add(&inner, slot, sizeof(slot));
	add_vlen(&e, 2, inner.fixed.data, inner.fixed.len);
	expect(f->nested, 1, &e, "\12\0\0\0\2\0\0\0\7\10\0\0\0\0", 14);
	elems_release(&inner);
}

static void references(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0};
	char text[3][CODEC_REF_TEXT] = {"datasets/d-6", "", "datasets/d-255"};
	add(&e, "\7\0\0\0\0\0\0", 8);
	add(&e, "\0\0\0\0\0\0\0", 8);
	add(&e, "\0\1\0\0\0\0\0", 8);
	expect(f->ref, 3, &e, text, sizeof(text));
}

/* HSDS leaves 4 zero bytes for each array of vlens after the last element. */
static void zeros_after_arrays_of_sequences(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0};
	add_vlen(&e, 1, "a", 1);
	add_vlen(&e, 0, "", 0);
	add_vlen(&e, 2, "bc", 2);
	add_vlen(&e, 1, "d", 1);
	expect(f->texts, 2, &e,
	       "\1\0\0\0a\0\0\0\0\2\0\0\0bc\1\0\0\0d"
	       "\0\0\0\0\0\0\0",
	       20 + 8);
}

static void compounds_are_packed(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0};
	assert_int_equal(codec_stored_elem_size(f->padded), 6);
	add(&e, "\0\1\2\0\3\4\5\6\0\0\0\0\0\21\22\0\23\24\25\26\0\0\0\0", 24);
	expect(f->padded, 2, &e, "\1\2\3\4\5\6\21\22\23\24\25\26", 12);

	/* Members in another order than their offsets: no gap, but other bytes. */
	const struct dtype *swapped = compound(f->arena, 6, f->i16, 4, f->i32, 0);
	assert_int_equal(codec_stored_elem_size(swapped), 6);
	add(&e, "\1\2\3\4\5\6", 6);
	expect(swapped, 1, &e, "\5\6\1\2\3\4", 6);

	/* Inside of an array, and as the items of a sequence. */
	const uint32_t two[] = {2};
	const struct dtype *array = dtype_array(f->arena, f->padded, 1, two, NULL);
	assert_int_equal(codec_stored_elem_size(array), 12);
	add(&e, "\0\1\2\0\3\4\5\6\0\0\0\0\0\21\22\0\23\24\25\26\0\0\0\0", 24);
	expect(array, 1, &e, "\1\2\3\4\5\6\21\22\23\24\25\26", 12);
	add_vlen(&e, 1, "\0\1\2\0\3\4\5\6\0\0\0\0", 12);
	expect(dtype_vlen(f->arena, f->padded, NULL), 1, &e, "\6\0\0\0\1\2\3\4\5\6", 10);

	/* With a member that has slots. */
	const struct dtype *mixed = compound(f->arena, 40, f->padded, 4, f->text, 20);
	add(&e, "\0\0\0\0\0\1\2\0\3\4\5\6\0\0\0\0\0\0\0\0", 20);
	add_vlen(&e, 1, "x", 1);
	add(&e, "\0\0\0\0", 4);
	assert_int_equal(codec_stored_elem_size(mixed), 0);
	expect(mixed, 1, &e, "\1\2\3\4\5\6\1\0\0\0x", 11);
}

/* Whatever bytes are in the gaps, they are not stored, and are zeros when they are decoded. */
static void gaps_are_not_stored(void **state)
{
	struct fixture *f = *state;
	const struct pipeline none = {0};
	struct elems e = {0}, back;
	struct bytes out = {0};
	add(&e, "gabccdefgggg", 12);
	assert_int_equal(encode(f->padded, 1, &none, &e, &out, NULL), 0);
	assert_int_equal(out.len, 6);
	decode(f->padded, 1, &none, &out, &back);
	assert_memory_equal(back.fixed.data, "\0ab\0cdef\0\0\0\0", 12);
	elems_release(&back);
	elems_release(&e);
	bytes_release(&out);
}

/* The filters of the objects for what a file records. */
static void filters(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint32_t ids[3];
		bool deflated, shuffled;
	} cases[] = {
		{{0}, false, false},
		{{FILTER_DEFLATE}, true, false},
		{{FILTER_SHUFFLE, FILTER_DEFLATE}, true, true},
		{{FILTER_DEFLATE, FILTER_SHUFFLE}, true, false},
		{{FILTER_SHUFFLE, FILTER_LZF}, true, true},
		{{FILTER_BITSHUFFLE}, true, false},
		{{FILTER_SZIP}, true, false},
		{{FILTER_NBIT}, false, false},
		{{FILTER_SCALEOFFSET, FILTER_SHUFFLE, FILTER_ZSTD}, true, true},
		{{FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE}, true, true},
		{{FILTER_SHUFFLE}, false, false},
		{{FILTER_SHUFFLE, FILTER_FLETCHER32}, false, false},
		{{32011}, false, false},
		{{FILTER_SHUFFLE, 32011, FILTER_DEFLATE}, true, true},
	};
	enum { ELEMS = 300 };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pipeline p = {0};
		for (; p.n < 3 && cases[i].ids[p.n]; p.n++)
			p.f[p.n].id = cases[i].ids[p.n];
		struct elems e = {0}, back;
		struct bytes out = {0};
		for (uint32_t k = 0; k < ELEMS; k++)
			add(&e, (const uint8_t[]){(uint8_t)k, (uint8_t)(k >> 8), 0, 0}, 4);
		assert_int_equal(encode(f->i32, ELEMS, &p, &e, &out, NULL), 0);
		if (cases[i].deflated) {
			uint8_t plain[4 * ELEMS];
			uLongf n = sizeof(plain);
			assert_int_equal(uncompress(plain, &n, out.data, out.len), Z_OK);
			assert_int_equal(n, sizeof(plain));
			assert_int_equal(plain[1], cases[i].shuffled ? 1 : 0);
			assert_int_equal(plain[2 * ELEMS - 1], cases[i].shuffled ? 1 : 0);
		} else {
			assert_int_equal(out.len, 4 * ELEMS);
		}
		decode(f->i32, ELEMS, &p, &out, &back);
		assert_memory_equal(back.fixed.data, e.fixed.data, 4 * ELEMS);
		elems_release(&back);
		elems_release(&e);
		bytes_release(&out);
	}
}

static void level_of_the_pipeline(void **state)
{
	struct fixture *f = *state;
	static const uint8_t second[] = {0x01, 0x01, 0x5e, 0x5e, 0x5e, 0x5e,
					 0x9c, 0xda, 0xda, 0xda, 0x9c};
	for (uint32_t level = 0; level <= 10; level++) {
		struct pipeline p = {.n = 1};
		p.f[0] = (struct filter){.id = FILTER_DEFLATE, .nparams = 1, .params = &level};
		struct elems e = {0};
		struct bytes out = {0};
		add(&e, "\0\1\2\3", 4);
		assert_int_equal(encode(f->i32, 1, &p, &e, &out, NULL), 0);
		assert_int_equal(out.data[0], 0x78);
		assert_int_equal(out.data[1], second[level]);
		elems_release(&e);
		bytes_release(&out);
	}
}

/* Elements of variable length are deflated, but not shuffled. */
static void variable_length_is_deflated(void **state)
{
	struct fixture *f = *state;
	struct pipeline p = {.n = 2};
	p.f[0].id = FILTER_SHUFFLE;
	p.f[1].id = FILTER_DEFLATE;
	struct elems e = {0}, back;
	struct bytes out = {0};
	uint8_t plain[16];
	uLongf n = sizeof(plain);
	add_vlen(&e, 3, "abc", 3);
	add_vlen(&e, 2, "de", 2);
	assert_int_equal(encode(f->text, 2, &p, &e, &out, NULL), 0);
	assert_int_equal(uncompress(plain, &n, out.data, out.len), Z_OK);
	assert_int_equal(n, 13);
	assert_memory_equal(plain, "\3\0\0\0abc\2\0\0\0de", 13);
	decode(f->text, 2, &p, &out, &back);
	assert_int_equal(back.fixed.len, 32);
	elems_release(&back);
	elems_release(&e);
	bytes_release(&out);
}

static void refuse(const struct dtype *t, uint64_t nelems, struct elems *e, int code,
		   const char *word)
{
	const struct pipeline none = {0};
	struct bytes out = {0};
	struct err err = ERR_INIT;
	const int rc = encode(t, nelems, &none, e, &out, &err);
	if (rc != code || !strstr(err.msg, word))
		fail_msg("%d \"%s\" instead of %d \"%s\"", rc, err.msg, code, word);
	assert_null(out.data);
	elems_release(e);
}

static void invalid(void **state)
{
	struct fixture *f = *state;
	struct elems e = {0};
	uint8_t slot[DTYPE_VLEN_SIZE];
	add(&e, "\0\0\0\0", 4);
	refuse(f->i32, 2, &e, -EIO, "4 bytes are not 2 elements of 4 bytes");
	add(&e, "\0\0\0\0", 4);
	refuse(f->i32, UINT64_MAX / 2, &e, -EIO, "elements of 4 bytes");
	elems_put_vlen(slot, 3, 8);
	add(&e, slot, sizeof(slot));
	refuse(f->text, 1, &e, -EIO, "outside of its heap");
	add(&e, "\0\0\0\0\0\0\0\0", 8);
	refuse(f->text, 1, &e, -EIO, "8 bytes are not 1 elements of 16 bytes");
	add(&e, "\0\0\0\0\0\0\0\0\0\0\0", 12);
	refuse(f->region, 1, &e, -EOPNOTSUPP, "region");
	add(&e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	refuse(dtype_vlen(f->arena, f->region, NULL), 1, &e, -EOPNOTSUPP, "region");
	const struct dtype *in_compound = compound(f->arena, 0, f->i32, 0, f->region, 4);
	add(&e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	refuse(in_compound, 1, &e, -EOPNOTSUPP, "region");
}

/* Sizes are checked before any element is read: these elements have no memory. */
static void too_long(void **state)
{
	struct fixture *f = *state;
	const struct pipeline none = {0};
	const struct {
		const struct dtype *type;
		uint64_t nelems;
		const char *word;
	} cases[] = {
		{f->i32, (1 << 29) + 1, "2147483652 bytes is too large"},
		{f->padded, (UINT64_C(1) << 31) / 6 + 1, "more than 2147483648"},
	};
	for (size_t i = 0; i < 2; i++) {
		struct elems e = {.fixed = {.len = cases[i].nelems * cases[i].type->size}};
		struct bytes out = {0};
		struct err err = ERR_INIT;
		assert_int_equal(encode(cases[i].type, cases[i].nelems, &none, &e, &out, &err),
				 -EFBIG);
		assert_non_null(strstr(err.msg, cases[i].word));
		assert_null(out.data);
	}
}

/* Items of a sequence may be up to four times as large as they are stored. */
static void gaps_in_sequences(void **state)
{
	struct fixture *f = *state;
	const struct pipeline none = {0};
	struct elems e = {0}, out;
	uint8_t item[25] = {1, 2, 0, 0, 3, 4, 5, 6};
	const struct dtype *wide = compound(f->arena, 24, f->i16, 0, f->i32, 4);
	const struct dtype *wider = compound(f->arena, 25, f->i16, 0, f->i32, 4);
	const uint32_t one[] = {1};
	const struct dtype *cases[] = {
		dtype_vlen(f->arena, wider, NULL),
		dtype_array(f->arena, dtype_vlen(f->arena, wider, NULL), 1, one, NULL),
		dtype_vlen(f->arena, dtype_vlen(f->arena, wider, NULL), NULL),
	};
	add_vlen(&e, 1, item, 24);
	expect(dtype_vlen(f->arena, wide, NULL), 1, &e, "\6\0\0\0\1\2\3\4\5\6", 10);
	for (size_t i = 0; i < 3; i++) {
		struct err err = ERR_INIT;
		struct codec_plan plan;
		const struct codec_chunk c = {.chain = &plan.chain, .max_bytes = 1000};
		codec_plan_object(&plan, cases[i], 1, &none, OBJECT_SHUFFLED, NULL);
		struct bytes stored = {0};
		add(&e, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
		refuse(cases[i], 1, &e, -EOPNOTSUPP, "25 bytes, of which at most 6 are used");
		assert_int_equal(bytes_append_zero(&stored, 4), 0);
		assert_int_equal(decode_elems(&c, &stored, &out, &err), -EOPNOTSUPP);
		assert_null(out.fixed.data);
		bytes_release(&stored);
	}
}

/* Arrays of compounds with gaps: few items, and more than the encoder has runs for. */
static void long_arrays_of_compounds(void **state)
{
	struct fixture *f = *state;
	for (uint32_t items = 50; items <= 200; items += 50) {
		const struct dtype *t = dtype_array(f->arena, f->padded, 1, &items, NULL);
		struct elems e = {0};
		struct bytes want = {0};
		for (uint32_t i = 0; i < 2 * items; i++) {
			const uint8_t x = (uint8_t)i;
			add(&e, (const uint8_t[]){0, x, 1, 0, 2, 3, 4, x, 0, 0, 0, 0}, 12);
			assert_int_equal(
				bytes_append(&want, (const uint8_t[]){x, 1, 2, 3, 4, x}, 6), 0);
		}
		expect(t, 2, &e, want.data, want.len);
		bytes_release(&want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences),
		cmocka_unit_test(sequences_of_sequences),
		cmocka_unit_test(references),
		cmocka_unit_test(zeros_after_arrays_of_sequences),
		cmocka_unit_test(compounds_are_packed),
		cmocka_unit_test(gaps_are_not_stored),
		cmocka_unit_test(long_arrays_of_compounds),
		cmocka_unit_test(filters),
		cmocka_unit_test(level_of_the_pipeline),
		cmocka_unit_test(variable_length_is_deflated),
		cmocka_unit_test(invalid),
		cmocka_unit_test(too_long),
		cmocka_unit_test(gaps_in_sequences),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
