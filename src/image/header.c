/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers: which messages an object has, in libhdf5's order. A header is encoded twice, once
 * to learn its size and once for good; both runs take this one path.
 */
#include "plan.h"

#include <errno.h>
#include <string.h>

#include <h5/message.h>
#include <h5/ohdr.h>

enum {
	FILE_NAME_MAX = 4096,
	MIN_CHUNK = 22, /* bytes of messages, with their prefixes */
};

/* A header under construction. Bodies lie in `scratch` back to back; while sizing only their
 * lengths are kept. */
struct builder {
	struct h5_msg *msgs;
	uint32_t n, cap;
	struct bytes scratch;
	bool sizing;
	int rc;
};

typedef void (*encode_fn)(struct emit *e, const void *arg);

static void add(struct builder *b, uint8_t type, uint8_t flags, encode_fn encode, const void *arg)
{
	struct emit count = emit_count();

	if (b->rc)
		return;
	if (b->n == b->cap) {
		uint32_t cap = b->cap ? 2 * b->cap : 16;
		struct h5_msg *msgs = reallocarray(b->msgs, cap, sizeof(*msgs));

		if (!msgs) {
			b->rc = -ENOMEM;
			return;
		}
		b->msgs = msgs;
		b->cap = cap;
	}
	encode(&count, arg);
	if (count.pos > IMAGE_MESSAGE_MAX) {
		b->rc = -E2BIG;
		return;
	}
	if (!b->sizing) {
		b->rc = bytes_reserve(&b->scratch, count.pos);
		if (b->rc)
			return;
		struct emit e = emit_to(b->scratch.data + b->scratch.len, count.pos);

		encode(&e, arg);
		b->scratch.len += count.pos;
	}
	b->msgs[b->n++] = (struct h5_msg){.type = type, .flags = flags, .len = (uint32_t)count.pos};
}

static void put_dspace(struct emit *e, const void *arg)
{
	h5_dspace_encode(e, arg);
}

static void put_dtype(struct emit *e, const void *arg)
{
	h5_dtype_encode(e, arg);
}

static void put_shared(struct emit *e, const void *arg)
{
	h5_shared_encode(e, *(const uint64_t *)arg);
}

static void put_fill(struct emit *e, const void *arg)
{
	h5_fill_encode(e, arg);
}

static void put_layout(struct emit *e, const void *arg)
{
	h5_layout_encode(e, arg);
}

static void put_pipeline(struct emit *e, const void *arg)
{
	h5_pipeline_encode(e, arg);
}

static void put_attr(struct emit *e, const void *arg)
{
	h5_attr_encode(e, arg);
}

static void put_link(struct emit *e, const void *arg)
{
	h5_link_encode(e, arg);
}

static void put_linfo(struct emit *e, const void *arg)
{
	h5_linfo_encode(e, arg);
}

static void put_ginfo(struct emit *e, const void *arg)
{
	h5_ginfo_encode(e, arg);
}

static void put_ainfo(struct emit *e, const void *arg)
{
	h5_ainfo_encode(e, arg);
}

static void put_refcount(struct emit *e, const void *arg)
{
	h5_refcount_encode(e, *(const uint32_t *)arg);
}

static void add_type(struct builder *b, const struct image *img, const struct dtype *t,
		     uint32_t committed)
{
	if (committed == OBJECT_NONE)
		add(b, H5_MSG_DATATYPE, H5_MSG_CONSTANT, put_dtype, t);
	else
		add(b, H5_MSG_DATATYPE, H5_MSG_CONSTANT | H5_MSG_SHARED, put_shared,
		    &img->header_addr[committed]);
}

/* What was never written is fill to the service whatever the fill time; to libhdf5 it is whatever
 * its memory holds where fill values are never written. So "never" stands only where every chunk
 * has a slot. HDF5 has no never-written vlen: its elements are filled when they are allocated. */
static enum fill_time shown_fill_time(const struct image_dataset *d)
{
	const struct dataset *ds = d->ds;

	if (ds->fill_time != FILL_TIME_NEVER)
		return ds->fill_time;
	if (ds->type->has_vlen)
		return FILL_TIME_ALLOC;
	return d->nslots == ds->grid.nchunks ? FILL_TIME_NEVER : FILL_TIME_IFSET;
}

static void add_dataset(struct builder *b, const struct image_dataset *d)
{
	const struct dataset *ds = d->ds;
	const struct h5_fill fill = {
		.alloc_time = d->chunked ? ALLOC_TIME_INCR : ALLOC_TIME_LATE,
		.fill_time = shown_fill_time(d),
		.defined = true,
		.size = ds->fill_defined && !d->fill_hidden ? ds->type->size : 0,
		.value = d->fill.fixed.data,
	};
	struct h5_layout layout = {
		.cls = d->chunked ? LAYOUT_CHUNKED : LAYOUT_CONTIGUOUS,
		.addr = d->chunked ? d->index_addr : d->raw_addr,
		.size = ds->space.nelems * ds->type->size,
		.elem_size = ds->type->size,
	};

	if (d->chunked) {
		layout.rank = ds->grid.rank;
		for (uint32_t k = 0; k < layout.rank; k++)
			layout.chunk[k] = ds->grid.chunk[k];
	}
	add(b, H5_MSG_DATASPACE, 0, put_dspace, &ds->space);
	add_type(b, d->image, ds->type, ds->committed);
	add(b, H5_MSG_FILL, H5_MSG_CONSTANT, put_fill, &fill);
	add(b, H5_MSG_LAYOUT, 0, put_layout, &layout);
	if (d->filtered) {
		struct pipeline filters;

		dataset_filters(d, &filters);
		add(b, H5_MSG_PIPELINE, H5_MSG_CONSTANT, put_pipeline, &filters);
	}
}

