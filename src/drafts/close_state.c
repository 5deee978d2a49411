/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See close_state.h. A copy of an unfinished file has the mark, too. Libraries before 1.10 do not
 * set it, but the end of the file that they have recorded is often not yet where the file ends.
 * Pure, except for the source.
 */
#include <drafts/close_state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <base/mem.h>
#include <h5/superblock.h>

/* Computes the size that the superblock at `at` records for the file. Returns false if that is not
 * valid. */
static bool recorded_size(const struct h5_superblock *sb, uint64_t at, uint64_t *size)
{
	return sb->eof != H5_UNDEF && sb->eof >= sb->base && add_u64(sb->eof - sb->base, at, size);
}

static enum close_state judge(const struct h5_superblock *sb, uint64_t at, uint64_t size, char *why,
			      size_t room)
{
	uint64_t recorded;
	if (h5_status_is_open(sb->status_flags))
		snprintf(why, room,
			 "the program that wrote it has not closed it; if it is complete, use %s",
			 sb->version < 3 ? "`hsimage import`"
					 : "`hsimage import --ignore-open-flag`");
	else if (!recorded_size(sb, at, &recorded))
		snprintf(why, room, "it is damaged: superblock: the end of the file is not valid");
	else if (recorded > size)
		snprintf(why, room, "its end is missing: it has %" PRIu64 " of %" PRIu64 " bytes",
			 size, recorded);
	else if (recorded == size)
		return CLOSE_STATE_CLOSED;
	else {
		snprintf(why, room,
			 "the program that wrote it has not closed it: it has %" PRIu64
			 " bytes, but its superblock says %" PRIu64
			 "; if it is complete, use `hsimage import`",
			 size, recorded);
		/* Behind a user block, it may be a part of an archive with other files. */
		return at ? CLOSE_STATE_OPEN : CLOSE_STATE_LONGER;
	}
	return CLOSE_STATE_OPEN;
}

/* Decodes the superblock at an offset. *damage gets the result, and *why the reason. Fails only if
 * the source does. */
static int decode(struct source *s, uint64_t at, struct h5_superblock *sb, int *damage,
		  struct err *why, struct err *err)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	const size_t n = (size_t)min_u64(s->size - at, sizeof(raw));
	const int rc = source_read(s, at, raw, n, err);
	struct cursor c = cursor_of(raw, n);
	*damage = rc ? rc : h5_superblock_decode(&c, sb, why);
	return rc;
}

int close_state_read(struct source *s, enum close_state *out, char *why, size_t room,
		     struct err *err)
{
	struct h5_superblock sb;
	struct err reason = ERR_INIT;
	uint64_t at;
	bool found;
	int damage;
	*out = CLOSE_STATE_UNKNOWN;
	why[0] = '\0';
	int rc = h5_superblock_find(s, &at, &found, err);
	if (rc || !found)
		return rc;
	rc = decode(s, at, &sb, &damage, &reason, err);
	if (rc)
		return rc;
	/* If the version is not known, whatever reads the whole file reports it. */
	*out = damage ? CLOSE_STATE_CLOSED : judge(&sb, at, s->size, why, room);
	if (!damage || damage == -EOPNOTSUPP)
		return 0;
	*out = CLOSE_STATE_OPEN;
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

/* Returns where the written bytes from an offset on end, or the offset if it was not written. */
static uint64_t written_end(struct draft *d, uint64_t offset)
{
	struct draft_extent x = {.end = offset};
	return draft_next_extent(d, &x) && x.kind == DRAFT_WRITTEN ? x.end : offset;
}

/* What was not written reads as zeros. */
static int read_written(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	if (written_end(ctx, offset) - offset >= n)
		return read_draft(ctx, offset, buf, n, err);
	memset(buf, 0, n);
	return 0;
}

/* Finds the superblock of a draft, and decodes it. Returns false if there is none that can be read,
 * or not all of it was written although it must be. */
static bool find_superblock(struct draft *d, bool is_written, uint64_t size, uint64_t *at,
			    struct h5_superblock *sb)
{
	struct source s = {
		.size = size, .read_at = is_written ? read_written : read_draft, .ctx = d};
	bool found;
	int damage;
	if (h5_superblock_find(&s, at, &found, NULL) || !found)
		return false;
	if (is_written)
		s.size = written_end(d, *at);
	s.read_at = read_draft;
	return !decode(&s, *at, sb, &damage, NULL, NULL) && !damage;
}

enum close_state close_state_of_mark(struct draft *d)
{
	struct h5_superblock sb;
	struct draft_stat stat;
	uint64_t at;
	draft_get_stat(d, &stat);
	if (!find_superblock(d, false, stat.size, &at, &sb))
		return CLOSE_STATE_UNKNOWN;
	return sb.status_flags & H5_STATUS_WRITING ? CLOSE_STATE_OPEN : CLOSE_STATE_CLOSED;
}

enum close_state close_state_of_written(struct draft *d, char *why, size_t room)
{
	struct h5_superblock sb;
	struct draft_stat stat;
	uint64_t at;
	why[0] = '\0';
	draft_get_stat(d, &stat);
	return find_superblock(d, true, stat.size, &at, &sb) ? judge(&sb, at, stat.size, why, room)
							     : CLOSE_STATE_UNKNOWN;
}
