/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text in messages and listings: what reaches a terminal or a log, and what is escaped. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/* Copies in to out (cap > 0 bytes with the NUL): valid UTF-8 stays, control characters (C0, DEL
 * and C1) and bytes that are not UTF-8 become \xNN. Cut at the end of a character when too long.
 * Applied to its own result it changes nothing. Returns the length of out. */
size_t printable(char *out, size_t cap, const char *in);

#endif
