/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object header messages (Spec IV.A.2): an encoder and a decoder for each. Encoders write the body
 * of the message; h5_ohdr_encode() adds its head. Decoders take a cursor over exactly the body,
 * allocate in an arena, and use only the sizes of addresses and lengths of the file.
 */
#ifndef H5_MESSAGE_H
#define H5_MESSAGE_H

#include <stdbool.h>

#include <data/dspace.h>
#include <data/dtype.h>
#include <data/filter.h>
#include <data/object.h>
#include <h5/format.h>

struct h5_shared; /* h5/shared.h */

/* Dataspace, 0x01. It is encoded as version 2, a simple one with maximum dimensions, as libhdf5
 * does, and decoded as version 1 and 2. */
void h5_dspace_encode(struct emit *e, const struct dspace *s);
int h5_dspace_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct dspace *s,
		     struct err *err);

/* Datatype, 0x03. It is encoded as version 1, or 2 if the type contains an array, as libhdf5 does
 * by default; as version 3 if it would otherwise not fit in a message. It is decoded as version 1
 * to 5; the decoded type does not point to the body. A complex number becomes a compound of the
 * members r and i, and a revised reference of HDF5 1.12 an object reference: only its elements tell
 * whether it is one. Decoding fails with -EOPNOTSUPP also for VAX floats. */
void h5_dtype_encode(struct emit *e, const struct dtype *t);
int h5_dtype_decode(const struct h5_file *f, struct cursor *c, struct arena *a,
		    const struct dtype **t, struct err *err);

/* A decoded type describes elements with addresses of 8 bytes. Where the file has shorter ones,
 * elements that contain variable-length data are shorter in the file, and region references differ:
 * in fill values, attribute data, raw data, and elements in global heaps. Revised references
 * (H5T_STD_REF) are longer in all files, and become object references. The caller reads n elements
 * of h5_dtype_file_size() bytes and widens them. */
uint32_t h5_dtype_file_size(const struct h5_file *f, const struct dtype *t);
/* Returns whether elements of a type differ in the file, so that widening is no copy. */
bool h5_dtype_widens(const struct h5_file *f, const struct dtype *t);
/* Widens n elements. in has n * h5_dtype_file_size() bytes, out n * t->size bytes. Padding is not
 * kept. Fails with -ENOMEM; if a revised reference leads to something else than an object of the
 * file, with -EOPNOTSUPP; and with -EIO if it is not valid. */
int h5_dtype_widen(const struct h5_file *f, const struct dtype *t, const uint8_t *in, uint64_t n,
		   uint8_t *out, struct err *err);

/* Shared message (flag H5_MSG_SHARED; Spec IV.A.2 "shared message"): the address of the object
 * header of a committed datatype. Encoded as version 2, decoded as 1, 2 and 3. */
void h5_shared_encode(struct emit *e, uint64_t addr);
int h5_shared_decode(const struct h5_file *f, struct cursor *c, uint64_t *addr, struct err *err);

/* Fill value, 0x05. It is encoded as version 2, and decoded as 1, 2 and 3. */
struct h5_fill {
	enum alloc_time alloc_time;
	enum fill_time fill_time;
	bool defined;
	uint32_t size;	      /* 0, if defined, stands for the default fill value (zeros) */
	const uint8_t *value; /* as in the file; see h5_dtype_widen(); borrowed */
};
void h5_fill_encode(struct emit *e, const struct h5_fill *f);
int h5_fill_decode(struct cursor *c, struct h5_fill *f, struct err *err);
/* Fill value (old), 0x04. Datasets may have both messages; then this one does not count. */
int h5_fill_old_decode(struct cursor *c, struct h5_fill *f, struct err *err);

/* Data layout, 0x08. It is encoded as version 3 (compact, contiguous, or chunked with a version 1
 * B-tree), and decoded as versions 1 to 5. Of virtual layouts and structured chunks (class 4) only
 * `raw` is decoded. */
