/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once, and listings of many pages. All is submitted, then waited for: the pool
 * (or the store's own connections) bounds what really runs side by side.
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

int store_get_many(struct store *s, const struct store_get *reqs, size_t n,
		   struct store_get_result *results)
{
	if (n == 0)
		return 0;
	auto_free struct slot *slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	struct waiter waiter;
	wait_init(&waiter, n);
	for (size_t i = 0; i < n; i++) {
		struct store_get req = reqs[i];
		slots[i] = (struct slot){.waiter = &waiter, .res = &results[i]};
		req.done = fill_slot;
		req.arg = &slots[i];
		store_get_async(s, &req);
	}
	wait_all(&waiter);
	return 0;
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

int store_list_all(struct store *s, const char *prefix, bool delimit, uint32_t limit,
		   struct store_page *all, struct err *err)
{
	auto_page struct store_page sum = {0};
	char after[STORE_KEY_MAX + 1];
	memset(all, 0, sizeof(*all));
	struct store_list req = {.prefix = prefix, .delimit = delimit};
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
		if (sum.n > limit)
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
	job->code = store_list_all(task->s, job->prefix, job->delimit, job->limit, &job->page,
				   &job->err);
	wait_done(task->waiter);
}

int store_list_many(struct store *s, struct store_list_job *jobs, size_t n)
{
	if (n == 0)
		return 0;
	auto_free struct list_task *tasks = calloc(n, sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	struct waiter waiter;
	wait_init(&waiter, n);
	for (size_t i = 0; i < n; i++) {
		memset(&jobs[i].page, 0, sizeof(jobs[i].page));
		jobs[i].code = 0;
		jobs[i].err = (struct err)ERR_INIT;
		tasks[i] = (struct list_task){.s = s, .job = &jobs[i], .waiter = &waiter};
		if (pool_submit(s->env->pool, run_list, &tasks[i]))
			run_list(&tasks[i]);
	}
	wait_all(&waiter);
	return 0;
}
