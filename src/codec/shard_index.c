/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes shards and their indexes. Pure. */
#include <codec/shard_index.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <codec/chain.h>

#include "array_steps.h"

#define NOT_STORED UINT64_MAX

int codec_shard_index(const struct shard *s, const void *bytes, size_t n, struct err *err)
{
	const size_t entries = (size_t)s->nchunks * SHARD_ENTRY;
	struct cursor c = cursor_of(bytes, n);
	if (n != shard_index_size(s))
		return err_set(err, -EIO, "the shard has %zu bytes for its index of %u bytes", n,
			       shard_index_size(s));
	if (!s->has_checksum)
		return 0;
	cur_skip(&c, entries);
	const uint32_t stored = cur_u32(&c), crc = checksum_crc32c(bytes, entries, 0);
	return stored == crc ? 0
			     : err_set(err, -EIO,
				       "index of the shard: crc32c does not match: %08x is stored, "
				       "that of the index is %08x",
				       stored, crc);
}

static int damaged(uint32_t inner, const struct shard_entry *e, const char *why, struct err *err)
{
	return err_set(err, -EIO,
		       "index of the shard: inner chunk %u has offset %" PRIu64
		       " and length %" PRIu64 ": %s",
		       inner, e->offset, e->length, why);
}

/* Returns what is wrong with the range of an inner chunk, or NULL. */
static const char *defect_of(const struct shard *s, const struct shard_entry *e,
			     uint64_t shard_size)
{
	const uint64_t index = shard_index_size(s);
	uint64_t end;
	if (e->offset == NOT_STORED || e->length == NOT_STORED)
		return "only one of them says that it is not stored";
	if (e->length == 0)
		return "it has no bytes";
	if (e->length > s->largest)
		return "no encoded chunk is so long";
	if (!add_u64(e->offset, e->length, &end) || end > shard_size)
		return "it ends behind the shard";
	if (shard_size < index || (s->at_start ? e->offset < index : end > shard_size - index))
		return "it overlaps the index";
	return NULL;
}

int codec_shard_entry(const struct shard *s, const void *index, uint32_t inner, uint64_t shard_size,
		      struct shard_entry *out, struct err *err)
{
	struct cursor c = cursor_of(index, shard_index_size(s));
	assert(inner < s->nchunks);
	cur_skip(&c, (size_t)inner * SHARD_ENTRY);
	*out = (struct shard_entry){0};
	out->offset = s->big_endian ? cur_u64be(&c) : cur_u64(&c);
	out->length = s->big_endian ? cur_u64be(&c) : cur_u64(&c);
	out->absent = out->offset == NOT_STORED && out->length == NOT_STORED;
	const char *defect = out->absent ? NULL : defect_of(s, out, shard_size);
	return defect ? damaged(inner, out, defect, err) : 0;
}

int codec_shard_decode(const struct shard *s, struct bytes *bytes, struct err *err)
{
	const struct codec_chain *chain = s->around;
	struct step_bytes b = {.data = bytes->data, .n = bytes->len};
	struct bytes plain = {0};
	int rc = 0;
	for (uint32_t i = 0; i < chain->n && !rc; i++)
		rc = array_undo(&chain->steps[i], &b, err);
	if (!rc && step_bytes_give(&b, &plain)) {
		bytes_release(bytes);
		*bytes = plain;
	} else if (!rc) {
		bytes->len = b.n; /* a checksum was cut off */
	}
	bytes_release(&b.own);
	return rc ? err_wrap(err, rc, "the codecs around the shard") : 0;
}
