/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of an image, which the files of image/ share. It is built in three steps and constant
 * afterwards. Each step is a pass over the objects of the tree in breadth-first order:
 *
 *   1. storage (plan_dataset.c): the layout of each dataset and the sizes of its slots and heap
 * windows;
 *   2. addresses of headers and dense storage (image_plan.c): they are encoded into a counting
 * emitter; their sizes do not depend on addresses;
 *   3. bytes (image_plan.c): attribute values are converted to file form (relocate.c), which gives
 * the size of their global heaps. Then all later regions get their addresses, and headers and dense
 * storage are encoded into memory.
 *
 * Addresses are relative to the base address, the size of the user block, and so are all offsets
 * in image/ but those of image_read() and image_seek(). Pages are those of the file.
 *
 * Regions in file order:
 *   user block                                                           in the tree
 *   superblock | headers | dense storage | global heaps of attributes    one block of memory
 *   large attributes, each in a region of its own                        rendered when read
 *   chunk indexes                                                        rendered when read
 *   gap, if there is much raw data, or many chunks of datasets that are  a hole
 *   to be apart
 *   raw data, a run of slots for each dataset                            chunks
 *   heaps, a run of windows for each dataset with variable-length data   chunks
 *   tail                                                                 not allocated
 *
 * A slot holds the bytes of one chunk. A window holds the global heap collections of one chunk.
 */
#ifndef IMAGE_IMAGE_PLAN_H
#define IMAGE_IMAGE_PLAN_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <base/mem.h>
#include <codec/packed_bytes.h>
#include <h5/btree1.h>
#include <h5/gheap.h>
#include <image/image.h>

enum {
	IMAGE_PAGE = 4096, /* alignment of the regions after the metadata */
	/* Slots of this size or more begin on a page: the kernel reads whole pages, so a program
	 * that reads one chunk would also fetch its neighbours. At most 1/16 of a file is padding.
	 */
	IMAGE_PAGED_SLOT = 16 * IMAGE_PAGE,
	/* If a domain has at most this many datasets, each begins on a page. That takes at most 16
	 * MiB of padding. */
	IMAGE_OWN_PAGES = 4096,
	/* The kernel reads ahead of a program that reads metadata, and the program waits for all
	 * bytes of such a read. The gap keeps chunks out of that read, so the program does not wait
	 * for chunks that it does not need. */
	IMAGE_GAP = 2 << 20,
	IMAGE_GAP_FROM = 16 << 20, /* a file with less raw data has no such gap */
	/* With more chunks than this, datasets that are to be apart from the metadata get a gap of
	 * so many times the bytes before it, at most two windows of read-ahead: the last window
	 * that the program needs may end a window after the metadata, and its first page makes the
	 * kernel read another one. First windows are shorter. */
	IMAGE_GAP_CHUNKS = 4,
	IMAGE_GAP_TIMES = 16,
	IMAGE_GAP_APART = 4 << 20,
	IMAGE_MAX_COMPACT = 64, /* a group with more links has dense storage */
	IMAGE_MIN_DENSE = 6,
	IMAGE_ATTRS_FEW = 8, /* so many attributes are in the header, unless one is too large */
	/* More attributes are in the header, up to IMAGE_ATTRS_COMPACT, if each message has at most
	 * IMAGE_ATTR_SMALL bytes and all together have at most IMAGE_ATTRS_BYTES. Otherwise they
	 * are in dense storage, which not all readers know. */
	IMAGE_ATTRS_COMPACT = 64,
	IMAGE_ATTR_SMALL = 4096,
	IMAGE_ATTRS_BYTES = 64 << 10,
	IMAGE_UNSET_MAX = 4096,			/* unset bytes of an attribute value in metadata */
	IMAGE_MESSAGE_MAX = 65535,		/* bytes of the body of a header message */
	IMAGE_FILL_MAX = IMAGE_MESSAGE_MAX - 8, /* bytes of a fill value in a header */
	/* Metadata of this size or more are compressed, if no program can change the file. Those of
	 * a smaller file take less memory than its other parts. */
	IMAGE_PACKED = 256 << 10,
	IMAGE_FILE_NAME_MAX = 4096, /* of an external link's file, with its NUL */
};
#define IMAGE_FILE_MAX (UINT64_C(1) << 62)

enum extent_kind { EXTENT_VALUE, EXTENT_INDEX, EXTENT_RAW, EXTENT_HEAP, EXTENT_GAP };

/* Region [start, end) of one dataset or large attribute, or the gap. Extents are sorted and do not
 * overlap. The gap and the bytes between extents read as zeros. */
struct extent {
	uint64_t start, end;
	enum extent_kind kind;
	uint32_t dataset;    /* index in image->datasets, or of a value in image->values */
	uint64_t first_slot; /* number of slots of all extents before it */
};

static inline bool extent_has_slots(enum extent_kind kind)
{
	return kind == EXTENT_RAW || kind == EXTENT_HEAP;
}

