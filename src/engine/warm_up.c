/* SPDX-License-Identifier: Apache-2.0 */
/* See warm_up.h. Requests for names block, so a thread of its own makes them. */
#include "warm_up.h"

#include <stdlib.h>

#include <base/thread.h>
#include <s3/s3.h>

#include "engine_internal.h"

enum { SHARE = 8 }; /* 1/8 of the connections is opened in advance */

struct warm_up {
	struct names *names;
	pthread_t thread;
};

static void *preload(void *arg)
{
	struct warm_up *early = arg;
	names_preload(early->names);
	return NULL;
}

struct warm_up *warm_up_start(struct engine *e)
{
	struct warm_up *early = e->bucket.stack.s3 ? malloc(sizeof(*early)) : NULL;
	if (!early)
		return NULL;
	store_s3_connect(e->bucket.stack.s3, (e->bucket.connections + SHARE - 1) / SHARE);
	early->names = e->bucket.names;
	if (thread_start(&early->thread, preload, early))
		return early;
	free(early);
	return NULL;
}

void warm_up_stop(struct warm_up *early)
{
	if (early)
		pthread_join(early->thread, NULL);
	free(early);
}