enum h5_index_type { /* numbered as in version 4 of the message; 0 is a version 1 B-tree */
		     H5_INDEX_BTREE1 = 0,
		     H5_INDEX_SINGLE = 1,
		     H5_INDEX_IMPLICIT = 2,
		     H5_INDEX_FIXED_ARRAY = 3,
		     H5_INDEX_EXTENSIBLE_ARRAY = 4,
		     H5_INDEX_BTREE2 = 5,
};
struct h5_layout {
	enum layout_class cls; /* LAYOUT_CHUNKED also for virtual and structured data */
	enum raw_data raw;     /* RAW_STORED, RAW_VIRTUAL or RAW_STRUCTURED */
	uint64_t addr;	       /* of contiguous data or of the index; H5_UNDEF if not allocated */
	uint64_t size;	       /* bytes of compact or contiguous data; UINT64_MAX if not recorded
				  (contiguous, versions 1 and 2), so it is that of the elements */
	const uint8_t *data;   /* compact; borrowed */
	uint32_t rank;	       /* of the dataset, if chunked */
	uint32_t chunk[DSPACE_MAX_RANK];
	uint32_t elem_size; /* chunked */
	enum h5_index_type index;
	bool whole_edges;     /* partial edge chunks are not filtered */
	uint64_t single_size; /* of H5_INDEX_SINGLE with filters, stored bytes and filter mask */
	uint32_t single_mask;
	uint8_t stored_len; /* bytes of a chunk's stored size in an index, if the chunks are
			     * filtered; not for version 1 B-trees */
};
void h5_layout_encode(struct emit *e, const struct h5_layout *l);
int h5_layout_decode(const struct h5_file *f, struct cursor *c, struct h5_layout *l,
		     struct err *err);

/* Filter pipeline, 0x0b. It is encoded as version 1, and decoded as 1 and 2. The caller sets the
 * client data as libhdf5 writes them: the level for deflate, and the element size for shuffle.
 * Filters of libhdf5 always get the names that libhdf5 gives them. */
void h5_pipeline_encode(struct emit *e, const struct pipeline *p);
int h5_pipeline_decode(struct cursor *c, struct arena *a, struct pipeline *p, struct err *err);

/* Attribute, 0x0c. It is encoded as version 3, and decoded as 1, 2 and 3. */
struct h5_attr {
	const char *name; /* NUL-terminated */
	bool utf8;
	const struct dtype *type;
	uint64_t committed; /* address of the committed datatype; H5_UNDEF if not shared */
	struct dspace space;
	const uint8_t *data; /* as in the file; borrowed; may be NULL while the emitter counts */
	uint64_t data_len;   /* space.nelems * h5_dtype_file_size() */
};
void h5_attr_encode(struct emit *e, const struct h5_attr *a);
/* shared finds the bodies of a shared datatype or dataspace. If shared is NULL, the type of an
 * attribute with a committed datatype is NULL, and its data are the rest of the body; with other
 * shared parts, decoding fails with -EOPNOTSUPP. */
int h5_attr_decode(const struct h5_file *f, struct cursor *c, struct arena *a,
		   struct h5_shared *shared, struct h5_attr *out, struct err *err);

/* Link, 0x06, version 1. Paths and file names are NUL-terminated. The data of a user-defined link
 * are not decoded. */
struct h5_link {
	const char *name;
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

/* Link info, 0x02; group info, 0x0a; attribute info, 0x15; reference count, 0x16; modification
 * time, 0x12. */
struct h5_linfo {
	bool tracked, indexed;
	int64_t max_corder;	       /* the largest creation order plus one */
	uint64_t heap, names, corders; /* of dense storage; H5_UNDEF if there is none */
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

struct h5_ainfo {
	bool tracked, indexed;
	uint16_t max_corder;
	uint64_t heap, names, corders;
};
void h5_ainfo_encode(struct emit *e, const struct h5_ainfo *a);
int h5_ainfo_decode(const struct h5_file *f, struct cursor *c, struct h5_ainfo *a, struct err *err);

void h5_refcount_encode(struct emit *e, uint32_t count);
int h5_refcount_decode(struct cursor *c, uint32_t *count, struct err *err);
int h5_mtime_decode(struct cursor *c, uint32_t *seconds, struct err *err);
/* Modification time (old), 0x0e. */
int h5_mtime_old_decode(struct cursor *c, uint32_t *seconds, struct err *err);

/* Comment, 0x0d. The text is NUL-terminated and in the arena. */
void h5_comment_encode(struct emit *e, const char *comment);
int h5_comment_decode(struct cursor *c, struct arena *a, const char **comment, struct err *err);

/* External file list, 0x07. The raw data of a contiguous dataset are in these files, one after
 * another. */
struct h5_efl_slot {
	uint64_t name;	 /* offset of the file name in the heap, for h5_lheap_string() */
	uint64_t offset; /* of the data in the file */
	uint64_t size;	 /* bytes; UINT64_MAX if unlimited */
};
struct h5_efl {
	uint64_t heap; /* address of a local heap */
	uint16_t n;    /* > 0 */
	const struct h5_efl_slot *slots;
};
int h5_efl_decode(const struct h5_file *f, struct cursor *c, struct arena *a, struct h5_efl *out,
		  struct err *err);

#endif
