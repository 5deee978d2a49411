/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: +0 selects a type, +1 selects a pipeline, +2 u16 LE number of elements, +4 the object.
 * Decoded elements have the right length and valid slots. If no filter was applied, each value
 * equals the one in the object. The heap is never larger than image/ assumes. The decoded elements
 * can be encoded, also as the service would, and decoding that returns the same elements. If the
 * elements may stay shuffled, they are the same, too.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <base/cursor.h>
#include <codec/chunk.h>

#include "decode_elems.h"

enum { HEADER = 4, MAX_BYTES = 1 << 20, TYPES = 14, PIPELINES = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static const struct dtype *nth_type(struct arena *a, unsigned int n)
{
	const uint32_t dims[] = {2, 2};
	const struct dtype *i32 = dtype_integer(a, 4, true, false, NULL);
	const struct dtype *text = dtype_vlen_string(a, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	const struct dtype *ref = dtype_reference(a, DTYPE_REF_OBJECT, NULL);
	const struct dtype *ints = dtype_vlen(a, i32, NULL);
	const struct dtype_member row[] = {{"a", 0, i32}, {"b", 0, text}, {"c", 0, ref}};
	const struct dtype_member gaps[] = {{"a", 8, i32}, {"b", 2, i32}};
	const struct dtype_member wide[] = {{"a", 3, ref}, {"b", 30, text}, {"c", 20, i32}};
	switch (n) {
	case 0:
		return i32;
	case 1:
		return text;
	case 2:
		return ref;
	case 3:
		return ints;
	case 4:
		return dtype_vlen(a, ref, NULL);
	case 5:
		return dtype_vlen(a, dtype_compound(a, 3, row, 0, NULL), NULL);
	case 6:
		return dtype_array(a, text, 2, dims, NULL);
	case 7:
		return dtype_compound(a, 3, row, 0, NULL);
	case 8:
		return dtype_vlen(a, dtype_vlen(a, text, NULL), NULL);
	case 9: /* gaps, and members in another order than their offsets */
		return dtype_compound(a, 2, gaps, 13, NULL);
	case 10:
		return dtype_vlen(a, dtype_compound(a, 2, gaps, 13, NULL), NULL);
	case 11:
		return dtype_array(a, dtype_compound(a, 2, gaps, 13, NULL), 2, dims, NULL);
	case 12:
		return dtype_compound(a, 3, wide, 50, NULL);
	default:
		return dtype_opaque(a, 3, "", NULL);
	}
}

static const uint32_t pipelines[PIPELINES][3] = {
	{0},
	{FILTER_DEFLATE},
	{FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_SHUFFLE},
	{FILTER_BITSHUFFLE},
	{FILTER_BITSHUFFLE, FILTER_LZ4},
	{FILTER_LZF},
	{FILTER_FLETCHER32, FILTER_SHUFFLE, FILTER_DEFLATE},
	{FILTER_DEFLATE, FILTER_SHUFFLE},
	{FILTER_SHUFFLE, FILTER_LZF},
	{FILTER_NBIT, FILTER_SHUFFLE, FILTER_FLETCHER32},
	{FILTER_SHUFFLE, 32013},
};

/* Resolves a reference to the offset of its text in the object. */
static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	require(n > 0 && n <= CODEC_REF_TEXT && memchr(text, 0, n) == NULL);
	return (uint64_t)((const uint8_t *)text - *(const uint8_t **)ctx) + 1;
}

static void same(const struct dtype *t, const uint8_t *slot, struct cursor *in,
		 const struct elems *e)
{
	if (dtype_is_plain(t) && t->cls != DTYPE_COMPOUND && t->cls != DTYPE_ARRAY) {
		const uint8_t *bytes = cur_bytes(in, t->size);
		require(bytes && memcmp(bytes, slot, t->size) == 0);
	} else if (t->cls == DTYPE_REFERENCE) {
		uint64_t at = cur_pos(in) + 1;
		const uint8_t *text = cur_bytes(in, CODEC_REF_TEXT);
		struct cursor object = cursor_of(slot, DTYPE_OBJREF_SIZE);
		require(text && cur_u64(&object) == (text[0] ? at : 0));
	} else if (t->cls == DTYPE_VLEN) {
		struct elems_vlen v = elems_get_vlen(slot);
		uint32_t len = cur_u32(in);
		size_t end = cur_pos(in) + len;
		for (uint32_t i = 0; i < v.count; i++)
			same(t->vlen.base, e->heap.data + v.offset + (size_t)i * t->vlen.base->size,
			     in, e);
		require(cur_ok(in) && cur_pos(in) == end);
	} else if (t->cls == DTYPE_ARRAY) {
		for (uint64_t i = 0; i < t->array.nelems; i++)
			same(t->array.base, slot + i * t->array.base->size, in, e);
	} else {
		for (uint32_t i = 0; i < t->compound.n; i++)
			same(t->compound.members[i].type, slot + t->compound.members[i].offset, in,
			     e);
	}
}

static int visit_vlen(void *ctx, const struct dtype *t, uint8_t *slot, uint8_t *items,
		      size_t items_len, struct err *err)
{
	return 0;
}

static int visit_reference(void *ctx, const struct dtype *t, uint8_t *slot, struct err *err)
{
	return 0;
}

static void check(const struct codec_chunk *c, struct elems *e, const uint8_t *in, size_t n)
{
	const struct dtype *t = c->chain->type;
	const uint64_t nelems = c->chain->nelems;
	const struct elems_visitor visitor = {.vlen = visit_vlen, .reference = visit_reference};
	uint64_t decoded = 0;
	require(e->fixed.len == nelems * t->size);
	require(elems_visit(t, e->fixed.data, nelems, e->heap.data, e->heap.len, &visitor, NULL) ==
		0);
	int rc = codec_decoded_size(c, in, n, n, &decoded, NULL);
	require(!t->has_vlen || rc || e->heap.len <= 4 * decoded);
	if (codec_chunk_size(c->chain).is_filtered || (t->has_vlen && decoded != n))
		return;
	struct cursor cur = cursor_of(in, n);
	bool fixed = codec_stored_elem_size(t) > 0;
	if (fixed && nelems * codec_stored_elem_size(t) != n)
		return; /* a Blosc frame */
	for (uint64_t i = 0; i < nelems; i++)
		same(t, e->fixed.data + i * t->size, &cur, e);
	while (cur_left(&cur) > 0)
		require(cur_u8(&cur) == 0);
}

static void name(void *ctx, uint64_t ref, char *text)
{
	memset(text, 0, OBJECT_REF_TEXT);
	for (size_t i = 0; i < 16; i++)
		text[i] = (char)('a' + (ref >> 4 * i) % 16);
}

static uint64_t number_of(void *ctx, const char *text, size_t n)
{
	uint64_t ref = 0;
	require(n == 16);
	for (size_t i = 0; i < 16; i++)
		ref |= (uint64_t)(text[i] - 'a') << 4 * i;
	return ref;
}

/* Slots may be at other offsets of the heap, and an item list without items may be set or not. */
static void same_elems(const struct dtype *t, const struct elems *a, const uint8_t *x,
		       const struct elems *b, const uint8_t *y)
{
	if (t->cls == DTYPE_VLEN) {
		const struct elems_vlen v = elems_get_vlen(x), w = elems_get_vlen(y);
		const size_t size = t->vlen.base->size;
		require(v.count == w.count);
		for (size_t i = 0; i < v.count; i++)
			same_elems(t->vlen.base, a, a->heap.data + v.offset + i * size, b,
				   b->heap.data + w.offset + i * size);
	} else if (t->cls == DTYPE_ARRAY) {
		const size_t size = t->array.base->size;
		for (uint64_t i = 0; i < t->array.nelems; i++)
			same_elems(t->array.base, a, x + i * size, b, y + i * size);
	} else if (t->cls == DTYPE_COMPOUND) {
		for (uint32_t i = 0; i < t->compound.n; i++)
			same_elems(t->compound.members[i].type, a,
				   x + t->compound.members[i].offset, b,
				   y + t->compound.members[i].offset);
	} else {
		require(memcmp(x, y, t->size) == 0);
	}
}

/* Plain bytes of variable length whose first 16 look like the header of a frame are ambiguous. */
static bool looks_like_frame(const struct bytes *b)
{
	struct cursor c = cursor_of(b->data, b->len);
	const bool version = cur_u8(&c) == 2 && cur_u8(&c) == 1;
	cur_skip(&c, 10);
	return cur_u32(&c) == b->len && version;
}

/* p: as recorded. served: NULL, or the form that the service stores. */
static void round_trip(const struct codec_chain *c, const struct pipeline *p,
		       const struct service_filters *served, const struct elems *e)
{
	struct codec_plan plan;
	const struct object_namer namer = {.name = name};
	const struct object_resolver resolver = {.resolve = number_of};
	const struct codec_encode enc = {.chain = &plan.chain, .namer = &namer};
	const struct codec_chunk dec = {
		.chain = &plan.chain, .max_bytes = 4 * MAX_BYTES, .resolver = &resolver};
	struct bytes stored = {0};
	struct elems back;
	codec_plan_object(&plan, c->type, c->nelems, p, OBJECT_SHUFFLED, served);
	require(codec_chunk_encode(&enc, e, &stored, NULL) == 0);
	if (!looks_like_frame(&stored)) {
		require(decode_elems(&dec, &stored, &back, NULL) == 0);
		for (uint64_t i = 0; i < c->nelems; i++)
			same_elems(c->type, e, e->fixed.data + i * c->type->size, &back,
				   back.fixed.data + i * c->type->size);
		elems_release(&back);
	}
	bytes_release(&stored);
}

static void round_trips(const struct codec_chain *c, const struct pipeline *p,
			const struct elems *e)
{
	static const struct pipeline recorded = {2,
						 {{.id = FILTER_BITSHUFFLE}, {.id = FILTER_ZSTD}}};
	static const struct service_filters forms[] = {
		{.compressor = "zlib", .level = 1, .shuffle = SERVED_SHUFFLE_BYTE},
		{.compressor = "lz4", .level = 5},
		{.compressor = "zstd", .level = 1, .shuffle = SERVED_SHUFFLE_BIT},
		{.shuffle = SERVED_SHUFFLE_BIT},
	};
	round_trip(c, p, NULL, e);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		round_trip(c, &recorded, &forms[i], e);
}

/* Elements that stay shuffled are the same elements, and a known checksum is that of the bytes. */
static void stay_shuffled(const struct codec_chunk *c, const uint8_t *data, size_t n,
			  const struct elems *plain)
{
	struct codec_chunk coded = *c;
	struct bytes stored = {0};
	struct chunk_data out;
	coded.accepts_shuffled = true;
	require(bytes_append(&stored, data, n) == 0);
	require(codec_chunk_decode(&coded, &stored, &out, NULL) == 0);
	const struct bytes *fixed = &out.elems.fixed;
	const size_t len = plain->fixed.len;
	require(fixed->len == len);
	if (out.has_adler)
		require(out.adler32 == adler32(1, fixed->data, (uInt)len));
	uint8_t *x = malloc(len ? len : 1);
	require(x != NULL);
	if (len)
		chunk_data_read(&out, 0, x, len);
	require(len == 0 || memcmp(x, plain->fixed.data, len) == 0);
	free(x);
	chunk_data_release(&out);
	bytes_release(&stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEADER)
		return 0;
	struct arena *a = arena_new(1 << 20);
	const uint32_t *ids = pipelines[data[1] % PIPELINES];
	struct pipeline p = {0};
	while (p.n < 3 && ids[p.n]) {
		p.f[p.n].id = ids[p.n];
		p.n++;
	}
	struct bytes stored = {0};
	require(bytes_append(&stored, data + HEADER, size - HEADER) == 0);
	const uint8_t *start = stored.data;
	const struct object_resolver resolver = {.resolve = resolve, .ctx = &start};
	struct codec_plan plan;
	const struct codec_chunk c = {
		.chain = &plan.chain, .max_bytes = MAX_BYTES, .resolver = &resolver};
	struct elems out;
	codec_plan_object(&plan, nth_type(a, data[0] % TYPES), data[2] | data[3] << 8, &p,
			  data[1] & 0x80 ? OBJECT_UNSHUFFLED : OBJECT_SHUFFLED, NULL);
	if (decode_elems(&c, &stored, &out, NULL) == 0) {
		check(&c, &out, data + HEADER, size - HEADER);
		round_trips(&plan.chain, &p, &out);
		if (dtype_is_plain(plan.chain.type))
			stay_shuffled(&c, data + HEADER, size - HEADER, &out);
		elems_release(&out);
	}
	bytes_release(&stored);
	arena_free(a);
	return 0;
}
