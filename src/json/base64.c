/* SPDX-License-Identifier: Apache-2.0 */
/* Strict base64: each string of bytes has exactly one encoding. Pure. */
#include <json/base64.h>

#include <errno.h>

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Decodes 4 characters, of which the last `pad` are '='. */
static int decode_group(const char *s, unsigned int pad, uint8_t out[static 3])
{
	uint32_t v = 0;
	for (unsigned int i = 0; i < 4; i++) {
		int digit = i < 4 - pad ? value_of(s[i]) : 0;
		if (digit < 0)
			return -EINVAL;
		v = v << 6 | (uint32_t)digit;
	}
	if (v & ((1u << 8 * pad) - 1))
		return -EINVAL;
	out[0] = (uint8_t)(v >> 16);
	out[1] = (uint8_t)(v >> 8);
	out[2] = (uint8_t)v;
	return 0;
}

int base64_decode(const char *text, size_t n, struct bytes *out)
{
	if (n % 4)
		return -EINVAL;
	int rc = bytes_reserve(out, n / 4 * 3);
	for (size_t i = 0; !rc && i < n; i += 4) {
		uint8_t group[3];
		unsigned int pad = 0;
		if (i + 4 == n && text[i + 3] == '=')
			pad = text[i + 2] == '=' ? 2 : 1;
		rc = decode_group(text + i, pad, group);
		if (!rc)
			rc = bytes_append(out, group, 3 - pad);
	}
	return rc;
}

static void encode_group(const uint8_t *in, size_t n, char out[static 4])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t v = 0;
	for (size_t i = 0; i < 3; i++)
		v = v << 8 | (i < n ? in[i] : 0);
	for (size_t i = 0; i < 4; i++)
		out[i] = i <= n ? digits[v >> (18 - 6 * i) & 63] : '=';
}

int base64_encode(const void *bytes, size_t n, struct bytes *out)
{
	const uint8_t *in = bytes;
	if (n > SIZE_MAX / 4 * 3)
		return -ENOMEM;
	int rc = bytes_reserve(out, (n + 2) / 3 * 4);
	for (size_t i = 0; !rc && i < n; i += 3) {
		char group[4];
		encode_group(in + i, n - i < 3 ? n - i : 3, group);
		rc = bytes_append(out, group, sizeof(group));
	}
	return rc;
}
