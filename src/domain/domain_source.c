/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of a domain as a source for an image. */
#include <domain/domain.h>

#include "domain_internal.h"

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	return domain_chunks(ctx, dataset);
}

static int find_chunks(void *ctx, uint32_t dataset, struct chunk_list *out, struct err *err)
{
	return domain_find_chunks(ctx, dataset, out, err);
}

static void *begin(void *ctx)
{
	struct domain *d = ctx;
	return range_batch_begin(&d->ranges);
}

static void end(void *ctx, void *batch)
{
	range_batch_end(batch);
}

struct chunk_source domain_chunk_source(struct domain *d)
{
	return (struct chunk_source){.list = list_chunks,
				     .find = find_chunks,
				     .get = domain_fetch_chunk,
				     .begin = begin,
				     .end = end,
				     .ctx = d};
}
