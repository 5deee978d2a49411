/* SPDX-License-Identifier: Apache-2.0 */
/* An address of this machine alone, as the option metrics_listen names it. Pure. */
#ifndef CLI_METRICS_ADDRESS_H
#define CLI_METRICS_ADDRESS_H

#include <sys/socket.h>

#include <hsmount/err.h>

struct metrics_address {
	struct sockaddr_storage address;
	socklen_t n; /* 0: none */
};

/* "PORT" (of 127.0.0.1), "ADDRESS:PORT", "[ADDRESS]:PORT". -EINVAL, also for addresses that others
 * than this machine reach. */
int metrics_address_parse(const char *text, struct metrics_address *out, struct err *err);

#endif
