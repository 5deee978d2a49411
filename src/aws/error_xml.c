/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <Error><Code/><Message/><RequestId/><Region/></Error>, or with one level more from STS:
 * <ErrorResponse><Error>…</Error><RequestId/></ErrorResponse>. Pure.
 */
#include <aws/error_xml.h>

#include <aws/xml.h>

#include <base/mem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct reading {
	struct s3_error *out;
	bool is_error;
};

static int start(void *arg, const struct xml_path *at)
{
	struct reading *r = arg;
	if (at->depth <= 2 && strcmp(at->name[at->depth], "Error") == 0)
		r->is_error = true;
	return 0;
}

static int end(void *arg, const struct xml_path *at, const char *text, size_t n)
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

static int walk(const void *bytes, size_t n, struct s3_error *out)
{
	struct reading reading = {.out = out};
	const struct xml_handler handler = {.start = start, .end = end, .arg = &reading};
	memset(out, 0, sizeof(*out));
	int rc = xml_walk(bytes, n, &handler, NULL);
	if (rc == 0 && !reading.is_error)
		rc = -ENOENT;
	if (rc)
		memset(out, 0, sizeof(*out));
	return rc;
}

bool s3_error_parse(const void *bytes, size_t n, struct s3_error *out)
{
	static const char name[] = "Error";
	auto_bytes struct bytes valid = {0};
	memset(out, 0, sizeof(*out));
	/* Most documents are long listings, which have no element of this name. */
	if (n == 0 || !memmem(bytes, n, name, sizeof(name) - 1))
		return false;
	const int rc = walk(bytes, n, out);
	if (rc != -EBADMSG)
		return rc == 0;
	return xml_make_valid(bytes, n, &valid) == 0 && walk(valid.data, valid.len, out) == 0;
}
