/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the log of what is to be deleted later (journal/gc_log.h): see gc_event.c. Pure. */
#ifndef JOURNAL_GC_EVENT_H
#define JOURNAL_GC_EVENT_H

#include <stdint.h>

#include <base/frame.h>

/* Each type of an event says what the process that appends it promises. */
enum gc_type {
	/* The path is about to lose the storage, and to lead to `next`, or to vanish. It was
	 * appended before the first request that does so. A later process finds out what has become
	 * of the path, before it deletes anything. */
	GC_EXPECTED = 1,
	/* The path no longer leads to the storage, or has never led to it: this process has done
	 * that. The storage may be deleted if nothing else leads to it. */
	GC_REMOVED,
	/* The storage is about to get another name than this path. It was appended before the first
	 * request of the rename, which may be half done. The rename is finished, and nothing is
	 * deleted. */
	GC_RENAMED,
	/* A commit has removed these objects from the domain at the path, and all operations of its
	 * plan were done. The event is durable before the plan is removed. An object may be deleted
	 * if nothing in the domain leads to it, and it still has this version. */
	GC_OBJECTS,
	/* The entry with this number has ended: what it was about was deleted or finished, or was
	 * not removed after all. */
	GC_DELETED,
};

struct gc_object {
	const char *id;	     /* not empty */
	const char *version; /* of its document; "": not known */
};

struct gc_event {
	enum gc_type type;
	const char *path; /* in the bucket, 1 to GC_PATH bytes; NULL in GC_DELETED, as all texts */
	/* The prefix of the storage; in GC_OBJECTS the id of the root group of the domain. Not
	 * empty. */
	const char *storage;
	const char *next; /* GC_EXPECTED: the prefix of a storage, or "" if the path vanishes */
	uint32_t count;	  /* GC_OBJECTS; else 0 */
	struct gc_object *objects;
	/* When the path has lost the storage, in nanoseconds since 1970; 0 if it is not known. */
	int64_t since_ns;
	/* GC_EXPECTED, GC_REMOVED: a document that leads from the path to the storage again. NULL
	 * or "": there is none. */
	const char *document;
};

enum {
	GC_PATH = 1024,
	GC_DOCUMENT = 1 << 20,	  /* bytes of a document */
	GC_EVENT_MAX = 256 << 20, /* bytes of an event */
	GC_VERSION = 2,
};
#define GC_MAGIC "HSMDEVNT"

/* Appends the record of an event. Fails with -EINVAL, -ENAMETOOLONG, -E2BIG or -ENOMEM. */
int gc_event_encode(const struct gc_event *event, uint32_t number, struct bytes *out,
		    struct err *err);
/* Reads the body of a record. The event points to its bytes; the caller frees out->objects. Fails
 * with -EBADMSG or -ENOMEM. */
int gc_event_decode(uint16_t type, struct cursor body, uint32_t *number, struct gc_event *out);

#endif
