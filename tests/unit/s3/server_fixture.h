/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for one connection at a time, in a separate thread: the bucket is an empty one, and
 * every request for an object gets the same answer. The test of the service's conditions is
 * refused.
 */
#ifndef TEST_S3_SERVER_FIXTURE_H
#define TEST_S3_SERVER_FIXTURE_H

#include "store_fixture.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <s3/s3.h>

struct server {
	int fd;
	/* The statuses of the answers to requests for objects, with a 0 at the end; the last one is
	 * repeated. */
	unsigned int status[6], next;
	unsigned int answered;
	const char *header, *body; /* likewise; header: lines with their ends, NULL none */
	const char *contents;	   /* XML in every listing; NULL: none */
	bool is_signed;		   /* requests are; the environment has the keys */
	/* The next connection serves one request more, but closes without an answer to it. */
	bool dies;
	char head[4096]; /* the latest request for an object */
	char url[64];
	pthread_t thread;
};

static inline void server_answer(int fd, unsigned int status, const char *header, const char *body,
				 bool keeps)
{
	char text[1024];
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %u Whatever\r\nContent-Length: %zu\r\n%s%s\r\n%s", status,
			       strlen(body), header ? header : "",
			       keeps ? "" : "Connection: close\r\n", body);
	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

static inline unsigned int server_next_status(struct server *s)
{
	const unsigned int status = s->status[s->next];
	s->answered++;
	if (s->status[s->next + 1])
		s->next++;
	return status;
}

static inline void *server_run(void *arg)
{
	char objects[512];
	static const char listing[] = "GET /bucket?";
	struct server *s = arg;
	int fd;
	snprintf(objects, sizeof(objects),
		 "<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>",
		 s->contents ? s->contents : "");
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		char head[4096];
		const ssize_t n = recv(fd, head, sizeof(head) - 1, 0);
		const bool is_probe = n > 0 && memmem(head, (size_t)n, "/.hsmount/probe-", 16);
		const bool dies = s->dies;
		s->dies = false;
		if (is_probe)
			server_answer(fd, 403, NULL, "", false);
		else if (n > (ssize_t)sizeof(listing) &&
			 memcmp(head, listing, sizeof(listing) - 1) == 0)
			server_answer(fd, 200, NULL, objects, dies);
		else if (n > 0) {
			memcpy(s->head, head, (size_t)n);
			s->head[n] = '\0';
			server_answer(fd, server_next_status(s), s->header, s->body ? s->body : "",
				      dies);
		}
		/* The head and the body of a small request arrive together. */
		if (dies && recv(fd, head, sizeof(head), 0) > 0) {
			close(fd);
			continue;
		}
		/* Reads the body of the request, so that the answer is not lost with a reset. */
		shutdown(fd, SHUT_WR);
		while (recv(fd, head, sizeof(head), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

/* The fields of the answer are set. */
static inline void server_start(struct server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

static inline void server_stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* Opens the server's bucket as the fixture's store. */
static inline void server_open(const struct server *s, struct fixture *f,
			       enum store_s3_verify verify)
{
	struct err err = ERR_INIT;
	const struct store_s3_options opt = {.bucket = "bucket",
					     .endpoint = s->url,
					     .region = "us-east-1",
					     .no_sign_request = !s->is_signed,
					     .verify = verify};
	f->s = store_s3_new(&f->env, &opt, &err);
	if (!f->s)
		fail_msg("%s", err.msg);
}

#endif