/* How one dataset is stored in the image. */
struct image_dataset {
	struct image *image;
	uint32_t number; /* object number in the tree */
	const struct dataset *ds;
	const struct chunk_list *known;

	bool chunked;	  /* else contiguous */
	bool listed;	  /* slot i holds chunk known->numbers[i]; else chunk i */
	bool unknown;	  /* the chunks are not known, so every read fails */
	bool fill_hidden; /* the fill value is too large for a header, so all chunks have slots */
	bool filtered;	  /* chunks have filters; see dataset_filters() */
	bool deflated;	  /* the last filter is deflate */
	/* Chunks may be loaded shuffled: the type is plain, and the first filter is a shuffle, or
	 * there is none. */
	bool accepts_shuffled;
	uint64_t nslots;
	uint64_t chunk_bytes; /* of a chunk before the filters */
	uint64_t slot_bytes;  /* of a chunk after the filters */
	uint64_t stride;      /* from slot to slot; padding reads as zeros */
	uint64_t raw_bytes;   /* of all slots */
	/* For variable-length elements: the offsets of the heap windows of the known->n stored
	 * chunks and of the end, counted as if no other chunk had a window. See
	 * dataset_window(). */
	uint64_t *windows;
	uint64_t fill_window; /* bytes of the window of a chunk that is not stored */

	uint64_t index_addr, raw_addr, heap_addr; /* H5_UNDEF if there is none */
	/* One element in file form: own_fill, or that of the tree. NULL: zeros. */
	const struct elems *fill;
	struct elems *own_fill;
	_Atomic(struct found_list *) found; /* NULL until a seek has asked for it; seek.c */
	uint64_t cost, load_cost;	    /* bytes of memory of a chunk, and while it is loaded */
	uint64_t joined;		    /* as in struct cache_dataset */
};

/* A large attribute. Its message is a huge object of the fractal heap and has a region of its own.
 * The value stays in the tree until the image takes it over. Its unset part takes no memory. */
struct image_value {
	uint32_t attr;	   /* index in the attributes of its object */
	struct bytes head; /* the attribute message up to the value */
	const struct elems *elems;
	struct elems own; /* the value in file form, if it has slots; or that of the tree */
	uint64_t addr, size;
};

/* One object as it is rendered. */
struct image_object {
	const struct tree_object *node;
	uint32_t dataset; /* index in image->datasets, or OBJECT_NONE */
	uint64_t header_size;
	bool links_dense, attrs_dense;
	uint64_t links_addr, attrs_addr; /* of dense storage */
	/* The first and the last global heap collection with items of its attributes and of its
	 * fill value. They are 0 if there are none. */
	uint64_t first_items, last_items;
	/* Until the headers are encoded: for each attribute the value in file form. It is empty if
	 * the bytes in the tree are in file form, and for large attributes. */
	struct bytes *values;
	uint32_t first_large, nlarge; /* its large attributes in image->values, in order */
};

struct image {
	atomic_uint refs;
	const struct env *env;
	const struct tree *tree;	/* borrowed */
	const struct user_block *block; /* of the tree; NULL if there is none */
	uint64_t base;			/* its size, which is the offset of address 0 in the file */
	struct chunk_source chunks;
	unsigned int flags;
	char *dir; /* directory of the domain in the mount */
	image_file_name_fn file_name;
	const char *suffix;

	uint32_t nobjects;
	struct image_object *objects; /* in the order of the tree; NULL after image_shrink() */
	uint64_t *header_addr;	      /* by object number; H5_UNDEF if not in the file */
	uint32_t ndatasets;
	struct image_dataset *datasets;
	uint32_t *dataset_of; /* by object number, the index in datasets, or OBJECT_NONE */

	uint32_t nvalues;
	struct image_value *values;

	uint8_t *meta; /* NULL if it is packed */
	struct packed_bytes *packed;
	uint64_t meta_size, dense_end;
	struct extent *extents;
	uint32_t nextents;
	uint64_t nslots;	       /* of all extents */
	uint64_t data_start, data_end; /* first extent with slots */
	uint64_t size, allocated;
	uint64_t read_ahead;		   /* bytes that the kernel should read ahead */
	atomic_uint_fast64_t kernel_ahead; /* those that it reads ahead */

	struct cache_owner *owner;
	struct budget_charge charge;
	atomic_uint_fast64_t fetched; /* bytes of stored chunks from the store */
	/* Bytes in holes that seeks have found, and that `allocated` contains. */
	atomic_uint_fast64_t found_holes;
};

/* plan_dataset.c */
int dataset_plan(struct image_dataset *d, struct err *err);
/* Returns the offset from heap_addr of the heap window of a slot, or the end of the last window if
 * slot == nslots. Only for datasets with windows. */
