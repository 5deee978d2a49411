/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One blocking HTTP request, for rare requests and for requests before a transport exists. It does
 * not use the I/O thread (http/http.h), and runs in any other thread.
 */
#ifndef HTTP_FETCH_H
#define HTTP_FETCH_H

#include <stdbool.h>

#include <hsmount/err.h>
#include <base/str.h>

enum { HTTP_FETCH_BODY_MAX = 256 << 10 };

struct http_fetch {
	const char *method, *url;
	const char *header[4]; /* "Name: value"; the first NULL ends the list */
	const char *body;      /* of a POST, or NULL */
	const char *ca_bundle; /* path; NULL for the system's certificates */
	unsigned int timeout_ms;
	bool no_proxy; /* ignore proxy settings */
};

/* Returns 0 with the status and a body of at most HTTP_FETCH_BODY_MAX bytes. Fails with -EIO and
 * the reason if there is no complete answer, and with -ENOMEM. */
int http_fetch(const struct http_fetch *req, long *status, struct str *body, struct err *err);

#endif
