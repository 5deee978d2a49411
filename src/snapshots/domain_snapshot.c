/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the snapshot of its domain: see domain_snapshot.h. */
#include <snapshots/domain_snapshot.h>

#include <bucket/bucket.h>
#include <storage/garbage.h>
#include <names/names.h>
#include <snapshots/size_cache.h>

#include <errno.h>
#include <string.h>

#include <storage/renames.h>
#include <schema/schema.h>

int snapshot_resolve(struct bucket *bucket, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err)
{
	const struct snapshot_time now = snapshots_time(bucket->snapshots);
	bool is_new;
	int rc = names_resolve_for_open(bucket->names, path, out, &is_new, err);
	*requested = is_new ? now : (struct snapshot_time){0};
	return rc;
}

void stat_large(const struct names_node *n, uint64_t listed, struct engine_stat *st)
{
	const struct names_size *size = names_get_size(n);
	if (listed || !size || size->version)
		return;
	st->mtime_ns = st->ctime_ns = size->mtime_ns;
	st->unchecked = false;
}

void stat_snapshot(struct bucket *bucket, const struct names_node *n, const struct snapshot *s,
		   struct engine_stat *st)
{
	uint64_t listed;
	if (!snapshots_recall(bucket->snapshots, n->path, st, &listed) || st->version != s->version)
		*st = s->st;
	stat_large(n, s->listed, st);
}

/* Remembers the size, which is known now, for later calls of stat and for later mounts. */
static void note_size(struct bucket *bucket, struct names_node *n, const struct snapshot *s)
{
	const char *document = domain_document(s->domain)->etag;
	const char *only = domain_only_version(s->domain);
	struct engine_stat st;
	stat_snapshot(bucket, n, s, &st);
	const struct file_size size = {st.size, st.blocks, .is_exact = true};
	const struct names_size found = {
		.size = st.size,
		.blocks = st.blocks,
		.mtime_ns = st.mtime_ns,
		.version = s->listed,
		.is_exact = true,
	};
	struct size_version version = {.kind = SIZE_LISTED, .digest = s->listed};
	if (!s->sees_chunks)
		version = only ? size_version_large(only, "")
			       : size_version_large(document, s->summary.etag);
	/* Any other domain without a summary may change while its version does not. */
	const bool has_version =
		s->sees_chunks || only || (s->has_summary && s->summary.etag[0] && document[0]);
	if (has_version && !s->is_torn)
		size_cache_keep(bucket->size_cache, n->path, &version, &size, st.mtime_ns);
	if (s->sees_chunks || s->has_summary || only)
		names_set_size(n, &found);
}

static int open_snapshot(struct bucket *bucket, struct names_node *n,
			 struct snapshot_domain *domain, struct snapshot **out, struct err *err)
{
	auto_free char *dir = strndup(n->name, names_parent_len(n->name));
	if (!dir)
		return err_no_memory(err);
	domain->path = n->path;
	domain->mount_dir = dir;
	domain->node = n;
	domain->document = names_doc_is_domain(&n->doc) ? n->doc.document : NULL;
	int rc = snapshots_open(bucket->snapshots, domain, out, err);
	if (!rc)
		note_size(bucket, n, *out);
	/* The domain has been replaced since the look-up. */
	return rc == -EISDIR ? -ENOENT : rc;
}

int domain_snapshot(struct bucket *bucket, struct names_node *n,
		    const struct snapshot_time *requested, struct snapshot **out, struct err *err)
{
	struct snapshot_domain domain = {.requested = *requested};
	const int rc = open_snapshot(bucket, n, &domain, out, err);
	if (!rc) {
		/* A rename of another mount may have been interrupted. The listing of the open
		 * shows at no cost whether the storage has a list of names. */
		const struct schema_listed *listed = domain_listed_keys((*out)->domain);
		struct storage storage;
		if (bucket->garbage && listed &&
		    renames_is_new_list(bucket->renames, listed->names) &&
		    schema_storage_of(domain_document((*out)->domain), &storage))
			garbage_add_names(bucket->garbage, domain_path((*out)->domain), &storage);
	}
	return rc;
}

int domain_snapshot_for_stat(struct bucket *bucket, struct names_node *n,
			     const atomic_bool *cancelled, struct snapshot **out, bool *may_pass,
			     struct err *err)
{
	struct snapshot_domain domain = {
		.is_stat = true, .may_pass = may_pass, .cancelled = cancelled};
	*may_pass = false;
	const int rc = open_snapshot(bucket, n, &domain, out, err);
	*may_pass |= rc == -ENOMEM;
	return rc;
}
