/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `plan`, little-endian:
 *
 *    +0  8  "HSMDPLAN"
 *    +8  4  version: 3 if there is a subject, else 2 if an operation has a body of kind 3, else 1
 *   +12  4  CRC-32C of +0 to +12 and +16 to the end
 *   +16  8  number of the plan
 *   +24  4  generation of the snapshot
 *   +28  4  count of operations
 *   +32  8  size of the snapshot
 *   +40     operations
 *           version 3: the subject, as framed records (base/frame.h)
 *
 * Records of the subject, in this order. Texts have a NUL at their end:
 *
 *    1  id of the root group: exactly one
 *    2  number of a plan that this one has replaced, 8 bytes
 *    3  id of an object
 *
 * An operation:
 *
 *    +0  1  action: 1 put, 2 delete
 *    +1  1  condition: 0 none, 1 absent, 2 version
 *    +2  1  body: 0 none, 1 inline, 2 range of the snapshot, 3 range of the file `bodies`
 *    +3  1  zero
 *    +4  4  phase
 *    +8  8  offset of the range
 *   +16  8  length of the body
 *   +24 32  SHA-256 of the body
 *   +56  2  length of the key
 *   +58  2  length of the version
 *   +60     key, version, each with a NUL; the body, if it is inline
 *
 * The file `done` has records about operations, in their order:
 *
 *    +0  4  CRC-32C of +4 to +24
 *    +4  4  kind: 0 it is done, 1 its request follows, 2 it is as if not sent
 *    +8  8  number of the plan
 *   +16  8  index of the operation
 */
#include <journal/plan_codec.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/frame.h>
#include <openssl/evp.h>

enum {
	VERSION = 1,
	VERSION_FILE = 2,
	VERSION_SUBJECT = 3,
	FIXED = 40,
	CRC_AT = 12,
	CRC_END = 16,
	OPERATION_MIN = 60 + 2
};
enum { RECORD_ROOT = 1, RECORD_EARLIER, RECORD_OBJECT };

static const uint8_t magic[8] = {'H', 'S', 'M', 'D', 'P', 'L', 'A', 'N'};

static uint32_t crc_of(const uint8_t *file, size_t n)
{
	return checksum_crc32c(file + CRC_END, n - CRC_END, checksum_crc32c(file, CRC_AT, 0));
}

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

/* Earlier versions of the program read plans that need no file `bodies`, and have no subject. */
static uint32_t version_of(const struct plan *plan)
{
	if (plan->subject.root)
		return VERSION_SUBJECT;
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->operations[i].body == PLAN_FILE)
			return VERSION_FILE;
	return VERSION;
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

static void emit_operation(struct emit *e, const struct plan_operation *op)
{
	const size_t key = strlen(op->key), version = strlen(op->version);
	e->bad = e->bad || key > UINT16_MAX || version > UINT16_MAX;
	emit_u8(e, (uint8_t)op->action);
	emit_u8(e, (uint8_t)op->condition);
	emit_u8(e, (uint8_t)op->body);
	emit_u8(e, 0);
	emit_u32(e, op->phase);
	emit_u64(e, op->offset);
	emit_u64(e, op->length);
	emit_bytes(e, op->sha256, PLAN_DIGEST);
	emit_u16(e, (uint16_t)key);
	emit_u16(e, (uint16_t)version);
	emit_bytes(e, op->key, key + 1);
	emit_bytes(e, op->version, version + 1);
	if (op->body == PLAN_INLINE)
		emit_bytes(e, op->bytes, (size_t)op->length);
}

static void emit_plan(struct emit *e, const struct plan *plan)
{
	emit_bytes(e, magic, sizeof(magic));
	emit_u32(e, version_of(plan));
	emit_u32(e, 0);
	emit_u64(e, plan->number);
	emit_u32(e, plan->generation);
	emit_u32(e, plan->count);
	emit_u64(e, plan->size);
	for (uint32_t i = 0; i < plan->count; i++)
		emit_operation(e, &plan->operations[i]);
}

static int append_text(struct bytes *out, uint16_t type, const char *text)
{
	return frame_append(out, type, text, strlen(text) + 1);
}

