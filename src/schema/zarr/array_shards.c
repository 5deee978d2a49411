/* SPDX-License-Identifier: Apache-2.0 */
/* Shards (Zarr v3, codec sharding_indexed): parses their configuration, and makes those of a
 * dataset. Pure. */
#include "model_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <data/chunk_source.h>

static const char name[] = "codec 'sharding_indexed'";

/* ---- the configuration ---- */

/* Parses the codecs of the index: the one that makes bytes, and a checksum. Without a list, these
 * are the usual ones. */
static int parse_index_codecs(struct zarr_build *b, const json_t *list, struct zarr_shard *out,
			      struct err *err)
{
	bool has_bytes = false;
	char brief[84];
	out->has_checksum = !list;
	if (list && !json_is_array(list))
		return err_set(err, -EIO, "%s: index_codecs: not a list", name);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *configuration, *v = json_array_get(list, i);
		const char *codec = zarr_extension(v, &configuration);
		if (!codec)
			return err_set(err, -EIO, "%s: index_codecs: codec %s has no name", name,
				       zarr_json_brief(b, v, brief));
		const bool is_bytes = strcmp(codec, "bytes") == 0 || strcmp(codec, "endian") == 0;
		if (!is_bytes && strcmp(codec, "crc32c") != 0)
			return err_set(err, -EOPNOTSUPP,
				       "%s: an index with the codec '%s' is not known", name,
				       codec);
		if (is_bytes ? has_bytes : !has_bytes || out->has_checksum)
			return err_set(err, -EIO,
				       "%s: index_codecs: codec '%s' is at a wrong place", name,
				       codec);
		has_bytes = true;
		out->has_checksum = !is_bytes;
		if (is_bytes && zarr_endian(b, configuration, &out->big_endian, err))
			return err_wrap(err, -EIO, "%s: index_codecs", name);
	}
	return 0;
}

static int parse_location(struct zarr_build *b, const json_t *v, struct zarr_shard *out,
			  struct err *err)
{
	const char *word = json_string_value(v);
	char brief[84];
	out->at_start = word && strcmp(word, "start") == 0;
	if (!v || out->at_start || (word && strcmp(word, "end") == 0))
		return 0;
	return err_set(err, -EIO, "%s: index_location %s is not known", name,
		       zarr_json_brief(b, v, brief));
}

/* Checks the shape of the inner chunks, and counts them. */
static int parse_shape(struct zarr_build *b, const struct zarr_array *a, const json_t *v,
		       const uint64_t *shard, const uint64_t **inner, uint32_t *nchunks,
		       struct err *err)
{
	uint64_t n = 1;
	bool fits = true;
	uint32_t rank;
	const int rc = zarr_counts(b, v, &rank, inner, err);
	if (rc)
		return err_wrap(err, rc, "%s: chunk_shape", name);
	if (rank != a->rank)
		return err_set(err, -EIO, "%s: chunk_shape has %u numbers, shape has %u", name,
			       rank, a->rank);
	for (uint32_t i = 0; i < rank; i++) {
		const uint64_t length = (*inner)[i];
		if (length == 0 || shard[i] % length != 0)
			return err_set(err, -EIO,
				       "%s: inner chunks of length %" PRIu64
				       " do not divide the length %" PRIu64 " of axis %u",
				       name, length, shard[i], i);
		fits = mul_u64(n, shard[i] / length, &n) && fits;
	}
	if (!fits)
		n = UINT64_MAX;
	if (n > SHARD_CHUNKS_MAX)
		return err_set(err, -EOPNOTSUPP,
			       "shard of %" PRIu64 " inner chunks is over the limit of %d", n,
			       SHARD_CHUNKS_MAX);
	*nchunks = (uint32_t)n;
	return 0;
}

int zarr_shard_parse(struct zarr_build *b, struct zarr_array *a, const json_t *configuration,
		     uint64_t *shape, const uint32_t *order, struct err *err)
{
	const uint64_t *inner;
	if (a->codecs.nshards == SHARD_LEVELS_MAX)
		return err_set(err, -EOPNOTSUPP, "%s: more than %d shards inside of each other",
			       name, SHARD_LEVELS_MAX);
	struct zarr_shard *s = arena_alloc(b->scratch, sizeof(*s));
	uint64_t *lengths = arena_array(b->scratch, a->rank, sizeof(*lengths));
	uint32_t *axes = arena_array(b->scratch, a->rank, sizeof(*axes));
	if (!s || !lengths || !axes)
		return err_errno(err, -ENOMEM, "%s", name);
	*s = (struct zarr_shard){.inner = lengths, .order = axes};
	int rc = parse_shape(b, a, json_object_get(configuration, "chunk_shape"), shape, &inner,
			     &s->nchunks, err);
	if (!rc)
		rc = parse_index_codecs(b, json_object_get(configuration, "index_codecs"), s, err);
	if (!rc)
		rc = parse_location(b, json_object_get(configuration, "index_location"), s, err);
	for (uint32_t i = 0; !rc && i < a->rank; i++) {
		lengths[order[i]] = shape[i] = inner[i];
		axes[i] = order[i];
	}
	if (!rc)
		a->codecs.shards[a->codecs.nshards++] = s;
	return rc;
}

