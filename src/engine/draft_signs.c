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
	SUPERBLOCK_2 = 48, /* size of versions 2 and 3 with addresses of 8 bytes */
};

/* The size that the superblock at `at` records for the file. */
static bool recorded_size(const struct h5_superblock *sb, uint64_t at, uint64_t *size)
{
	return sb->eof != H5_UNDEF && sb->eof >= sb->base && add_u64(sb->eof - sb->base, at, size);
}

static bool is_open(const struct h5_superblock *sb)
{
	return (sb->status_flags & (OPEN_FOR_WRITING | IS_CONSISTENT)) == OPEN_FOR_WRITING;
}

static enum draft_signs judge(const struct h5_superblock *sb, uint64_t at, uint64_t size, char *why,
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

/* The bytes of the superblock of some version, if all of them were written. */
static bool read_written(struct draft *d, uint8_t *raw, size_t n, size_t *got)
{
	struct draft_extent x = {.end = 0};
	return draft_next_extent(d, &x) && x.kind == DRAFT_WRITTEN && x.end >= n &&
	       draft_read(d, 0, raw, n, got, NULL) == 0 && *got == n;
}

enum draft_library draft_signs_library(struct draft *d)
{
	static const size_t sizes[] = {H5_SUPERBLOCK_MAX, H5_SUPERBLOCK_SIZE, SUPERBLOCK_2};
	uint8_t raw[H5_SUPERBLOCK_MAX];
	struct h5_superblock sb;
	struct draft_stat stat;
	char why[256];
	size_t n = 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && n == 0; i++)
		if (!read_written(d, raw, sizes[i], &n))
			n = 0;
	struct cursor c = cursor_of(raw, n);
	if (n == 0 || h5_superblock_decode(&c, &sb, NULL))
		return LIBRARY_UNKNOWN;
	draft_get_stat(d, &stat);
	if (is_open(&sb))
		return LIBRARY_OPEN;
	return judge(&sb, 0, stat.size, why, sizeof(why)) == SIGNS_CLOSED ? LIBRARY_CLOSED
									  : LIBRARY_UNEVEN;
}
