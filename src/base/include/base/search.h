/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stdint.h>

/* Evaluates to the first index below n for which `is_before` is false, or to n if there is none.
 * `is_before` is an expression with the index i. It is true up to some index, and false from there
 * on. */
#define LOWER_BOUND(i, n, is_before)                                                               \
	__extension__({                                                                            \
		uint64_t low_ = 0, high_ = (n);                                                    \
		while (low_ < high_) {                                                             \
			const uint64_t i = low_ + (high_ - low_) / 2;                              \
			if (is_before)                                                             \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
