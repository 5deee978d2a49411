/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of image/ share: the plan of one image. It is built in three steps, each a pass
 * over the tree's objects in breadth-first order, and constant afterwards:
 *
 *   1. storage (dataset.c): how each dataset is stored, how large its slots and windows are;
 *   2. sizes and addresses (plan.c): headers and dense storage are encoded against unknown
 *      addresses, because their sizes do not depend on any; then every region has its place;
 *   3. bytes (plan.c): attribute values are brought into file form (relocate.c), then headers and
 *      dense storage are encoded again, for good.
 *
 * Regions in file order:
 *   superblock | headers | dense storage | global heaps of attributes    one block of memory
 *   large values of attributes, each a region of its own                 rendered on demand
 *   indexes                                                              rendered on demand
 *   gap, where there is much raw data                                    a hole
 *   raw data, a run of slots for each dataset                            chunks
 *   heaps, a run of windows for each dataset with variable-length data   chunks
 *   tail                                                                 never allocated
 */
#ifndef IMAGE_PLAN_H
#define IMAGE_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/mem.h>
#include <h5/btree1.h>
#include <h5/gheap.h>
#include <image/image.h>

enum {
	IMAGE_PAGE = 4096, /* alignment of the regions after the metadata */
	/* Slots of this size or more begin on a page: the kernel reads whole pages, and who reads
	 * one chunk would fetch both of its neighbours. At most a sixteenth of a file is lost. */
	IMAGE_PAGED_SLOT = 16 * IMAGE_PAGE,
	/* Datasets of a domain that each begin on a page: at most 16 MiB of a file are lost. */
	IMAGE_OWN_PAGES = 4096,
	/* The kernel reads ahead of a program that walks the metadata, and what it reads ahead has
	 * to be there before it hands on anything. Between metadata and raw data there is room for
	 * that, or else a program would wait for chunks that it does not read. */
	IMAGE_GAP = 2 << 20,
	IMAGE_GAP_FROM = 16 << 20, /* bytes of raw data from which the gap is worth its place */
	IMAGE_MAX_COMPACT = 64,	   /* links in an object header before storage is dense */
	IMAGE_MIN_DENSE = 6,
	IMAGE_ATTRS_COMPACT = 8,   /* libhdf5's default */
	IMAGE_UNSET_MAX = 4096,	   /* bytes of a value in metadata that were never set */
	IMAGE_MESSAGE_MAX = 65535, /* bytes of a header message */
	IMAGE_FILL_MAX = IMAGE_MESSAGE_MAX - 8, /* of a fill value in one */
};
#define IMAGE_METADATA_MAX (UINT64_C(4) << 30)
#define IMAGE_FILE_MAX	   (UINT64_C(1) << 62)

enum extent_kind { EXTENT_VALUE, EXTENT_INDEX, EXTENT_RAW, EXTENT_HEAP, EXTENT_GAP };

/* Region [start, end) of one dataset or value, or the gap, which reads as zeros. Sorted, not
 * overlapping; what lies between reads as zeros, too. */
struct extent {
	uint64_t start, end;
	enum extent_kind kind;
	uint32_t dataset; /* place in image->datasets, of a value in image->values; of the gap: 0 */
	uint64_t first_slot; /* slots of all extents before it */
};

static inline bool extent_has_slots(enum extent_kind kind)
{
	return kind == EXTENT_RAW || kind == EXTENT_HEAP;
}

/* How one dataset appears. */
struct image_dataset {
	struct image *image;
	uint32_t number; /* of the tree */
	const struct dataset *ds;
	const struct chunk_list *known;

	bool chunked;	  /* else contiguous */
	bool listed;	  /* slots hold known->numbers[]; else slot i is chunk i */
	bool unknown;	  /* every read fails */
	bool fill_hidden; /* the fill value is too long for a header: all slots are there */
	bool filtered;	  /* see dataset_filters() */
	uint64_t nslots;
	uint64_t chunk_bytes; /* of a whole chunk in file form, unfiltered */
	uint64_t slot_bytes;  /* as stored: under the pipeline */
	uint64_t stride;      /* from slot to slot; what is behind a slot reads as zeros */
	uint64_t raw_bytes;   /* of the whole run */
	/* Variable length: offsets of the windows of known->n + 1 chunks, from heap_addr, as if no
	 * other chunk had one. See dataset_window(). */
	uint64_t *windows;
	uint64_t fill_window; /* of a chunk that is not stored: its fill values' own items */

	uint64_t index_addr, raw_addr, heap_addr; /* H5_UNDEF: none */
	struct elems fill;			  /* one element in file form; nothing: zeros */
	bool fill_borrowed;			  /* it is the tree's */
	uint64_t cost, load_cost; /* memory of a loaded chunk, and of its load (load.c) */
};

/* An attribute that is too large for metadata: a huge object of its heap, with a region of its own.
 * Its value stays where it is; what was never set of it stays a length. */
struct image_value {
	uint32_t attr;	   /* of its object */
	struct bytes head; /* of the attribute message: all before the value */
	const struct elems *elems;
	struct elems own; /* relocated, where the tree's is not as it is in the file */
	uint64_t addr, size;
};

/* One object as it is rendered. */
struct image_object {
	const struct tree_object *mo;
	uint32_t dataset; /* place in image->datasets, or OBJECT_NONE */
	uint64_t header_size;
	bool links_dense, attrs_dense;
	uint64_t links_addr, attrs_addr; /* of the dense storage */
	uint64_t links_size, attrs_size;
	struct bytes *values;	      /* nattrs: relocated values; empty where the tree's own bytes
					 serve as they are, and of large ones */
	uint32_t first_large, nlarge; /* places in image->values, in order of the attributes */
};

