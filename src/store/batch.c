/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once, and waiting for them. All is submitted, then waited for: the pool (or the
 * store's own connections) bounds what really runs side by side.
 *
 * A row takes the answers in order, while the store works on the later ones. Requests are in a
 * ring as large as the window, so the i-th has place i modulo the window, which is free as soon as
 * the answer that was there has been taken.
 *
 * Threads: `done` comes from any thread. Places are guarded by the run's lock, which `done` holds
 * when it touches the run for the last time: the run may vanish as soon as all that was submitted
 * has been seen done.
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

/* ---- rows ---- */

struct run {
	pthread_mutex_t lock;
	pthread_cond_t came; /* the one that is awaited */
	const struct place *awaited;
	size_t window;
	struct place {
		struct run *run;
		bool done;
		struct store_request *req;
	} * places;
};

static void put(struct store_request *req)
{
	struct place *place = req->arg;
	struct run *run = place->run;
	pthread_mutex_lock(&run->lock);
	place->done = true;
	if (run->awaited == place)
		pthread_cond_signal(&run->came);
	pthread_mutex_unlock(&run->lock);
}

static void submit(struct store *s, const struct store_row *row, struct run *run, size_t i)
{
	struct place *place = &run->places[i % run->window];
	store_request_reset(place->req, STORE_GET);
	place->run = run;
	place->done = false;
	if (!row->request(row->arg, i, place->req)) {
		place->done = true;
		return;
	}
	place->req->done = put;
	place->req->arg = place;
	store_submit(s, place->req);
}

static struct place *await(struct run *run, size_t i)
{
	struct place *place = &run->places[i % run->window];
	pthread_mutex_lock(&run->lock);
	run->awaited = place;
	while (!place->done)
		pthread_cond_wait(&run->came, &run->lock);
	run->awaited = NULL;
	pthread_mutex_unlock(&run->lock);
	return place;
}

static void free_run(struct run *run)
{
	for (size_t i = 0; run->places && i < run->window; i++)
		store_request_free(run->places[i].req);
	free(run->places);
	pthread_cond_destroy(&run->came);
	pthread_mutex_destroy(&run->lock);
}

static int init_run(struct run *run, struct store *s, size_t window)
{
	*run = (struct run){.window = window, .places = calloc(window, sizeof(*run->places))};
	pthread_mutex_init(&run->lock, NULL);
	pthread_cond_init(&run->came, NULL);
	for (size_t i = 0; run->places && i < window; i++) {
		run->places[i].req = store_request_new(s, STORE_GET);
		if (!run->places[i].req)
			return -ENOMEM;
	}
	return run->places ? 0 : -ENOMEM;
}

int store_run_row(struct store *s, const struct store_row *row)
{
	const size_t window = row->at_once < row->n ? row->at_once : row->n;
	size_t submitted = 0;
	struct run run;
	if (window == 0)
		return 0;
	int rc = init_run(&run, s, window);
	for (size_t i = 0; i < (rc ? submitted : row->n); i++) {
		while (!rc && submitted < row->n && submitted - i < window)
			submit(s, row, &run, submitted++);
		struct place *place = await(&run, i);
		if (!rc)
			rc = row->take(row->arg, i, place->req);
		store_request_release(place->req);
	}
	free_run(&run);
	return rc;
}
