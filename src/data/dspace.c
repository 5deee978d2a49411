/* SPDX-License-Identifier: Apache-2.0 */
/* Dataspaces. Every struct dspace that these functions initialize has at most 2^63 elements, so
 * nelems does not overflow. Pure functions; any thread may call them. */
#include <data/dspace.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/mem.h>

static const uint64_t max_elems = UINT64_C(1) << 63;

void dspace_scalar(struct dspace *s)
{
	*s = (struct dspace){.cls = DSPACE_SCALAR, .nelems = 1};
}

void dspace_null(struct dspace *s)
{
	*s = (struct dspace){.cls = DSPACE_NULL};
}

/* The product of the dimensions. It is 0 if any dimension is 0, however large the others are. */
static bool count_elems(uint32_t rank, const uint64_t *dims, uint64_t *nelems)
{
	bool fits = true;
	uint64_t n = 1;
	for (uint32_t i = 0; i < rank; i++) {
		if (dims[i] == 0) {
			*nelems = 0;
			return true;
		}
		fits = fits && mul_u64(n, dims[i], &n) && n <= max_elems;
	}
	*nelems = n;
	return fits;
}

int dspace_simple(struct arena *a, struct dspace *s, uint32_t rank, const uint64_t *dims,
		  const uint64_t *max, struct err *err)
{
	if (rank == 0)
		return err_set(err, -EINVAL, "simple dataspace without dimensions");
	if (rank > DSPACE_MAX_RANK)
		return err_set(err, -E2BIG, "dataspace of %u dimensions, the limit is %d", rank,
			       DSPACE_MAX_RANK);
	for (uint32_t i = 0; i < rank; i++) {
		if (dims[i] > max_elems)
			return err_set(err, -E2BIG, "dimension %u is %" PRIu64 ", more than 2^63",
				       i, dims[i]);
		if (max && max[i] < dims[i])
			return err_set(err, -EINVAL,
				       "dimension %u is %" PRIu64
				       ", more than its maximum %" PRIu64,
				       i, dims[i], max[i]);
	}
	*s = (struct dspace){.cls = DSPACE_SIMPLE, .rank = rank};
	if (!count_elems(rank, dims, &s->nelems))
		return err_set(err, -E2BIG, "dataspace of more than 2^63 elements");
	uint64_t *copy = arena_array(a, max ? 2 * rank : rank, sizeof(*copy));
	if (!copy)
		return err_no_memory(err);
	memcpy(copy, dims, rank * sizeof(*copy));
	s->dims = s->max = copy;
	if (max)
		s->max = memcpy(copy + rank, max, rank * sizeof(*copy));
	return 0;
}

static bool same_numbers(uint32_t rank, const uint64_t *a, const uint64_t *b)
{
	for (uint32_t i = 0; i < rank; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

bool dspace_same_dims(const struct dspace *a, const struct dspace *b)
{
	return a->rank == b->rank && same_numbers(a->rank, a->dims, b->dims);
}

bool dspace_same_limits(const struct dspace *a, const struct dspace *b)
{
	return a->cls == b->cls && a->rank == b->rank && same_numbers(a->rank, a->max, b->max);
}

bool dspace_equal(const struct dspace *a, const struct dspace *b)
{
	return dspace_same_limits(a, b) && dspace_same_dims(a, b);
}

bool dspace_extendible(const struct dspace *s)
{
	for (uint32_t i = 0; i < s->rank; i++)
		if (s->max[i] > s->dims[i])
			return true;
	return false;
}
