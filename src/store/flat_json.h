/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON object (RFC 8259) of which only string members of the top level are wanted: what
 * credential services and processes answer. Pure. The project's JSON library is another layer's.
 */
#ifndef STORE_FLAT_JSON_H
#define STORE_FLAT_JSON_H

#include <stddef.h>

#include <base/str.h>

enum { FLAT_JSON_DEPTH_MAX = 16 };

/* The whole text is checked. Returns 0 and the string's bytes; -ENOENT when the object has no
 * string member of that name (the first counts); -EINVAL when it is no JSON object; -ENOMEM. */
int flat_json_get(const char *text, size_t n, const char *name, struct str *out);

#endif