struct image {
	const struct env *env;
	const struct tree *tree; /* borrowed */
	struct chunk_source chunks;
	unsigned int flags;
	char *dir; /* of the domain in the mount */
	image_file_name_fn file_name;

	uint32_t nobjects;
	struct image_object *objects; /* in the tree's order */
	uint64_t *header_addr;	      /* by number; H5_UNDEF: not in the file */
	uint32_t ndatasets;
	struct image_dataset *datasets;

	uint32_t nvalues;
	struct image_value *values;

	uint8_t *meta;
	uint64_t meta_size;
	struct extent *extents;
	uint32_t nextents;
	uint64_t nslots;	       /* of all extents */
	uint64_t data_start, data_end; /* of the first extent that has slots */
	uint64_t size, allocated;

	struct cache_owner *owner;
	struct budget_charge charge;
	atomic_uint_fast64_t fetched; /* bytes of chunks, as they are stored */
};

/* dataset.c */
int dataset_plan(struct image_dataset *d, struct err *err);
/* Where the heap window of a slot begins, from heap_addr; of slot nslots: where the last ends. Only
 * for datasets that have windows. */
uint64_t dataset_window(const struct image_dataset *d, uint64_t slot);
/* Bytes of all windows. */
uint64_t dataset_heap_bytes(const struct image_dataset *d);
/* The pipeline as it is rendered; none when contiguous. Not kept: it is many times as large as all
 * the rest of a dataset. */
void dataset_filters(const struct image_dataset *d, struct pipeline *out);
/* Chunk number of a slot. */
uint64_t dataset_chunk(const struct image_dataset *d, uint64_t slot);
/* The dataset's chunk index; meaningful when index_addr is defined. */
struct h5_bt1 dataset_index(const struct image_dataset *d);

/* relocate.c: elements from the tree's neutral form to file form. Items of vlens go to `heap`
 * (NULL: the type has none); references become header addresses. elems is changed in place. */
int relocate_elems(const struct image *img, const struct dtype *t, uint64_t n, struct elems *e,
		   struct h5_gheap_writer *heap, struct err *err);
/* The same for a constant value: a relocated copy of all its n elements. */
int relocate_copy(const struct image *img, const struct dtype *t, uint64_t n, const struct elems *e,
		  struct h5_gheap_writer *heap, struct bytes *out, struct err *err);

/* header.c: the object header at the emitter's position. sizing: addresses and values are not
 * known yet, only the size counts. */
int header_encode(struct emit *e, const struct image *img, const struct image_object *o,
		  bool sizing, struct err *err);
/* dense.c: link and attribute storage outside of the header. */
bool links_are_dense(const struct image *img, const struct object *o);
bool attrs_are_dense(const struct image *img, const struct object *o);
int links_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, uint64_t *size, struct err *err);
int attrs_encode(struct emit *e, const struct image *img, const struct image_object *o,
		 uint64_t addr, uint64_t *size, struct err *err);
/* Where the parts of a dense storage at addr lie. */
struct dense_addrs {
	uint64_t heap, names, corders;
};
struct dense_addrs links_addrs(const struct image *img, const struct image_object *o);
struct dense_addrs attrs_addrs(const struct image *img, const struct image_object *o);
/* message.c: fill the message structs that header.c and dense.c both encode. */
struct h5_link;
struct h5_attr;
void link_message(const struct image *img, const struct object *o, uint32_t i, struct h5_link *out,
		  char *file, size_t cap);
void attr_message(const struct image *img, const struct image_object *o, uint32_t i,
		  struct h5_attr *out);

/* external.c: file name of an external link: relative to the directory of the linking file, never
 * out of the mount. -ENAMETOOLONG. */
int external_file(const struct image *img, const char *domain, char *file, size_t cap);

/* values.c: large values. Finds them (step 1), brings one into file form (step 3), gives them
 * addresses from *at on (the same, with the extents that add() makes). */
int values_plan(struct image *img, struct err *err);
int value_relocate(struct image *img, const struct attribute *a, struct image_value *v,
		   struct h5_gheap_writer *heap, struct err *err);
int values_place(struct image *img, uint64_t *at, struct err *err);
/* The attribute's large value; NULL: it is not one. */
struct image_value *value_find(const struct image *img, const struct image_object *o,
			       uint32_t attr);
void value_read(const struct image_value *v, uint64_t at, uint8_t *buf, size_t n);
/* Bytes of it that are not a hole: those before its zeros. */
uint64_t value_stored_bytes(const struct image_value *v);
uint64_t values_memory(const struct image *img);
void values_free(struct image *img);

/* memory.c: charges what the image holds to the budget, before anything large is allocated.
 * encoded: bytes of headers and dense storage, while meta_size is not known. -ENOMEM. */
int image_charge(struct image *img, uint64_t encoded, struct err *err);

/* plan.c */
int image_plan(struct image *img, struct err *err);

/* extent.c: the first extent that ends behind offset; nextents when there is none. */
uint32_t extent_find(const struct image *img, uint64_t offset);
/* The slot of a raw or heap extent that holds offset. */
uint64_t extent_slot(const struct image *img, const struct extent *x, uint64_t offset);
/* seek.c: bytes of a dataset's slots that are not holes. */
uint64_t dataset_stored_bytes(const struct image_dataset *d);
/* fill.c: n bytes of a run of fill elements from byte `phase` of the run. */
void fill_bytes(const struct image_dataset *d, uint64_t phase, uint8_t *out, size_t n);
/* load.c: the cache's source, and what a dataset's chunks take. */
struct cache_source image_source(struct image *img);
void dataset_costs(struct image_dataset *d);

#endif
