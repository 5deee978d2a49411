/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the metrics listener: bytes that come in pieces are judged as soon as the head is
 * whole, and whatever follows changes nothing; each status has its line. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_request.h"

static bool parse(const uint8_t *data, size_t n, struct metrics_request *out)
{
	char *copy = malloc(n ? n : 1);
	assert(copy);
	memcpy(copy, data, n);
	const bool whole = metrics_request_parse(copy, n, out);
	free(copy);
	return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metrics_request all, part;
	const bool whole = parse(data, size, &all);
	size_t n = 0;
	if (size > 2 * METRICS_REQUEST_MAX)
		return 0;
	assert(whole || size < METRICS_REQUEST_MAX);
	while (n < size && !parse(data, n, &part))
		n++;
	if (n < size) {
		assert(whole && part.status == all.status);
		assert(part.status != 200 || (part.kind == all.kind && part.head == all.head));
	}
	if (whole)
		assert(atoi(metrics_status(all.status)) == all.status);
	return 0;
}
