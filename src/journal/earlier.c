/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See journal/earlier.h. Version 1 has the same directories as this one:
 *
 *   PATH/1/BUCKET/ID/draft    its description: see read_header()
 *   PATH/1/BUCKET/ID.garbage  storage that is to be deleted
 *   PATH/1/BUCKET/ID.removed  objects that are to be deleted
 *   PATH/1/BUCKET/unreadable/ drafts and files that were set aside
 */
#include <journal/earlier.h>

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include <base/checksum.h>
#include <base/cursor.h>
#include <journal/draft_dir.h>
#include <journal/private_file.h>
#include "levels.h"

enum { HEADER = 4096, CRC_AT = 12, CRC_END = 16, CREATED_AT = 48, TEXT_AT = 64 };

#define VERSION "1"

struct walk {
	journal_earlier_fn *fn;
	void *ctx;
	const struct journal_bucket *bucket;
	int dir;
};

/* Reads the name and the time of creation from a description. All versions have them at these
 * places. Returns "" if the description is damaged. */
static const char *read_header(const uint8_t bytes[HEADER], int64_t *created_ns)
{
	const uint32_t crc = checksum_crc32c(bytes + CRC_END, HEADER - CRC_END,
					     checksum_crc32c(bytes, CRC_AT, 0));
	struct cursor c = cursor_of(bytes, HEADER), texts = c;
	cur_skip(&c, CRC_AT);
	if (memcmp(bytes, "HSMDRAFT", 8) != 0 || cur_u32(&c) != crc)
		return "";
	cur_skip(&c, CREATED_AT - CRC_END);
	*created_ns = (int64_t)cur_u64(&c);
	cur_skip(&texts, TEXT_AT);
	cur_cstr(&texts, NULL); /* the path in the bucket */
	const char *name = cur_cstr(&texts, NULL);
	return name ? name : "";
}

/* Opens a file that no process has locked. Returns a descriptor or a negative errno. */
static int open_unlocked(int dir, const char *name)
{
	const int fd = file_open(dir, name, O_RDONLY);
	if (fd < 0 || !flock(fd, LOCK_SH | LOCK_NB))
		return fd;
	close(fd);
	return -EBUSY;
}

static int pass(void *ctx, const char *name)
{
	const struct walk *w = ctx;
	const char *suffix = name + strspn(name, "0123456789abcdef");
	uint8_t bytes[HEADER] = {0};
	size_t n;
	struct journal_earlier item = {.bucket = w->bucket, .is_draft = !suffix[0], .name = ""};
	if (suffix - name != JOURNAL_ID - 1 ||
	    (suffix[0] && strcmp(suffix, ".garbage") != 0 && strcmp(suffix, ".removed") != 0))
		return 0;
	memcpy(item.id, name, JOURNAL_ID - 1);
	auto_close int draft = item.is_draft ? file_open_dir(w->dir, name) : -1;
	auto_close int fd =
		draft >= 0 ? open_unlocked(draft, "draft") : open_unlocked(w->dir, name);
	if (fd == -EBUSY)
		return 0;
	if (item.is_draft && fd >= 0 && !file_read(fd, 0, bytes, sizeof(bytes), &n))
		item.name = read_header(bytes, &item.created_ns);
	return w->fn(w->ctx, &item);
}

static int pass_bucket(void *ctx, const struct journal_bucket *b, int dir)
{
	struct walk *w = ctx;
	auto_close int aside = dir < 0 ? dir : file_open_dir(dir, DRAFT_DIR_ASIDE);
	w->bucket = b;
	w->dir = dir;
	int rc = dir < 0 ? 0 : file_each_name(dir, pass, w);
	w->dir = aside;
	return rc || aside < 0 ? rc : file_each_name(aside, pass, w);
}

int journal_each_earlier(const char *path, journal_earlier_fn *fn, void *ctx, struct err *err)
{
	struct walk w = {.fn = fn, .ctx = ctx};
	return level_each_bucket(path, VERSION, pass_bucket, &w, err);
}

int journal_list_earlier(const struct journal *j, journal_earlier_fn *fn, void *ctx)
{
	struct walk w = {.fn = fn, .ctx = ctx};
	const struct journal_bucket b = {.digits = j->digits, .name = "", .bucket = ""};
	auto_close int version = file_open_dir(j->root, VERSION);
	auto_close int dir = version < 0 ? version : file_open_dir(version, j->digits);
	return dir < 0 && dir != -ENOENT ? dir : pass_bucket(&w, &b, dir);
}
