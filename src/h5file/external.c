/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External file lists. The raw data of a dataset are pieces of files, one after another. The last
 * piece may have no limit. As in libhdf5, bytes behind the end of a file are zeros, not the fill
 * value, but a file that does not exist is an error.
 *
 * Files that are too short make data out of nothing, so a dataset may miss at most MISSING_MAX
 * bytes. Otherwise a small file could let a reader work on any number of zeros.
 */
#include "external.h"

#include <inttypes.h>
#include <string.h>

#include <h5/symtab.h>

enum { HEAP_ARENA = 80 << 20 /* a local heap has at most 64 MiB */ };
#define MISSING_MAX (UINT64_C(1) << 30)

struct piece_of_file {
	struct source *file;
	uint64_t offset, size;
};

struct h5file_pieces {
	uint32_t n;
	struct piece_of_file v[];
};

/* Returns how many bytes of a run the file has. */
static uint64_t present(const struct source *s, uint64_t offset, uint64_t n)
{
	return offset < s->size ? min_u64(n, s->size - offset) : 0;
}

/* Opens the files of the list. The pieces are cut to `need` bytes. */
static int open_pieces(const struct h5file *f, const struct h5_efl *list,
		       const struct h5_lheap *heap, uint64_t need, struct h5file_pieces *out,
		       struct err *err)
{
	uint64_t left = need, missing = 0;
	for (uint16_t i = 0; left && i < list->n; i++) {
		const struct h5_efl_slot *entry = &list->slots[i];
		struct piece_of_file *piece = &out->v[out->n++];
		const char *name = h5_lheap_string(heap, entry->name);
		if (!name)
			return err_set(err, -EIO, "external file %u has no name", i + 1u);
		piece->offset = entry->offset;
		piece->size = min_u64(entry->size, left);
		if (entry->offset > INT64_MAX - min_u64(piece->size, INT64_MAX))
			return err_set(err, -EIO,
				       "external file %s: offset %" PRIu64 " is too large", name,
				       entry->offset);
		int rc = f->external->open(f->external->ctx, name, &piece->file, err);
		if (rc)
			return rc;
		left -= piece->size;
		missing += piece->size - present(piece->file, piece->offset, piece->size);
		if (missing > MISSING_MAX)
			return err_set(err, -EOPNOTSUPP,
				       "external file %s: it has %" PRIu64
				       " bytes, and more than 1 GiB "
				       "of the raw data is missing",
				       name, piece->file->size);
	}
	return left ? err_set(err, -EIO,
			      "the external files have room for %" PRIu64
			      " bytes of data instead of %" PRIu64,
			      need - left, need)
		    : 0;
}

static int read_list(struct h5file *f, struct cursor *message, struct arena *a, uint64_t need,
		     const struct h5file_pieces **out, struct err *err)
{
	struct h5_efl list;
	struct h5_lheap heap;
	int rc = h5_efl_decode(&f->file, message, a, &list, err);
	if (!rc)
		rc = h5_lheap_read(&f->file, list.heap, a, &heap, err);
	if (rc)
		return rc;
	struct h5file_pieces *p = arena_alloc(f->arena, sizeof(*p) + list.n * sizeof(p->v[0]));
	if (!p)
		return err_no_memory(err);
	p->n = 0;
	*out = p;
	return open_pieces(f, &list, &heap, need, p, err);
}

int external_open(struct h5file *f, struct cursor *message, uint64_t need,
		  const struct h5file_pieces **out, struct err *err)
{
	struct arena *a = arena_new(HEAP_ARENA);
	int rc = a ? read_list(f, message, a, need, out, err) : err_no_memory(err);
	arena_free(a);
	return rc;
}

int external_read(const struct h5file_pieces *p, uint64_t offset, uint8_t *to, size_t n,
		  struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && n && i < p->n; i++) {
		const struct piece_of_file *piece = &p->v[i];
		if (offset >= piece->size) {
			offset -= piece->size;
			continue;
		}
		const size_t part = (size_t)min_u64(n, piece->size - offset);
		const uint64_t at = piece->offset + offset;
		const size_t have = (size_t)present(piece->file, at, part);
		if (have)
			rc = source_read(piece->file, at, to, have, err);
		memset(to + have, 0, part - have);
		to += part;
		n -= part;
		offset = 0;
	}
	return rc;
}
