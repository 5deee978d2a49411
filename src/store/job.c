/* SPDX-License-Identifier: Apache-2.0 */
/* A get as a job of the pool. A job belongs to one thread at a time. */
#include <store/job.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct job {
	struct store *s;
	struct store_get req;
	job_fn fn;
	char strings[]; /* what req points to */
};

static void run(void *arg)
{
	struct job *job = arg;
	job->fn(job->s, &job->req);
	free(job);
}

static size_t room(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static const char *keep(char **at, const char *s)
{
	size_t n = room(s);
	if (n == 0)
		return NULL;
	char *copy = memcpy(*at, s, n);
	*at += n;
	return copy;
}

int job_submit(struct store *s, const struct store_get *req, job_fn fn)
{
	struct job *job = malloc(sizeof(*job) + room(req->key) + room(req->cond.if_match) +
				 room(req->cond.if_none_match) + room(req->known_etag));
	if (!job)
		return -ENOMEM;
	char *at = job->strings;
	job->s = s;
	job->fn = fn;
	job->req = *req;
	job->req.key = keep(&at, req->key);
	job->req.cond.if_match = keep(&at, req->cond.if_match);
	job->req.cond.if_none_match = keep(&at, req->cond.if_none_match);
	job->req.known_etag = keep(&at, req->known_etag);
	int rc = pool_submit(s->env->pool, run, job);
	if (rc)
		free(job);
	return rc;
}

void job_finish(const struct store_get *req, struct store_get_result *res)
{
	if (res->code)
		bytes_release(&res->body);
	req->done(req->arg, res);
}

void job_fail(const struct store_get *req, int code, const char *fmt, ...)
{
	struct store_get_result res = {.code = code};
	char why[ERR_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(&res.err, code, "%s", why);
	req->done(req->arg, &res);
}
