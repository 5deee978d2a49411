/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_beneath.h. Any thread may read. */
#include <engine/draft_beneath.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "raw_object.h"

static int read_object(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct old_object *o = ctx;
	if (!o->object)
		return err_set(err, -EIO, "a part of the bytes is only in the bucket");
	for (size_t done = 0; done < n;) {
		const ssize_t got = raw_object_read(o->object, (uint8_t *)buf + done, n - done,
						    offset + done, NULL, err);
		if (got < 0)
			return err_wrap(err, (int)got, "the bytes that were not written");
		if (got == 0)
			return err_set(err, -EIO, "object %s is shorter than the draft says",
				       raw_object_path(o->object));
		done += (size_t)got;
	}
	return 0;
}

struct draft_beneath old_object_beneath(struct old_object *o)
{
	return (struct draft_beneath){.read = read_object, .ctx = o};
}

int old_object_open(struct old_object *o, struct engine *e, const struct draft_about *about,
		    struct err *err)
{
	static const char object[] = "o:"; /* see commit_version_of() */
	struct store_meta meta = {.size = about->beneath};
	const char *etag = about->version + sizeof(object) - 1;
	if (strncmp(about->version, object, sizeof(object) - 1) != 0 ||
	    strlen(etag) >= sizeof(meta.etag))
		return err_set(err, -EINVAL,
			       "what lies beneath the draft has version \"%s\", which is not that "
			       "of a plain object",
			       about->version);
	if (!store_key_ok(about->path))
		return err_set(err, -EINVAL, "\"%s\": no object can have this path", about->path);
	snprintf(meta.etag, sizeof(meta.etag), "%s", etag);
	return raw_object_open(e->store, e->cache, about->path, &meta, &o->object, err);
}

void old_object_close(struct old_object *o)
{
	raw_object_close(o->object);
	o->object = NULL;
}
