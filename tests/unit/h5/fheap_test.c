/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include <base/checksum.h>
#include <h5/fheap.h>
#include "mem_src.h"

#include "hex.h"

enum { ADDR = 0x1ef, HEADER = 146, MAX_OBJECT = 1 << 20 };

/* Object i of a heap: n bytes, different for each object. */
static uint8_t *object_of(size_t i, size_t n)
{
	uint8_t *p = malloc(n);
	assert_non_null(p);
	for (size_t k = 0; k < n; k++)
		p[k] = (uint8_t)(i * 7 + k * 13 + (k >> 8));
	return p;
}

struct built {
	struct h5_fheap *heap;
	size_t n;
	const size_t *sizes;
	uint16_t id_len;
	uint8_t *ids;
	uint8_t **objects; /* huge ones are borrowed by the heap */
	uint8_t *image;
	size_t image_size;
};

static size_t size_of(const struct h5_fheap *heap)
{
	struct emit count = emit_count();
	h5_fheap_encode(&count, heap, ADDR);
	assert_false(count.bad);
	return count.pos;
}

static void build(struct built *b, const struct h5_fheap_params *params, const size_t *sizes,
		  size_t n)
{
	struct err err = ERR_INIT;
	*b = (struct built){.n = n, .sizes = sizes, .id_len = params->id_len};
	b->heap = h5_fheap_new(params);
	b->ids = calloc(n + 1, params->id_len);
	b->objects = calloc(n + 1, sizeof(b->objects[0]));
	assert_true(b->heap && b->ids && b->objects);
	for (size_t i = 0; i < n; i++) {
		b->objects[i] = object_of(i, sizes[i]);
		if (h5_fheap_insert(b->heap, b->objects[i], sizes[i], b->ids + i * b->id_len, &err))
			fail_msg("object %zu: %s", i, err.msg);
	}
	const size_t size = size_of(b->heap);
	b->image_size = ADDR + size;
	b->image = calloc(1, b->image_size);
	assert_non_null(b->image);
	struct emit e = emit_to(b->image + ADDR, size);
	h5_fheap_encode(&e, b->heap, ADDR);
	assert_false(e.bad);
	assert_int_equal(e.pos, size);
}

static void release(struct built *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->objects[i]);
	free(b->objects);
	free(b->ids);
	free(b->image);
	h5_fheap_free(b->heap);
}

static void read_back(const struct built *b)
{
	struct mem_src m;
	struct h5_fheap_reader *r;
	struct err err = ERR_INIT;
	mem_src_init(&m, b->image, b->image_size);
	if (h5_fheap_open(&m.file, ADDR, &r, &err))
		fail_msg("%s", err.msg);
	/* Objects are read in reverse order. */
	for (size_t i = b->n; i-- > 0;) {
		auto_bytes struct bytes out = {0};
		if (h5_fheap_get(r, b->ids + i * b->id_len, b->id_len, MAX_OBJECT, &out, &err))
			fail_msg("object %zu: %s", i, err.msg);
		assert_int_equal(out.len, b->sizes[i]);
		assert_memory_equal(out.data, b->objects[i], out.len);
	}
	h5_fheap_close(r);
}

static uint64_t header_u64(const struct built *b, size_t at)
{
	struct cursor c = cursor_of(b->image + ADDR + at, 8);
	return cur_u64(&c);
}

/* Rows are so short that a few hundred objects need indirect blocks below indirect blocks. */
static const struct h5_fheap_params deep = {
	.id_len = 7,
	.table_width = 2,
	.start_block = 64,
	.max_direct = 128,
	.max_index = 24,
	.max_managed = 100,
};

