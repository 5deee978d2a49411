/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object header messages (Spec IV.A.2): one encode/decode pair each. Encoders write the body of
 * the message alone; h5_ohdr_encode() frames it. Decoders get a cursor over exactly the body and
 * allocate in an arena; of the file they need the sizes of addresses and lengths alone.
 */
#ifndef H5_MESSAGE_H
#define H5_MESSAGE_H

#include <stdbool.h>

#include <data/dspace.h>
#include <data/dtype.h>
#include <data/filter.h>
#include <data/object.h>
#include <h5/format.h>

/* Dataspace, 0x01: encoded as version 2; a simple one always with its maximum, as libhdf5 does. */
void h5_dspace_encode(struct emit *e, const struct dspace *s);
int h5_dspace_decode(const struct h5_file *f, struct cursor *c, struct dspace *s, struct err *err);

/* Datatype, 0x03: version 1, or 2 for a type with an array inside, as libhdf5 writes by default.
 * Decoded as version 1, 2 and 3; what is decoded points into the arena alone. */
void h5_dtype_encode(struct emit *e, const struct dtype *t);
int h5_dtype_decode(struct cursor *c, struct arena *a, const struct dtype **t, struct err *err);

/* A message shared with a committed object (flag H5_MSG_SHARED; Spec IV.A.2 "shared message"),
 * version 2 (type 2): address of its object header. */
void h5_shared_encode(struct emit *e, uint64_t addr);
int h5_shared_decode(const struct h5_file *f, struct cursor *c, uint64_t *addr, struct err *err);

/* Fill value, 0x05: encoded as version 2, decoded as 1, 2 and 3. */
struct h5_fill {
	enum alloc_time alloc_time;
	enum fill_time fill_time;
	bool defined;
	uint32_t size;	      /* 0 with defined: the default (zeros) */
	const uint8_t *value; /* borrowed */
};
void h5_fill_encode(struct emit *e, const struct h5_fill *f);
int h5_fill_decode(struct cursor *c, struct h5_fill *f, struct err *err);

/* Data layout, 0x08: encoded as version 3 (compact, contiguous, chunked by version 1 B-tree);
 * decoded as version 3, and as 4 where it is not chunked. */
struct h5_layout {
	enum layout_class cls;
	uint64_t addr;	     /* contiguous data or B-tree; H5_UNDEF: not allocated */
	uint64_t size;	     /* contiguous: bytes; compact: bytes of data */
	const uint8_t *data; /* compact; borrowed */
	uint32_t rank;	     /* chunked: without the element-size dimension */
	uint32_t chunk[DSPACE_MAX_RANK];
	uint32_t elem_size; /* chunked */
};
void h5_layout_encode(struct emit *e, const struct h5_layout *l);
int h5_layout_decode(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
		     struct err *err);

/* Filter pipeline, 0x0b: encoded as version 1 with the names and client data that libhdf5 writes
 * (deflate: level; shuffle: element size), decoded as 1 and 2. params of each filter must be
 * complete; the names of the library's own filters are always its own. */
void h5_pipeline_encode(struct emit *e, const struct pipeline *p);
int h5_pipeline_decode(struct cursor *c, struct arena *a, struct pipeline *p, struct err *err);

/* Attribute, 0x0c: encoded as version 3, decoded as 1, 2 and 3. */
struct h5_attr {
	const char *name; /* NUL-terminated; its bytes and NUL are written */
	bool utf8;
	const struct dtype *type;
	uint64_t committed; /* address of the committed type, or H5_UNDEF */
	struct dspace space;
	const uint8_t *data; /* borrowed; NULL while only counting */
	uint64_t data_len;
};
void h5_attr_encode(struct emit *e, const struct h5_attr *a);
/* type stays NULL when it is shared (committed says where); data are then all that is left. */
int h5_attr_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct h5_attr *out,
		   struct err *err);

/* Link, 0x06: version 1. */
struct h5_link {
	const char *name; /* bytes, not NUL-terminated in the file */
	size_t name_len;
	bool utf8;
	bool has_corder;
	int64_t corder;
	enum link_class cls;
	uint64_t addr;	  /* hard */
	const char *path; /* soft, external */
	const char *file; /* external */
};
void h5_link_encode(struct emit *e, const struct h5_link *l);
int h5_link_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct h5_link *l,
		   struct err *err);

/* Link info 0x02, group info 0x0a, attribute info 0x15, reference count 0x16, modification time
 * 0x12. */
struct h5_linfo {
	bool tracked, indexed;
	int64_t max_corder;	       /* one more than the largest */
	uint64_t heap, names, corders; /* corders only when indexed; H5_UNDEF: compact */
};
void h5_linfo_encode(struct emit *e, const struct h5_linfo *l);
int h5_linfo_decode(const struct h5_file *f, struct cursor *c, struct h5_linfo *l, struct err *err);

struct h5_ginfo {
	bool has_phase;
	uint16_t max_compact, min_dense;
	bool has_estimate;
	uint16_t est_links, est_name_len;
};
void h5_ginfo_encode(struct emit *e, const struct h5_ginfo *g);
int h5_ginfo_decode(struct cursor *c, struct h5_ginfo *g, struct err *err);

struct h5_ainfo {
	bool tracked, indexed;
	uint16_t max_corder;
	uint64_t heap, names, corders;
};
void h5_ainfo_encode(struct emit *e, const struct h5_ainfo *a);
int h5_ainfo_decode(const struct h5_file *f, struct cursor *c, struct h5_ainfo *a, struct err *err);

void h5_refcount_encode(struct emit *e, uint32_t count);
int h5_refcount_decode(struct cursor *c, uint32_t *count, struct err *err);
void h5_mtime_encode(struct emit *e, uint32_t seconds);
int h5_mtime_decode(struct cursor *c, uint32_t *seconds, struct err *err);

#endif
