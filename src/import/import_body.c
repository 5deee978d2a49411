/* SPDX-License-Identifier: Apache-2.0 */
/* Puts of an import whose body exists already, so that no worker makes it. */
#include "import_internal.h"

#include <errno.h>
#include <stdlib.h>

static int give_body(void *arg, struct bytes *body, struct err *err)
{
	struct bytes *b = arg;
	(void)err;
	*body = *b;
	*b = (struct bytes){0};
	return 0;
}

static void free_body(void *arg)
{
	bytes_release(arg);
	free(arg);
}

int import_put_body(struct import *im, const char *key, struct bytes *body, uint64_t weight,
		    struct err *err)
{
	struct bytes *b = malloc(sizeof(*b));
	if (!b)
		return err_no_memory(err);
	*b = *body;
	*body = (struct bytes){0};
	const struct put put = {
		.key = key,
		.make = give_body,
		.release = free_body,
		.arg = b,
		.memory = b->len,
		.weight = weight,
	};
	return put_queue_add(im->queue, &put, err);
}
