/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include <h5/btree1.h>
#include <h5/claims.h>
#include "mem_src.h"

#include "hex.h"

enum { ELEM_SIZE = 2, ADDR = 4096, HEADER = 24 };

/* A regular grid of chunks, 100 bytes each. */
struct shape {
	uint32_t rank;
	uint64_t count[5], chunk[5];
};

static uint64_t chunks_of(const struct shape *s)
{
	uint64_t n = 1;
	for (uint32_t d = 0; d < s->rank; d++)
		n *= s->count[d];
	return n;
}

static void chunk_at(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	const struct shape *s = ctx;
	assert_true(i < chunks_of(s));
	out->size = 100 + (uint32_t)(i % 7);
	out->filter_mask = (uint32_t)(i % 3);
	out->addr = 1000000 + i * 200;
	for (uint32_t d = s->rank; d-- > 0; i /= s->count[d])
		out->offset[d] = i % s->count[d] * s->chunk[d];
}

static void chunk_end(void *ctx, struct h5_bt1_chunk *out)
{
	const struct shape *s = ctx;
	chunk_at(ctx, chunks_of(s) - 1, out);
	out->size = out->filter_mask = 0;
	for (uint32_t d = 0; d < s->rank; d++)
		out->offset[d] += s->chunk[d];
}

static struct h5_bt1 tree_of(struct shape *s)
{
	return (struct h5_bt1){
		.rank = s->rank,
		.elem_size = ELEM_SIZE,
		.n = chunks_of(s),
		.addr = ADDR,
		.chunk = chunk_at,
		.end = chunk_end,
		.ctx = s,
	};
}

/* A file with the tree at ADDR. */
static uint8_t *image_of(struct shape *s, size_t *size)
{
	struct h5_bt1 t = tree_of(s);
	*size = ADDR + (size_t)h5_bt1_size(s->rank, t.n);
	uint8_t *image = calloc(1, *size);
	assert_non_null(image);
	h5_bt1_read(&t, 0, image + ADDR, *size - ADDR);
	return image;
}

struct expect {
	struct shape *s;
	uint64_t n;
};

static int expect_chunk(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	struct expect *e = ctx;
	struct h5_bt1_chunk due;
	chunk_at(e->s, e->n++, &due);
	assert_int_equal(chunk->size, due.size);
	assert_int_equal(chunk->filter_mask, due.filter_mask);
	assert_int_equal(chunk->addr, due.addr);
	assert_memory_equal(chunk->offset, due.offset, e->s->rank * sizeof(due.offset[0]));
	return 0;
}

static const struct shape shapes[] = {
	{1, {0}, {4}},
	{3, {0, 2, 0}, {4, 1, 1}},
	{1, {1}, {4}},
	{1, {2}, {4}},
	{1, {64}, {4}},
	{1, {65}, {4}},
	{1, {4096}, {1}},
	{1, {4097}, {1}},
	{2, {3, 3}, {4, 5}},
	{2, {70, 71}, {2, 3}},
	{3, {9, 10, 11}, {2, 1, 3}},
	{5, {3, 4, 5, 6, 7}, {1, 2, 1, 2, 1}},
	{1, {300000}, {1}},
};

static void test_walk_gives_what_was_rendered(void **state)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct shape s = shapes[i];
		struct expect e = {&s, 0};
		size_t size;
		uint8_t *image = image_of(&s, &size);
		struct mem_src m;
		struct err err = ERR_INIT;
		mem_src_init(&m, image, size);
		if (h5_bt1_walk_range(&m.file, ADDR, s.rank, NULL, expect_chunk, &e, &err))
			fail_msg("shape %zu: %s", i, err.msg);
		assert_int_equal(e.n, chunks_of(&s));
		free(image);
	}
}

