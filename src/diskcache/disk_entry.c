/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the disk cache. Integers are little-endian.
 *
 *    +0  8  magic, the last byte of which is the version of the format
 *    +8  8  size of the body
 *   +16  8  mtime of the object, ns since the epoch
 *   +24  2  length of the scope
 *   +26  2  length of the key
 *   +28  2  length of the ETag
 *   +30  2  zero
 *   +32 32  SHA-256 of +0 to +32, and of everything from +64
 *   +64     scope, key, ETag (no NULs), body
 *
 * The digest is SHA-256, because shorter checksums leave a measurable probability of a wrong byte.
 * It is part of a library that is linked anyway, and recent processors compute it at 2 GB/s.
 */
#include "disk_entry.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <base/hex.h>

static const uint8_t magic[8] = {'h', 's', 'd', 'i', 's', 'k', '\n', 1};

enum { DIGEST_AT = 32 };

_Static_assert(DIGEST_AT + DISK_DIGEST == DISK_HEAD_MIN, "the fixed part ends with the digest");

/* Computes the digest of the concatenated parts. Fails with -EIO if OpenSSL fails. */
static int sha256(const struct piece *parts, size_t n, uint8_t out[DISK_DIGEST])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (size_t i = 0; ok && i < n; i++)
		ok = EVP_DigestUpdate(ctx, parts[i].data, parts[i].n);
	ok = ok && EVP_DigestFinal_ex(ctx, out, NULL);
	EVP_MD_CTX_free(ctx);
	return ok ? 0 : -EIO;
}

int disk_entry_name(const struct disk_id *id, char name[DISK_NAME])
{
	uint8_t digest[DISK_DIGEST];
	const struct piece parts[] = {
		{id->scope,
		 strlen(id->scope) + 1}, /* with its NUL, so that "a" "bc" differs from "ab" "c" */
		{id->key, strlen(id->key)},
	};
	int rc = sha256(parts, 2, digest);
	if (rc == 0)
		hex_encode(digest, sizeof(digest), name);
	return rc;
}

static int digest_entry(const uint8_t *head, size_t n, const void *body, size_t body_n,
			uint8_t digest[DISK_DIGEST])
{
	const struct piece parts[] = {
		{head, DIGEST_AT},
		{head + DISK_HEAD_MIN, n - DISK_HEAD_MIN},
		{body, body_n},
	};
	return sha256(parts, 3, digest);
}

int disk_entry_encode(const struct disk_id *id, const struct store_meta *meta, const void *body,
		      struct bytes *out)
{
	const size_t scope = strlen(id->scope), key = strlen(id->key), etag = strlen(meta->etag);
	const size_t n = DISK_HEAD_MIN + scope + key + etag;
	if (scope > DISK_SCOPE_MAX || key > STORE_KEY_MAX || etag >= STORE_ETAG_MAX || etag == 0)
		return -EINVAL;
	int rc = bytes_reserve(out, n);
	if (rc)
		return rc;
	uint8_t *head = out->data + out->len;
	struct emit e = emit_to(head, n);
	emit_bytes(&e, magic, sizeof(magic));
	emit_u64(&e, meta->size);
	emit_u64(&e, (uint64_t)meta->mtime_ns);
	emit_u16(&e, (uint16_t)scope);
	emit_u16(&e, (uint16_t)key);
	emit_u16(&e, (uint16_t)etag);
	emit_u16(&e, 0);
	emit_zero(&e, DISK_DIGEST);
	emit_bytes(&e, id->scope, scope);
	emit_bytes(&e, id->key, key);
	emit_bytes(&e, meta->etag, etag);
	rc = digest_entry(head, n, body, (size_t)meta->size, head + DIGEST_AT);
	if (rc == 0)
		out->len += n;
	return rc;
}

static bool is_text(const uint8_t *bytes, size_t n, const char *text)
{
	return bytes && strlen(text) == n && memcmp(bytes, text, n) == 0;
}

int disk_entry_decode(const void *bytes, size_t n, uint64_t file_size, const struct disk_id *id,
		      struct disk_entry *entry)
{
	struct cursor c = cursor_of(bytes, n);
	const uint8_t *m = cur_bytes(&c, sizeof(magic));
	*entry = (struct disk_entry){.meta.size = cur_u64(&c)};
	entry->meta.mtime_ns = (int64_t)cur_u64(&c);
	const size_t scope_n = cur_u16(&c), key_n = cur_u16(&c), etag_n = cur_u16(&c);
	const uint16_t zero = cur_u16(&c);
	const uint8_t *digest = cur_bytes(&c, DISK_DIGEST);
	const uint8_t *scope = cur_bytes(&c, scope_n);
	const uint8_t *key = cur_bytes(&c, key_n);
	const uint8_t *etag = cur_bytes(&c, etag_n);
	entry->head = cur_pos(&c);
	if (!cur_ok(&c) || memcmp(m, magic, sizeof(magic)) != 0 || zero != 0 ||
	    etag_n >= STORE_ETAG_MAX || etag_n == 0 || memchr(etag, '\0', etag_n) ||
	    entry->head > DISK_HEAD_MAX || !is_text(scope, scope_n, id->scope) ||
	    !is_text(key, key_n, id->key) || file_size < entry->head ||
	    file_size - entry->head != entry->meta.size || entry->meta.size > SIZE_MAX / 2)
		return -EBADMSG;
	memcpy(entry->digest, digest, DISK_DIGEST);
	memcpy(entry->meta.etag, etag, etag_n);
	return 0;
}

int disk_entry_check(const struct disk_entry *entry, const void *head, const void *body)
{
	uint8_t digest[DISK_DIGEST];
	int rc = digest_entry(head, entry->head, body, (size_t)entry->meta.size, digest);
	if (rc)
		return rc;
	return memcmp(digest, entry->digest, DISK_DIGEST) == 0 ? 0 : -EBADMSG;
}
