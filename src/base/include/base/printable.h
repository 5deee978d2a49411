/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes foreign text for a terminal or a log. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/* Copies in to out, which has cap > 0 bytes. Valid UTF-8 is copied; control characters (C0, DEL and
 * C1) and bytes that are not UTF-8 become \xNN. A text that is too long is cut between characters.
 * Idempotent. Returns the length of out. */
size_t printable(char *out, size_t cap, const char *in);

#endif
