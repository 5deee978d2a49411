/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files `plan` and `done` consist of framed records (base/frame.h), whose bodies are
 * little-endian. Texts have a NUL at their end.
 *
 * The file `plan` has the record HSMDPLAN, version 1, and then, in this order:
 *
 *   1, exactly one:
 *      +0  8  number of the plan
 *      +8  8  size of the snapshot
 *     +16  4  generation of the snapshot
 *     +20  4  count of the records 2, and then of 3, 4 and 5
 *     +36     id of the root group, or empty
 *
 *   2, an operation:
 *      +0  1  action: 1 put, 2 delete
 *      +1  1  condition: 0 none, 1 absent, 2 version
 *      +2  1  body: 0 none, 1 inline, 2 range of the snapshot, 3 range of the file `bodies`
 *      +3  1  zero
 *      +4  4  phase
 *      +8  8  offset of the range
 *     +16  8  length of the body
 *     +24 32  SHA-256 of the body
 *     +56     key, version; the body, if it is inline
 *
 *   3  number of a plan that this one has replaced, 8 bytes
 *   4  id of an object that is changed
 *   5  id and version of an object that is removed; the version may be empty
 *
 * The file `done` has records about operations, in their order:
 *
 *   1 it is done, 2 its request follows, 3 it is as if not sent:
 *      +0  8  number of the plan
 *      +8  4  index of the operation
 */
#include <journal/plan_codec.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <base/frame.h>
#include <openssl/evp.h>

enum { VERSION = 1 };
enum { RECORD_PLAN = 1, RECORD_OPERATION, RECORD_EARLIER, RECORD_OBJECT, RECORD_REMOVED };

static const char magic[] = "HSMDPLAN";

void plan_digest(const void *bytes, size_t n, uint8_t digest[PLAN_DIGEST])
{
	if (!EVP_Digest(bytes, n, digest, NULL, EVP_sha256(), NULL))
		abort(); /* no memory for a few bytes, or a library without SHA-256 */
}

uint64_t plan_file_end(const struct plan_operation *operations, uint32_t count)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < count; i++)
		if (operations[i].body == PLAN_FILE)
			end = max_u64(end, operations[i].offset + operations[i].length);
	return end;
}

/* Returns whether the range of a body can exist. `size` is that of the snapshot. */
static bool has_valid_range(const struct plan_operation *op, uint64_t size)
{
	uint64_t end;
	if (op->body == PLAN_RANGE)
		return add_u64(op->offset, op->length, &end) && end <= size;
	if (op->body == PLAN_FILE)
		return op->length != 0 && add_u64(op->offset, op->length, &end) && end <= INT64_MAX;
	return op->offset == 0;
}

/* Returns the reason why an operation is not valid, or NULL if it is valid. */
static const char *find_fault(const struct plan_operation *op, uint64_t size)
{
	static const uint8_t zeros[PLAN_DIGEST];
	if (op->action != PLAN_PUT && op->action != PLAN_DELETE)
		return "an unknown action";
	if (op->condition > PLAN_IF_VERSION || op->body > PLAN_FILE)
		return "an unknown condition or body";
	if (op->action == PLAN_DELETE && op->condition == PLAN_IF_ABSENT)
		return "a condition that does not fit its action";
	if ((op->action == PLAN_DELETE) != (op->body == PLAN_NO_BODY))
		return "a body that does not fit its action";
	if ((op->condition == PLAN_IF_VERSION) != (op->version[0] != '\0'))
		return "a version that does not fit its condition";
	if (op->key[0] == '\0')
		return "no key";
	if (!has_valid_range(op, size))
		return "a range outside of the file";
	if (op->body == PLAN_NO_BODY &&
	    (op->length != 0 || memcmp(op->sha256, zeros, PLAN_DIGEST) != 0))
		return "a length or a digest without a body";
	return NULL;
}

/* ---- encoding ---- */

static void emit_text(struct emit *e, const char *text)
{
	emit_bytes(e, text, strlen(text) + 1);
}

static void emit_plan(struct emit *e, const void *ctx)
{
	const struct plan *plan = ctx;
	const struct plan_subject *s = &plan->subject;
	emit_u64(e, plan->number);
	emit_u64(e, plan->size);
	emit_u32(e, plan->generation);
	emit_u32(e, plan->count);
	emit_u32(e, s->nearlier);
	emit_u32(e, s->count);
	emit_u32(e, s->nremoved);
	emit_text(e, s->root ? s->root : "");
}

static void emit_operation(struct emit *e, const void *ctx)
{
	const struct plan_operation *op = ctx;
	emit_u8(e, (uint8_t)op->action);
	emit_u8(e, (uint8_t)op->condition);
	emit_u8(e, (uint8_t)op->body);
	emit_u8(e, 0);
	emit_u32(e, op->phase);
	emit_u64(e, op->offset);
	emit_u64(e, op->length);
	emit_bytes(e, op->sha256, PLAN_DIGEST);
	emit_text(e, op->key);
	emit_text(e, op->version);
	if (op->body == PLAN_INLINE)
		emit_bytes(e, op->bytes, (size_t)op->length);
}

