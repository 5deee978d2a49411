/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any HDF5 file: follows its addresses, makes a struct tree of its objects, and finds and
 * decodes the chunks of its datasets. The file is foreign: every size, address and count is
 * checked, each structure is read once, and work and memory are bounded by the size of the file.
 *
 * A dataset without chunks (compact, contiguous) is cut into chunks, each of which is one run of
 * bytes: see grid_cut(). So all datasets of a file have a grid and chunks.
 *
 * An object that is damaged is marked as broken in the tree, and a problem is recorded. The rest of
 * the file stays readable.
 *
 * The source may be any: a file, an image, memory, or a bucket, whose bytes are not all in memory.
 * h5file_open() and the functions that read may then fail with -EAGAIN (see base/source.h); the
 * caller fetches the missing range and calls again.
 *
 * Threads: one at a time opens. After that any thread may call the functions that are marked with
 * "any thread", if the source permits it.
 */
#ifndef H5FILE_H5FILE_H
#define H5FILE_H5FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/budget.h>
#include <base/source.h>
#include <data/elems.h>
#include <data/filter.h>
#include <data/tree.h>

enum { H5FILE_CUT = 4 << 20 /* maximum bytes of a chunk of a dataset without chunks */ };

struct h5file;

/* The files in which datasets have their raw data: external file lists. */
struct h5file_external {
	/* Opens a file by the name that the HDF5 file has for it. *out is valid until
	 * h5file_close(), any thread may read it, and a read never fails with -EAGAIN. Every call
	 * with one name gives the same source. Returns -EOPNOTSUPP if the file cannot be used; the
	 * dataset is then broken. */
	int (*open)(void *ctx, const char *name, struct source **out, struct err *err);
	void *ctx;
};

/* Datasets whose content the caller does not need. Their headers are not read. */
struct h5file_known {
	/* Returns 1 if the object whose header is at an address is such a dataset, 0 if not, or a
	 * negative errno, with which the open fails. Such a dataset uses no committed datatype. */
	int (*is_known)(void *ctx, uint64_t addr, struct err *err);
	void *ctx;
};

struct h5file_options {
	struct budget *budget; /* charged for the tree and the claims; NULL for no limit */
	uint64_t max_tree;     /* bytes of the tree; 0 for 1 GiB */
	/* Reads the index of every dataset and claims its chunks, too, so that overlapping chunks
	 * are found. Otherwise only the metadata is claimed. */
	bool claim_chunks;
	/* Claims the indexes of creation order, as claim_chunks does, too. */
	bool claim_orders;
	bool keep_claims; /* for h5file_claim() and h5file_claim_chunks() */
	/* As in libhdf5, what lies behind the end that the superblock records does not belong to
	 * the file: a structure there is damaged. Otherwise the file ends where the source does. */
	bool bounded;
	/* What libhdf5 needs to find an object or a chunk is damage if it is wrong, also if this
	 * reader does not need it: keys and siblings in version 1 B-trees, free-space managers. */
	bool strict;
	/* If it is not NULL, raw data in external files are read: such a dataset is like a
	 * contiguous one, and RAW_STORED. It is borrowed until h5file_open() returns. */
	const struct h5file_external *external;
	/* If it is not NULL and the base address is 0, these datasets are left unread in the tree,
	 * and nothing of them is claimed. It is borrowed until h5file_open() returns. */
	const struct h5file_known *known;
};

/* Reads all metadata except for chunk indexes. source is borrowed until h5file_close(). opt may be
 * NULL. Fails with -EIO if the source is no HDF5 file, or is so damaged that its root group cannot
 * be read; with -EOPNOTSUPP; with -ENOMEM; and with errors of the source. Damage elsewhere is no
 * error: see h5file_problems(). */
int h5file_open(struct source *source, const struct h5file_options *opt, struct h5file **out,
		struct err *err);
void h5file_close(struct h5file *f); /* f may be NULL */

/* Returns the objects. The root group is object 0, the others have increasing numbers in
 * breadth-first order of their first link. The id of an object is a path that leads to it.
 * Attribute and fill values are complete. dataset.filters are the pipeline of the file, and
 * dataset.grid has the chunks of the file, or of the cut. The tree is constant, except for
 * h5file_read(), h5file_set_cut() and the caller of h5file_edit_tree(). */
const struct tree *h5file_tree(const struct h5file *f);
/* Returns the same tree for a caller that changes its grids, filters, times and ids before it emits
 * documents. h5file keeps its own copy of the grid and pipeline of each dataset, and owns the tree.
 */
