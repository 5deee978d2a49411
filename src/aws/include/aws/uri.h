/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding (RFC 3986) for AWS: only unreserved characters stay. Pure. */
#ifndef AWS_URI_H
#define AWS_URI_H

#include <base/str.h>

/* Appends n bytes, encoded; slashes stay if keep_slash. */
void uri_encode(struct str *out, const char *bytes, size_t n, bool keep_slash);
/* Decodes n bytes of a form-encoded text ("+" is a space) and adds a NUL. out has room for n + 1
 * bytes. Fails with -EINVAL if a "%" has not two hexadecimal digits, and with -EILSEQ if a NUL is
 * encoded. */
int uri_decode(const char *text, size_t n, char *out);

#endif
