/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense storage: if an object has many links or attributes, or large ones, their messages are in a
 * fractal heap instead of the header. Two version 2 B-trees index them by name and by creation
 * order. In the file: name tree | creation order tree | heap. The sizes of the trees depend only on
 * the number of records, so all addresses are known before anything is encoded. Large attributes
 * have regions of their own (large_values.c).
 */
#include "image_plan.h"

#include <errno.h>
#include <string.h>

#include <base/checksum.h>
#include <h5/btree2.h>
#include <h5/fheap.h>
#include <h5/message.h>

enum { NODE_SIZE = 512, HEAP_ID_MAX = 8 };

/* One link or attribute in the heap. An array of entries is in creation order. */
struct entry {
	const char *name;
	uint32_t hash;
	uint8_t id[HEAP_ID_MAX];
};

/* The differences between dense storage of links and of attributes. */
struct kind {
	enum h5_bt2_type names, corders;
	uint16_t name_size, corder_size, id_len;
	const struct h5_fheap_params *heap;
};

static const struct kind link_kind = {
	.names = H5_BT2_LINK_NAME,
	.corders = H5_BT2_LINK_CORDER,
	.name_size = H5_BT2_LINK_NAME_SIZE,
	.corder_size = H5_BT2_LINK_CORDER_SIZE,
	.id_len = 7,
	.heap = &h5_fheap_links,
};

static const struct kind attr_kind = {
	.names = H5_BT2_ATTR_NAME,
	.corders = H5_BT2_ATTR_CORDER,
	.name_size = H5_BT2_ATTR_NAME_SIZE,
	.corder_size = H5_BT2_ATTR_CORDER_SIZE,
	.id_len = 8,
	.heap = &h5_fheap_attrs,
};

static uint64_t tree_size(enum h5_bt2_type type, uint16_t record_size, uint64_t n)
{
	const struct h5_bt2 t = {
		.type = type, .node_size = NODE_SIZE, .record_size = record_size, .n = n};
	return h5_bt2_size(&t);
}

static struct dense_addrs addrs_of(const struct kind *k, uint64_t addr, uint64_t n, bool ordered)
{
	struct dense_addrs a = {.names = addr, .corders = H5_UNDEF};
	uint64_t next = align_u64(addr + tree_size(k->names, k->name_size, n), 8);
	if (ordered) {
		a.corders = next;
		next = align_u64(next + tree_size(k->corders, k->corder_size, n), 8);
	}
	a.heap = next;
	return a;
}

struct dense_addrs links_addrs(const struct image_object *o)
{
	return addrs_of(&link_kind, o->links_addr, o->node->o.group.nlinks, true);
}

struct dense_addrs attrs_addrs(const struct image_object *o)
{
	return addrs_of(&attr_kind, o->attrs_addr, o->node->o.nattrs, o->node->o.attrs_ordered);
}

bool links_are_dense(const struct object *o)
{
	if (o->group.nlinks > IMAGE_MAX_COMPACT)
		return true;
	for (uint32_t i = 0; i < o->group.nlinks; i++) {
		const struct link *l = &o->group.links[i];
		size_t len = strlen(l->name) + (l->path ? strlen(l->path) : 0) +
			     IMAGE_FILE_NAME_MAX + 64;
		if (len > IMAGE_MESSAGE_MAX)
			return true;
	}
	return false;
}

/* Returns the bytes of the message of an attribute, or UINT64_MAX if it is too large for a header
 * message, or has too many bytes without a value. */
static uint64_t attr_size(const struct attribute *a)
{
	struct emit count = emit_count();
	const uint64_t len = attribute_bytes(a);
	if (len > IMAGE_MESSAGE_MAX || len - a->value.fixed.len > IMAGE_UNSET_MAX)
		return UINT64_MAX;
	h5_attr_encode(&count,
		       &(struct h5_attr){.name = a->name,
					 .type = a->type,
					 .committed = a->committed == OBJECT_NONE ? H5_UNDEF : 0,
					 .space = a->space,
					 .data_len = len});
	return count.pos > IMAGE_MESSAGE_MAX ? UINT64_MAX : count.pos;
}

