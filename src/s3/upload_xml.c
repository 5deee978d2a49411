/* SPDX-License-Identifier: Apache-2.0 */
/* See upload_xml.h. */
#include "upload_xml.h"

#include <aws/time.h>
#include <aws/uri.h>
#include <aws/xml.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
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

/* ---- ListMultipartUploadsResult ---- */

enum { PAGE_ARENA = 64 << 20 };
#define SECOND_NS INT64_C(1000000000)

struct listing {
	struct store_upload_page *page;
	struct store_upload now; /* the current one */
	bool is_listing, truncated, has_truncated, url;
};

static bool is_called(const struct xml_path *at, unsigned int depth, const char *name)
{
	return strcmp(at->name[depth], name) == 0;
}

static int on_start(void *arg, const struct xml_path *at)
{
	struct listing *l = arg;
	if (at->depth == 1)
		l->is_listing = is_called(at, 1, "ListMultipartUploadsResult");
	if (at->depth == 2)
		l->now = (struct store_upload){0};
	return 0;
}

static int end_of_upload(struct listing *l)
{
	struct store_upload_page *page = l->page;
	if (!l->now.key || !l->now.id || page->n == STORE_UPLOADS_MAX)
		return -EBADMSG;
	page->v[page->n++] = l->now;
	return 0;
}

static int end_of_text(struct listing *l, const struct xml_path *at, const char *text, size_t n)
{
	struct store_upload_page *page = l->page;
	const bool is_key = is_called(at, 3, "Key"), is_id = is_called(at, 3, "UploadId");
	if (is_called(at, 3, "Initiated"))
		l->now.began_ns = s3_time_iso(text) * SECOND_NS;
	if (!is_key && !is_id)
		return 0;
	const char *copy = arena_strndup(page->arena, text, n);
	if (is_key)
		l->now.key = copy;
	else
		l->now.id = copy;
	if (is_id && (!n || n > STORE_UPLOAD_ID_MAX))
		return -EBADMSG;
	return copy ? 0 : -ENOMEM;
}

static int end_of_member(struct listing *l, const struct xml_path *at, const char *text, size_t n)
{
	struct store_upload_page *page = l->page;
	if (is_called(at, 2, "IsTruncated")) {
		l->has_truncated = true;
		l->truncated = strcmp(text, "true") == 0;
	}
	if (is_called(at, 2, "EncodingType"))
		l->url = strcmp(text, "url") == 0;
	if (is_called(at, 2, "NextKeyMarker")) {
		if (n >= sizeof(page->next_key))
			return -EBADMSG;
		memcpy(page->next_key, text, n + 1);
	}
	if (is_called(at, 2, "NextUploadIdMarker")) {
		if (n >= sizeof(page->next_id))
			return -EBADMSG;
		memcpy(page->next_id, text, n + 1);
	}
	return 0;
}

static int on_element(void *arg, const struct xml_path *at, const char *text, size_t n)
{
	struct listing *l = arg;
	const bool is_upload = at->depth >= 2 && is_called(at, 2, "Upload");
	if (strlen(text) != n)
		return -EBADMSG;
	if (at->depth == 2)
		return is_upload ? end_of_upload(l) : end_of_member(l, at, text, n);
	return at->depth == 3 && is_upload ? end_of_text(l, at, text, n) : 0;
}

/* Decodes the keys, and leaves out those that this program cannot name. */
static int decode(struct listing *l, const char *prefix)
{
	struct store_upload_page *page = l->page;
	char marker[sizeof(page->next_key)];
	size_t n = 0;
	for (size_t i = 0; i < page->n; i++) {
		const char *key = page->v[i].key;
		char *decoded = arena_alloc(page->arena, strlen(key) + 1);
		if (!decoded)
			return -ENOMEM;
		strcpy(decoded, key);
		if (l->url && uri_decode(key, strlen(key), decoded))
			continue;
		if (!store_key_ok(decoded) || strncmp(decoded, prefix, strlen(prefix)) != 0)
			continue;
		page->v[n] = page->v[i];
		page->v[n++].key = decoded;
	}
	page->n = n;
	if (l->url && uri_decode(page->next_key, strlen(page->next_key), marker) == 0)
		memcpy(page->next_key, marker, strlen(marker) + 1);
	return 0;
}

int s3_uploads_parse(const void *bytes, size_t n, const char *prefix,
		     struct store_upload_page *page, struct err *err)
{
	struct listing l = {.page = page};
	const struct xml_handler handler = {.start = on_start, .end = on_element, .arg = &l};
	char last_key[sizeof(page->next_key)], last_id[sizeof(page->next_id)];
	memcpy(last_key, page->next_key, sizeof(last_key));
	memcpy(last_id, page->next_id, sizeof(last_id));
	page->next_key[0] = page->next_id[0] = '\0';
	page->n = 0;
	page->arena = arena_new(PAGE_ARENA);
	page->v =
		page->arena ? arena_array(page->arena, STORE_UPLOADS_MAX, sizeof(*page->v)) : NULL;
	int rc = page->v ? xml_walk(bytes, n, &handler, NULL) : -ENOMEM;
	if (!rc)
		rc = decode(&l, prefix);
	if (rc == -ENOMEM)
		return err_no_memory(err);
	if (rc || !l.is_listing || !l.has_truncated)
		return err_set(err, -EIO, "the listing of uploads in parts is not valid");
	page->more = l.truncated;
	/* The keys of a listing ascend. */
	const int order = strcmp(page->next_key, last_key);
	if (page->more && (!page->next_key[0] || order < 0 ||
			   (order == 0 && strcmp(page->next_id, last_id) == 0)))
		return err_set(err, -EIO, "the listing of uploads in parts does not go on");
	return 0;
}
