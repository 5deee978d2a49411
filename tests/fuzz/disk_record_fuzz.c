/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the disk cache that are lists. Property: the items that are read are encoded to the
 * bytes that were read. */
#include <assert.h>
#include <string.h>

#include <diskcache/record.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_bytes struct bytes again = {0};
	struct cursor c = cursor_of(data, size);
	struct record_item item;
	while (record_next(&c, &item))
		assert(record_add(&again, &item) == 0);
	assert(again.len == size || !cur_ok(&c));
	assert(again.len == 0 || memcmp(again.data, data, again.len) == 0);
	return 0;
}
