/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRCs of whole objects. S3 sends them in the header x-amz-checksum-NAME if the request has
 * "x-amz-checksum-mode: ENABLED", and compares that of a PUT with the body ("Checking object
 * integrity", Amazon S3 User Guide). SHA-1 and SHA-256 are not used: they cost more than the MD5
 * that most ETags hold. Pure.
 */
#ifndef S3_PUT_CHECKSUM_H
#define S3_PUT_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include <base/mem.h>

enum s3_crc_kind { S3_CRC_NONE, S3_CRC32, S3_CRC32C, S3_CRC64NVME, S3_CRC_KINDS };

struct s3_crc {
	enum s3_crc_kind kind;
	uint64_t value;
};

/* Reads a response header. name is the part after "x-amz-checksum-", in any case. If the header is
 * not a CRC of the whole object, *out does not change. This includes the checksums of checksums
 * that multipart uploads have ("…-3"). */
void s3_crc_read(const char *name, const char *value, struct s3_crc *out);

#define S3_CRC32C_HEADER "x-amz-checksum-crc32c"
enum { S3_CRC32C_VALUE = 9 };
/* Writes the value of that header. */
void s3_crc32c_write(uint32_t crc, char value[S3_CRC32C_VALUE]);
/* Computes the CRC-32C of n consecutive pieces. */
uint32_t s3_crc32c_of(const struct piece *pieces, size_t n);

/* Tables for 16 bytes at a time, except for CRC-32C. Constant after s3_crc_tables_init(). */
struct s3_crc_tables {
	uint64_t t[S3_CRC_KINDS][16][256];
};
void s3_crc_tables_init(struct s3_crc_tables *tables);
/* Computes a checksum. kind is not S3_CRC_NONE. */
uint64_t s3_crc_of(const struct s3_crc_tables *tables, enum s3_crc_kind kind, const void *bytes,
		   size_t n);

#endif
