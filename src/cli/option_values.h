/* SPDX-License-Identifier: Apache-2.0 */
/* Parses numbers, sizes and times of the command line. Leading or trailing blanks are an error.
 * Pure; any thread. */
#ifndef CLI_OPTION_VALUES_H
#define CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a whole number of at most max, in base 8 or 10. */
bool value_number(const char *text, int base, uint64_t max, uint64_t *out);
/* Parses bytes: a whole number, then nothing, "B", or one of K, M, G, T (powers of 1024) with or
 * without "iB". The case of letters does not matter. "KB" is refused, because some programs mean
 * 1000. */
bool value_size(const char *text, uint64_t *out);
/* Parses seconds: a decimal number, then nothing or one of s, m, h, d. At most 10^9 seconds. */
bool value_seconds(const char *text, double *out);

#endif