static void test_objects_come_back(void **state)
{
	static const struct h5_fheap_params *const params[] = {&h5_fheap_links, &h5_fheap_attrs,
							       &deep};
	static const size_t top[] = {1, 6, 40, 100, 3000, 4096, 4200, 20000};
	enum { N = 700 };
	size_t *sizes = malloc(N * sizeof(sizes[0]));
	assert_non_null(sizes);
	for (size_t p = 0; p < 3; p++) {
		for (size_t t = 0; t < sizeof(top) / sizeof(top[0]); t++) {
			for (size_t n = 0; n <= N; n = n * 5 + 1) {
				struct built b;
				for (size_t i = 0; i < n; i++)
					sizes[i] = 1 + (i * 7919 + t) % top[t];
				build(&b, params[p], sizes, n);
				read_back(&b);
				release(&b);
			}
		}
	}
	free(sizes);
}

/* Links "link_<i>" to "/d", creation order tracked, as h5py and HDF5 1.10.8 make them. */
static size_t link_size(size_t i)
{
	char digits[24];
	return 12 + 5 + (size_t)snprintf(digits, sizeof(digits), "%zu", i) + 2 + 2;
}

static void test_statistics_of_libhdf5(void **state)
{
	static const struct {
		size_t n;
		uint64_t free, managed, allocated, iterator;
	} rows[] = {
		{0, 0, 0, 0, 0},
		{10, 271, 512, 512, 0},
		{25, 1399, 2048, 1024, 1024},
		{100, 1638, 4096, 2560, 2560},
		{1000, 237582, 262144, 24576, 24576},
		{30000, 66175250, 67108864, 786432, 786432},
	};
	size_t *sizes = malloc(30000 * sizeof(sizes[0]));
	assert_non_null(sizes);
	for (size_t i = 0; i < 30000; i++)
		sizes[i] = link_size(i);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct built b;
		build(&b, &h5_fheap_links, sizes, rows[i].n);
		assert_int_equal(header_u64(&b, 30), rows[i].free);
		assert_int_equal(header_u64(&b, 46), rows[i].managed);
		assert_int_equal(header_u64(&b, 54), rows[i].allocated);
		assert_int_equal(header_u64(&b, 62), rows[i].iterator);
		assert_int_equal(header_u64(&b, 70), rows[i].n);
		release(&b);
	}
	free(sizes);
}

/* The heap of ten such links in a file that HDF5 1.10.8 wrote: header at 0x1ef, its root direct
 * block at 0x739. The rest of the block is zeros. */
static const char native_header[] = "46524850000700000002001000000000000000000000ffffffffffffffff0f"
				    "01000000000000cd02000000000000"
				    "0002000000000000000200000000000000000000000000000a000000000000"
				    "000000000000000000000000000000"
				    "00000000000000000000000000000000000004000002000000000000000001"
				    "000000000020000100390700000000"
				    "0000000088b71608";
static const char native_block[] =
	"4648444200ef0100000000000000000000d1c41d4b"
	"010c010000000000000000066c696e6b5f3002002f64010c010100000000000000066c696e6b5f3102002f64"
	"010c010200000000000000066c696e6b5f3202002f64010c010300000000000000066c696e6b5f3302002f64"
	"010c010400000000000000066c696e6b5f3402002f64010c010500000000000000066c696e6b5f3502002f64"
	"010c010600000000000000066c696e6b5f3602002f64010c010700000000000000066c696e6b5f3702002f64"
	"010c010800000000000000066c696e6b5f3802002f64010c010900000000000000066c696e6b5f3902002f64";

enum { PREFIX = 21, LINK = 22, BLOCK_AT = 0x739 };

