/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See close_state.h. libhdf5 since version 1.10 sets a bit in the superblock while a program has
 * the file open for writing, and clears it last. A copy of an unfinished file has the bit, too.
 * Older libraries do not set it, but the end of the file that they have recorded is often not yet
 * where the file ends. Pure, except for the source.
 */
#include <drafts/close_state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include <base/mem.h>
#include <h5/superblock.h>

enum {
	/* In the status of the superblock. Old libraries leave both in closed files, and newer
	 * ones, which clear the first when they close a file, never set the second. */
	OPEN_FOR_WRITING = 1,
	IS_CONSISTENT = 2,
	SUPERBLOCK_2 = 48, /* size of versions 2 and 3 with addresses of 8 bytes */
};

/* Computes the size that the superblock at `at` records for the file. Returns false if that is not
 * valid. */
static bool recorded_size(const struct h5_superblock *sb, uint64_t at, uint64_t *size)
{
	return sb->eof != H5_UNDEF && sb->eof >= sb->base && add_u64(sb->eof - sb->base, at, size);
}

static bool is_open(const struct h5_superblock *sb)
{
	return (sb->status_flags & (OPEN_FOR_WRITING | IS_CONSISTENT)) == OPEN_FOR_WRITING;
}

static enum close_state judge(const struct h5_superblock *sb, uint64_t at, uint64_t size, char *why,
			      size_t room)
{
	uint64_t recorded;
	if (is_open(sb))
		snprintf(why, room, "the program that wrote it has not closed it");
	else if (!recorded_size(sb, at, &recorded))
		snprintf(why, room, "it is damaged: superblock: the end of the file is not valid");
	else if (recorded > size)
		snprintf(why, room, "its end is missing: it has %" PRIu64 " of %" PRIu64 " bytes",
			 size, recorded);
	else if (recorded < size)
		snprintf(why, room,
			 "the program that wrote it has not closed it: it has %" PRIu64
			 " bytes, but its superblock says %" PRIu64,
			 size, recorded);
	else
		return CLOSE_STATE_CLOSED;
	return CLOSE_STATE_UNCLOSED;
}

int close_state_read(struct source *s, enum close_state *out, char *why, size_t room,
		     struct err *err)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	struct h5_superblock sb;
	struct err reason = ERR_INIT;
	uint64_t at;
	bool found;
	*out = CLOSE_STATE_OTHER;
	why[0] = '\0';
	int rc = h5_superblock_find(s, &at, &found, err);
	if (rc || !found)
		return rc;
	const size_t n = (size_t)min_u64(s->size - at, sizeof(raw));
	rc = source_read(s, at, raw, n, err);
	if (rc)
		return rc;
	struct cursor c = cursor_of(raw, n);
	const int damage = h5_superblock_decode(&c, &sb, &reason);
	/* If the version is not known, whatever reads the whole file reports it. */
	*out = CLOSE_STATE_CLOSED;
	if (!damage)
		*out = judge(&sb, at, s->size, why, room);
	if (!damage || damage == -EOPNOTSUPP)
		return 0;
	*out = CLOSE_STATE_UNCLOSED;
	snprintf(why, room, "it is damaged: %s", reason.msg);
	return 0;
}

/* ---- drafts ---- */

bool close_state_may_mark(uint64_t offset, uint64_t n)
{
	for (uint64_t at = 0; at < offset + n; at = h5_superblock_next(at))
		if (offset < at + H5_SUPERBLOCK_MAX)
			return n > 0;
	return false;
}

static int read_draft(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	size_t got;
	const int rc = draft_read(ctx, offset, buf, n, &got, err);
	return rc || got == n ? rc : err_set(err, -EIO, "the file ends early");
}

bool close_state_mark(struct draft *d, bool *is_open)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	struct h5_superblock sb;
	struct draft_stat stat;
	uint64_t at;
	bool found;
	draft_get_stat(d, &stat);
	struct source s = {.size = stat.size, .read_at = read_draft, .ctx = d};
	if (h5_superblock_find(&s, &at, &found, NULL) || !found)
		return false;
	const size_t n = (size_t)min_u64(s.size - at, sizeof(raw));
	if (source_read(&s, at, raw, n, NULL))
		return false;
	struct cursor c = cursor_of(raw, n);
	if (h5_superblock_decode(&c, &sb, NULL))
		return false;
	*is_open = sb.status_flags & OPEN_FOR_WRITING;
	return true;
}

/* Decodes the superblock at an offset. Returns false unless all its bytes are among the n bytes
 * that were written there. */
static bool decode_written(struct draft *d, uint64_t at, uint64_t n, struct h5_superblock *sb)
{
	static const size_t sizes[] = {H5_SUPERBLOCK_MAX, H5_SUPERBLOCK_SIZE, SUPERBLOCK_2};
	uint8_t raw[H5_SUPERBLOCK_MAX];
	size_t got;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i] > n)
			continue;
		if (draft_read(d, at, raw, sizes[i], &got, NULL))
			return false;
		struct cursor c = cursor_of(raw, got);
		return !h5_superblock_decode(&c, sb, NULL);
	}
	return false;
}

enum draft_library close_state_library(struct draft *d)
{
	struct draft_extent x = {.end = 0};
	struct h5_superblock sb;
	struct draft_stat stat;
	char why[256];
	uint64_t at = 0;
	bool found = false;
	while (!found && draft_next_extent(d, &x)) {
		while (at < x.start)
			at = h5_superblock_next(at);
		for (; !found && at < x.end; at = found ? at : h5_superblock_next(at))
			found = x.kind == DRAFT_WRITTEN && decode_written(d, at, x.end - at, &sb);
	}
	if (!found)
		return LIBRARY_UNKNOWN;
	draft_get_stat(d, &stat);
	if (is_open(&sb))
		return LIBRARY_OPEN;
	return judge(&sb, at, stat.size, why, sizeof(why)) == CLOSE_STATE_CLOSED ? LIBRARY_CLOSED
										 : LIBRARY_UNEVEN;
}
