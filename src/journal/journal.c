/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a bucket: opening, listing, deleting. See journal/journal.h. */
#include <journal/journal.h>

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include <base/hex.h>

#include "bucket_note.h"
#include <journal/private_file.h>
#include "levels.h"
#include <journal/draft_dir.h>
#include <journal/usage.h>

enum { WHY = ERR_MAX };

/* ---- opening ---- */

/* Opens PATH, PATH/2 and PATH/2/BUCKET. */
static int open_levels(struct journal *j, const struct journal_settings *s, const char *digits,
		       struct err *err)
{
	const bool make = !s->digits;
	snprintf(j->digits, sizeof(j->digits), "%s", digits);
	j->root = level_open_root(s->path, make, err);
	if (j->root < 0)
		return j->root;
	j->version = level_open(j->root, JOURNAL_VERSION, s->path, make, err);
	if (j->version < 0)
		return j->version;
	j->dir = level_open(j->version, digits, s->path, make, err);
	return j->dir < 0 ? j->dir : 0;
}

static int open_bucket(struct journal *j, const struct journal_settings *s, struct err *err)
{
	char digits[LEVEL_DIGITS];
	if (s->digits)
		return level_is_bucket(s->digits)
			       ? open_levels(j, s, s->digits, err)
			       : err_set(err, -EINVAL, "%s is not the directory of a bucket",
					 s->digits);
	int rc = level_of_bucket(s->bucket, digits, err);
	if (rc == 0)
		rc = open_levels(j, s, digits, err);
	if (rc)
		return rc;
	auto_close int guard = draft_dir_guard(j->dir);
	if (guard >= 0)
		bucket_note_write(j->dir, digits, s->name ? s->name : s->bucket, s->bucket);
	return 0;
}

/* The kernel's boot id is a UUID as text. */
static int read_boot(uint8_t boot[JOURNAL_BOOT], struct err *err)
{
	char text[64];
	size_t n, digits = 0;
	auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : file_read(fd, 0, text, sizeof(text), &n);
	if (rc)
		return err_errno(err, rc, "cannot read the boot id of the machine");
	memset(boot, 0, JOURNAL_BOOT);
	for (size_t i = 0; i < n && digits < 2 * JOURNAL_BOOT; i++) {
		const int digit = hex_digit(text[i]);
		if (digit < 0)
			continue;
		boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | digit);
		digits++;
	}
	return digits == 2 * JOURNAL_BOOT
		       ? 0
		       : err_set(err, -EIO, "the boot id of the machine is not a UUID");
}

static void close_levels(struct journal *j)
{
	cleanup_close(&j->dir);
	cleanup_close(&j->version);
	cleanup_close(&j->root);
	free(j);
}

