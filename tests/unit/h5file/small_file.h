/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds small HDF5 files in memory with the encoders of h5/. Objects are added from the leaves to
 * the root group, because a link holds the address of its target.
 *
 *   struct small_file s;
 *   small_begin(&s);
 *   uint64_t d = small_object(&s);            begins an object header; its address follows below
 *   ...small_link(), small_space() and so on add messages
 *   uint64_t addr = small_end(&s);            writes the header
 *   small_finish(&s, root);                   writes the superblock
 */
#ifndef SMALL_FILE_H
#define SMALL_FILE_H

#include <assert.h>
#include <string.h>

#include <base/emit.h>
#include <h5/message.h>
#include <h5/ohdr.h>
#include <h5/superblock.h>

#include "mem_src.h"
#include "shape_arena.h"

enum { SMALL_MAX = 256 << 10, SMALL_MSGS = 64, SMALL_BODIES = 32 << 10 };

struct small_file {
	struct mem_src src;
	uint8_t bytes[SMALL_MAX];
	size_t n;
	struct arena *arena; /* of types */
	struct h5_ohdr header;
	struct h5_msg msgs[SMALL_MSGS];
	uint8_t bodies[SMALL_BODIES];
	size_t used;
};

static inline void small_begin(struct small_file *s)
{
	memset(s, 0, sizeof(*s));
	s->n = H5_SUPERBLOCK_SIZE;
	s->arena = arena_new(1 << 20);
}

/* Appends raw bytes; returns their address, a multiple of 8. */
static inline uint64_t small_put(struct small_file *s, const void *bytes, size_t n)
{
	const size_t at = (s->n + 7) & ~(size_t)7;
	assert(at + n <= SMALL_MAX);
	memcpy(s->bytes + at, bytes, n);
	s->n = at + n;
	return at;
}

static inline void small_object(struct small_file *s)
{
	s->header = (struct h5_ohdr){.msgs = s->msgs};
	s->used = 0;
}

static inline struct emit small_body(struct small_file *s)
{
	return emit_to(s->bodies + s->used, SMALL_BODIES - s->used);
}

static inline void small_message(struct small_file *s, uint8_t type, const struct emit *e)
{
	assert(!e->bad && s->header.n < SMALL_MSGS);
	s->msgs[s->header.n++] =
		(struct h5_msg){.type = type, .len = (uint32_t)e->pos, .body = s->bodies + s->used};
	s->used += e->pos;
}

/* Writes the header; returns its address. */
static inline uint64_t small_end(struct small_file *s)
{
	static uint8_t raw[SMALL_BODIES + 4096];
	struct emit e = emit_to(raw, sizeof(raw));
	h5_ohdr_encode(&e, &s->header);
	assert(!e.bad);
	return small_put(s, raw, e.pos);
}

static inline void small_group(struct small_file *s, bool tracked)
{
	const struct h5_linfo info = {
		.tracked = tracked, .heap = H5_UNDEF, .names = H5_UNDEF, .corders = H5_UNDEF};
	struct emit e = small_body(s);
	h5_linfo_encode(&e, &info);
	small_message(s, H5_MSG_LINK_INFO, &e);
}

static inline void small_add_link(struct small_file *s, const struct h5_link *l)
{
	struct emit e = small_body(s);
	h5_link_encode(&e, l);
	small_message(s, H5_MSG_LINK, &e);
}

static inline void small_link(struct small_file *s, const char *name, uint64_t addr)
{
	small_add_link(s, &(struct h5_link){.name = name,
					    .name_len = strlen(name),
					    .has_corder = true,
					    .corder = s->header.n,
					    .cls = LINK_HARD,
					    .addr = addr});
}

static inline void small_attr(struct small_file *s, const char *name, const struct dtype *t,
			      const struct dspace *space, const void *data)
{
	const struct h5_attr a = {.name = name,
				  .type = t,
				  .committed = H5_UNDEF,
				  .space = *space,
				  .data = data,
				  .data_len = space->nelems * t->size};
	struct emit e = small_body(s);
	h5_attr_encode(&e, &a);
	small_message(s, H5_MSG_ATTRIBUTE, &e);
}

static inline void small_type(struct small_file *s, const struct dtype *t)
{
	struct emit e = small_body(s);
	h5_dtype_encode(&e, t);
	small_message(s, H5_MSG_DATATYPE, &e);
}

/* The messages of a dataset. fill: NULL, or t->size bytes. */
static inline void small_dataset(struct small_file *s, const struct dtype *t,
				 const struct dspace *space, const struct h5_layout *l,
				 const void *fill)
{
	const struct h5_fill f = {.alloc_time = ALLOC_TIME_LATE,
				  .fill_time = FILL_TIME_IFSET,
				  .defined = true,
				  .size = fill ? t->size : 0,
				  .value = fill};
	small_type(s, t);
	struct emit e = small_body(s);
	h5_dspace_encode(&e, space);
	small_message(s, H5_MSG_DATASPACE, &e);
	e = small_body(s);
	h5_fill_encode(&e, &f);
	small_message(s, H5_MSG_FILL, &e);
	e = small_body(s);
	h5_layout_encode(&e, l);
	small_message(s, H5_MSG_LAYOUT, &e);
}

static inline void small_finish(struct small_file *s, uint64_t root)
{
	const struct h5_superblock sb = {.leaf_k = 4,
					 .internal_k = 16,
					 .chunk_k = 32,
					 .eof = s->n,
					 .root = root,
					 .extension = H5_UNDEF,
					 .driver_info = H5_UNDEF,
					 .addr_size = 8,
					 .len_size = 8};
	struct emit e = emit_to(s->bytes, H5_SUPERBLOCK_SIZE);
	h5_superblock_encode(&e, &sb);
	assert(!e.bad);
	mem_src_init(&s->src, s->bytes, s->n);
}

static inline void small_release(struct small_file *s)
{
	mem_src_release(&s->src);
	arena_free(s->arena);
}

/* ---- frequent parts ---- */

static inline struct dspace small_vector(uint64_t n)
{
	struct dspace s;
	dspace_simple(shape_arena(), &s, 1, &n, NULL, NULL);
	return s;
}

static inline struct dspace small_scalar(void)
{
	struct dspace s;
	dspace_scalar(&s);
	return s;
}

/* A dataset of n numbers 0, 1, 2 … of 4 bytes, contiguous. Returns the address of its header. */
static inline uint64_t small_numbers(struct small_file *s, uint32_t n)
{
	uint32_t v[256];
	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
	const struct dspace space = small_vector(n);
	const struct h5_layout l = {
		.cls = LAYOUT_CONTIGUOUS, .addr = small_put(s, v, 4 * n), .size = 4 * n};
	small_object(s);
	small_dataset(s, dtype_integer(s->arena, 4, false, false, NULL), &space, &l, NULL);
	return small_end(s);
}

#endif
