/* SPDX-License-Identifier: Apache-2.0 */
/* String types: {"class": "H5T_STRING", charSet, strPad, length}. This form is the same in the
 * service's types and in exact ones. Pure. */
#include "hdf5_type.h"

#include <string.h>

static const char *const pads[] = {
	[DTYPE_PAD_NULLTERM] = "H5T_STR_NULLTERM",
	[DTYPE_PAD_NULLPAD] = "H5T_STR_NULLPAD",
	[DTYPE_PAD_SPACEPAD] = "H5T_STR_SPACEPAD",
};
static const char *const csets[] = {
	[DTYPE_CSET_ASCII] = "H5T_CSET_ASCII",
	[DTYPE_CSET_UTF8] = "H5T_CSET_UTF8",
};

int schema_type_string(struct schema_ctx *ctx, const json_t *v, const struct dtype **out,
		       struct err *err)
{
	const json_t *length = json_object_get(v, "length");
	const char *word = json_string_value(length);
	const char *cset_word = json_text_word(v, "charSet");
	const char *pad_word = json_text_word(v, "strPad");
	bool variable = word && strcmp(word, "H5T_VARIABLE") == 0;
	const int known_cset = schema_word_index(cset_word, csets, DTYPE_CSET_UTF8 + 1);
	const int known_pad = schema_word_index(pad_word, pads, DTYPE_PAD_SPACEPAD + 1);
	if (cset_word && known_cset < 0)
		return err_set(err, -EIO, "unknown charSet \"%.64s\"", cset_word);
	if (pad_word && known_pad < 0)
		return err_set(err, -EIO, "unknown strPad \"%.64s\"", pad_word);
	const enum dtype_cset cset = cset_word ? (enum dtype_cset)known_cset : DTYPE_CSET_ASCII;
	const enum dtype_pad pad = pad_word   ? (enum dtype_pad)known_pad
				   : variable ? DTYPE_PAD_NULLTERM
					      : DTYPE_PAD_NULLPAD;
	if (variable) {
		return schema_built(dtype_vlen_string(ctx->arena, pad, cset, err), out, err);
	}
	uint64_t size;
	if (!schema_count(length, &size) || size == 0 || size > DTYPE_MAX_SIZE)
		return err_set(err, -EIO, length ? "length: not a size" : "length: missing");
	return schema_built(dtype_string(ctx->arena, (uint32_t)size, pad, cset, err), out, err);
}

void schema_write_string_type(struct writer *w, const struct dtype *t)
{
	const bool variable = t->cls == DTYPE_VLEN;
	const enum dtype_cset cset = variable ? t->vlen.cset : t->string.cset;
	write_member_word(w, "charSet", csets[cset]);
	write_member_word(w, "strPad", pads[variable ? t->vlen.pad : t->string.pad]);
	if (variable)
		write_member_word(w, "length", "H5T_VARIABLE");
	else
		write_member_uint(w, "length", t->size);
}