struct tree *h5file_edit_tree(struct h5file *f);

/* What tells an object from another one whose header was at the same address before. */
struct h5file_header {
	uint64_t addr;	  /* of the object header, relative to the base address */
	uint8_t version;  /* of the object header: 1 or 2 */
	int64_t birth_ns; /* birth time; 0 if the header has none, as all of version 1 */
};
/* Returns false if there is no such object, it is unread, or its header or what belongs to it is
 * damaged. Any thread. */
bool h5file_header(const struct h5file *f, uint32_t number, struct h5file_header *out);
/* Returns the address of the header of an object, which may be unread or broken. Any thread. */
uint64_t h5file_address(const struct h5file *f, uint32_t number);
/* Returns the object, broken or not, whose header is at an address, or OBJECT_NONE if there is
 * none. Any thread. */
uint32_t h5file_at(const struct h5file *f, uint64_t addr);

/* Reads a dataset that was left unread. Nothing is claimed. Fails with -EIO if it is damaged or no
 * dataset, with -EOPNOTSUPP, and with -ENOMEM. One thread at a time. */
int h5file_read(struct h5file *f, uint32_t number, struct err *err);

/* A problem: something that is damaged, or that could not be decoded. */
enum h5file_severity {
	H5FILE_DAMAGED,	    /* the file contradicts the specification */
	H5FILE_UNSUPPORTED, /* a structure without a decoder */
	H5FILE_WARNING,	    /* nothing of the content is lost, such as a dangling reference */
	H5FILE_OPEN, /* libhdf5 refuses the file, because its superblock says that it is written */
	H5FILE_NOTE, /* what a person should know; no problem */
};
struct h5file_problem {
	enum h5file_severity severity;
	uint32_t object;  /* number; OBJECT_NONE for the whole file */
	const char *path; /* of the object or link; "" for the file */
	const char *text; /* what is wrong, with the address */
};
uint64_t h5file_problems(const struct h5file *f); /* number of problems */
/* Returns the number of problems of one severity. */
uint64_t h5file_problems_of(const struct h5file *f, enum h5file_severity severity);
/* Returns the n-th problem, or NULL past the last one that is kept (the first 1,000). */
const struct h5file_problem *h5file_problem(const struct h5file *f, uint64_t n);
/* Returns the first one of those that has this severity, or NULL. */
const struct h5file_problem *h5file_first_problem(const struct h5file *f,
						  enum h5file_severity severity);

/* What else the file says of a dataset. */
struct h5file_dataset {
	struct grid grid;		 /* of the file */
	uint32_t elem_size;		 /* bytes of an element in the file */
	const struct pipeline *pipeline; /* of the file; datasets may share it */
	enum layout_class layout;	 /* of the file */
	bool whole_edges;		 /* partial edge chunks are not filtered */
	uint64_t stored_bytes; /* bytes of raw data if contiguous or compact; 0 if chunked */
	uint64_t header;       /* address of the object header */
	/* The pieces of external files that have the raw data, or NULL. */
	const struct h5file_pieces *pieces;
};
/* Returns NULL if the object is no dataset, or is broken. Any thread. */
const struct h5file_dataset *h5file_dataset(const struct h5file *f, uint32_t number);

/* Cuts a dataset without chunks (contiguous, compact, external files) into chunks of another shape,
 * before its chunks are used, and sets the grid of the tree to it. chunk has as many dimensions as
 * the grid. A dataset without elements stays as it is. Returns -EINVAL if the object is no dataset,
 * it has chunks in the file, or a dimension is 0 or does not fit, so that the elements of the
 * chunks in sequence are not those of the dataset in order: see grid_is_linear(). One thread at a
 * time. */
int h5file_set_cut(struct h5file *f, uint32_t number, const uint32_t *chunk, struct err *err);

/* ---- chunks ---- */

