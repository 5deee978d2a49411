/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See codec/packed_bytes.h. LZ4 decodes a block of metadata in less time than the kernel needs for
 * a read of a page, so decoded blocks are not kept. A block that LZ4 does not make smaller is
 * stored as it is.
 */
#include <codec/packed_bytes.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>

#include <base/mem.h>

struct packed_bytes {
	uint8_t *data;
	size_t n; /* before compression */
	size_t nblocks;
	size_t starts[]; /* nblocks + 1 offsets in data */
};

static size_t block_bytes(const struct packed_bytes *p, size_t block)
{
	return (size_t)min_u64(p->n - block * PACKED_BLOCK, PACKED_BLOCK);
}

/* Compresses the blocks of p->data to its front. No block gets behind its place. `room` has
 * LZ4_COMPRESSBOUND(PACKED_BLOCK) bytes. */
static void pack(struct packed_bytes *p, char *room)
{
	size_t at = 0;
	for (size_t i = 0; i < p->nblocks; i++) {
		const uint8_t *block = p->data + i * PACKED_BLOCK;
		const int n = (int)block_bytes(p, i);
		const int got = LZ4_compress_default((const char *)block, room, n,
						     LZ4_COMPRESSBOUND(PACKED_BLOCK));
		const bool is_smaller = got > 0 && got < n;
		if (is_smaller)
			memcpy(p->data + at, room, (size_t)got);
		else
			memmove(p->data + at, block, (size_t)n);
		at += (size_t)(is_smaller ? got : n);
		p->starts[i + 1] = at;
	}
}

int packed_bytes_new(uint8_t *data, size_t n, struct packed_bytes **out)
{
	const size_t nblocks = (size_t)div_up_u64(n, PACKED_BLOCK);
	auto_free char *room = malloc(LZ4_COMPRESSBOUND(PACKED_BLOCK));
	struct packed_bytes *p = calloc(1, sizeof(*p) + (nblocks + 1) * sizeof(*p->starts));
	*out = NULL;
	if (!room || !p) {
		free(p);
		return -ENOMEM;
	}
	p->data = data;
	p->n = n;
	p->nblocks = nblocks;
	pack(p, room);
	uint8_t *smaller = realloc(data, p->starts[nblocks]);
	if (smaller)
		p->data = smaller;
	*out = p;
	return 0;
}

void packed_bytes_free(struct packed_bytes *p)
{
	if (!p)
		return;
	free(p->data);
	free(p);
}

size_t packed_bytes_memory(const struct packed_bytes *p)
{
	return sizeof(*p) + (p->nblocks + 1) * sizeof(*p->starts) + p->starts[p->nblocks];
}

static int unpack(const struct packed_bytes *p, size_t block, uint8_t *out, struct err *err)
{
	const size_t n = block_bytes(p, block);
	const size_t stored = p->starts[block + 1] - p->starts[block];
	const uint8_t *from = p->data + p->starts[block];
	if (stored == n) {
		memcpy(out, from, n);
		return 0;
	}
	const int got = LZ4_decompress_safe((const char *)from, (char *)out, (int)stored, (int)n);
	return got == (int)n ? 0 : err_set(err, -EIO, "internal error: a block in memory");
}

/* Copies n bytes that begin at byte `at` of a block. */
static int read_part(const struct packed_bytes *p, size_t block, size_t at, uint8_t *buf, size_t n,
		     struct err *err)
{
	if (n == block_bytes(p, block))
		return unpack(p, block, buf, err);
	auto_free uint8_t *whole = malloc(PACKED_BLOCK);
	if (!whole)
		return err_no_memory(err);
	const int rc = unpack(p, block, whole, err);
	if (!rc)
		memcpy(buf, whole + at, n);
	return rc;
}

int packed_bytes_read(const struct packed_bytes *p, size_t at, void *buf, size_t n, struct err *err)
{
	uint8_t *to = buf;
	int rc = 0;
	while (!rc && n > 0) {
		const size_t block = at / PACKED_BLOCK, from = at % PACKED_BLOCK;
		const size_t part = (size_t)min_u64(n, block_bytes(p, block) - from);
		rc = read_part(p, block, from, to, part, err);
		at += part;
		to += part;
		n -= part;
	}
	return rc;
}
