/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts of large objects, in parts:
 *
 * - POST ?uploads: the server names the upload.
 * - PUT ?partNumber=N&uploadId=…, for each part (upload_parts.c): the server answers with its ETag.
 * - HEAD, and a listing if necessary: only with a condition that the service does not check.
 * - POST ?uploadId=…: the object appears. The body names all parts.
 * - DELETE ?uploadId=…: only after an error. The parts are removed.
 *
 * All of this runs in a thread of its own, which waits for the answers. If the service checks
 * conditions of the last request (conditions.c), the HEAD and the listing are not necessary.
 * Otherwise another writer may change the object between two requests, and one more HEAD after the
 * last request shows whether the object is the one that was put.
 *
 * The last request is repeated after a temporary failure, because a repeated upload would send all
 * parts again. Its answer may be lost. If the upload is gone then, or if a condition fails, the
 * mark of the object decides; or its ETag, which follows from the ETags of the parts, if the put
 * has no mark or the service drops marks.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
 */
#include "s3_internal.h"

#include <aws/digest.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/hex.h>

#include "etag.h"
#include "object_note.h"
#include "upload_parts.h"
#include "upload_xml.h"

enum {
	PART_MIN = 16 << 20, /* bytes */
	PARTS_MAX = 10000,
	ID_MAX = 2048,
	ANSWER_MAX = 64 << 10,
	MD5_SIZE = 16,
};

struct s3_upload {
	char id[ID_MAX];
	struct s3_parts parts;
	struct str text; /* body of the last request */
	struct piece body;
	unsigned int failures; /* of the last request */
	struct err why;	       /* the reason of an error */
	bool stored;	       /* an earlier attempt has put the object, which is `now` */
	struct store_meta now;
};

/* ---- the end ---- */

static void free_upload(struct s3_upload *u)
{
	str_release(&u->text);
	free(u->parts.etags);
	free(u);
}

static void end(struct s3_operation *op)
{
	if (op->upload->stored) {
		op->req->answer.meta = op->upload->now;
		s3_present(op);
		return;
	}
	*err_of(op) = op->upload->why;
	s3_fail(op, op->upload->why.code);
}

/* Removes the parts, then ends the put. */
static void abandon(struct s3_operation *op)
{
	const struct s3_upload *u = op->upload;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	const struct s3_spec spec = {
		.method = "DELETE",
		.key = op->req->key,
		.query = query,
		.n_query = 1,
		.body_max = HTTP_ERROR_BODY_MAX,
	};
	s3_send(op, &spec, end);
}

static void give_up(struct s3_operation *op, int rc)
{
	struct s3_upload *u = op->upload;
	err_of(op)->code = rc == -ENOENT || rc == -ENOSYS || rc == S3_UNPROVEN ? -EIO : rc;
	u->why = *err_of(op);
	if (u->id[0])
		abandon(op);
	else
		end(op);
}

/* ---- the server's documents ---- */

/* Gets the text of an element of the answer, which is "" if it has none. */
static int read_element(struct s3_operation *op, const char *name, char *text, size_t room)
{
	const int rc = s3_xml_element(&op->call.http.answer, name, text, room);
	return rc ? err_set(err_of(op), rc,
			    "PUT %s: the server's answer to an upload in parts is not valid",
			    op->req->key)
		  : 0;
}

/* ---- whether the object is ours ---- */

/* The ETag of an object in parts is the MD5 of the MD5s of its parts, and their number. */
static bool etag_of_parts(const struct s3_parts *p, char etag[STORE_ETAG_MAX])
{
	char md5[MD5_HEX];
	auto_free uint8_t *all = malloc((size_t)p->n * MD5_SIZE);
	for (unsigned int i = 0; all && i < p->n; i++) {
		if (!s3_etag_is_md5(p->etags[i]))
			return false;
		for (unsigned int k = 0; k < MD5_SIZE; k++)
			all[i * MD5_SIZE + k] = (uint8_t)(hex_digit(p->etags[i][2 * k]) << 4 |
							  hex_digit(p->etags[i][2 * k + 1]));
	}
	if (!all || digest_md5(&(struct piece){all, (size_t)p->n * MD5_SIZE}, 1, md5))
		return false;
	snprintf(etag, STORE_ETAG_MAX, "%s-%u", md5, p->n);
	return true;
}