static void test_size(void **state)
{
	static const struct {
		uint32_t rank;
		uint64_t n, nodes;
	} rows[] = {
		{1, 0, 1},
		{1, 1, 1},
		{1, 64, 1},
		{1, 65, 3},
		{2, 4096, 65},
		{2, 4097, 65 + 2 + 1},
		{32, 10000000, 156250 + 2442 + 39 + 1},
	};
	assert_int_equal(h5_bt1_node_size(1), 2096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(h5_bt1_size(rows[i].rank, rows[i].n),
				 rows[i].nodes * h5_bt1_node_size(rows[i].rank));
	assert_true(h5_bt1_size(32, UINT64_MAX) == UINT64_MAX);
}

/* The root that libhdf5 1.10.8 writes for two chunks. (Its last key comes from the chunk that was
 * inserted first.) */
static const char native_root[] = "5452454501000200ffffffffffffffffffffffffffffffff"
				  "080000000000000000000000000000000000000000000000a80d000000000000"
				  "080000000000000004000000000000000000000000000000b00d000000000000"
				  "000000000000000004000000000000000200000000000000";

static void native_chunk(void *ctx, uint64_t i, struct h5_bt1_chunk *out)
{
	*out = (struct h5_bt1_chunk){.size = 8, .offset = {4 * i}, .addr = 0xda8 + 8 * i};
}

static void native_end(void *ctx, struct h5_bt1_chunk *out)
{
	*out = (struct h5_bt1_chunk){.offset = {4}};
}

static void test_bytes_of_libhdf5(void **state)
{
	struct h5_bt1 t = {.rank = 1, .elem_size = 2, .n = 2};
	uint8_t ours[2096];
	size_t n;
	uint8_t *native = hex_bytes(native_root, &n);
	t.chunk = native_chunk;
	t.end = native_end;
	h5_bt1_read(&t, 0, ours, sizeof(ours));
	assert_memory_equal(ours, native, n);
	for (size_t i = n; i < sizeof(ours); i++)
		assert_int_equal(ours[i], 0);
	free(native);
}

/* The root after libhdf5 1.10.8 has removed the last chunk. Bytes after its header have no meaning.
 */
static void test_empty_root_of_libhdf5(void **state)
{
	const struct h5_bt1 t = {.rank = 1, .elem_size = 2};
	uint8_t ours[2096];
	size_t n;
	uint8_t *native = hex_bytes("5452454501000000ffffffffffffffffffffffffffffffff", &n);
	assert_int_equal(h5_bt1_size(1, 0), sizeof(ours));
	for (size_t step = 1; step <= sizeof(ours); step += step * 6 + 1) {
		memset(ours, 1, sizeof(ours));
		for (size_t at = 0; at < sizeof(ours); at += step)
			h5_bt1_read(&t, at, ours + at, min_u64(step, sizeof(ours) - at));
		assert_memory_equal(ours, native, n);
		for (size_t i = n; i < sizeof(ours); i++)
			assert_int_equal(ours[i], 0);
	}
	free(native);
}

static uint64_t u64_at(const uint8_t *p)
{
	struct cursor c = cursor_of(p, 8);
	return cur_u64(&c);
}

/* Neighbors point to each other and share a key; the first key of a child is the key in its parent.
 */
static void test_nodes_fit_together(void **state)
{
	struct shape s = {2, {70, 71}, {2, 3}};
	size_t size, node_size = (size_t)h5_bt1_node_size(2), key = 8 + 3 * 8;
	uint8_t *image = image_of(&s, &size);
	for (size_t at = ADDR; at < size; at += node_size) {
		const uint8_t *node = image + at;
		unsigned int level = node[5], entries = node[6] | node[7] << 8;
		uint64_t right = u64_at(node + 16);
		if (right != H5_UNDEF) {
			assert_int_equal(right, at + node_size);
			assert_int_equal(image[right + 5], level);
			assert_int_equal(u64_at(image + right + 8), at);
			assert_memory_equal(node + HEADER + entries * (key + 8),
					    image + right + HEADER, key);
		} else {
			assert_int_equal(u64_at(node + HEADER + entries * (key + 8) + 8), 140);
			assert_int_equal(u64_at(node + HEADER + entries * (key + 8) + 16), 213);
			assert_int_equal(u64_at(node + HEADER + entries * (key + 8) + 24),
					 ELEM_SIZE);
		}
		for (unsigned int i = 0; level && i < entries; i++) {
			const uint8_t *entry = node + HEADER + i * (key + 8);
			const uint8_t *child = image + u64_at(entry + key);
			assert_int_equal(child[5], level - 1);
			assert_memory_equal(entry, child + HEADER, key);
		}
	}
	free(image);
}

static void test_any_window(void **state)
{
	struct shape s = {2, {70, 71}, {2, 3}};
	struct h5_bt1 t = tree_of(&s);
	size_t size;
	uint8_t *image = image_of(&s, &size), window[6000];
	uint32_t seed = 1;
	for (int i = 0; i < 3000; i++) {
		seed = seed * 1103515245 + 12345;
		size_t n = seed >> 8 & 1 ? 1 + (seed >> 16) % 40 : 1 + (seed >> 10) % 6000;
		seed = seed * 1103515245 + 12345;
		size_t offset = (seed >> 4) % (size - ADDR - n);
		h5_bt1_read(&t, offset, window, n);
		assert_memory_equal(window, image + ADDR + offset, n);
	}
	free(image);
}

/* Rendering a node of an index of 2^40 chunks takes no longer than one of a small index. */
static void test_index_without_limit(void **state)
{
	struct shape s = {2, {1 << 20, 1 << 20}, {1, 1}};
	struct h5_bt1 t = tree_of(&s);
	uint64_t size = h5_bt1_size(2, t.n), node_size = h5_bt1_node_size(2);
	uint8_t node[4096];
	h5_bt1_read(&t, size - node_size, node, (size_t)node_size);
	assert_memory_equal(node, "TREE\1\0\100\0", 8);
	assert_int_equal(u64_at(node + HEADER + 8), (1 << 20) - 1);
	assert_int_equal(u64_at(node + HEADER + 16), (1 << 20) - 64);
}

static int count_chunk(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	return ++*(uint64_t *)ctx == 100 ? -ECANCELED : 0;
}

static void test_malformed(void **state)
{
	enum { NODE = 2096, ENTRY = 32 };
	static const struct {
		const char *defect;
		size_t at; /* from the root */
		size_t n;
		uint64_t value;
	} rows[] = {
		{"signature", 0, 1, 'X'},
		{"group node", 4, 1, 0},
		{"level too deep", 5, 1, 200},
		{"level skips", 5, 1, 2},
		{"empty inner node", 6, 2, 0},
		{"entries past the end of file", 6, 2, 65535},
		{"cycle to the root", HEADER + 24, 8, ADDR},
		{"child met twice", HEADER + ENTRY + 24, 8, ADDR + NODE},
		{"child outside of the file", HEADER + 24, 8, 1 << 30},
		{"child at the undefined address", HEADER + 24, 8, H5_UNDEF},
		{"leaf without entries", NODE + 6, 2, 0},
		{"chunks out of order", NODE + HEADER + ENTRY + 8, 8, 0},
	};
	struct shape s = {1, {70}, {4}};
	size_t size;
	uint8_t *image = image_of(&s, &size), *bad = malloc(size);
	assert_non_null(bad);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mem_src m;
		struct err err = ERR_INIT;
		uint64_t seen = 0;
		memcpy(bad, image, size);
		struct emit e = emit_to(bad + ADDR + rows[i].at, 8);
		emit_uint(&e, rows[i].value, (unsigned int)rows[i].n);
		mem_src_init(&m, bad, size);
		int rc = h5_bt1_walk_range(&m.file, ADDR, 1, NULL, count_chunk, &seen, &err);
		if (rc != -EIO || !err.msg[0])
			fail_msg("%s: %d", rows[i].defect, rc);
	}
	free(bad);
	free(image);
}

