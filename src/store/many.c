/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once, and listings of many pages. All is submitted, then waited for: the pool
 * (or the store's own connections) bounds what really runs side by side. A long row of gets is
 * in each.c.
 */
#include <store/store.h>

#include "page.h"
#include "wait.h"

#include <errno.h>
#include <string.h>

/* ---- gets ---- */

struct slot {
	struct waiter *waiter;
	struct store_get_result *res;
};

static void fill_slot(void *arg, struct store_get_result *res)
{
	struct slot *slot = arg;
	*slot->res = *res;
	wait_done(slot->waiter);
}

/* ---- lists ---- */

/* Puts the items of a page behind those that are there. An only page is taken whole. */
static int take_page(struct store_page *all, struct store_page *page)
{
	if (!all->arena && !page->more) {
		*all = *page;
		memset(page, 0, sizeof(*page));
		return 0;
	}
	if (!all->arena && page_init(all))
		return -ENOMEM;
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		if (page_add(all, item->key, item->is_prefix ? NULL : &item->meta))
			return -ENOMEM;
	}
	return 0;
}

static int too_many(struct err *err, const char *prefix, uint32_t limit)
{
	return err_set(err, -E2BIG, "more than %u objects below '%s'", limit, prefix);
}

int store_list_all(struct store *s, const char *prefix, unsigned int how, uint32_t limit,
		   struct store_page *all, struct err *err)
{
	auto_page struct store_page sum = {0};
	char after[STORE_KEY_MAX + 1];
	memset(all, 0, sizeof(*all));
	struct store_list req = {
		.prefix = prefix, .delimit = how & STORE_DELIMIT, .complete = how & STORE_COMPLETE};
	for (;;) {
		auto_page struct store_page page = {0};
		req.limit = limit - (uint32_t)sum.n;
		req.max = req.limit == UINT32_MAX ? req.limit : req.limit + 1;
		int rc = store_list_page(s, &req, &page, err);
		if (rc == -E2BIG)
			return too_many(err, prefix, limit);
		if (rc)
			return rc;
		const bool more = page.more;
		if (more) {
			const char *next = page.next ? page.next : "";
			if (strlen(next) > STORE_KEY_MAX ||
			    strcmp(next, req.start_after ? req.start_after : "") <= 0)
				return err_set(err, -EIO, "listing of '%s' does not advance",
					       prefix);
			strcpy(after, next);
			req.start_after = after;
		}
		if (take_page(&sum, &page))
			return err_set(err, -ENOMEM, "listing of '%s': no memory", prefix);
		/* What follows would be too much: no need to see it. */
		if (sum.n > limit || (more && sum.n == limit))
			return too_many(err, prefix, limit);
		if (!more)
			break;
	}
	*all = sum;
	memset(&sum, 0, sizeof(sum));
	return 0;
}

struct list_task {
	struct store *s;
	struct store_list_job *job;
	struct waiter *waiter;
};

static void run_list(void *arg)
{
	struct list_task *task = arg;
	struct store_list_job *job = task->job;
	job->code =
		store_list_all(task->s, job->prefix, job->how, job->limit, &job->page, &job->err);
	wait_done(task->waiter);
}

/* ---- rounds ---- */

static void submit_list(struct list_task *task)
{
	struct store_list_job *job = task->job;
	memset(&job->page, 0, sizeof(job->page));
	job->code = 0;
	job->err = (struct err)ERR_INIT;
	if (pool_submit(task->s->env->pool, run_list, task))
		run_list(task);
}

static void submit_get(struct store *s, const struct store_get *req, struct slot *slot)
{
	struct store_get submitted = *req;
	submitted.done = fill_slot;
	submitted.arg = slot;
	store_get_async(s, &submitted);
}

int store_round(struct store *s, const struct store_get *reqs, size_t nreqs,
		struct store_get_result *results, struct store_list_job *jobs, size_t njobs)
{
	if (nreqs + njobs == 0)
		return 0;
	auto_free struct slot *slots = calloc(nreqs ? nreqs : 1, sizeof(*slots));
	auto_free struct list_task *tasks = calloc(njobs ? njobs : 1, sizeof(*tasks));
	if (!slots || !tasks)
		return -ENOMEM;
	struct waiter waiter;
	wait_init(&waiter, nreqs + njobs);
	/* Gets wait for nobody in their caller, lists may. */
	for (size_t i = 0; i < nreqs; i++) {
		slots[i] = (struct slot){.waiter = &waiter, .res = &results[i]};
		submit_get(s, &reqs[i], &slots[i]);
	}
	for (size_t i = 0; i < njobs; i++) {
		tasks[i] = (struct list_task){.s = s, .job = &jobs[i], .waiter = &waiter};
		submit_list(&tasks[i]);
	}
	wait_all(&waiter);
	return 0;
}

int store_get_many(struct store *s, const struct store_get *reqs, size_t n,
		   struct store_get_result *results)
{
	return store_round(s, reqs, n, results, NULL, 0);
}

int store_list_many(struct store *s, struct store_list_job *jobs, size_t n)
{
	return store_round(s, NULL, 0, NULL, jobs, n);
}
