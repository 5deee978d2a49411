/* SPDX-License-Identifier: Apache-2.0 */
#include "domain_headers.h"

#include <errno.h>

#include <h5/message.h>
#include <h5/ohdr.h>
#include <h5/superblock.h>

#include "require.h"

enum { HEADERS_MAX = 512 };

struct headers {
	struct h5_file file;
	struct arena *arena;
	uint64_t todo[HEADERS_MAX];
	size_t n;
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const ssize_t got = image_read(ctx, NULL, buf, n, offset, NULL, err);
	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : -EIO;
}

static void visit(struct headers *h, uint64_t addr)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->todo[i] == addr)
			return;
	if (h->n < HEADERS_MAX)
		h->todo[h->n++] = addr;
}

static int decode_attribute(struct headers *h, struct cursor *c, struct err *err)
{
	struct h5_attr attr;
	const int rc = h5_attr_decode(&h->file, c, h->arena, NULL, &attr, err);
	if (!rc && !attr.type)
		visit(h, attr.committed);
	return rc;
}

static int decode_link(struct headers *h, struct cursor *c, struct err *err)
{
	struct h5_link link;
	const int rc = h5_link_decode(&h->file, c, h->arena, &link, err);
	if (!rc && link.cls == LINK_HARD)
		visit(h, link.addr);
	return rc;
}

static int decode_datatype(struct headers *h, const struct h5_msg *msg, struct cursor *c,
			   struct err *err)
{
	const struct dtype *type;
	uint64_t addr;
	if (!(msg->flags & H5_MSG_SHARED))
		return h5_dtype_decode(&h->file, c, h->arena, &type, err);
	const int rc = h5_shared_decode(&h->file, c, &addr, err);
	if (!rc)
		visit(h, addr);
	return rc;
}

static int decode_message(struct headers *h, const struct h5_msg *msg, struct err *err)
{
	struct cursor c = cursor_of(msg->body, msg->len);
	struct dspace space;
	struct h5_fill fill;
	struct h5_layout layout;
	struct pipeline pipeline;
	struct h5_linfo linfo;
	struct h5_ainfo ainfo;
	switch (msg->type) {
	case H5_MSG_ATTRIBUTE:
		return decode_attribute(h, &c, err);
	case H5_MSG_LINK:
		return decode_link(h, &c, err);
	case H5_MSG_DATATYPE:
		return decode_datatype(h, msg, &c, err);
	case H5_MSG_DATASPACE:
		return h5_dspace_decode(&h->file, &c, h->arena, &space, err);
	case H5_MSG_FILL:
		return h5_fill_decode(&c, &fill, err);
	case H5_MSG_LAYOUT:
		return h5_layout_decode(&h->file, &c, &layout, err);
	case H5_MSG_PIPELINE:
		return h5_pipeline_decode(&c, h->arena, &pipeline, err);
	case H5_MSG_LINK_INFO:
		return h5_linfo_decode(&h->file, &c, &linfo, err);
	case H5_MSG_ATTRIBUTE_INFO:
		return h5_ainfo_decode(&h->file, &c, &ainfo, err);
	default:
		return 0;
	}
}

static void require_decoded(int rc, const char *what, uint64_t addr, const struct err *err)
{
	if (!rc)
		return;
	fprintf(stderr, "%s at %llu: %s\n", what, (unsigned long long)addr, err->msg);
	abort();
}

void check_headers(struct image *img)
{
	struct headers *h = calloc(1, sizeof(*h));
	struct source source = {.size = image_size(img), .read_at = read_at, .ctx = img};
	struct h5_superblock sb;
	uint8_t bytes[H5_SUPERBLOCK_SIZE];
	struct err err = ERR_INIT;
	require(h && (h->arena = arena_new((size_t)1 << 30)));
	h->file = h5_file_of(&source);
	h->file.base = image_base(img);
	require(read_at(img, image_base(img), bytes, sizeof(bytes), NULL) == 0);
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	require_decoded(h5_superblock_decode(&c, &sb, &err), "superblock", 0, &err);
	require(sb.eof == image_size(img) && sb.base == image_base(img));
	visit(h, sb.root);
	for (size_t i = 0; i < h->n; i++) {
		struct h5_ohdr header;
		require_decoded(h5_ohdr_decode(&h->file, h->todo[i], h->arena, &header, &err),
				"object header", h->todo[i], &err);
		for (uint32_t k = 0; k < header.n; k++)
			require_decoded(decode_message(h, &header.msgs[k], &err), "message",
					h->todo[i], &err);
	}
	arena_free(h->arena);
	free(h);
}