struct h5file_chunk {
	uint64_t number; /* in the grid of the file */
	uint64_t addr;	 /* of the first byte, relative to the base address; not of compact data */
	uint64_t size;	 /* stored bytes */
	uint32_t filter_mask;
	bool is_filtered; /* if false, the bytes are those of elements, whatever the pipeline says
			   */
	const uint8_t *data; /* compact data; otherwise NULL */
	/* If it is not NULL, the data are in external files, and addr is the offset in the raw data
	 * of the dataset. */
	const struct h5file_pieces *pieces;
};
typedef int (*h5file_chunk_fn)(void *ctx, const struct h5file_chunk *chunk, struct err *err);
/* Calls fn for each stored chunk with a number in [first, end), in the order of the index. Memory
 * does not depend on the number of chunks. Returns 0 or the result of fn. Fails with -EIO if the
 * dataset or its index is damaged, with -EOPNOTSUPP, also if the dataset is not RAW_STORED, and
 * with -ENOMEM. */
int h5file_chunks(struct h5file *f, uint32_t number, uint64_t first, uint64_t end,
		  h5file_chunk_fn fn, void *ctx, struct err *err);

/* A chunk index that was rendered into the file, and of which a part may have changed since:
 * see struct h5_bt1_known. */
struct h5file_index {
	uint64_t addr, n; /* address of the root; number of chunks */
	int (*is_changed)(void *ctx, uint64_t start, uint64_t end, struct err *err);
	void (*offset)(void *ctx, uint64_t i, uint64_t *offset);
	int (*run)(void *ctx, uint64_t first, uint64_t end, struct err *err);
	void *ctx;
};
/* Calls fn for each stored chunk, and claims these chunks and the index. Requires keep_claims. If
 * known is not NULL, the parts of that index which have not changed are neither read nor claimed:
 * run() is called for their chunks, some of which may be outside of the grid. One thread at a time,
 * and once for each dataset. Overlaps may be found later, as those of h5file_claim(). */
int h5file_claim_chunks(struct h5file *f, uint32_t number, const struct h5file_index *known,
			h5file_chunk_fn fn, void *ctx, struct err *err);

/* Reads the stored bytes of a chunk. *out is empty before. Any thread. */
int h5file_chunk_read(struct h5file *f, const struct h5file_chunk *chunk, struct bytes *out,
		      struct err *err);
/* Prepares the stored bytes of a chunk for a read without this library: see source_prepare(). Fails
 * with -ENOTSUP also if they are not in the file, or compact. Any thread. */
int h5file_chunk_prepare(const struct h5file *f, const struct h5file_chunk *chunk,
			 struct source_part *part, struct err *err);
/* Claims the bytes of a chunk, of which only addr and size count. Requires keep_claims. An overlap
 * with another claimed chunk, or with what the open has read, may be found later:
 * h5file_claims_check() finds all. Returns -EIO if there is an overlap, or -ENOMEM. One thread at a
 * time. */
int h5file_claim(struct h5file *f, const struct h5file_chunk *chunk, struct err *err);
int h5file_claims_check(struct h5file *f, struct err *err);
/* Announces that a chunk is read soon: see source_advise(). One thread at a time. */
void h5file_chunk_advise(const struct h5file *f, const struct h5file_chunk *chunk);
/* Undoes the filters and converts the bytes to the elements of the whole chunk (grid.chunk_elems;
 * of a cut, the elements beyond the extent are zeros): addresses of headers become object numbers,
 * heap references become items. *stored is the caller's and may be emptied. Returns -EIO if the
 * chunk is damaged, -EOPNOTSUPP if a filter has no decoder, or -ENOMEM. Any thread: the heap cache
 * has a lock of its own. */
int h5file_chunk_decode(struct h5file *f, uint32_t number, const struct h5file_chunk *chunk,
			struct bytes *stored, struct elems *out, struct err *err);

/* Calls fn for each global heap collection with items of the chunk: the values of variable-length
 * elements, also of nested ones, and the selections of region references. Each collection comes
 * once, in any order. stored has the stored bytes of the chunk. Memory is in proportion to the
 * chunk, and to its items if they refer to other items. Returns -EIO, -EOPNOTSUPP or -ENOMEM as
 * h5file_chunk_decode() does, or the result of fn. Any thread. */
int h5file_chunk_heaps(struct h5file *f, uint32_t number, const struct h5file_chunk *chunk,
		       const struct bytes *stored,
		       int (*fn)(void *ctx, uint64_t addr, uint64_t size), void *ctx,
		       struct err *err);

/* Finds the offset of the superblock, which is the size of the user block. If there is no
 * superblock, it is 0, and the source cannot be opened. Errors are those of the source. */
int h5file_find(struct source *s, uint64_t *base, struct err *err);
/* Returns the offset in the source to which addresses are relative: the size of the user block. */
uint64_t h5file_base(const struct h5file *f);

#endif
