/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 2 B-trees. Input: u32 address of the header, a file. The target walks it unchanged, and
 * with correct checksums of the header and of a root that is a leaf. Properties: a tree that is
 * encoded from the records of a walk has the same records. A tree that is encoded from the bytes of
 * the input as records has these records. If one byte of that tree is changed, a walk fails, or the
 * byte is padding.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <base/checksum.h>
#include <h5/btree2.h>
#include "mem_src.h"

#include "require.h"

enum { PREFIX = 4, NODE = 512, TYPE_AT = 5, HEADER = 38, LEAF_PREFIX = 6, RECORD_MAX = 200 };

struct records {
	uint16_t size;
	struct bytes list;
};

static int keep(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct records *r = ctx;
	require(r->size == 0 || r->size == size);
	r->size = size;
	return bytes_append(&r->list, record, size);
}

static bool same(const struct records *a, const struct records *b)
{
	return a->list.len == b->list.len &&
	       (a->list.len == 0 || !memcmp(a->list.data, b->list.data, a->list.len));
}

/* flip: index of a byte of the encoded tree to change; SIZE_MAX: none. */
static void check(const struct records *first, size_t flip)
{
	struct h5_bt2 t = {H5_BT2_LINK_NAME, NODE, first->size, first->list.len / first->size,
			   first->list.data};
	struct records second = {0};
	size_t size = (size_t)h5_bt2_size(&t);
	auto_free uint8_t *image = malloc(size);
	require(image != NULL);
	struct emit e = emit_to(image, size);
	h5_bt2_encode(&e, &t, 0);
	require(!e.bad && e.pos == size);
	if (flip != SIZE_MAX)
		image[flip % size] ^= 0x10;
	struct mem_src m;
	mem_src_init(&m, image, size);
	int rc = h5_bt2_walk(&m.file, 0, t.type, keep, &second, NULL);
	require(!rc || flip != SIZE_MAX);
	require(rc || same(first, &second));
	bytes_release(&second.list);
}

static void walk(const uint8_t *file, size_t size, uint32_t addr)
{
	struct records first = {0};
	struct mem_src m;
	mem_src_init(&m, file, size);
	enum h5_bt2_type type = size > TYPE_AT && addr < size - TYPE_AT ? file[addr + TYPE_AT] : 0;
	if (!h5_bt2_walk(&m.file, addr, type, keep, &first, NULL) && first.size &&
	    first.size <= RECORD_MAX)
		check(&first, SIZE_MAX);
	bytes_release(&first.list);
}

static void set_checksum(uint8_t *bytes, size_t n)
{
	struct emit e = emit_to(bytes + n, 4);
	emit_u32(&e, checksum_lookup3(bytes, n, 0));
}

static void mend(uint8_t *file, size_t size, uint32_t addr)
{
	if (addr > size || size - addr < HEADER)
		return;
	set_checksum(file + addr, HEADER - 4);
	struct cursor c = cursor_of(file + addr + 10, HEADER - 10);
	uint16_t record_size = cur_u16(&c);
	cur_skip(&c, 4);
	uint64_t root = cur_u64(&c);
	size_t used = LEAF_PREFIX + (size_t)cur_u16(&c) * record_size;
	if (root < size && used + 4 <= size - root)
		set_checksum(file + root, used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	uint32_t addr = cur_u32(&c);
	if (!cur_ok(&c))
		return 0;
	size_t n = size - PREFIX;
	walk(data + PREFIX, n, addr);
	auto_free uint8_t *copy = malloc(n ? n : 1);
	require(copy != NULL);
	memcpy(copy, data + PREFIX, n);
	mend(copy, n, addr);
	walk(copy, n, addr);

	struct records records = {.size = (uint16_t)(1 + addr % 30)};
	n -= n % records.size;
	if (n && !bytes_append(&records.list, copy, n)) {
		check(&records, SIZE_MAX);
		check(&records, addr);
	}
	bytes_release(&records.list);
	return 0;
}