static size_t cond_header(const struct s3_operation *op, char value[S3_QUOTED_MAX],
			  struct sigv4_pair *header)
{
	const struct store_cond *cond = &op->req->cond;
	if (!has_cond(op->req))
		return 0;
	return s3_cond_header(op->s, cond->if_match ? S3_PARTS_MATCH : S3_PARTS_ABSENT,
			      cond->if_match, value, header);
}

/* Returns true if the service checks the condition, or if there is none. */
static bool is_checked(const struct s3_operation *op)
{
	struct sigv4_pair header;
	char value[S3_QUOTED_MAX];
	return !has_cond(op->req) || cond_header(op, value, &header);
}

static bool decides_by_mark(const struct s3_operation *op)
{
	return op->req->mark && !s3_drops_marks(op->s);
}

/* Called after a HEAD. Without marks, the object can be ours only if an attempt before the last one
 * may have put it. */
static bool is_ours(const struct s3_operation *op, const struct store_meta *now)
{
	const struct s3_upload *u = op->upload;
	char etag[STORE_ETAG_MAX];
	if (decides_by_mark(op))
		return s3_has_own_mark(op);
	return (op->req->cond.retried || u->failures) && now->size == u->parts.size &&
	       etag_of_parts(&u->parts, etag) && strcmp(etag, now->etag) == 0;
}

/* The condition has failed. An earlier attempt of this put may be the cause. */
static void refuse(struct s3_operation *op, int rc, const struct store_meta *now)
{
	struct s3_upload *u = op->upload;
	if (!is_ours(op, now)) {
		give_up(op, rc);
		return;
	}
	u->stored = true;
	u->now = *now;
	abandon(op);
}

/* ---- the object appears ---- */

static int replaced(struct s3_operation *op, int code)
{
	return err_set(err_of(op), code,
		       "PUT %s: another writer has replaced the object at the same time",
		       op->req->key);
}

/* Also shows the ETag. Some versions of Ceph leave it empty in the answer to the last request. */
static void after_last_head(struct s3_operation *op)
{
	const struct store_meta put = op->req->answer.meta;
	const int lost = is_checked(op) ? -EIO : -ESTALE;
	struct store_meta now = {0};
	int rc = s3_head_result(op, &now);
	if (rc == -ENOENT || (rc == 0 && now.size != op->upload->parts.size))
		rc = replaced(op, lost);
	else if (rc == 0 && !is_checked(op) && decides_by_mark(op) && !s3_has_own_mark(op))
		rc = replaced(op, lost);
	else if (rc == 0 && put.etag[0] && !decides_by_mark(op) && strcmp(put.etag, now.etag) != 0)
		rc = replaced(op, lost);
	op->req->answer.meta = now;
	op->req->answer.repeated |= rc != 0; /* somebody may have seen the object */
	if (rc)
		s3_fail(op, rc);
	else
		s3_present(op);
}

/* The last request has failed, but it may have put the object. */
static void after_check(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	struct store_meta now;
	if (s3_head_result(op, &now) == 0 && is_ours(op, &now)) {
		op->req->answer.meta = now;
		s3_present(op);
		return;
	}
	*err_of(op) = u->why;
	give_up(op, u->why.code);
}

static void complete(struct s3_operation *op);

static void complete_again(struct s3_operation *op, int rc)
{
	struct s3_upload *u = op->upload;
	op->req->answer.repeated |= rc == -EAGAIN; /* it may have put the object */
	if (rc == -EAGAIN && s3_parts_wait(op, ++u->failures)) {
		complete(op);
	} else if (has_cond(op->req) && is_checked(op) && (rc == -ESTALE || rc == -ENOENT)) {
		u->why = *err_of(op);
		u->why.code = op->req->cond.if_match ? -ESTALE : -EEXIST;
		s3_send_head(op, after_check);
	} else if (u->failures) {
		u->why = *err_of(op);
		u->why.code = rc;
		s3_send_head(op, after_check);
	} else {
		give_up(op, rc);
	}
}

static void after_complete(struct s3_operation *op)
{
	char etag[STORE_ETAG_MAX + 8];
	struct store_meta *meta = &op->req->answer.meta;
	int rc = s3_request_judge(&op->call, NULL, err_of(op));
	if (!rc)
		rc = read_element(op, "ETag", etag, sizeof(etag));
	if (rc) {
		complete_again(op, rc);
		return;
	}
	*meta = op->call.answer.meta;
	s3_etag_read(etag, meta->etag);
	meta->size = op->upload->parts.size;
	if (meta->etag[0] && is_checked(op))
		s3_present(op);
	else
		s3_send_head(op, after_last_head);
}

