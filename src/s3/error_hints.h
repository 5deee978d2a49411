/* SPDX-License-Identifier: Apache-2.0 */
/* What the user who mounts can do about the service's answer. Pure. */
#ifndef S3_ERROR_HINTS_H
#define S3_ERROR_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/str.h>

struct s3_refusal {
	long status;
	const char *code;  /* of the error document, "" for none */
	bool is_signed;	   /* the request was */
	bool of_session;   /* with the keys of a session */
	const char *owner; /* that was expected, or NULL */
	int64_t ours, its; /* wall clocks when it answered, seconds since the epoch; 0 unknown */
	bool untrusted;	   /* no answer, because the server is not who it should be */
};

/* One clause in words; "" where the service's own words are all there is to say. */
void s3_error_hint(const struct s3_refusal *r, struct str *out);

#endif
