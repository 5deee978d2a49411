/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows: for extended attributes and descriptions. All return 0 or -ENOMEM. */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include <stdint.h>

#include <base/mem.h>

int text_add(struct bytes *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One character of UTF-8 at s, of which n > 0 bytes may be read; what is none becomes U+FFFD.
 * Returns how many bytes of s it was. */
size_t text_character(struct bytes *out, const char *s, size_t n, int *rc);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
int text_json_string(struct bytes *out, const char *s);
/* Nanoseconds since the epoch as 2024-05-06T07:08:09.123456Z. */
int text_time(struct bytes *out, int64_t ns);
/* Nanoseconds as seconds: 1.500000000. */
int text_seconds(struct bytes *out, uint64_t ns);
/* A number from 0 to 2^43 with six digits behind the point. */
int text_fixed(struct bytes *out, double value);
/* The text as a string on the heap; out is empty afterwards. NULL without memory. */
char *text_take(struct bytes *out);

#endif
