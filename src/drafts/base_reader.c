/* SPDX-License-Identifier: Apache-2.0 */
/* See base_reader.h. Any thread may read. */
#include <drafts/base_reader.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <drafts/draft_commit.h>

#include "draft_base.h"
#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/domain_snapshot.h>
#include <snapshots/snapshot_identity.h>

static int read_base(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct base_reader *o = ctx;
	if (!o->base)
		return err_set(err, -EIO, "a part of the bytes is only in the bucket");
	const int rc = draft_base_read(o->base, offset, buf, n, err);
	return rc ? err_wrap(err, rc, "the bytes that were not written") : 0;
}

struct draft_beneath base_reader_beneath(struct base_reader *o)
{
	return (struct draft_beneath){.read = read_base, .ctx = o};
}

/* ---- a plain object ---- */

static int open_object(struct base_reader *o, struct bucket *bucket,
		       const struct draft_about *about, struct err *err)
{
	struct store_meta meta = {.size = about->beneath};
	const char *etag = about->version + 2; /* see commit_version_of() */
	if (strncmp(about->version, "o:", 2) != 0 || strlen(etag) >= sizeof(meta.etag))
		return err_set(err, -EINVAL,
			       "what lies beneath the draft has version \"%s\", which is not that "
			       "of a domain or a plain object",
			       about->version);
	snprintf(meta.etag, sizeof(meta.etag), "%s", etag);
	return draft_base_new(bucket->store, bucket->cache, about->path, &meta, &o->base, err);
}

/* ---- the image of a domain ---- */

bool base_reader_is_domain(const struct draft_about *about)
{
	return about->kind == DRAFT_CHANGE && about->version[0] == 'd';
}

bool base_reader_has_other_layout(const struct draft_about *about)
{
	return base_reader_is_domain(about) && about->layout != IMAGE_REVISION;
}

static int is_stale(struct err *err)
{
	return err_set(err, -ESTALE, "the domain has changed since, or is not there any more");
}

/* The domain must still have the version of its document. */
static int find_domain(struct bucket *bucket, const struct draft_about *about,
		       struct names_node **out, struct snapshot_time *requested, struct err *err)
{
	char version[COMMIT_VERSION];
	struct err why = ERR_INIT;
	int rc = snapshot_resolve(bucket, about->name, out, requested, &why);
	if (rc == -ENOENT)
		return is_stale(err);
	if (rc) {
		err_copy(err, &why);
		return rc;
	}
	const struct names_node *n = *out;
	if (n->kind != NAMES_DOMAIN || strcmp(n->path, about->path) != 0)
		return is_stale(err);
	rc = commit_version_of(n, version);
	if (rc)
		return err_errno(err, rc, "%s", about->path);
	return strcmp(version, about->version) == 0 ? 0 : is_stale(err);
}

static int check_identity(const struct bucket *bucket, const struct draft_about *about,
			  const struct snapshot *s, struct err *err)
{
	static const uint8_t unknown[DRAFT_BENEATH_ID];
	uint8_t id[DRAFT_BENEATH_ID];
	if (base_reader_has_other_layout(about))
		return err_set(err, -EINVAL, BASE_READER_OTHER_LAYOUT);
	if (memcmp(about->beneath_id, unknown, sizeof(unknown)) == 0)
		return err_set(err, -EINVAL,
			       "the draft does not say which version of the domain lies beneath");
	snapshot_identity(bucket, s, id);
	return memcmp(id, about->beneath_id, sizeof(id)) == 0 &&
			       image_size(s->image) == about->beneath
		       ? 0
		       : is_stale(err);
}

static int open_domain(struct base_reader *o, struct bucket *bucket,
		       const struct draft_about *about, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct snapshot_time requested;
	struct snapshot *s;
	int rc = find_domain(bucket, about, &n, &requested, err);
	if (!rc)
		rc = domain_snapshot(bucket, n, &requested, &s, err);
	if (rc)
		return rc;
	rc = check_identity(bucket, about, s, err);
	if (!rc)
		rc = draft_base_of_image(s, &o->base, err);
	if (rc)
		snapshot_close(s);
	return rc;
}

/* ---- both ---- */

int base_reader_open(struct base_reader *o, struct bucket *bucket, const struct draft_about *about,
		     struct err *err)
{
	if (!store_key_ok(about->path) || !store_key_ok(about->name))
		return err_set(err, -EINVAL, "\"%s\": no object can have this path", about->path);
	return base_reader_is_domain(about) ? open_domain(o, bucket, about, err)
					    : open_object(o, bucket, about, err);
}

void base_reader_close(struct base_reader *o)
{
	draft_base_free(o->base);
	o->base = NULL;
}
