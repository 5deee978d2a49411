/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk indexes. Input: rank, filtered, a range as two u16, for each dimension u16 extent and u16
 * maximum (65,535: unlimited), u16 bytes of a layout message, the message, a file. The target walks
 * the index unchanged, and with correct checksums of all blocks of arrays, which are read from
 * signature to checksum.
 *
 * Properties: a walk reads no more than a few times the bytes of the file, and finds a chunk once.
 * If the whole index can be walked, a range gives the chunks of it, no others, and reads no more.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/claims.h>
#include <h5/index.h>
#include "mem_src.h"

#include "require.h"

enum { MAX_CHUNKS = 1 << 16, UNLIMITED = UINT16_MAX };

struct input {
	struct arena *arena;
	bool filtered;
	struct dspace space;
	struct grid grid;
	struct h5_layout layout;
	const uint8_t *file;
	size_t size;
};

struct seen {
	const struct input *in;
	uint64_t first, end;
	uint8_t *times; /* that each chunk was found */
};

/* Reads a block with a correct checksum. */
static int read_mended(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	int rc = mem_src_read(ctx, offset, buf, n, err);
	if (n > 4) {
		struct emit e = emit_to((uint8_t *)buf + n - 4, 4);
		emit_u32(&e, checksum_lookup3(buf, n - 4, 0));
	}
	return rc;
}

static int note(void *ctx, const struct h5_chunk *chunk, struct err *err)
{
	struct seen *s = ctx;
	require(chunk->number >= s->first && chunk->number < s->end);
	require(chunk->number < s->in->grid.nchunks);
	require(chunk->size > 0 && chunk->size <= s->in->size);
	require(chunk->addr <= s->in->size - chunk->size);
	require(s->in->filtered ||
		chunk->size == s->in->grid.chunk_elems * s->in->layout.elem_size);
	require(s->times[chunk->number]++ == 0);
	return 0;
}

static int walk(const struct input *in, bool mend, struct seen *s, uint64_t first, uint64_t end,
		uint64_t *reads)
{
	struct mem_src m;
	*s = (struct seen){.in = in, .first = first, .end = end};
	s->times = calloc(1, (size_t)in->grid.nchunks + 1);
	require(s->times != NULL);
	mem_src_init(&m, in->file, in->size);
	if (mend)
		m.source.read_at = read_mended;
	m.file.claims = h5_claims_new(NULL);
	int rc = h5_index_walk(&m.file, &in->layout, &in->space, &in->grid, in->filtered, first,
			       end, note, s, NULL);
	if (!rc)
		rc = h5_claims_check(m.file.claims, NULL);
	h5_claims_free(m.file.claims);
	require(m.source.bytes <= 64 * ((uint64_t)in->size + 4096));
	*reads = m.source.reads;
	return rc;
}

static void check(const struct input *in, bool mend, uint64_t first, uint64_t end)
{
	struct seen all, part;
	uint64_t reads, fewer;
	int rc = walk(in, mend, &all, 0, UINT64_MAX, &reads);
	if (!rc) {
		require(walk(in, mend, &part, first, end, &fewer) == 0);
		require(fewer <= reads);
		for (uint64_t i = 0; i < in->grid.nchunks; i++)
			require(part.times[i] == (i >= first && i < end ? all.times[i] : 0));
		free(part.times);
	}
	free(all.times);
}

static bool read_input(struct cursor *c, struct input *in, uint64_t *first, uint64_t *end)
{
	uint64_t dims[DSPACE_MAX_RANK], max[DSPACE_MAX_RANK], chunk[DSPACE_MAX_RANK] = {0};
	const uint8_t rank = cur_u8(c);
	in->filtered = cur_u8(c) & 1;
	*first = cur_u16(c);
	*end = cur_u16(c);
	for (uint8_t i = 0; i < rank && rank <= DSPACE_MAX_RANK; i++) {
		dims[i] = cur_u16(c);
		max[i] = cur_u16(c);
		if (max[i] == UNLIMITED)
			max[i] = DSPACE_UNLIMITED;
	}
	struct cursor message = cur_sub(c, cur_u16(c));
	const struct h5_file f = h5_file_of(NULL);
	if (!cur_ok(c) || dspace_simple(in->arena, &in->space, rank, dims, max, NULL) ||
	    h5_layout_decode(&f, &message, &in->layout, NULL) || in->layout.cls != LAYOUT_CHUNKED ||
	    in->layout.raw != RAW_STORED || in->layout.rank != rank)
		return false;
	for (uint8_t i = 0; i < rank; i++)
		chunk[i] = in->layout.chunk[i];
	return !grid_init(in->arena, &in->grid, rank, dims, chunk, NULL) &&
	       in->grid.nchunks <= MAX_CHUNKS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.arena = arena_new(1 << 16)};
	struct cursor c = cursor_of(data, size);
	uint64_t first, end;
	if (read_input(&c, &in, &first, &end)) {
		in.size = cur_left(&c);
		in.file = cur_bytes(&c, in.size);
		check(&in, false, first, end);
		const enum h5_index_type index = in.layout.index;
		if (index == H5_INDEX_FIXED_ARRAY || index == H5_INDEX_EXTENSIBLE_ARRAY)
			check(&in, true, first, end);
	}
	arena_free(in.arena);
	return 0;
}
