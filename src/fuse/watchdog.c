/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread polls two files: the signals and the table of requests. It sleeps without a limit
 * while there are no requests.
 *
 * After an unmount, the connection to the kernel has an error. A thread that waits for a request
 * gets it and ends the session. For the case that all threads serve requests that last, this
 * thread looks at the connection, too, but only once a second: if it polled the connection, each
 * request of the kernel would wake it.
 *
 * libfuse's loop waits for the end of the session in sem_wait(), which only a signal interrupts.
 * But this thread receives the signals that end the daemon. So it sends the loop's thread another
 * signal, whose handler does nothing, and repeats that until the loop has ended, because a signal
 * that arrives just before sem_wait() has no effect.
 */
#include "watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <hsmount/log.h>
#include <base/clock.h>

#include "fuse_api.h"
#include "kernel_request.h"

enum {
	NUDGE_MS = 50,	/* time between two signals to the loop while the session ends */
	NUDGE = SIGUSR2 /* the signal to the loop */
};

struct watchdog {
	struct log *log;
	struct requests *requests;
	struct fuse_session *session;
	pthread_t thread, loop;
	bool writes;
	int signals;	  /* signalfd */
	atomic_bool stop; /* the session has ended */
	sigset_t old_mask;
	struct sigaction old_nudge;
};

static void do_nothing(int number)
{
}

/* Reads a non-blocking signalfd or eventfd empty. */
static void drain(int fd)
{
	char buf[sizeof(struct signalfd_siginfo)];
	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

/* Ends the process while requests are still being served. No data are lost: the journal has what
 * the bucket has not. Without the unmount a dead mount point would be left behind. */
static void exit_now(struct watchdog *w) __attribute__((noreturn));
static void exit_now(struct watchdog *w)
{
	log_warning(w->log, "exiting without waiting for requests to the bucket that do not end%s",
		    w->writes ? "; the journal keeps files that are not in the bucket: see "
				"hsimage recover"
			      : "");
	fuse_session_unmount(w->session);
	_exit(EXIT_SUCCESS);
}

static bool is_unmounted(const struct watchdog *w)
{
	struct pollfd connection = {.fd = fuse_session_fd(w->session)};
	return poll(&connection, 1, 0) > 0;
}

static void *watch(void *arg)
{
	struct watchdog *w = arg;
	struct pollfd fds[] = {
		{.fd = w->signals, .events = POLLIN},
		{.fd = requests_fd(w->requests), .events = POLLIN},
	};
	const int grace_ms = w->writes ? WATCHDOG_GRACE_WRITE_MS : WATCHDOG_GRACE_MS;
	uint64_t grace_ends = 0; /* 0 while the session is not ending */
	int timeout = -1;
	while (!atomic_load(&w->stop)) {
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), timeout) < 0)
			continue;
		if (!grace_ends && (fds[0].revents || is_unmounted(w))) {
			grace_ends = clock_ns() + (uint64_t)grace_ms * 1000000;
			fuse_session_exit(w->session);
			requests_stop(w->requests);
		}
		drain(w->signals);
		drain(requests_fd(w->requests));
		timeout = requests_expire(w->requests);
		if (grace_ends && !atomic_load(&w->stop)) {
			if (clock_ns() > grace_ends)
				exit_now(w);
			pthread_kill(w->loop, NUDGE);
			timeout = NUDGE_MS;
		}
	}
	return NULL;
}

/* Frees w. Restores the calling thread's signal mask and the handler of NUDGE. */
static void release(struct watchdog *w)
{
	sigaction(NUDGE, &w->old_nudge, NULL);
	pthread_sigmask(SIG_SETMASK, &w->old_mask, NULL);
	if (w->signals >= 0)
		close(w->signals);
	free(w);
}

struct watchdog *watchdog_start(struct log *log, struct requests *requests,
				struct fuse_session *session, bool writes, struct err *err)
{
	const struct sigaction nudge = {.sa_handler = do_nothing};
	struct watchdog *w = calloc(1, sizeof(*w));
	sigset_t set;
	if (!w) {
		err_no_memory(err);
		return NULL;
	}
	w->log = log;
	w->requests = requests;
	w->session = session;
	w->writes = writes;
	w->loop = pthread_self();
	/* The signals that end the daemon, without those that it ignores (nohup): signalfd would
	 * report these, too. */
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction now;
		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	}
	pthread_sigmask(SIG_BLOCK, &set, &w->old_mask);
	sigaction(NUDGE, &nudge, &w->old_nudge);
	w->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	int rc = w->signals < 0 ? -errno : -pthread_create(&w->thread, NULL, watch, w);
	if (!rc)
		return w;
	err_errno(err, rc, "cannot start the watchdog thread");
	release(w);
	return NULL;
}

void watchdog_stop(struct watchdog *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, true);
	requests_wake(w->requests);
	pthread_join(w->thread, NULL);
	/* A signal that is still pending would end the process when it is no longer blocked. */
	drain(w->signals);
	release(w);
}
