/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for uploads in parts. It keeps the length and the first byte of each part, and can fail
 * requests. Each connection has a thread and serves one request.
 */
#ifndef TEST_S3_PARTS_FIXTURE_H
#define TEST_S3_PARTS_FIXTURE_H

#include "store_fixture.h"

#include "patterned_source.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <s3/s3.h>

#include <aws/digest.h>

enum { PARTS_MAX = 16 };

enum upload_request {
	UPLOAD_BEGIN,
	UPLOAD_PART,
	UPLOAD_HEAD,
	UPLOAD_END,
	UPLOAD_ABORT,
	UPLOAD_LAST
};

struct parts_server {
	int fd;
	char url[64];
	pthread_t thread;
	/* Set by the test: the status of the n-th request (from 1) of a kind, 0: none fails. */
	enum upload_request fails;
	unsigned int first, last, status;
	bool holds_first; /* the first part is not read before a second one has arrived */
	/* The parts are not read before parts_release(), and when one has arrived, this is set. */
	atomic_bool *cancels;
	bool loses_end; /* the failing UPLOAD_END has made the object all the same */
	bool exists;	/* the object has these parts: n of them, `size` bytes */
	unsigned int n;
	uint64_t size;
	bool checks; /* the service checks conditions; else it refuses to be tested */
	pthread_mutex_t lock;
	/* Guarded by lock: */
	unsigned int requests[UPLOAD_LAST];
	unsigned int running, most; /* parts at once */
	bool released, waited_out;  /* waited_out: parts_release() was not called in time */
	unsigned int notes;	    /* requests with the header of a note */
	unsigned int conditions;    /* UPLOAD_ENDs with one */
	char begun[80], mark[80];   /* of the upload, and of the object */
	bool drops_marks;
	char probe[80]; /* the line of the mark of the test's object */
	uint64_t length[PARTS_MAX];
	uint8_t first_byte[PARTS_MAX];
	pthread_cond_t changed;
	unsigned int connections;
};

struct parts_connection {
	struct parts_server *s;
	int fd;
};

static inline void parts_reply(int fd, unsigned int status, const char *header, const char *body)
{
	char text[1024];
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %u Whatever\r\nContent-Length: %zu\r\n%s"
			       "Connection: close\r\n\r\n%s",
			       status, strlen(body), header, body);
	send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

static inline enum upload_request parts_kind(const char *head)
{
	if (strncmp(head, "HEAD", 4) == 0)
		return UPLOAD_HEAD;
	if (strncmp(head, "DELETE", 6) == 0)
		return UPLOAD_ABORT;
	if (strncmp(head, "PUT", 3) == 0)
		return UPLOAD_PART;
	return strstr(head, "?uploads") ? UPLOAD_BEGIN : UPLOAD_END;
}

/* For at most ten seconds. */
static inline void parts_wait_for_second_locked(struct parts_server *s)
{
	struct timespec end;
	int rc = 0;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	while (rc == 0 && s->requests[UPLOAD_PART] < 2)
		rc = pthread_cond_timedwait(&s->changed, &s->lock, &end);
}

/* For at most ten seconds. */
static inline void parts_hold_locked(struct parts_server *s)
{
	struct timespec end;
	int rc = 0;
	atomic_store(s->cancels, true);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	while (rc == 0 && !s->released)
		rc = pthread_cond_timedwait(&s->changed, &s->lock, &end);
	s->waited_out |= rc != 0;
}

