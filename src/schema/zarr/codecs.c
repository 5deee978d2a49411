/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the codecs of an array, in both versions. Makes the steps of codec/chain.h in the order of
 * decoding, and the filters that an HDF5 file can record. The documents list codecs in the order of
 * encoding. In v2 these are `filters` and then `compressor`; order "F" is a transposition before
 * them. In v3 they are the codecs of arrays, the one that makes bytes, and those of bytes. If the
 * one that makes bytes is sharding_indexed, it has a list of its own, of the codecs of inner
 * chunks.
 *
 * A transposition of a shard also transposes each inner chunk. So the chain of the chunks of the
 * dataset, which are the innermost ones, begins with all transpositions of the shards around them.
 * Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <string.h>

struct codec {
	const char *name;
	const json_t *configuration;
};

/* The codecs of an array in the order of encoding. */
struct encoding {
	struct zarr_build *b;
	struct zarr_array *a;
	uint32_t ncodecs; /* of all lists */
	uint32_t n;
	struct codec_array_step steps[2 * ZARR_CODECS_MAX];
	const json_t *configurations[2 * ZARR_CODECS_MAX]; /* of each step; may be NULL */
	/* The shape that the next codec gets, of a chunk or a shard. Its axis i is dimension
	 * axes[i] of the array. */
	uint64_t shape[DSPACE_MAX_RANK];
	uint32_t axes[DSPACE_MAX_RANK];
	struct zarr_shard *around; /* the next codec is one around this shard, unless it is NULL */
	struct str text;	   /* the names of those around shards */
};

static const char *const names[] = {
	[CODEC_ZLIB] = "zlib",	     [CODEC_GZIP] = "gzip",	[CODEC_ZSTD] = "zstd",
	[CODEC_BLOSC] = "blosc",     [CODEC_BZ2] = "bz2",	[CODEC_LZ4] = "lz4",
	[CODEC_SHUFFLE] = "shuffle", [CODEC_CRC32C] = "crc32c", [CODEC_TRANSPOSE] = "transpose",
	[CODEC_WIDEN] = "",
};
enum { NSIMPLE = CODEC_LZ4 + 1 }; /* the first ones: codecs of bytes whose numbers do not matter */

static int unknown(const char *name, struct err *err)
{
	return err_set(err, -EOPNOTSUPP, "codec '%s' is not known", name);
}

static struct codec_array_step *add(struct encoding *e, enum codec_array_codec codec,
				    const json_t *configuration)
{
	struct zarr_shard *s = e->around;
	if (s) {
		str_addf(&e->text, ", %s around shards", names[codec]);
		s->around[s->naround] = (struct codec_array_step){.codec = codec};
		return &s->around[s->naround++];
	}
	e->configurations[e->n] = configuration;
	e->steps[e->n] = (struct codec_array_step){.codec = codec, .rank = e->a->rank};
	return &e->steps[e->n++];
}

/* ---- transposition ---- */

/* Reads the order of axes. Early writers use the words "C" and "F" for it. */
static bool parse_order(struct encoding *e, const json_t *v, uint32_t *order)
{
	const uint32_t rank = e->a->rank;
	const char *word = json_string_value(v);
	bool seen[DSPACE_MAX_RANK] = {false};
	if (word && (strcmp(word, "C") == 0 || strcmp(word, "F") == 0)) {
		for (uint32_t i = 0; i < rank; i++)
			order[i] = word[0] == 'C' ? i : rank - 1 - i;
		return true;
	}
	if (!json_is_array(v) || json_array_size(v) != rank)
		return false;
	for (uint32_t i = 0; i < rank; i++) {
		uint64_t axis;
		if (!zarr_count(e->b, json_array_get(v, i), &axis) || axis >= rank || seen[axis])
			return false;
		seen[axis] = true;
		order[i] = (uint32_t)axis;
	}
	return true;
}

static int transpose(struct encoding *e, const json_t *v, struct err *err)
{
	const uint32_t rank = e->a->rank;
	char brief[84];
	uint32_t order[DSPACE_MAX_RANK];
	bool is_identity = true;
	if (!parse_order(e, v, order))
		return err_set(err, -EIO, "codec 'transpose': order %s for rank %u",
			       zarr_json_brief(e->b, v, brief), rank);
	for (uint32_t i = 0; i < rank; i++)
		is_identity = is_identity && order[i] == i;
	if (is_identity)
		return 0;
	uint64_t shape[DSPACE_MAX_RANK];
	uint32_t axes[DSPACE_MAX_RANK];
	uint32_t *kept = arena_array(e->b->scratch, rank, sizeof(*kept));
	if (!kept)
		return err_errno(err, -ENOMEM, "codec 'transpose'");
	memcpy(kept, order, rank * sizeof(*kept));
	memcpy(shape, e->shape, sizeof(shape));
	memcpy(axes, e->axes, sizeof(axes));
	for (uint32_t i = 0; i < rank; i++) {
		e->shape[i] = shape[order[i]];
		e->axes[i] = axes[order[i]];
	}
	struct codec_array_step *step = add(e, CODEC_TRANSPOSE, NULL);
	step->elem_size = e->a->element.size;
	step->order = kept;
	return 0;
}

