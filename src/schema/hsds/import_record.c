/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of an unfinished import. It is an object with the members "domain", "path", "file",
 * "min_chunk", "size", "mtime" and "created". The members "replaces", "link", "etag" and "life" are
 * optional. Only this program reads it. "domain" has 16 hexadecimal digits, and times are in
 * nanoseconds since the epoch. A path that is not UTF-8 is in base64 in "path_base64" or
 * "file_base64". Pure.
 */
#include "emit_document.h"
#include "hsds2.h"
#include "parse.h"

#include <errno.h>
#include <string.h>

#include <base/hex.h>
#include <base/utf8.h>
#include <data/number.h>

#include <json/base64.h>

enum { DIGITS = 16 };

static void put_path(struct writer *w, const char *key, const char *coded_key, const char *path)
{
	const size_t n = strlen(path);
	if (utf8_valid(path, n)) {
		write_member_word(w, key, path);
		return;
	}
	write_key(w, coded_key);
	write_base64(w, path, n);
}

int schema_import_emit(const struct schema_import *i, struct bytes *out, struct err *err)
{
	const size_t start = out->len;
	struct writer w = {.out = out};
	uint8_t bytes[DIGITS / 2];
	char digits[DIGITS + 1];
	number_put_int(bytes, sizeof(bytes), true, hsds2_storage_number(i->storage.prefix));
	hex_encode(bytes, sizeof(bytes), digits);
	write_open(&w, '{');
	write_member_word(&w, "domain", digits);
	put_path(&w, "path", "path_base64", i->path);
	put_path(&w, "file", "file_base64", i->file);
	if (i->replaces)
		write_member_word(&w, "replaces", i->replaces);
	write_member_uint(&w, "min_chunk", i->min_chunk);
	write_member_uint(&w, "size", i->size);
	write_key(&w, "mtime");
	write_int(&w, i->mtime_ns);
	write_key(&w, "created");
	write_int(&w, i->created_ns);
	if (i->link)
		write_member_word(&w, "link", i->link);
	if (i->etag)
		write_member_word(&w, "etag", i->etag);
	if (i->life)
		write_member_word(&w, "life", i->life);
	write_close(&w, '}');
	if (!w.bad)
		return 0;
	out->len = start;
	return err_no_memory(err);
}

static int parse_path(struct schema_ctx *ctx, const json_t *doc, const char *key,
		      const char *coded_key, const char **out, struct err *err)
{
	const json_t *text = json_object_get(doc, key);
	const json_t *coded = json_object_get(doc, coded_key);
	auto_bytes struct bytes raw = {0};
	if (json_is_string(text))
		return schema_ctx_name(ctx, json_string_value(text), json_string_length(text), out,
				       true, err);
	if (!json_is_string(coded))
		return err_set(err, -EIO, "%s: missing", key);
	int rc = base64_decode(json_string_value(coded), json_string_length(coded), &raw);
	if (rc == -EINVAL || (raw.len && memchr(raw.data, '\0', raw.len)))
		return err_set(err, -EIO, "%s: not the base64 form of a path", coded_key);
	*out = rc ? NULL : arena_strndup(ctx->arena, raw.len ? (char *)raw.data : "", raw.len);
	return *out ? 0 : err_errno(err, -ENOMEM, "path");
}

static bool parse_domain(const json_t *v, uint64_t *out)
{
	const char *text = json_string_value(v);
	*out = 0;
	if (!text || json_string_length(v) != DIGITS)
		return false;
	for (size_t i = 0; i < DIGITS; i++) {
		const int digit = hex_digit(text[i]);
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint64_t)digit;
	}
	return true;
}

static int parse_text(struct schema_ctx *ctx, const json_t *doc, const char *key, const char **out,
		      struct err *err)
{
	const json_t *v = json_object_get(doc, key);
	if (!v)
		return 0;
	if (!json_is_string(v))
		return err_set(err, -EIO, "%s: not a text", key);
	return schema_ctx_name(ctx, json_string_value(v), json_string_length(v), out, true, err);
}

static int parse_members(struct schema_ctx *ctx, const json_t *doc, struct schema_import *out,
			 struct err *err)
{
	const json_t *mtime = json_object_get(doc, "mtime");
	const json_t *created = json_object_get(doc, "created");
	uint64_t number;
	if (!parse_domain(json_object_get(doc, "domain"), &number))
		return err_set(err, -EIO, "domain: not 16 hexadecimal digits");
	hsds2_storage_of_number(number, &out->storage);
	if (!schema_count(json_object_get(doc, "size"), &out->size) ||
	    !schema_count(json_object_get(doc, "min_chunk"), &out->min_chunk))
		return err_set(err, -EIO, "size, min_chunk: not sizes");
	if (!json_is_integer(mtime) || !json_is_integer(created))
		return err_set(err, -EIO, "mtime, created: not times");
	out->mtime_ns = json_integer_value(mtime);
	out->created_ns = json_integer_value(created);
	int rc = schema_group_id(ctx, json_object_get(doc, "replaces"), "replaces", &out->replaces,
				 err);
	if (!rc)
		rc = parse_text(ctx, doc, "link", &out->link, err);
	if (!rc)
		rc = parse_text(ctx, doc, "etag", &out->etag, err);
	if (!rc)
		rc = parse_text(ctx, doc, "life", &out->life, err);
	if (!rc)
		rc = parse_path(ctx, doc, "path", "path_base64", &out->path, err);
	if (!rc)
		rc = parse_path(ctx, doc, "file", "file_base64", &out->file, err);
	return rc;
}

int schema_import_parse(const void *text, size_t n, struct arena *a, struct schema_import *out,
			struct err *err)
{
	auto_json json_t *doc = NULL;
	struct err why = ERR_INIT;
	struct schema_ctx ctx = {.arena = a};
	*out = (struct schema_import){0};
	int rc = json_text_load(text, n, &doc, &why);
	if (!rc)
		rc = parse_members(&ctx, doc, out, &why);
	bytes_release(&ctx.text);
	if (!rc)
		return 0;
	err_wrap(&why, rc, "record of an import");
	if (err)
		err_copy(err, &why);
	return rc;
}
