/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all of an image except its holes. A range that cannot be read belongs to one chunk, whose
 * key is in the error message. The range ends where the message changes; doubling steps and then a
 * bisection find that end. So reading continues after it without knowledge of the layout.
 */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>

enum { PIECE = 1 << 20 };

struct verify {
	struct image *img;
	struct image_stream *stream;
	const struct engine_info_sink *sink;
	uint8_t *buf;
	struct verify_result result;
	uint64_t passed, total; /* bytes outside of holes: read or skipped as damaged, and all */
};

/* Returns whether reading the byte at offset fails for the same reason. */
static bool same_failure(struct verify *v, uint64_t offset, const struct err *why)
{
	struct err err = ERR_INIT;
	uint8_t byte;
	return image_read(v->img, NULL, &byte, 1, offset, NULL, &err) < 0 &&
	       err.code == why->code && strcmp(err.msg, why->msg) == 0;
}

/* The first offset after `at` where reading does not fail for the same reason; at most `end`. */
static uint64_t failure_end(struct verify *v, uint64_t at, uint64_t end, const struct err *why)
{
	uint64_t bad = at, good = end;
	for (uint64_t step = 512; bad < end; step *= 2) {
		if (step >= end - at)
			break;
		if (!same_failure(v, at + step, why)) {
			good = at + step;
			break;
		}
		bad = at + step;
	}
	while (good - bad > 1) {
		uint64_t mid = bad + (good - bad) / 2;
		if (same_failure(v, mid, why))
			bad = mid;
		else
			good = mid;
	}
	return good;
}

/* Finds the first range outside of holes at or after *end. Returns false if there is none. */
static bool next_range(const struct image *img, bool asks, uint64_t *first, uint64_t *end)
{
	int64_t (*const seek)(const struct image *, uint64_t, int) = asks ? image_find : image_seek;
	const int64_t data = seek(img, *end, SEEK_DATA);
	if (data < 0)
		return false;
	*first = (uint64_t)data;
	const int64_t hole = seek(img, *first, SEEK_HOLE);
	*end = hole < 0 ? image_size(img) : (uint64_t)hole;
	return *end > *first;
}

static uint64_t data_bytes(const struct image *img, bool asks)
{
	uint64_t first, end = 0, sum = 0;
	while (next_range(img, asks, &first, &end))
		sum += end - first;
	return sum;
}

uint64_t verify_data_bytes(const struct image *img)
{
	return data_bytes(img, false);
}

static int report_failure(struct verify *v, const struct err *why)
{
	auto_str struct str line = {0};
	v->result.failures++;
	str_addf(&line, "problem: %s", why->msg);
	return str_ok(&line) ? v->sink->line(v->sink->arg, str_text(&line)) : -ENOMEM;
}

static int verify_range(struct verify *v, uint64_t offset, uint64_t end)
{
	while (offset < end) {
		struct err why = ERR_INIT;
		const size_t n = (size_t)min_u64(PIECE, end - offset);
		const ssize_t got = image_read(v->img, v->stream, v->buf, n, offset, NULL, &why);
		uint64_t next = offset + (got > 0 ? (uint64_t)got : 0);
		if (got > 0) {
			v->result.bytes += (uint64_t)got;
		} else {
			if (got == 0)
				err_set(&why, -EIO, "the image ends at %" PRIu64, offset);
			int rc = report_failure(v, &why);
			if (rc)
				return rc;
			next = got == 0 ? end : failure_end(v, offset, end, &why);
		}
		v->passed += next - offset;
		offset = next;
		if (v->sink->progress)
			v->sink->progress(v->sink->arg, v->passed, v->total);
	}
	return 0;
}

int verify_image(struct image *img, const struct engine_info_sink *sink, struct verify_result *out,
		 struct err *err)
{
	struct verify v = {
		.img = img,
		.sink = sink,
		.stream = image_stream_new(img),
		.buf = malloc(PIECE),
	};
	uint64_t first, end = 0;
	int rc = v.buf ? 0 : err_no_memory(err);
	v.total = data_bytes(img, true);
	if (sink->progress)
		sink->progress(sink->arg, 0, v.total);
	while (!rc && next_range(img, true, &first, &end))
		rc = verify_range(&v, first, end);
	if (v.stream)
		image_stream_free(v.stream);
	free(v.buf);
	*out = v.result;
	return rc;
}