static bool is_open(int bucket, const char *id)
{
	auto_close int dir = file_open_dir(bucket, id);
	auto_close int fd = dir < 0 ? -1 : file_open(dir, "draft", O_RDONLY);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

static uint64_t of_left(int bucket, const char *name)
{
	return draft_dir_is_id(name) && !is_open(bucket, name) ? usage_of(bucket, name) : 0;
}

static uint64_t of_unreadable(int aside, const char *name)
{
	return draft_dir_is_id(name) ? usage_of(aside, name) : 0;
}

/* Returns the bytes of the drafts in the directory of a bucket that no process has open, and of
 * those that are unreadable. They count against the limit of the spool. */
static uint64_t usage_of_left(int bucket)
{
	return usage_sum(bucket, ".", of_left) + usage_sum(bucket, DRAFT_DIR_ASIDE, of_unreadable);
}

int journal_open(const struct journal_settings *settings, const struct env *env,
		 struct journal **out, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;
	if (!j)
		return err_no_memory(err);
	j->env = env;
	j->root = j->version = j->dir = -1;
	if (settings->boot) {
		memcpy(j->boot, settings->boot, JOURNAL_BOOT);
		rc = 0;
	} else {
		rc = read_boot(j->boot, err);
	}
	if (rc == 0)
		rc = open_bucket(j, settings, err);
	if (rc == 0)
		rc = room_init(&j->room, j->dir, settings->spool_size, usage_of_left(j->dir), err);
	if (rc) {
		close_levels(j);
		return rc;
	}
	*out = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	room_release(&j->room);
	close_levels(j);
}

void journal_get_stats(struct journal *j, struct journal_stats *out)
{
	*out = (struct journal_stats){
		.spool_size = j->room.limit,
		.spool_left = room_left(&j->room),
		.set_aside = atomic_load(&j->set_aside),
	};
	out->spool_used = out->spool_left + room_taken(&j->room);
}

/* ---- listing ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	return strlen(name) == JOURNAL_ID - 1 + strlen(suffix) &&
	       strspn(name, "0123456789abcdef") == JOURNAL_ID - 1 &&
	       strcmp(name + JOURNAL_ID - 1, suffix) == 0;
}

/* Appends an id, JOURNAL_ID bytes. */
static int add_id(void *ctx, const char *name)
{
	return draft_dir_is_id(name) ? bytes_append(ctx, name, JOURNAL_ID) : 0;
}

struct found {
	int dir;
	struct bytes *ids;
};

/* Also deletes what is left of a draft that was being made or deleted. */
static int add_id_or_delete(void *ctx, const char *name)
{
	const struct found *l = ctx;
	if (has_suffix(name, DRAFT_DIR_NEW) || has_suffix(name, DRAFT_DIR_DROPPED))
		draft_dir_delete(l->dir, name);
	return add_id(l->ids, name);
}

static int read_guarded(struct journal *j, struct bytes *ids)
{
	auto_close int guard = draft_dir_guard(j->dir);
	struct found found = {.dir = j->dir, .ids = ids};
	return guard < 0 ? guard : file_each_name(j->dir, add_id_or_delete, &found);
}

typedef int item_fn(void *ctx, const struct journal_item *item);

/* Reads the description of a draft in the directory `dir`. The draft is open in another process, or
 * was set aside. Returns false if there is no description that can be read. */
static bool describe(int dir, uint8_t bytes[HEADER_SIZE], struct header *h)
{
	size_t n;
	auto_close int fd = file_open(dir, "draft", O_RDONLY);
	return fd >= 0 && file_read(fd, 0, bytes, HEADER_SIZE, &n) == 0 &&
	       draft_header_decode(bytes, n, h, NULL) == 0;
}

/* Reads why a draft was not committed, or was set aside. Returns false if that was not noted. */
static bool read_why(int dir, char why[WHY])
{
	size_t n;
	auto_close int fd = file_open(dir, DRAFT_DIR_WHY, O_RDONLY);
	if (fd < 0 || file_read(fd, 0, why, WHY - 1, &n) || n == 0)
		return false;
	why[n] = '\0';
	why[strcspn(why, "\n")] = '\0';
	return true;
}

static int list_one(struct journal *j, const char *id, item_fn *fn, void *ctx)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	struct draft_dir p;
	struct err why = ERR_INIT;
	char note[WHY] = "";
	struct journal_item item = {.id = id, .about = &h.about};
	int rc = draft_dir_open(j, id, &p, bytes, &h, &why);
	bool listed = rc != -ENOENT;
	if (rc == -EBUSY) {
		item.state = JOURNAL_IN_USE;
		listed = describe(p.fd, bytes, &h); /* else it is being dropped */
	} else if (rc) {
		item.state = rc == -ENOTSUP ? JOURNAL_LATER : JOURNAL_UNREADABLE;
		item.about = NULL;
	}
	if (rc == 0 || rc == -EBUSY)
		read_why(p.fd, note);
	if (rc == -EBADMSG)
		draft_dir_set_aside(&p, why.msg, NULL);
	draft_dir_close(&p); /* fn may open the draft */
	item.why = rc == 0 || rc == -EBUSY ? note : why.msg;
	return listed ? fn(ctx, &item) : 0;
}

static int list_one_aside(int aside, const char *id, item_fn *fn, void *ctx)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	char why[WHY];
	auto_close int dir = file_open_dir(aside, id);
	const bool described = dir >= 0 && describe(dir, bytes, &h);
	const struct journal_item item = {
		.id = id,
		.state = JOURNAL_UNREADABLE,
		.about = described ? &h.about : NULL,
		.why = dir >= 0 && read_why(dir, why) ? why : "it was set aside earlier"};
	return fn(ctx, &item);
}

static int list_aside(const struct journal *j, item_fn *fn, void *ctx)
{
	auto_bytes struct bytes ids = {0};
	auto_close int aside = file_open_dir(j->dir, DRAFT_DIR_ASIDE);
	if (aside < 0)
		return aside == -ENOENT ? 0 : aside;
	int rc = file_each_name(aside, add_id, &ids);
	for (size_t at = 0; rc == 0 && at < ids.len; at += JOURNAL_ID)
		rc = list_one_aside(aside, (const char *)ids.data + at, fn, ctx);
	return rc;
}

int journal_list(struct journal *j, item_fn *fn, void *ctx, struct err *err)
{
	auto_bytes struct bytes ids = {0};
	int rc = read_guarded(j, &ids);
	if (rc)
		return err_errno(err, rc, "cannot list the journal");
	/* First, because the others may be set aside now. */
	rc = list_aside(j, fn, ctx);
	for (size_t at = 0; rc == 0 && at < ids.len; at += JOURNAL_ID)
		rc = list_one(j, (const char *)ids.data + at, fn, ctx);
	return rc;
}

static int drop_aside(struct journal *j, const char *id, struct err *err)
{
	auto_close int aside = file_open_dir(j->dir, DRAFT_DIR_ASIDE);
	const uint64_t bytes = aside < 0 ? 0 : usage_of(aside, id);
	int rc = aside < 0 ? aside : draft_dir_delete(aside, id);
	if (rc == 0)
		room_forget(&j->room, bytes);
	return rc ? err_errno(err, rc, "cannot delete it") : 0;
}

int journal_drop(struct journal *j, const char *id, struct err *err)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	struct draft_dir p;
	int rc = draft_dir_open(j, id, &p, bytes, &h, err);
	if (rc == -ENOENT && draft_dir_is_id(id))
		rc = drop_aside(j, id, err);
	else if (rc == 0 || rc == -EBADMSG)
		rc = draft_dir_remove_left(&p, err);
	draft_dir_close(&p);
	return rc ? err_wrap(err, rc, "draft %s", id) : 0;
}