static void test_callback_stops(void **state)
{
	struct shape s = {1, {300}, {4}};
	size_t size;
	uint8_t *image = image_of(&s, &size);
	uint64_t seen = 0;
	struct mem_src m;
	mem_src_init(&m, image, size);
	assert_int_equal(h5_bt1_walk_range(&m.file, ADDR, 1, NULL, count_chunk, &seen, NULL),
			 -ECANCELED);
	assert_int_equal(seen, 100);
	assert_int_equal(h5_bt1_walk_range(&m.file, ADDR, 0, NULL, count_chunk, &seen, NULL), -EIO);
	assert_int_equal(h5_bt1_walk_range(&m.file, ADDR, 33, NULL, count_chunk, &seen, NULL),
			 -EIO);
	free(image);
}

/* With K = 1, libhdf5 makes trees that are mostly one path. */
static void test_deep_tree(void **state)
{
	enum { LEVELS = 256, SIZE = HEADER + 24 + 2 * 32 }; /* K = 1: two entries and a key */
	uint8_t *image = calloc(LEVELS, SIZE);
	struct mem_src m;
	uint64_t seen = 0;
	assert_non_null(image);
	for (unsigned int i = 0; i < LEVELS; i++) {
		struct emit e = emit_to(image + i * SIZE, SIZE);
		emit_bytes(&e, "TREE", 4);
		emit_u8(&e, 1);
		emit_u8(&e, (uint8_t)(LEVELS - 1 - i));
		emit_u16(&e, 1);
		emit_u64(&e, H5_UNDEF);
		emit_u64(&e, H5_UNDEF);
		emit_zero(&e, 24); /* key */
		emit_u64(&e, (i + 1) * SIZE);
	}
	mem_src_init(&m, image, (size_t)LEVELS * SIZE);
	m.file.chunk_k = 1;
	assert_int_equal(h5_bt1_walk_range(&m.file, 0, 1, NULL, count_chunk, &seen, NULL), 0);
	assert_int_equal(seen, 1);
	assert_int_equal(m.reads, LEVELS);
	image[6] = 3; /* more than 2 K entries */
	assert_int_equal(h5_bt1_walk_range(&m.file, 0, 1, NULL, count_chunk, &seen, NULL), -EIO);
	free(image);
}

