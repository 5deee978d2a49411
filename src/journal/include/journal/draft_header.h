/* SPDX-License-Identifier: Apache-2.0 */
/* The file `draft`, which describes a draft: see draft_header.c. Pure. */
#ifndef JOURNAL_DRAFT_HEADER_H
#define JOURNAL_DRAFT_HEADER_H

#include <journal/journal.h>

enum { HEADER_SIZE = 4096 };

struct header {
	struct draft_about about; /* strings borrowed from the bytes that were decoded */
	uint8_t boot[JOURNAL_BOOT];
};

/* Fails with -ENAMETOOLONG if the strings do not fit, and with -ENOMEM. */
int draft_header_encode(const struct header *h, uint8_t bytes[HEADER_SIZE], struct err *err);
/* n is the size of the file. Fails with -EBADMSG if the file is damaged, and with -ENOTSUP if it
 * has a later version. */
int draft_header_decode(const void *bytes, size_t n, struct header *h, struct err *err);

#endif
