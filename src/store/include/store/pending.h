/* SPDX-License-Identifier: Apache-2.0 */
/* One request that runs while its caller does something else. */
#ifndef STORE_PENDING_H
#define STORE_PENDING_H

#include <pthread.h>
#include <stdbool.h>

#include <store/store.h>

/* It lies in the caller's memory, and does not move. A zeroed struct has no request. */
struct store_pending {
	struct store_request *req; /* from store_request_new(); NULL if nothing was sent */
	pthread_mutex_t lock;	   /* guards is_answered */
	pthread_cond_t answered;
	bool is_answered;
};

/* Sends a request and takes it over. Sets its done and arg. */
void store_pending_send(struct store_pending *p, struct store *s, struct store_request *req);
/* Blocks until the request is answered, and returns it; NULL if nothing was sent. */
struct store_request *store_pending_wait(struct store_pending *p);
/* Waits, and frees the request. */
void store_pending_free(struct store_pending *p);

#endif
