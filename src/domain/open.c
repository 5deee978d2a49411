/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a domain: loads its tree, then finds which chunks exist. */
#include <domain/domain.h>

#include <errno.h>
#include <string.h>

#include "domain_internal.h"
#include <domain/read_user_block.h>

#define DOMAIN_ARENA_LIMIT ((size_t)4 << 30)

enum {
	LOGGED_PROBLEMS = 50, /* of one domain; less than LOG_BURST */
	/* The most loads of a domain that changes meanwhile. The last one is used as it is, and the
	 * next open loads the domain again. */
	ATTEMPTS = 3,
};

static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	const struct domain *d = ctx;
	return d->schema->resolve(d->space, text, n);
}

static struct domain *new_domain(const struct domain_bucket *bucket, const char *path)
{
	struct domain *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	atomic_init(&d->refs, 1);
	d->env = bucket->env;
	d->store = bucket->store;
	d->disk = bucket->disk;
	d->changes = bucket->changes;
	d->missing_chunks_fail = bucket->missing_chunks_fail;
	d->forbidden_chunks_absent = bucket->forbidden_chunks_absent;
	d->keeps_texts = bucket->keeps_texts;
	d->charge = (struct budget_charge){.budget = d->env->budget, .use = BUDGET_TREES};
	domain_rechecks_init(d);
	domain_versions_init(d);
	d->resolver = (struct object_resolver){.resolve = resolve, .ctx = d};
	d->path = strdup(path);
	d->tree = tree_new(DOMAIN_ARENA_LIMIT);
	ranges_init(&d->ranges, d->env, bucket->files, d->tree);
	if (!d->path || !d->tree) {
		domain_unref(d);
		return NULL;
	}
	d->arena = tree_arena(d->tree);
	return d;
}

static int read_all(struct domain *d, const struct schema_ops *const *schemas,
		    const struct domain_hint *hint, bool *same, struct err *err)
{
	int rc = domain_load(d, schemas, hint, same, err);
	if (rc || *same)
		return rc;
	rc = tree_finish(d->tree, err);
	if (!rc)
		rc = domain_read_user_block(d, hint, err);
	if (rc)
		return rc;
	d->chunks = calloc(tree_numbers(d->tree), sizeof(*d->chunks));
	if (!d->chunks)
		return err_no_memory(err);
	rc = domain_list_chunks(d, err);
	/* Damage is noted in the tree, so this is an error of the store. */
	domain_note_failure(hint->plan, rc);
	return rc ? rc : domain_charge(d, err);
}

static int open_with(const struct domain_bucket *bucket, const char *path,
		     const struct domain_hint *hint, struct domain **out, struct err *err)
{
	struct domain *d = new_domain(bucket, path);
	bool same = false;
	*out = NULL;
	if (!d)
		return err_set(err, -ENOMEM, "domain /%s: out of memory", path);
	const int rc = read_all(d, bucket->schemas, hint, &same, err);
	if (!rc) {
		struct domain *seen = same ? hint->previous : d;
		atomic_store(&seen->has_copy, d->space->listed.has_copy);
		atomic_store(&seen->summary, d->space->listed.summary);
	}
	if (rc <= 0 && !(hint->plan && hint->plan->is_brief)) {
		const uint32_t n = tree_problems(d->tree);
		for (uint32_t i = 0; i < n && i < LOGGED_PROBLEMS; i++) {
			const char *text = tree_problem(d->tree, i);
			if (text)
				log_warning(d->env->log, "domain /%s: %s", d->path, text);
		}
		if (n > LOGGED_PROBLEMS)
			log_warning(d->env->log, "domain /%s: %u more problems are not logged",
				    d->path, n - LOGGED_PROBLEMS);
	}
	if (rc || same) {
		domain_unref(d);
		d = NULL;
	}
	if (rc)
		return rc < 0 ? err_wrap(err, rc, "domain /%s", path) : rc;
	*out = same ? domain_ref(hint->previous) : d;
	return 0;
}

/* If the root group is absent, the document is read again: another program may have deleted or
 * replaced the domain, and its objects, since the document was read. */
static int open_current(const struct domain_bucket *bucket, const char *path,
			const struct domain_hint *hint, struct domain **out, struct err *err)
{
	const struct domain_hint fresh = {.plan = hint->plan};
	int rc = open_with(bucket, path, hint, out, err);
	if (rc == LOAD_ROOT_ABSENT)
		rc = open_with(bucket, path, &fresh, out, err);
	return rc == LOAD_ROOT_ABSENT ? err_wrap(err, -EIO, "domain /%s", path) : rc;
}

/* Loads a domain again that changed while it was loaded. What has not changed is taken from *d. */
static int open_again(const struct domain_bucket *bucket, const char *path,
		      const struct domain_hint *hint, struct domain **d, struct err *err)
{
	struct domain *torn = *d;
	const struct domain_hint again = {.previous = torn, .plan = hint->plan};
	const int rc = open_current(bucket, path, &again, d, err);
	domain_unref(torn);
	return rc;
}

int domain_open(const struct domain_bucket *bucket, const char *path,
		const struct domain_hint *hint, struct domain **out, struct err *err)
{
	static const struct domain_hint none;
	struct domain_hint without = hint ? *hint : none;
	int rc = open_current(bucket, path, &without, out, err);
	without.puts = NULL;
	if (rc == LOAD_INCOMPLETE)
		rc = open_current(bucket, path, &without, out, err);
	const bool once = without.plan && without.plan->whole_only;
	for (int i = 1; !rc && !once && (*out)->is_torn && i < ATTEMPTS; i++)
		rc = open_again(bucket, path, &without, out, err);
	return rc;
}
