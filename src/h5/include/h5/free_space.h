/* SPDX-License-Identifier: Apache-2.0 */
/* Free-space managers (Spec III.H), which only writers need. */
#ifndef H5_FREE_SPACE_H
#define H5_FREE_SPACE_H

#include <h5/format.h>

/* Claims the header at addr and its list of sections. If addr is H5_UNDEF or the file has no
 * claims, nothing is read. Fails with -EIO if they are damaged. */
int h5_free_space_claim(const struct h5_file *f, uint64_t addr, struct err *err);

#endif
