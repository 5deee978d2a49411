/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wrapper that keeps fetched objects in a directory on disk, for later mounts.
 *
 *   get of a whole object       the directory has       the wrapper
 *   of a known version          that version            answers without a request
 *   of any version              any version             sends a request with if_none_match, and
 *                                                       answers if the response is 304
 *   either                      nothing, another        passes the get on and stores the
 *                               version, or a damaged   answer
 *                               entry
 *
 * The known version is cond.if_match or known_etag. A range of a known version is answered if the
 * directory has the whole object. A range that may be kept by itself (store_request.keep_range) is
 * an entry of its own, whose bytes are found again for other ranges, too (range_index.h); otherwise
 * it is treated as an object. Other requests are passed on. Puts and deletes drop the entry of
 * their object. Those of its ranges are of a version that nobody asks for any more, and are evicted
 * at some time.
 *
 * A get never returns wrong bytes: the digest of an entry is checked before it is used, and a
 * damaged entry is dropped and the object is fetched again. A get never fails because of the disk:
 * if the disk fails or is full, the wrapper gets the object from the bucket.
 *
 * Besides objects, the directory keeps records of the caller.
 *
 * Threads: jobs of the pool read and write entries. An object is written after its get is answered.
 * store_free() waits until all queued objects are written.
 */
#ifndef DISKCACHE_DISKCACHE_H
#define DISKCACHE_DISKCACHE_H

#include <store/store.h>

struct store_diskcache_options {
	/* Created with mode 0700 if missing (its parent must exist). A symbolic link, a directory
	 * of another user, and one that others can write to are refused. Any number of processes
	 * may share it. */
	const char *dir;
	/* Identifies the bucket among the buckets that share the directory. */
	const char *scope;
	/* Limit for all entries of the directory, observed by this process when it writes. Other
	 * processes may have another limit. */
	uint64_t max_bytes;
	/* Larger objects are not stored. */
	uint64_t max_object;
	/* Objects that were modified less than this before the get are not stored. This is for
	 * stores whose version of an object is a time: two writes may have the same time. 0 means
	 * no such limit. */
	uint64_t settle_ns;
	/* Limit for the memory of objects that are queued to be written. If an object does not fit,
	 * it is not stored. 0 means 32 MiB. */
	uint64_t max_behind;
};

/* Owns inner on success; strings are copied. Returns NULL with err set if it fails. Starts no
 * thread and opens the directory, so a daemon may fork and change its directory before the first
 * request. */
struct store *store_diskcache_new(struct store *inner, const struct store_diskcache_options *opt,
				  struct err *err);

/* Records: texts of the caller about the objects of the bucket, such as the size of the file that
 * shows a domain, or its documents. They are entries like objects: checked before they are used,
 * limited, and evicted. A record has a name, and the version of what it says.
 *
 * Keeps a copy of n bytes for later mounts, which is written later. version is not empty and has
 * less than STORE_ETAG_MAX bytes. For mtime_ns see settle_ns. Returns false if the record is not
 * kept. */
bool store_diskcache_remember(struct store *s, const char *name, const char *version,
			      int64_t mtime_ns, const void *bytes, size_t n);
/* Reads a record from the disk into *out, which is empty. Fails with -ENOENT if there is none of
 * this version, or none that is intact and has at most max bytes, and with -ENOMEM. */
int store_diskcache_recall(struct store *s, const char *name, const char *version, uint64_t max,
			   struct bytes *out);

/* Returns whether an object that was modified at this time may be kept in a record: see
 * settle_ns. */
bool store_diskcache_is_settled(struct store *s, int64_t mtime_ns);
/* Counts an object of n bytes that the caller has taken from a record instead of a get, and one
 * that the record does not have. */
void store_diskcache_note_hit(struct store *s, size_t n);
void store_diskcache_note_miss(struct store *s);

struct store_diskcache_stats {
	uint64_t hits, hit_bytes; /* gets answered from disk without a request */
	uint64_t revalidated; /* gets answered from disk after the bucket confirmed the version */
	uint64_t misses;      /* gets without a usable entry */
	uint64_t stored;
	uint64_t skipped; /* objects not stored because they were too large or too new, or the disk
			     was too slow */
	uint64_t dropped; /* damaged entries */
	uint64_t evicted;
	uint64_t errors; /* of the disk */
	uint64_t bytes;	 /* in use when this process last read or wrote the count */
};
void store_diskcache_read(struct store *s, struct store_diskcache_stats *out);

#endif
