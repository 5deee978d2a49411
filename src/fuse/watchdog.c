/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread polls three files: the signals, an eventfd with what others say, and the connection to
 * the kernel, which reports an error when the mount is gone. It sleeps without a limit while no
 * read is under way and nothing ends.
 *
 * libfuse's loop waits for its end in sem_wait(), which a signal must interrupt. The signals that
 * end the program come here instead, so this thread sends the serving one another, with a handler
 * that does nothing, again and again: the loop may be just about to wait.
 */
#include "watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <hsmount/log.h>

#include "clock.h"
#include "fuse_api.h"
#include "interrupted.h"
#include "pending_reads.h"
#include "signals.h"

enum {
	TICK_MS = 100,	/* while there are reads that may take too long, or interrupted requests */
	NUDGE_MS = 50,	/* while the session ends */
	NUDGE = SIGUSR2 /* to the serving thread */
};

struct watchdog {
	struct watchdog_config config;
	struct fuse_session *session;
	pthread_t thread, server;
	int signals, event; /* signalfd, eventfd */
	atomic_bool stop;   /* the session has ended */
	sigset_t old_mask;
	struct sigaction old_nudge;
};

static void do_nothing(int number)
{
}

/* ends: 0, or when patience is over. */
static int timeout_of(bool looking, uint64_t ends)
{
	if (ends)
		return NUDGE_MS;
	return looking ? TICK_MS : -1;
}

/* Reads the file empty, whatever it is. */
static void drain(int fd)
{
	char buf[sizeof(struct signalfd_siginfo)];
	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

/* As it was told to. Nothing is lost: the mount is read-only. Unmounting first keeps a dead mount
 * point from being left behind. */
static void leave(struct watchdog *w) __attribute__((noreturn));
static void leave(struct watchdog *w)
{
	log_warning(w->config.log, "requests to the bucket do not end: leaving without them");
	fuse_session_unmount(w->session);
	_exit(EXIT_SUCCESS);
}

static void *watch(void *arg)
{
	struct watchdog *w = arg;
	struct pollfd fds[] = {
		{.fd = w->signals, .events = POLLIN},
		{.fd = w->event, .events = POLLIN},
		{.fd = fuse_session_fd(w->session)},
	};
	bool looking = false;
	uint64_t ends = 0;
	while (!atomic_load(&w->stop)) {
		int n = poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_of(looking, ends));
		if (n < 0)
			continue;
		if (!ends && (fds[0].revents || fds[2].revents)) {
			ends = clock_ns() + WATCHDOG_GRACE_MS * UINT64_C(1000000);
			fuse_session_exit(w->session);
			pending_reads_stop(w->config.pending_reads);
			fds[2].fd = -1; /* it would report its error without end */
		}
		if (fds[0].revents)
			drain(w->signals);
		if (fds[1].revents)
			drain(w->event);
		looking = pending_reads_expire(w->config.pending_reads, clock_ns());
		looking |= interrupted_look(w->config.interrupted, signals_end);
		if (ends && !atomic_load(&w->stop)) {
			if (clock_ns() > ends)
				leave(w);
			pthread_kill(w->server, NUDGE);
		}
	}
	return NULL;
}

/* Those that somebody ignores (nohup) stay ignored: a blocked signal would not. */
static void ending_signals(sigset_t *set)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction now;
		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, numbers[i]);
	}
}

struct watchdog *watchdog_start(const struct watchdog_config *config, struct fuse_session *session,
				struct err *err)
{
	const struct sigaction nudge = {.sa_handler = do_nothing};
	struct watchdog *w = calloc(1, sizeof(*w));
	sigset_t set;
	if (!w) {
		err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	w->config = *config;
	w->session = session;
	w->server = pthread_self();
	ending_signals(&set);
	w->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	w->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_sigmask(SIG_BLOCK, &set, &w->old_mask);
	sigaction(NUDGE, &nudge, &w->old_nudge);
	int rc = w->signals < 0 || w->event < 0 ? -errno : 0;
	if (!rc)
		rc = -pthread_create(&w->thread, NULL, watch, w);
	if (!rc)
		return w;
	err_errno(err, rc, "the thread that watches");
	sigaction(NUDGE, &w->old_nudge, NULL);
	pthread_sigmask(SIG_SETMASK, &w->old_mask, NULL);
	if (w->signals >= 0)
		close(w->signals);
	if (w->event >= 0)
		close(w->event);
	free(w);
	return NULL;
}

void watchdog_wake(struct watchdog *w)
{
	const uint64_t one = 1;
	/* A counter that is full has been said enough. */
	ssize_t n = write(w->event, &one, sizeof(one));
	(void)n;
}

void watchdog_stop(struct watchdog *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, true);
	watchdog_wake(w);
	pthread_join(w->thread, NULL);
	/* A signal that came meanwhile has done what it was for. */
	drain(w->signals);
	sigaction(NUDGE, &w->old_nudge, NULL);
	pthread_sigmask(SIG_SETMASK, &w->old_mask, NULL);
	close(w->signals);
	close(w->event);
	free(w);
}