static int append_subject(const struct plan_subject *s, struct bytes *out)
{
	if (!s->root)
		return 0;
	int rc = append_text(out, RECORD_ROOT, s->root);
	for (uint32_t i = 0; rc == 0 && i < s->nearlier; i++) {
		uint8_t number[8];
		struct emit e = emit_to(number, sizeof(number));
		emit_u64(&e, s->earlier[i]);
		rc = frame_append(out, RECORD_EARLIER, number, sizeof(number));
	}
	for (uint32_t i = 0; rc == 0 && i < s->count; i++)
		rc = append_text(out, RECORD_OBJECT, s->objects[i]);
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
	struct emit count = emit_count();
	emit_plan(&count, plan);
	if (count.bad || count.pos > PLAN_MAX)
		return err_set(err, -E2BIG, "the plan of the commit is too large");
	if (bytes_reserve(out, count.pos))
		return err_no_memory(err);
	uint8_t *file = out->data + out->len;
	struct emit e = emit_to(file, count.pos);
	emit_plan(&e, plan);
	out->len += count.pos;
	const int rc = append_subject(&plan->subject, out);
	const size_t n = out->len - start;
	if (rc || n > PLAN_MAX) {
		out->len = start;
		return rc ? err_set(err, rc, "out of memory")
			  : err_set(err, -E2BIG, "the plan of the commit is too large");
	}
	e = emit_to(out->data + start + CRC_AT, 4);
	emit_u32(&e, crc_of(out->data + start, n));
	return 0;
}

/* ---- decoding ---- */

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the file `plan` %s", why);
}

static int read_operation(struct cursor *c, uint32_t i, const struct plan *plan, struct err *err)
{
	struct plan_operation *op = &plan->operations[i];
	*op = (struct plan_operation){.action = cur_u8(c)};
	op->condition = cur_u8(c);
	op->body = cur_u8(c);
	const uint8_t zero = cur_u8(c);
	op->phase = cur_u32(c);
	op->offset = cur_u64(c);
	op->length = cur_u64(c);
	const uint8_t *digest = cur_bytes(c, PLAN_DIGEST);
	const size_t key = cur_u16(c), version = cur_u16(c);
	op->key = cur_text(c, key);
	op->version = cur_text(c, version);
	if (!digest || !op->key || !op->version || zero)
		return err_set(err, -EBADMSG, "operation %" PRIu32 " of the plan is damaged", i);
	memcpy(op->sha256, digest, PLAN_DIGEST);
	if (op->body == PLAN_INLINE)
		op->bytes = op->length <= cur_left(c) ? cur_bytes(c, (size_t)op->length) : NULL;
	const char *fault = op->body == PLAN_INLINE && !op->bytes ? "a body behind its end"
								  : find_fault(op, plan->size);
	return fault ? err_set(err, -EBADMSG, "operation %" PRIu32 " of the plan has %s", i, fault)
		     : 0;
}

static int read_operations(struct cursor *c, struct plan *plan, struct err *err)
{
	if (plan->count > cur_left(c) / OPERATION_MIN)
		return damaged(err, "has fewer operations than it says");
	plan->operations = calloc(plan->count ? plan->count : 1, sizeof(*plan->operations));
	if (!plan->operations)
		return err_no_memory(err);
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < plan->count; i++)
		rc = read_operation(c, i, plan, err);
	return rc;
}

/* ---- the subject ---- */

/* Returns the text of a record, or NULL if it has none. */
static const char *text_of(struct cursor *body)
{
	size_t n;
	const char *text = cur_cstr(body, &n);
	return text && n && !cur_left(body) ? text : NULL;
}

/* Counts the records, and checks their order. */
static int count_records(struct cursor c, struct plan_subject *s)
{
	struct cursor body;
	uint16_t type, last = 0;
	int rc;
	while ((rc = frame_next(&c, &type, &body)) > 0) {
		const bool is_first = last == 0;
		if (type < last || type > RECORD_OBJECT || is_first != (type == RECORD_ROOT))
			return -EBADMSG;
		s->nearlier += type == RECORD_EARLIER;
		s->count += type == RECORD_OBJECT;
		last = type;
	}
	return rc == 0 && last == 0 ? -EBADMSG : rc;
}

