/* SPDX-License-Identifier: Apache-2.0 */
/* See user_block_member.h. */
#include "user_block_member.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>

#include <base/hex.h>
#include <data/number.h>

#include <json/base64.h>

enum {
	SHA256 = 32,
	NONCE = 8,
	DIGEST_DIGITS = 2 * SHA256,
	NAME_LENGTH = DIGEST_DIGITS + 1 + 2 * NONCE,
};

/* ---- names ---- */

bool schema_user_block_is_name(const char *text)
{
	for (size_t i = 0; i < NAME_LENGTH; i++)
		if (i == DIGEST_DIGITS ? text[i] != '-'
				       : !text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	return text[NAME_LENGTH] == '\0';
}

static bool digest(const void *bytes, size_t n, char digits[DIGEST_DIGITS + 1])
{
	uint8_t sum[EVP_MAX_MD_SIZE];
	if (EVP_Digest(n ? bytes : "", n, sum, NULL, EVP_sha256(), NULL) != 1)
		return false;
	hex_encode(sum, SHA256, digits);
	return true;
}

int schema_user_block_name(struct tree *t, uint64_t nonce, struct err *err)
{
	const struct user_block *old = tree_user_block(t);
	char name[NAME_LENGTH + 1];
	uint8_t bytes[NONCE];
	if (!old || old->object || user_block_is_small(old))
		return 0;
	if (!digest(old->data, old->len, name))
		return err_set(err, -EIO, "cannot compute the SHA-256 of the user block");
	number_put_int(bytes, sizeof(bytes), true, nonce);
	name[DIGEST_DIGITS] = '-';
	hex_encode(bytes, sizeof(bytes), name + DIGEST_DIGITS + 1);
	struct user_block *b = arena_alloc(tree_arena(t), sizeof(*b));
	if (b) {
		*b = *old;
		b->object = arena_strndup(tree_arena(t), name, NAME_LENGTH);
	}
	if (!b || !b->object)
		return err_set(err, -ENOMEM, "out of memory: the user block");
	tree_edit(t, 0)->group.user_block = b;
	return 0;
}

int schema_user_block_take(struct tree *t, const void *bytes, size_t n, struct err *err)
{
	const struct user_block *old = tree_user_block(t);
	char digits[DIGEST_DIGITS + 1];
	struct user_block *b;
	if (n > old->size)
		return err_set(err, -EIO, "the user block has more than %llu bytes",
			       (unsigned long long)old->size);
	if (!digest(bytes, n, digits) || strncmp(digits, old->object, DIGEST_DIGITS) != 0)
		return err_set(err, -EIO, "it has other bytes than its name says");
	int rc = user_block_new(tree_arena(t), old->size, bytes, n, &b, err);
	if (rc)
		return rc;
	b->object = old->object;
	tree_edit(t, 0)->group.user_block = b;
	return 0;
}

/* ---- the document ---- */

static int parse(struct schema_ctx *ctx, const json_t *v, struct user_block **out, struct err *err)
{
	const json_t *object = json_object_get(v, "object"), *value = json_object_get(v, "value");
	uint64_t size;
	if (!schema_count(json_object_get(v, "size"), &size))
		return err_set(err, -EIO, "size: missing, or not a number");
	if (!user_block_is_size(size) || size > USER_BLOCK_MAX)
		return err_set(err, -EIO,
			       "size: %llu is not a power of two from %d to %d, as that of a user "
			       "block is",
			       (unsigned long long)size, USER_BLOCK_MIN, USER_BLOCK_MAX);
	if (json_is_string(value)) {
		auto_bytes struct bytes bytes = {0};
		int rc = base64_decode(json_string_value(value), json_string_length(value), &bytes);
		if (rc)
			return err_set(err, rc == -ENOMEM ? rc : -EIO, "value: not in base64");
		if (bytes.len > size || bytes.len > USER_BLOCK_SMALL)
			return err_set(err, -EIO, "value: %zu bytes are too many", bytes.len);
		return user_block_new(ctx->arena, size, bytes.data, bytes.len, out, err);
	}
	const char *name = json_is_string(object) ? json_string_value(object) : "";
	if (!schema_user_block_is_name(name))
		return err_set(err, -EIO, "neither \"value\" nor \"object\" has the bytes");
	int rc = user_block_new(ctx->arena, size, NULL, 0, out, err);
	if (rc)
		return rc;
	(*out)->object = arena_strndup(ctx->arena, name, NAME_LENGTH);
	return (*out)->object ? 0 : err_no_memory(err);
}

int schema_user_block_parse(struct schema_ctx *ctx, const json_t *v, struct object *o,
			    struct err *err)
{
	struct err why = ERR_INIT;
	struct user_block *b;
	if (!v || json_is_null(v))
		return 0;
	const int rc = parse(ctx, v, &b, &why);
	if (rc == -ENOMEM)
		return err_set(err, rc, "out of memory: the user block");
	if (rc)
		schema_skip(ctx, "member", "hsmount.userBlock", &why);
	else
		o->group.user_block = b;
	return 0;
}

bool schema_user_block_same(const struct user_block *a, const struct user_block *b)
{
	if (!a || !b)
		return a == b;
	if (a->object || b->object)
		return a->object && b->object && a->size == b->size &&
		       strcmp(a->object, b->object) == 0;
	return user_block_equal(a, b);
}

void schema_user_block_write(struct writer *w, const struct user_block *b)
{
	write_open(w, '{');
	write_member_uint(w, "size", b->size);
	if (b->object) {
		write_member_word(w, "object", b->object);
	} else {
		write_key(w, "value");
		write_base64(w, b->data, b->len);
	}
	write_close(w, '}');
}
