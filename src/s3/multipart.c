/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts of large objects, in parts:
 *
 *   POST ?uploads                              the server names the upload
 *   PUT ?partNumber=N&uploadId=…, for each     the server answers with the ETag of the part
 *   HEAD, and a listing if necessary           only with a condition
 *   POST ?uploadId=…                           the object appears; the body names all parts
 *   DELETE ?uploadId=…                         only after an error: the parts are removed
 *
 * The parts go one after the other, because the caller puts several objects side by side. Servers
 * differ in the conditions that they support for the last request, so the condition is compared
 * before it. Another writer may change the object between the two requests.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
 */
#include "internal.h"

#include <aws/xml.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etag.h"

enum {
	PART_MIN = 16 << 20, /* bytes */
	PARTS_MAX = 10000,
	ID_MAX = 2048,
	ANSWER_MAX = 64 << 10,
	FIRST_PIECES = 16,
};

struct s3_upload {
	char id[ID_MAX];
	uint64_t size, part_size, at; /* of the object, of a part, sent so far; bytes */
	unsigned int number;	      /* of the current part, from 1 */
	struct piece *pieces;	      /* of the current part */
	size_t n_pieces, room;
	struct str body; /* of the last request */
	struct err why;	 /* after an error: its reason */
};

static struct err *err_of(struct s3_operation *op)
{
	return &op->req->answer.err;
}

static void free_upload(struct s3_upload *u)
{
	str_release(&u->body);
	free(u->pieces);
	free(u);
}

/* ---- the end ---- */

static void after_abort(struct s3_operation *op)
{
	*err_of(op) = op->upload->why;
	s3_fail(op, op->upload->why.code);
}