static void emit_number(struct emit *e, const void *ctx)
{
	emit_u64(e, *(const uint64_t *)ctx);
}

static void emit_id(struct emit *e, const void *ctx)
{
	emit_text(e, ctx);
}

static void emit_removed(struct emit *e, const void *ctx)
{
	const struct gc_object *o = ctx;
	emit_text(e, o->id);
	emit_text(e, o->version);
}

static int append_plan(const struct plan *plan, struct bytes *out)
{
	const struct plan_subject *s = &plan->subject;
	int rc = frame_put_head(out, magic, VERSION);
	if (!rc)
		rc = frame_emit(out, RECORD_PLAN, emit_plan, plan);
	for (uint32_t i = 0; !rc && i < plan->count; i++)
		rc = frame_emit(out, RECORD_OPERATION, emit_operation, &plan->operations[i]);
	for (uint32_t i = 0; !rc && i < s->nearlier; i++)
		rc = frame_emit(out, RECORD_EARLIER, emit_number, &s->earlier[i]);
	for (uint32_t i = 0; !rc && i < s->count; i++)
		rc = frame_emit(out, RECORD_OBJECT, emit_id, s->objects[i]);
	for (uint32_t i = 0; !rc && i < s->nremoved; i++)
		rc = frame_emit(out, RECORD_REMOVED, emit_removed, &s->removed[i]);
	return rc;
}

int plan_encode(const struct plan *plan, struct bytes *out, struct err *err)
{
	const size_t start = out->len;
	for (uint32_t i = 0; i < plan->count; i++) {
		const char *fault = find_fault(&plan->operations[i], plan->size);
		if (fault)
			return err_set(err, -EINVAL, "operation %" PRIu32 " of the plan has %s", i,
				       fault);
	}
	int rc = append_plan(plan, out);
	if (!rc && out->len - start > PLAN_MAX)
		rc = -E2BIG;
	if (rc)
		out->len = start;
	return rc == -E2BIG ? err_set(err, rc, "the plan of the commit is too large")
	       : rc	    ? err_no_memory(err)
			    : 0;
}

/* ---- decoding ---- */

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the file `plan` %s", why);
}

/* Takes a record of this type. Returns a cursor over its body, which is bad if there is none. */
static struct cursor take(struct cursor *c, uint16_t type)
{
	struct cursor body;
	uint16_t found = 0;
	if (frame_next(c, &found, &body) == 1 && found == type)
		return body;
	return (struct cursor){.bad = true};
}

static bool is_whole(const struct cursor *body)
{
	return cur_ok(body) && !cur_left(body);
}

static int read_operation(struct cursor c, uint32_t i, const struct plan *plan, struct err *err)
{
	struct plan_operation *op = &plan->operations[i];
	*op = (struct plan_operation){.action = cur_u8(&c)};
	op->condition = cur_u8(&c);
	op->body = cur_u8(&c);
	const uint8_t zero = cur_u8(&c);
	op->phase = cur_u32(&c);
	op->offset = cur_u64(&c);
	op->length = cur_u64(&c);
	const uint8_t *digest = cur_bytes(&c, PLAN_DIGEST);
	op->key = cur_cstr(&c, NULL);
	op->version = cur_cstr(&c, NULL);
	const uint64_t length = op->body == PLAN_INLINE ? op->length : 0;
	if (!op->version || zero || cur_left(&c) != length)
		return err_set(err, -EBADMSG, "operation %" PRIu32 " of the plan is damaged", i);
	memcpy(op->sha256, digest, PLAN_DIGEST);
	if (op->body == PLAN_INLINE)
		op->bytes = cur_bytes(&c, (size_t)length);
	const char *fault = find_fault(op, plan->size);
	return fault ? err_set(err, -EBADMSG, "operation %" PRIu32 " of the plan has %s", i, fault)
		     : 0;
}

static bool read_subject(struct cursor *c, struct plan_subject *s)
{
	struct cursor body = {.bad = false};
	bool ok = true;
	for (uint32_t i = 0; ok && i < s->nearlier; i++) {
		body = take(c, RECORD_EARLIER);
		s->earlier[i] = cur_u64(&body);
		ok = is_whole(&body);
	}
	for (uint32_t i = 0; ok && i < s->count; i++) {
		body = take(c, RECORD_OBJECT);
		s->objects[i] = cur_cstr(&body, NULL);
		ok = is_whole(&body) && s->objects[i][0];
	}
	for (uint32_t i = 0; ok && i < s->nremoved; i++) {
		body = take(c, RECORD_REMOVED);
		s->removed[i].id = cur_cstr(&body, NULL);
		s->removed[i].version = cur_cstr(&body, NULL);
		ok = is_whole(&body) && s->removed[i].id[0];
	}
	return ok && (s->root || !(s->nearlier || s->count || s->nremoved));
}