uint64_t dataset_window(const struct image_dataset *d, uint64_t slot);
/* Gets the slot of a chunk. Returns false if it has none. */
bool dataset_slot(const struct image_dataset *d, uint64_t chunk, uint64_t *slot);
/* Returns the bytes of all heap windows. */
uint64_t dataset_heap_bytes(const struct image_dataset *d);
/* Gets the filter pipeline in the header, which is empty if there is none. It is computed when
 * needed, because it is many times as large as the rest of struct image_dataset. */
void dataset_filters(const struct image_dataset *d, struct pipeline *out);
/* Returns the chunk number of a slot. */
uint64_t dataset_chunk(const struct image_dataset *d, uint64_t slot);
/* Returns the chunk index, if index_addr is defined. */
struct h5_bt1 dataset_index(const struct image_dataset *d);

/* relocate.c: converts elements with slots to file form, in place. Items of vlen slots are added to
 * `heap`; references become object header addresses. */
int relocate_elems(const struct image *img, const struct dtype *t, uint64_t n, struct elems *e,
		   struct h5_gheap_writer *heap, struct err *err);
/* The same for a constant value. *out becomes a copy of its n elements in file form. */
int relocate_copy(const struct image *img, const struct dtype *t, uint64_t n, const struct elems *e,
		  struct h5_gheap_writer *heap, struct bytes *out, struct err *err);

/* plan_header.c: the object header at the emitter's position. The emitter may only count while
 * addresses and values are not known, and counts before it writes. Fails with -E2BIG or -EIO if a
 * message does not fit. */
int header_encode(struct emit *e, const struct image *img, const struct image_object *o,
		  struct err *err);
/* dense.c: dense storage of links and attributes. */
bool links_are_dense(const struct object *o);
bool attrs_are_dense(const struct object *o);
int links_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, struct err *err);
int attrs_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, struct err *err);
/* Addresses of the parts of dense storage. */
struct dense_addrs {
	uint64_t heap, names, corders;
};
struct dense_addrs links_addrs(const struct image_object *o);
struct dense_addrs attrs_addrs(const struct image_object *o);
/* part_message.c: link and attribute messages, which plan_header.c and dense.c encode. `file` is
 * the buffer for the file name of an external link. */
struct h5_link;
struct h5_attr;
void link_message(const struct image *img, const struct object *o, uint32_t i, struct h5_link *out,
		  char file[IMAGE_FILE_NAME_MAX]);
void attr_message(const struct image *img, const struct image_object *o, uint32_t i,
		  struct h5_attr *out);

/* Moves *at, an offset of the file, past n bytes. Both are at most IMAGE_FILE_MAX. Fails with
 * -EFBIG. */
static inline int advance(uint64_t *at, uint64_t n, struct err *err)
{
	*at += n;
	return *at > IMAGE_FILE_MAX ? err_set(err, -EFBIG, "the domain is too large for a file")
				    : 0;
}

/* large_values.c: large attributes. values_plan() finds them (step 1), value_relocate() converts
 * one to file form and values_place() assigns addresses from *at on (step 3). */
int values_plan(struct image *img, struct err *err);
int value_relocate(struct image *img, const struct attribute *a, struct image_value *v,
		   struct h5_gheap_writer *heap, struct err *err);
int values_place(struct image *img, uint64_t *at, struct err *err);
/* Returns the large attribute with index `attr` of an object, or NULL if the attribute is not
 * large. */
struct image_value *value_find(const struct image *img, const struct image_object *o,
			       uint32_t attr);
void value_read(const struct image_value *v, uint64_t at, uint8_t *buf, size_t n);
/* Returns the bytes of the region before its trailing zeros, which are a hole. */
uint64_t value_stored_bytes(const struct image_value *v);
uint64_t values_memory(const struct image *img);
void values_free(struct image *img);

/* memory.c: charges the memory of the image to the budget, before large blocks are allocated.
 * encoded is the number of bytes of headers and dense storage, 0 once meta_size is known. Fails
 * with -ENOMEM. */
int image_charge(struct image *img, uint64_t encoded, struct err *err);

/* image_plan.c */
int image_plan(struct image *img, struct err *err);

/* extent.c: returns the index of the first extent that ends after offset, or nextents if there is
 * none. */
uint32_t extent_find(const struct image *img, uint64_t offset);
/* Returns the slot of a raw or heap extent at an offset of the file. */
uint64_t extent_slot(const struct image *img, const struct extent *x, uint64_t offset);
/* seek.c: returns the bytes of the slots of a dataset that are not holes, as far as the open has
 * shown. */
uint64_t dataset_stored_bytes(const struct image_dataset *d);
/* Returns whether it is not known which of these bytes are in holes, even after seeks. */
bool dataset_is_uncertain(const struct image_dataset *d);
/* Frees what seeks have found of a dataset. No other thread may use the image. */
void dataset_forget_found(struct image_dataset *d);
/* load_slot.c: the source of the cache, and the memory that a chunk of a dataset takes. */
struct cache_source image_source(struct image *img);
void dataset_costs(struct image_dataset *d);

#endif
