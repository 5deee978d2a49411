/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C is that of base/checksum.h. The other CRCs are computed by sixteen tables ("slicing by
 * 16"). All three are reflected, begin with all bits set and end with all bits inverted; a CRC of
 * 32 bits is computed in the low half of 64. Pure.
 */
#include "put_checksum.h"

#include <endian.h>
#include <string.h>
#include <strings.h>

#include <stdbool.h>

#include <base/checksum.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const struct {
	const char *name;
	unsigned int bits;
	uint64_t polynomial; /* reflected */
} kinds[S3_CRC_KINDS] = {
	[S3_CRC32] = {"crc32", 32, 0xedb88320},
	[S3_CRC32C] = {"crc32c", 32, 0x82f63b78},
	[S3_CRC64NVME] = {"crc64nvme", 64, 0x9a6c9329ac4bc9b5},
};

static uint64_t all_bits(enum s3_crc_kind kind)
{
	return UINT64_MAX >> (64 - kinds[kind].bits);
}

void s3_crc_tables_init(struct s3_crc_tables *tables)
{
	for (int kind = S3_CRC_NONE + 1; kind < S3_CRC_KINDS; kind++) {
		uint64_t(*t)[256] = tables->t[kind];
		for (unsigned int byte = 0; byte < 256; byte++) {
			uint64_t crc = byte;
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? kinds[kind].polynomial : 0);
			t[0][byte] = crc;
		}
		for (unsigned int byte = 0; byte < 256; byte++)
			for (int i = 1; i < 16; i++)
				t[i][byte] = t[i - 1][byte] >> 8 ^ t[0][t[i - 1][byte] & 0xff];
	}
}

static inline uint64_t read_word(const uint8_t *p)
{
	uint64_t word;
	memcpy(&word, p, sizeof(word));
	return le64toh(word);
}

static inline uint64_t of_word(const uint64_t (*t)[256], uint64_t word)
{
	return t[7][word & 0xff] ^ t[6][word >> 8 & 0xff] ^ t[5][word >> 16 & 0xff] ^
	       t[4][word >> 24 & 0xff] ^ t[3][word >> 32 & 0xff] ^ t[2][word >> 40 & 0xff] ^
	       t[1][word >> 48 & 0xff] ^ t[0][word >> 56];
}

uint64_t s3_crc_of(const struct s3_crc_tables *tables, enum s3_crc_kind kind, const void *bytes,
		   size_t n)
{
	const uint64_t(*t)[256] = tables->t[kind];
	const uint8_t *p = bytes;
	uint64_t crc = all_bits(kind);
	if (kind == S3_CRC32C)
		return checksum_crc32c(bytes, n, 0);
	for (; n >= 16; p += 16, n -= 16)
		crc = of_word(t + 8, read_word(p) ^ crc) ^ of_word(t, read_word(p + 8));
	for (; n; p++, n--)
		crc = crc >> 8 ^ t[0][(crc ^ *p) & 0xff];
	return crc ^ all_bits(kind);
}

/* Decodes the Base64 (RFC 4648) of a big-endian number. Returns false if the text has another
 * form. */
static bool read_number(const char *text, unsigned int bits, uint64_t *out)
{
	uint64_t number = 0;
	unsigned int left = bits;
	for (; left; text++) {
		const char *digit = *text ? strchr(alphabet, *text) : NULL;
		const unsigned int taken = left < 6 ? left : 6;
		if (!digit)
			return false;
		number = number << taken | (uint64_t)(digit - alphabet) >> (6 - taken);
		left -= taken;
	}
	if (strcmp(text, bits == 64 ? "=" : "==") != 0)
		return false;
	*out = number;
	return true;
}

void s3_crc_read(const char *name, const char *value, struct s3_crc *out)
{
	for (int kind = S3_CRC_NONE + 1; kind < S3_CRC_KINDS; kind++)
		if (strcasecmp(name, kinds[kind].name) == 0 &&
		    read_number(value, kinds[kind].bits, &out->value))
			out->kind = (enum s3_crc_kind)kind;
}

void s3_crc32c_write(uint32_t crc, char value[S3_CRC32C_VALUE])
{
	for (unsigned int i = 0; i < 6; i++)
		value[i] = alphabet[((uint64_t)crc << 4) >> (30 - 6 * i) & 63];
	strcpy(value + 6, "==");
}

uint32_t s3_crc32c_of(const struct piece *pieces, size_t n)
{
	uint32_t crc = 0;
	for (size_t i = 0; i < n; i++)
		crc = checksum_crc32c(pieces[i].data, pieces[i].n, crc);
	return crc;
}
