/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs of a Zarr array as steps of a chain. */
#ifndef CODEC_ARRAY_STEPS_H
#define CODEC_ARRAY_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <codec/chain.h>

#include "step_bytes.h"

/* The size of the input of a step in bytes. */
struct array_input {
	uint64_t exact; /* CODEC_UNKNOWN if it depends on the bytes */
	uint64_t most;	/* a codec that cannot compress makes at most this many */
};

/* Plans n steps. elem_size is the size of an element before CODEC_WIDEN, and `shown` that after the
 * last step, in bytes. Fails with -EINVAL if a step does not fit. */
int array_plan(struct codec_step *steps, const struct codec_array_step *array, uint32_t n,
	       uint32_t elem_size, uint32_t shown, uint64_t nelems);
/* Does the same for bytes that are no elements, which are decoded to at most `most` bytes. */
int array_plan_bytes(struct codec_step *steps, const struct codec_array_step *array, uint32_t n,
		     uint64_t most);
/* Returns what goes into a step of a plan. */
struct array_input array_input_of(const struct codec_step *step);
/* Returns whether the codec works on bytes, not on elements. CODEC_SHUFFLE counts as one that does.
 */
bool array_is_filter(const struct codec_step *step);
/* Runs a step. If the size of its input is known, b has exactly this size. Fails with -EIO if the
 * bytes are damaged or the output is too long, with -EOPNOTSUPP if the compressor of a Blosc frame
 * is not built in, and with -ENOMEM. */
int array_undo(const struct codec_step *step, struct step_bytes *b, struct err *err);

#endif
