/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <Error><Code/><Message/><RequestId/><Region/></Error>, also one level down as STS sends it
 * (<ErrorResponse><Error>…</Error><RequestId/></ErrorResponse>). Pure.
 */
#include "s3_error_xml.h"

#include "xml.h"

#include <stdio.h>
#include <string.h>

struct reading {
	struct s3_error *out;
	bool is_error;
};

static int start(void *arg, const struct xml_place *at)
{
	struct reading *r = arg;
	if (at->depth <= 2 && strcmp(at->name[at->depth], "Error") == 0)
		r->is_error = true;
	return 0;
}

static int end(void *arg, const struct xml_place *at, const char *text, size_t n)
{
	struct s3_error *out = ((struct reading *)arg)->out;
	const struct {
		const char *name;
		char *to;
		size_t size;
	} fields[] = {
		{"Code", out->code, sizeof(out->code)},
		{"Message", out->message, sizeof(out->message)},
		{"RequestId", out->request_id, sizeof(out->request_id)},
		{"Region", out->region, sizeof(out->region)},
	};
	if (at->depth < 2 || at->depth > 3)
		return 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(at->name[at->depth], fields[i].name) == 0)
			snprintf(fields[i].to, fields[i].size, "%s", text);
	return 0;
}

bool s3_error_parse(const void *bytes, size_t n, struct s3_error *out)
{
	struct reading reading = {.out = out};
	const struct xml_handler handler = {.start = start, .end = end, .arg = &reading};
	memset(out, 0, sizeof(*out));
	if (xml_walk(bytes, n, &handler, NULL) == 0 && reading.is_error)
		return true;
	memset(out, 0, sizeof(*out));
	return false;
}
