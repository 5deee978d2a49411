/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all of an image, holes left out. Where a read fails, the failing range is one chunk's (its
 * message names the key): its end is found by doubling steps and then by bisection on the message,
 * so that what lies behind it is read too, without knowing where chunks are.
 */
#include "verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

struct verify {
	struct image *img;
	struct image_stream *stream;
	uint8_t *buf;
	struct verify_result result;
};

/* The byte at offset fails for the same reason. */
static bool same_failure(struct verify *v, uint64_t offset, const struct err *why)
{
	struct err err = ERR_INIT;
	uint8_t byte;
	return image_read(v->img, NULL, &byte, 1, offset, NULL, &err) < 0 &&
	       err.code == why->code && strcmp(err.msg, why->msg) == 0;
}

/* First offset behind `at` and up to `end` that does not fail for the same reason. */
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

static int verify_range(struct verify *v, uint64_t offset, uint64_t end,
			int (*tell)(void *arg, const char *what), void *arg)
{
	while (offset < end) {
		struct err why = ERR_INIT;
		size_t n = (size_t)min_u64(PIECE, end - offset);
		ssize_t done = image_read(v->img, v->stream, v->buf, n, offset, NULL, &why);
		if (done > 0) {
			v->result.bytes += (uint64_t)done;
			offset += (uint64_t)done;
			continue;
		}
		if (done == 0)
			err_set(&why, -EIO, "the image ends at %llu", (unsigned long long)offset);
		v->result.failures++;
		int rc = tell(arg, why.msg);
		if (rc)
			return rc;
		offset = done == 0 ? end : failure_end(v, offset, end, &why);
	}
	return 0;
}

int verify_image(struct image *img, int (*tell)(void *arg, const char *what), void *arg,
		 struct verify_result *out, struct err *err)
{
	struct verify v = {.img = img, .stream = image_stream_new(img), .buf = malloc(PIECE)};
	int rc = v.buf ? 0 : err_set(err, -ENOMEM, "out of memory");
	uint64_t size = image_size(img);
	for (uint64_t offset = 0; !rc && offset < size;) {
		int64_t data = image_seek(img, offset, SEEK_DATA);
		if (data < 0)
			break; /* a hole up to the end */
		int64_t hole = image_seek(img, (uint64_t)data, SEEK_HOLE);
		uint64_t end = hole < 0 ? size : (uint64_t)hole;
		rc = verify_range(&v, (uint64_t)data, end, tell, arg);
		if (end <= offset)
			break;
		offset = end;
	}
	if (v.stream)
		image_stream_free(v.stream);
	free(v.buf);
	*out = v.result;
	return rc;
}
