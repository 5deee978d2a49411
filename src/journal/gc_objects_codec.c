/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of removed objects, little-endian:
 *
 *    +0  8  "HSMDREMV"
 *    +8  4  version: 1
 *   +12  4  CRC-32C of +0 to +12 and +16 to the end
 *   +16  4  count of objects
 *   +20  4  zero
 *   +24     path of the domain, id of its root group, then for each object its id and its version;
 *           each with a NUL
 */
#include "gc_objects_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <base/emit.h>

enum { VERSION = 1, FIXED = 24, CRC_AT = 12, CRC_END = 16, OBJECT_MIN = 3 };

static const uint8_t magic[8] = {'H', 'S', 'M', 'D', 'R', 'E', 'M', 'V'};

static uint32_t crc_of(const uint8_t *file, size_t n)
{
	return checksum_crc32c(file + CRC_END, n - CRC_END, checksum_crc32c(file, CRC_AT, 0));
}

/* ---- encoding ---- */

static void emit_text(struct emit *e, const char *text)
{
	emit_bytes(e, text, strlen(text) + 1);
}

static void emit_list(struct emit *e, const struct gc_objects_list *list)
{
	emit_bytes(e, magic, sizeof(magic));
	emit_u32(e, VERSION);
	emit_u32(e, 0);
	emit_u32(e, list->count);
	emit_u32(e, 0);
	emit_text(e, list->path);
	emit_text(e, list->root);
	for (uint32_t i = 0; i < list->count; i++) {
		emit_text(e, list->objects[i].id);
		emit_text(e, list->objects[i].version);
	}
}

/* Returns the reason why a list is not valid, or NULL if it is. */
static const char *find_fault(const struct gc_objects_list *list)
{
	const size_t path = strlen(list->path);
	if (path == 0 || path > GC_PATH)
		return "a path that is empty or too long";
	if (list->root[0] == '\0')
		return "no root group";
	for (uint32_t i = 0; i < list->count; i++)
		if (list->objects[i].id[0] == '\0')
			return "an object without an id";
	return NULL;
}

int gc_objects_encode(const struct gc_objects_list *list, struct bytes *out, struct err *err)
{
	const char *fault = find_fault(list);
	if (fault)
		return err_set(err, -EINVAL, "the list of removed objects has %s", fault);
	struct emit count = emit_count();
	emit_list(&count, list);
	if (count.bad || count.pos > GC_OBJECTS_MAX)
		return err_set(err, -E2BIG, "the list of removed objects is too large");
	if (bytes_reserve(out, count.pos))
		return err_no_memory(err);
	uint8_t *file = out->data + out->len;
	struct emit e = emit_to(file, count.pos);
	emit_list(&e, list);
	emit_patch_u32(&e, CRC_AT, crc_of(file, count.pos));
	out->len += count.pos;
	return 0;
}

/* ---- decoding ---- */

static int damaged(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "the list of removed objects %s", why);
}

static int read_objects(struct cursor *c, struct gc_objects_list *out, struct err *err)
{
	size_t n;
	if (out->count > cur_left(c) / OBJECT_MIN)
		return damaged(err, "has fewer objects than it says");
	out->objects = calloc(out->count ? out->count : 1, sizeof(*out->objects));
	if (!out->objects)
		return err_no_memory(err);
	for (uint32_t i = 0; i < out->count; i++) {
		out->objects[i].id = cur_cstr(c, &n);
		out->objects[i].version = cur_cstr(c, &n);
	}
	if (!cur_ok(c))
		return damaged(err, "has fewer objects than it says");
	return cur_left(c) ? damaged(err, "has bytes behind its last object") : 0;
}

int gc_objects_decode(const uint8_t *file, size_t n, struct gc_objects_list *out, struct err *err)
{
	struct cursor c = cursor_of(file, n);
	size_t length;
	*out = (struct gc_objects_list){.count = 0};
	if (n < FIXED || n > GC_OBJECTS_MAX)
		return damaged(err, "is too short or too long");
	if (memcmp(cur_bytes(&c, sizeof(magic)), magic, sizeof(magic)) != 0)
		return damaged(err, "does not begin with HSMDREMV");
	const uint32_t version = cur_u32(&c), crc = cur_u32(&c);
	if (crc != crc_of(file, n))
		return damaged(err, "does not have its checksum");
	if (version != VERSION)
		return err_set(err, -ENOTSUP,
			       "the list of removed objects has version %" PRIu32 " of the format",
			       version);
	out->count = cur_u32(&c);
	const uint32_t zero = cur_u32(&c);
	out->path = cur_cstr(&c, &length);
	out->root = cur_cstr(&c, &length);
	if (!out->path || !out->root || zero)
		return damaged(err, "has a damaged beginning");
	int rc = read_objects(&c, out, err);
	const char *fault = rc ? NULL : find_fault(out);
	if (fault)
		rc = err_set(err, -EBADMSG, "the list of removed objects has %s", fault);
	if (rc) {
		free(out->objects);
		out->objects = NULL;
	}
	return rc;
}
