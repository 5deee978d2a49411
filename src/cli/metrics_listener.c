/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server is libmicrohttpd, with one thread for all connections. libmicrohttpd limits their
 * number, their memory and the time for which they may be silent.
 *
 * A request is refused unless its Host field is an address or "localhost". Otherwise a web page
 * could let its own name resolve to 127.0.0.1, and read the report through the browser of a user of
 * this machine (DNS rebinding).
 */
#include "metrics_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
	BACKLOG = 128,
	CONNECTION_MEMORY = 16 << 10, /* bytes; limits the request's header */
};

struct metrics_listener {
	struct engine *engine;
	int fd; /* the listening socket; -1 once the server owns it */
	struct MHD_Daemon *server;
};

/* Returns true for "127.0.0.1:9090", "[::1]", "localhost:9090" and the like. */
static bool is_address(const char *host)
{
	char name[INET6_ADDRSTRLEN];
	unsigned char address[sizeof(struct in6_addr)];
	const bool bracketed = host[0] == '[';
	host += bracketed;
	const size_t n = strcspn(host, bracketed ? "]" : ":");
	if (n >= sizeof(name) || (bracketed && !host[n]))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	const char *port = host + n + bracketed;
	if (*port == ':')
		port += 1 + strspn(port + 1, "0123456789");
	if (port[strspn(port, " \t")])
		return false;
	if (bracketed)
		return inet_pton(AF_INET6, name, address) == 1;
	return inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0;
}

static enum MHD_Result check_field(void *arg, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	bool *ok = arg;
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 && !(value && is_address(value)))
		*ok = false;
	return MHD_YES;
}

static unsigned int check(struct MHD_Connection *connection, const char *path, const char *method,
			  enum engine_report *kind)
{
	bool host_ok = true;
	MHD_get_connection_values(connection, MHD_HEADER_KIND, check_field, &host_ok);
	if (!host_ok)
		return MHD_HTTP_MISDIRECTED_REQUEST;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	*kind = strcmp(path, "/stats") == 0 ? ENGINE_REPORT_JSON : ENGINE_REPORT_PROMETHEUS;
	if (*kind == ENGINE_REPORT_PROMETHEUS && strcmp(path, "/metrics") != 0)
		return MHD_HTTP_NOT_FOUND;
	return MHD_HTTP_OK;
}

/* Implements MHD_AccessHandlerCallback. Responds once the header is complete, and ignores a body.
 */
static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *path,
			       const char *method, const char *version, const char *body,
			       size_t *body_size, void **request)
{
	static const char *const types[] = {
		[ENGINE_REPORT_JSON] = "application/json",
		[ENGINE_REPORT_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	};
	const struct metrics_listener *l = arg;
	enum engine_report kind = ENGINE_REPORT_PROMETHEUS;
	char *text = NULL;
	size_t n = 0;
	unsigned int status = check(connection, path, method, &kind);
	if (status == MHD_HTTP_OK && engine_report(l->engine, kind, &text, &n, NULL))
		status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				status == MHD_HTTP_OK ? types[kind] : "text/plain");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	const enum MHD_Result queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static int bind_socket(struct metrics_listener *l, const struct metrics_address *a, struct err *err)
{
	const int on = 1;
	l->fd = socket(a->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return err_errno(err, -errno, "metrics_listen: cannot create a socket");
	/* Otherwise connections of an earlier mount that have just ended would block the port. */
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->fd, (const struct sockaddr *)&a->address, a->n) || listen(l->fd, BACKLOG)) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->address;
		/* The port is at the same offset in both kinds of address. */
		return err_errno(err, -errno, "metrics_listen: port %u", ntohs(v4->sin_port));
	}
	return 0;
}

struct metrics_listener *metrics_listener_new(const struct metrics_address *address,
					      struct engine *engine, struct err *err)
{
	struct metrics_listener *l = calloc(1, sizeof(*l));
	if (!l) {
		err_no_memory(err);
		return NULL;
	}
	*l = (struct metrics_listener){.engine = engine, .fd = -1};
	if (bind_socket(l, address, err)) {
		metrics_listener_free(l);
		return NULL;
	}
	return l;
}

int metrics_listener_start(struct metrics_listener *l, struct err *err)
{
	sigset_t all, old;
	/* The new thread inherits the mask: signals are for the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	l->server = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL,
				     respond, l, MHD_OPTION_LISTEN_SOCKET, l->fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned int)METRICS_CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)METRICS_IDLE_S,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
				     MHD_OPTION_END);
	const int rc = l->server ? 0 : -errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	l->fd = -1; /* the server closes it */
	return rc ? err_errno(err, rc, "metrics_listen: cannot start the HTTP server") : 0;
}

void metrics_listener_free(struct metrics_listener *l)
{
	if (!l)
		return;
	if (l->server)
		MHD_stop_daemon(l->server);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}