static void add_group(struct builder *b, const struct image *img, const struct image_object *io)
{
	const struct object *o = &io->mo->o;
	const struct dense_addrs dense = links_addrs(img, io);
	const struct h5_linfo linfo = {
		.tracked = true,
		.indexed = true,
		.max_corder = o->group.nlinks,
		.heap = io->links_dense ? dense.heap : H5_UNDEF,
		.names = io->links_dense ? dense.names : H5_UNDEF,
		.corders = io->links_dense ? dense.corders : H5_UNDEF,
	};
	const struct h5_ginfo ginfo = {
		.has_phase = true, .max_compact = IMAGE_MAX_COMPACT, .min_dense = IMAGE_MIN_DENSE};

	add(b, H5_MSG_LINK_INFO, 0, put_linfo, &linfo);
	add(b, H5_MSG_GROUP_INFO, H5_MSG_CONSTANT, put_ginfo, &ginfo);
	for (uint32_t i = 0; !io->links_dense && i < o->group.nlinks; i++) {
		char file[FILE_NAME_MAX];
		struct h5_link link;

		link_message(img, o, i, &link, file, sizeof(file));
		add(b, H5_MSG_LINK, 0, put_link, &link);
	}
}

static void add_attrs(struct builder *b, const struct image *img, const struct image_object *io)
{
	const struct object *o = &io->mo->o;
	const struct dense_addrs dense = attrs_addrs(img, io);
	const struct h5_ainfo ainfo = {
		.tracked = o->attrs_ordered,
		.indexed = o->attrs_ordered,
		.max_corder = (uint16_t)o->nattrs,
		.heap = io->attrs_dense ? dense.heap : H5_UNDEF,
		.names = io->attrs_dense ? dense.names : H5_UNDEF,
		.corders = io->attrs_dense && o->attrs_ordered ? dense.corders : H5_UNDEF,
	};

	if (o->nattrs == 0 && !o->attrs_ordered)
		return;
	add(b, H5_MSG_ATTRIBUTE_INFO, H5_MSG_DONT_SHARE, put_ainfo, &ainfo);
	for (uint32_t i = 0; !io->attrs_dense && i < o->nattrs; i++) {
		struct h5_attr attr;

		attr_message(img, io, i, &attr);
		add(b, H5_MSG_ATTRIBUTE, 0, put_attr, &attr);
		if (!b->rc)
			b->msgs[b->n - 1].corder = (uint16_t)i;
	}
}

static uint32_t seconds(int64_t ns)
{
	return ns > 0 ? (uint32_t)min_u64((uint64_t)ns / 1000000000, UINT32_MAX) : 0;
}

static void put_zeros(struct emit *e, const void *arg)
{
	emit_zero(e, *(const size_t *)arg);
}

/* libhdf5 keeps room for a continuation message in every header: when one grows, its only message
 * may have to be replaced by the way to another block. */
static void pad(struct builder *b, const struct object *o)
{
	const size_t prefix = o->attrs_ordered ? 6 : 4;
	size_t size = 0;

	for (uint32_t i = 0; i < b->n; i++)
		size += prefix + b->msgs[i].len;
	if (size >= MIN_CHUNK)
		return;
	const size_t room = size + prefix < MIN_CHUNK ? MIN_CHUNK - size - prefix : 0;

	add(b, H5_MSG_NIL, 0, put_zeros, &room);
}

static void finish(struct emit *e, struct builder *b, const struct object *o)
{
	const struct h5_ohdr header = {
		.attr_order_tracked = o->attrs_ordered,
		.attr_order_indexed = o->attrs_ordered,
		.has_times = true,
		.atime = seconds(o->modified_ns),
		.mtime = seconds(o->modified_ns),
		.ctime = seconds(o->modified_ns),
		.btime = seconds(o->created_ns),
		.n = b->n,
		.msgs = b->msgs,
	};
	size_t at = 0;

	for (uint32_t i = 0; !b->sizing && i < b->n; i++) {
		b->msgs[i].body = b->scratch.data + at;
		at += b->msgs[i].len;
	}
	h5_ohdr_encode(e, &header);
}

int header_encode(struct emit *e, const struct image *img, const struct image_object *io,
		  bool sizing, struct err *err)
{
	const struct object *o = &io->mo->o;
	struct builder b = {.sizing = sizing};

	if (o->kind == OBJECT_DATASET)
		add_dataset(&b, &img->datasets[io->dataset]);
	else if (o->kind == OBJECT_DATATYPE)
		add(&b, H5_MSG_DATATYPE, H5_MSG_CONSTANT, put_dtype, o->datatype);
	else
		add_group(&b, img, io);
	add_attrs(&b, img, io);
	if (io->mo->refcount != 1)
		add(&b, H5_MSG_REFCOUNT, 0, put_refcount, &io->mo->refcount);
	pad(&b, o);
	int rc = 0;
	if (b.rc)
		rc = err_set(err, b.rc,
			     b.rc == -E2BIG ? "a header message is larger than %d bytes"
					    : "out of memory: a header (messages of %d bytes)",
			     IMAGE_MESSAGE_MAX);
	else
		finish(e, &b, o);
	free(b.msgs);
	bytes_release(&b.scratch);
	return rc;
}
