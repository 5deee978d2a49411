/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O thread. It takes all queued calls at once and starts as many as there are connections.
 * libcurl's own queue is not used, because its time-outs run while a call waits there.
 *
 * Invariants: n_active <= connections + HTTP_URGENT, and more than connections only with urgent
 * calls. A call that is submitted and not done is in exactly one of inbox (under the lock), waiting
 * and active (both used by the thread only). done is called without the lock.
 */
#include "call.h"

#include "pace.h"
#include "poll.h"
#include <base/mem.h>
#include <base/thread.h>
#include <base/wait.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	TICK_MS = 100,	 /* a time-out is detected at most two ticks late */
	CANCEL_MS = 500, /* a cancelled call may still be answered for this long */
	IDLE_MS = 60000, /* interval of checks without active calls */
	NS_PER_MS = 1000000,
};

struct calls {
	struct http_call *head, **tail;
};

struct http_io {
	const struct env *env;
	struct http_options opt;
	CURLM *multi;
	struct http_poll poll;

	pthread_mutex_t lock; /* guards the next three */
	struct calls inbox;
	bool stopping, running;
	pthread_t thread; /* valid while running; http_io_stop_thread() joins it */

	/* used by the thread only */
	struct calls waiting[HTTP_PRIORITIES];
	struct http_call **active; /* room for opt.connections + HTTP_URGENT */
	CURL **spare;		   /* easy handles of earlier calls, likewise */
	unsigned int n_active, n_spare;
	uint64_t swept_ns;
	uint64_t started; /* calls so far */
	struct http_pace pace;
	bool multiplexes; /* the last answer was HTTP/2 */
	struct http_sockets sockets;

	/* written by the thread, for http_io_connections() */
	atomic_uint connections;      /* UINT_MAX if it multiplexes */
	atomic_uint_fast64_t used_ns; /* time of the last answer */
};

static void push(struct calls *calls, struct http_call *call)
{
	call->next = NULL;
	*calls->tail = call;
	calls->tail = &call->next;
}

static struct http_call *pop(struct calls *calls)
{
	struct http_call *call = calls->head;
	if (call) {
		calls->head = call->next;
		if (!calls->head)
			calls->tail = &calls->head;
	}
	return call;
}

/* ---- the thread ---- */

static void end_early(struct http_call *call, enum http_end end, const char *reason)
{
	call->end = end;
	strcpy(call->reason, reason);
	call->done(call);
}

static void fail_early(struct http_call *call)
{
	end_early(call, HTTP_NO_MEMORY, "out of memory");
}

static enum http_phase phase_of(const struct http_call *call)
{
	if (call->answering)
		return HTTP_RECEIVING;
	return call->sent < call->body_len ? HTTP_SENDING : HTTP_AWAITING;
}

static void start_call(struct http_io *io, struct http_call *call)
{
	if (is_cancelled(&call->cancelled)) {
		end_early(call, HTTP_CANCELLED, HTTP_CANCELLED_REASON);
		return;
	}
	if (call->opens_connection && io->multiplexes) {
		end_early(call, HTTP_CANCELLED, "all calls share one connection");
		return;
	}
	CURL *easy =
		io->n_spare ? io->spare[--io->n_spare] : http_handle_new(&io->sockets, &io->opt);
	if (!easy) {
		fail_early(call);
		return;
	}
	if (http_call_prepare(call, easy, &io->sockets, io->multiplexes) ||
	    curl_multi_add_handle(io->multi, easy) != CURLM_OK) {
		curl_easy_cleanup(easy);
		fail_early(call);
		return;
	}
	call->serial = ++io->started;
	call->started_ns = io->env->now(io->env);
	http_timeouts_begin(&call->timeouts, phase_of(call), call->started_ns);
	io->active[io->n_active++] = call;
}

static void end_call(struct http_io *io, struct http_call *call, CURLcode result)
{
	CURL *easy = call->easy;
	unsigned int i = 0;
	http_call_end(call, result);
	if (call->end == HTTP_ANSWERED)
		io->multiplexes = http_call_was_multiplexed(call);
	/* A body that is too long is cut here; the server has answered. */
	const bool answered = call->end == HTTP_ANSWERED || call->end == HTTP_TOO_LONG;
	http_stats_request(io->opt.meter, call->metered, answered ? call->status : 0,
			   io->env->now(io->env) - call->started_ns, call->received, call->sent);
	curl_multi_remove_handle(io->multi, easy);
	http_handle_renew(easy, call, &io->opt);
	if (answered)
		atomic_store(&io->used_ns, io->env->now(io->env));
	atomic_store(&io->connections, io->multiplexes ? UINT_MAX : io->sockets.n);
	io->spare[io->n_spare++] = easy;
	while (io->active[i] != call)
		i++;
	io->active[i] = io->active[--io->n_active];
	call->easy = NULL;
	call->done(call);
}

