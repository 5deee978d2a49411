/* SPDX-License-Identifier: Apache-2.0 */
/* The little of HTTP/1.1 that a program needs which is asked for two documents (RFC 9112). Pure. */
#ifndef CLI_METRICS_REQUEST_H
#define CLI_METRICS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include <hsmount/engine.h>

enum { METRICS_REQUEST_MAX = 4096 /* bytes of a request's head */ };

struct metrics_request {
	int status;		 /* of the answer: 200, 400, 404, 405, 421, 431, 505 */
	bool head;		 /* the answer has no body */
	enum engine_report kind; /* with 200 */
};

/* From what has come so far. False: there must come more, or nothing more will come and the request
 * is not worth an answer. */
bool metrics_request_parse(const char *bytes, size_t n, struct metrics_request *out);
/* "200 OK" … */
const char *metrics_status(int status);

#endif
