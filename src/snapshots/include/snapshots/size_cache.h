/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers how large the files of domains are: of each domain, the size that its latest known
 * version has. With a disk cache, the sizes are also kept there, for later mounts. A size is
 * remembered for a version of the domain, the revision of the layout, and the options of the image,
 * so it is never used for another file. Any thread.
 */
#ifndef SNAPSHOTS_SIZE_CACHE_H
#define SNAPSHOTS_SIZE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct budget;
struct store;

enum {
	/* The sizes take one of so many parts of the memory for metadata. If that is full, the
	 * oldest are forgotten first. */
	SIZE_CACHE_PARTS = 8,
	SIZE_RECORD = 16, /* bytes of a record on disk */
};

/* How a version is known. A digest of one kind says nothing about those of the other. */
enum size_kind {
	SIZE_LISTED, /* struct schema_listed.version */
	SIZE_LARGE,  /* the versions of the domain's document and its summary */
};

struct size_version {
	enum size_kind kind;
	uint64_t digest;
};

/* Returns the version of a domain whose keys cannot all be listed. */
struct size_version size_version_large(const char *document_etag, const char *summary_etag);

struct file_size {
	uint64_t size, blocks; /* of 512 bytes */
	/* This is false if this version of the domain cannot be shown as a file. It is then not
	 * kept on disk. */
	bool is_exact;
};

struct size_cache;
/* `disk` is a store of store_diskcache_new(), or NULL. If `budget` is NULL, there is no limit.
 * Borrows both. `image_flags` are of enum image_flags. Returns NULL if out of memory. */
struct size_cache *size_cache_new(struct store *disk, struct budget *budget,
				  unsigned int image_flags);
void size_cache_free(struct size_cache *m);

/* Finds the size of the domain with this path in the bucket. May read a small file from the
 * disk. */
bool size_cache_find(struct size_cache *m, const char *path, const struct size_version *version,
		     struct file_size *out);
/* Remembers a size. `mtime_ns` is the time of the newest part of the version. A version that is too
 * young may not be the last one with this digest (see store_diskcache_options.settle_ns), and is
 * not kept on disk. */
void size_cache_keep(struct size_cache *m, const char *path, const struct size_version *version,
		     const struct file_size *size, int64_t mtime_ns);
/* To be called if the file of this domain has another size now: its version may be the same. */
void size_cache_forget(struct size_cache *m, const char *path);
/* Returns whether the latest known version of a domain is of this kind. Looks only at the
 * memory. */
bool size_cache_is(struct size_cache *m, const char *path, enum size_kind kind);

/* ---- a record on disk; pure ---- */

void size_record_encode(const struct file_size *size, uint8_t record[SIZE_RECORD]);
/* Returns false if the bytes are not those of a record. */
bool size_record_decode(const void *bytes, uint64_t n, struct file_size *out);

#endif