static void reap(struct http_io *io)
{
	int left;
	CURLMsg *msg;
	while ((msg = curl_multi_info_read(io->multi, &left))) {
		char *call = NULL;
		const CURLcode result = msg->data.result;
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call);
		end_call(io, (struct http_call *)(void *)call, result);
	}
}

/* A call is ended when it has been cancelled for CANCEL_MS. Ending a call closes its connection,
 * and a new one costs one or two round trips. So the thread waits for an answer that may be about
 * to arrive. */
static bool has_to_end(struct http_call *call, uint64_t now)
{
	if (!is_cancelled(&call->cancelled)) {
		call->cancelled_ns = 0;
		return false;
	}
	if (!call->cancelled_ns)
		call->cancelled_ns = now;
	return now - call->cancelled_ns >= (uint64_t)CANCEL_MS * 1000000;
}

/* Ends the calls that are cancelled or late at `now`. All data that had arrived by then has been
 * received: data that waits in the kernel, perhaps because this process was stopped, does not make
 * a call late. */
static void sweep(struct http_io *io, uint64_t now)
{
	io->swept_ns = now;
	for (unsigned int i = io->n_active; i-- > 0;) {
		struct http_call *call = io->active[i];
		struct http_limits limits = io->opt.limits;
		if (has_to_end(call, now)) {
			call->is_cancelled = true;
			end_call(io, call, CURLE_ABORTED_BY_CALLBACK);
			continue;
		}
		if (call->first_byte_ms)
			limits.first_byte_ms = call->first_byte_ms;
		if (!http_timeouts_ends(&call->timeouts, phase_of(call),
					call->sent + call->received, now, &limits))
			continue;
		call->late = true;
		/* If nothing was received since the call began, the connection is probably dead,
		 * and with HTTP/2 the next attempts of all its calls would use it again. */
		if (!http_socket_received_since(&io->sockets, call->fd, call->started_ns))
			http_socket_shut(call->fd);
		end_call(io, call, CURLE_OPERATION_TIMEDOUT);
	}
}

/* Returns NULL if no call is due. */
static struct http_call *next_waiting(struct http_io *io, uint64_t now)
{
	for (int i = 0; i < HTTP_PRIORITIES; i++) {
		struct http_call *call = io->waiting[i].head;
		if (!call || (call->paced && http_pace_wait(&io->pace, now)))
			continue;
		http_pace_begin(&io->pace, call->paced, call->submitted_ns);
		return pop(&io->waiting[i]);
	}
	return NULL;
}

static bool has_waiting(const struct http_io *io)
{
	for (int i = 0; i < HTTP_PRIORITIES; i++)
		if (io->waiting[i].head)
			return true;
	return false;
}

/* Returns how long the thread may sleep, which is until a call ends or is due. */
static unsigned int pause_ms(const struct http_io *io, uint64_t now)
{
	const unsigned int most = io->n_active ? TICK_MS : IDLE_MS;
	if (io->n_active >= io->opt.connections || !has_waiting(io))
		return most;
	return (unsigned int)min_u64(div_up_u64(http_pace_wait(&io->pace, now), NS_PER_MS), most);
}

/* Starts submitted calls, as many as there are connections. Returns false if the thread has to
 * end. */
static bool take_inbox(struct http_io *io)
{
	struct http_call *call;
	struct calls submitted;
	pthread_mutex_lock(&io->lock);
	submitted.head = io->inbox.head;
	io->inbox.head = NULL;
	io->inbox.tail = &io->inbox.head;
	const bool stopping = io->stopping;
	pthread_mutex_unlock(&io->lock);
	while ((call = submitted.head)) {
		submitted.head = call->next;
		if (call->is_urgent && io->n_active < io->opt.connections + HTTP_URGENT)
			start_call(io, call);
		else
			push(&io->waiting[call->priority], call);
	}
	const uint64_t now = io->env->now(io->env);
	while (io->n_active < io->opt.connections && (call = next_waiting(io, now)))
		start_call(io, call);
	return !stopping || io->n_active || has_waiting(io);
}

