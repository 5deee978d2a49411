/* SPDX-License-Identifier: Apache-2.0 */
/* The datasets of tests/data/indexes.h5, and changes of its blocks with correct checksums. */
#ifndef TESTS_H5_INDEX_FIXTURE_H
#define TESTS_H5_INDEX_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/index.h>
#include <h5/ohdr.h>
#include "data_file.h"
#include "mem_src.h"

#include "shape_arena.h"

enum { INDEX_ARENA_LIMIT = 64 << 20 };

struct chunked {
	struct dspace space;
	struct grid grid;
	struct h5_layout layout;
	bool filtered;
};

static inline uint64_t find_link(const struct h5_file *f, uint64_t group, const char *name)
{
	struct arena *a = arena_new(INDEX_ARENA_LIMIT);
	uint64_t addr = H5_UNDEF;
	struct h5_ohdr h;
	assert_int_equal(h5_ohdr_decode(f, group, a, &h, NULL), 0);
	for (uint32_t i = 0; i < h.n; i++) {
		struct cursor c = cursor_of(h.msgs[i].body, h.msgs[i].len);
		struct h5_link link;
		if (h.msgs[i].type != H5_MSG_LINK)
			continue;
		assert_int_equal(h5_link_decode(f, &c, a, &link, NULL), 0);
		if (strcmp(link.name, name) == 0)
			addr = link.addr;
	}
	arena_free(a);
	if (addr == H5_UNDEF)
		fail_msg("no %s", name);
	return addr;
}

static inline struct chunked open_chunked(const struct h5_file *f, const char *group,
					  const char *name)
{
	struct chunked d = {0};
	struct arena *a = arena_new(INDEX_ARENA_LIMIT);
	struct h5_ohdr h;
	uint64_t chunk[DSPACE_MAX_RANK];
	assert_int_equal(
		h5_ohdr_decode(f, find_link(f, find_link(f, f->root, group), name), a, &h, NULL),
		0);
	for (uint32_t i = 0; i < h.n; i++) {
		struct cursor c = cursor_of(h.msgs[i].body, h.msgs[i].len);
		if (h.msgs[i].type == H5_MSG_DATASPACE)
			assert_int_equal(h5_dspace_decode(f, &c, shape_arena(), &d.space, NULL), 0);
		else if (h.msgs[i].type == H5_MSG_LAYOUT)
			assert_int_equal(h5_layout_decode(f, &c, &d.layout, NULL), 0);
		d.filtered = d.filtered || h.msgs[i].type == H5_MSG_PIPELINE;
	}
	for (uint32_t i = 0; i < d.layout.rank; i++)
		chunk[i] = d.layout.chunk[i];
	assert_int_equal(grid_init(shape_arena(), &d.grid, d.space.rank, d.space.dims, chunk, NULL),
			 0);
	arena_free(a);
	return d;
}

static inline int count_chunk(void *ctx, const struct h5_chunk *chunk, struct err *err)
{
	++*(uint64_t *)ctx;
	return 0;
}

/* A defect: n bytes at an offset of a block are replaced. */
struct defect {
	const char *name;
	uint64_t block, size; /* address, bytes with the checksum */
	size_t at, n;
	uint64_t value;
	bool keep_checksum; /* so that it is wrong */
	int rc;
	const char *words; /* in the message */
};

/* Walks the index of d in a copy of the file with a defect. */
static inline void check_defect(const struct mem_src *whole, const struct chunked *d,
				const struct defect *row)
{
	const size_t n = (size_t)whole->source.size;
	uint8_t *copy = malloc(n);
	struct err err = ERR_INIT;
	struct mem_src m;
	uint64_t found = 0;
	assert_non_null(copy);
	memcpy(copy, whole->bytes, n);
	struct emit e = emit_to(copy + row->block + row->at, row->n);
	emit_uint(&e, row->value, (unsigned int)row->n);
	if (!row->keep_checksum) {
		e = emit_to(copy + row->block + row->size - 4, 4);
		emit_u32(&e, checksum_lookup3(copy + row->block, (size_t)row->size - 4, 0));
	}
	mem_src_init(&m, copy, n);
	int rc = h5_index_walk(&m.file, &d->layout, &d->space, &d->grid, d->filtered, 0, UINT64_MAX,
			       count_chunk, &found, &err);
	if (rc != row->rc || (rc && !strstr(err.msg, row->words)))
		fail_msg("%s: %d %s", row->name, rc, err.msg);
	free(copy);
}

static inline uint64_t u64_at(const struct mem_src *m, uint64_t addr)
{
	struct cursor c = cursor_of(m->bytes + addr, 8);
	return cur_u64(&c);
}

#endif
