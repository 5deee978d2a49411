/* SPDX-License-Identifier: Apache-2.0 */
/* What a dataset's recorded filter pipeline lets us expect of its stored chunks. */
#ifndef CODEC_RECORDED_H
#define CODEC_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include <data/filter.h>

struct recorded {
	bool compressor; /* anything that would make the chunk shorter */
	bool deflate;	 /* one of them is deflate */
	bool shuffle;
	bool bitshuffle;
	uint32_t unknown; /* id of the first compressor that is not deflate, 0 none */
};

struct recorded recorded_of(const struct pipeline *p);
/* By its registered id, or a shuffle of that name. */
bool recorded_is_bitshuffle(const struct filter *f);

#endif
