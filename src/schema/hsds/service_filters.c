/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "filters": a list of {class, id, name, level, …} -> what the service does to the chunk objects of
 * the dataset. This code makes the same choices as HSDS (util/dsetUtil.py: getCompressionFilter(),
 * getShuffleFilter() and getFilterOps(); util/storUtil.py: _compress()). They depend on the class
 * and on the name, but never on the id:
 *
 *   compressor  the first filter with one of the classes below, or of the class USER with one of
 *               the names. DEFLATE is zlib. For the others the name determines the compressor; it
 *               is "lz4" if there is no name. Blosc has no "szip" and no "lzf": the service stores
 *               plain bytes, which it cannot read again. For "scaleoffset" it does nothing.
 *   level       5, unless the compressor has a level from 0 to 9.
 *   shuffle     the first filter of the class SHUFFLE or BITSHUFFLE. Its name determines which of
 *               the two it is. If the name is neither, the next such filter counts.
 *
 * All other filters are only recorded. Pure.
 */
#include "parse.h"

#include <errno.h>
#include <string.h>

enum { LEVEL_DEFAULT = 5, LEVEL_MAX = 9 };

static const char class_prefix[] = "H5Z_FILTER_";

static const char *const compressor_classes[] = {
	"DEFLATE", "SZIP", "SCALEOFFSET", "LZF", "BLOSC", "SNAPPY", "LZ4", "LZ4HC", "ZSTD",
};

/* The names of compressors of the class USER. */
static const char *const compressor_names[] = {
	"gzip", "szip", "lzf", "blosclz", "snappy", "lz4", "lz4hc", "zstd",
};

static const struct {
	const char *name;
	const char *blosc; /* NULL if the service does nothing */
} compressors[] = {
	{"gzip", "zlib"},	{"deflate", "zlib"},  {"zlib", "zlib"},
	{"blosclz", "blosclz"}, {"lz4", "lz4"},	      {"lz4hc", "lz4hc"},
	{"zstd", "zstd"},	{"snappy", "snappy"}, {"scaleoffset", NULL},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns the class without its prefix, or "" if there is none. */
static const char *class_of(const json_t *filter)
{
	const char *word = json_text_word(filter, "class");
	const size_t n = sizeof(class_prefix) - 1;
	return word && strncmp(word, class_prefix, n) == 0 ? word + n : "";
}

static bool is_compressor(const json_t *filter)
{
	const char *cls = class_of(filter);
	const char *name = strcmp(cls, "USER") == 0 ? json_text_word(filter, "name") : NULL;
	return schema_word_index(cls, compressor_classes, COUNT(compressor_classes)) >= 0 ||
	       schema_word_index(name, compressor_names, COUNT(compressor_names)) >= 0;
}

static int set_compressor(struct schema_ctx *ctx, const json_t *filter, struct service_filters *out,
			  struct err *err)
{
	const json_t *text = json_object_get(filter, "name");
	const char *name = json_text_word(filter, "name");
	uint64_t level;
	if (!json_is_string(text))
		name = "lz4";
	if (strcmp(class_of(filter), "DEFLATE") == 0)
		name = "gzip";
	out->level = LEVEL_DEFAULT;
	if (schema_count(json_object_get(filter, "level"), &level) && level <= LEVEL_MAX)
		out->level = (uint32_t)level;
	for (size_t i = 0; name && i < COUNT(compressors); i++)
		if (strcmp(compressors[i].name, name) == 0) {
			out->compressor = compressors[i].blosc;
			return 0;
		}
	/* A damaged name is no reason to leave out the dataset: no data is lost unless the dataset
	 * is changed. */
	const int rc = schema_ctx_name(ctx, json_string_value(text), json_string_length(text),
				       &out->refused, true, NULL);
	if (rc == -ENOMEM)
		return err_errno(err, rc, "the name of a filter");
	if (rc)
		out->refused = "?";
	return 0;
}

static enum service_shuffle shuffle_of(const json_t *filter)
{
	const char *name = json_text_word(filter, "name");
	const char *cls = class_of(filter);
	if (strcmp(cls, "SHUFFLE") != 0 && strcmp(cls, "BITSHUFFLE") != 0)
		return SERVED_SHUFFLE_NONE;
	/* The service fails if there is no name. */
	if (!name)
		name = strcmp(cls, "SHUFFLE") == 0 ? "shuffle" : "bitshuffle";
	if (strcmp(name, "shuffle") == 0)
		return SERVED_SHUFFLE_BYTE;
	return strcmp(name, "bitshuffle") == 0 ? SERVED_SHUFFLE_BIT : SERVED_SHUFFLE_NONE;
}

int schema_service_filters(struct schema_ctx *ctx, const json_t *filters,
			   struct service_filters *out, struct err *err)
{
	bool found = false;
	*out = (struct service_filters){0};
	for (size_t i = 0; i < json_array_size(filters); i++) {
		const json_t *filter = json_array_get(filters, i);
		if (out->shuffle == SERVED_SHUFFLE_NONE)
			out->shuffle = shuffle_of(filter);
		if (found || !is_compressor(filter))
			continue;
		found = true;
		const int rc = set_compressor(ctx, filter, out, err);
		if (rc)
			return err_wrap(err, rc, "[%zu]", i);
	}
	return 0;
}