static int read_plan(struct cursor *c, struct plan *plan, struct err *err)
{
	struct plan_subject *s = &plan->subject;
	struct cursor body = take(c, RECORD_PLAN);
	*plan = (struct plan){.number = cur_u64(&body)};
	plan->size = cur_u64(&body);
	plan->generation = cur_u32(&body);
	plan->count = cur_u32(&body);
	s->nearlier = cur_u32(&body);
	s->count = cur_u32(&body);
	s->nremoved = cur_u32(&body);
	s->root = cur_cstr(&body, NULL);
	if (!is_whole(&body))
		return damaged(err, "has a damaged beginning");
	s->root = s->root[0] ? s->root : NULL;
	const uint64_t records = (uint64_t)plan->count + s->nearlier + s->count + s->nremoved;
	if (records > cur_left(c) / FRAME_HEADER)
		return damaged(err, "has fewer records than it says");
	plan->operations = calloc(plan->count + 1, sizeof(*plan->operations));
	s->earlier = calloc(s->nearlier + 1, sizeof(*s->earlier));
	s->objects = calloc(s->count + 1, sizeof(*s->objects));
	s->removed = calloc(s->nremoved + 1, sizeof(*s->removed));
	if (!plan->operations || !s->earlier || !s->objects || !s->removed)
		return err_no_memory(err);
	int rc = 0;
	for (uint32_t i = 0; !rc && i < plan->count; i++)
		rc = read_operation(take(c, RECORD_OPERATION), i, plan, err);
	if (!rc && !read_subject(c, s))
		rc = damaged(err, "has a damaged list of what it changes");
	return !rc && cur_left(c) ? damaged(err, "has bytes behind its last record") : rc;
}

static void release_lists(struct plan *plan)
{
	free(plan->operations);
	free((void *)plan->subject.objects);
	free(plan->subject.earlier);
	free(plan->subject.removed);
}

int plan_decode(uint8_t *file, size_t n, struct plan *plan, struct err *err)
{
	struct cursor c = cursor_of(file, n);
	int rc = frame_take_head(&c, magic, VERSION, err);
	if (rc)
		return err_wrap(err, rc, "the file `plan`");
	rc = read_plan(&c, plan, err);
	if (rc) {
		release_lists(plan);
		*plan = (struct plan){.count = 0};
		return rc;
	}
	plan->file = file;
	return 0;
}

void plan_release(struct plan *plan)
{
	release_lists(plan);
	free(plan->file);
	*plan = (struct plan){.count = 0};
}

/* ---- notes ---- */

void plan_encode_note(const struct plan *plan, uint32_t operation, enum plan_note note,
		      uint8_t bytes[PLAN_DONE_RECORD])
{
	struct emit e = emit_to(bytes + FRAME_HEADER, PLAN_DONE_RECORD - FRAME_HEADER);
	emit_u64(&e, plan->number);
	emit_u32(&e, operation);
	frame_seal(bytes, (uint16_t)note, PLAN_DONE_RECORD - FRAME_HEADER);
}

void plan_apply_notes(struct plan *plan, const uint8_t *bytes, size_t n)
{
	for (; n >= PLAN_DONE_RECORD; bytes += PLAN_DONE_RECORD, n -= PLAN_DONE_RECORD) {
		struct cursor c = cursor_of(bytes, PLAN_DONE_RECORD), body;
		uint16_t note;
		if (frame_next(&c, &note, &body) != 1 || cur_u64(&body) != plan->number)
			continue;
		const uint32_t i = cur_u32(&body);
		if (!is_whole(&body) || i >= plan->count || note < PLAN_DONE || note > PLAN_VOID)
			continue;
		if (note != PLAN_SENT)
			plan->operations[i].done = note == PLAN_DONE;
		if (note != PLAN_DONE)
			plan->operations[i].sent = note == PLAN_SENT;
	}
}

/* ---- marks ---- */

void plan_mark(uint64_t plan, uint32_t operation, char mark[PLAN_MARK])
{
	snprintf(mark, PLAN_MARK, "%016" PRIx64 "-%" PRIu32, plan, operation);
}

bool plan_find_mark(const struct plan *plan, const char *mark, uint32_t *operation)
{
	char expected[PLAN_MARK];
	const char *dash = strchr(mark, '-');
	const unsigned long long i = dash ? strtoull(dash + 1, NULL, 10) : UINT64_MAX;
	if (i >= plan->count)
		return false;
	plan_mark(plan->number, (uint32_t)i, expected);
	*operation = (uint32_t)i;
	return strcmp(mark, expected) == 0;
}

bool plan_has_mark(const struct plan *plan, const char *mark)
{
	const struct plan_subject *s = &plan->subject;
	char expected[PLAN_MARK];
	uint32_t i;
	if (plan_find_mark(plan, mark, &i))
		return true;
	for (i = 0; i < s->nearlier; i++) {
		plan_mark(s->earlier[i], 0, expected);
		if (strncmp(mark, expected, strcspn(expected, "-") + 1) == 0)
			return true;
	}
	return false;
}
