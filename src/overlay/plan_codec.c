/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `plan`, little-endian:
 *
 *    +0  8  "HSMDPLAN"
 *    +8  4  version: 2 if an operation has a body of kind 3, else 1
 *   +12  4  CRC-32C of +0 to +12 and +16 to the end
 *   +16  8  number of the plan
 *   +24  4  generation of the snapshot
 *   +28  4  count of operations
 *   +32  8  size of the snapshot
 *   +40     operations
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
 * The file `done` has a record for each operation that has been done:
 *
 *    +0  4  CRC-32C of +4 to +24
 *    +4  4  zero
 *    +8  8  number of the plan
 *   +16  8  index of the operation
 */
#include "plan_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <openssl/evp.h>

enum {
	VERSION = 1,
	VERSION_FILE = 2,
	FIXED = 40,
	CRC_AT = 12,
	CRC_END = 16,
	OPERATION_MIN = 60 + 2
};

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

/* Earlier versions of the program read plans that need no file `bodies`. */
static uint32_t version_of(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->operations[i].body == PLAN_FILE)
			return VERSION_FILE;
	return VERSION;
}

/* Whether the place of a body is possible. size: of the snapshot. */
static bool is_place(const struct plan_operation *op, uint64_t size)
{
	uint64_t end;
	if (op->body == PLAN_RANGE)
		return add_u64(op->offset, op->length, &end) && end <= size;
	if (op->body == PLAN_FILE)
		return op->length != 0 && add_u64(op->offset, op->length, &end) && end <= INT64_MAX;
	return op->offset == 0;
}

/* The reason why an operation is not valid; NULL if it is. */
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
	if (!is_place(op, size))
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

int plan_encode(const struct plan *plan, struct bytes *out, struct err *err)
{
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
		return err_set(err, -ENOMEM, "out of memory");
	uint8_t *file = out->data + out->len;
	struct emit e = emit_to(file, count.pos);
	emit_plan(&e, plan);
	emit_patch_u32(&e, CRC_AT, crc_of(file, count.pos));
	out->len += count.pos;
	return 0;
}

/* ---- decoding ---- */

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the file `plan` %s", why);
}

/* The text of n bytes at the cursor, with a NUL behind it and none in it; NULL if it is not. */
static const char *read_text(struct cursor *c, size_t n)
{
	size_t length = 0;
	const char *text = cur_cstr(c, &length);
	return text && length == n ? text : NULL;
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
	op->key = read_text(c, key);
	op->version = read_text(c, version);
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
		return err_set(err, -ENOMEM, "out of memory");
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < plan->count; i++)
		rc = read_operation(c, i, plan, err);
	if (rc == 0 && cur_left(c) != 0)
		rc = damaged(err, "has bytes behind its last operation");
	if (rc)
		free(plan->operations);
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
	if (version != VERSION && version != VERSION_FILE)
		return err_set(err, -ENOTSUP,
			       "the plan has version %" PRIu32 " of the format, this program reads "
			       "versions %d and %d; use the program that wrote it",
			       version, VERSION, VERSION_FILE);
	*plan = (struct plan){.number = cur_u64(&c)};
	plan->generation = cur_u32(&c);
	plan->count = cur_u32(&c);
	plan->size = cur_u64(&c);
	int rc = read_operations(&c, plan, err);
	if (rc)
		return rc;
	if (version_of(plan) != version) {
		free(plan->operations);
		return damaged(err, "has a version that does not fit its operations");
	}
	plan->file = file;
	return 0;
}

void plan_release(struct plan *plan)
{
	free(plan->operations);
	free(plan->file);
	*plan = (struct plan){.count = 0};
}

/* ---- what is done ---- */

void plan_encode_done(const struct plan *plan, uint32_t operation, uint8_t bytes[PLAN_DONE_RECORD])
{
	struct emit e = emit_to(bytes, PLAN_DONE_RECORD);
	emit_u32(&e, 0);
	emit_u32(&e, 0);
	emit_u64(&e, plan->number);
	emit_u64(&e, operation);
	emit_patch_u32(&e, 0, checksum_crc32c(bytes + 4, PLAN_DONE_RECORD - 4, 0));
}

void plan_apply_done(struct plan *plan, const uint8_t *bytes, size_t n)
{
	uint8_t expected[PLAN_DONE_RECORD];
	for (; n >= PLAN_DONE_RECORD; bytes += PLAN_DONE_RECORD, n -= PLAN_DONE_RECORD) {
		struct cursor c = cursor_of(bytes, PLAN_DONE_RECORD);
		cur_skip(&c, 16);
		const uint64_t i = cur_u64(&c);
		if (i >= plan->count)
			continue;
		plan_encode_done(plan, (uint32_t)i, expected);
		if (memcmp(bytes, expected, PLAN_DONE_RECORD) == 0)
			plan->operations[i].done = true;
	}
}
