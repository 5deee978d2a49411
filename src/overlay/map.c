/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map: see map.h. It consists of framed records (base/frame.h) of 32 bytes, so none lies in two
 * pages, and a process that is killed leaves the old record or the new one. The body is
 * little-endian:
 *
 *    +0  4  generation; in the first record "HMP2"
 *    +4  8  offset
 *   +12  8  length
 */
#include "map.h"

#include <errno.h>
#include <inttypes.h>

#include <base/cursor.h>
#include <base/emit.h>
#include <base/frame.h>
#include <base/mem.h>

enum { BATCH = 2048 /* records that are read at once */ };

/* ---- one record ---- */

void map_encode(const struct map_record *r, uint8_t bytes[MAP_RECORD])
{
	struct emit e = emit_to(bytes + FRAME_HEADER, MAP_RECORD - FRAME_HEADER);
	emit_u32(&e, r->generation);
	emit_u64(&e, r->offset);
	emit_u64(&e, r->length);
	frame_seal(bytes, (uint16_t)r->type, MAP_RECORD - FRAME_HEADER);
}

int map_decode(const uint8_t bytes[MAP_RECORD], uint32_t sequence, struct map_record *r)
{
	struct cursor c = cursor_of(bytes, MAP_RECORD), body;
	uint16_t type;
	if (frame_next(&c, &type, &body) != 1)
		return -EBADMSG;
	*r = (struct map_record){.type = type, .sequence = sequence};
	r->generation = cur_u32(&body);
	r->offset = cur_u64(&body);
	r->length = cur_u64(&body);
	return cur_ok(&body) && !cur_left(&body) && type >= MAP_START && type <= MAP_SYNC
		       ? 0
		       : -EBADMSG;
}

/* ---- replay ---- */

/* Passes the bytes of the first n records to fn, up to a call that returns an error. */
static int each_record(struct source *bytes, uint64_t n,
		       int (*fn)(void *ctx, const uint8_t *record, uint32_t sequence,
				 struct err *err),
		       void *ctx, struct err *err)
{
	auto_free uint8_t *batch = malloc((size_t)min_u64(n, BATCH) * MAP_RECORD + 1);
	if (!batch)
		return err_no_memory(err);
	for (uint64_t first = 0; first < n; first += BATCH) {
		const size_t count = (size_t)min_u64(n - first, BATCH);
		int rc = source_read(bytes, first * MAP_RECORD, batch, count * MAP_RECORD, err);
		for (size_t i = 0; rc == 0 && i < count; i++)
			rc = fn(ctx, batch + i * MAP_RECORD, (uint32_t)(first + i), err);
		if (rc)
			return rc;
	}
	return 0;
}

struct count {
	bool same_boot;
	uint32_t records; /* that count */
};

/* The last intact record that can end the map tells how many records count. Another one before it
 * must not be damaged, which the second pass checks. */
static int count_record(void *ctx, const uint8_t *record, uint32_t sequence, struct err *err)
{
	struct count *c = ctx;
	struct map_record r;
	if (map_decode(record, sequence, &r) == 0 && (c->same_boot || r.type == MAP_SYNC))
		c->records = sequence + 1;
	return 0;
}

static int refuse(const struct map_record *r, const char *why, struct err *err)
{
	return err_set(err, -EBADMSG, "record %" PRIu32 " of the map %s", r->sequence, why);
}

/* Repeats a change until it has the memory that it needs. */
static int change(struct map_state *s, enum layers_change change, uint64_t start, uint64_t end,
		  struct err *err)
{
	uint64_t added = 0;
	int rc;
	while ((rc = layers_change(s->layers, change, start, end, &added)) == -EAGAIN) {
		rc = budget_set(s->charge, s->charge->bytes + FRAMES_STEP, err);
		if (rc)
			return rc;
		s->memory->allowed = (size_t)s->charge->bytes;
	}
	return rc ? err_set(err, rc, "out of memory") : 0;
}

static int check_range(const struct map_state *s, const struct map_record *r, struct err *err)
{
	uint64_t end;
	const uint64_t most = r->type == MAP_ZERO ? s->layers->size : FRAMES_LIMIT;
	if (!add_u64(r->offset, r->length, &end) || end > most)
		return refuse(r, "has an offset outside of the file", err);
	if (r->type == MAP_SIZE ? r->offset != 0 : r->length == 0)
		return refuse(r, "has an invalid range", err);
	return 0;
}