static void *run(void *arg)
{
	struct http_io *io = arg;
	while (take_inbox(io)) {
		const uint64_t now = io->env->now(io->env);
		http_pace_measure(&io->pace, io->sockets.received, now);
		const bool all = http_poll_serve(&io->poll, pause_ms(io, now));
		const bool due = all && now - io->swept_ns >= (uint64_t)TICK_MS * 1000000;
		if (due)
			http_poll_nudge(&io->poll, io->swept_ns);
		reap(io);
		if (due)
			sweep(io, now);
		/* TCP_QUICKACK is set again after requests that have been sent; see socket.h. */
		for (unsigned int i = 0; i < io->n_active; i++) {
			struct http_call *call = io->active[i];
			if (call->acknowledged || call->fd < 0 || call->sent < call->body_len)
				continue;
			http_socket_acknowledge(&io->sockets, call->fd);
			call->acknowledged = true;
		}
	}
	return NULL;
}

/* ---- any thread ---- */

void http_submit(struct http_io *io, struct http_call *call)
{
	call->io = io;
	pthread_mutex_lock(&io->lock);
	if (!io->running)
		io->running = thread_start(&io->thread, run, io);
	const bool runs = io->running;
	if (runs) {
		const bool is_first = !io->inbox.head;
		call->submitted_ns = io->env->now(io->env);
		push(&io->inbox, call);
		/* If there are other calls in the inbox, the thread was woken for them and has not
		 * taken them yet. This is under the lock, because the call may be done and io freed
		 * as soon as the thread has the call. */
		if (is_first)
			http_poll_wake(&io->poll);
	}
	pthread_mutex_unlock(&io->lock);
	if (!runs)
		fail_early(call);
}

static void wake_caller(struct http_call *call)
{
	wait_done(call->arg);
}

void http_run(struct http_io *io, struct http_call *call)
{
	struct waiter waiter;
	wait_init(&waiter, 1);
	call->done = wake_caller;
	call->arg = &waiter;
	http_submit(io, call);
	wait_all(&waiter);
}

unsigned int http_io_connections(struct http_io *io)
{
	const uint64_t idle_ns = (uint64_t)HTTP_IDLE_S * 1000000000;
	const unsigned int n = atomic_load(&io->connections);
	const bool is_idle = io->env->now(io->env) - atomic_load(&io->used_ns) > idle_ns;
	return is_idle && n != UINT_MAX ? 0 : n;
}

void http_io_stop_thread(struct http_io *io)
{
	pthread_mutex_lock(&io->lock);
	const bool running = io->running;
	io->stopping = true;
	pthread_mutex_unlock(&io->lock);
	if (running) {
		http_poll_wake(&io->poll);
		pthread_join(io->thread, NULL);
	}
	pthread_mutex_lock(&io->lock);
	io->running = false;
	io->stopping = false;
	pthread_mutex_unlock(&io->lock);
}

static int make(struct http_io *io, const struct http_options *opt, struct err *err)
{
	io->opt = *opt;
	io->active = calloc(opt->connections + HTTP_URGENT, sizeof(*io->active));
	io->spare = calloc(opt->connections + HTTP_URGENT, sizeof(*io->spare));
	io->multi = curl_multi_init();
	if (!io->active || !io->spare || !io->multi ||
	    http_sockets_init(&io->sockets, io->env, opt->meter, opt->connections))
		return err_set(err, -ENOMEM, "HTTP: out of memory");
	const int rc = http_poll_init(&io->poll, io->env, io->multi, &io->sockets);
	if (rc)
		return err_errno(err, rc, "HTTP: cannot wait for sockets");
	curl_multi_setopt(io->multi, CURLMOPT_MAXCONNECTS, (long)opt->connections);
	curl_multi_setopt(io->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)opt->connections);
	return 0;
}

struct http_io *http_io_new(const struct env *env, const struct http_options *opt, struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		err_set(err, -ENOMEM, "libcurl cannot be initialised");
		return NULL;
	}
	struct http_io *io = calloc(1, sizeof(*io));
	if (!io) {
		curl_global_cleanup();
		err_set(err, -ENOMEM, "HTTP: out of memory");
		return NULL;
	}
	io->env = env;
	io->inbox.tail = &io->inbox.head;
	for (int i = 0; i < HTTP_PRIORITIES; i++)
		io->waiting[i].tail = &io->waiting[i].head;
	pthread_mutex_init(&io->lock, NULL);
	if (make(io, opt, err)) {
		http_io_free(io);
		return NULL;
	}
	return io;
}

void http_io_free(struct http_io *io)
{
	http_io_stop_thread(io);
	while (io->n_spare)
		curl_easy_cleanup(io->spare[--io->n_spare]);
	/* Closes the open connections, which needs the table of sockets. */
	if (io->multi)
		curl_multi_cleanup(io->multi);
	http_sockets_release(&io->sockets);
	http_poll_release(&io->poll);
	pthread_mutex_destroy(&io->lock);
	free(io->active);
	free(io->spare);
	free(io);
	curl_global_cleanup();
}
