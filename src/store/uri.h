/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding (RFC 3986), as AWS wants it: only unreserved characters stay. Pure. */
#ifndef STORE_URI_H
#define STORE_URI_H

#include <base/str.h>

/* Appends n bytes, encoded; a slash stays when keep_slash. */
void uri_encode(struct str *out, const char *bytes, size_t n, bool keep_slash);
/* Decodes n bytes of a form-encoded text ("+" is a space) into out, which takes n + 1 bytes, and
 * ends it with a NUL. -EINVAL: a "%" without two hexadecimal digits; -EILSEQ: an encoded NUL. */
int uri_decode(const char *text, size_t n, char *out);

#endif
