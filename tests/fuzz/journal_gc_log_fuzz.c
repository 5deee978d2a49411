/* SPDX-License-Identifier: Apache-2.0 */
/* Files of leftovers, as they are and with the right checksums. Property: what is accepted is what
 * the encoder writes for the same header or record. */
#include <base/checksum.h>
#include <base/mem.h>
#include <string.h>

#include "journal/gc_log_record.h"
#include "require.h"

static void patch(uint8_t *at, uint32_t crc)
{
	for (unsigned int i = 0; i < 4; i++)
		at[i] = (uint8_t)(crc >> 8 * i);
}

static void check_header(const uint8_t *data, size_t size)
{
	uint8_t again[GC_HEADER];
	struct err err = ERR_INIT;
	if (gc_log_header_decode(data, size, &err)) {
		require(err.msg[0] != '\0');
		return;
	}
	gc_log_header_encode(again);
	require(memcmp(again, data, sizeof(again)) == 0);
}

static void check_record(const uint8_t *record, uint32_t number)
{
	uint8_t again[GC_RECORD] = {0};
	struct gc_entry entry;
	const int rc = gc_log_decode(record, number, &entry);
	if (rc < 0)
		return;
	require(rc == GC_FREE || gc_log_encode(&entry, number, again) == 0);
	require(memcmp(again, record, sizeof(again)) == 0);
}

static uint8_t *copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(size ? size : 1, 1);
	require(bytes);
	if (size)
		memcpy(bytes, data, size);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = copy(data, min_u64(size, GC_HEADER));
	check_header(bytes, min_u64(size, GC_HEADER));
	if (size >= GC_HEADER) {
		patch(bytes + 12,
		      checksum_crc32c(bytes + 16, GC_HEADER - 16, checksum_crc32c(bytes, 12, 0)));
		check_header(bytes, GC_HEADER);
	}
	free(bytes);
	for (size_t at = GC_HEADER, number = 0; at + GC_RECORD <= size; at += GC_RECORD, number++) {
		uint8_t *record = copy(data + at, GC_RECORD);
		check_record(record, (uint32_t)number);
		patch(record, checksum_crc32c(record + 4, GC_RECORD - 4, 0));
		check_record(record, (uint32_t)number);
		free(record);
	}
	return 0;
}
