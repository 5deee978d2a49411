/* SPDX-License-Identifier: Apache-2.0 */
/* See early.h. Requests for names block, so a thread of its own makes them. */
#include "early.h"

#include <stdlib.h>

#include <base/thread.h>
#include <s3/s3.h>

#include "internal.h"

enum { SHARE = 8 }; /* 1/8 of the connections is opened in advance */

struct early {
	struct names *names;
	pthread_t thread;
};

static void *preload(void *arg)
{
	struct early *early = arg;
	names_preload(early->names);
	return NULL;
}

struct early *early_start(struct engine *e)
{
	struct early *early = e->stack.s3 ? malloc(sizeof(*early)) : NULL;
	if (!early)
		return NULL;
	store_s3_connect(e->stack.s3, (e->connections + SHARE - 1) / SHARE);
	early->names = e->names;
	if (thread_start(&early->thread, preload, early))
		return early;
	free(early);
	return NULL;
}

void early_stop(struct early *early)
{
	if (early)
		pthread_join(early->thread, NULL);
	free(early);
}
