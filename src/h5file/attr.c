/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes: messages of the object header (compact), or a fractal heap with a version 2 B-tree of
 * names (dense). Either may be shared messages. They are in the order of their creation if the
 * object tracks it, and otherwise in that of the messages, in which libhdf5 lists them.
 */
#include "attr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"
#include "objects.h"
#include "values.h"

enum {
	RECORD_ID = 8,
	RECORD_SIZE = H5_BT2_ATTR_NAME_SIZE,
	CHARGE_INTERVAL = 1 << 20, /* bytes of values between two charges */
};

struct found {
	struct attribute attr;
	uint64_t committed; /* header of the committed datatype, or H5_UNDEF */
	uint32_t corder;    /* 0 if it is not tracked */
	size_t at;	    /* in the order of the messages, or of the B-tree */
};

struct reader {
	struct members m;
	bool tracked;
	struct bytes found; /* of struct found */
};

static int decode_value(struct reader *r, const struct h5_attr *a, struct elems *value,
			struct err *err)
{
	uint64_t n;
	auto_bytes struct bytes fixed = {0};
	if (!mul_u64(a->space.nelems, h5_dtype_file_size(&r->m.f->file, a->type), &n) ||
	    n > a->data_len)
		return err_set(err, -EIO,
			       "the value has %" PRIu64 " bytes, less than its elements need",
			       a->data_len);
	if (bytes_append(&fixed, a->data, (size_t)n))
		return err_no_memory(err);
	return values_decode(r->m.f, a->type, &fixed, a->space.nelems, value, err);
}

static int add(struct reader *r, const struct h5_attr *a, uint32_t corder, struct err *err)
{
	struct found x = {
		.committed = a->committed,
		.corder = r->tracked ? corder : 0,
		.at = r->found.len / sizeof(x),
	};
	x.attr = (struct attribute){
		.name = a->name, .type = a->type, .committed = OBJECT_NONE, .space = a->space};
	int rc = decode_value(r, a, &x.attr.value, err);
	if (rc)
		return err_wrap(err, rc, "attribute \"%s\"", a->name);
	r->m.f->value_bytes += x.attr.value.fixed.cap + x.attr.value.heap.cap;
	if (bytes_append(&r->found, &x, sizeof(x))) {
		elems_release(&x.attr.value);
		return err_no_memory(err);
	}
	/* An object may have thousands of attributes. */
	return r->m.f->value_bytes - r->m.f->values_charged > CHARGE_INTERVAL
		       ? objects_charge(r->m.f, err)
		       : 0;
}

static int add_body(struct reader *r, struct cursor *body, uint32_t corder, struct err *err)
{
	struct h5_attr a;
	int rc = h5_attr_decode(&r->m.f->file, body, tree_arena(r->m.f->tree), r->m.f->shared, &a,
				err);
	if (!rc)
		rc = add(r, &a, corder, err);
	return members_leave_out(&r->m, rc, err);
}

static int add_compact(void *ctx, const struct h5_msg *msg, struct cursor *body, struct err *err)
{
	return add_body(ctx, body, msg->corder, err);
}

/* Finds the message of a dense attribute. id is that in the heap of shared messages, or in that of
 * the object. */
static int find_dense(struct reader *r, const uint8_t *id, bool shared, struct bytes *object,
		      struct cursor *body, struct err *err)
{
	if (shared)
		return h5_shared_get(r->m.f->shared, H5_MSG_ATTRIBUTE, id, r->m.h->scratch, body,
				     err);
	int rc = h5_fheap_get(r->m.heap, id, RECORD_ID, (size_t)h5_file_size(&r->m.f->file), object,
			      err);
	*body = cursor_of(object->data, object->len);
	return rc;
}

static int add_dense(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	struct reader *r = ctx;
	auto_bytes struct bytes object = {0};
	struct cursor c = cursor_of(record, record_size), body;
	const uint8_t *id = cur_bytes(&c, RECORD_ID);
	const uint8_t flags = cur_u8(&c);
	const uint32_t corder = cur_u32(&c);
	if (record_size != RECORD_SIZE)
		return err_set(err, -EIO, "a B-tree record has %u bytes", record_size);
	int rc = find_dense(r, id, flags & H5_MSG_SHARED, &object, &body, err);
	return rc ? members_leave_out(&r->m, rc, err) : add_body(r, &body, corder, err);
}

static int read_dense(struct reader *r, struct err *err)
{
	struct h5_ainfo info;
	struct cursor body;
	bool is_read;
	int rc = header_find(r->m.f, r->m.h, H5_MSG_ATTRIBUTE_INFO, &body, err);
	if (rc <= 0)
		return rc;
	rc = h5_ainfo_decode(&r->m.f->file, &body, &info, err);
	if (rc)
		return rc;
	r->tracked = r->tracked || info.tracked;
	if (info.heap == H5_UNDEF)
		return 0;
	rc = members_dense(&r->m, info.heap, info.names, H5_BT2_ATTR_NAME, NULL, add_dense, r, err);
	return rc ? rc
		  : members_count_corders(&r->m, info.corders, H5_BT2_ATTR_CORDER, &is_read, err);
}

static int by_corder(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->corder != y->corder)
		return x->corder < y->corder ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	const int names = strcmp(x->attr.name, y->attr.name);
	return names ? names : (x->at > y->at) - (x->at < y->at);
}

/* Sorts the attributes. Of those with the same name only the first stays. Returns their number. */
static size_t sort(struct reader *r)
{
	struct found *all = (void *)r->found.data;
	size_t n = r->found.len / sizeof(*all), kept = 0;
	if (n)
		qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;
		if (!kept || strcmp(all[kept - 1].attr.name, all[i].attr.name) != 0) {
			all[kept++] = all[i];
			continue;
		}
		err_set(&why, -EIO, "attribute \"%s\" is there twice", all[i].attr.name);
		h5file_report(r->m.f, r->m.h->number, &why);
		elems_release(&all[i].attr.value);
	}
	r->found.len = kept * sizeof(*all);
	if (kept)
		qsort(all, kept, sizeof(*all), by_corder);
	return kept;
}

static int finish(struct reader *r, struct err *err)
{
	const size_t n = sort(r);
	struct found *all = (void *)r->found.data;
	struct object *o = tree_edit(r->m.f->tree, r->m.h->number);
	o->attrs_ordered = r->tracked;
	if (!n)
		return 0;
	struct attribute *attrs = arena_array(tree_arena(r->m.f->tree), n, sizeof(*attrs));
	if (!attrs)
		return err_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		int rc = all[i].committed == H5_UNDEF
				 ? 0
				 : objects_share(r->m.f, r->m.h->number, i, all[i].committed, err);
		if (rc)
			return rc;
		attrs[i] = all[i].attr;
	}
	o->attrs = attrs;
	o->nattrs = (uint32_t)n;
	r->found.len = 0;
	return 0;
}

int attr_read(struct h5file *f, const struct header *h, struct err *err)
{
	struct reader r = {.m = {.f = f, .h = h, .one = "an attribute"},
			   .tracked = h->h.attr_order_tracked};
	int rc = members_compact(&r.m, H5_MSG_ATTRIBUTE, add_compact, &r, err);
	if (!rc)
		rc = members_report(&r.m, "the attributes are not complete", read_dense(&r, err),
				    err);
	if (!rc)
		rc = finish(&r, err);
	struct found *all = (void *)r.found.data; /* those that finish() has not moved */
	for (size_t i = 0; i < r.found.len / sizeof(*all); i++)
		elems_release(&all[i].attr.value);
	bytes_release(&r.found);
	return rc;
}
