/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for the user about errors of the service. Pure. */
#ifndef S3_ERROR_HINTS_H
#define S3_ERROR_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/str.h>

struct s3_refusal {
	long status;
	const char *code;  /* of the error document; "" if there is none */
	bool is_signed;	   /* the request was signed */
	bool of_session;   /* signed with session keys */
	const char *owner; /* the expected bucket owner; NULL if any */
	/* Wall clocks of this machine and of the server, in seconds since the epoch; 0 if
	 * unknown. */
	int64_t our_time, server_time;
	bool untrusted; /* no answer, because the server's certificate is not valid */
};

/* Appends the cause and what the user can do. Appends nothing if the service's message is
 * sufficient. */
void s3_error_hint(const struct s3_refusal *r, struct str *out);

/* Appends how a clock that is ahead by so many seconds differs from another one: "20 minutes
 * behind", or "3 hours ahead". */
void s3_clock_words(int64_t ahead, struct str *out);

#endif