/* Sets the shapes of the transpositions. The first one gets a chunk of the dataset. */
static int set_shapes(struct encoding *e, struct err *err)
{
	const uint32_t rank = e->a->rank;
	const uint64_t *shape = e->a->chunk;
	for (uint32_t i = 0; i < e->n; i++) {
		struct codec_array_step *step = &e->steps[i];
		if (step->codec != CODEC_TRANSPOSE)
			continue;
		uint64_t *next = arena_array(e->b->scratch, rank, sizeof(*next));
		if (!next)
			return err_errno(err, -ENOMEM, "codec 'transpose'");
		for (uint32_t k = 0; k < rank; k++)
			next[k] = shape[step->order[k]];
		step->shape = shape;
		shape = next;
	}
	return 0;
}

/* ---- codecs of bytes ---- */

static int shuffle(struct encoding *e, const json_t *configuration, struct err *err)
{
	const json_t *v = json_object_get(configuration, "elementsize");
	uint64_t size = 0;
	char brief[84];
	if (v && !json_is_null(v) && (!zarr_count(e->b, v, &size) || size > INT32_MAX))
		return err_set(err, -EIO, "codec 'shuffle': elementsize %s is not known",
			       zarr_json_brief(e->b, v, brief));
	struct codec_array_step *step = add(e, CODEC_SHUFFLE, configuration);
	step->elem_size = size ? (uint32_t)size : e->a->element.size;
	return 0;
}

/* numcodecs can also store the checksum in front of the bytes. That form is not known here. */
static int crc32c(struct encoding *e, const json_t *configuration, struct err *err)
{
	const char *location = json_text_word(configuration, "location");
	if (location && strcmp(location, "end") != 0)
		return err_set(err, -EOPNOTSUPP, "codec 'crc32c': location '%s' is not known",
			       location);
	add(e, CODEC_CRC32C, configuration);
	return 0;
}

static int add_bytes_codec(struct encoding *e, const struct codec *c, struct err *err)
{
	if (strcmp(c->name, "pickle") == 0)
		return err_set(err, -EOPNOTSUPP,
			       "codec pickle: decoding it would run code from the store");
	if (strcmp(c->name, "shuffle") == 0)
		return shuffle(e, c->configuration, err);
	if (strcmp(c->name, "crc32c") == 0)
		return crc32c(e, c->configuration, err);
	for (unsigned int i = 0; i < NSIMPLE; i++) {
		if (strcmp(names[i], c->name) != 0)
			continue;
		add(e, (enum codec_array_codec)i, c->configuration);
		return 0;
	}
	return unknown(c->name, err);
}

/* ---- the result ---- */

static uint32_t deflate_level(struct zarr_build *b, const json_t *configuration)
{
	enum { UNKNOWN_LEVEL = 4 };
	uint64_t level;
	const json_t *v = json_object_get(configuration, "level");
	return v && zarr_count(b, v, &level) && level <= 9 ? (uint32_t)level : UNKNOWN_LEVEL;
}

/* Sets the filters that the file records. There are some if the chain consists of shuffle and
 * deflate, or of one of them. */
static int record_filters(struct encoding *e, struct err *err)
{
	struct zarr_codecs *out = &e->a->codecs;
	const struct zarr_element shown = zarr_element_shown(&e->a->element);
	const bool is_shuffled = e->n > 0 && e->steps[0].codec == CODEC_SHUFFLE;
	const uint32_t deflate = is_shuffled ? 1 : 0;
	const enum codec_array_codec last = e->n > deflate ? e->steps[deflate].codec : CODEC_ZLIB;
	if (e->n == 0 || e->n > 2 || shown.size != e->a->element.size ||
	    (is_shuffled && e->steps[0].elem_size != shown.size) ||
	    (last != CODEC_ZLIB && last != CODEC_GZIP) || e->n > deflate + 1)
		return 0;
	for (uint32_t i = 0; i < e->n; i++) {
		uint32_t *parameter = arena_array(e->b->arena, 1, sizeof(*parameter));
		if (!parameter)
			return err_errno(err, -ENOMEM, "codecs");
		*parameter = i == deflate ? deflate_level(e->b, e->configurations[i]) : shown.size;
		out->filters[i] = (struct filter){
			.id = i == deflate ? FILTER_DEFLATE : FILTER_SHUFFLE,
			.nparams = 1,
			.params = parameter,
		};
	}
	out->nfilters = e->n;
	return 0;
}

