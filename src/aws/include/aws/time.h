/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways in which AWS writes times. Pure. */
#ifndef AWS_TIME_H
#define AWS_TIME_H

#include <stdint.h>

/* "2009-10-12T17:50:30.000Z": whole seconds since the epoch; 0 when it is no such time. */
int64_t s3_time_iso(const char *text);
/* "Mon, 12 Oct 2009 17:50:30 GMT" (RFC 9110): likewise. */
int64_t s3_time_http(const char *text);

/* Retry-After (RFC 9110), a number of seconds or such a time: milliseconds from now on, at most
 * max_ms; 0 for what has passed or is neither. */
unsigned int s3_time_after(const char *text, int64_t now, unsigned int max_ms);

#endif
