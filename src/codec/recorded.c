/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSDS records filters that it does not apply: fletcher32, N-bit, scale-offset, and a shuffle
 * without a compressor. It usually applies a compressor as a Blosc frame. So the recorded pipeline
 * says which forms to look for in the bytes, not which form they have. The functions are pure.
 */
#include "recorded.h"

#include <string.h>

bool recorded_is_bitshuffle(const struct filter *f)
{
	return f->id == FILTER_BITSHUFFLE ||
	       (f->id == FILTER_SHUFFLE && f->name && strcmp(f->name, "bitshuffle") == 0);
}

/* Filters that HSDS records but never applies. */
static bool is_only_recorded(const struct filter *f)
{
	return f->id == FILTER_FLETCHER32 || f->id == FILTER_NBIT || f->id == FILTER_SCALEOFFSET;
}

struct recorded recorded_of(const struct pipeline *p)
{
	struct recorded r = {0};
	for (uint32_t i = 0; p && i < p->n; i++) {
		const struct filter *f = &p->f[i];
		if (recorded_is_bitshuffle(f)) {
			r.bitshuffle = true;
		} else if (f->id == FILTER_SHUFFLE) {
			r.shuffle = true;
		} else if (!is_only_recorded(f)) {
			r.compressor = true;
			if (f->id == FILTER_DEFLATE)
				r.deflate = true;
			else if (r.unknown == 0)
				r.unknown = f->id;
		}
	}
	return r;
}