/* Adds the name of a codec with its level or another number or word: "shuffle(4), zlib(5)". */
static void describe(const struct encoding *e, uint32_t i, struct str *out)
{
	const struct codec_array_step *s = &e->steps[i];
	const json_t *level = json_object_get(e->configurations[i], "level");
	const char *inner = json_text_word(e->configurations[i], "cname");
	uint64_t n;
	str_addf(out, "%s%s", i ? ", " : "", names[s->codec]);
	if (s->codec == CODEC_SHUFFLE)
		str_addf(out, "(%u)", s->elem_size);
	else if (s->codec == CODEC_BLOSC && inner)
		str_addf(out, "(%.32s)", inner);
	else if (level && zarr_count(e->b, level, &n))
		str_addf(out, "(%llu)", (unsigned long long)n);
}

static int describe_all(struct encoding *e, struct err *err)
{
	auto_str struct str text = {0};
	for (uint32_t i = 0; i < e->n; i++)
		describe(e, i, &text);
	str_add(&text, str_text(&e->text) + (text.b.len || !e->text.b.len ? 0 : strlen(", ")));
	if (text.b.len && str_ok(&text) && str_ok(&e->text))
		e->a->codecs.text = zarr_share(e->b, str_text(&text), text.b.len);
	return text.b.len && !e->a->codecs.text ? err_errno(err, -ENOMEM, "codecs") : 0;
}

static int finish(struct encoding *e, struct err *err)
{
	struct zarr_codecs *out = &e->a->codecs;
	int rc = set_shapes(e, err);
	if (!rc)
		rc = record_filters(e, err);
	if (!rc)
		rc = describe_all(e, err);
	out->n = 0;
	for (uint32_t i = e->n; i-- > 0;)
		out->steps[out->n++] = e->steps[i];
	if (e->a->element.kind == ZARR_FLOAT && e->a->element.size == 2)
		out->steps[out->n++] = (struct codec_array_step){
			.codec = CODEC_WIDEN,
			.elem_size = e->a->element.size,
			.big_endian = e->a->element.big_endian,
		};
	return rc;
}

/* Counts the n codecs of another list. */
static int count_codecs(struct encoding *e, size_t n, struct err *err)
{
	if (n > ZARR_CODECS_MAX - e->ncodecs)
		return err_set(err, -EOPNOTSUPP, "%zu codecs are over the limit of %d",
			       n + e->ncodecs, ZARR_CODECS_MAX);
	e->ncodecs += (uint32_t)n;
	return 0;
}

static void begin(struct encoding *e)
{
	for (uint32_t i = 0; i < e->a->rank; i++) {
		e->shape[i] = e->a->chunk[i];
		e->axes[i] = i;
	}
}

/* ---- Zarr v2 ---- */

static int add_v2(struct encoding *e, const json_t *v, struct err *err)
{
	const struct codec c = {.name = json_text_word(v, "id"), .configuration = v};
	char brief[84];
	if (!c.name)
		return err_set(err, -EIO, "codec %s has no 'id'", zarr_json_brief(e->b, v, brief));
	return add_bytes_codec(e, &c, err);
}

static int add_order(struct encoding *e, const json_t *doc, struct err *err)
{
	const json_t *order = json_object_get(doc, "order");
	const char *word = json_string_value(order);
	char brief[84];
	if (!order || json_is_null(order))
		return 0;
	if (!word || (strcmp(word, "C") != 0 && strcmp(word, "F") != 0))
		return err_set(err, -EIO, "order %s is not known",
			       zarr_json_brief(e->b, order, brief));
	return transpose(e, order, err);
}

int zarr_codecs_v2(struct zarr_build *b, struct zarr_array *a, const json_t *doc, struct err *err)
{
	struct encoding e = {.b = b, .a = a};
	const json_t *filters = json_object_get(doc, "filters");
	const json_t *compressor = json_object_get(doc, "compressor");
	if (filters && !json_is_null(filters) && !json_is_array(filters))
		return err_set(err, -EIO, "filters: not a list");
	begin(&e);
	int rc = count_codecs(&e, json_array_size(filters), err);
	if (!rc)
		rc = add_order(&e, doc, err);
	for (size_t i = 0; !rc && i < json_array_size(filters); i++)
		rc = add_v2(&e, json_array_get(filters, i), err);
	if (!rc && compressor && !json_is_null(compressor))
		rc = add_v2(&e, compressor, err);
	return rc ? rc : finish(&e, err);
}

