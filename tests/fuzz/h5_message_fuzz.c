/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object header messages. Input: message type (0xff: a shared message; 0xfe: a message in a file
 * with addresses and lengths of 4 bytes, whose type follows), body. Properties: a decoded message
 * can be encoded in the counted size and decoded again. Encoding the result again gives the same
 * bytes. A decoded datatype is equal to the first one. Elements of a file with short addresses are
 * not longer than widened ones, and can be widened.
 */
#include <stdlib.h>
#include <string.h>

#include <h5/message.h>
#include <h5/symtab.h>

#include "require.h"

enum { SHARED = 0xff, NARROW = 0xfe, ARENA_LIMIT = 64 << 20, WIDEN_MAX = 1 << 20 };

static const struct h5_file plain = {.addr_size = 8, .len_size = 8};
static const struct h5_file narrow = {.addr_size = 4, .len_size = 4};

union message {
	struct dspace dspace;
	const struct dtype *dtype;
	struct h5_fill fill;
	struct h5_layout layout;
	struct pipeline pipeline;
	struct h5_attr attr;
	struct h5_link link;
	struct h5_linfo linfo;
	struct h5_ainfo ainfo;
	uint32_t number;
	uint64_t addr;
	struct h5_efl efl;
	struct h5_symtab symtab;
	const char *text;
};

static int decode(const struct h5_file *f, uint8_t type, const uint8_t *body, size_t n,
		  struct arena *a, union message *m)
{
	struct cursor c = cursor_of(body, n);
	memset(m, 0, sizeof(*m));
	switch (type) {
	case H5_MSG_DATASPACE:
		return h5_dspace_decode(f, &c, a, &m->dspace, NULL);
	case H5_MSG_DATATYPE:
		return h5_dtype_decode(f, &c, a, &m->dtype, NULL);
	case H5_MSG_FILL:
		return h5_fill_decode(&c, &m->fill, NULL);
	case H5_MSG_LAYOUT:
		return h5_layout_decode(f, &c, &m->layout, NULL);
	case H5_MSG_PIPELINE:
		return h5_pipeline_decode(&c, a, &m->pipeline, NULL);
	case H5_MSG_ATTRIBUTE:
		return h5_attr_decode(f, &c, a, NULL, &m->attr, NULL);
	case H5_MSG_LINK:
		return h5_link_decode(f, &c, a, &m->link, NULL);
	case H5_MSG_LINK_INFO:
		return h5_linfo_decode(f, &c, &m->linfo, NULL);
	case H5_MSG_ATTRIBUTE_INFO:
		return h5_ainfo_decode(f, &c, &m->ainfo, NULL);
	case H5_MSG_REFCOUNT:
		return h5_refcount_decode(&c, &m->number, NULL);
	case H5_MSG_MTIME:
		return h5_mtime_decode(&c, &m->number, NULL);
	case H5_MSG_FILL_OLD:
		return h5_fill_old_decode(&c, &m->fill, NULL);
	case H5_MSG_EXTERNAL_FILES:
		return h5_efl_decode(f, &c, a, &m->efl, NULL);
	case H5_MSG_SYMBOL_TABLE:
		return h5_symtab_decode(f, &c, &m->symtab, NULL);
	case H5_MSG_COMMENT:
		return h5_comment_decode(&c, a, &m->text, NULL);
	case H5_MSG_MTIME_OLD:
		return h5_mtime_old_decode(&c, &m->number, NULL);
	case SHARED:
		return h5_shared_decode(f, &c, &m->addr, NULL);
	}
	return -1;
}

static void encode(uint8_t type, struct emit *e, const union message *m)
{
	switch (type) {
	case H5_MSG_DATASPACE:
		h5_dspace_encode(e, &m->dspace);
		break;
	case H5_MSG_DATATYPE:
		h5_dtype_encode(e, m->dtype);
		break;
	case H5_MSG_FILL:
		h5_fill_encode(e, &m->fill);
		break;
	case H5_MSG_LAYOUT:
		h5_layout_encode(e, &m->layout);
		break;
	case H5_MSG_PIPELINE:
		h5_pipeline_encode(e, &m->pipeline);
		break;
	case H5_MSG_ATTRIBUTE:
		h5_attr_encode(e, &m->attr);
		break;
	case H5_MSG_LINK:
		h5_link_encode(e, &m->link);
		break;
	case H5_MSG_LINK_INFO:
		h5_linfo_encode(e, &m->linfo);
		break;
	case H5_MSG_ATTRIBUTE_INFO:
		h5_ainfo_encode(e, &m->ainfo);
		break;
	case H5_MSG_REFCOUNT:
		h5_refcount_encode(e, m->number);
		break;
	case H5_MSG_COMMENT:
		h5_comment_encode(e, m->text);
		break;
	case SHARED:
		h5_shared_encode(e, m->addr);
		break;
	}
}

/* A heap block of exactly the counted size. NULL: the encoding does not fit, because the datatype
 * of an attribute becomes longer than 16 bits allow. */
static uint8_t *encode_exact(uint8_t type, const union message *m, size_t *n)
{
	struct emit count = emit_count();
	encode(type, &count, m);
	if (count.bad)
		return NULL;
	uint8_t *buf = malloc(count.pos ? count.pos : 1);
	require(buf);
	struct emit e = emit_to(buf, count.pos);
	encode(type, &e, m);
	require(!e.bad && e.pos == count.pos);
	*n = count.pos;
	return buf;
}

static bool has_encoder(uint8_t type)
{
	return type != H5_MSG_EXTERNAL_FILES && type != H5_MSG_SYMBOL_TABLE &&
	       type != H5_MSG_MTIME && type != H5_MSG_MTIME_OLD && type != H5_MSG_FILL_OLD;
}

static void check_narrow(uint8_t type, const uint8_t *body, size_t n, struct arena *a)
{
	union message m;
	if (decode(&narrow, type, body, n, a, &m) || type != H5_MSG_DATATYPE)
		return;
	const uint32_t size = h5_dtype_file_size(&narrow, m.dtype);
	require(size && size <= m.dtype->size);
	if (m.dtype->size > WIDEN_MAX)
		return;
	auto_free uint8_t *in = malloc(2 * (size_t)size), *out = malloc(2 * (size_t)m.dtype->size);
	require(in && out);
	memset(in, 0x5a, 2 * (size_t)size);
	require(!h5_dtype_widen(&narrow, m.dtype, in, 2, out, NULL));
	require(!memcmp(out, out + m.dtype->size, m.dtype->size));
}

static void check(uint8_t type, const uint8_t *body, size_t n, struct arena *a)
{
	union message first, second;
	if (decode(&plain, type, body, n, a, &first) || !has_encoder(type))
		return;
	size_t once_len, twice_len;
	auto_free uint8_t *once = encode_exact(type, &first, &once_len);
	if (!once)
		return;
	require(!decode(&plain, type, once, once_len, a, &second));
	auto_free uint8_t *twice = encode_exact(type, &second, &twice_len);
	require(twice && once_len == twice_len && !memcmp(once, twice, once_len));
	if (type == H5_MSG_DATATYPE)
		require(dtype_equal(first.dtype, second.dtype));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct arena *a = arena_new(ARENA_LIMIT);
	require(a);
	/* A separate block, so that address sanitizer detects an overrun at either end. */
	auto_free uint8_t *body = malloc(size > 1 ? size - 1 : 1);
	require(body);
	memcpy(body, data + 1, size - 1);
	if (data[0] == NARROW && size > 1)
		check_narrow(body[0], body + 1, size - 2, a);
	else
		check(data[0], body, size - 1, a);
	arena_free(a);
	return 0;
}
