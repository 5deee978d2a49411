/* SPDX-License-Identifier: Apache-2.0 */
/* Digests over OpenSSL's EVP: see digest.h. Pure. */
#include "digest.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

void digest_hex(const uint8_t *bytes, size_t n, char *hex)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * n] = '\0';
}

static int digest(const EVP_MD *md, const void *bytes, size_t n, char *hex)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	if (!EVP_Digest(bytes, n, out, &len, md, NULL))
		return -EIO;
	digest_hex(out, len, hex);
	return 0;
}

int digest_sha256(const void *bytes, size_t n, char hex[SHA256_HEX])
{
	return digest(EVP_sha256(), bytes, n, hex);
}

int digest_md5(const void *bytes, size_t n, char hex[MD5_HEX])
{
	return digest(EVP_md5(), bytes, n, hex);
}

int digest_hmac(const void *key, size_t key_len, const void *bytes, size_t n,
		uint8_t mac[SHA256_SIZE])
{
	unsigned int len = 0;
	if (key_len > INT_MAX)
		return -EIO;
	return HMAC(EVP_sha256(), key, (int)key_len, bytes, n, mac, &len) ? 0 : -EIO;
}

int digest_sha256_parts(const struct digest_part *parts, size_t n, uint8_t out[SHA256_SIZE])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (size_t i = 0; ok && i < n; i++)
		ok = EVP_DigestUpdate(ctx, parts[i].bytes, parts[i].n);
	ok = ok && EVP_DigestFinal_ex(ctx, out, NULL);
	EVP_MD_CTX_free(ctx);
	return ok ? 0 : -EIO;
}
