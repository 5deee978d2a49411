/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the disk cache. Properties: an accepted entry is inside of the file; except for the
 * digest, its head has the bytes that the encoder writes for the same object; the check accepts it
 * if and only if its digest is the one that the encoder writes. */
#include <assert.h>
#include <string.h>

#include "diskcache/disk_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct disk_id id = {"s", "k"};
	const size_t digest_at = DISK_HEAD_MIN - DISK_DIGEST;
	struct disk_entry entry;
	auto_bytes struct bytes again = {0};
	if (disk_entry_decode(data, size, size, &id, &entry))
		return 0;
	assert(entry.head <= size && entry.head >= DISK_HEAD_MIN);
	assert(entry.meta.size == size - entry.head);
	assert(disk_entry_encode(&id, &entry.meta, data + entry.head, &again) == 0);
	assert(again.len == entry.head);
	assert(memcmp(again.data, data, digest_at) == 0);
	assert(memcmp(again.data + DISK_HEAD_MIN, data + DISK_HEAD_MIN,
		      entry.head - DISK_HEAD_MIN) == 0);
	const bool same = memcmp(again.data + digest_at, entry.digest, DISK_DIGEST) == 0;
	assert((disk_entry_check(&entry, data, data + entry.head) == 0) == same);
	return 0;
}
