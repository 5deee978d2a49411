/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digests: processor seconds for a GB of each checksum that a body may get on its way to S3 or from
 * there. Chunks of 1 MiB, which stay in the processor's cache.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <aws/digest.h>
#include <base/checksum.h>
#include "s3/put_checksum.h"

enum { SIZE = 1 << 20, ROUNDS = 256 };

static struct s3_crc_tables tables;
static struct piece body = {NULL, SIZE};
static uint64_t sum; /* so that nothing is optimized away */

static void crc32c(void)
{
	sum += s3_crc32c_of(&body, 1);
}

static void crc32c_portable(void)
{
	sum += checksum_crc32c_portable(body.data, body.n, 0);
}

static void crc32(void)
{
	sum += s3_crc_of(&tables, S3_CRC32, body.data, body.n);
}

static void crc64nvme(void)
{
	sum += s3_crc_of(&tables, S3_CRC64NVME, body.data, body.n);
}

static void md5(void)
{
	char hex[MD5_HEX];
	sum += (uint64_t)digest_md5(&body, 1, hex) + (unsigned char)hex[0];
}

static void sha256(void)
{
	char hex[SHA256_HEX];
	sum += (uint64_t)digest_sha256(&body, 1, hex) + (unsigned char)hex[0];
}

static double processor_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(const char *name, void (*digest)(void))
{
	digest();
	const double began = processor_s();
	for (int i = 0; i < ROUNDS; i++)
		digest();
	printf("%-16s %6.3f s/GB\n", name, (processor_s() - began) * 1e9 / SIZE / ROUNDS);
}

int main(void)
{
	uint8_t *bytes = malloc(SIZE);
	if (!bytes)
		return 1;
	for (uint32_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	body.data = bytes;
	s3_crc_tables_init(&tables);
	measure("CRC-32C", crc32c);
	measure("CRC-32C portable", crc32c_portable);
	measure("CRC-32", crc32);
	measure("CRC-64/NVME", crc64nvme);
	measure("MD5", md5);
	measure("SHA-256", sha256);
	free(bytes);
	return sum == 1;
}
