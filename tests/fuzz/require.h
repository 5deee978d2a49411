/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a property in a fuzz target: aborts with file, line and condition if it is false. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define require(truth)                                                                             \
	do {                                                                                       \
		if (!(truth)) {                                                                    \
			fprintf(stderr, "%s:%d: property does not hold: %s\n", __FILE__, __LINE__, \
				#truth);                                                           \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