static void give_up(struct s3_operation *op, int rc)
{
	struct s3_upload *u = op->upload;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	const struct s3_spec spec = {
		.method = "DELETE",
		.key = op->req->key,
		.query = query,
		.n_query = 1,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	err_of(op)->code = rc == -ENOENT || rc == -ENOSYS || rc == S3_UNPROVEN ? -EIO : rc;
	if (!u->id[0]) {
		s3_fail(op, err_of(op)->code);
		return;
	}
	u->why = *err_of(op);
	s3_send(op, &spec, after_abort);
}

/* ---- the server's documents ---- */

struct wanted {
	const char *name; /* of the element */
	char *text;
	size_t room;
	bool found;
};

static int on_end(void *arg, const struct xml_place *at, const char *text, size_t n)
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

/* The text of an element of the answer; "" if it has none. */
static int read_element(struct s3_operation *op, const char *name, char *text, size_t room)
{
	const struct bytes *body = &op->call.http.answer;
	struct wanted w = {.name = name, .text = text, .room = room};
	const struct xml_handler handler = {.end = on_end, .arg = &w};
	text[0] = '\0';
	const int rc = xml_walk(body->data, body->len, &handler, NULL);
	return rc ? err_set(err_of(op), rc == -ENOMEM ? rc : -EIO,
			    "PUT %s: the server's answer to an upload in parts is not valid",
			    op->req->key)
		  : 0;
}

/* ---- the object appears ---- */

static void after_last_head(struct s3_operation *op)
{
	struct store_meta now;
	int rc = s3_head_result(op, &now);
	if (rc == 0 && now.size != op->upload->size)
		rc = err_set(err_of(op), -EIO,
			     "PUT %s: another writer has replaced the object at once",
			     op->req->key);
	op->req->answer.meta = now;
	if (rc)
		s3_fail(op, rc == -ENOENT ? -EIO : rc);
	else
		s3_present(op);
}

/* Some versions of Ceph leave the ETag empty. */
static void after_complete(struct s3_operation *op)
{
	char etag[STORE_ETAG_MAX + 8];
	struct store_meta *meta = &op->req->answer.meta;
	int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (!rc)
		rc = read_element(op, "ETag", etag, sizeof(etag));
	if (rc) {
		give_up(op, rc);
		return;
	}
	*meta = op->call.answer.meta;
	s3_etag_read(etag, meta->etag);
	meta->size = op->upload->size;
	if (meta->etag[0])
		s3_present(op);
	else
		s3_send_head(op, after_last_head);
}

static void complete(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	str_add(&u->body, "</CompleteMultipartUpload>");
	if (!str_ok(&u->body)) {
		give_up(op, err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", op->req->key));
		return;
	}
	u->pieces[0] = (struct piece){u->body.b.data, u->body.b.len};
	const struct s3_spec spec = {
		.method = "POST",
		.key = op->req->key,
		.query = query,
		.n_query = 1,
		.pieces = u->pieces,
		.n_pieces = 1,
		.body_max = ANSWER_MAX,
	};
	s3_send(op, &spec, after_complete);
}

static void after_absence(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	if (rc)
		give_up(op, rc);
	else
		complete(op);
}

static void after_head(struct s3_operation *op)
{
	const struct store_cond *cond = &op->req->cond;
	const char *key = op->req->key;
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (cond->if_none_match && rc == 0)
		give_up(op, err_set(err_of(op), -EEXIST, "PUT %s: the object exists", key));
	else if (cond->if_none_match && rc == -ENOENT)
		s3_send_absence(op, after_absence);
	else if (rc == -ENOENT)
		give_up(op, err_set(err_of(op), -ESTALE, "PUT %s: the object is gone", key));
	else if (rc)
		give_up(op, rc);
	else if (strcmp(now.etag, cond->if_match) != 0)
		give_up(op, err_set(err_of(op), -ESTALE, "PUT %s: version %s, expected %s", key,
				    now.etag, cond->if_match));
	else
		complete(op);
}

/* ---- parts ---- */

static int add_piece(struct s3_upload *u, const uint8_t *data, size_t n)
{
	if (u->n_pieces == u->room) {
		const size_t room = u->room ? 2 * u->room : FIRST_PIECES;
		struct piece *more = realloc(u->pieces, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		u->pieces = more;
		u->room = room;
	}
	u->pieces[u->n_pieces++] = (struct piece){data, n};
	return 0;
}

/* The pieces of the next part: the bytes from `at` on. */
static int take_part(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	const struct store_request *req = op->req;
	uint64_t skip = u->at, left = min_u64(u->part_size, u->size - u->at);
	u->n_pieces = 0;
	for (size_t i = 0; left && i < req->n_pieces; i++) {
		const struct piece *p = &req->pieces[i];
		if (skip >= p->n) {
			skip -= p->n;
			continue;
		}
		const size_t n = (size_t)min_u64(left, p->n - skip);
		if (add_piece(u, (const uint8_t *)p->data + skip, n))
			return err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", req->key);
		skip = 0;
		left -= n;
	}
	return 0;
}

static void send_part(struct s3_operation *op);

static void after_part(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	const struct s3_answer *a = &op->call.answer;
	const int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (rc || !a->meta.etag[0]) {
		give_up(op, rc ? rc
			       : err_set(err_of(op), -EIO,
					 "PUT %s: the server's answer to part %u has no ETag",
					 op->req->key, u->number));
		return;
	}
	str_addf(&u->body, "<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag></Part>", u->number,
		 a->meta.etag);
	u->at += min_u64(u->part_size, u->size - u->at);
	u->number++;
	if (u->at < u->size)
		send_part(op);
	else if (op->req->cond.if_match || op->req->cond.if_none_match)
		s3_send_head(op, after_head);
	else
		complete(op);
}

static void send_part(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	char number[16];
	const struct sigv4_pair query[] = {{"partNumber", number}, {"uploadId", u->id}};
	const int rc = take_part(op);
	if (rc) {
		give_up(op, rc);
		return;
	}
	snprintf(number, sizeof(number), "%u", u->number);
	const struct s3_spec spec = {
		.method = "PUT",
		.key = op->req->key,
		.query = query,
		.n_query = 2,
		.pieces = u->pieces,
		.n_pieces = u->n_pieces,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(op, &spec, after_part);
}

static void after_begin(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (!rc)
		rc = read_element(op, "UploadId", u->id, sizeof(u->id));
	if (!rc && !u->id[0])
		rc = err_set(err_of(op), -EIO, "PUT %s: the server gave the upload no name",
			     op->req->key);
	if (rc)
		give_up(op, rc);
	else
		send_part(op);
}

void s3_put_parts(struct s3_operation *op)
{
	const struct sigv4_pair query[] = {{"uploads", ""}};
	const struct store_request *req = op->req;
	const struct s3_spec spec = {
		.method = "POST",
		.key = req->key,
		.query = query,
		.n_query = 1,
		.body_max = ANSWER_MAX,
	};
	struct s3_upload *u = op->upload = calloc(1, sizeof(*u));
	if (!u) {
		s3_fail(op, err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", req->key));
		return;
	}
	u->size = pieces_size(req->pieces, req->n_pieces);
	u->part_size = max_u64(PART_MIN, u->size / PARTS_MAX + 1);
	u->number = 1;
	op->free_upload = free_upload;
	str_add(&u->body, "<CompleteMultipartUpload>");
	s3_send(op, &spec, after_begin);
}
