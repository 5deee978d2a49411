/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sockets of a transport. I/O thread. */
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int http_sockets_init(struct http_sockets *sockets, const struct env *env, struct http_stats *meter,
		      unsigned int connections)
{
	/* libcurl may try several addresses of a host at once. A socket that does not fit into the
	 * table works, but more slowly. */
	sockets->cap = 2 * connections + 16;
	sockets->env = env;
	sockets->meter = meter;
	sockets->v = calloc(sockets->cap, sizeof(*sockets->v));
	return sockets->v ? 0 : -ENOMEM;
}

void http_sockets_release(struct http_sockets *sockets)
{
	free(sockets->v);
	free(sockets->fd_index);
	sockets->v = NULL;
	sockets->fd_index = NULL;
	sockets->fd_index_len = 0;
}

static struct http_socket *find(const struct http_sockets *sockets, int fd)
{
	const bool known = fd >= 0 && (size_t)fd < sockets->fd_index_len && sockets->fd_index[fd];
	return known ? &sockets->v[sockets->fd_index[fd] - 1] : NULL;
}

/* Makes fd_index large enough for the descriptor. Returns false if out of memory. */
static bool grow_fd_index(struct http_sockets *sockets, int fd)
{
	const size_t n = 2 * (size_t)fd + 64;
	if ((size_t)fd < sockets->fd_index_len)
		return true;
	unsigned int *fd_index = realloc(sockets->fd_index, n * sizeof(*fd_index));
	if (!fd_index)
		return false;
	memset(fd_index + sockets->fd_index_len, 0,
	       (n - sockets->fd_index_len) * sizeof(*fd_index));
	sockets->fd_index = fd_index;
	sockets->fd_index_len = n;
	return true;
}

static void add(struct http_sockets *sockets, int fd)
{
	if (sockets->n == sockets->cap || !grow_fd_index(sockets, fd))
		return;
	sockets->v[sockets->n++] = (struct http_socket){.fd = fd, .id = ++sockets->opened};
	sockets->fd_index[fd] = sockets->n;
}

static void drop(struct http_sockets *sockets, int fd)
{
	struct http_socket *s = find(sockets, fd);
	if (!s)
		return;
	if (s->used)
		http_stats_disconnected(sockets->meter);
	*s = sockets->v[--sockets->n];
	sockets->fd_index[s->fd] = sockets->fd_index[fd];
	sockets->fd_index[fd] = 0;
}

/* libcurl closes a socket that could not be connected without calling close_socket(), so the table
 * may still have an older socket under this descriptor. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_sockets *sockets = arg;
	const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	drop(sockets, fd);
	add(sockets, fd);
	return fd;
}

static int close_socket(void *arg, curl_socket_t fd)
{
	struct http_sockets *sockets = arg;
	drop(sockets, fd);
	return close(fd);
}

void http_sockets_attach(struct http_sockets *sockets, CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, sockets);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, sockets);
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Returns the port, 0 if the address is neither IPv4 nor IPv6. Writes the address to text unless
 * that is NULL. */
static int port_of(const union address *a, char text[INET6_ADDRSTRLEN])
{
	const bool v4 = a->any.sa_family == AF_INET;
	const void *bytes = v4 ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr;
	if (!v4 && a->any.sa_family != AF_INET6)
		return 0;
	if (text)
		inet_ntop(a->any.sa_family, bytes, text, INET6_ADDRSTRLEN);
	return ntohs(v4 ? a->v4.sin_port : a->v6.sin6_port);
}

/* Has no effect on a socket that is not connected yet. */
static void find_ends(struct http_socket *s)
{
	union address local = {0}, peer = {0};
	socklen_t n = sizeof(local), peer_n = sizeof(peer);
	if (getpeername(s->fd, &peer.any, &peer_n) || getsockname(s->fd, &local.any, &n))
		return;
	s->peer_port = port_of(&peer, s->peer);
	s->port = port_of(&local, NULL);
}

int http_socket_between(struct http_sockets *sockets, int port, const char *peer, int peer_port,
			uint64_t age)
{
	for (unsigned int i = 0; i < sockets->n; i++) {
		struct http_socket *s = &sockets->v[i];
		if (!s->port)
			find_ends(s);
		if (s->port != port || s->peer_port != peer_port || strcmp(s->peer, peer) != 0)
			continue;
		if (!s->used)
			http_stats_connected(sockets->meter);
		s->used = true;
		s->age = age;
		return s->fd;
	}
	return -1;
}

uint64_t http_socket_age(const struct http_sockets *sockets, int fd)
{
	const struct http_socket *s = find(sockets, fd);
	return s ? s->age : 0;
}

uint64_t http_socket_id(const struct http_sockets *sockets, int fd)
{
	const struct http_socket *s = find(sockets, fd);
	return s ? s->id : 0;
}

struct http_socket *http_socket_used(const struct http_sockets *sockets, int fd)
{
	struct http_socket *s = find(sockets, fd);
	return s && s->used ? s : NULL;
}

void http_socket_note_received(struct http_sockets *sockets, int fd)
{
	struct http_socket *s = find(sockets, fd);
	if (s)
		s->received_ns = sockets->env->now(sockets->env);
}

bool http_socket_received_since(const struct http_sockets *sockets, int fd, uint64_t then_ns)
{
	const struct http_socket *s = find(sockets, fd);
	return !s || s->received_ns >= then_ns;
}

void http_socket_shut(int fd)
{
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
}

void http_socket_acknowledge(const struct http_sockets *sockets, int fd)
{
	const int on = 1;
	if (find(sockets, fd))
		setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}
