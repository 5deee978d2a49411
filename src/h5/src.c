/* SPDX-License-Identifier: Apache-2.0 */
/* The range check in front of every source of bytes. Thread-safe when the source is. */
#include <errno.h>
#include <inttypes.h>

#include <h5/format.h>

int h5_src_read(const struct h5_src *src, uint64_t offset, void *buf, size_t n, struct err *err)
{
	uint64_t end;
	if (!add_u64(offset, n, &end) || end > src->size)
		return err_set(err, -EIO,
			       "%zu bytes at offset %" PRIu64 " are outside of the file (%" PRIu64
			       " bytes)",
			       n, offset, src->size);
	return n ? src->read_at(src->ctx, offset, buf, n, err) : 0;
}
