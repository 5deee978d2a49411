/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the directory store: paths (dir_path.c), reading (dir.c), writing (dir_put.c,
 * dir_move.c), marks (dir_mark.c) and listing (dir_list.c). Every path is relative to the root and
 * goes through dir_open(), which never opens anything outside the root.
 *
 * Threads: after the constructor only the atomic members change.
 */
#ifndef STORE_DIR_H
#define STORE_DIR_H

#include <store/implement.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/fd.h>

enum { DIR_BOOT_MAX = 64 };

struct dir_store {
	struct store base;
	int root;		     /* O_PATH | O_DIRECTORY */
	const char *kept;	     /* see store_dir_keep(), or NULL */
	bool beneath;		     /* openat2(2) works */
	atomic_uint_fast64_t serial; /* makes names of temporary files unique */
	atomic_int marks;	     /* enum store_marks */
	int sync;		     /* the directory, for syncfs(2); -1 if no PUT is deferred */
	dev_t device;		     /* of the file system that it synchronises */
	char boot[DIR_BOOT_MAX];     /* boot id of the machine; "" if it is not known */
	bool has_proc;		     /* /proc is mounted, so a file without a name can get one */
	bool sweeps;		     /* see store_dir_sweep() */
	/* Directories that are being made and may not be durable yet; directories that deferred
	 * PUTs have made, and how many of those were durable at the last dir_sync(). */
	atomic_uint making;
	atomic_uint_fast64_t made, synced;
};

static inline struct dir_store *dir_store_of(struct store *s)
{
	return (struct dir_store *)s;
}

/* While a file is being written, its name begins with this, if it has one. Every operation treats
 * such files, and everything in a directory with such a name, as absent. */
#define DIR_TEMP_PREFIX ".hsmount-tmp-"

/* The extended attribute of a file that has the note of the object. */
#define DIR_NOTE "user.hsmount.kept"

/* The one that has its mark, see dir_mark.c. */
#define DIR_MARK "user.hsmount.mark"

/* Returns true if a component of the key begins with DIR_TEMP_PREFIX. */
bool dir_reserved(const char *key);

/* Splits a key into the path of its directory and its last component, which is borrowed from key.
 */
const char *dir_split(const char *key, char dir[STORE_KEY_MAX + 1]);

/* Opens a path below the root; "" is the root. A symbolic link is followed if it stays inside the
 * root. A link that leads out of it, or is absolute, fails with -EXDEV. Without openat2(2) no link
 * is followed, and a path with one fails with -ELOOP or -ENOTDIR. flags are those of open(2),
 * without O_CREAT; O_CLOEXEC is added. Returns a descriptor or a negative errno of open(2). */
int dir_open(const struct dir_store *d, const char *path, int flags);
/* Calls stat(2) below the root. Errors are those of dir_open() and fstat(2), and -ELOOP for a link
 * that is not followed. */
int dir_stat(const struct dir_store *d, const char *path, struct stat *st);
/* The same as dir_open(), for a caller that needs a proof of absence. The path is at most as long
 * as a key. Its -ENOENT is a proof: a directory has no such entry, or a component of the path is a
 * file. It fails with -ENOLINK if a link is dangling, and with -EIO if the path appeared and
 * vanished several times meanwhile. */
int dir_open_proved(const struct dir_store *d, const char *path, int flags);

/* Records an error of dir_open() for an object and returns the code that the contract requires. */
int dir_fail(struct err *err, int code, const char *key);

void dir_meta(const struct stat *st, struct store_meta *meta);
bool dir_same_version(const struct stat *st, const char *etag);

/* Makes deferred PUTs possible if the file system and the kernel allow it. For the constructor. */
void dir_sync_init(struct dir_store *d, const char *path);
/* See store_sync(). */
int dir_sync(struct store *s, struct err *err);

/* ---- marks ---- */

/* For the constructor. */
void dir_mark_init(struct dir_store *d, const char *path);
enum store_marks dir_keeps_marks(struct store *s);
/* Marks a file whose content is complete. If mark is NULL, it does nothing. If the file system
 * cannot store the mark, the file has none. Fails with -ENOSPC or -EDQUOT. */
int dir_mark_write(struct dir_store *d, int fd, const char *mark);
/* Reads the mark of an open file, which is "" if it has none. st is that of the file. */
int dir_mark_read(int fd, const struct stat *st, char mark[STORE_MARK_MAX + 1]);
/* Returns true if the object has this mark, and then sets *st. Returns false if mark is NULL. */
bool dir_mark_is(const struct dir_store *d, const char *key, const char *mark, struct stat *st);

/* ---- temporary files ---- */

enum { DIR_TEMP_NAME_MAX = sizeof(DIR_TEMP_PREFIX) + DIR_BOOT_MAX + 2 * 16 + 2 };
/* A file that is being written, in the directory of its object. */
struct dir_temp {
	int parent; /* borrowed */
	int fd;
	char name[DIR_TEMP_NAME_MAX]; /* "" if it has none */
};
/* Makes a file. It has no name if the file system and the kernel can do that. Returns 0 or a
 * negative errno. */
int dir_temp_open(struct dir_store *d, int parent, struct dir_temp *out);
/* Closes the file and removes it, unless it has become an object. */
void dir_temp_close(struct dir_temp *t);
/* Makes the file the object `name`. dir_temp_add() fails with -EEXIST if the name exists;
 * dir_temp_replace() replaces a file of that name. */
int dir_temp_add(struct dir_temp *t, const char *name);
int dir_temp_replace(struct dir_store *d, struct dir_temp *t, const char *name);
/* Called for each name of a directory that begins with DIR_TEMP_PREFIX. If d->sweeps, removes the
 * file if the program that was writing it has ended. */
void dir_temp_sweep(const struct dir_store *d, int parent, const char *name);

/* ---- steps of puts and moves ---- */

/* A put or a move starts again at most so often if a directory vanishes meanwhile. */
enum { DIR_ATTEMPTS = 8 };
/* Opens a directory, which is made if necessary. The function changes dir while it runs, and
 * restores it. */
int dir_open_parent(struct dir_store *d, char *dir, bool deferred);
/* Another put may have made a directory above this object a moment ago, which is not durable yet.
 * Makes all directories above the object durable then. */
int dir_sync_above(const struct dir_store *d, const char *key);
/* Removes the directories above the key that are empty, but never the root, nor the one that is
 * kept. */
void dir_prune(const struct dir_store *d, const char *key);
/* Some file systems (ext4) give back the room of deleted files only when they next write their
 * journal, and until then a put can fail. Returns true if another attempt may succeed. */
bool dir_find_room(const struct dir_store *d);

/* The operations. They run in a worker, fill in the answer except for its state, and return 0 or a
 * negative errno, whose reason is in the answer's err. */
int dir_put(struct dir_store *d, struct store_request *req);
int dir_delete(struct dir_store *d, struct store_request *req, struct err *err);
int dir_list(struct dir_store *d, struct store_request *req);
/* See store_move(). */
int dir_move(struct store *s, const char *from, const char *from_version, const char *to,
	     const struct store_cond *cond, struct store_meta *meta, struct err *err);

#endif
