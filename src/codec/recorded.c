/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a recorded pipeline to expectations. HSDS records more than it does: fletcher32, nbit and
 * scaleoffset leave no trace in the bytes, a compressor is most often inside a Blosc frame, and
 * shuffle alone is not applied at all. So a record says what to look for, never what is there.
 * Pure.
 */
#include "recorded.h"

#include <string.h>

bool recorded_is_bitshuffle(const struct filter *f)
{
	return f->id == FILTER_BITSHUFFLE ||
	       (f->id == FILTER_SHUFFLE && f->name && strcmp(f->name, "bitshuffle") == 0);
}

/* Filters that HSDS records and never applies. */
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
