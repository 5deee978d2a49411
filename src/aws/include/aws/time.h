/* SPDX-License-Identifier: Apache-2.0 */
/* The two formats of times in AWS's protocols. Pure. */
#ifndef AWS_TIME_H
#define AWS_TIME_H

#include <stdint.h>

/* Returns "2009-10-12T17:50:30.000Z" as whole seconds since the epoch, or 0 if the text is not such
 * a time. */
int64_t s3_time_iso(const char *text);
/* The same for "Mon, 12 Oct 2009 17:50:30 GMT" (RFC 9110). */
int64_t s3_time_http(const char *text);

/* Returns the value of Retry-After (RFC 9110), a number of seconds or an HTTP time, as milliseconds
 * after `now`, at most max_ms. Returns 0 if the time has passed or the text is neither. */
unsigned int s3_time_after(const char *text, int64_t now, unsigned int max_ms);

#endif