bool attrs_are_dense(const struct object *o)
{
	const bool few = o->nattrs <= IMAGE_ATTRS_FEW;
	uint64_t sum = 0;
	if (o->nattrs > IMAGE_ATTRS_COMPACT)
		return true;
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const uint64_t size = attr_size(&o->attrs[i]);
		if (size == UINT64_MAX || (!few && size > IMAGE_ATTR_SMALL))
			return true;
		sum += size;
	}
	return !few && sum > IMAGE_ATTRS_BYTES;
}

static uint32_t hash_of(const struct entry *entry)
{
	return checksum_lookup3(entry->name, strlen(entry->name), 0);
}

/* The place of an entry in the tree of names. */
struct place {
	uint32_t hash, corder;
};

/* The order of name trees: by hash, then by name. */
static int by_hash(const void *a, const void *b, void *entries)
{
	const struct place *x = a, *y = b;
	const struct entry *all = entries;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return strcmp(all[x->corder].name, all[y->corder].name);
}

/* Returns NULL if out of memory. */
static struct place *sort_by_hash(struct entry *entries, uint32_t n)
{
	struct place *places = malloc(n * sizeof(*places));
	if (!places)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		places[i] = (struct place){.hash = entries[i].hash, .corder = i};
	qsort_r(places, n, sizeof(*places), by_hash, entries);
	return places;
}

/* The records are described in h5/btree2.h. */
static void put_record(struct emit *e, enum h5_bt2_type type, const struct entry *entry,
		       uint32_t corder)
{
	switch (type) {
	case H5_BT2_LINK_NAME:
		emit_u32(e, entry->hash);
		emit_bytes(e, entry->id, link_kind.id_len);
		break;
	case H5_BT2_LINK_CORDER:
		emit_u64(e, corder);
		emit_bytes(e, entry->id, link_kind.id_len);
		break;
	default:
		emit_bytes(e, entry->id, attr_kind.id_len);
		emit_u8(e, 0); /* message flags */
		emit_u32(e, corder);
		if (type == H5_BT2_ATTR_NAME)
			emit_u32(e, entry->hash);
		break;
	}
}

/* order is NULL for that of creation. */
static int encode_tree(struct emit *e, enum h5_bt2_type type, uint16_t record_size,
		       const struct entry *entries, const struct place *order, uint32_t n,
		       uint64_t addr, struct err *err)
{
	size_t len = (size_t)n * record_size;
	auto_free uint8_t *records = malloc(len);
	if (!records)
		return err_set(err, -ENOMEM, "out of memory: %u index records", n);
	struct emit r = emit_to(records, len);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t corder = order ? order[i].corder : i;
		put_record(&r, type, &entries[corder], corder);
	}
	h5_bt2_encode(e,
		      &(struct h5_bt2){.type = type,
				       .node_size = NODE_SIZE,
				       .record_size = record_size,
				       .n = n,
				       .records = records},
		      addr);
	return 0;
}

/* Encodes the storage. addr is the file address of the emitter's position. */
static int encode_storage(struct emit *e, const struct kind *k, struct entry *entries, uint32_t n,
			  bool ordered, const struct h5_fheap *heap, uint64_t addr, struct err *err)
{
	const struct dense_addrs at = addrs_of(k, addr, n, ordered);
	size_t from = e->pos;
	auto_free struct place *by_name = sort_by_hash(entries, n);
	if (!by_name)
		return err_set(err, -ENOMEM, "out of memory: %u names", n);
	int rc = encode_tree(e, k->names, k->name_size, entries, by_name, n, at.names, err);
	emit_align(e, from, 8);
	if (!rc && ordered) {
		rc = encode_tree(e, k->corders, k->corder_size, entries, NULL, n, at.corders, err);
		emit_align(e, from, 8);
	}
	if (!rc) {
		h5_fheap_encode(e, heap, at.heap);
		emit_align(e, from, 8);
	}
	return rc;
}

