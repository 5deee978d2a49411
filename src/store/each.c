/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of gets: the caller takes the results in order, while the store works on the later ones.
 * Results wait in a ring as large as the window, so the i-th request has place i modulo the window,
 * which is free as soon as the result that was there has been taken.
 *
 * Threads: completions come from any thread. Places are guarded by the run's lock, which a
 * completion holds when it touches the run for the last time: the run may vanish as soon as all
 * that was submitted has been seen done.
 */
#include <store/store.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct place {
	struct run *run;
	bool done;
	struct store_get_result res;
};

struct run {
	pthread_mutex_t lock;
	pthread_cond_t came; /* the one that is awaited */
	const struct place *awaited;
	size_t window;
	struct place *places;
};

static void put(void *arg, struct store_get_result *res)
{
	struct place *place = arg;
	struct run *run = place->run;
	pthread_mutex_lock(&run->lock);
	place->res = *res;
	place->done = true;
	if (run->awaited == place)
		pthread_cond_signal(&run->came);
	pthread_mutex_unlock(&run->lock);
}

static void submit(struct store *s, const struct store_each *each, struct run *run, size_t i)
{
	struct place *place = &run->places[i % run->window];
	struct store_get req = {0};
	*place = (struct place){.run = run};
	if (!each->request(each->arg, i, &req)) {
		place->done = true;
		return;
	}
	req.done = put;
	req.arg = place;
	store_get_async(s, &req);
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

int store_get_each(struct store *s, const struct store_each *each)
{
	const size_t window = each->at_once < each->n ? each->at_once : each->n;
	size_t submitted = 0;
	int rc = 0;
	if (window == 0)
		return 0;
	struct run run = {.window = window, .places = calloc(window, sizeof(*run.places))};
	if (!run.places)
		return -ENOMEM;
	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.came, NULL);
	for (size_t i = 0; i < (rc ? submitted : each->n); i++) {
		while (!rc && submitted < each->n && submitted - i < window)
			submit(s, each, &run, submitted++);
		struct place *place = await(&run, i);
		if (!rc)
			rc = each->take(each->arg, i, &place->res);
		bytes_release(&place->res.body);
	}
	pthread_cond_destroy(&run.came);
	pthread_mutex_destroy(&run.lock);
	free(run.places);
	return rc;
}
