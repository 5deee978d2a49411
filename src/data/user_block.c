/* SPDX-License-Identifier: Apache-2.0 */
/* See user_block.h. */
#include <data/user_block.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/mem.h>

bool user_block_is_size(uint64_t size)
{
	return size >= USER_BLOCK_MIN && (size & (size - 1)) == 0;
}

bool user_block_is_small(const struct user_block *b)
{
	return b->len <= USER_BLOCK_SMALL;
}

int user_block_new(struct arena *a, uint64_t size, const void *data, size_t n,
		   struct user_block **out, struct err *err)
{
	const uint8_t *bytes = data;
	if (size > USER_BLOCK_MAX)
		return err_set(err, -EFBIG,
			       "a user block of %" PRIu64 " bytes; the limit is %d bytes", size,
			       USER_BLOCK_MAX);
	while (n > 0 && bytes[n - 1] == 0)
		n--;
	struct user_block *b = arena_alloc(a, sizeof(*b));
	uint8_t *copy = arena_array(a, n + 1, 1);
	if (!b || !copy)
		return err_set(err, -ENOMEM, "out of memory: a user block of %" PRIu64 " bytes",
			       size);
	if (n)
		memcpy(copy, bytes, n);
	*b = (struct user_block){.size = size, .data = copy, .len = n};
	*out = b;
	return 0;
}

bool user_block_equal(const struct user_block *a, const struct user_block *b)
{
	if (!a || !b)
		return a == b;
	return a->size == b->size && a->len == b->len &&
	       (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

void user_block_read(const struct user_block *b, uint64_t at, void *buf, size_t n)
{
	const size_t have = at < b->len ? (size_t)min_u64(n, b->len - at) : 0;
	if (have)
		memcpy(buf, b->data + at, have);
	memset((uint8_t *)buf + have, 0, n - have);
}