/* ---- the shards of a dataset ---- */

/* Plans how an encoded shard is decoded. `bytes` are those of its elements, and `nchunks` the
 * chunks of the dataset in it. */
static int plan_around(struct zarr_build *b, const struct zarr_shard *from, uint64_t bytes,
		       uint64_t nchunks, struct shard *out, struct err *err)
{
	/* Bytes of the header of a chunk that a codec cannot compress, and its places in indexes.
	 */
	enum { CHUNK_EXTRA = 64 + SHARD_LEVELS_MAX * SHARD_ENTRY, EXTRA = 64 << 10 };
	struct codec_array_step steps[ZARR_CODECS_MAX];
	struct codec_plan plan;
	if (from->naround == 0)
		return 0;
	if (bytes > CHUNK_BYTES_MAX)
		return err_set(err, -EOPNOTSUPP,
			       "shard of %" PRIu64 " bytes that is encoded as a whole is over the "
			       "limit of %d",
			       bytes, CHUNK_BYTES_MAX);
	for (uint32_t i = 0; i < from->naround; i++)
		steps[i] = from->around[from->naround - 1 - i];
	const uint64_t most = min_u64(2 * bytes + nchunks * CHUNK_EXTRA + EXTRA, CHUNK_BYTES_MAX);
	if (codec_plan_bytes(&plan, most, steps, from->naround))
		return err_set(err, -EIO, "%s: its codecs do not fit", name);
	out->around = codec_chain_copy(&plan.chain, b->arena);
	return out->around ? 0 : err_errno(err, -ENOMEM, "%s", name);
}

/* Sets how many chunks of the dataset the shard and an inner chunk have. *bytes and *nchunks become
 * the bytes of the elements and the chunks of the dataset in it. */
static bool set_spans(struct zarr_build *b, const struct zarr_array *a, const uint64_t *shape,
		      const struct zarr_shard *from, struct shard *out, uint64_t *bytes,
		      uint64_t *nchunks)
{
	uint64_t span[DSPACE_MAX_RANK], inner[DSPACE_MAX_RANK];
	*nchunks = 1;
	*bytes = a->element.size;
	for (uint32_t i = 0; i < a->rank; i++) {
		span[i] = shape[i] / a->chunk[i];
		inner[i] = from->inner[i] / a->chunk[i];
		if (!mul_u64(*bytes, shape[i], bytes))
			*bytes = UINT64_MAX;
		if (!mul_u64(*nchunks, span[i], nchunks))
			*nchunks = UINT64_MAX;
	}
	out->span = zarr_share(b, span, a->rank * sizeof(*span));
	out->inner = zarr_share(b, inner, a->rank * sizeof(*inner));
	out->order = zarr_share(b, from->order, a->rank * sizeof(*from->order));
	return out->span && out->inner && out->order;
}

static int make_shard(struct zarr_build *b, const struct zarr_array *a, uint32_t level,
		      const struct dataset *ds, const struct shard *nested,
		      const struct shard **out, struct err *err)
{
	const struct zarr_shard *from = a->codecs.shards[level];
	const uint64_t *shape = level ? a->codecs.shards[level - 1]->inner : a->shard;
	struct shard *s = arena_alloc(b->arena, sizeof(*s));
	uint64_t bytes, nchunks;
	if (!s)
		return err_errno(err, -ENOMEM, "%s", name);
	*s = (struct shard){
		.rank = a->rank,
		.nchunks = from->nchunks,
		.largest = nested ? UINT64_MAX : codec_chunk_size(ds->chain).most,
		.at_start = from->at_start,
		.big_endian = from->big_endian,
		.has_checksum = from->has_checksum,
		.nested = nested,
	};
	if (!set_spans(b, a, shape, from, s, &bytes, &nchunks))
		return err_errno(err, -ENOMEM, "%s", name);
	*out = s;
	return plan_around(b, from, bytes, nchunks, s, err);
}

int zarr_shards(struct zarr_build *b, const struct zarr_array *a, struct dataset *ds,
		struct err *err)
{
	const struct shard *s = NULL;
	int rc = 0;
	for (uint32_t level = a->codecs.nshards; !rc && level-- > 0;)
		rc = make_shard(b, a, level, ds, s, &s, err);
	ds->shard = s;
	return rc;
}
