/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute message, 0x0c (Spec IV.A.2.m). Pure functions.
 *
 *   +0 u8   version
 *   +1 u8   flags: 0 datatype shared, 1 dataspace shared (version 1: reserved)
 *   +2 u16  length of name with NUL
 *   +4 u16  length of datatype
 *   +6 u16  length of dataspace
 *   +8 u8   character set of name (version 3)
 *           name, datatype, dataspace: in version 1 each is padded to a multiple of 8
 *           data
 *
 * Datatype and dataspace are the bodies of such messages, or of a shared message if their flag bit
 * is set. The encoder writes version 3.
 */
#include <string.h>

#include <h5/message.h>
#include <h5/shared.h>

#include "msg.h"

enum { FLAG_SHARED_TYPE = 1 << 0, FLAG_SHARED_SPACE = 1 << 1, PART_ALIGN = 8 };

static void encode_type(struct emit *e, const struct h5_attr *a)
{
	if (a->committed == H5_UNDEF)
		h5_dtype_encode(e, a->type);
	else
		h5_shared_encode(e, a->committed);
}

void h5_attr_encode(struct emit *e, const struct h5_attr *a)
{
	struct emit type = emit_count(), space = emit_count();
	size_t name_len = strlen(a->name) + 1;
	encode_type(&type, a);
	h5_dspace_encode(&space, &a->space);
	emit_u8(e, 3);
	emit_u8(e, a->committed == H5_UNDEF ? 0 : FLAG_SHARED_TYPE);
	h5_emit_len16(e, name_len);
	h5_emit_len16(e, type.pos);
	h5_emit_len16(e, space.pos);
	emit_u8(e, a->utf8 ? DTYPE_CSET_UTF8 : DTYPE_CSET_ASCII);
	emit_bytes(e, a->name, name_len);
	encode_type(e, a);
	h5_dspace_encode(e, &a->space);
	h5_emit_raw(e, a->data, a->data_len);
}

/* Returns the next n bytes. Skips their padding, which only version 1 has. */
static struct cursor part(struct cursor *c, uint8_t version, size_t n)
{
	struct cursor sub = cur_sub(c, n);
	if (version == 1)
		cur_skip(c, (size_t)(align_u64(n, PART_ALIGN) - n));
	return sub;
}

static int decode_name(struct cursor *c, struct arena *a, struct h5_attr *out, struct err *err)
{
	size_t len;
	const char *name = cur_cstr(c, &len);
	if (!name || !len || cur_left(c))
		return err_set(
			err, -EIO,
			"attribute: the name is empty or is not terminated by its last byte");
	out->name = arena_strndup(a, name, len);
	return out->name ? 0 : err_set(err, -ENOMEM, "attribute: out of memory");
}

static int decode_data(const struct h5_file *f, struct cursor *c, struct h5_attr *out,
		       struct err *err)
{
	uint64_t need = cur_left(c);
	/* The size of a shared datatype is not known here: data are the rest of the body. */
	if (out->type && (!mul_u64(out->space.nelems, h5_dtype_file_size(f, out->type), &need) ||
			  need > cur_left(c)))
		return err_set(err, -EIO, "attribute %s: the data are too short", out->name);
	out->data = cur_bytes(c, (size_t)need);
	out->data_len = need;
	return 0;
}

static int decode_type(const struct h5_file *f, struct cursor *type, bool is_shared,
		       struct arena *a, struct h5_shared *shared, struct h5_attr *out,
		       struct err *err)
{
	if (is_shared && !shared)
		return h5_shared_decode(f, type, &out->committed, err);
	struct cursor body = *type;
	int rc = is_shared ? h5_shared_resolve(shared, H5_MSG_DATATYPE, type, a, &body,
					       &out->committed, err)
			   : 0;
	return rc ? rc : h5_dtype_decode(f, &body, a, &out->type, err);
}

static int decode_space(const struct h5_file *f, struct cursor *space, bool is_shared,
			struct arena *a, struct h5_shared *shared, struct h5_attr *out,
			struct err *err)
{
	struct cursor body = *space;
	uint64_t committed;
	if (is_shared && !shared)
		return err_set(err, -EOPNOTSUPP, "the dataspace is shared");
	int rc = is_shared ? h5_shared_resolve(shared, H5_MSG_DATASPACE, space, a, &body,
					       &committed, err)
			   : 0;
	return rc ? rc : h5_dspace_decode(f, &body, a, &out->space, err);
}

int h5_attr_decode(const struct h5_file *f, struct cursor *c, struct arena *a,
		   struct h5_shared *shared, struct h5_attr *out, struct err *err)
{
	*out = (struct h5_attr){.committed = H5_UNDEF};
	uint8_t version = cur_u8(c), flags = cur_u8(c);
	uint16_t name_len = cur_u16(c), type_len = cur_u16(c), space_len = cur_u16(c);
	if (!cur_ok(c))
		return h5_msg_end(c, "attribute", err);
	if (version < 1 || version > 3)
		return h5_msg_version(version, "attribute", err);
	if (version == 1)
		flags = 0;
	uint8_t cset = version == 3 ? cur_u8(c) : DTYPE_CSET_ASCII;
	struct cursor name = part(c, version, name_len);
	struct cursor type = part(c, version, type_len);
	struct cursor space = part(c, version, space_len);
	int rc = h5_msg_end(c, "attribute", err);
	if (rc)
		return rc;
	if (cset > DTYPE_CSET_UTF8 || flags & ~(FLAG_SHARED_TYPE | FLAG_SHARED_SPACE))
		return err_set(err, -EIO, "attribute: invalid flags 0x%02x or character set %u",
			       flags, cset);
	out->utf8 = cset == DTYPE_CSET_UTF8;
	rc = decode_name(&name, a, out, err);
	if (rc)
		return rc;
	rc = decode_type(f, &type, flags & FLAG_SHARED_TYPE, a, shared, out, err);
	if (!rc)
		rc = decode_space(f, &space, flags & FLAG_SHARED_SPACE, a, shared, out, err);
	return rc ? err_wrap(err, rc, "attribute %s", out->name) : decode_data(f, c, out, err);
}
