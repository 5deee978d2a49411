/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the parsers share: names, times, numbers of objects, reports, and the budget.
 * Pure. */
#include "parse.h"

#include <string.h>

void schema_skip(struct schema_ctx *ctx, const char *kind, const char *name, const struct err *why)
{
	if (!ctx->skip)
		return;
	struct err what = ERR_INIT; /* err_set() makes the name printable */
	err_set(&what, -EIO, "%s \"%.200s\"", kind, name);
	ctx->skip(ctx->skip_ctx, what.msg, why);
}

int schema_part(struct schema_ctx *ctx, const char *kind, const char *name, int rc,
		const struct err *why, uint32_t *count, struct err *err)
{
	if (rc == -ENOMEM) {
		err_copy(err, why);
		return err_wrap(err, rc, "%s \"%.200s\"", kind, name);
	}
	if (rc)
		schema_skip(ctx, kind, name, why);
	else
		(*count)++;
	return 0;
}

uint32_t schema_number(const struct schema_ctx *ctx, const struct schema_id *id)
{
	const struct schema_numbers *n = ctx->numbers;
	return n && n->number ? n->number(n->ctx, id) : OBJECT_NONE;
}

uint64_t schema_reference(const struct schema_ctx *ctx, const char *text, size_t n)
{
	struct schema_id id;
	if (!schema_id_parse(text, n, &id))
		return 0;
	uint32_t number = schema_number(ctx, &id);
	return number == OBJECT_NONE ? 0 : (uint64_t)number + 1;
}

int schema_spend(struct schema_ctx *ctx, uint64_t n, struct err *err)
{
	if (n > ctx->budget)
		return err_set(err, -EIO, "the values of the object take more than %d bytes",
			       SCHEMA_VALUES_MAX);
	ctx->budget -= n;
	return 0;
}

int schema_ctx_text(struct schema_ctx *ctx, const json_t *string, struct json_string *out,
		    struct err *err)
{
	int rc = json_string_decode(json_string_value(string), json_string_length(string),
				    &ctx->text, out);
	return rc ? err_errno(err, rc, "text") : 0;
}

int schema_ctx_name(struct schema_ctx *ctx, const char *s, size_t n, const char **out, bool any,
		    struct err *err)
{
	struct json_string text;
	*out = NULL;
	int rc = json_string_decode(s, n, &ctx->text, &text);
	if (rc)
		return err_errno(err, rc, "text");
	if (text.literal)
		return err_set(err, -EIO, "a number instead of text");
	if (text.has_nul)
		return err_set(err, -EIO, "it contains a NUL");
	if (text.n > SCHEMA_NAME_MAX)
		return err_set(err, -EIO, "%zu bytes, the limit is %d", text.n, SCHEMA_NAME_MAX);
	if (!text.utf8 && !any)
		return err_set(err, -EIO,
			       "it contains a lone surrogate, which UTF-8 cannot encode");
	*out = arena_strndup(ctx->arena, text.s, text.n);
	return *out ? 0 : err_errno(err, -ENOMEM, "text");
}

/* Replaces the three bytes of each lone surrogate U+DC80 to U+DCFF by the byte for which it stands.
 * Returns false if there is another lone surrogate. */
static bool unescape(char *text)
{
	uint8_t *to = (uint8_t *)text;
	for (const uint8_t *s = to; *s;) {
		/* In UTF-8, no character has the byte ED and then a byte from A0 on. */
		if (s[0] != 0xed || s[1] < 0xa0) {
			*to++ = *s++;
			continue;
		}
		if ((s[1] != 0xb2 && s[1] != 0xb3) || (s[2] & 0xc0) != 0x80)
			return false;
		*to++ = (uint8_t)(s[1] << 6 | (s[2] & 0x3f));
		s += 3;
	}
	*to = '\0';
	return true;
}

int schema_ctx_bytes(struct schema_ctx *ctx, const json_t *string, const char **out,
		     struct err *err)
{
	enum { SURROGATE = 3 /* bytes of the text for one surrogate */ };
	struct json_string text;
	*out = NULL;
	if (!json_is_string(string))
		return err_set(err, -EIO, "not a text");
	int rc = schema_ctx_text(ctx, string, &text, err);
	if (rc)
		return rc;
	if (text.literal || text.has_nul)
		return err_set(err, -EIO, "it %s", text.literal ? "is a number" : "contains a NUL");
	if (text.n > SURROGATE * SCHEMA_NAME_MAX)
		return err_set(err, -EIO, "more than %d bytes", SCHEMA_NAME_MAX);
	char *copy = arena_strndup(ctx->arena, text.s, text.n);
	if (!copy)
		return err_errno(err, -ENOMEM, "text");
	if (!text.utf8 && !unescape(copy))
		return err_set(err, -EIO, "it contains a lone surrogate that stands for no byte");
	if (strlen(copy) > SCHEMA_NAME_MAX)
		return err_set(err, -EIO, "more than %d bytes", SCHEMA_NAME_MAX);
	*out = copy;
	return 0;
}

int schema_group_id(struct schema_ctx *ctx, const json_t *v, const char *what, const char **out,
		    struct err *err)
{
	struct schema_id id;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v) ||
	    !schema_id_parse(json_string_value(v), json_string_length(v), &id) ||
	    id.kind != OBJECT_GROUP)
		return err_set(err, -EIO, "%s: not the id of a group", what);
	char *text = arena_alloc(ctx->arena, SCHEMA_ID_MAX);
	if (!text)
		return err_errno(err, -ENOMEM, "%s", what);
	schema_id_format(&id, text);
	*out = text;
	return 0;
}

int64_t schema_time_ns(const json_t *seconds)
{
	/* The years 1684 to 2255, which int64_t can hold in ns. */
	const int64_t limit = 9000000000;
	if (json_is_integer(seconds)) {
		json_int_t s = json_integer_value(seconds);
		return s > -limit && s < limit ? s * 1000000000 : 0;
	}
	double s = json_real_value(seconds); /* 0 if it is not a number */
	if (!(s > (double)-limit && s < (double)limit))
		return 0;
	/* The fraction is converted separately, because the product would lose bits. */
	int64_t whole = (int64_t)s;
	return whole * 1000000000 + (int64_t)((s - (double)whole) * 1e9);
}

bool schema_count(const json_t *v, uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

/* Returns true for true, for numbers other than 0, for "1" and "true", and for the names of HDF5's
 * flags. */
static bool is_tracked(const json_t *flag)
{
	const char *word = json_string_value(flag);
	if (word)
		return strcmp(word, "1") == 0 || strcmp(word, "true") == 0 ||
		       strcmp(word, "H5P_CRT_ORDER_TRACKED") == 0 ||
		       strcmp(word, "H5P_CRT_ORDER_INDEXED") == 0;
	return json_is_true(flag) || json_integer_value(flag) != 0;
}

bool schema_tracks_order(const json_t *creation_properties)
{
	return is_tracked(json_object_get(creation_properties, "attributeCreationOrder")) ||
	       is_tracked(json_object_get(creation_properties, "CreateOrder"));
}
