/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and runs the filters of an HDF5 file as steps of a chain. */
#ifndef CODEC_HDF5_H
#define CODEC_HDF5_H

#include <stdint.h>

#include <hsmount/err.h>
#include <codec/chain.h>

#include "step_bytes.h"

/* Plans the steps that undo n filters; steps[0] undoes the last one. A chunk decodes to at most
 * `max` bytes, and to exactly `exact` bytes unless that is CODEC_UNKNOWN. elem_size is for a
 * shuffle whose parameters do not state it. */
void hdf5_plan(struct codec_step *steps, const struct filter *filters, uint32_t n,
	       uint32_t elem_size, uint64_t max, uint64_t exact);
/* Runs a step. Fails with -EIO if the bytes are damaged or too many, with -EOPNOTSUPP if there is
 * no decoder for the filter or for this variant of it, and with -ENOMEM. */
int hdf5_undo(const struct codec_step *step, struct step_bytes *b, struct err *err);
/* Returns the size of the elements that the step unshuffles, or 0 if it does something else. */
size_t hdf5_unshuffles(const struct codec_step *step);

#endif
