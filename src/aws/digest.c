/* SPDX-License-Identifier: Apache-2.0 */
/* Digests over OpenSSL's EVP. Pure. */
#include <aws/digest.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <base/hex.h>

/* md is NULL for the algorithm of the last digest. */
static bool compute(EVP_MD_CTX *ctx, const EVP_MD *md, const struct piece *pieces, size_t n,
		    uint8_t *out, unsigned int *len)
{
	bool ok = EVP_DigestInit_ex(ctx, md, NULL);
	for (size_t i = 0; ok && i < n; i++)
		ok = EVP_DigestUpdate(ctx, pieces[i].data, pieces[i].n);
	return ok && EVP_DigestFinal_ex(ctx, out, len);
}

static int digest(const EVP_MD *md, const struct piece *pieces, size_t n, char *hex)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const bool ok = ctx && compute(ctx, md, pieces, n, out, &len);
	EVP_MD_CTX_free(ctx);
	if (ok)
		hex_encode(out, len, hex);
	return ok ? 0 : -EIO;
}

int digest_sha256(const struct piece *pieces, size_t n, char hex[SHA256_HEX])
{
	/* Of most requests, the body is empty. */
	if (n == 0) {
		strcpy(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
		return 0;
	}
	return digest(EVP_sha256(), pieces, n, hex);
}

int digest_md5(const struct piece *pieces, size_t n, char hex[MD5_HEX])
{
	return digest(EVP_md5(), pieces, n, hex);
}

/* ---- many digests ---- */

struct sha256 {
	EVP_MD_CTX *ctx;
};

struct sha256 *sha256_new(void)
{
	struct sha256 *sha = calloc(1, sizeof(*sha));
	if (!sha)
		return NULL;
	sha->ctx = EVP_MD_CTX_new();
	if (sha->ctx && EVP_DigestInit_ex(sha->ctx, EVP_sha256(), NULL))
		return sha;
	sha256_free(sha);
	return NULL;
}

void sha256_free(struct sha256 *sha)
{
	if (sha)
		EVP_MD_CTX_free(sha->ctx);
	free(sha);
}

int sha256_digest(struct sha256 *sha, const struct piece *pieces, size_t n,
		  uint8_t out[SHA256_SIZE])
{
	unsigned int len = 0;
	return compute(sha->ctx, NULL, pieces, n, out, &len) ? 0 : -EIO;
}

int sha256_hmac(struct sha256 *sha, struct piece key, struct piece text, uint8_t mac[SHA256_SIZE])
{
	enum { BLOCK = 64 };
	uint8_t inner[BLOCK] = {0}, outer[BLOCK];
	int rc = 0;
	if (key.n > BLOCK)
		rc = sha256_digest(sha, &key, 1, inner);
	else if (key.n)
		memcpy(inner, key.data, key.n);
	for (size_t i = 0; i < BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	if (rc == 0)
		rc = sha256_digest(sha, (struct piece[]){{inner, BLOCK}, text}, 2, mac);
	if (rc == 0)
		rc = sha256_digest(sha, (struct piece[]){{outer, BLOCK}, {mac, SHA256_SIZE}}, 2,
				   mac);
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(outer, sizeof(outer));
	return rc;
}
