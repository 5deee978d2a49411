/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4). */
#ifndef JSON_BASE64_H
#define JSON_BASE64_H

#include <base/mem.h>

/* Decodes n characters and appends the bytes to out. Fails with -EINVAL (a character outside the
 * alphabet, wrong padding, or bits set after the last byte) or -ENOMEM. */
int base64_decode(const char *text, size_t n, struct bytes *out);
/* Appends the characters of n bytes to out. Fails with -ENOMEM. */
int base64_encode(const void *bytes, size_t n, struct bytes *out);

#endif
