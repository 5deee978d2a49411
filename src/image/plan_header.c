/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object headers: the messages of each kind of object, in the order of libhdf5. A header is encoded
 * twice by the same functions: into a counting emitter to determine its size, then into memory.
 */
#include "image_plan.h"

#include <errno.h>

#include <h5/message.h>
#include <h5/ohdr.h>

/* H5O_MIN_SIZE of libhdf5: the messages of a header, with their prefixes, take at least as many
 * bytes as a continuation message (16) with the longest prefix (6). */
enum { MIN_MESSAGES = 22 };

/* A header under construction. The bodies of its messages lie back to back in `bodies`, which only
 * counts while the size of the header is determined. */
struct builder {
	struct h5_msg *msgs;
	uint32_t n;
	struct emit bodies;
	size_t start; /* of the last message's body in `bodies` */
	int rc;
};

/* Sets the length of the last message. */
static void end_message(struct builder *b)
{
	const size_t len = b->bodies.pos - b->start;
	if (b->rc || b->n == 0)
		return;
	if (len > IMAGE_MESSAGE_MAX)
		b->rc = -E2BIG;
	b->msgs[b->n - 1].len = (uint32_t)len;
	b->start = b->bodies.pos;
}

/* Begins a message. The caller encodes its body with the emitter that is returned. */
static struct emit *add(struct builder *b, uint8_t type, uint8_t flags)
{
	end_message(b);
	struct h5_msg *msgs = b->rc ? NULL : array_grow(b->msgs, b->n, sizeof(*msgs));
	if (msgs) {
		msgs[b->n++] = (struct h5_msg){.type = type, .flags = flags};
		b->msgs = msgs;
	} else if (!b->rc) {
		b->rc = -ENOMEM;
	}
	return &b->bodies;
}

/* In a domain, unwritten elements have the fill value whatever the fill time is. libhdf5 returns
 * uninitialized memory for missing chunks if the fill time is "never". So the header has "never"
 * only if every chunk has a slot. HDF5 does not permit "never" for variable-length types: they get
 * "at allocation". */
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
		.value = d->fill ? d->fill->fixed.data : NULL,
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
	h5_dspace_encode(add(b, H5_MSG_DATASPACE, 0), &ds->space);
	if (ds->committed == OBJECT_NONE)
		h5_dtype_encode(add(b, H5_MSG_DATATYPE, H5_MSG_CONSTANT), ds->type);
	else
		h5_shared_encode(add(b, H5_MSG_DATATYPE, H5_MSG_CONSTANT | H5_MSG_SHARED),
				 d->image->header_addr[ds->committed]);
	h5_fill_encode(add(b, H5_MSG_FILL, H5_MSG_CONSTANT), &fill);
	h5_layout_encode(add(b, H5_MSG_LAYOUT, 0), &layout);
	if (d->filtered) {
		struct pipeline filters;
		dataset_filters(d, &filters);
		h5_pipeline_encode(add(b, H5_MSG_PIPELINE, H5_MSG_CONSTANT), &filters);
	}
}

static void add_group(struct builder *b, const struct image *img, const struct image_object *io)
{
	const struct object *o = &io->node->o;
	const struct dense_addrs dense = links_addrs(io);
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
	h5_linfo_encode(add(b, H5_MSG_LINK_INFO, 0), &linfo);
	h5_ginfo_encode(add(b, H5_MSG_GROUP_INFO, H5_MSG_CONSTANT), &ginfo);
	for (uint32_t i = 0; !io->links_dense && i < o->group.nlinks; i++) {
		char file[IMAGE_FILE_NAME_MAX];
		struct h5_link link;
		link_message(img, o, i, &link, file);
		h5_link_encode(add(b, H5_MSG_LINK, 0), &link);
	}
}

static void add_attrs(struct builder *b, const struct image *img, const struct image_object *io)
{
	const struct object *o = &io->node->o;
	const struct dense_addrs dense = attrs_addrs(io);
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
	h5_ainfo_encode(add(b, H5_MSG_ATTRIBUTE_INFO, H5_MSG_DONT_SHARE), &ainfo);
	for (uint32_t i = 0; !io->attrs_dense && i < o->nattrs; i++) {
		struct h5_attr attr;
		attr_message(img, io, i, &attr);
		h5_attr_encode(add(b, H5_MSG_ATTRIBUTE, 0), &attr);
		if (!b->rc)
			b->msgs[b->n - 1].corder = (uint16_t)i;
	}
}

static uint32_t seconds(int64_t ns)
{
	return ns > 0 ? (uint32_t)min_u64((uint64_t)ns / 1000000000, UINT32_MAX) : 0;
}

/* libhdf5 never creates a header with less room. When a header has to grow and nothing else in it
 * can move, libhdf5 replaces its only message by a continuation message. */
static void pad(struct builder *b)
{
	const size_t prefix =
		4; /* where attribute order is tracked it is 6, and no header is short */
	const size_t size = b->n * prefix + b->bodies.pos;
	if (size >= MIN_MESSAGES)
		return;
	const size_t room = size + prefix < MIN_MESSAGES ? MIN_MESSAGES - size - prefix : 0;
	emit_zero(add(b, H5_MSG_NIL, 0), room);
}

static void add_messages(struct builder *b, const struct image *img, const struct image_object *io)
{
	const struct object *o = &io->node->o;
	if (o->kind == OBJECT_DATASET)
		add_dataset(b, &img->datasets[io->dataset]);
	else if (o->kind == OBJECT_DATATYPE)
		h5_dtype_encode(add(b, H5_MSG_DATATYPE, H5_MSG_CONSTANT), o->datatype);
	else
		add_group(b, img, io);
	add_attrs(b, img, io);
	if (o->comment)
		h5_comment_encode(add(b, H5_MSG_COMMENT, 0), o->comment);
	if (io->node->refcount != 1)
		h5_refcount_encode(add(b, H5_MSG_REFCOUNT, 0), io->node->refcount);
	pad(b);
	end_message(b);
	if (!b->rc && b->bodies.bad)
		b->rc = -EIO;
}

static void encode(struct emit *e, struct builder *b, const struct object *o)
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
	const uint8_t *body = b->bodies.buf;
	for (uint32_t i = 0; body && i < b->n; i++) {
		b->msgs[i].body = body;
		body += b->msgs[i].len;
	}
	h5_ohdr_encode(e, &header);
}

static int failed(int rc, struct err *err)
{
	switch (rc) {
	case -E2BIG:
		return err_set(err, rc, "a header message is larger than %d bytes",
			       IMAGE_MESSAGE_MAX);
	case -EIO:
		return err_set(err, rc, "a length in a message is larger than its field");
	default:
		return err_set(err, rc, "out of memory: an object header");
	}
}

int header_encode(struct emit *e, const struct image *img, const struct image_object *io,
		  struct err *err)
{
	auto_free uint8_t *bodies = e->buf ? malloc(io->header_size) : NULL;
	struct builder b = {.bodies = e->buf ? emit_to(bodies, io->header_size) : emit_count()};
	if (e->buf && !bodies)
		return failed(-ENOMEM, err);
	add_messages(&b, img, io);
	if (!b.rc)
		encode(e, &b, &io->node->o);
	free(b.msgs);
	return b.rc ? failed(b.rc, err) : 0;
}
