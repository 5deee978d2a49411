/* SPDX-License-Identifier: Apache-2.0 */
/* See snapshot_build.h. */
#include "snapshot_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <bucket/bucket.h>
#include <names/names.h>
#include "summary.h"

enum {
	STAT_BLOCK = 512,
	/* Bytes of a domain in memory. To read the documents of a domain takes more memory than the
	 * domain keeps. From this size on, the rest is returned to the system. */
	LARGE = 16 << 20,
};

/* A domain that a listing shows can only be read. */
static bool can_change(const struct bucket *bucket, const struct domain *domain)
{
	return bucket->writes && !domain_schema(domain)->marks;
}

/* Frees what is not needed to read the file, and returns memory to the system. */
static void shrink(const struct bucket *bucket, struct domain *domain, struct image *image)
{
	const bool is_large = image_memory(image) + domain_memory(domain) >= LARGE;
	if (!can_change(bucket, domain) && !bucket->keeps_attributes) {
		domain_drop_attributes(domain, image_take_values, image);
		image_shrink(image);
	}
	if (is_large)
		mem_return_freed();
}

int snapshot_image(struct bucket *bucket, struct domain *domain, const char *mount_dir,
		   struct image **out, struct err *err)
{
	struct image_options opt = {
		.flags = (bucket->no_filters ? (unsigned int)IMAGE_NO_FILTERS : 0) |
			 (bucket->stack.s3 ? (unsigned int)IMAGE_DISTANT : 0),
		.domain_dir = mount_dir,
		.file_name = names_of_domain,
		.suffix = domain_schema(domain)->suffix,
	};
	const struct chunk_source chunks = domain_chunk_source(domain);
	struct err why = ERR_INIT;
	int rc;
	do {
		rc = image_new(&bucket->env, bucket->cache, domain_tree(domain), &chunks, &opt, out,
			       &why);
	} while (rc == -ENOMEM && domain_drop_texts(domain));
	if (rc)
		err_copy(err, &why);
	if (rc == -ENOMEM)
		err_wrap(err, rc, "objects of %" PRIu64 " bytes", domain_memory(domain));
	if (!rc)
		shrink(bucket, domain, *out);
	return rc ? err_wrap(err, rc, "domain /%s", domain_path(domain)) : 0;
}

/* Sets the times of a snapshot. `summary` is that of the domain, or NULL. */
static void set_times(struct bucket *bucket, struct snapshot *s,
		      const struct names_summary *summary)
{
	s->has_summary = !s->sees_chunks && summary;
	if (s->has_summary)
		s->summary = *summary;
	s->st.mtime_ns = s->st.ctime_ns =
		summary_time(bucket->stat_mode, domain_info(s->domain),
			     domain_listed_keys(s->domain), s->has_summary ? &s->summary : NULL);
	s->st.unchecked =
		!s->sees_chunks && !s->has_summary && bucket->stat_mode != ENGINE_STAT_ESTIMATE;
}

void snapshot_blocks(const struct snapshot *s, struct engine_stat *st)
{
	st->blocks = div_up_u64(image_allocated(s->image), STAT_BLOCK);
	st->certain = image_certain(s->image);
}

struct snapshot *snapshot_new(struct bucket *bucket, struct domain *domain, struct image *image,
			      uint64_t version)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	if (!s) {
		image_unref(image);
		return NULL;
	}
	const struct schema_listed *listed = domain_listed_keys(domain);
	s->image = image;
	s->domain = domain_ref(domain);
	s->refs = 1;
	s->version = version;
	s->sees_chunks = domain_sees_chunks(domain);
	s->listed = s->sees_chunks && listed ? listed->version : 0;
	s->memory = image_memory(s->image) + domain_memory(domain);
	s->st = (struct engine_stat){
		.kind = ENGINE_DOMAIN,
		.size = image_size(s->image),
		.size_exact = true,
		.mode = names_mode(domain_info(domain), false, can_change(bucket, domain)),
		.version = version,
	};
	snapshot_blocks(s, &s->st);
	set_times(bucket, s, NULL);
	return s;
}

/* An open of a domain. If its keys cannot all be listed, its summary is requested together with its
 * documents, because stat shows the time of the summary. */
struct opening {
	struct bucket *bucket;
	const struct snapshot_domain *of;
	struct domain_plan plan;
	struct summary_request summary;
};

static int note_listing(void *ctx, const struct schema_listed *listed)
{
	struct opening *o = ctx;
	if (!listed && o->of->node && !o->summary.has_begun &&
	    o->bucket->stat_mode != ENGINE_STAT_ESTIMATE)
		summary_begin(&o->summary, o->bucket->store, o->of->node, o->of->cancelled);
	return 0;
}

static bool is_same_root(const struct schema_document *a, const struct domain_info *b)
{
	return a && a->info.root && b->root && strcmp(a->info.root, b->root) == 0;
}

int snapshot_refresh(struct bucket *bucket, const struct snapshot_domain *of, uint64_t new_version,
		     struct snapshot *old, bool was_idle, const struct domain_puts *puts,
		     struct snapshot **out, bool *may_pass, struct err *err)
{
	struct domain *domain = NULL, *previous = old ? old->domain : NULL;
	struct opening o = {
		.bucket = bucket,
		.of = of,
		.plan = {.listed = note_listing, .ctx = &o, .cancelled = of->cancelled},
	};
	struct names_summary summary;
	const struct domain_hint hint = {
		.document = of->document,
		.is_fresh = of->requested.tick != 0,
		.previous = previous,
		.puts = puts,
		.plan = &o.plan,
	};
	int rc = domain_open(&bucket->domains, of->path, &hint, &domain, err);
	const bool is_read = o.summary.has_begun && summary_end(&o.summary, &summary, NULL) == 0;
	*may_pass = o.plan.failed || rc == -ENOMEM;
	if (rc) /* the file exists, so -EOPNOTSUPP would be wrong for it */
		return rc == -EOPNOTSUPP ? -EIO : rc;
	const bool is_new = is_read && is_same_root(of->node->doc.document, domain_info(domain));
	if (domain == previous && was_idle && !old->sees_chunks) {
		/* Chunks may have changed unseen. The kernel drops its pages, too
		 * (engine_file_cacheable()). */
		image_forget_chunks(old->image);
		domain_forget_chunks(domain);
	}
	if (domain == previous && (old->sees_chunks || !was_idle || old->has_summary || !is_new)) {
		*out = old;
	} else { /* a new version, or one whose time is known now */
		struct image *image;
		if (domain == previous)
			image = image_ref(old->image);
		else
			rc = snapshot_image(bucket, domain, of->mount_dir, &image, err);
		new_version = domain == previous ? old->version : new_version;
		*out = rc ? NULL : snapshot_new(bucket, domain, image, new_version);
		if (!rc && !*out)
			rc = err_no_memory(err);
		*may_pass = rc == -ENOMEM;
	}
	if (rc == 0 && *out != old) {
		(*out)->is_torn = o.plan.torn;
		set_times(bucket, *out, is_new ? &summary : NULL);
	}
	domain_unref(domain);
	return rc;
}