/* Ends the hold of `cancels`. */
static inline void parts_release(struct parts_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->released = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Counts the request. Returns the status with which it fails, or 0. */
static inline unsigned int parts_count(struct parts_server *s, enum upload_request kind)
{
	pthread_mutex_lock(&s->lock);
	const unsigned int n = ++s->requests[kind];
	if (kind == UPLOAD_PART && ++s->running > s->most)
		s->most = s->running;
	const bool fails = s->status && kind == s->fails && n >= s->first && n <= s->last;
	if (kind == UPLOAD_END && (!fails || s->loses_end))
		s->exists = true;
	if (kind == UPLOAD_PART && n == 2)
		pthread_cond_broadcast(&s->changed);
	if (kind == UPLOAD_PART && n == 1 && s->holds_first)
		parts_wait_for_second_locked(s);
	if (kind == UPLOAD_PART && s->cancels)
		parts_hold_locked(s);
	pthread_mutex_unlock(&s->lock);
	return fails ? s->status : 0;
}

/* Reads the rest of a body. `head` has `have` bytes of it. */
static inline void parts_read(int fd, const char *body, size_t have, uint64_t length,
			      uint8_t *first)
{
	char *buf = malloc(1 << 20);
	*first = have ? (uint8_t)body[0] : 0;
	for (uint64_t at = have; at < length;) {
		const ssize_t n = recv(fd, buf, 1 << 20, 0);
		if (n <= 0)
			break;
		if (at == 0)
			*first = (uint8_t)buf[0];
		at += (uint64_t)n;
	}
	free(buf);
}

static inline void parts_keep(struct parts_server *s, const char *head, uint64_t length,
			      uint8_t first, bool good)
{
	unsigned int number = 0;
	const char *at = strstr(head, "partNumber=");
	if (at)
		number = (unsigned int)strtoul(at + strlen("partNumber="), NULL, 10);
	pthread_mutex_lock(&s->lock);
	s->running--;
	if (good && number >= 1 && number <= PARTS_MAX) {
		s->length[number - 1] = length;
		s->first_byte[number - 1] = first;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Only the request that begins an upload may have a note. */
static inline void parts_note(struct parts_server *s, enum upload_request kind)
{
	pthread_mutex_lock(&s->lock);
	s->notes += kind == UPLOAD_BEGIN ? 1 : 100;
	pthread_mutex_unlock(&s->lock);
}

#define PARTS_ETAG "\"00000000000000000000000000000000\""

/* The value of a header with its name, up to the end of the line; "": there is none. */
static inline void parts_header(const char *head, const char *name, char value[80])
{
	const char *at = strcasestr(head, name);
	value[0] = '\0';
	if (at)
		sscanf(at + strlen(name), "%79[^\r]", value);
}

/* Returns whether a condition holds for an object with this ETag, which is NULL if there is
 * none. */
static inline bool parts_holds(const char *head, const char *etag)
{
	char absent[80], match[80], quoted[80];
	parts_header(head, "\r\nif-none-match: ", absent);
	parts_header(head, "\r\nif-match: ", match);
	snprintf(quoted, sizeof(quoted), "\"%s\"", etag ? etag : "");
	return !(absent[0] && etag) && !(match[0] && (!etag || strcmp(match, quoted) != 0));
}

/* The test of the service's conditions, whose object always has the ETag "probe". */
static inline void parts_probe(struct parts_server *s, const char *head, int fd)
{
	char fields[256], mark[80];
	const enum upload_request kind = parts_kind(head);
	parts_header(head, "\r\nx-amz-meta-hsmount-mark: ", mark);
	if (mark[0] && !s->drops_marks)
		snprintf(s->probe, sizeof(s->probe), "x-amz-meta-hsmount-mark: %.32s\r\n", mark);
	snprintf(fields, sizeof(fields), "ETag: \"probe\"\r\n%s", s->probe);
	if (!s->checks)
		parts_reply(fd, 403, "", "");
	else if (kind == UPLOAD_BEGIN)
		parts_reply(fd, 200, "", "<R><UploadId>1</UploadId></R>");
	else if (kind == UPLOAD_HEAD)
		parts_reply(fd, 200, fields, "");
	else if (!parts_holds(head, "probe"))
		parts_reply(fd, 412, "", "");
	else
		parts_reply(fd, 200, fields, kind == UPLOAD_END ? "<R><ETag>probe</ETag></R>" : "");
}

static inline void parts_etag(const struct parts_server *s, char etag[80])
{
	static const uint8_t zeros[PARTS_MAX * 16];
	char md5[MD5_HEX];
	digest_md5(&(struct piece){zeros, s->n * 16}, 1, md5);
	snprintf(etag, 80, "%s-%u", md5, s->n);
}

/* The ETag of an object follows from the ETags of its parts. */
static inline void parts_head(const struct parts_server *s, int fd)
{
	char etag[80], text[512];
	parts_etag(s, etag);
	const int n = snprintf(text, sizeof(text),
			       "HTTP/1.1 %s\r\nContent-Length: %llu\r\nETag: \"%s\"\r\n"
			       "%s%s%sConnection: close\r\n\r\n",
			       s->exists ? "200 OK" : "404 Not Found",
			       (unsigned long long)(s->exists ? s->size : 0), etag,
			       s->mark[0] ? "x-amz-meta-hsmount-mark: " : "", s->mark,
			       s->mark[0] ? "\r\n" : "");
	send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

/* Returns whether the upload may end. */
static inline bool parts_may_end(struct parts_server *s, const char *head)
{
	char etag[80], absent[80], match[80];
	parts_etag(s, etag);
	parts_header(head, "\r\nif-none-match: ", absent);
	parts_header(head, "\r\nif-match: ", match);
	pthread_mutex_lock(&s->lock);
	s->conditions += absent[0] || match[0];
	const bool may = parts_holds(head, s->exists ? etag : NULL);
	if (may)
		strcpy(s->mark, s->begun);
	pthread_mutex_unlock(&s->lock);
	return may;
}

static inline void parts_serve(struct parts_server *s, int fd)
{
	char head[8192];
	size_t n = 0;
	char *end = NULL;
	while (!end && n < sizeof(head) - 1) {
		const ssize_t got = recv(fd, head + n, sizeof(head) - 1 - n, 0);
		if (got <= 0)
			return;
		n += (size_t)got;
		head[n] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	if (!end)
		return;
	if (strncmp(head, "GET /bucket?", 12) == 0) {
		parts_reply(
			fd, 200, "",
			"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
		return;
	}
	if (strstr(head, "/.hsmount/probe-")) { /* the test of the service's conditions */
		parts_probe(s, head, fd);
		return;
	}
	const enum upload_request kind = parts_kind(head);
	if (kind == UPLOAD_BEGIN)
		parts_header(head, "\r\nx-amz-meta-hsmount-mark: ", s->begun);
	const bool refused = kind == UPLOAD_END && !parts_may_end(s, head);
	const unsigned int counted = parts_count(s, kind), failure = refused ? 412 : counted;
	if (strcasestr(head, "\r\nx-amz-meta-hsmount-kept: "))
		parts_note(s, kind);
	const char *field = strcasestr(head, "content-length:");
	const uint64_t length = field ? strtoull(field + 15, NULL, 10) : 0;
	uint8_t first = 0;
	parts_read(fd, end + 4, n - (size_t)(end + 4 - head), length, &first);
	if (kind == UPLOAD_PART)
		parts_keep(s, head, length, first, !failure);
	if (kind == UPLOAD_HEAD)
		parts_head(s, fd);
	else if (failure)
		parts_reply(fd, failure, "", "");
	else if (kind == UPLOAD_BEGIN)
		parts_reply(fd, 200, "", "<R><UploadId>1</UploadId></R>");
	else if (kind == UPLOAD_PART)
		parts_reply(fd, 200, "ETag: " PARTS_ETAG "\r\n", "");
	else if (kind == UPLOAD_END)
		parts_reply(fd, 200, "", "<R><ETag>\"done-5\"</ETag></R>");
	else
		parts_reply(fd, 204, "", "");
}

static inline void *parts_connection(void *arg)
{
	struct parts_connection *c = arg;
	struct parts_server *s = c->s;
	parts_serve(s, c->fd);
	shutdown(c->fd, SHUT_WR);
	close(c->fd);
	free(c);
	pthread_mutex_lock(&s->lock);
	s->connections--;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static inline void *parts_accept(void *arg)
{
	struct parts_server *s = arg;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		struct parts_connection *c = malloc(sizeof(*c));
		pthread_t thread;
		*c = (struct parts_connection){s, fd};
		pthread_mutex_lock(&s->lock);
		s->connections++;
		pthread_mutex_unlock(&s->lock);
		assert_int_equal(pthread_create(&thread, NULL, parts_connection, c), 0);
		pthread_detach(thread);
	}
	return NULL;
}

static inline void parts_start(struct parts_server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 64), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, parts_accept, s), 0);
}

static inline void parts_stop(struct parts_server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	pthread_mutex_lock(&s->lock);
	while (s->connections)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
}

static inline void parts_open(const struct parts_server *s, struct fixture *f,
			      enum store_s3_verify verify)
{
	struct err err = ERR_INIT;
	const struct store_s3_options opt = {.bucket = "bucket",
					     .endpoint = s->url,
					     .region = "us-east-1",
					     .no_sign_request = true,
					     .verify = verify};
	f->s = store_s3_new(&f->env, &opt, &err);
	if (!f->s)
		fail_msg("%s", err.msg);
}

#endif