static void test_bytes_of_libhdf5(void **state)
{
	size_t header_n, block_n;
	uint8_t *header = hex_bytes(native_header, &header_n);
	uint8_t *block = hex_bytes(native_block, &block_n);
	uint8_t id[7], ours[HEADER + 512], file[BLOCK_AT + 512] = {0};
	struct h5_fheap *h = h5_fheap_new(&h5_fheap_links);
	struct emit e = emit_to(ours, sizeof(ours));
	struct mem_src m;
	struct h5_fheap_reader *r;
	assert_non_null(h);
	assert_int_equal(header_n, HEADER);
	for (size_t i = 0; i < 10; i++) {
		struct cursor c = cursor_of(id, sizeof(id));
		assert_int_equal(h5_fheap_insert(h, block + PREFIX + i * LINK, LINK, id, NULL), 0);
		assert_int_equal(cur_u8(&c), 0);
		assert_int_equal(cur_u32(&c), PREFIX + i * LINK);
		assert_int_equal(cur_u16(&c), LINK);
	}
	h5_fheap_encode(&e, h, ADDR);
	/* All except for the free-space manager, the address of the root, and the checksum. */
	assert_memory_equal(ours, header, 38);
	assert_memory_equal(ours + 46, header + 46, 132 - 46);
	assert_memory_equal(ours + 140, header + 140, 2);
	assert_memory_equal(ours + HEADER, block, block_n);

	memcpy(file + ADDR, header, header_n);
	memcpy(file + BLOCK_AT, block, block_n);
	mem_src_init(&m, file, sizeof(file));
	assert_int_equal(h5_fheap_open(&m.file, ADDR, &r, NULL), 0);
	auto_bytes struct bytes out = {0};
	assert_int_equal(h5_fheap_get(r, id, sizeof(id), LINK, &out, NULL), 0);
	assert_memory_equal(out.data, block + PREFIX + 9 * LINK, LINK);
	h5_fheap_close(r);
	h5_fheap_free(h);
	free(header);
	free(block);
}

static void test_ids(void **state)
{
	static const struct {
		const char *what;
		size_t n;
		uint8_t first;
	} rows[] = {
		{"smallest tiny", 1, 0x20},   {"largest tiny", 7, 0x26}, {"smallest managed", 8, 0},
		{"largest managed", 4096, 0}, {"huge", 4097, 0x10},	 {"huge too", 9000, 0x10},
	};
	struct h5_fheap *h = h5_fheap_new(&h5_fheap_attrs);
	uint8_t *object = object_of(1, 9000), id[8];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(h5_fheap_insert(h, object, rows[i].n, id, NULL), 0);
		if (id[0] != rows[i].first)
			fail_msg("%s: id begins with %02x", rows[i].what, id[0]);
		if (rows[i].first >= 0x20)
			assert_memory_equal(id + 1, object, rows[i].n);
	}
	assert_memory_equal(id, "\x10\2\0\0\0\0\0\0", 8);
	h5_fheap_free(h);
	free(object);
}

/* Huge objects with addresses of their own are in the counts and the B-tree of the heap, but not in
 * its bytes. */
