/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of one mount that use one file, which is now a plain object and now a domain: one of
 * them makes a file without the signature of HDF5, and others write the signature in place. So the
 * last close of a draft replaces the object beneath it, which others open, read and change just
 * then. Nobody but these programs uses the file: if nothing has failed, all their calls succeed.
 */
#ifndef SIM_TURNED_H
#define SIM_TURNED_H

#include "shared.h"

/* Runs a program; see shared_run(). */
int turned_run(struct shared *p, struct player *by, struct err *err);

#endif
