/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several requests at once, for callers that may block.
 *
 * store_run_all() submits all requests and waits for all of them. The store limits how many really
 * run side by side: by the threads of its pool, or by its connections.
 *
 * store_run_sequence() consumes the answers in order while the store works on later requests. The
 * requests are in a ring of `window` entries. The i-th request uses entry i modulo the window. That
 * entry is free as soon as the answer of request i - window has been consumed.
 *
 * Threads: `done` is called in any thread. The ring's lock guards the `done` flags of its entries.
 * `done` does not touch the ring after it has released that lock, because the calling thread frees
 * the ring as soon as all submitted requests are done.
 */
#include <store/implement.h>

#include <base/wait.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

static void wake(struct store_request *req)
{
	wait_done(req->arg);
}

void store_run_all(struct store *s, struct store_request *const *reqs, size_t n)
{
	struct waiter waiter;
	wait_init(&waiter, n);
	for (size_t i = 0; i < n; i++) {
		reqs[i]->done = wake;
		reqs[i]->arg = &waiter;
		store_submit(s, reqs[i]);
	}
	wait_all(&waiter);
}

void store_run(struct store *s, struct store_request *req)
{
	store_run_all(s, &req, 1);
}

struct store_request **store_requests_new(const struct store *s, size_t n)
{
	struct store_request **reqs = calloc(n ? n : 1, sizeof(*reqs));
	for (size_t i = 0; reqs && i < n; i++) {
		reqs[i] = store_request_new(s, STORE_GET);
		if (!reqs[i]) {
			store_requests_free(reqs, i);
			return NULL;
		}
	}
	return reqs;
}

void store_requests_free(struct store_request **reqs, size_t n)
{
	for (size_t i = 0; reqs && i < n; i++)
		store_request_free(reqs[i]);
	free(reqs);
}

/* ---- sequences ---- */

struct entry {
	struct ring *ring;
	bool done;
	struct store_request *req;
};

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t done; /* the entry `next` is done */
	const struct entry *next;
	size_t window;
	struct entry *entries;
};

static void mark_done(struct store_request *req)
{
	struct entry *entry = req->arg;
	struct ring *ring = entry->ring;
	pthread_mutex_lock(&ring->lock);
	entry->done = true;
	if (ring->next == entry)
		pthread_cond_signal(&ring->done);
	pthread_mutex_unlock(&ring->lock);
}

static void submit(struct store *s, const struct store_sequence *seq, struct ring *ring, size_t i)
{
	struct entry *entry = &ring->entries[i % ring->window];
	store_request_reset(entry->req, STORE_GET);
	entry->ring = ring;
	entry->done = false;
	if (!seq->request(seq->arg, i, entry->req)) {
		entry->done = true;
		return;
	}
	entry->req->done = mark_done;
	entry->req->arg = entry;
	store_submit(s, entry->req);
}

/* Blocks until the i-th request is done. */
static struct store_request *wait_for(struct ring *ring, size_t i)
{
	struct entry *entry = &ring->entries[i % ring->window];
	pthread_mutex_lock(&ring->lock);
	ring->next = entry;
	while (!entry->done)
		pthread_cond_wait(&ring->done, &ring->lock);
	ring->next = NULL;
	pthread_mutex_unlock(&ring->lock);
	return entry->req;
}

static void ring_release(struct ring *ring)
{
	for (size_t i = 0; ring->entries && i < ring->window; i++)
		store_request_free(ring->entries[i].req);
	free(ring->entries);
	pthread_cond_destroy(&ring->done);
	pthread_mutex_destroy(&ring->lock);
}

/* On error the caller still has to call ring_release(). */
static int ring_init(struct ring *ring, struct store *s, size_t window)
{
	*ring = (struct ring){.window = window, .entries = calloc(window, sizeof(*ring->entries))};
	pthread_mutex_init(&ring->lock, NULL);
	pthread_cond_init(&ring->done, NULL);
	for (size_t i = 0; ring->entries && i < window; i++) {
		ring->entries[i].req = store_request_new(s, STORE_GET);
		if (!ring->entries[i].req)
			return -ENOMEM;
	}
	return ring->entries ? 0 : -ENOMEM;
}

int store_run_sequence(struct store *s, const struct store_sequence *seq)
{
	const size_t window = seq->window < seq->n ? seq->window : seq->n;
	size_t submitted = 0;
	struct ring ring;
	if (window == 0)
		return 0;
	int rc = ring_init(&ring, s, window);
	for (size_t i = 0; i < (rc ? submitted : seq->n); i++) {
		while (!rc && submitted < seq->n && submitted - i < window)
			submit(s, seq, &ring, submitted++);
		struct store_request *req = wait_for(&ring, i);
		if (!rc)
			rc = seq->take(seq->arg, i, req);
		store_request_release(req);
	}
	ring_release(&ring);
	return rc;
}