static int go_on(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	++*(uint64_t *)ctx;
	return 0;
}

/* Nodes of a large K have megabytes. Many of them that overlap are not all read. */
static void test_nodes_that_overlap(void **state)
{
	enum { ENTRY = 24 + 8, CHILDREN = 1000, SIZE = 8 << 20, K = 65535 };
	uint8_t *image = calloc(1, SIZE);
	struct mem_src m;
	uint64_t seen = 0;
	assert_non_null(image);
	struct emit root = emit_to(image, SIZE);
	const size_t first = HEADER + (CHILDREN + 1) * ENTRY;
	for (unsigned int i = 0; i <= CHILDREN; i++) {
		/* The root, and then leaves of one chunk. */
		struct emit leaf = emit_to(image + first + i * (HEADER + ENTRY), HEADER + ENTRY);
		struct emit *e = i ? &leaf : &root;
		emit_bytes(e, "TREE", 4);
		emit_u8(e, 1);
		emit_u8(e, i == 0);
		emit_u16(e, i ? 1 : CHILDREN);
		emit_u64(e, H5_UNDEF);
		emit_u64(e, H5_UNDEF);
		if (!i)
			continue;
		struct emit *const both[] = {&root, &leaf};
		for (int k = 0; k < 2; k++) {
			emit_u64(both[k], 1);
			emit_u64(both[k], i); /* offset */
			emit_u64(both[k], 0);
			emit_u64(both[k], first + i * (HEADER + ENTRY));
		}
	}
	mem_src_init(&m, image, SIZE);
	m.file.chunk_k = K;
	assert_int_equal(h5_bt1_walk_range(&m.file, 0, 1, NULL, go_on, &seen, NULL), -EIO);
	assert_true(m.source.bytes <= SIZE);
	free(image);
}

