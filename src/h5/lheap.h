/* SPDX-License-Identifier: Apache-2.0 */
/* Local heaps, for symtab.c. */
#ifndef H5_LHEAP_H
#define H5_LHEAP_H

#include <h5/symtab.h>

/* Claims the bytes of a heap that h5_lheap_read() has read without claims. */
int lheap_claim(const struct h5_file *f, uint64_t addr, struct err *err);

#endif
