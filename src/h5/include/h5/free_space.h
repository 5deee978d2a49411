/* SPDX-License-Identifier: Apache-2.0 */
/* Free-space managers (Spec III.H), which only writers need. */
#ifndef H5_FREE_SPACE_H
#define H5_FREE_SPACE_H

#include <h5/format.h>

/* Claims the header at addr and its list of sections. addr H5_UNDEF, or a file without claims:
 * nothing is read. -EIO: damaged. */
int h5_free_space_claim(const struct h5_file *f, uint64_t addr, struct err *err);

#endif
