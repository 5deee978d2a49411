/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a bucket: opening, listing, deleting. See overlay/journal.h. */
#include <overlay/journal.h>

#include <base/fd.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/hex.h>
#include <base/str.h>

#include "file.h"
#include "place.h"

enum { DIGEST = 32 };

/* ---- opening ---- */

static const char *why_refused(int rc)
{
	switch (rc) {
	case -ELOOP:
		return "is a symbolic link";
	case -EPERM:
		return "belongs to another user";
	case -EACCES:
		return "can be accessed by others; use chmod 700";
	default:
		return NULL;
	}
}

/* Makes and opens a directory. Returns a descriptor. */
static int open_level(int parent, const char *name, const char *path, struct err *err)
{
	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return err_errno(err, -errno, "journal directory %s", path);
	const int fd = file_open_dir(parent, name);
	if (fd >= 0)
		return fd;
	const char *why = why_refused(fd);
	if (why)
		return err_set(err, -EPERM, "journal directory %s: %s%s%s", path,
			       parent == AT_FDCWD ? "" : name, parent == AT_FDCWD ? "" : " ", why);
	return err_errno(err, fd, "journal directory %s", path);
}

static int open_levels(struct journal *j, const struct journal_settings *s, struct err *err)
{
	uint8_t digest[DIGEST];
	char bucket[2 * DIGEST + 1];
	if (!EVP_Digest(s->bucket, strlen(s->bucket), digest, NULL, EVP_sha256(), NULL))
		return err_set(err, -EIO, "cannot compute SHA-256");
	hex_encode(digest, DIGEST, bucket);
	j->root = open_level(AT_FDCWD, s->path, s->path, err);
	if (j->root < 0)
		return j->root;
	j->version = open_level(j->root, "1", s->path, err);
	if (j->version < 0)
		return j->version;
	j->dir = open_level(j->version, bucket, s->path, err);
	return j->dir < 0 ? j->dir : 0;
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

int journal_open(const struct journal_settings *settings, const struct env *env,
		 struct journal **out, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int rc;
	if (!j)
		return err_set(err, -ENOMEM, "out of memory");
	j->env = env;
	j->root = j->version = j->dir = -1;
	if (settings->boot) {
		memcpy(j->boot, settings->boot, JOURNAL_BOOT);
		rc = 0;
	} else {
		rc = read_boot(j->boot, err);
	}
	if (rc == 0)
		rc = open_levels(j, settings, err);
	if (rc == 0)
		rc = spool_room_init(&j->room, j->dir, settings->spool_size, err);
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
	spool_room_release(&j->room);
	close_levels(j);
}

void journal_get_stats(struct journal *j, struct journal_stats *out)
{
	*out = (struct journal_stats){
		.spool_size = j->room.limit,
		.spool_used = spool_room_taken(&j->room),
		.set_aside = atomic_load(&j->set_aside),
	};
}

/* ---- listing ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	return strlen(name) == JOURNAL_ID - 1 + strlen(suffix) &&
	       strspn(name, "0123456789abcdef") == JOURNAL_ID - 1 &&
	       strcmp(name + JOURNAL_ID - 1, suffix) == 0;
}

/* Appends the ids in a directory, JOURNAL_ID bytes each. */
static int read_ids(int dir, bool delete_leftovers, struct bytes *ids)
{
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int rc = 0;
	if (!stream) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	errno = 0;
	for (const struct dirent *e; rc == 0 && (e = readdir(stream)); errno = 0) {
		const char *name = e->d_name;
		if (place_is_id(name))
			rc = bytes_append(ids, name, JOURNAL_ID);
		else if (delete_leftovers &&
			 (has_suffix(name, PLACE_NEW) || has_suffix(name, PLACE_DROPPED)))
			place_delete(dir, name);
	}
	rc = rc ? rc : -errno;
	closedir(stream);
	return rc;
}

static int read_guarded(struct journal *j, struct bytes *ids)
{
	auto_close int guard = place_guard(j);
	return guard < 0 ? guard : read_ids(j->dir, true, ids);
}

typedef int item_fn(void *ctx, const struct journal_item *item);

/* The description of a draft that another process has open. False: it is being dropped. */
static bool describe_used(const struct place *p, uint8_t bytes[HEADER_SIZE], struct header *h)
{
	size_t n;
	auto_close int fd = file_open(p->dir, "draft", O_RDONLY);
	return fd >= 0 && file_read(fd, 0, bytes, HEADER_SIZE, &n) == 0 &&
	       draft_header_decode(bytes, n, h, NULL) == 0;
}

static int list_one(struct journal *j, const char *id, item_fn *fn, void *ctx)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	struct place p;
	struct err why = ERR_INIT;
	struct journal_item item = {.id = id, .about = &h.about};
	int rc = place_open(j, id, &p, bytes, &h, &why);
	bool listed = rc != -ENOENT;
	if (rc == -EBUSY) {
		item.state = JOURNAL_IN_USE;
		listed = describe_used(&p, bytes, &h);
	} else if (rc) {
		item.state = rc == -ENOTSUP ? JOURNAL_LATER : JOURNAL_UNREADABLE;
		item.about = NULL;
	}
	if (rc == -EBADMSG)
		place_set_aside(&p, NULL);
	place_close(&p); /* fn may open the draft */
	item.why = item.about ? "" : why.msg;
	return listed ? fn(ctx, &item) : 0;
}

static int list_aside(const struct journal *j, item_fn *fn, void *ctx)
{
	auto_bytes struct bytes ids = {0};
	auto_close int aside = file_open_dir(j->dir, PLACE_ASIDE);
	if (aside < 0)
		return aside == -ENOENT ? 0 : aside;
	int rc = read_ids(aside, false, &ids);
	for (size_t at = 0; rc == 0 && at < ids.len; at += JOURNAL_ID) {
		const struct journal_item item = {.id = (const char *)ids.data + at,
						  .state = JOURNAL_UNREADABLE,
						  .why = "it was set aside earlier"};
		rc = fn(ctx, &item);
	}
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

static int drop_aside(const struct journal *j, const char *id, struct err *err)
{
	auto_close int aside = file_open_dir(j->dir, PLACE_ASIDE);
	int rc = aside < 0 ? aside : place_delete(aside, id);
	return rc ? err_errno(err, rc, "cannot delete it") : 0;
}

int journal_drop(struct journal *j, const char *id, struct err *err)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	struct place p;
	int rc = place_open(j, id, &p, bytes, &h, err);
	if (rc == -ENOENT && place_is_id(id))
		rc = drop_aside(j, id, err);
	else if (rc == 0 || rc == -EBADMSG)
		rc = place_remove(&p, err);
	place_close(&p);
	return rc ? err_wrap(err, rc, "draft %s", id) : 0;
}