/* ---- Zarr v3 ---- */

enum codec_class { OF_ARRAYS, TO_BYTES, OF_BYTES };

static bool is_sharding(const char *name)
{
	return strcmp(name, "sharding_indexed") == 0;
}

static enum codec_class class_of(const char *name)
{
	if (strcmp(name, "transpose") == 0)
		return OF_ARRAYS;
	if (strcmp(name, "bytes") == 0 || strcmp(name, "endian") == 0 || is_sharding(name))
		return TO_BYTES;
	return OF_BYTES;
}

/* Reads the name and configuration of a codec. After their prefix, codecs of numcodecs have the
 * names of v2. Those of numcodecs that encode arrays are not known. */
static int parse_v3(struct encoding *e, const json_t *v, struct codec *out, struct err *err)
{
	static const char prefix[] = "numcodecs.";
	const size_t n = sizeof(prefix) - 1;
	char brief[84];
	out->name = zarr_extension(v, &out->configuration);
	if (!out->name)
		return err_set(err, -EIO, "codec %s has no name", zarr_json_brief(e->b, v, brief));
	if (strncmp(out->name, prefix, n) == 0) {
		if (class_of(out->name + n) != OF_BYTES)
			return unknown(out->name, err);
		out->name += n;
	}
	return 0;
}

static int add_endian(struct encoding *e, const json_t *configuration, struct err *err)
{
	bool big;
	const int rc = zarr_endian(e->b, configuration, &big, err);
	e->a->element.big_endian = big && e->a->element.size > 1;
	return rc;
}

static int add_list(struct encoding *e, const json_t *list, struct err *err);

/* The codecs behind this one are those around the shard. */
static int add_sharding(struct encoding *e, const json_t *configuration, struct err *err)
{
	struct zarr_codecs *out = &e->a->codecs;
	int rc = zarr_shard_parse(e->b, e->a, configuration, e->shape, e->axes, err);
	if (rc)
		return rc;
	struct zarr_shard *around = out->shards[out->nshards - 1];
	rc = add_list(e, json_object_get(configuration, "codecs"), err);
	e->around = around;
	return rc;
}

static int add_v3(struct encoding *e, const json_t *v, enum codec_class *last, struct err *err)
{
	struct codec c;
	const int rc = parse_v3(e, v, &c, err);
	if (rc)
		return rc;
	const enum codec_class class = class_of(c.name);
	if (class < *last || (class == TO_BYTES && *last == TO_BYTES))
		return err_set(err, -EIO, "codec '%s' is at a wrong place", c.name);
	*last = class;
	switch (class) {
	case OF_ARRAYS:
		return transpose(e, json_object_get(c.configuration, "order"), err);
	case TO_BYTES:
		return is_sharding(c.name) ? add_sharding(e, c.configuration, err)
					   : add_endian(e, c.configuration, err);
	case OF_BYTES:
		return add_bytes_codec(e, &c, err);
	}
	return 0;
}

/* Adds the codecs of an array or, in its configuration, of the inner chunks of a shard. */
static int add_list(struct encoding *e, const json_t *list, struct err *err)
{
	/* If no codec of the list makes bytes, numbers are little-endian (zarrita 0.7). */
	enum codec_class last = OF_ARRAYS;
	if (!json_is_array(list))
		return err_set(err, -EIO, "codecs: not a list");
	int rc = count_codecs(e, json_array_size(list), err);
	for (size_t i = 0; !rc && i < json_array_size(list); i++)
		rc = add_v3(e, json_array_get(list, i), &last, err);
	return rc;
}

/* Makes the inner chunks of the innermost shards the chunks of the dataset. */
static void set_chunk(struct zarr_array *a)
{
	if (a->codecs.nshards == 0)
		return;
	a->shard = a->chunk;
	a->chunk = a->codecs.shards[a->codecs.nshards - 1]->inner;
}

int zarr_codecs_v3(struct zarr_build *b, struct zarr_array *a, const json_t *list, struct err *err)
{
	struct encoding e = {.b = b, .a = a};
	begin(&e);
	int rc = add_list(&e, list, err);
	if (!rc) {
		set_chunk(a);
		rc = finish(&e, err);
	}
	str_release(&e.text);
	return rc;
}
