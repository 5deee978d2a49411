/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are framed records (base/frame.h). The body is little-endian:
 *
 *    +0  4  number of the entry
 *    +4  4  count of objects
 *    +8     path, storage, next storage; then for each object its id and its version; each with a
 *           NUL
 *           8 bytes: when the path has lost the storage; the document, with a NUL
 *
 * The body of GC_DELETED is only the number. In a file of version 1, the last line is missing.
 */
#include <journal/gc_event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/emit.h>

enum { OBJECT_MIN = 3 };

/* Returns the reason why an event is not valid, or NULL if it is. */
static const char *find_fault(const struct gc_event *e)
{
	if (!e->path[0] || strlen(e->path) > GC_PATH)
		return "a path that is empty or too long";
	if (!e->storage[0])
		return "no storage";
	const bool is_of_domain = e->type == GC_EXPECTED || e->type == GC_REMOVED;
	if ((e->next[0] && e->type != GC_EXPECTED) || (e->count && e->type != GC_OBJECTS) ||
	    (e->document && e->document[0] && !is_of_domain))
		return "a part that does not fit its type";
	if (e->since_ns < 0 || (e->document && strlen(e->document) > GC_DOCUMENT))
		return "a time or a document that is not valid";
	for (uint32_t i = 0; i < e->count; i++)
		if (!e->objects[i].id[0])
			return "an object without an id";
	return NULL;
}

static void emit_text(struct emit *e, const char *text)
{
	emit_bytes(e, text, strlen(text) + 1);
}

struct numbered {
	const struct gc_event *event;
	uint32_t number;
};

static void emit_body(struct emit *e, const void *ctx)
{
	const struct numbered *n = ctx;
	const struct gc_event *event = n->event;
	emit_u32(e, n->number);
	if (event->type == GC_DELETED)
		return;
	emit_u32(e, event->count);
	emit_text(e, event->path);
	emit_text(e, event->storage);
	emit_text(e, event->next);
	for (uint32_t i = 0; i < event->count; i++) {
		emit_text(e, event->objects[i].id);
		emit_text(e, event->objects[i].version);
	}
	emit_u64(e, (uint64_t)event->since_ns);
	emit_text(e, event->document ? event->document : "");
}

int gc_event_encode(const struct gc_event *event, uint32_t number, struct bytes *out,
		    struct err *err)
{
	const struct numbered numbered = {event, number};
	const char *fault = event->type == GC_DELETED ? NULL : find_fault(event);
	const size_t start = out->len;
	if (fault)
		return err_set(err, strlen(event->path) > GC_PATH ? -ENAMETOOLONG : -EINVAL,
			       "a note of what is to be deleted has %s", fault);
	int rc = frame_emit(out, (uint16_t)event->type, emit_body, &numbered);
	if (!rc && out->len - start > FRAME_HEADER + GC_EVENT_MAX) {
		out->len = start;
		rc = -E2BIG;
	}
	return rc == -E2BIG ? err_set(err, rc, "the list of removed objects is too large")
	       : rc	    ? err_no_memory(err)
			    : 0;
}

int gc_event_decode(uint16_t type, struct cursor body, uint32_t *number, struct gc_event *out)
{
	size_t n;
	*out = (struct gc_event){.type = type};
	*number = cur_u32(&body);
	if (type != GC_DELETED) {
		out->count = cur_u32(&body);
		out->path = cur_cstr(&body, &n);
		out->storage = cur_cstr(&body, &n);
		out->next = cur_cstr(&body, &n);
	}
	if (type < GC_EXPECTED || type > GC_DELETED || !cur_ok(&body) ||
	    out->count > cur_left(&body) / OBJECT_MIN)
		return -EBADMSG;
	out->objects = out->count ? calloc(out->count, sizeof(*out->objects)) : NULL;
	if (out->count && !out->objects)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->count; i++) {
		out->objects[i].id = cur_cstr(&body, &n);
		out->objects[i].version = cur_cstr(&body, &n);
	}
	out->document = "";
	if (type != GC_DELETED && cur_left(&body)) {
		out->since_ns = (int64_t)cur_u64(&body);
		out->document = cur_cstr(&body, &n);
	}
	if (cur_ok(&body) && !cur_left(&body) && (type == GC_DELETED || !find_fault(out)))
		return 0;
	free(out->objects);
	out->objects = NULL;
	return -EBADMSG;
}