static int apply_change(struct map_state *s, const struct map_record *r, struct err *err)
{
	int rc = check_range(s, r, err);
	if (rc)
		return rc;
	if (r->type == MAP_SIZE)
		return change(s, LAYERS_RESIZE, 0, r->length, err);
	const uint64_t end = r->offset + r->length;
	if (r->type == MAP_ZERO)
		return change(s, LAYERS_ZERO, r->offset, end, err);
	rc = change(s, LAYERS_STORE, r->offset, end, err);
	return rc ? rc : change(s, LAYERS_WRITE, r->offset, end, err);
}

static int apply_begin(struct map_state *s, const struct map_record *r, struct err *err)
{
	if (r->generation <= s->layers->highest)
		return refuse(r, "begins a generation again", err);
	int rc = layers_begin(s->layers, r->generation, NULL);
	if (rc == -E2BIG)
		return refuse(r, "begins too many generations", err);
	return rc ? err_set(err, rc, "out of memory") : 0;
}

static int apply_fold(struct map_state *s, const struct map_record *r, struct err *err)
{
	if (s->layers->n < 2)
		return refuse(r, "folds the only generation", err);
	int rc = change(s, LAYERS_MERGE, 0, 0, err);
	if (rc == 0)
		layers_pop(s->layers);
	return rc;
}

static int check_seal(const struct map_state *s, const struct map_record *r, struct err *err)
{
	if (r->length != s->layers->size)
		return refuse(r, "seals a file of another size", err);
	return 0;
}

static int apply_start(struct map_state *s, const struct map_record *r, struct err *err)
{
	if (r->generation != MAP_MAGIC || r->offset != 0 || r->length > FRAMES_LIMIT)
		return refuse(r, "is not the first record of a map of version 2", err);
	int rc = layers_init(s->layers, s->memory, r->length);
	return rc ? err_set(err, rc, "out of memory") : 0;
}

static bool names_newest(enum map_type type)
{
	return type == MAP_WRITE || type == MAP_SIZE || type == MAP_ZERO || type == MAP_SEAL ||
	       type == MAP_FOLD;
}

static int apply(void *ctx, const uint8_t *record, uint32_t sequence, struct err *err)
{
	struct map_state *s = ctx;
	struct map_record r;
	if (map_decode(record, sequence, &r))
		return err_set(err, -EBADMSG, "record %" PRIu32 " of the map is damaged", sequence);
	if ((r.type == MAP_START) != (sequence == 0))
		return refuse(&r, "is not expected there", err);
	if (names_newest(r.type) && r.generation != s->layers->top->generation)
		return refuse(&r, "names a generation that is not the newest", err);
	switch (r.type) {
	case MAP_START:
		return apply_start(s, &r, err);
	case MAP_BEGIN:
		return apply_begin(s, &r, err);
	case MAP_WRITE:
	case MAP_SIZE:
	case MAP_ZERO:
		s->since_seal = s->since_mark = true;
		return apply_change(s, &r, err);
	case MAP_SEAL:
		s->since_seal = false;
		return check_seal(s, &r, err);
	case MAP_FOLD:
		return apply_fold(s, &r, err);
	case MAP_MARK:
		if (r.length != s->mark)
			s->since_mark = s->since_seal;
		s->mark = r.length;
		return 0;
	case MAP_SYNC:
		return 0;
	}
	return refuse(&r, "has an unknown type", err);
}

int map_replay(struct source *bytes, bool same_boot, struct map_state *s, struct err *err)
{
	const uint64_t n = min_u64(bytes->size / MAP_RECORD, UINT32_MAX);
	struct count count = {.same_boot = same_boot};
	int rc = each_record(bytes, n, count_record, &count, err);
	if (rc)
		return rc;
	if (count.records == 0)
		return err_set(err, -ENODATA,
			       same_boot ? "the map has no intact record"
					 : "nothing was durable when the machine stopped");
	s->records = count.records;
	s->since_seal = s->since_mark = true;
	return each_record(bytes, count.records, apply, s, err);
}