/* ---- a tree that was rendered, and of which a part was written ---- */

struct known_case {
	struct shape s;
	struct mem_src m;
	uint8_t *image;
	size_t size;
	struct {
		uint64_t start, end;
	} written[4];
	size_t nwritten;
	int code;		      /* not 0: the result of is_changed() */
	uint64_t next, runs, records; /* the next chunk; how many came how */
};

static int known_changed(void *ctx, uint64_t start, uint64_t end, struct err *err)
{
	const struct known_case *k = ctx;
	if (k->code)
		return err_set(err, k->code, "cannot be compared");
	for (size_t i = 0; i < k->nwritten; i++)
		if (k->written[i].start < end && start < k->written[i].end)
			return 1;
	return 0;
}

static void known_offset(void *ctx, uint64_t i, uint64_t *offset)
{
	struct known_case *k = ctx;
	struct h5_bt1_chunk c;
	chunk_at(&k->s, i, &c);
	memcpy(offset, c.offset, k->s.rank * sizeof(*offset));
}

static int known_run(void *ctx, uint64_t first, uint64_t end, struct err *err)
{
	struct known_case *k = ctx;
	assert_true(first < end && end <= chunks_of(&k->s));
	assert_int_equal(first, k->next);
	k->next = end;
	k->runs++;
	return 0;
}

static int known_record(void *ctx, const struct h5_bt1_chunk *chunk, struct err *err)
{
	struct known_case *k = ctx;
	struct expect e = {&k->s, k->next};
	k->next++;
	k->records++;
	return expect_chunk(&e, chunk, err);
}

static void known_begin(struct known_case *k, uint64_t n)
{
	*k = (struct known_case){.s = {1, {n}, {4}}};
	k->image = image_of(&k->s, &k->size);
	k->image = realloc(k->image, k->size + 4096); /* for a node behind the tree */
	assert_non_null(k->image);
	mem_src_init(&k->m, k->image, k->size + 4096);
}

static void known_write(struct known_case *k, uint64_t at, uint64_t n)
{
	k->written[k->nwritten].start = at;
	k->written[k->nwritten++].end = at + n;
}

static int known_walk(struct known_case *k, uint64_t addr, struct err *err)
{
	const struct h5_bt1_known known = {.addr = ADDR,
					   .n = chunks_of(&k->s),
					   .is_changed = known_changed,
					   .offset = known_offset,
					   .run = known_run,
					   .ctx = k};
	k->next = k->runs = k->records = k->m.reads = 0;
	k->m.file.claims = h5_claims_new(NULL);
	int rc = h5_bt1_walk_known(&k->m.file, addr, 1, &known, known_record, k, err);
	if (!rc)
		rc = h5_claims_check(k->m.file.claims, err);
	h5_claims_free(k->m.file.claims);
	k->m.file.claims = NULL;
	return rc;
}

