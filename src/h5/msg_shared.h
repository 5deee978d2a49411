/* SPDX-License-Identifier: Apache-2.0 */
/* Where the body of a shared message is, for shared.c. */
#ifndef H5_MSG_SHARED_H
#define H5_MSG_SHARED_H

#include <stdbool.h>

#include <h5/format.h>
#include <h5/shared.h>

struct msg_shared {
	bool in_heap;
	uint8_t id[H5_SHARED_ID]; /* in_heap */
	uint64_t addr;		  /* otherwise, of an object header */
};

int msg_shared_decode(const struct h5_file *f, struct cursor *c, struct msg_shared *out,
		      struct err *err);

#endif
