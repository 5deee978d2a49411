/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object as a file of the disk cache: encode, decode, check. Pure.
 *
 * The name of the file is a digest of scope and key, so a key has one entry, whatever its version.
 * Everything that an entry says is checked before it is used: the reader may be another program,
 * years later, after a crash in the middle of writing it.
 */
#ifndef DISKCACHE_ENTRY_H
#define DISKCACHE_ENTRY_H

#include <store/store.h>

enum {
	DISK_DIGEST = 32,		 /* bytes of a SHA-256 */
	DISK_NAME = 2 * DISK_DIGEST + 1, /* with its NUL */
	DISK_SCOPE_MAX = 4096,
	DISK_HEAD_MIN = 64, /* the fixed part */
	DISK_HEAD_MAX = DISK_HEAD_MIN + DISK_SCOPE_MAX + STORE_KEY_MAX + STORE_ETAG_MAX,
};

/* Which object: the bucket among all buckets, and the key in it. */
struct disk_id {
	const char *scope, *key;
};

/* What the head of an entry says. */
struct disk_entry {
	struct store_meta meta;
	size_t head; /* bytes in front of the body */
	uint8_t digest[DISK_DIGEST];
};

/* 64 hexadecimal digits. -EIO when OpenSSL refuses. */
int disk_entry_name(const struct disk_id *id, char name[DISK_NAME]);

/* Appends the head of an entry with this body to out. -EINVAL what no entry can hold; -ENOMEM;
 * -EIO. */
int disk_entry_encode(const struct disk_id *id, const struct store_meta *meta, const void *body,
		      struct bytes *out);
/* From the first n bytes of a file of file_size; n is at least the smaller of file_size and
 * DISK_HEAD_MAX. -EBADMSG: no intact entry of this id. */
int disk_entry_decode(const void *bytes, size_t n, uint64_t file_size, const struct disk_id *id,
		      struct disk_entry *entry);
/* Of a head that was decoded: -EBADMSG when a byte of it or of the body is not what was written. */
int disk_entry_check(const struct disk_entry *entry, const void *head, const void *body);

#endif
