/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operations of one engine use a name at the same time. HDF5 locks files, so nobody reads or
 * writes a file while another program of the same mount writes it. Any number of programs read it,
 * and it may be removed or renamed meanwhile, also by two of them at the same time. A program that
 * writes a file leaves it when close(2) returns: the engine may still be about to end its draft.
 * Mounts know nothing of each other's locks.
 */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "history.h"

void turns_init(struct turns *t);
/* Waits until the operation may use its names. */
void turns_take(struct history *h, const struct op *op);
void turns_return(struct history *h, const struct op *op);

#endif
