/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows: for extended attributes and descriptions. All return 0 or -ENOMEM. */
#ifndef ENGINE_TEXT_H
#define ENGINE_TEXT_H

#include <stdint.h>

#include <base/mem.h>

int text_add(struct bytes *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes; bytes that are not ASCII pass as they are. */
int text_json_string(struct bytes *out, const char *s);
/* Nanoseconds since the epoch as 2024-05-06T07:08:09.123456Z. */
int text_time(struct bytes *out, int64_t ns);
/* The text as a string on the heap; out is empty afterwards. NULL without memory. */
char *text_take(struct bytes *out);

#endif
