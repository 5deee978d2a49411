/* SPDX-License-Identifier: Apache-2.0 */
/* Fill values of chunks that are not stored. */
#include "image_plan.h"

#include <string.h>

void fill_bytes(const struct image_dataset *d, uint64_t phase, uint8_t *out, size_t n)
{
	const size_t size = d->ds->type->size, first = (size_t)(phase % size);
	if (!d->fill || elems_end(d->fill) == 0) {
		memset(out, 0, n);
		return;
	}
	/* One element, rotated so that it begins with byte `first`, then its repetitions. */
	const size_t tail = (size_t)min_u64(size - first, n),
		     head = (size_t)min_u64(first, n - tail);
	elems_read(d->fill, first, out, tail);
	elems_read(d->fill, 0, out + tail, head);
	elems_repeat(out, tail + head, n);
}
