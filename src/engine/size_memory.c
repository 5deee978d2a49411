/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table by path, in order of insertion, and records in the disk cache. The lock guards the
 * table; it is not held while the disk is read.
 *
 * A record, little-endian:
 *
 *   +0 8  size, bytes
 *   +8 8  blocks of 512 bytes
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include "size_memory.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>
#include <diskcache/diskcache.h>
#include <image/image.h>

enum { STAT_BLOCK = 512, TAG_MAX = 64 };

/* No file of a mount is larger (image_new()). */
static const uint64_t size_max = UINT64_C(1) << 62;

struct remembered {
	struct size_version version;
	struct file_size size;
	bool on_disk;
	UT_hash_handle hh;
	char path[];
};

struct size_memory {
	struct store *disk;
	unsigned int image_flags;
	pthread_mutex_t lock;
	struct remembered *table;
};

struct size_memory *size_memory_new(struct store *disk, unsigned int image_flags)
{
	struct size_memory *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->disk = disk;
	m->image_flags = image_flags;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void size_memory_free(struct size_memory *m)
{
	struct remembered *r, *next;
	if (!m)
		return;
	HASH_ITER (hh, m->table, r, next) {
		HASH_DEL(m->table, r);
		free(r);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static uint64_t mix(uint64_t digest, const char *text)
{
	const uint32_t low = checksum_lookup3(text, strlen(text) + 1, (uint32_t)digest);
	const uint32_t high = checksum_lookup3(text, strlen(text) + 1, (uint32_t)(digest >> 32));
	return (uint64_t)high << 32 | low;
}

struct size_version size_version_large(const char *document_etag, const char *summary_etag)
{
	const uint64_t digest = mix(mix(UINT64_C(0x9e3779b97f4a7c15), document_etag), summary_etag);
	return (struct size_version){.kind = SIZE_LARGE, .digest = digest};
}

/* ---- records ---- */

void size_record_encode(const struct file_size *size, uint8_t record[SIZE_RECORD])
{
	struct emit e = emit_to(record, SIZE_RECORD);
	emit_u64(&e, size->size);
	emit_u64(&e, size->blocks);
}

bool size_record_decode(const void *bytes, uint64_t n, struct file_size *out)
{
	if (n != SIZE_RECORD)
		return false;
	struct cursor c = cursor_of(bytes, (size_t)n);
	*out = (struct file_size){.size = cur_u64(&c), .is_exact = true};
	out->blocks = cur_u64(&c);
	return cur_ok(&c) && out->size > 0 && out->size <= size_max && out->blocks > 0 &&
	       out->blocks <= size_max / STAT_BLOCK;
}

/* The version of a record: all that the size depends on besides the path. */
static void tag_of(const struct size_memory *m, const struct size_version *version,
		   char tag[TAG_MAX])
{
	snprintf(tag, TAG_MAX, "%s-%016" PRIx64 "-%d-%x",
		 version->kind == SIZE_LISTED ? "listed" : "large", version->digest, IMAGE_REVISION,
		 m->image_flags);
}

static bool find_on_disk(const struct size_memory *m, const char *path,
			 const struct size_version *version, struct file_size *out)
{
	char tag[TAG_MAX];
	auto_bytes struct bytes record = {0};
	if (!m->disk)
		return false;
	tag_of(m, version, tag);
	return store_diskcache_recall(m->disk, path, tag, SIZE_RECORD, &record) == 0 &&
	       size_record_decode(record.data, record.len, out);
}

/* ---- the table ---- */

static bool is_version(const struct remembered *r, const struct size_version *version)
{
	return r && r->version.kind == version->kind && r->version.digest == version->digest;
}

static struct remembered *new_entry(const char *path, const struct size_version *version,
				    const struct file_size *size, bool on_disk)
{
	const size_t n = strlen(path) + 1;
	struct remembered *r = calloc(1, sizeof(*r) + n);
	if (!r)
		return NULL;
	r->version = *version;
	r->size = *size;
	r->on_disk = on_disk;
	memcpy(r->path, path, n);
	return r;
}

static void keep_in_memory(struct size_memory *m, const char *path,
			   const struct size_version *version, const struct file_size *size,
			   bool on_disk)
{
	struct remembered *r = new_entry(path, version, size, on_disk), *old = NULL, *oldest = NULL;
	if (!r)
		return;
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, old);
	if (old)
		HASH_DEL(m->table, old);
	HASH_ADD_STR(m->table, path, r);
	if (!r->hh.tbl) {
		free(r);
	} else if (HASH_COUNT(m->table) > SIZE_MEMORY_MAX) {
		oldest = m->table;
		HASH_DEL(m->table, oldest);
	}
	pthread_mutex_unlock(&m->lock);
	free(old);
	free(oldest);
}

bool size_memory_find(struct size_memory *m, const char *path, const struct size_version *version,
		      struct file_size *out)
{
	const struct remembered *r = NULL;
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	const bool known = is_version(r, version);
	if (known)
		*out = r->size;
	pthread_mutex_unlock(&m->lock);
	if (known)
		return true;
	if (!find_on_disk(m, path, version, out))
		return false;
	keep_in_memory(m, path, version, out, true);
	return true;
}

void size_memory_forget(struct size_memory *m, const char *path)
{
	static const uint8_t none[SIZE_RECORD]; /* not a record */
	struct remembered *r = NULL;
	char tag[TAG_MAX];
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	if (r)
		HASH_DEL(m->table, r);
	pthread_mutex_unlock(&m->lock);
	if (r && r->on_disk) {
		tag_of(m, &r->version, tag);
		store_diskcache_remember(m->disk, path, tag, 0, none, sizeof(none));
	}
	free(r);
}

bool size_memory_is(struct size_memory *m, const char *path, enum size_kind kind)
{
	const struct remembered *r = NULL;
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	const bool is = r && r->version.kind == kind;
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Whether the table has this size, and the disk, if it may. */
static bool has(struct size_memory *m, const char *path, const struct size_version *version,
		const struct file_size *size)
{
	const struct remembered *r = NULL;
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	const bool same = is_version(r, version) && r->size.size == size->size &&
			  r->size.blocks == size->blocks && r->size.is_exact == size->is_exact &&
			  (r->on_disk || !m->disk || !size->is_exact);
	pthread_mutex_unlock(&m->lock);
	return same;
}

void size_memory_keep(struct size_memory *m, const char *path, const struct size_version *version,
		      const struct file_size *size, int64_t mtime_ns)
{
	uint8_t record[SIZE_RECORD];
	char tag[TAG_MAX];
	if (has(m, path, version, size))
		return;
	bool on_disk = false;
	if (m->disk && size->is_exact) {
		tag_of(m, version, tag);
		size_record_encode(size, record);
		on_disk = store_diskcache_remember(m->disk, path, tag, mtime_ns, record,
						   sizeof(record));
	}
	keep_in_memory(m, path, version, size, on_disk);
}
