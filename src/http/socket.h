/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a transport, so that small answers come without delay. A server that has not set
 * TCP_NODELAY sends the header, then waits for our acknowledgement before it sends the last short
 * segment; Linux delays that by 40 ms, unless TCP_QUICKACK is set. The kernel forgets the option
 * when we send, so it is set again behind each request and each piece of an answer. libcurl does
 * not tell a callback which socket it is about; it tells the connection's ends, and this is the
 * table.
 *
 * Belongs to the I/O thread; whoever makes and frees the transport has no thread then.
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
		int port; /* local; 0 not known yet. Those of several peers may have the same */
		int peer_port;
		char peer[INET6_ADDRSTRLEN];
		uint64_t heard_ns; /* when something came last; 0 never */
		uint64_t age;	   /* serial of the latest call that it was given to */
		uint64_t id;	   /* no other socket has had it, unlike fd */
		bool used;	   /* a request went over it */
	} * v;
	unsigned int n, cap;
	/* Of each descriptor below n_places: its place in v and one, 0 without one. It is asked for
	 * with each piece that comes. */
	unsigned int *places;
	size_t n_places;
	uint64_t opened; /* so far */
};

/* env: its clock. meter may be NULL. Both are borrowed. -ENOMEM. */
int http_sockets_init(struct http_sockets *sockets, const struct env *env, struct http_stats *meter,
		      unsigned int connections);
void http_sockets_release(struct http_sockets *sockets);
/* Lets libcurl open and close its sockets here. */
void http_sockets_attach(struct http_sockets *sockets, CURL *easy);
/* The socket between that local port and that peer (an address as text, and a port), -1 when there
 * is none. age: the serial of the call that goes over it from now on. */
int http_socket_between(struct http_sockets *sockets, int port, const char *peer, int peer_port,
			uint64_t age);
/* 0 of one that no call was given to: it is being connected. */
uint64_t http_socket_age(const struct http_sockets *sockets, int fd);
/* 0 of one that has no place in the table: one of libcurl's own, or somebody else's. */
uint64_t http_socket_id(const struct http_sockets *sockets, int fd);
/* Likewise lets alone what has no place. */
void http_socket_acknowledge(const struct http_sockets *sockets, int fd);
/* Something came: notes when. A socket that has no place in the table is let alone. */
void http_socket_hear(struct http_sockets *sockets, int fd);
/* True also when nobody knows. */
bool http_socket_heard_since(const struct http_sockets *sockets, int fd, uint64_t then_ns);
/* Ends all that goes over it; libcurl closes it then. */
void http_socket_shut(int fd);

#endif
