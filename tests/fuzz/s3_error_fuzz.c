/* SPDX-License-Identifier: Apache-2.0 */
/* Error documents: members have bounded lengths, other documents give an empty result, and parsing
 * the same bytes twice gives the same result. The table of statuses accepts every code. */
#include <assert.h>
#include <string.h>

#include <aws/error_xml.h>
#include "s3/status.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct s3_error none;
	struct s3_error first, second;
	memset(&first, 0x5a, sizeof(first));
	memset(&second, 0xa5, sizeof(second));
	const bool is_error = s3_error_parse(data, size, &first);
	assert(s3_error_parse(data, size, &second) == is_error);
	assert(memcmp(&first, &second, sizeof(first)) == 0);
	assert(memchr(first.code, '\0', sizeof(first.code)));
	assert(memchr(first.message, '\0', sizeof(first.message)));
	assert(memchr(first.request_id, '\0', sizeof(first.request_id)));
	assert(memchr(first.region, '\0', sizeof(first.region)));
	if (!is_error)
		assert(memcmp(&first, &none, sizeof(first)) == 0);
	assert(s3_status_errno(403, first.code) < 0);
	return 0;
}
