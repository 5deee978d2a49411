/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that were never written. */
#include "plan.h"

#include <string.h>

void fill_bytes(const struct image_dataset *d, uint64_t phase, uint8_t *out, size_t n)
{
	const struct bytes *fill = &d->fill;

	if (fill->len == 0) {
		memset(out, 0, n);
		return;
	}
	/* one period byte by byte, then doubling copies of what is there */
	size_t done = min_u64(n, fill->len);

	for (size_t i = 0; i < done; i++)
		out[i] = fill->data[(phase + i) % fill->len];
	while (done < n) {
		size_t copy = min_u64(done, n - done);

		memcpy(out + done, out, copy);
		done += copy;
	}
}
