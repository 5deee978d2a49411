/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See draft_signs.h. libhdf5 since version 1.10 sets a bit in the superblock while a program has
 * the file open for writing, and clears it last. A copy of an unfinished file has the bit, too.
 * Older libraries do not set it, but the end of the file that they have recorded is often not yet
 * where the file ends. Pure, except for the source.
 */
#include <engine/draft_signs.h>

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
};

/* The size that the superblock at `at` records for the file. */
static bool recorded_size(const struct h5_superblock *sb, uint64_t at, uint64_t *size)
{
	return sb->eof != H5_UNDEF && sb->eof >= sb->base && add_u64(sb->eof - sb->base, at, size);
}

static enum draft_signs judge(const struct h5_superblock *sb, uint64_t at, uint64_t size, char *why,
			      size_t room)
{
	uint64_t recorded;
	if ((sb->status_flags & (OPEN_FOR_WRITING | IS_CONSISTENT)) == OPEN_FOR_WRITING)
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
		return SIGNS_CLOSED;
	return SIGNS_UNCLOSED;
}

int draft_signs_read(struct source *s, enum draft_signs *out, char *why, size_t room,
		     struct err *err)
{
	uint8_t raw[H5_SUPERBLOCK_MAX];
	struct h5_superblock sb;
	struct err reason = ERR_INIT;
	uint64_t at;
	bool found;
	*out = SIGNS_OTHER;
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
	/* A version that is not known: what reads the whole file reports it. */
	*out = SIGNS_CLOSED;
	if (!damage)
		*out = judge(&sb, at, s->size, why, room);
	if (!damage || damage == -EOPNOTSUPP)
		return 0;
	*out = SIGNS_UNCLOSED;
	snprintf(why, room, "it is damaged: %s", reason.msg);
	return 0;
}
