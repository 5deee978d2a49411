/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory: of zeros, or from pieces of a file that a library wrote. */
#ifndef SUPPORT_MEMORY_FILE_H
#define SUPPORT_MEMORY_FILE_H

#include <base/mem.h>
#include <h5/file.h>

#include "hex.h"

struct piece_of_file {
	size_t at;
	const char *hex;
};

/* A file in memory. */
struct memory_file {
	uint8_t *bytes;
	size_t size;
	struct source source;
	struct h5_file file;
	struct arena *a;
};

static inline int memory_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, ((struct memory_file *)ctx)->bytes + offset, n);
	return 0;
}

static inline void memory_put(struct memory_file *f, size_t at, const char *hex)
{
	size_t n;
	uint8_t *bytes = hex_bytes(hex, &n);
	assert_true(at <= f->size && n <= f->size - at);
	memcpy(f->bytes + at, bytes, n);
	free(bytes);
}

/* A file of zeros. */
static inline void memory_open(struct memory_file *f, size_t size)
{
	*f = (struct memory_file){.bytes = calloc(1, size), .size = size};
	f->a = arena_new(256 << 20);
	assert_non_null(f->bytes);
	assert_non_null(f->a);
	f->source = (struct source){.size = size, .read_at = memory_read, .ctx = f};
	f->file = h5_file_of(&f->source);
}

static inline void memory_open_pieces(struct memory_file *f, size_t size,
				      const struct piece_of_file *pieces, size_t n)
{
	memory_open(f, size);
	for (size_t i = 0; i < n; i++)
		memory_put(f, pieces[i].at, pieces[i].hex);
}

static inline void memory_close(struct memory_file *f)
{
	arena_free(f->a);
	free(f->bytes);
}

/* A defect of a file: bytes at an address that are replaced. */
struct file_defect {
	const char *name;
	size_t at;
	const char *hex;
	int rc;
};

#endif
