/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One blocking HTTP request, for what happens once an hour and before there is a transport. It has
 * no part in the I/O thread (http/http.h) and may run in any other thread.
 */
#ifndef HTTP_FETCH_H
#define HTTP_FETCH_H

#include <stdbool.h>

#include <hsmount/err.h>
#include <base/str.h>

enum { HTTP_FETCH_BODY_MAX = 256 << 10 };

struct http_fetch {
	const char *method, *url;
	const char *header[4]; /* "Name: value"; the first NULL ends */
	const char *body;      /* of a POST; NULL none */
	const char *ca_bundle; /* path; NULL: the system's */
	unsigned int timeout_ms;
	bool no_proxy; /* never through a proxy */
};

/* 0 with the status and a body of at most HTTP_FETCH_BODY_MAX bytes; -EIO with the reason when no
 * answer came, -ENOMEM. */
int http_fetch(const struct http_fetch *req, long *status, struct str *body, struct err *err);

#endif