static void known_expect(struct known_case *k, uint64_t addr, uint64_t reads, uint64_t runs,
			 uint64_t records)
{
	struct err err = ERR_INIT;
	if (known_walk(k, addr, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(k->next, chunks_of(&k->s));
	assert_int_equal(k->m.reads, reads);
	assert_int_equal(k->runs, runs);
	assert_int_equal(k->records, records);
}

/* 5,000 chunks: the root, 2 nodes below it, and 79 leaves, of which the last has 8 chunks. */
enum { KNOWN = 5000, KNOWN_NODE = 24 + 65 * 24 + 64 * 8, KNOWN_LEAVES = ADDR + 3 * KNOWN_NODE };

static void test_only_written_nodes_are_read(void **state)
{
	struct known_case k;
	known_begin(&k, KNOWN);
	assert_int_equal(h5_bt1_node_size(1), KNOWN_NODE);
	known_expect(&k, ADDR, 0, 1, 0);
	/* What is before and behind the tree does not count. */
	known_write(&k, 0, ADDR);
	known_write(&k, k.size, 4096);
	known_expect(&k, ADDR, 0, 1, 0);
	/* One byte of a leaf: the other leaves of its parent, and the other node below the root. */
	known_write(&k, KNOWN_LEAVES + 70 * KNOWN_NODE + 5, 1);
	known_expect(&k, ADDR, 3, 1 + 14, 64);
	/* The root. */
	known_write(&k, ADDR, 1);
	known_expect(&k, ADDR, 3, 1 + 14, 64);
	/* It is not known. */
	k.code = -ENOMEM;
	assert_int_equal(known_walk(&k, ADDR, NULL), -ENOMEM);
	assert_int_equal(k.runs + k.records, 0);
	free(k.image);
	/* The size of nodes is another one: all are read, and these overlap. */
	known_begin(&k, KNOWN);
	k.m.file.chunk_k = 33;
	assert_int_equal(known_walk(&k, ADDR, NULL), -EIO);
	assert_int_equal(k.m.reads, 82);
	assert_int_equal(k.runs, 0);
	free(k.image);
}

/* libhdf5 copies the root to another place when the tree gets a level more. */
static void test_a_root_that_has_moved(void **state)
{
	struct known_case k;
	known_begin(&k, KNOWN);
	memcpy(k.image + k.size, k.image + ADDR, KNOWN_NODE);
	known_write(&k, ADDR, KNOWN_NODE);
	known_expect(&k, k.size, 1, 2, 0);
	free(k.image);
	/* A tree of one leaf. */
	known_begin(&k, 3);
	memcpy(k.image + k.size, k.image + ADDR, KNOWN_NODE);
	known_write(&k, ADDR, KNOWN_NODE);
	known_expect(&k, k.size, 1, 0, 3);
	free(k.image);
}

/* A written node leads to nodes of the rendered tree that do not belong there. */
static void test_wrong_runs_are_refused(void **state)
{
	enum { ENTRY = 24 + 8, SECOND = KNOWN_LEAVES + KNOWN_NODE };
	static const struct {
		const char *defect;
		unsigned int entry; /* of the first node below the root */
		uint64_t child;
	} rows[] = {
		{"a leaf twice", 1, KNOWN_LEAVES},
		{"a leaf that comes later", 0, SECOND},
		{"a leaf behind the last key", 63, KNOWN_LEAVES + 70 * KNOWN_NODE},
		{"a node of another level", 5, ADDR + 2 * KNOWN_NODE},
		{"the middle of a node", 5, KNOWN_LEAVES + 8},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct known_case k;
		struct err err = ERR_INIT;
		known_begin(&k, KNOWN);
		const uint64_t at = ADDR + KNOWN_NODE + HEADER + rows[i].entry * ENTRY + 24;
		struct emit e = emit_to(k.image + at, 8);
		emit_u64(&e, rows[i].child);
		known_write(&k, at, 8);
		const int rc = known_walk(&k, ADDR, &err);
		if (rc != -EIO)
			fail_msg("%s: %d", rows[i].defect, rc);
		free(k.image);
	}
}

/* Nodes that are cut off are not as they were. */
static void test_a_file_that_is_too_short(void **state)
{
	struct known_case k;
	struct err err = ERR_INIT;
	known_begin(&k, KNOWN);
	k.m.source.size = k.size - KNOWN_NODE;
	assert_int_equal(known_walk(&k, ADDR, &err), -EIO);
	free(k.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_gives_what_was_rendered),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_bytes_of_libhdf5),
		cmocka_unit_test(test_empty_root_of_libhdf5),
		cmocka_unit_test(test_nodes_fit_together),
		cmocka_unit_test(test_any_window),
		cmocka_unit_test(test_index_without_limit),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_callback_stops),
		cmocka_unit_test(test_deep_tree),
		cmocka_unit_test(test_nodes_that_overlap),
		cmocka_unit_test(test_only_written_nodes_are_read),
		cmocka_unit_test(test_a_root_that_has_moved),
		cmocka_unit_test(test_wrong_runs_are_refused),
		cmocka_unit_test(test_a_file_that_is_too_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
