/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing over U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the character at s, of which n bytes may be read; 0 when there is none. */
size_t utf8_length(const char *s, size_t n);
/* All n bytes are UTF-8. NUL is a character like others. */
bool utf8_valid(const char *s, size_t n);

#endif
