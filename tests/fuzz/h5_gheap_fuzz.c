/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global heap collections. Input: u16 index, u32 address of the collection, a file. Properties: an
 * object that is read is not larger than the file; a region that is written from parts of the input
 * has these objects, and is not larger than h5_gheap_bound().
 */
#include <stdbool.h>
#include <stdlib.h>

#include <h5/gheap.h>
#include "gheap_item.h"
#include "mem_src.h"

#include "require.h"

enum { PREFIX = 6, OBJECTS = 300 };

static void write_and_read(const uint8_t *data, size_t n, size_t target)
{
	struct h5_gheap_writer w;
	uint64_t addr[OBJECTS], total = 0;
	uint32_t index[OBJECTS];
	size_t len[OBJECTS], objects = n < OBJECTS ? n : OBJECTS;
	h5_gheap_init(&w, 0, target);
	for (size_t i = 0; i < objects; i++) {
		len[i] = 1 + (size_t)(data[i] % 8 ? data[i] : data[i] * 40);
		if (len[i] > n - i)
			len[i] = n - i;
		total += len[i];
		require(!h5_gheap_add(&w, data + i, len[i], &addr[i], &index[i], NULL));
	}
	require(!h5_gheap_finish(&w, NULL));
	require(w.out.len <= h5_gheap_bound(objects, total, target));
	struct mem_src m;
	mem_src_init(&m, w.out.data, w.out.len);
	for (size_t i = 0; i < objects; i++) {
		struct bytes out = {0};
		require(!gheap_item(&m.file, addr[i], index[i], len[i], &out, NULL) &&
			out.len == len[i] && !memcmp(out.data, data + i, len[i]));
		bytes_release(&out);
	}
	h5_gheap_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	uint16_t index = cur_u16(&c);
	uint32_t addr = cur_u32(&c);
	if (!cur_ok(&c))
		return 0;
	struct mem_src m;
	struct bytes out = {0};
	mem_src_init(&m, data + PREFIX, size - PREFIX);
	if (!gheap_item(&m.file, addr, index, size, &out, NULL))
		require(out.len <= size);
	bytes_release(&out);
	write_and_read(data + PREFIX, size - PREFIX, index);
	return 0;
}
