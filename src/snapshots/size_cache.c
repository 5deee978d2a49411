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
#include <snapshots/size_cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include <base/budget.h>
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

struct size_cache {
	struct store *disk;
	unsigned int image_flags;
	pthread_mutex_t lock;
	struct remembered *table;
	struct budget_share share;
};

static uint64_t memory_of(const struct remembered *r)
{
	enum { BLOCK = 16 /* what malloc() adds */, TABLE = 32 };
	return sizeof(*r) + strlen(r->path) + 1 + BLOCK + TABLE;
}

static void forget_locked(struct size_cache *m, struct remembered *r)
{
	HASH_DEL(m->table, r);
	budget_share_return(&m->share, memory_of(r));
	free(r);
}

/* Called when the budget needs memory. */
static bool forget_some(void *ctx)
{
	struct size_cache *m = ctx;
	pthread_mutex_lock(&m->lock);
	const uint64_t kept = budget_share_less(&m->share);
	const bool any = m->table;
	while (m->table && m->share.used > kept)
		forget_locked(m, m->table);
	pthread_mutex_unlock(&m->lock);
	return any;
}

struct size_cache *size_cache_new(struct store *disk, struct budget *budget,
				  unsigned int image_flags)
{
	struct size_cache *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->disk = disk;
	m->image_flags = image_flags;
	pthread_mutex_init(&m->lock, NULL);
	m->share = budget_share_of(budget, SIZE_CACHE_PARTS);
	if (budget)
		budget_add_holder(budget,
				  &(struct budget_holder){.free_metadata = forget_some, .ctx = m});
	return m;
}

void size_cache_free(struct size_cache *m)
{
	if (!m)
		return;
	if (m->share.budget)
		budget_remove_holder(m->share.budget, m);
	while (m->table)
		forget_locked(m, m->table);
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

/* Writes the version of a record: all that the size depends on besides the path. */
static void tag_of(const struct size_cache *m, const struct size_version *version,
		   char tag[TAG_MAX])
{
	snprintf(tag, TAG_MAX, "%s-%016" PRIx64 "-%d-%x",
		 version->kind == SIZE_LISTED ? "listed" : "large", version->digest, IMAGE_REVISION,
		 m->image_flags);
}

static bool find_on_disk(const struct size_cache *m, const char *path,
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

static void keep_in_memory(struct size_cache *m, const char *path,
			   const struct size_version *version, const struct file_size *size,
			   bool on_disk)
{
	struct remembered *r = new_entry(path, version, size, on_disk), *old = NULL;
	if (!r)
		return;
	const uint64_t memory = memory_of(r);
	pthread_mutex_lock(&m->lock);
	const uint64_t charged = m->share.charged;
	HASH_FIND_STR(m->table, path, old);
	if (old)
		forget_locked(m, old);
	bool fits = budget_share_take(&m->share, memory);
	while (!fits && m->table) {
		forget_locked(m, m->table);
		fits = budget_share_take(&m->share, memory);
	}
	if (fits)
		HASH_ADD_STR(m->table, path, r);
	if (fits && !r->hh.tbl)
		budget_share_return(&m->share, memory);
	if (!r->hh.tbl)
		free(r);
	const bool has_grown = m->share.charged > charged;
	pthread_mutex_unlock(&m->lock);
	if (has_grown && m->share.budget)
		budget_trim(m->share.budget);
}

bool size_cache_find(struct size_cache *m, const char *path, const struct size_version *version,
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

void size_cache_forget(struct size_cache *m, const char *path)
{
	static const uint8_t none[SIZE_RECORD]; /* not a record */
	struct remembered *r = NULL;
	char tag[TAG_MAX];
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	const struct remembered known = r ? *r : (struct remembered){0};
	if (r)
		forget_locked(m, r);
	pthread_mutex_unlock(&m->lock);
	if (known.on_disk) {
		tag_of(m, &known.version, tag);
		store_diskcache_remember(m->disk, path, tag, 0, none, sizeof(none));
	}
}

bool size_cache_is(struct size_cache *m, const char *path, enum size_kind kind)
{
	const struct remembered *r = NULL;
	pthread_mutex_lock(&m->lock);
	HASH_FIND_STR(m->table, path, r);
	const bool is = r && r->version.kind == kind;
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Returns whether the table has this size, and the disk has it, too, if it may. */
static bool has(struct size_cache *m, const char *path, const struct size_version *version,
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

void size_cache_keep(struct size_cache *m, const char *path, const struct size_version *version,
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
