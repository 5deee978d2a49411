/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "filters": a list of {class, id, name, level, parameters, …}, of names, or of ids -> struct
 * pipeline, as recorded. codec/ finds out which filters were really applied. Pure.
 */
#include "parse.h"

#include <string.h>

static const struct {
	const char *cls;  /* without "H5Z_FILTER_" */
	const char *name; /* in the service and in h5py */
	uint32_t id;
} known[] = {
	{"DEFLATE", "gzip", FILTER_DEFLATE},
	{"DEFLATE", "deflate", FILTER_DEFLATE},
	{"DEFLATE", "zlib", FILTER_DEFLATE},
	{"SHUFFLE", "shuffle", FILTER_SHUFFLE},
	{"FLETCHER32", "fletcher32", FILTER_FLETCHER32},
	{"SZIP", "szip", FILTER_SZIP},
	{"NBIT", "nbit", FILTER_NBIT},
	{"SCALEOFFSET", "scaleoffset", FILTER_SCALEOFFSET},
	{"LZF", "lzf", FILTER_LZF},
	{"BLOSC", "blosclz", FILTER_BLOSC},
	{"BLOSC", "blosc", FILTER_BLOSC},
	{"SNAPPY", "snappy", 32003},
	{"LZ4", "lz4", FILTER_LZ4},
	{"LZ4HC", "lz4hc", 32005},
	{"BITSHUFFLE", "bitshuffle", FILTER_BITSHUFFLE},
	{"ZSTD", "zstd", FILTER_ZSTD},
};

/* Returns the id of a filter with this class or name, or 0 if it is unknown. */
static uint32_t id_of_word(const char *word)
{
	const char *prefix = "H5Z_FILTER_";
	bool is_class = strncmp(word, prefix, strlen(prefix)) == 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(is_class ? word + strlen(prefix) : word,
			   is_class ? known[i].cls : known[i].name) == 0)
			return known[i].id;
	return 0;
}

static int set_id(const json_t *id, struct filter *f, struct err *err)
{
	uint64_t n;
	if (!schema_count(id, &n) || n == 0 || n > 65535)
		return err_set(err, -EIO, "id: not the id of a filter");
	f->id = (uint32_t)n;
	return 0;
}

static int set_params(struct schema_ctx *ctx, const json_t *v, struct filter *f, struct err *err)
{
	const json_t *params = json_object_get(v, "parameters");
	const json_t *level = json_object_get(v, "level");
	size_t n = json_array_size(params);
	if (n > FILTER_MAX_PARAMS)
		return err_set(err, -EIO, "%zu parameters, the limit is %d", n, FILTER_MAX_PARAMS);
	uint32_t *values = arena_alloc(ctx->arena, (n ? n : 1) * sizeof(*values));
	if (!values)
		return err_no_memory(err);
	f->params = values;
	for (size_t i = 0; i < n; i++) {
		const json_t *p = json_array_get(params, i);
		if (!json_is_integer(p))
			return err_set(err, -EIO, "parameter %zu is not an integer", i);
		values[f->nparams++] = (uint32_t)json_integer_value(p);
	}
	if (f->id == FILTER_DEFLATE && f->nparams == 0) {
		uint64_t n_level;
		values[f->nparams++] = schema_count(level, &n_level) && n_level <= 9
					       ? (uint32_t)n_level
					       : 6; /* the default of zlib */
	}
	return 0;
}

/* The id determines the filter. If there is no id, the class does so if it is known, or else the
 * name. */
static int parse_filter(struct schema_ctx *ctx, const json_t *v, struct filter *f, struct err *err)
{
	const json_t *name = json_object_get(v, "name");
	const json_t *id = json_object_get(v, "id");
	const char *word = json_string_value(v);
	int rc = 0;
	if (json_is_object(v)) {
		word = json_text_word(v, "class");
		if (word && id_of_word(word) == 0)
			word = NULL;
		if (!word)
			word = json_string_value(name);
	}
	if (json_is_integer(v))
		rc = set_id(v, f, err);
	else if (id && !json_is_null(id))
		rc = set_id(id, f, err);
	else if (word)
		f->id = id_of_word(word);
	if (rc)
		return rc;
	if (f->id == 0)
		return err_set(err, -EIO, "unknown filter \"%.64s\"", word ? word : "");
	if (json_is_string(v))
		name = v;
	if (json_is_string(name)) {
		rc = schema_ctx_name(ctx, json_string_value(name), json_string_length(name),
				     &f->name, true, err);
		if (rc)
			return err_wrap(err, rc, "name");
	}
	return set_params(ctx, v, f, err);
}

int schema_pipeline(struct schema_ctx *ctx, const json_t *filters, struct pipeline *out,
		    struct err *err)
{
	*out = (struct pipeline){0};
	if (!filters || json_is_null(filters))
		return 0;
	if (!json_is_array(filters))
		return err_set(err, -EIO, "not a list");
	size_t n = json_array_size(filters);
	if (n > FILTER_MAX)
		return err_set(err, -EIO, "%zu filters, the limit is %d", n, FILTER_MAX);
	for (size_t i = 0; i < n; i++) {
		int rc = parse_filter(ctx, json_array_get(filters, i), &out->f[out->n], err);
		if (rc)
			return err_wrap(err, rc, "[%zu]", i);
		out->n++;
	}
	return 0;
}
