/* SPDX-License-Identifier: Apache-2.0 */
/* The libcurl side of one call: its easy handle, its callbacks, its end. I/O thread. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <http/http.h>
#include "socket.h"

#define HTTP_CANCELLED_REASON "the caller has cancelled the request"

/* Returns an easy handle with the options that all calls have. opt and sockets are borrowed.
 * Returns NULL if out of memory. */
CURL *http_handle_new(struct http_sockets *sockets, const struct http_options *opt);
/* Prepares a handle for the call. multiplexes is true if the server is known to have HTTP/2. Fails
 * with -ENOMEM. */
int http_call_prepare(struct http_call *call, CURL *easy, struct http_sockets *sockets,
		      bool multiplexes);
/* Makes the handle of a call that has ended like a new one. */
void http_handle_renew(CURL *easy, const struct http_call *call, const struct http_options *opt);
/* Sets the call's result from libcurl's. */
void http_call_end(struct http_call *call, CURLcode result);
/* Returns true if an answered call used HTTP/2, so that other calls may share its connection. */
bool http_call_was_multiplexed(const struct http_call *call);

#endif
