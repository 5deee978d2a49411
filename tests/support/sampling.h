/* SPDX-License-Identifier: Apache-2.0 */
/* Says whether tests run at their full size (HSMOUNT_SAMPLE=1), as in sampling.py. */
#ifndef SUPPORT_SAMPLING_H
#define SUPPORT_SAMPLING_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool sampling_everything(void)
{
	const char *one_in = getenv("HSMOUNT_SAMPLE");
	return one_in && strcmp(one_in, "1") == 0;
}

/* The step of a loop that tries every case at full size, and otherwise one in n. */
static inline unsigned int sampling_step(unsigned int n)
{
	return sampling_everything() ? 1 : n;
}

#endif
