/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the ranges of an object of 4,000 bytes that a cache directory has, and one read.
 *
 *   +0  u8   bit 0: the index is made of the ranges, otherwise it is the rest of the input
 *   +1  u16  offset of the read; u16 length - 1
 *   +5  u8   ranges, modulo 8; then for each: u16 offset, u8 length - 1, u8: bit 0: a byte is lost
 *
 * A read gets the bytes of the object or none, whatever the index says. With the index that was
 * made of the ranges, it gets them if and only if a range contains each byte.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <base/env.h>
#include <diskcache/range_index.h>

#include "require.h"

enum { SIZE = 4000, RANGES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct env env;
	struct disk_dir dir;
	struct range_index index;
	struct store_range ranges[RANGES];
	struct store_meta meta;
	bool has[SIZE];
	size_t n;
};

static uint8_t byte_of(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 11);
}

static void write_entry(struct world *w, const char *key, const uint8_t *body, size_t n)
{
	const struct disk_id id = {w->index.scope, key};
	struct store_meta meta = w->meta;
	meta.size = n;
	require(disk_dir_write(&w->dir, &w->env, &id, &meta, body) == 0);
}

static void add_range(struct world *w, struct cursor *c, bool indexed)
{
	char key[STORE_KEY_MAX + RANGE_TEXT];
	uint8_t body[RANGE_HEAD + 256];
	struct emit e = emit_to(body, sizeof(body));
	const uint64_t offset = cur_u16(c) % SIZE, wanted = cur_u8(c) + 1u;
	const uint64_t length = min_u64(wanted, SIZE - offset);
	const bool lost = cur_u8(c) & 1;
	struct store_range *r = &w->ranges[w->n];
	if (!cur_ok(c))
		return;
	*r = (struct store_range){.first = offset, .length = length};
	for (size_t i = 0; i < w->n; i++)
		if (w->ranges[i].first == offset && w->ranges[i].length == length)
			return;
	w->n++;
	emit_u64(&e, SIZE);
	for (uint64_t i = 0; i < length; i++)
		body[RANGE_HEAD + i] = byte_of(offset + i);
	range_entry_key("k", r, key);
	write_entry(w, key, body, RANGE_HEAD + (size_t)length - (lost && !indexed));
	for (uint64_t i = 0; indexed && i < length; i++)
		w->has[offset + i] = true;
	if (indexed)
		require(range_index_add(&w->index, &w->env, r, &w->meta) == 0);
}

static void read_range(struct world *w, const struct store_range *r, bool indexed)
{
	auto_bytes struct bytes body = {0};
	struct store_meta meta;
	bool whole = r->first + r->length <= SIZE;
	for (uint64_t i = 0; whole && i < r->length; i++)
		whole = w->has[r->first + i];
	const int rc = range_index_read(&w->index, r, r, 1, &meta, &body);
	require(!indexed || (rc == 0) == whole);
	require(rc == 0 ? body.len == r->length : body.len == 0);
	for (uint64_t i = 0; i < body.len; i++)
		require(body.data[i] == byte_of(r->first + i));
}

static void run(struct world *w, struct cursor *c)
{
	const bool indexed = cur_u8(c) & 1;
	const uint64_t first = cur_u16(c), length = cur_u16(c) + 1u;
	const struct store_range read = {.first = first, .length = length};
	for (size_t left = cur_u8(c) % RANGES; left > 0 && cur_ok(c); left--)
		add_range(w, c, indexed);
	if (!cur_ok(c))
		return;
	const size_t n = cur_left(c);
	if (!indexed && n > 0)
		write_entry(w, "k\n@0", cur_bytes(c, n), n);
	read_range(w, &read, indexed);
}

static void remove_directory(const char *path)
{
	DIR *d = opendir(path);
	require(d != NULL);
	for (const struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			require(unlinkat(dirfd(d), e->d_name, 0) == 0);
	closedir(d);
	require(rmdir(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);
	struct world *w = calloc(1, sizeof(*w));
	char path[] = "/tmp/hsmount-fuzz-XXXXXX";
	struct err err = {0};
	require(w && mkdtemp(path));
	w->env = env_real(NULL, pool_new(0));
	require(disk_dir_open(&w->dir, path, 1 << 20, &err) == 0);
	w->index = (struct range_index){&w->dir, "s", "k", "\"v\""};
	w->meta.size = SIZE;
	snprintf(w->meta.etag, sizeof(w->meta.etag), "\"v\"");
	run(w, &c);
	disk_dir_close(&w->dir);
	remove_directory(path);
	pool_free(w->env.pool);
	free(w);
	return 0;
}
