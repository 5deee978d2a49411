/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential_process ("Sourcing credentials with an external process", AWS CLI User Guide): the
 * command writes JSON to its standard output and inherits standard error. A command that does not
 * end in time is killed with its process group.
 */
#include "provider.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 64 << 10 };

static const uint64_t timeout_ns = UINT64_C(60) * 1000000000;

/* Starts a shell in its own process group, with standard output in a pipe. directory may be NULL.
 */
static int start(const char *command, const char *directory, pid_t *pid, int *out)
{
	int fds[2];
	char shell[] = "/bin/sh", flag[] = "-c";
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	auto_free char *copy = strdup(command);
	if (!copy)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	char *argv[] = {shell, flag, copy, NULL};
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	/* If the directory is missing, a command with an absolute path can still run. */
	if (directory && access(directory, X_OK) == 0)
		posix_spawn_file_actions_addchdir_np(&actions, directory);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	int rc = -posix_spawn(pid, shell, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc)
		close(fds[0]);
	else
		*out = fds[0];
	return rc;
}

static int collect(const struct env *env, int fd, uint64_t end, struct str *out)
{
	char part[4096];
	for (;;) {
		const uint64_t now = env->now(env);
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (now >= end)
			return -ETIMEDOUT;
		int n = poll(&ready, 1, (int)((end - now) / 1000000) + 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0)
			continue;
		ssize_t got = read(fd, part, sizeof(part));
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		if ((size_t)got > OUTPUT_MAX - out->b.len)
			return -EFBIG;
		str_addn(out, part, (size_t)got);
	}
	explicit_bzero(part, sizeof(part));
	return str_ok(out) ? 0 : -ENOMEM;
}

/* Waits until the command ends. It may have closed its output earlier. If this process ignores
 * SIGCHLD, waitpid() fails and the exit status is unknown. */
static int await_exit(const struct env *env, pid_t pid, uint64_t end, int *status)
{
	const uint64_t ms = 1000000;
	for (;;) {
		const pid_t ended = waitpid(pid, status, WNOHANG);
		if (ended == pid || (ended < 0 && errno != EINTR))
			return 0;
		if (env->now(env) >= end)
			return -ETIMEDOUT;
		env->sleep(env, ms);
	}
}

int cred_run_process(const struct aws_environment *w, const char *command, struct cred *out,
		     struct err *err)
{
	const uint64_t end = w->env->now(w->env) + timeout_ns;
	auto_secret struct str json = {0};
	pid_t pid = -1;
	int fd = -1, status = 0;
	int rc = start(command, w->directory, &pid, &fd);
	if (rc)
		return err_errno(err, rc, "credential_process");
	rc = collect(w->env, fd, end, &json);
	close(fd);
	if (!rc)
		rc = await_exit(w->env, pid, end, &status);
	if (rc) {
		kill(-pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return err_errno(err, rc, "credential_process");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(err, -EACCES, "credential_process failed (%s %d)",
			       WIFEXITED(status) ? "status" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return cred_from_json(&json, "SessionToken", "credential_process", out, err);
}
