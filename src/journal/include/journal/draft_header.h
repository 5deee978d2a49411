/* SPDX-License-Identifier: Apache-2.0 */
/* The file `draft`, which describes a draft: see draft_header.c. Pure. */
#ifndef JOURNAL_DRAFT_HEADER_H
#define JOURNAL_DRAFT_HEADER_H

#include <journal/journal.h>

enum {
	HEADER_SIZE = 4096,
	HEADER_NO_SUMS = 1,	/* the version of drafts that need not have checksums */
	HEADER_NO_IDENTITY = 2, /* … that do not know the identity of what lies beneath */
	HEADER_NO_LAYOUT = 3,	/* … or not in which layout it is */
	HEADER_VERSION = 4,
};

struct header {
	struct draft_about about; /* strings borrowed from the bytes that were decoded */
	uint8_t boot[JOURNAL_BOOT];
	bool sums; /* each spool has the file of its checksums */
};

/* A draft that knows what lies beneath it must have checksums. Fails with -ENAMETOOLONG if the
 * strings do not fit. */
int draft_header_encode(const struct header *h, uint8_t bytes[HEADER_SIZE], struct err *err);
/* n is the size of the file. Fails with -EBADMSG if the file is damaged, and with -ENOTSUP if it
 * has a later version. */
int draft_header_decode(const void *bytes, size_t n, struct header *h, struct err *err);

#endif
