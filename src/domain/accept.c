/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the limits of objects. A dataset that is too large is left out of the file. */
#include <domain/domain.h>

#include <errno.h>

#include "domain_internal.h"

#include <codec/chain.h>

/* Checks the size of a dataset. A chunk is read whole, so its size is limited. If all chunks of a
 * dataset have values, stored or not, the file must have room for all of them. */
static int check_size(const struct domain *d, const struct object *o, struct err *err)
{
	const struct dataset *ds = &o->dataset;
	uint64_t shown;
	if (o->kind != OBJECT_DATASET || ds->grid.nchunks == 0)
		return 0;
	if (!mul_u64(ds->type->size, ds->grid.chunk_elems, &shown) ||
	    max_u64(codec_chunk_size(ds->chain).plain, shown) > CHUNK_BYTES_MAX)
		return err_set(err, -EFBIG, "a chunk is larger than %d bytes", CHUNK_BYTES_MAX);
	const bool computed = ds->initializer != INITIALIZER_NONE;
	const bool is_known = domain_can_list(d, o) || domain_names_chunks(ds);
	if ((computed || !is_known) && domain_is_vast(ds))
		return err_set(err, -EFBIG, "%s of more than %llu bytes",
			       computed ? "computed elements" : "elements kept elsewhere",
			       (unsigned long long)DATASET_DENSE_MAX);
	return 0;
}

int domain_accept(void *ctx, struct object *o, struct err *err)
{
	struct domain *d = ctx;
	int rc = check_size(d, o, err);
	if (o->kind == OBJECT_DATASET && dataset_is_in_ranges(&o->dataset))
		d->ranges.joins = true;
	if (!rc)
		d->values += domain_value_memory(o);
	return rc;
}
