/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the bytes of a draft are an HDF5 file that the program that writes it has finished. */
#ifndef ENGINE_DRAFT_SIGNS_H
#define ENGINE_DRAFT_SIGNS_H

#include <stddef.h>

#include <base/source.h>
#include <hsmount/err.h>

enum draft_signs {
	SIGNS_OTHER,	/* no HDF5 file: it has no signature */
	SIGNS_UNCLOSED, /* its library has not closed it, or a part of it is missing */
	SIGNS_CLOSED,
};

/* Reads the superblock. why: text about SIGNS_UNCLOSED, otherwise "". SIGNS_CLOSED says nothing
 * about the rest of the file, which may be damaged. Fails only as the source does. */
int draft_signs_read(struct source *s, enum draft_signs *out, char *why, size_t room,
		     struct err *err);

#endif
