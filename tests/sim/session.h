/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: what programs do with a file through libhdf5. A session is one open of a file of an
 * engine, through a file driver that calls engine_pread(), engine_pwrite() and engine_resize().
 * It reads and writes contents (content.h), so a session takes the place of a change of bytes.
 *
 * Errors: the first failure of the engine is the failure of the session. All calls after it do
 * nothing, and no write reaches the engine any more, as if the program had been killed. A program
 * that is killed fails with -EINTR. What the library refuses fails with -EIO and its reason.
 *
 * Threads: a session belongs to one thread. libhdf5 has one lock, and its holder may wait for the
 * engine in the driver. So the lock is held for one call of the library at a time, and sessions of
 * several threads take turns.
 */
#ifndef SIM_SESSION_H
#define SIM_SESSION_H

#include <hsmount/engine.h>

#include "content.h"

struct session;

struct session_options {
	bool latest;	     /* the structures of the newest format, not those of the oldest one */
	unsigned int writes; /* 0, or: the program is killed after so many */
	/* Lets other threads run, until the library is free. */
	void (*wait)(void *ctx);
	void *ctx;
};

enum session_mode { SESSION_READ, SESSION_CHANGE, SESSION_CREATE };

/* Opens a file. SESSION_CREATE cuts it to an empty one. f: borrowed until session_close(). */
int session_open(struct session **out, struct engine_file *f, enum session_mode mode,
		 const struct session_options *opt, struct err *err);
/* Writes a whole content into an empty file. */
int session_fill(struct session *s, const struct content *c, struct err *err);
int session_get(struct session *s, struct content *out, struct err *err);
/* The file of a Zarr store: the attribute `version` of the root, or 0, and the dataset `x`. */
void session_get_store(struct session *s, uint64_t *version, uint64_t *x, unsigned int n);
/* from: what session_get() returned. Writes only what differs. */
int session_set(struct session *s, const struct content *from, const struct content *to,
		struct err *err);
/* What the library has goes to the engine: as when a child of the program closes a descriptor that
 * it has inherited; or the program calls fsync(2), too. Neither is the end of the session. */
enum session_flush { SESSION_NO_FLUSH, SESSION_FLUSH, SESSION_SYNC, SESSION_FLUSHES };
int session_flush(struct session *s, enum session_flush flush, struct err *err);
/* Closes the file, also after a failure, and frees the session. Returns the first failure. */
int session_close(struct session *s, struct err *err);

/* All in one, without waits for the library. */
int session_read(struct engine_file *f, struct content *out, struct err *err);
/* How many files and objects the library has open. */
unsigned int session_count(void);

#endif
