/* SPDX-License-Identifier: Apache-2.0 */
/* Version 1 object headers, for ohdr.c. */
#ifndef H5_OHDR1_H
#define H5_OHDR1_H

#include "ohdr_chunks.h"

/* Reads prefix and messages of chunk 0 at addr. */
int ohdr1_read_first(struct ohdr_reader *r, uint64_t addr);
int ohdr1_read_continuation(struct ohdr_reader *r, struct ohdr_extent x);
/* Checks what is known only after the last chunk. */
int ohdr1_end(struct ohdr_reader *r);

#endif