/* Encoded messages. The heap borrows those of huge objects until it is freed. */
struct bodies {
	struct bytes *list;
	uint32_t n;
};

typedef void (*encode_fn)(struct emit *e, const void *message);

static int insert(struct h5_fheap *heap, const struct kind *k, struct bytes *body, encode_fn encode,
		  const void *message, struct entry *entry, struct err *err)
{
	struct emit count = emit_count();
	encode(&count, message);
	if (count.bad)
		return err_set(err, -EIO, "a length in a message is larger than its field");
	int rc = bytes_reserve(body, count.pos);
	if (rc)
		return err_set(err, rc, "out of memory: a message of %zu bytes", count.pos);
	struct emit e = emit_to(body->data, count.pos);
	encode(&e, message);
	body->len = count.pos;
	entry->hash = hash_of(entry);
	rc = h5_fheap_insert(heap, body->data, body->len, entry->id, err);
	if (!rc && body->len <= k->heap->max_managed)
		bytes_release(body); /* the heap has a copy */
	return rc;
}

static void put_link(struct emit *e, const void *message)
{
	h5_link_encode(e, message);
}

static void put_attr(struct emit *e, const void *message)
{
	h5_attr_encode(e, message);
}

static int insert_link(struct h5_fheap *heap, const struct image *img, const struct image_object *o,
		       uint32_t i, struct bytes *body, struct entry *entry, struct err *err)
{
	char file[IMAGE_FILE_NAME_MAX];
	struct h5_link link;
	link_message(img, &o->node->o, i, &link, file);
	*entry = (struct entry){.name = link.name};
	return insert(heap, &link_kind, body, put_link, &link, entry, err);
}

static int insert_attr(struct h5_fheap *heap, const struct image *img, const struct image_object *o,
		       uint32_t i, struct bytes *body, struct entry *entry, struct err *err)
{
	const struct image_value *large = value_find(img, o, i);
	struct h5_attr attr;
	attr_message(img, o, i, &attr);
	*entry = (struct entry){.name = attr.name};
	if (large) {
		entry->hash = hash_of(entry);
		return h5_fheap_insert_apart(heap, large->addr, large->size, entry->id, err);
	}
	return insert(heap, &attr_kind, body, put_attr, &attr, entry, err);
}

typedef int (*insert_fn)(struct h5_fheap *heap, const struct image *img,
			 const struct image_object *o, uint32_t i, struct bytes *body,
			 struct entry *entry, struct err *err);

static int encode_dense(struct emit *e, const struct image *img, const struct image_object *o,
			const struct kind *k, uint32_t n, bool ordered, insert_fn insert_one,
			uint64_t addr, struct err *err)
{
	auto_free struct entry *entries = calloc(n, sizeof(*entries));
	struct bodies bodies = {.list = calloc(n, sizeof(*bodies.list)), .n = n};
	struct h5_fheap *heap = h5_fheap_new(k->heap);
	int rc = 0;
	if (!entries || !bodies.list || !heap) {
		bodies.n = bodies.list ? n : 0;
		rc = err_set(err, -ENOMEM, "out of memory: dense storage of %u", n);
	}
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = insert_one(heap, img, o, i, &bodies.list[i], &entries[i], err);
	if (!rc)
		rc = encode_storage(e, k, entries, n, ordered, heap, addr, err);
	h5_fheap_free(heap);
	for (uint32_t i = 0; i < bodies.n; i++)
		bytes_release(&bodies.list[i]);
	free(bodies.list);
	return rc;
}

int links_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, struct err *err)
{
	return encode_dense(e, img, o, &link_kind, o->node->o.group.nlinks, true, insert_link, addr,
			    err);
}

int attrs_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, struct err *err)
{
	return encode_dense(e, img, o, &attr_kind, o->node->o.nattrs, o->node->o.attrs_ordered,
			    insert_attr, addr, err);
}
