/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the chunks that no listing shows: those in HDF5 files, and all chunks of a domain whose
 * keys cannot be listed. It requests all chunks of the grid of each dataset, or a sample of them.
 * An absent chunk is no finding.
 */
#include "check.h"

#include <stdlib.h>

enum { CANDIDATES_MAX = 1 << 20 /* chunks of a dataset from which a sample is chosen */ };

static int add_dataset(struct domain_check *dc, struct check_choice *choice, uint32_t number)
{
	const struct dataset *ds = &tree_object(dc->tree, number)->o.dataset;
	const struct chunk_list *known = domain_chunks(dc->d, number);
	const struct reference *r = ds->reference;
	const bool in_document = r && r->layout == REFERENCE_CHUNKED;
	const uint64_t n = in_document ? r->nchunks : known->listed ? known->n : ds->grid.nchunks;
	const uint64_t step = dc->c->all ? 1 : div_up_u64(n, CANDIDATES_MAX);
	int rc = 0;
	if (ds->absence_unknown || known->unknown)
		return 0; /* reported already */
	for (uint64_t i = 0; !rc && i < n; i += step) {
		/* A chunk that cannot be measured is among the problems of the domain. */
		if (known->decoded && known->decoded[i] == UINT64_MAX)
			continue;
		const struct check_chunk chunk = {.dataset = number,
						  .number = in_document	    ? r->chunks[i].number
							    : known->listed ? known->numbers[i]
									    : i,
						  .probed = true};
		rc = check_choice_add(dc, choice, &chunk);
	}
	return rc;
}

int check_grid(struct domain_check *dc, bool only_files)
{
	const struct tree *t = dc->tree;
	auto_free struct check_choice *choice = calloc(1, sizeof(*choice));
	int rc = choice ? 0 : err_no_memory(dc->c->err);
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		if (o->kind == OBJECT_DATASET && (!only_files || o->dataset.reference))
			rc = add_dataset(dc, choice, tree_nth(t, i));
	}
	if (!rc)
		rc = check_choice_end(dc, choice);
	return rc || only_files
		       ? rc
		       : check_find(
				 dc->c, ENGINE_CHECK_NOTE, NULL, NULL,
				 "no listing shows the keys of this domain, so objects without a "
				 "link are not searched for");
}