static int read_records(struct cursor *c, struct plan_subject *s)
{
	struct cursor body;
	uint16_t type;
	uint32_t objects = 0, plans = 0;
	while (frame_next(c, &type, &body) > 0) {
		if (type == RECORD_EARLIER) {
			s->earlier[plans++] = cur_u64(&body);
			if (!cur_ok(&body) || cur_left(&body))
				return -EBADMSG;
			continue;
		}
		const char *text = text_of(&body);
		if (!text)
			return -EBADMSG;
		if (type == RECORD_ROOT)
			s->root = text;
		else
			s->objects[objects++] = text;
	}
	return 0;
}

static int read_subject(struct cursor *c, struct plan_subject *s, struct err *err)
{
	int rc = count_records(*c, s);
	if (rc)
		return damaged(err, "has a damaged list of what it changes");
	s->earlier = calloc(s->nearlier + 1, sizeof(*s->earlier));
	s->objects = calloc(s->count + 1, sizeof(*s->objects));
	if (!s->earlier || !s->objects)
		return err_no_memory(err);
	rc = read_records(c, s);
	return rc ? damaged(err, "has a damaged list of what it changes") : 0;
}

static void release_lists(struct plan *plan)
{
	free(plan->operations);
	free((void *)plan->subject.objects);
	free(plan->subject.earlier);
}

/* Reads the operations, and the subject if there is one. */
static int read_lists(struct cursor *c, struct plan *plan, uint32_t version, struct err *err)
{
	int rc = read_operations(c, plan, err);
	if (rc == 0 && version == VERSION_SUBJECT)
		rc = read_subject(c, &plan->subject, err);
	if (rc == 0 && cur_left(c) != 0)
		rc = damaged(err, "has bytes behind its last operation");
	if (rc == 0 && version_of(plan) != version)
		rc = damaged(err, "has a version that does not fit its operations");
	return rc;
}

int plan_decode(uint8_t *file, size_t n, struct plan *plan, struct err *err)
{
	struct cursor c = cursor_of(file, n);
	if (n < FIXED || n > PLAN_MAX)
		return damaged(err, "is too short or too long");
	if (memcmp(cur_bytes(&c, sizeof(magic)), magic, sizeof(magic)) != 0)
		return damaged(err, "does not begin with HSMDPLAN");
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	if (crc != crc_of(file, n))
		return damaged(err, "does not have its checksum");
	if (version < VERSION || version > VERSION_SUBJECT)
		return err_set(err, -ENOTSUP,
			       "the plan has version %" PRIu32 " of the format, this program reads "
			       "versions %d to %d; use the program that wrote it",
			       version, VERSION, VERSION_SUBJECT);
	*plan = (struct plan){.number = cur_u64(&c)};
	plan->generation = cur_u32(&c);
	plan->count = cur_u32(&c);
	plan->size = cur_u64(&c);
	const int rc = read_lists(&c, plan, version, err);
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
	struct emit e = emit_to(bytes, PLAN_DONE_RECORD);
	emit_u32(&e, 0);
	emit_u32(&e, (uint32_t)note);
	emit_u64(&e, plan->number);
	emit_u64(&e, operation);
	emit_patch_u32(&e, 0, checksum_crc32c(bytes + 4, PLAN_DONE_RECORD - 4, 0));
}

void plan_apply_notes(struct plan *plan, const uint8_t *bytes, size_t n)
{
	uint8_t expected[PLAN_DONE_RECORD];
	for (; n >= PLAN_DONE_RECORD; bytes += PLAN_DONE_RECORD, n -= PLAN_DONE_RECORD) {
		struct cursor c = cursor_of(bytes, PLAN_DONE_RECORD);
		cur_skip(&c, 4);
		const uint32_t note = cur_u32(&c);
		cur_skip(&c, 8);
		const uint64_t i = cur_u64(&c);
		if (i >= plan->count || note > PLAN_VOID)
			continue;
		plan_encode_note(plan, (uint32_t)i, (enum plan_note)note, expected);
		if (memcmp(bytes, expected, PLAN_DONE_RECORD) != 0)
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
