/* SPDX-License-Identifier: Apache-2.0 */
/* See store/pending.h. */
#include <store/pending.h>

static void done(struct store_request *req)
{
	struct store_pending *p = req->arg;
	pthread_mutex_lock(&p->lock);
	p->is_answered = true;
	pthread_cond_signal(&p->answered);
	pthread_mutex_unlock(&p->lock);
}

void store_pending_send(struct store_pending *p, struct store *s, struct store_request *req)
{
	*p = (struct store_pending){.req = req};
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->answered, NULL);
	req->done = done;
	req->arg = p;
	store_submit(s, req);
}

struct store_request *store_pending_wait(struct store_pending *p)
{
	if (!p->req)
		return NULL;
	pthread_mutex_lock(&p->lock);
	while (!p->is_answered)
		pthread_cond_wait(&p->answered, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return p->req;
}

void store_pending_free(struct store_pending *p)
{
	if (!store_pending_wait(p))
		return;
	store_request_free(p->req);
	pthread_cond_destroy(&p->answered);
	pthread_mutex_destroy(&p->lock);
	p->req = NULL;
}
