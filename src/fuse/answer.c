/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See answer.h. libfuse calls the function of an interrupt under the request's own lock, either in
 * the thread that received the kernel's word, which holds a reference to the request, or within
 * fuse_req_interrupt_func(), which does not: an answer given there would free the lock under its
 * holder's feet. Hence `begun`.
 */
#include "answer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static void interrupted(fuse_req_t req, void *arg)
{
	struct answer *a = arg;
	if (!answer_is_unwanted(req))
		return;
	pthread_mutex_lock(&a->lock);
	const bool ours = !a->given, begun = a->begun;
	a->given = true;
	pthread_mutex_unlock(&a->lock);
	/* From here on `a` may be gone. */
	if (ours && begun)
		fuse_reply_err(req, EINTR);
}

bool answer_begin(struct answer *a, fuse_req_t req)
{
	*a = (struct answer){.req = req, .lock = PTHREAD_MUTEX_INITIALIZER};
	fuse_req_interrupt_func(req, interrupted, a);
	pthread_mutex_lock(&a->lock);
	a->begun = true;
	const bool early = a->given;
	pthread_mutex_unlock(&a->lock);
	if (!early)
		return true;
	fuse_req_interrupt_func(req, NULL, NULL);
	pthread_mutex_destroy(&a->lock);
	fuse_reply_err(req, EINTR);
	return false;
}

bool answer_claim(struct answer *a)
{
	pthread_mutex_lock(&a->lock);
	const bool ours = !a->given;
	a->given = true;
	pthread_mutex_unlock(&a->lock);
	/* An interrupt that comes now finds the answer given; behind this call none runs. */
	if (ours)
		fuse_req_interrupt_func(a->req, NULL, NULL);
	pthread_mutex_destroy(&a->lock);
	return ours;
}

/* The masks of proc(5), /proc/PID/status: signal n is bit n - 1. */
static uint64_t bit(int number)
{
	return UINT64_C(1) << (number - 1);
}

bool answer_is_unwanted(fuse_req_t req)
{
	const uint64_t ends = bit(SIGHUP) | bit(SIGINT) | bit(SIGQUIT) | bit(SIGTERM) |
			      bit(SIGKILL) | bit(SIGXCPU);
	uint64_t thread = 0, process = 0, blocked = 0;
	unsigned int found = 0;
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)fuse_req_ctx(req)->pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return true;
	while (fgets(line, sizeof(line), f)) {
		found += sscanf(line, "SigPnd: %" SCNx64, &thread) == 1;
		found += sscanf(line, "ShdPnd: %" SCNx64, &process) == 1;
		found += sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1;
	}
	fclose(f);
	return found != 3 || ((thread | process) & ~blocked & ends) != 0;
}
