/* SPDX-License-Identifier: Apache-2.0 */
/* ETags. Pure. */
#include "etag.h"

#include <aws/digest.h>

#include <string.h>

void s3_etag_read(const char *text, char etag[STORE_ETAG_MAX])
{
	etag[0] = '\0';
	if (strncmp(text, "W/", 2) == 0)
		text += 2;
	size_t n = strlen(text);
	if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
		text++;
		n -= 2;
	}
	if (n >= STORE_ETAG_MAX)
		return;
	/* The ETag of a listing may contain a line break, and ETags are copied into headers. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return;
	memcpy(etag, text, n);
	etag[n] = '\0';
}

bool s3_etag_is_md5(const char *etag)
{
	return strlen(etag) == MD5_HEX - 1 && strspn(etag, "0123456789abcdef") == MD5_HEX - 1;
}
