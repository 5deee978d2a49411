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
 * The caller takes answers and submits requests in batches: it sleeps until the next answer and a
 * few more are there, and fills the ring when a few entries are free. Otherwise a long sequence of
 * small objects would cost a wake-up of the caller and one of the store's thread for each object.
 *
 * Threads: `done` is called in any thread. The ring's lock guards the `done` flags of its entries.
 * `done` does not touch the ring after it has released that lock, because the calling thread frees
 * the ring as soon as all submitted requests are done.
 */
#include <store/implement.h>

#include <base/mem.h>
#include <base/wait.h>

#include <errno.h>
#include <pthread.h>

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
		reqs[i]->is_brief = true;
		reqs[i]->arg = &waiter;
		store_submit(s, reqs[i]);
	}
	wait_all(&waiter);
	for (size_t i = 0; i < n; i++)
		reqs[i]->is_brief = false; /* of this use only */
}

void store_run(struct store *s, struct store_request *req)
{
	store_run_all(s, &req, 1);
}

int store_look(struct store *s, const char *key, const atomic_bool *cancelled,
	       struct store_meta *meta, struct err *err)
{
	auto_request struct store_request *req = store_request_new(s, STORE_HEAD);
	if (!req)
		return err_no_memory(err);
	store_request_key(req, key);
	req->cancelled = cancelled_by(cancelled);
	store_run(s, req);
	const int rc = store_failure(&req->answer, err);
	if (rc || store_absence(&req->answer))
		return rc;
	*meta = req->answer.meta;
	return 1;
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

enum { BATCHES = 16, BATCH_MAX = 64 };

struct entry {
	struct ring *ring;
	bool done;
	struct store_request *req;
};

struct ring {
	pthread_mutex_t lock;
	pthread_cond_t enough;
	/* The caller waits until this entry and `wanted` entries are done; NULL if it does not. */
	const struct entry *next;
	size_t done, wanted; /* `done` counts entries that are not consumed */
	size_t window;
	struct entry *entries;
	size_t ready; /* of the caller alone: entries that are known to be done */
};

static bool has_enough_locked(const struct ring *ring)
{
	return ring->next->done && ring->done >= ring->wanted;
}

static void note_done(struct entry *entry)
{
	struct ring *ring = entry->ring;
	pthread_mutex_lock(&ring->lock);
	entry->done = true;
	ring->done++;
	if (ring->next && has_enough_locked(ring)) {
		ring->next = NULL;
		pthread_cond_signal(&ring->enough);
	}
	pthread_mutex_unlock(&ring->lock);
}

static void mark_done(struct store_request *req)
{
	note_done(req->arg);
}

/* Returns how many of n requests make a batch. */
static size_t batch_of(size_t n)
{
	return n < BATCHES ? 1 : min_u64(n / BATCHES, BATCH_MAX);
}

static void submit(struct store *s, const struct store_sequence *seq, struct ring *ring, size_t i)
{
	struct entry *entry = &ring->entries[i % ring->window];
	store_request_reset(entry->req, STORE_GET);
	entry->ring = ring;
	entry->done = false;
	if (!seq->request(seq->arg, i, entry->req)) {
		note_done(entry);
		return;
	}
	entry->req->done = mark_done;
	entry->req->arg = entry;
	entry->req->is_brief = true;
	store_submit(s, entry->req);
}

/* Blocks until the i-th request is done. `submitted` is the number of all requests so far. */
static struct store_request *wait_for(struct ring *ring, size_t i, size_t submitted)
{
	struct entry *entry = &ring->entries[i % ring->window];
	if (ring->ready == 0) {
		pthread_mutex_lock(&ring->lock);
		ring->next = entry;
		ring->wanted = batch_of(submitted - i);
		if (has_enough_locked(ring))
			ring->next = NULL;
		while (ring->next)
			pthread_cond_wait(&ring->enough, &ring->lock);
		while (i + ring->ready < submitted &&
		       ring->entries[(i + ring->ready) % ring->window].done)
			ring->ready++;
		ring->done -= ring->ready;
		pthread_mutex_unlock(&ring->lock);
	}
	ring->ready--;
	return entry->req;
}

static void ring_release(struct ring *ring)
{
	for (size_t i = 0; ring->entries && i < ring->window; i++)
		store_request_free(ring->entries[i].req);
	free(ring->entries);
	pthread_cond_destroy(&ring->enough);
	pthread_mutex_destroy(&ring->lock);
}

/* On error the caller still has to call ring_release(). */
static int ring_init(struct ring *ring, struct store *s, size_t window)
{
	*ring = (struct ring){.window = window, .entries = calloc(window, sizeof(*ring->entries))};
	pthread_mutex_init(&ring->lock, NULL);
	pthread_cond_init(&ring->enough, NULL);
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
		if (i == submitted || submitted - i <= window - batch_of(window))
			while (!rc && submitted < seq->n && submitted - i < window)
				submit(s, seq, &ring, submitted++);
		struct store_request *req = wait_for(&ring, i, submitted);
		if (!rc)
			rc = seq->take(seq->arg, i, req);
		store_request_release(req);
	}
	ring_release(&ring);
	return rc;
}
