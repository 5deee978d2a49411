/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of sockets of a transport. It helps to receive small answers without delay. A server
 * without TCP_NODELAY sends the header of an answer, then waits for an acknowledgement before it
 * sends the last short segment, and Linux delays acknowledgements by 40 ms unless TCP_QUICKACK is
 * set. The kernel resets this option when data is sent, so it is set after each request and after
 * each part of an answer but the last. libcurl passes the addresses of both ends of a connection to
 * its callbacks, but not the socket. The table finds the socket.
 *
 * Used by the I/O thread. Init and release run while there is no such thread.
 */
#ifndef HTTP_SOCKET_H
#define HTTP_SOCKET_H

#include <curl/curl.h>
#include <netinet/in.h>

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <http/stats.h>

struct http_sockets {
	const struct env *env;
	struct http_stats *meter;
	struct http_socket {
		int fd;
		int port; /* local; 0 if not known yet. Not unique if the peers differ */
		int peer_port;
		char peer[INET6_ADDRSTRLEN];
		uint64_t received_ns; /* when data was received last, or 0 */
		uint64_t age;	      /* serial of the latest call that uses it */
		uint64_t id;	      /* unique, unlike fd */
		bool used;	      /* a request was sent over it */
		/* poll.c; once the socket is used */
		uint32_t events; /* epoll watches it for these; 0 if it does not, or unknown */
		bool idle;	 /* libcurl does not wait for it */
	} * v;
	unsigned int n, cap;
	/* For each descriptor below fd_index_len, its index in v plus one, or 0. It makes the
	 * look-up with each part of an answer fast. */
	unsigned int *fd_index;
	size_t fd_index_len;
	uint64_t opened;   /* number of sockets so far */
	uint64_t received; /* bytes of bodies so far */
};

/* env and meter are borrowed; meter may be NULL. Fails with -ENOMEM. */
int http_sockets_init(struct http_sockets *sockets, const struct env *env, struct http_stats *meter,
		      unsigned int connections);
void http_sockets_release(struct http_sockets *sockets);
/* Makes libcurl open and close its sockets through the table. */
void http_sockets_attach(struct http_sockets *sockets, CURL *easy);
/* Returns the socket between a local port and a peer (an address as text, and a port), or -1 if
 * there is none. age is the serial of the call that uses it from now on. */
int http_socket_between(struct http_sockets *sockets, int port, const char *peer, int peer_port,
			uint64_t age);
/* Returns the serial of the latest call that uses the socket, or 0 if none does, because it is
 * being connected. */
uint64_t http_socket_age(const struct http_sockets *sockets, int fd);
/* Returns the socket's unique id, or 0 if the descriptor is not in the table. */
uint64_t http_socket_id(const struct http_sockets *sockets, int fd);
/* Returns the socket if a request was sent over it, otherwise NULL. libcurl closes only these by
 * the table in any case. */
struct http_socket *http_socket_used(const struct http_sockets *sockets, int fd);
/* Sets TCP_QUICKACK. This and the next function ignore descriptors that are not in the table. */
void http_socket_acknowledge(const struct http_sockets *sockets, int fd);
/* Records that data was received now. */
void http_socket_note_received(struct http_sockets *sockets, int fd);
/* Returns true if data was received since then, or if the descriptor is not in the table. */
bool http_socket_received_since(const struct http_sockets *sockets, int fd, uint64_t then_ns);
/* Ends all calls on the socket; libcurl then closes it. */
void http_socket_shut(int fd);

#endif
