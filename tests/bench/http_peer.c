/* SPDX-License-Identifier: Apache-2.0 */
/* One end of an HTTP/1.1 connection: see http_peer.h. */
#include "http_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

int http_connect(unsigned int port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int one = 1;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Appends to the buffer. The kernel resets TCP_QUICKACK, so each call sets it again. */
static int receive(struct http_peer *p)
{
	const int one = 1;
	if (p->at > 0)
		memmove(p->buf, p->buf + p->at, p->have);
	p->at = 0;
	if (p->have == sizeof(p->buf))
		return -1;
	for (;;) {
		if (p->hurry)
			setsockopt(p->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
		ssize_t n = recv(p->fd, p->buf + p->have, sizeof(p->buf) - p->have, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			p->have += (size_t)n;
		return n > 0 ? 1 : (int)n;
	}
}

int http_fill(struct http_peer *p)
{
	return p->have > 0 ? 1 : receive(p);
}

static ssize_t read_until(struct http_peer *p, const char *mark)
{
	const size_t mark_n = strlen(mark);
	for (;;) {
		const char *end = memmem(p->buf + p->at, p->have, mark, mark_n);
		if (end)
			return end - (p->buf + p->at) + (ssize_t)mark_n;
		int rc = receive(p);
		if (rc <= 0)
			return rc == 0 && p->have == 0 ? 0 : -1;
	}
}

ssize_t http_head(struct http_peer *p)
{
	return read_until(p, "\r\n\r\n");
}

ssize_t http_line(struct http_peer *p)
{
	return read_until(p, "\r\n");
}

void http_take(struct http_peer *p, size_t n)
{
	p->at += n;
	p->have -= n;
	if (p->have == 0)
		p->at = 0;
}

bool http_field(const char *head, size_t n, const char *name, char *value, size_t size)
{
	const char *end = head + n, *line = memchr(head, '\n', n);
	const size_t name_n = strlen(name);
	while (line && ++line < end) {
		const char *stop = memchr(line, '\r', (size_t)(end - line));
		if (!stop)
			break;
		if ((size_t)(stop - line) > name_n && line[name_n] == ':' &&
		    strncasecmp(line, name, name_n) == 0) {
			const char *from = line + name_n + 1;
			while (from < stop && *from == ' ')
				from++;
			if ((size_t)(stop - from) >= size)
				return false;
			memcpy(value, from, (size_t)(stop - from));
			value[stop - from] = '\0';
			return true;
		}
		line = memchr(stop, '\n', (size_t)(end - stop));
	}
	return false;
}

int http_status(const char *head, size_t n)
{
	return n > 12 && memcmp(head, "HTTP/1.", 7) == 0 ? atoi(head + 9) : 0;
}

struct http_framing http_framing(const char *head, size_t n)
{
	char value[64];
	if (http_field(head, n, "transfer-encoding", value, sizeof(value)))
		return (struct http_framing){.kind = HTTP_BODY_CHUNKED};
	if (http_field(head, n, "content-length", value, sizeof(value)))
		return (struct http_framing){.kind = HTTP_BODY_SIZED,
					     .length = strtoull(value, NULL, 10)};
	return (struct http_framing){.kind = HTTP_BODY_NONE};
}

int http_write(int fd, const void *data, size_t n)
{
	const char *at = data;
	while (n > 0) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -1;
		at += sent;
		n -= (size_t)sent;
	}
	return 0;
}
