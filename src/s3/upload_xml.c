/* SPDX-License-Identifier: Apache-2.0 */
/* See upload_xml.h. */
#include "upload_xml.h"

#include <aws/xml.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct wanted {
	const char *name; /* of the element */
	char *text;
	size_t room;
	bool found;
};

static int on_end(void *arg, const struct xml_path *at, const char *text, size_t n)
{
	struct wanted *w = arg;
	if (at->depth != 2 || strcmp(at->name[2], w->name) != 0)
		return 0;
	if (w->found || n >= w->room || strlen(text) != n)
		return -EBADMSG;
	memcpy(w->text, text, n + 1);
	w->found = true;
	return 0;
}

int s3_xml_element(const struct bytes *document, const char *name, char *text, size_t room)
{
	struct wanted w = {.name = name, .text = text, .room = room};
	const struct xml_handler handler = {.end = on_end, .arg = &w};
	text[0] = '\0';
	const int rc = xml_walk(document->data, document->len, &handler, NULL);
	return rc && rc != -ENOMEM ? -EIO : rc;
}
