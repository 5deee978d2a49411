/* SPDX-License-Identifier: Apache-2.0 */
/* One call as libcurl sees it: setting an easy handle up, its callbacks, its end. I/O thread. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <http/http.h>
#include "socket.h"

/* Prepares easy (fresh or reset) for the call. multiplexes: the server is known to have HTTP/2.
 * -ENOMEM. */
int http_call_prepare(struct http_call *call, CURL *easy, struct http_sockets *sockets,
		      const struct http_options *opt, bool multiplexes);
/* Turns libcurl's result into the call's. */
void http_call_end(struct http_call *call, CURLcode result);
/* Of a call that was answered: other calls may share its connection. */
bool http_call_was_multiplexed(const struct http_call *call);

#endif
