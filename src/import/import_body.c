/* SPDX-License-Identifier: Apache-2.0 */
/* See import_internal.h: the puts of an import. */
#include "import_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* An earlier attempt has put the object, perhaps of another state of the file. */
static int put_over(void *arg, struct store_request *req, struct err *err)
{
	char key[STORE_KEY_MAX + 1];
	const int rc = store_failure(&req->answer, err);
	if (rc != -EEXIST)
		return rc;
	err_clear(err);
	snprintf(key, sizeof(key), "%s", req->key);
	store_request_reset(req, STORE_PUT);
	store_request_key(req, key);
	return PUT_AGAIN;
}

int import_put(struct import *im, struct put *put, struct err *err)
{
	if (store_checks_absence(im->opt->store) != STORE_ABSENCE_IGNORED) {
		put->cond = (struct store_cond){.if_none_match = "*", .unmarked = true};
		put->answered = put_over;
	}
	return put_queue_add(im->queue, put, err);
}

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
	struct put put = {
		.key = key,
		.make = give_body,
		.release = free_body,
		.arg = b,
		.memory = b->len,
		.weight = weight,
	};
	return import_put(im, &put, err);
}
