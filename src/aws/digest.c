/* SPDX-License-Identifier: Apache-2.0 */
/* Digests over OpenSSL's EVP. Pure. */
#include <aws/digest.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <base/hex.h>

static int digest(const EVP_MD *md, const struct piece *pieces, size_t n, char *hex)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestInit_ex(ctx, md, NULL);
	for (size_t i = 0; ok && i < n; i++)
		ok = EVP_DigestUpdate(ctx, pieces[i].data, pieces[i].n);
	ok = ok && EVP_DigestFinal_ex(ctx, out, &len);
	EVP_MD_CTX_free(ctx);
	if (ok)
		hex_encode(out, len, hex);
	return ok ? 0 : -EIO;
}

int digest_sha256(const struct piece *pieces, size_t n, char hex[SHA256_HEX])
{
	return digest(EVP_sha256(), pieces, n, hex);
}

int digest_md5(const struct piece *pieces, size_t n, char hex[MD5_HEX])
{
	return digest(EVP_md5(), pieces, n, hex);
}

int digest_hmac(const void *key, size_t key_len, const void *bytes, size_t n,
		uint8_t mac[SHA256_SIZE])
{
	unsigned int len = 0;
	if (key_len > INT_MAX)
		return -EIO;
	return HMAC(EVP_sha256(), key, (int)key_len, bytes, n, mac, &len) ? 0 : -EIO;
}
