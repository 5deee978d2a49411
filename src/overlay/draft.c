/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a draft: see overlay/draft.h. */
#include "draft_internal.h"

#include <base/fd.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <journal/private_file.h>

/* ---- memory ---- */

/* Copies the strings of `about`. */
static int copy_about(struct draft *d, const struct draft_about *about, struct err *err)
{
	const size_t path = strlen(about->path) + 1, name = strlen(about->name) + 1;
	const size_t version = strlen(about->version) + 1;
	char *strings = malloc(path + name + version);
	if (!strings)
		return err_no_memory(err);
	d->about = *about;
	d->about.path = memcpy(strings, about->path, path);
	d->about.name = memcpy(strings + path, about->name, name);
	d->about.version = memcpy(strings + path + name, about->version, version);
	free(d->strings);
	d->strings = strings;
	return 0;
}

static struct draft *make(struct journal *j, const struct draft_beneath *beneath)
{
	struct draft *d = calloc(1, sizeof(*d));
	pthread_rwlockattr_t attr;
	if (!d)
		return NULL;
	d->dir = (struct draft_dir){.j = j, .fd = -1, .lock = -1, .guard = -1};
	d->map.fd = -1;
	bodies_init(&d->bodies);
	if (beneath)
		d->beneath = *beneath;
	d->charge = (struct budget_charge){.budget = j->env->budget, .use = BUDGET_DRAFTS};
	/* Otherwise writes that follow each other could keep a truncation waiting for ever. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&d->changes, &attr);
	pthread_rwlockattr_destroy(&attr);
	d->sealed_changes = UINT64_MAX; /* never */
	pthread_mutex_init(&d->charging, NULL);
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

/* If `is_left` is set, the draft remains in the journal. */
static void release(struct draft *d, bool is_left)
{
	struct room *room = &d->dir.j->room;
	assert(!d->snapshot);
	if (d->map.fd >= 0)
		map_close(&d->map, is_left);
	const uint64_t stored = d->recovered ? 0 : layers_stored(&d->layers);
	if (is_left)
		room_leave(room, stored + d->bodies.taken);
	else
		room_give(room, stored + d->bodies.taken);
	bodies_release(&d->bodies);
	layers_release(&d->layers);
	changes_free(d->layers.changes);
	budget_set(&d->charge, 0, NULL);
	draft_dir_close(&d->dir);
	pthread_mutex_destroy(&d->lock);
	pthread_mutex_destroy(&d->charging);
	pthread_rwlock_destroy(&d->changes);
	free(d->strings);
	free(d);
}

/* Completes the checksums for the process that finds the draft. If that fails, that process reads
 * the bytes unchecked whose checksum was lost by a failed write. */
static void save_sums(struct draft *d)
{
	const bool durable = d->synced && d->durable_changes == atomic_load(&d->changed);
	for (struct layer *l = d->layers.top; l; l = l->below)
		if (l->spool)
			sums_save(&l->spool->sums, l->spool->fd, durable);
}

void draft_close(struct draft *d)
{
	if (!d)
		return;
	if (!d->recovered)
		save_sums(d);
	release(d, true);
}

int draft_drop(struct draft *d, struct err *err)
{
	int rc =
		d->recovered ? draft_dir_remove_left(&d->dir, err) : draft_dir_remove(&d->dir, err);
	release(d, rc != 0);
	return rc;
}

/* ---- a new draft ---- */

static int make_files(struct draft *d, struct err *err)
{
	int rc = layers_init(&d->layers, &d->memory, d->about.beneath);
	if (!rc && d->about.kind == DRAFT_CHANGE) {
		d->layers.changes = changes_begin(&d->memory, NULL);
		rc = d->layers.changes ? 0 : -ENOMEM;
	}
	if (rc)
		return err_set(err, rc, "out of memory");
	rc = spool_create(d->dir.fd, 0, d->charge.budget, &d->layers.top->spool, err);
	if (rc)
		return rc;
	return map_create(&d->map, d->dir.fd, &d->dir.j->room, d->about.beneath, err);
}

static int create(struct draft *d, const struct draft_about *about, struct err *err)
{
	int rc = about->beneath > FRAMES_LIMIT ? err_errno(err, -EFBIG, "the file")
					       : copy_about(d, about, err);
	if (rc == 0)
		rc = draft_dir_begin(d->dir.j, about, &d->dir, err);
	if (rc)
		return rc;
	rc = make_files(d, err);
	if (rc == 0)
		rc = draft_dir_publish(&d->dir, err);
	if (rc)
		draft_dir_abandon(&d->dir);
	return rc;
}

int draft_create(struct journal *j, const struct draft_about *about,
		 const struct draft_beneath *beneath, struct draft **out, struct err *err)
{
	struct draft *d = make(j, beneath);
	if (!d)
		return err_no_memory(err);
	atomic_init(&d->is_appended, true);
	int rc = create(d, about, err);
	if (rc) {
		release(d, false);
		return err_wrap(err, rc, "journal of %s", about->name);
	}
	*out = d;
	return 0;
}

/* ---- a draft of an earlier process ---- */

/* The map as a source: its file does not change while the lock of the draft is held. */
static int read_map_bytes(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const int *fd = ctx;
	size_t got;
	int rc = file_read(*fd, offset, buf, n, &got);
	if (rc == 0 && got < n)
		rc = -EIO;
	return rc ? err_errno(err, rc, "cannot read the map") : 0;
}

static int replay(struct draft *d, bool same_boot, struct err *err)
{
	struct stat st;
	struct map_state s = {.layers = &d->layers, .memory = &d->memory, .charge = &d->charge};
	auto_close int fd = file_open(d->dir.fd, "map", O_RDONLY);
	if (fd == -ENOENT)
		return err_set(err, -EBADMSG, "its map is missing");
	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, fd < 0 ? fd : -errno, "cannot open the map");
	struct source bytes = {.size = (uint64_t)st.st_size, .read_at = read_map_bytes, .ctx = &fd};
	int rc = map_replay(&bytes, same_boot, &s, err);
	atomic_init(&d->mark, s.mark);
	atomic_init(&d->is_marked, !s.since_mark);
	d->was_sealed = !s.since_seal;
	atomic_init(&d->changed, s.records);
	d->records = s.records;
	return rc;
}

