/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the character at s, of which n bytes may be read, or 0 if it is not a
 * character. */
size_t utf8_length(const char *s, size_t n);
/* Returns true if all n bytes are UTF-8. NUL is a valid character. */
bool utf8_valid(const char *s, size_t n);
/* Returns true if all n bytes are ASCII. */
bool utf8_is_ascii(const char *s, size_t n);
/* Returns true if XML 1.0 has all characters of a text that is UTF-8 (its section 2.2): not the
 * control characters except for tab and the ends of lines, nor U+FFFE and U+FFFF. */
bool utf8_in_xml(const char *s);

#endif
