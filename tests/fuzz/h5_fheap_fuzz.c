/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractal heaps. Input: length of an id, the id in 16 bytes, u32 address of the heap, a file. The
 * target reads it unchanged and with a correct checksum of a header without filters. Properties: an
 * object that is read is not larger than the file and the id; the size of the file limits what is
 * read; a heap that is encoded from parts of the input has these objects.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <base/checksum.h>
#include <h5/claims.h>
#include <h5/fheap.h>
#include "mem_src.h"

#include "require.h"

enum { READS = 64 << 10 };
enum { ID_MAX = 16, PREFIX = 1 + ID_MAX + 4, HEADER = 146, OBJECTS = 200, MAX_OBJECT = 1 << 20 };

/* Filters that change nothing. */
static int pass(void *ctx, const struct pipeline *p, uint32_t mask, const void *in, size_t n,
		size_t max, struct bytes *out, struct err *err)
{
	return n <= max ? bytes_append(out, in, n) : err_set(err, -EIO, "too long");
}

static const struct h5_unfilter unfilter = {.decode = pass};

static void read_one(const uint8_t *file, size_t size, uint32_t addr, const uint8_t *id,
		     size_t id_len)
{
	struct mem_src m;
	struct h5_fheap_reader *r;
	struct bytes out = {0};
	mem_src_init(&m, file, size);
	m.file.unfilter = &unfilter;
	m.file.claims = h5_claims_new(NULL);
	require(m.file.claims != NULL);
	if (!h5_fheap_open(&m.file, addr, &r, NULL)) {
		for (int i = 0; i < 2; i++)
			if (!h5_fheap_get(r, id, id_len, MAX_OBJECT, &out, NULL))
				require(out.len <= 2 * size + 2 * ID_MAX);
		h5_fheap_close(r);
	}
	require(m.source.bytes <= 16 * (uint64_t)size + READS);
	h5_claims_free(m.file.claims);
	bytes_release(&out);
}

/* Object i begins at byte i of the data, which also determines its length. */
static size_t object_size(const uint8_t *data, size_t n, size_t i)
{
	size_t len = 1 + (size_t)(data[i] % 8 ? data[i] : data[i] * 40);
	return len < n - i ? len : n - i;
}

static void build_and_read(const struct h5_fheap_params *params, const uint8_t *data, size_t n)
{
	size_t objects = n < OBJECTS ? n : OBJECTS;
	uint8_t ids[OBJECTS][ID_MAX];
	struct h5_fheap *h = h5_fheap_new(params);
	require(h != NULL);
	for (size_t i = 0; i < objects; i++)
		require(!h5_fheap_insert(h, data + i, object_size(data, n, i), ids[i], NULL));
	struct emit count = emit_count();
	h5_fheap_encode(&count, h, 0);
	const size_t size = count.pos;
	auto_free uint8_t *image = malloc(size);
	require(image != NULL);
	struct emit e = emit_to(image, size);
	h5_fheap_encode(&e, h, 0);
	require(!e.bad && e.pos == size);
	h5_fheap_free(h);

	struct mem_src m;
	struct h5_fheap_reader *r;
	mem_src_init(&m, image, size);
	require(!h5_fheap_open(&m.file, 0, &r, NULL));
	for (size_t i = 0; i < objects; i++) {
		struct bytes out = {0};
		size_t len = object_size(data, n, i);
		require(!h5_fheap_get(r, ids[i], params->id_len, len, &out, NULL) &&
			out.len == len && !memcmp(out.data, data + i, len));
		bytes_release(&out);
	}
	h5_fheap_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	size_t id_len = cur_u8(&c) % (ID_MAX + 1);
	const uint8_t *id = cur_bytes(&c, ID_MAX);
	uint32_t addr = cur_u32(&c);
	if (!cur_ok(&c))
		return 0;
	size_t n = size - PREFIX;
	auto_free uint8_t *file = malloc(n ? n : 1);
	require(file != NULL);
	memcpy(file, data + PREFIX, n);
	read_one(file, n, addr, id, id_len);
	build_and_read(&h5_fheap_links, file, n);
	build_and_read(&h5_fheap_attrs, file, n);
	if (addr < n && n - addr >= HEADER) {
		struct emit e = emit_to(file + addr + HEADER - 4, 4);
		emit_u32(&e, checksum_lookup3(file + addr, HEADER - 4, 0));
		read_one(file, n, addr, id, id_len);
	}
	return 0;
}
