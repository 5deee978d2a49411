/* SPDX-License-Identifier: Apache-2.0 */
/* The range check of every source: see base/source.h. */
#include <base/source.h>

#include <errno.h>
#include <inttypes.h>

#include <base/mem.h>

int source_read(struct source *s, uint64_t offset, void *buf, size_t n, struct err *err)
{
	uint64_t end;
	if (!add_u64(offset, n, &end) || end > s->size)
		return err_set(err, -EIO,
			       "%zu bytes at offset %" PRIu64 " are outside of the file (%" PRIu64
			       " bytes)",
			       n, offset, s->size);
	int rc = n ? s->read_at(s->ctx, offset, buf, n, err) : 0;
	if (rc == -EAGAIN) {
		s->missing_offset = offset;
		s->missing_length = n;
		return err_set(err, rc, "%zu bytes at offset %" PRIu64 " are not in memory", n,
			       offset);
	}
	if (!rc) {
		/* Several threads may read a source that permits it. */
		__atomic_fetch_add(&s->reads, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&s->bytes, n, __ATOMIC_RELAXED);
	}
	return rc;
}

int source_prepare(struct source *s, uint64_t offset, uint64_t n, struct source_part *part,
		   struct err *err)
{
	if (!s->prepare || n == 0 || offset > s->size || n > s->size - offset)
		return -ENOTSUP;
	return s->prepare(s->ctx, offset, n, part, err);
}

void source_advise(struct source *s, uint64_t offset, uint64_t n)
{
	if (s->advise && n && offset < s->size && n <= s->size - offset)
		s->advise(s->ctx, offset, n);
}
