/* SPDX-License-Identifier: Apache-2.0 */
/* Which filters a new chunk object has: see data/filter.h. Pure functions; any thread may call
 * them. */
#include <data/filter.h>

#include <stddef.h>
#include <string.h>

enum { MAX_LEVEL = 9, DEFAULT_LEVEL = 6 };

static const uint32_t levels[MAX_LEVEL + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* N-bit and scale-offset only pack numbers: deflate is not a substitute for them. */
static bool compresses(uint32_t id)
{
	switch (id) {
	case FILTER_DEFLATE:
	case FILTER_SZIP:
	case FILTER_BZIP2:
	case FILTER_LZF:
	case FILTER_BLOSC:
	case FILTER_LZ4:
	case FILTER_BITSHUFFLE:
	case FILTER_ZFP:
	case FILTER_ZSTD:
	case FILTER_VBZ:
		return true;
	default:
		return false;
	}
}

void pipeline_of_object(const struct pipeline *p, struct pipeline *out)
{
	const struct filter *shuffle = NULL, *compressor = NULL;
	for (uint32_t i = 0; i < p->n && !compressor; i++) {
		if (p->f[i].id == FILTER_SHUFFLE)
			shuffle = &p->f[i];
		else if (compresses(p->f[i].id))
			compressor = &p->f[i];
	}
	struct filter f[2];
	uint32_t n = 0;
	if (compressor && shuffle)
		f[n++] = (struct filter){FILTER_SHUFFLE, "shuffle", shuffle->nparams,
					 shuffle->params};
	if (compressor) {
		bool own = compressor->id == FILTER_DEFLATE && compressor->nparams > 0 &&
			   compressor->params[0] <= MAX_LEVEL;
		uint32_t level = own ? compressor->params[0] : DEFAULT_LEVEL;
		f[n++] = (struct filter){FILTER_DEFLATE, "deflate", 1, &levels[level]};
	}
	out->n = n; /* out may be p, so this comes after all reads of p */
	for (uint32_t i = 0; i < n; i++)
		out->f[i] = f[i];
}

bool filters_equal(const struct filter *a, uint32_t na, const struct filter *b, uint32_t nb)
{
	bool same = na == nb;
	for (uint32_t i = 0; same && i < na; i++)
		same = a[i].id == b[i].id && a[i].nparams == b[i].nparams &&
		       (!a[i].nparams ||
			!memcmp(a[i].params, b[i].params, a[i].nparams * sizeof(*a[i].params)));
	return same;
}