static void test_huge_objects_apart(void **state)
{
	enum { N = 5000, APART = 9000, ROOM = 40000 };
	struct h5_fheap *h = h5_fheap_new(&h5_fheap_attrs), *all = h5_fheap_new(&h5_fheap_attrs);
	uint8_t *first = object_of(1, N), *apart = object_of(2, APART), *last = object_of(3, N);
	uint8_t ids[3][8], id[8], *file = calloc(1, ROOM);
	const uint8_t *objects[] = {first, apart, last};
	const size_t sizes[] = {N, APART, N};
	struct mem_src m;
	struct h5_fheap_reader *r;
	struct emit e = emit_to(file + ADDR, ROOM - ADDR - APART);
	assert_int_equal(h5_fheap_insert(h, first, N, ids[0], NULL), 0);
	assert_int_equal(h5_fheap_insert_apart(h, ROOM - APART, APART, ids[1], NULL), 0);
	assert_int_equal(h5_fheap_insert(h, last, N, ids[2], NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(h5_fheap_insert(all, objects[i], sizes[i], id, NULL), 0);
		assert_memory_equal(id, ids[i], 8);
	}
	assert_int_equal(size_of(h), size_of(all) - APART);
	h5_fheap_encode(&e, h, ADDR);
	assert_false(e.bad);
	assert_int_equal(e.pos, size_of(h));
	memcpy(file + ROOM - APART, apart, APART);
	mem_src_init(&m, file, ROOM);
	assert_int_equal(h5_fheap_open(&m.file, ADDR, &r, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		auto_bytes struct bytes out = {0};
		assert_int_equal(h5_fheap_get(r, ids[i], 8, MAX_OBJECT, &out, NULL), 0);
		assert_int_equal(out.len, sizes[i]);
		assert_memory_equal(out.data, objects[i], out.len);
	}
	h5_fheap_close(r);
	h5_fheap_free(h);
	h5_fheap_free(all);
	free(first);
	free(apart);
	free(last);
	free(file);
}

static void test_full(void **state)
{
	static const struct h5_fheap_params small = {
		.id_len = 7,
		.table_width = 4,
		.start_block = 512,
		.max_direct = 512,
		.max_index = 12,
		.max_managed = 400,
	};
	struct h5_fheap *h = h5_fheap_new(&small);
	struct err err = ERR_INIT;
	uint8_t object[400] = {0}, id[7];
	int n = 0, rc;
	while ((rc = h5_fheap_insert(h, object, sizeof(object), id, &err)) == 0)
		assert_true(++n <= 8);
	assert_int_equal(rc, -E2BIG);
	assert_int_equal(n, 8); /* two rows of four blocks */
	h5_fheap_free(h);
}

/* Ids of 3 bytes have 2 bytes for the number of a huge object: 1 to 65,535. */
static void test_as_many_huge_objects_as_ids(void **state)
{
	static const struct h5_fheap_params narrow = {
		.id_len = 3,
		.table_width = 1,
		.start_block = 32,
		.max_direct = 64,
		.max_index = 8,
		.max_managed = 10,
	};
	struct h5_fheap *h = h5_fheap_new(&narrow);
	struct err err = ERR_INIT;
	uint8_t id[3];
	for (uint32_t i = 1; i <= UINT16_MAX; i++)
		assert_int_equal(h5_fheap_insert_apart(h, 1000 * i, 11, id, &err), 0);
	assert_memory_equal(id, "\x10\xff\xff", 3);
	assert_int_equal(h5_fheap_insert_apart(h, 1, 11, id, &err), -E2BIG);
	assert_string_equal(err.msg, "fractal heap: too many huge objects");
	h5_fheap_free(h);
}

/* Defects of a heap of 40 objects of 60 bytes: an indirect root with six blocks of 512 bytes. */
enum {
	ROOT = HEADER,
	ROOT_SIZE = 17 + 2 * 4 * 8 + 4,
	CHILD_0 = ROOT + 17,
	BLOCK_0 = ROOT + ROOT_SIZE,
};

static const struct {
	const char *defect;
	size_t at, n;
	uint64_t value;
	bool mend;	/* the test corrects the checksums of header and root */
	int open, read; /* results of opening, and of reading the first object */
} defects[] = {
	{"none", 0, 1, 'F', false, 0, 0},
	{"header signature", 0, 1, 'X', true, -EIO, 0},
	{"header version", 4, 1, 1, true, -EOPNOTSUPP, 0},
	{"ids too short", 5, 2, 6, true, -EIO, 0},
	{"ids without bytes", 5, 2, 0, true, -EIO, 0},
	{"filters longer than the header", 7, 2, 20, true, -EIO, 0},
	{"header checksum", 50, 1, 1, false, -EIO, 0},
	{"managed objects larger than blocks", 10, 4, 1 << 20, true, -EIO, 0},
	{"width 0", 110, 2, 0, true, -EIO, 0},
	{"width 3", 110, 2, 3, true, -EIO, 0},
	{"width of 32,768", 110, 2, 32768, true, -EIO, 0},
	{"blocks of 8 bytes", 112, 8, 8, true, -EIO, 0},
	{"blocks of 2^63 bytes", 112, 8, 1ULL << 63, true, -EIO, 0},
	{"direct blocks of 2^31 bytes", 120, 8, 1ULL << 31, true, 0, 0},
	{"direct blocks of 2^32 bytes", 120, 8, 1ULL << 32, true, -EIO, 0},
	{"direct blocks of 2^40 bytes", 120, 8, 1ULL << 40, true, -EIO, 0},
	{"heap of 2^65535 bytes", 128, 2, 65535, true, -EIO, 0},
	{"heap smaller than a row", 128, 2, 10, true, -EIO, 0},
	{"root outside of the file", 132, 8, 1 << 20, true, -EIO, 0},
	{"root is no block", 132, 8, ADDR, true, -EIO, 0},
	{"more rows than the heap can have", 140, 2, 23, true, -EIO, 0},
	{"root of another size", 140, 2, 1, true, -EIO, 0},
	{"root is an indirect block", 140, 2, 0, true, 0, -EIO},
	{"indirect signature", ROOT, 1, 'X', true, -EIO, 0},
	{"indirect version", ROOT + 4, 1, 1, true, -EOPNOTSUPP, 0},
	{"indirect block of another heap", ROOT + 5, 8, 1, true, -EIO, 0},
	{"indirect block from elsewhere in the heap", ROOT + 13, 4, 512, true, -EIO, 0},
	{"indirect checksum", CHILD_0 + 60, 1, 0, false, -EIO, 0},
	{"block missing", CHILD_0, 8, H5_UNDEF, true, 0, -EIO},
	{"block outside of the file", CHILD_0, 8, 1 << 20, true, 0, -EIO},
	{"block in the tree twice", CHILD_0, 8, ADDR + BLOCK_0 + 512, true, 0, -EIO},
	{"direct signature", BLOCK_0, 1, 'X', false, 0, -EIO},
	{"direct version", BLOCK_0 + 4, 1, 1, false, 0, -EOPNOTSUPP},
	{"direct block of another heap", BLOCK_0 + 5, 8, 1, false, 0, -EIO},
	{"direct checksum", BLOCK_0 + 100, 1, 0xff, false, 0, -EIO},
};

static void mend(uint8_t *heap)
{
	struct emit e = emit_to(heap + HEADER - 4, 4);
	emit_u32(&e, checksum_lookup3(heap, HEADER - 4, 0));
	e = emit_to(heap + ROOT + ROOT_SIZE - 4, 4);
	emit_u32(&e, checksum_lookup3(heap + ROOT, ROOT_SIZE - 4, 0));
}

static void test_malformed_heaps(void **state)
{
	size_t sizes[40];
	struct built b;
	for (size_t i = 0; i < 40; i++)
		sizes[i] = 60;
	build(&b, &h5_fheap_links, sizes, 40);
	uint8_t *bad = malloc(b.image_size);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct mem_src m;
		struct h5_fheap_reader *r = NULL;
		struct err err = ERR_INIT;
		auto_bytes struct bytes out = {0};
		memcpy(bad, b.image, b.image_size);
		struct emit e = emit_to(bad + ADDR + defects[i].at, 8);
		emit_uint(&e, defects[i].value, (unsigned int)defects[i].n);
		if (defects[i].mend)
			mend(bad + ADDR);
		mem_src_init(&m, bad, b.image_size);
		int rc = h5_fheap_open(&m.file, ADDR, &r, &err);
		if (rc != defects[i].open)
			fail_msg("%s: open says %d %s", defects[i].defect, rc, err.msg);
		if (rc)
			continue;
		rc = h5_fheap_get(r, b.ids, b.id_len, 60, &out, &err);
		if (rc != defects[i].read)
			fail_msg("%s: get says %d %s", defects[i].defect, rc, err.msg);
		h5_fheap_close(r);
	}
	free(bad);
	release(&b);
}

/* A flag of the header says whether direct blocks have checksums. Without it the bytes there have
 * no meaning. */
static void test_blocks_without_checksums(void **state)
{
	enum { FLAGS = 9, CHECKSUM = BLOCK_0 + 4 + 1 + 8 + 4 };
	size_t sizes[40];
	struct built b;
	for (size_t i = 0; i < 40; i++)
		sizes[i] = 60;
	build(&b, &h5_fheap_links, sizes, 40);
	assert_int_equal(b.image[ADDR + FLAGS], 2);
	b.image[ADDR + FLAGS] = 0;
	b.image[ADDR + CHECKSUM] ^= 0xff;
	mend(b.image + ADDR);
	read_back(&b);
	release(&b);
}

static void test_malformed_ids(void **state)
{
	static const struct {
		const char *defect;
		const char *id;
		size_t n;
		int rc;
	} rows[] = {
		{"object", "\0\x15\0\0\0\x3c\0", 7, 0},
		{"id too short", "\0\x15\0\0\0\x3c", 6, -EIO},
		{"id too long", "\0\x15\0\0\0\x3c\0", 8, -EIO},
		{"id version", "\x40\x15\0\0\0\x3c\0", 7, -EOPNOTSUPP},
		{"id class", "\x30\x15\0\0\0\x3c\0", 7, -EIO},
		{"object in the block's prefix", "\0\x14\0\0\0\x3c\0", 7, -EIO},
		{"object passes the block", "\0\x15\0\0\0\xff\x0f", 7, -EIO},
		{"object in no block", "\0\0\xf0\0\0\x3c\0", 7, -EIO},
		{"object larger than max", "\0\x15\0\0\0\x3e\0", 7, -EIO},
		{"no such huge object", "\x10\3\0\0\0\0\0", 7, -EIO},
		{"huge object larger than max", "\x10\1\0\0\0\0\0", 7, -EIO},
		{"tiny object larger than its id", "\x2f\1\0\0\0\0\0", 7, -EIO},
	};
	static const size_t sizes[] = {60, 60, 5000, 6000};
	struct built b;
	struct mem_src m;
	struct h5_fheap_reader *r;
	build(&b, &h5_fheap_links, sizes, 4);
	mem_src_init(&m, b.image, b.image_size);
	assert_int_equal(h5_fheap_open(&m.file, ADDR, &r, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_bytes struct bytes out = {0};
		struct err err = ERR_INIT;
		int rc = h5_fheap_get(r, (const uint8_t *)rows[i].id, rows[i].n, 61, &out, &err);
		if (rc != rows[i].rc || (rc && out.len))
			fail_msg("%s: %d %s", rows[i].defect, rc, err.msg);
	}
	/* The numbers of huge objects begin with 1. */
	auto_bytes struct bytes out = {0};
	assert_int_equal(
		h5_fheap_get(r, (const uint8_t *)"\x10\0\0\0\0\0", 7, MAX_OBJECT, &out, NULL),
		-EIO);
	h5_fheap_close(r);
	release(&b);
}

/* The encoder cannot write such long ids, so the test changes the length of ids in an encoded
 * header. */
static void test_tiny_objects_with_two_bytes_of_length(void **state)
{
	enum { ID_LEN = 300, N = 258 };
	struct built b;
	struct mem_src m;
	struct h5_fheap_reader *r;
	uint8_t id[ID_LEN] = {0x21, N - 1 - 0x100};
	auto_bytes struct bytes out = {0};
	auto_free uint8_t *object = object_of(1, N);
	build(&b, &h5_fheap_attrs, NULL, 0);
	struct emit e = emit_to(b.image + ADDR + 5, 2);
	emit_u16(&e, ID_LEN);
	e = emit_to(b.image + ADDR + HEADER - 4, 4);
	emit_u32(&e, checksum_lookup3(b.image + ADDR, HEADER - 4, 0));
	mem_src_init(&m, b.image, b.image_size);
	assert_int_equal(h5_fheap_open(&m.file, ADDR, &r, NULL), 0);
	memcpy(id + 2, object, N);
	assert_int_equal(h5_fheap_get(r, id, ID_LEN, N - 1, &out, NULL), -EIO);
	assert_int_equal(h5_fheap_get(r, id, ID_LEN, N, &out, NULL), 0);
	assert_int_equal(out.len, N);
	assert_memory_equal(out.data, object, N);
	h5_fheap_close(r);
	release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects_come_back),
		cmocka_unit_test(test_statistics_of_libhdf5),
		cmocka_unit_test(test_bytes_of_libhdf5),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_huge_objects_apart),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_as_many_huge_objects_as_ids),
		cmocka_unit_test(test_tiny_objects_with_two_bytes_of_length),
		cmocka_unit_test(test_malformed_heaps),
		cmocka_unit_test(test_blocks_without_checksums),
		cmocka_unit_test(test_malformed_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
