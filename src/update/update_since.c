/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a file are those of the image from which it was made. Programs write much of the
 * metadata without a change, so written bytes are compared.
 */
#include "update_internal.h"

#include <string.h>

enum { PIECE = 4096 };

bool since_image_is_written(const struct since_image *since, uint64_t start, uint64_t end)
{
	return start < end && since->next_replaced(since->ctx, start, end) < end;
}

int since_image_is_changed(const struct since_image *since, uint64_t start, uint64_t end,
			   struct err *err)
{
	uint8_t now[PIECE], before[PIECE];
	if (start < end && end > since->file->size)
		return 1;
	while (start < end && (start = since->next_replaced(since->ctx, start, end)) < end) {
		const size_t n = (size_t)min_u64(PIECE, end - start);
		int rc = source_read(since->file, start, now, n, err);
		if (!rc)
			rc = source_read(since->image, start, before, n, err);
		if (rc)
			return rc;
		if (memcmp(now, before, n) != 0)
			return 1;
		start += n;
	}
	return 0;
}
