/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that refer to HDF5 files, see data/reference.h. The parsers are pure, and fail like those
 * of parse.h.
 */
#ifndef HSDS_PARSE_REFERENCE_H
#define HSDS_PARSE_REFERENCE_H

#include "parse.h"

/* Gets the layout that a class names. Returns false if the class names no layout of this kind, or
 * an unknown one. */
bool schema_reference_layout(const char *cls, enum reference_layout *out);

/* Chooses the chunk shape of a contiguous dataset: writes space->rank chunk dimensions, none of
 * which is 0. The chunks in sequence are the elements in row-major order, if that is possible with
 * chunks of a useful size. For the rest see grid_cut(). */
void schema_reference_cut(const struct dspace *space, uint32_t elem_size, uint64_t *chunk);

/* Sets ds->reference from the layout of a document. The grid of ds must have been set. */
int schema_reference_parse(struct schema_ctx *ctx, const json_t *layout, enum reference_layout kind,
			   struct dataset *ds, struct err *err);

/* Sets ds->initializer and ds->indexed from the initializer "chunklocator" of a chunk table. Does
 * nothing if the initializer does not name a file and a dataset in it. */
int schema_chunk_locator(struct schema_ctx *ctx, const json_t *list, struct dataset *ds,
			 struct err *err);

/* schema_ops.locate() for a dataset with a reference. */
int schema_reference_locate(const struct object *o, const struct object *table, uint64_t number,
			    unsigned int *step, const struct schema_answer *answer,
			    struct chunk_place *place, struct err *err);

#endif
