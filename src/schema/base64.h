/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4). */
#ifndef SCHEMA_BASE64_H
#define SCHEMA_BASE64_H

#include <base/mem.h>

/* Decodes n characters and appends the bytes to out. -EINVAL: a character outside the alphabet,
 * wrong padding, or bits set after the last byte; -ENOMEM. */
int schema_base64_decode(const char *text, size_t n, struct bytes *out);
/* Appends the characters of n bytes to out. -ENOMEM. */
int schema_base64_encode(const void *bytes, size_t n, struct bytes *out);

#endif
