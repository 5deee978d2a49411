/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a history that fails smaller. */
#ifndef SIM_MINIMISE_H
#define SIM_MINIMISE_H

#include "model.h"

/* A history and what is needed to run it. */
struct trial {
	const uint8_t *file; /* the template */
	size_t n;
	struct log *log; /* of the engines */
	/* Called after each part of a history. NULL: not. */
	void (*each)(void *ctx, const struct history *h);
	void *ctx;
};

/* Runs the history and checks it. Afterwards *h has the results; history_release() and
 * model_release() follow. */
void trial_run(const struct trial *t, struct history *h, bool trace, struct model_result *out);
/* Leaves out operations, faults and waits as long as the history fails in one of a few orders of
 * its requests. h: as it was made, before it runs. */
void minimise(const struct trial *t, struct history *h);

#endif
