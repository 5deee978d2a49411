/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: +0 selects a type, +1 selects a pipeline, +2 u16 LE number of elements, +4 the object.
 * Decoded elements have the right length and valid slots. If no filter was applied, each value
 * equals the one in the object. The heap is never larger than image/ assumes.
 */
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <codec/chunk.h>

enum { HEADER = 4, MAX_BYTES = 1 << 20, TYPES = 10, PIPELINES = 8 };

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
	if (dtype_is_plain(t)) {
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
	const struct dtype *t = c->type;
	const struct elems_visitor visitor = {.vlen = visit_vlen, .reference = visit_reference};
	uint64_t decoded = 0;
	require(e->fixed.len == c->nelems * t->size);
	require(elems_visit(t, e->fixed.data, c->nelems, e->heap.data, e->heap.len, &visitor,
			    NULL) == 0);
	int rc = codec_decoded_size(c->pipeline, in, n < 16 ? n : 16, n, MAX_BYTES, &decoded, NULL);
	require(!t->has_vlen || rc || e->heap.len <= 4 * decoded);
	if (c->pipeline->n > 0 || (t->has_vlen && decoded != n))
		return;
	struct cursor cur = cursor_of(in, n);
	bool fixed = codec_stored_elem_size(t) > 0;
	if (fixed && c->nelems * codec_stored_elem_size(t) != n)
		return; /* a Blosc frame */
	for (uint64_t i = 0; i < c->nelems; i++)
		same(t, e->fixed.data + i * t->size, &cur, e);
	while (cur_left(&cur) > 0)
		require(cur_u8(&cur) == 0);
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
	const struct codec_chunk c = {.type = nth_type(a, data[0] % TYPES),
				      .nelems = data[2] | data[3] << 8,
				      .pipeline = &p,
				      .encoding =
					      data[1] & 0x80 ? ENCODING_HSDS_PLAIN : ENCODING_HSDS,
				      .max_bytes = MAX_BYTES,
				      .resolver = &resolver};
	struct elems out;
	if (codec_chunk_decode(&c, &stored, &out, NULL) == 0) {
		check(&c, &out, data + HEADER, size - HEADER);
		elems_release(&out);
	}
	bytes_release(&stored);
	arena_free(a);
	return 0;
}