static int open_spools(struct draft *d, bool same_boot, struct err *err)
{
	int rc = 0;
	for (struct layer *l = d->layers.top; rc == 0 && l; l = l->below) {
		uint64_t size = 0;
		rc = spool_open(d->dir.fd, l->generation, same_boot, d->charge.budget, &l->spool,
				err);
		if (rc == 0)
			rc = spool_size(l->spool, &size, err);
		if (rc == 0 && size < l->least)
			rc = err_set(err, -EBADMSG,
				     "spool.%" PRIu32 " has %" PRIu64 " bytes, but %" PRIu64
				     " were written",
				     l->generation, size, l->least);
	}
	return rc;
}

static int recover(struct draft *d, const struct header *h, struct err *err)
{
	const bool same_boot = memcmp(h->boot, d->dir.j->boot, JOURNAL_BOOT) == 0;
	int rc = copy_about(d, &h->about, err);
	if (rc == 0)
		rc = replay(d, same_boot, err);
	if (rc == 0 && d->layers.beneath != h->about.beneath)
		rc = err_set(err, -EBADMSG,
			     "the file `draft` and the map disagree about what lies beneath");
	if (rc == 0)
		rc = open_spools(d, same_boot, err);
	return rc ? rc : draft_find_planned(d, err);
}

int draft_open(struct journal *j, const char *id, const struct draft_beneath *beneath,
	       struct draft **out, struct err *err)
{
	uint8_t bytes[HEADER_SIZE];
	struct header h;
	struct err why = ERR_INIT;
	struct draft *d = make(j, beneath);
	if (!d)
		return err_no_memory(err);
	d->recovered = true;
	int rc = draft_dir_open(j, id, &d->dir, bytes, &h, &why);
	if (rc == 0)
		rc = recover(d, &h, &why);
	if (rc == -EBADMSG || rc == -ENODATA)
		draft_dir_set_aside(&d->dir, why.msg, NULL);
	if (rc) {
		release(d, false);
		err_copy(err, &why);
		return err_wrap(err, rc, "draft %s", id);
	}
	*out = d;
	return 0;
}

/* ---- description ---- */

const char *draft_id(const struct draft *d)
{
	return d->dir.id;
}

const struct draft_about *draft_get_about(const struct draft *d)
{
	return &d->about;
}

int draft_describe(struct draft *d, const char *path, const char *name, const char *version,
		   struct err *err)
{
	struct draft_about about = d->about;
	if (d->recovered)
		return err_set(err, -EROFS, "a draft of an earlier mount cannot be changed");
	about.path = path;
	about.name = name;
	about.version = version;
	pthread_rwlock_wrlock(&d->changes);
	/* With the version that a commit has made and an older mark, the next mount would repeat an
	 * earlier commit, and replace what this one has stored. */
	int rc = d->synced ? draft_sync_held(d, err) : 0;
	if (rc == 0)
		rc = draft_dir_describe(&d->dir, &about, d->synced, err);
	if (rc == 0)
		rc = copy_about(d, &about, err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

void draft_note_why(struct draft *d, const char *why)
{
	draft_dir_note_why(&d->dir, why);
}

static int mark_held(struct draft *d, uint64_t mark, struct err *err)
{
	int rc = draft_note_resumed(d, err);
	if (rc == 0)
		rc = map_append(&d->map, MAP_MARK, 0, 0, mark, err);
	if (rc)
		return rc;
	atomic_store(&d->mark, mark);
	d->is_at_mark = mark >> DRAFT_MARK_RUNNING & 1;
	d->synced_changes = UINT64_MAX;
	if (d->resumed)
		atomic_store(&d->is_marked, true);
	/* After a restart of the machine, only records before a SYNC count. */
	return d->resumed ? draft_sync_held(d, err) : 0;
}

int draft_mark(struct draft *d, uint64_t mark, struct err *err)
{
	if (draft_is_read_only(d))
		return err_set(err, -EROFS, "a draft of an earlier mount cannot be changed");
	pthread_rwlock_wrlock(&d->changes);
	int rc = mark_held(d, mark, err);
	pthread_rwlock_unlock(&d->changes);
	return rc;
}

/* ---- the commit of a draft of an earlier process ---- */

int draft_resume(struct draft *d, struct err *err)
{
	if (!d->recovered || d->planned)
		return err_set(err, -EINVAL, "the draft is in use, or has a plan");
	d->resumed = true;
	return 0;
}
