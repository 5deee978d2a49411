/* SPDX-License-Identifier: Apache-2.0 */
/* An operation that checks the whole bucket (`hsimage check --all`) beside writers: see process.h.
 * It must end, and each domain that it checks is an entry of a listing. */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include <hsmount/err.h>

struct box;

enum { CHECK_TEXT = 200 };

struct check_findings {
	unsigned int domains;	/* bit i: the name i was checked */
	unsigned int unknown;	/* bit i: an import to it is not finished, and it may be a domain */
	unsigned int errors;	/* bit i: it has an error */
	unsigned int unchecked; /* bit i: a part of it could not be checked */
	/* The first error, or part that was not checked, of a name. */
	char text[CHECK_TEXT];
	/* The first error of anything else, and the first part of it that was not checked. */
	char other[CHECK_TEXT], other_unchecked[CHECK_TEXT];
};

int check_bucket(struct box *b, struct check_findings *out, struct err *err);

#endif
