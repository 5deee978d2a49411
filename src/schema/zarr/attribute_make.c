/* SPDX-License-Identifier: Apache-2.0 */
/* Makes attributes of texts and of plain elements. Types that many attributes have are shared.
 * Pure. */
#include "model_internal.h"

#include <errno.h>

#include <base/utf8.h>

enum { FIXED_TEXT_MAX = 64 << 10 /* bytes; a longer text has variable length */ };

const struct dtype *zarr_string_type(struct zarr_build *b, size_t size, enum dtype_cset cset,
				     struct err *err)
{
	const struct dtype **shared =
		size < ZARR_STRING_TYPES ? &b->types.string[cset][size] : NULL;
	if (shared && *shared)
		return *shared;
	const struct dtype *t =
		dtype_string(b->arena, (uint32_t)size, DTYPE_PAD_NULLTERM, cset, err);
	if (shared)
		*shared = t;
	return t;
}

static const struct dtype *vlen_type(struct zarr_build *b, struct err *err)
{
	if (!b->types.vlen_string)
		b->types.vlen_string =
			dtype_vlen_string(b->arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, err);
	return b->types.vlen_string;
}

static int add_item(struct elems *value, const char *text, size_t n)
{
	uint8_t elem[DTYPE_VLEN_SIZE];
	uint64_t offset;
	const int rc = elems_heap_add(value, text, n, &offset);
	if (rc)
		return rc;
	elems_put_vlen(elem, (uint32_t)n, offset);
	return bytes_append(&value->fixed, elem, sizeof(elem));
}

int zarr_attribute_text(struct zarr_build *b, struct attribute *a, const char *name,
			const char *text, size_t n, struct err *err)
{
	const enum dtype_cset cset = utf8_is_ascii(text, n) ? DTYPE_CSET_ASCII : DTYPE_CSET_UTF8;
	*a = (struct attribute){.name = name, .committed = OBJECT_NONE};
	dspace_scalar(&a->space);
	a->type =
		n > FIXED_TEXT_MAX ? vlen_type(b, err) : zarr_string_type(b, n ? n : 1, cset, err);
	if (!a->type)
		return -ENOMEM;
	int rc;
	if (n > FIXED_TEXT_MAX)
		rc = add_item(&a->value, text, n);
	else
		rc = bytes_append(&a->value.fixed, n ? text : "", n ? n : 1);
	if (rc)
		elems_release(&a->value);
	return rc ? err_errno(err, rc, "attribute") : 0;
}

int zarr_attribute_plain(struct zarr_build *b, struct attribute *a, const char *name,
			 const struct dtype *type, uint64_t n, bool is_scalar, const void *bytes,
			 struct err *err)
{
	*a = (struct attribute){.name = name, .type = type, .committed = OBJECT_NONE};
	int rc = 0;
	if (is_scalar)
		dspace_scalar(&a->space);
	else
		rc = zarr_space(b, &a->space, 1, &n, NULL, err);
	if (!rc)
		rc = bytes_append(&a->value.fixed, bytes, n * type->size);
	return rc ? err_errno(err, -ENOMEM, "attribute") : 0;
}

int zarr_attribute_texts(struct zarr_build *b, struct attribute *a, uint64_t n, struct err *err)
{
	a->type = vlen_type(b, err);
	if (!a->type)
		return -ENOMEM;
	const int rc = zarr_space(b, &a->space, 1, &n, NULL, err);
	return rc ? err_errno(err, -ENOMEM, "attribute") : 0;
}

int zarr_attribute_add_text(struct attribute *a, const char *text, size_t n, struct err *err)
{
	const int rc = add_item(&a->value, text, n);
	return rc ? err_errno(err, -ENOMEM, "attribute") : 0;
}