static void complete(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	const struct sigv4_pair query[] = {{"uploadId", u->id}};
	char value[S3_QUOTED_MAX];
	struct sigv4_pair header;
	const struct s3_spec spec = {
		.method = "POST",
		.key = op->req->key,
		.query = query,
		.n_query = 1,
		.header = &header,
		.n_header = cond_header(op, value, &header),
		.pieces = &u->body,
		.n_pieces = 1,
		.body_max = ANSWER_MAX,
	};
	s3_send(op, &spec, after_complete);
}

static void name_parts(struct s3_operation *op)
{
	struct s3_upload *u = op->upload;
	str_add(&u->text, "<CompleteMultipartUpload>");
	for (unsigned int i = 0; i < u->parts.n; i++)
		str_addf(&u->text, "<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag></Part>",
			 i + 1, u->parts.etags[i]);
	str_add(&u->text, "</CompleteMultipartUpload>");
	if (!str_ok(&u->text)) {
		give_up(op, err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", op->req->key));
		return;
	}
	u->body = (struct piece){u->text.b.data, u->text.b.len};
	complete(op);
}

static void after_absence(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	if (rc)
		give_up(op, rc);
	else
		name_parts(op);
}

static void after_head(struct s3_operation *op)
{
	const struct store_cond *cond = &op->req->cond;
	const char *key = op->req->key;
	struct store_meta now;
	const int rc = s3_head_result(op, &now);
	if (cond->if_none_match && rc == 0)
		refuse(op, err_set(err_of(op), -EEXIST, "PUT %s: the object exists", key), &now);
	else if (cond->if_none_match && rc == -ENOENT)
		s3_send_absence(op, after_absence);
	else if (rc == -ENOENT)
		give_up(op, err_set(err_of(op), -ESTALE, "PUT %s: the object is gone", key));
	else if (rc == -EAGAIN && s3_parts_wait(op, ++op->upload->failures))
		s3_send_head(op, after_head);
	else if (rc)
		give_up(op, rc);
	else if (strcmp(now.etag, cond->if_match) != 0)
		refuse(op,
		       err_set(err_of(op), -ESTALE, "PUT %s: version %s, expected %s", key,
			       now.etag, cond->if_match),
		       &now);
	else
		name_parts(op);
}

/* ---- the beginning ---- */

static void send_parts(struct s3_operation *op)
{
	const int rc = s3_parts_send(&op->upload->parts);
	if (rc)
		give_up(op, rc);
	else if (is_checked(op))
		name_parts(op);
	else
		s3_send_head(op, after_head);
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
		send_parts(op);
}

void s3_put_parts(struct s3_operation *op)
{
	const struct sigv4_pair query[] = {{"uploads", ""}};
	const struct store_request *req = op->req;
	char note[S3_NOTE_VALUE];
	struct sigv4_pair header[2];
	size_t n = s3_note_header(req->note, note, header);
	n += s3_mark_header(req->mark, &header[n]);
	const struct s3_spec spec = {
		.method = "POST",
		.key = req->key,
		.query = query,
		.n_query = 1,
		.header = header,
		.n_header = n,
		.body_max = ANSWER_MAX,
	};
	struct s3_upload *u = op->upload = calloc(1, sizeof(*u));
	if (!u) {
		s3_fail(op, err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", req->key));
		return;
	}
	op->free_upload = free_upload;
	const uint64_t size = store_body_size(req);
	const uint64_t part_size = max_u64(PART_MIN, size / PARTS_MAX + 1);
	u->parts = (struct s3_parts){.op = op,
				     .upload = u->id,
				     .size = size,
				     .part_size = part_size,
				     .n = (unsigned int)div_up_u64(size, part_size)};
	u->parts.etags = calloc(u->parts.n, sizeof(u->parts.etags[0]));
	if (!u->parts.etags) {
		s3_fail(op, err_set(err_of(op), -ENOMEM, "PUT %s: out of memory", req->key));
		return;
	}
	s3_send(op, &spec, after_begin);
}
