/* SPDX-License-Identifier: Apache-2.0 */
/* The libcurl side of one call: setting up an easy handle, its callbacks, its end. I/O thread. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <http/http.h>
#include "socket.h"

#define HTTP_CANCELLED_REASON "the caller has cancelled the request"

/* Prepares easy (new or reset) for the call. multiplexes is true if the server is known to have
 * HTTP/2. Fails with -ENOMEM. */
int http_call_prepare(struct http_call *call, CURL *easy, struct http_sockets *sockets,
		      const struct http_options *opt, bool multiplexes);
/* Sets the call's result from libcurl's. */
void http_call_end(struct http_call *call, CURLcode result);
/* Returns true if an answered call used HTTP/2, so that other calls may share its connection. */
bool http_call_was_multiplexed(const struct http_call *call);

#endif
