/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter pipeline message, 0x0b (Spec IV.A.2.l). Pure functions.
 *
 * Version 1 (encoded):                      Version 2:
 *   +0 u8   version, 1                        +0 u8   version, 2
 *   +1 u8   number of filters                 +1 u8   number of filters
 *   +2 6    reserved                          +2      filters
 *   +8      filters
 *
 * A filter:
 *   u16  id
 *   u16  name length with NUL: a multiple of 8 in version 1; absent in version 2 when id < 256
 *   u16  flags: bit 0 optional
 *   u16  number of client values
 *        name, NUL-padded to its length
 *   u32  client values, in version 1 padded to an even number
 */
#include <string.h>

#include <h5/message.h>

#include "msg.h"

enum { FLAG_OPTIONAL = 1 << 0, FIRST_NAMED_ID = 256, NAME_ALIGN = 8 };

/* Returns the name of a filter in the message. Filters of libhdf5 have fixed names. */
static const char *stored_name(const struct filter *f)
{
	static const char *const builtin[] = {
		[FILTER_DEFLATE] = "deflate",
		[FILTER_SHUFFLE] = "shuffle",
		[FILTER_FLETCHER32] = "fletcher32",
		[FILTER_SZIP] = "szip",
		[FILTER_NBIT] = "nbit",
		[FILTER_SCALEOFFSET] = "scaleoffset",
	};
	if (f->id < sizeof(builtin) / sizeof(builtin[0]) && builtin[f->id])
		return builtin[f->id];
	return f->name;
}

static void encode_filter(struct emit *e, const struct filter *f)
{
	const char *name = stored_name(f);
	size_t len = name ? strlen(name) + 1 : 0;
	emit_u16(e, (uint16_t)f->id);
	h5_emit_len16(e, align_u64(len, NAME_ALIGN));
	/* As in libhdf5, fletcher32 is mandatory and all other filters are optional. */
	emit_u16(e, f->id == FILTER_FLETCHER32 ? 0 : FLAG_OPTIONAL);
	emit_u16(e, (uint16_t)f->nparams);
	size_t from = e->pos;
	emit_bytes(e, name, len);
	emit_align(e, from, NAME_ALIGN);
	for (uint32_t i = 0; i < f->nparams; i++)
		emit_u32(e, f->params[i]);
	if (f->nparams % 2)
		emit_u32(e, 0);
}

void h5_pipeline_encode(struct emit *e, const struct pipeline *p)
{
	emit_u8(e, 1);
	emit_u8(e, (uint8_t)p->n);
	emit_zero(e, 6);
	for (uint32_t i = 0; i < p->n; i++)
		encode_filter(e, &p->f[i]);
}

static int decode_filter(struct cursor *c, uint8_t version, struct arena *a, struct filter *f,
			 struct err *err)
{
	f->id = cur_u16(c);
	uint16_t name_len = version == 1 || f->id >= FIRST_NAMED_ID ? cur_u16(c) : 0;
	cur_skip(c, 2); /* flags; the filter mask of a chunk shows which filters were skipped */
	f->nparams = cur_u16(c);
	const uint8_t *name = cur_bytes(c, name_len);
	int rc = h5_msg_end(c, "filter pipeline", err);
	if (rc)
		return rc;
	if (version == 1 && name_len % NAME_ALIGN)
		return err_set(err, -EIO,
			       "filter pipeline: the name takes %u bytes, not a multiple of 8",
			       name_len);
	struct cursor values = cur_sub(c, (size_t)f->nparams * 4);
	uint32_t *params = cur_ok(c) ? arena_alloc(a, (size_t)f->nparams * 4) : NULL;
	if (cur_ok(c) && !params && f->nparams)
		return err_set(err, -ENOMEM, "filter pipeline: out of memory");
	for (uint32_t i = 0; params && i < f->nparams; i++)
		params[i] = cur_u32(&values);
	f->params = params;
	if (version == 1 && f->nparams % 2)
		cur_skip(c, 4);
	rc = h5_msg_end(c, "filter pipeline", err);
	if (rc)
		return rc;
	f->name = name_len ? arena_strndup(a, (const char *)name,
					   strnlen((const char *)name, name_len))
			   : NULL;
	if (name_len && !f->name)
		return err_set(err, -ENOMEM, "filter pipeline: out of memory");
	f->name = stored_name(f);
	return 0;
}

int h5_pipeline_decode(struct cursor *c, struct arena *a, struct pipeline *p, struct err *err)
{
	*p = (struct pipeline){.n = 0};
	uint8_t version = cur_u8(c), n = cur_u8(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "filter pipeline", err);
	if (version != 1 && version != 2)
		return h5_msg_version(version, "filter pipeline", err);
	if (!n || n > FILTER_MAX)
		return err_set(err, -EIO, "filter pipeline: invalid number of filters %u", n);
	if (version == 1)
		cur_skip(c, 6);
	for (uint8_t i = 0; i < n; i++) {
		int rc = decode_filter(c, version, a, &p->f[i], err);
		if (rc)
			return rc;
	}
	p->n = n;
	return 0;
}
