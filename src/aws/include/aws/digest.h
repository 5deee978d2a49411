/* SPDX-License-Identifier: Apache-2.0 */
/* Digests that the S3 protocol uses, over OpenSSL. Pure. */
#ifndef AWS_DIGEST_H
#define AWS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <base/mem.h>

enum { SHA256_SIZE = 32, SHA256_HEX = 2 * SHA256_SIZE + 1, MD5_HEX = 33 };

/* Each function computes the digest of n consecutive pieces. Returns 0, or -EIO if OpenSSL refuses
 * (a FIPS build has no MD5). Hexadecimal is lower case. */
int digest_sha256(const struct piece *pieces, size_t n, char hex[SHA256_HEX]);
int digest_md5(const struct piece *pieces, size_t n, char hex[MD5_HEX]);

/* Computes many SHA-256. OpenSSL takes longer to look up the algorithm than to digest a short text,
 * so this does it once. One thread at a time. */
struct sha256;
struct sha256 *sha256_new(void);      /* NULL if out of memory, or if OpenSSL refuses */
void sha256_free(struct sha256 *sha); /* sha may be NULL */
/* Fail with -EIO. */
int sha256_digest(struct sha256 *sha, const struct piece *pieces, size_t n,
		  uint8_t out[SHA256_SIZE]);
/* HMAC-SHA256 (RFC 2104). */
int sha256_hmac(struct sha256 *sha, struct piece key, struct piece text, uint8_t mac[SHA256_SIZE]);

#endif
