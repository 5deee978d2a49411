/* SPDX-License-Identifier: Apache-2.0 */
/* A property of a fuzz target: aborts, and says where, when it does not hold. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define require(truth)                                                                             \
	do {                                                                                       \
		if (!(truth)) {                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #truth);        \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
