/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the chunks that no listing shows: those in HDF5 files, and all chunks of a domain whose
 * keys cannot be listed. It requests all chunks of the grid of each dataset, or a sample of them.
 * An absent chunk is no finding.
 */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

enum {
	AT_ONCE = 4096,
	CANDIDATES_MAX = 1 << 20, /* chunks of a dataset from which a sample is chosen */
};

struct grid_check {
	struct domain_check *dc;
	struct check_sample sample;
	struct check_chunk batch[AT_ONCE]; /* of a check of all chunks */
	size_t nbatch;
};

static int flush(struct grid_check *g)
{
	const size_t n = g->nbatch;
	g->nbatch = 0;
	return check_chunks(g->dc, g->batch, n);
}

static int add(struct grid_check *g, uint32_t dataset, uint64_t number)
{
	const struct check_chunk chunk = {.dataset = dataset, .number = number, .probed = true};
	if (!g->dc->c->all) {
		check_sample_add(&g->sample, &chunk);
		return 0;
	}
	g->batch[g->nbatch++] = chunk;
	return g->nbatch == AT_ONCE ? flush(g) : 0;
}

static int add_dataset(struct grid_check *g, uint32_t number)
{
	const struct dataset *ds = &tree_object(g->dc->tree, number)->o.dataset;
	const struct chunk_list *known = domain_chunks(g->dc->d, number);
	const struct reference *r = ds->reference;
	const bool in_document = r && r->layout == REFERENCE_CHUNKED;
	const uint64_t n = in_document ? r->nchunks : known->listed ? known->n : ds->grid.nchunks;
	const uint64_t step = g->dc->c->all ? 1 : div_up_u64(n, CANDIDATES_MAX);
	int rc = 0;
	if (ds->absence_unknown || known->unknown)
		return 0; /* reported already */
	for (uint64_t i = 0; !rc && i < n; i += step) {
		/* A chunk that cannot be measured is among the problems of the domain. */
		if (known->decoded && known->decoded[i] == UINT64_MAX)
			continue;
		rc = add(g, number,
			 in_document	 ? r->chunks[i].number
			 : known->listed ? known->numbers[i]
					 : i);
	}
	return rc;
}

static int check_sampled(struct grid_check *g)
{
	struct check_chunk *chosen = calloc(CHECK_SAMPLE, sizeof(*chosen));
	if (!chosen)
		return err_no_memory(g->dc->c->err);
	const int rc = check_chunks(g->dc, chosen, check_sample_take(&g->sample, chosen));
	free(chosen);
	return rc;
}

int check_grid(struct domain_check *dc, bool only_files)
{
	const struct tree *t = dc->tree;
	struct grid_check *g = calloc(1, sizeof(*g));
	int rc = g ? 0 : err_no_memory(dc->c->err);
	if (g)
		g->dc = dc;
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		if (o->kind == OBJECT_DATASET && (!only_files || o->dataset.reference))
			rc = add_dataset(g, tree_nth(t, i));
	}
	if (!rc)
		rc = dc->c->all ? flush(g) : check_sampled(g);
	free(g);
	return rc || only_files
		       ? rc
		       : check_find(
				 dc->c, ENGINE_CHECK_NOTE, NULL, NULL,
				 "no listing shows the keys of this domain, so objects without a "
				 "link are not searched for");
}
