/* SPDX-License-Identifier: Apache-2.0 */
/* Compounds whose members have another size in the file, for msg_dtype.c. */
#ifndef H5_MSG_DTYPE_H
#define H5_MSG_DTYPE_H

#include <h5/message.h>

/* Moves members from their offsets in the file to those after h5_dtype_widen(), and grows the size
 * of the compound. Fails with -E2BIG if the size would exceed 32 bits, and with -ENOMEM. */
int h5_dtype_widen_members(const struct h5_file *f, uint32_t n, struct dtype_member *members,
			   uint32_t *size);

#endif
