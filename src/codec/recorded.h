/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorded filter pipeline of a dataset says about its chunk objects. */
#ifndef CODEC_RECORDED_H
#define CODEC_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include <data/filter.h>

struct recorded {
	bool compressor; /* there is a filter that compresses */
	bool deflate;	 /* one of these is deflate */
	bool shuffle;
	bool bitshuffle;
	uint32_t unknown; /* id of the first compressor other than deflate; 0 if none */
};

struct recorded recorded_of(const struct pipeline *p);
/* Returns true for the registered id of bitshuffle, and for a shuffle with the name "bitshuffle".
 */
bool recorded_is_bitshuffle(const struct filter *f);

#endif
