/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out sizes. A job is one domain whose size is needed now (a thread waits for it) or soon
 * (its directory is being walked). Jobs wait in a queue, those that are needed now first. Threads
 * take them, one domain each. A thread ends when the queue is empty; the next job starts one again.
 * A job that failed is forgotten: the next call for its domain makes another one.
 *
 * Plans take memory. After the listing of a domain, which shows how long its documents are, its
 * thread waits until the plans of all threads fit the limit together. A plan that is larger than
 * the limit runs alone. A domain that has to be opened counts as a part of the limit, because
 * nobody knows how large it is; the budget of all metadata limits it.
 *
 * If many small domains wait, a thread lists the keys of a group of them at once
 * (shared_listing.h), and puts these jobs back at the head of the queue. If nobody knows how far
 * a page reaches, or pages do not reach as far as was thought, one thread finds it out with the
 * listing of its own domain.
 *
 * The lock guards jobs, queue and counters. It is not held during I/O. Waiting threads wait for one
 * condition: a job is done, memory for plans is free, or a thread has ended.
 */
/* A failed insertion must not end the process: the entry's handle then has no table. */
#define HASH_NONFATAL_OOM 1
#include <snapshots/sizes.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include <base/mem.h>

#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/domain_snapshot.h>
#include "shared_listing.h"
#include <snapshots/size_cache.h>
#include "snapshot_build.h"
#include "summary.h"

enum {
	STAT_BLOCK = 512,
	/* The limit for jobs in the queue whose domains are needed soon. Domains whose storage is
	 * on one page are far apart in the directory: of 100,000, a sixth must be in the queue, so
	 * that a page shows many of them. */
	AHEAD = 1 << 15,
	/* Domains of a group. The answer has some hundred kilobytes: with fewer domains, it costs
	 * more processor time than a listing for each. */
	GROUP_MIN = 16,
	GROUP_MAX = STORE_PAGE_MAX,
	REACH_AGAIN = 512, /* domains that are listed one by one before a page is tried again */
	STACK = 1 << 20,
	OPENS = 4, /* domains that may be opened at the same time */
	/* Memory of a plan: for each byte of its documents, and for the plan itself. */
	MEMORY_PER_BYTE = 8,
	MEMORY_LEAST = 1 << 16,
	/* The same for each byte of a document that has all objects. */
	MEMORY_PER_BYTE_OF_ALL = 12,
};

struct job {
	struct names_node *node;
	unsigned int waiting; /* threads */
	bool queued, done;
	bool is_alone;	/* its directory is not being walked */
	bool is_shared; /* it may be listed together with others */
	struct shared_keys shared;
	int code;
	struct err *err;	 /* of a failure; NULL if out of memory */
	struct job *prev, *next; /* in the queue */
	UT_hash_handle hh;	 /* until it is done */
};

struct sizes {
	struct bucket *bucket;
	struct sizes_options opt;
	atomic_bool stopping;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job *jobs, *queue;
	unsigned int nqueued, nthreads;
	uint64_t planning; /* bytes of the plans */
	struct shared_reach reach;
	bool is_reaching;   /* a thread is finding out how far a page reaches */
	unsigned int alone; /* domains that were listed one by one since a page was tried */
};

struct sizes *sizes_new(struct bucket *bucket, const struct sizes_options *opt)
{
	struct sizes *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->bucket = bucket;
	s->opt = *opt;
	s->alone = REACH_AGAIN;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return s;
}

/* ---- domains whose keys fit a page ---- */

struct plan {
	struct sizes *s;
	struct names_node *node;
	struct names_size *out;
	bool keep;
	struct domain_plan how;
	bool has_listing, is_known;
	bool is_cheap;	 /* an open reads less than a plan */
	bool is_certain; /* what was planned is the version of the node's document */
	uint64_t memory; /* taken */
};

static void take_memory(struct sizes *s, uint64_t n)
{
	pthread_mutex_lock(&s->lock);
	while (s->planning && s->planning + n > s->opt.limit)
		pthread_cond_wait(&s->changed, &s->lock);
	s->planning += n;
	pthread_mutex_unlock(&s->lock);
}

static void give_memory(struct sizes *s, uint64_t n)
{
	if (!n)
		return;
	pthread_mutex_lock(&s->lock);
	s->planning -= n;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static uint64_t memory_for(uint64_t bytes, uint64_t per_byte)
{
	uint64_t memory;
	return mul_u64(bytes, per_byte, &memory) && add_u64(memory, MEMORY_LEAST, &memory)
		       ? memory
		       : INT64_MAX;
}

static void set_size(struct names_size *out, const struct file_size *size)
{
	out->size = size->size;
	out->blocks = size->blocks;
	out->is_exact = size->is_exact;
}

static int see_listing(void *ctx, const struct schema_listed *listed)
{
	struct plan *p = ctx;
	const struct size_version version = {.kind = SIZE_LISTED, .digest = listed->version};
	struct file_size size;
	p->has_listing = true;
	p->out->version = listed->version;
	p->out->mtime_ns =
		summary_time(p->s->bucket->stat_mode, &p->node->doc.document->info, listed, NULL);
	p->is_known = size_cache_find(p->s->bucket->size_cache, p->node->path, &version, &size);
	if (p->is_known) {
		set_size(p->out, &size);
		return -ECANCELED;
	}
	p->is_cheap = p->keep && snapshots_has(p->s->bucket->snapshots, p->node->path);
	if (p->is_cheap)
		return -ECANCELED;
	p->memory = memory_for(listed->documents, MEMORY_PER_BYTE);
	take_memory(p->s, p->memory);
	return 0;
}

/* Opens a domain to see its size. */
static int open_for_stat(struct sizes *s, struct names_node *node, struct names_size *out,
			 struct err *err)
{
	const struct file_size unknown = {SIZE_UNKNOWN, SIZE_UNKNOWN / STAT_BLOCK, false};
	const uint64_t memory = s->opt.limit / OPENS;
	struct snapshot *snapshot;
	bool may_pass;
	take_memory(s, memory);
	int rc = domain_snapshot_for_stat(s->bucket, node, &s->stopping, &snapshot, &may_pass, err);
	give_memory(s, memory);
	if (rc && may_pass)
		return rc;
	set_size(out, &unknown);
	if (rc)
		return 0;
	out->size = snapshot->st.size;
	out->blocks = snapshot->st.blocks;
	out->is_exact = true;
	out->version = snapshot->listed;
	if (snapshot->listed)
		out->mtime_ns = snapshot->st.mtime_ns;
	snapshot_close(snapshot);
	return 0;
}

static int measure(struct plan *p, struct file_size *size, struct err *err)
{
	const struct domain_hint hint = {
		.document = p->node->doc.document,
		.is_fresh = true,
		.plan = &p->how,
	};
	struct bucket *bucket = p->s->bucket;
	const struct snapshot_time began = snapshots_time(bucket->snapshots);
	struct domain *domain = NULL;
	struct image *image = NULL;
	auto_free char *dir = strndup(p->node->name, names_parent_len(p->node->name));
	int rc = dir ? domain_open(&bucket->domains, p->node->path, &hint, &domain, err)
		     : err_no_memory(err);
	if (rc)
		return rc;
	rc = snapshot_image(bucket, domain, dir, &image, err);
	if (!rc)
		*size = (struct file_size){.size = image_size(image),
					   .blocks = div_up_u64(image_allocated(image), STAT_BLOCK),
					   .is_exact = true};
	const char *only = rc ? NULL : domain_only_version(domain);
	p->is_certain = only && strcmp(only, p->node->doc.document->etag) == 0;
	if (!rc && p->keep && !p->how.torn)
		snapshots_keep(bucket->snapshots, p->node->path, &began, domain, image);
	else
		image_unref(image);
	domain_unref(domain);
	return rc;
}

/* Plans the file of a domain whose keys fit a page. `keys` is what a shared listing has shown, or
 * NULL. *torn is set if the domain changed while it was read. Fails with -E2BIG if the keys do not
 * fit a page. */
static int plan_listed(struct sizes *s, struct names_node *node, bool keep, struct store_page *keys,
		       struct names_size *out, bool *torn, struct err *err)
{
	struct plan p = {.s = s, .node = node, .keep = keep, .out = out};
	struct file_size size = {SIZE_UNKNOWN, SIZE_UNKNOWN / STAT_BLOCK, .is_exact = false};
	p.how = (struct domain_plan){.whole_only = true,
				     .is_brief = !keep,
				     .listed = see_listing,
				     .ctx = &p,
				     .keys = keys,
				     .cancelled = &s->stopping};
	int rc = measure(&p, &size, err);
	*torn = p.how.torn;
	give_memory(s, p.memory);
	if (p.is_cheap)
		return open_for_stat(s, node, out, err);
	if (p.is_known || (rc == -E2BIG && !p.has_listing))
		return p.is_known ? 0 : rc;
	if (rc && (p.how.failed || rc == -ENOMEM))
		return rc;
	set_size(out, &size);
	const struct size_version version = {.kind = SIZE_LISTED, .digest = out->version};
	/* What the bucket refuses, it may give later. */
	if (p.has_listing && !p.how.refused && !p.how.torn)
		size_cache_keep(s->bucket->size_cache, node->path, &version, &size, out->mtime_ns);
	return 0;
}

/* Plans the file of a domain whose document alone shows its objects. Fails with -E2BIG if it does
 * not. */
static int plan_document(struct sizes *s, struct names_node *node, bool keep,
			 struct names_size *out, struct err *err)
{
	const struct schema_document *document = node->doc.document;
	const struct size_version version = size_version_large(document->etag, "");
	struct plan p = {.s = s, .node = node, .keep = keep, .out = out};
	struct file_size size = {SIZE_UNKNOWN, SIZE_UNKNOWN / STAT_BLOCK, .is_exact = false};
	p.how = (struct domain_plan){
		.document_only = true, .is_brief = !keep, .cancelled = &s->stopping};
	/* If nobody knows how long the document is, it counts as a domain that has to be opened. */
	p.memory = document->size ? memory_for(document->size, MEMORY_PER_BYTE_OF_ALL)
				  : s->opt.limit / OPENS;
	take_memory(s, p.memory);
	int rc = measure(&p, &size, err);
	give_memory(s, p.memory);
	if (rc == -E2BIG || (rc && (p.how.failed || rc == -ENOMEM)))
		return rc;
	set_size(out, &size);
	if (p.is_certain)
		size_cache_keep(s->bucket->size_cache, node->path, &version, &size, out->mtime_ns);
	return 0;
}

/* ---- larger domains ---- */

static int get_summary(struct sizes *s, const struct names_node *node,
		       struct names_summary *summary, struct err *err)
{
	struct summary_request req;
	summary_begin(&req, s->bucket->store, node, &s->stopping);
	return summary_end(&req, summary, err);
}

static bool is_store(const struct names_node *node)
{
	return node->doc.kind == NAMES_DOC_STORE;
}

static bool recall_large(struct sizes *s, const struct names_node *node,
			 const struct names_summary *summary, struct names_size *out)
{
	const char *document = node->doc.document->etag;
	const struct size_version version = size_version_large(document, summary->etag);
	struct file_size size;
	/* A store has no summary: size_version_large() then is the version of its document. */
	if (!document[0] || (!summary->etag[0] && !is_store(node)) ||
	    !size_cache_find(s->bucket->size_cache, node->path, &version, &size))
		return false;
	set_size(out, &size);
	return true;
}

static void set_large_time(struct sizes *s, const struct names_node *node,
			   const struct names_summary *summary, struct names_size *out)
{
	out->mtime_ns =
		summary_time(s->bucket->stat_mode, &node->doc.document->info, NULL, summary);
	snapshots_set_time(s->bucket->snapshots, node->path, out->mtime_ns);
}

static int find_large(struct sizes *s, struct names_node *node, bool keep,
		      const struct names_summary *summary, struct names_size *out, struct err *err)
{
	set_large_time(s, node, summary, out);
	if (is_store(node)) {
		if (recall_large(s, node, summary, out))
			return 0;
		const int rc = plan_document(s, node, keep, out, err);
		if (rc != -E2BIG)
			return rc;
		err_clear(err);
	}
	if (s->bucket->stat_mode == ENGINE_STAT_EXACT)
		return open_for_stat(s, node, out, err);
	if (recall_large(s, node, summary, out) || summary->size <= SIZE_UNKNOWN)
		return 0;
	out->size = summary->size;
	out->blocks = div_up_u64(out->size, STAT_BLOCK);
	return 0;
}

/* Finds the size of a domain. If the domain was large, its summary is requested first: if that is
 * the same, nothing has changed. */
static int find_size(struct sizes *s, struct job *j, struct names_size *out, struct err *err)
{
	struct names_node *node = j->node;
	struct names_summary summary;
	bool is_torn;
	*out = (struct names_size){.size = SIZE_UNKNOWN, .blocks = SIZE_UNKNOWN / STAT_BLOCK};
	if (node->doc.document)
		out->mtime_ns = node->doc.document->info.modified_ns;
	if (!names_doc_is_domain(&node->doc))
		return 0;
	/* A store may become small while its document stays the same. */
	const bool was_large =
		!is_store(node) && size_cache_is(s->bucket->size_cache, node->path, SIZE_LARGE);
	int rc = was_large ? get_summary(s, node, &summary, err) : 0;
	if (rc)
		return rc;
	if (was_large && s->bucket->stat_mode == ENGINE_STAT_EXACT)
		return find_large(s, node, j->is_alone, &summary, out, err);
	if (was_large && recall_large(s, node, &summary, out)) {
		set_large_time(s, node, &summary, out);
		return 0;
	}
	auto_page struct store_page shown = {0};
	struct store_page *keys = j->shared.is_listed ? &j->shared.keys : NULL;
	/* Only a walk may use a listing that is as old as the nodes. */
	if (!keys && !j->is_alone && names_take_keys(node, &shown))
		keys = &shown;
	rc = plan_listed(s, node, j->is_alone, keys, out, &is_torn, err);
	/* It has changed after the listing. */
	if (is_torn) {
		err_clear(err);
		rc = plan_listed(s, node, j->is_alone, NULL, out, &is_torn, err);
	}
	if (rc != -E2BIG)
		return rc;
	err_clear(err);
	rc = was_large ? 0 : get_summary(s, node, &summary, err);
	return rc ? rc : find_large(s, node, j->is_alone, &summary, out, err);
}

/* ---- jobs ---- */

static struct job *find_locked(struct sizes *s, struct names_node *node)
{
	struct job *j = NULL;
	HASH_FIND_PTR(s->jobs, &node, j);
	return j;
}

/* Adds a job to the queue. Returns NULL if out of memory. */
static struct job *add_locked(struct sizes *s, struct names_node *node, bool is_needed_now)
{
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->node = names_node_ref(node);
	j->is_shared = s->bucket->stack.s3 && node->doc.kind == NAMES_DOC_ROOT &&
		       !size_cache_is(s->bucket->size_cache, node->path, SIZE_LARGE) &&
		       schema_storage_of(node->doc.document, &j->shared.storage);
	if (j->is_shared)
		j->shared.number =
			j->shared.storage.schema->storage->number(j->shared.storage.prefix);
	HASH_ADD_PTR(s->jobs, node, j);
	if (!j->hh.tbl) {
		names_node_unref(j->node);
		free(j);
		return NULL;
	}
	if (is_needed_now)
		DL_PREPEND(s->queue, j);
	else
		DL_APPEND(s->queue, j);
	j->queued = true;
	s->nqueued++;
	atomic_store(&node->is_sized, true);
	return j;
}

static void take_locked(struct sizes *s, struct job *j)
{
	DL_DELETE(s->queue, j);
	j->queued = false;
	s->nqueued--;
}

static void free_job(struct job *j)
{
	store_page_release(&j->shared.keys);
	names_node_unref(j->node);
	free(j->err);
	free(j);
}

/* Ends a job that is done, or whose result is no longer needed. */
static void end_locked(struct sizes *s, struct job *j)
{
	HASH_DEL(s->jobs, j);
	atomic_store(&j->node->is_sized, false);
	j->done = true;
	if (!j->waiting)
		free_job(j);
	pthread_cond_broadcast(&s->changed);
}

/* Runs a job that was taken from the queue. Releases the lock meanwhile. */
static void run_locked(struct sizes *s, struct job *j)
{
	struct names_size size;
	struct err err = ERR_INIT;
	pthread_mutex_unlock(&s->lock);
	j->code = find_size(s, j, &size, &err);
	if (!j->code)
		names_set_size(j->node, &size);
	else if ((j->err = malloc(sizeof(err))))
		*j->err = err;
	pthread_mutex_lock(&s->lock);
	end_locked(s, j);
}

/* ---- groups ---- */

static bool is_in_group(const struct sizes *s, const struct job *j, const struct job *of)
{
	const uint64_t cell = s->reach.cell;
	return cell && j->shared.number / cell == of->shared.number / cell &&
	       j->node->doc.document->schema == of->node->doc.document->schema;
}

static int compare_storage(const void *a, const void *b)
{
	const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;
	return strcmp(x->shared.storage.prefix, y->shared.storage.prefix);
}

/* Chooses the jobs that are listed together with this one, in order, or it alone if its listing
 * shall show how far a page reaches. Returns 0 if the domain lists its own keys. The job is not in
 * the queue. */
static size_t choose_group_locked(struct sizes *s, struct job *j, struct job *group[GROUP_MAX])
{
	size_t n = 1, all = 1;
	group[0] = j;
	if (!j->is_shared || j->is_alone || j->shared.is_listed)
		return 0;
	for (struct job *other = s->queue; other; other = other->next) {
		if (!other->is_shared || other->shared.is_listed)
			continue;
		all++;
		if (n < GROUP_MAX && is_in_group(s, other, j))
			group[n++] = other;
	}
	if (n >= GROUP_MIN) {
		qsort(group, n, sizeof(struct job *), compare_storage);
		return n;
	}
	return all >= GROUP_MIN && !s->is_reaching && s->alone >= REACH_AGAIN;
}

static void start_locked(struct sizes *s);

/* Lists the domains of a group. Releases the lock meanwhile. The other jobs of the group are not in
 * the queue then. */
static void list_group_locked(struct sizes *s, struct job *j, struct job **group, size_t n)
{
	struct shared_keys *domains[GROUP_MAX];
	struct shared_reach reach = s->reach;
	const bool is_reaching = n == 1;
	for (size_t i = 0; i < n; i++) {
		domains[i] = &group[i]->shared;
		if (group[i] != j)
			take_locked(s, group[i]);
	}
	s->is_reaching |= is_reaching;
	s->alone = is_reaching ? 0 : s->alone;
	pthread_mutex_unlock(&s->lock);
	shared_listing(s->bucket->store, &s->stopping, domains, n, &reach);
	pthread_mutex_lock(&s->lock);
	s->reach = reach;
	s->is_reaching &= !is_reaching;
	for (size_t i = n; i-- > 0;) {
		/* A domain that is not listed now has too many keys, or is unlucky. */
		group[i]->is_shared = false;
		if (group[i] == j)
			continue;
		DL_PREPEND(s->queue, group[i]);
		group[i]->queued = true;
		s->nqueued++;
	}
	start_locked(s);
}

static void *work(void *arg)
{
	struct sizes *s = arg;
	pthread_mutex_lock(&s->lock);
	while (s->queue) {
		struct job *group[GROUP_MAX], *j = s->queue;
		take_locked(s, j);
		const size_t n = choose_group_locked(s, j, group);
		s->alone += n == 0;
		if (n)
			list_group_locked(s, j, group, n);
		run_locked(s, j);
	}
	s->nthreads--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Starts a thread for each job, up to the limit. */
static void start_locked(struct sizes *s)
{
	pthread_attr_t attr;
	pthread_t thread;
	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	for (unsigned int n = s->nqueued; n > 0 && s->nthreads < s->opt.threads; n--) {
		s->nthreads++;
		if (pthread_create(&thread, &attr, work, s) == 0)
			continue;
		s->nthreads--;
		break;
	}
	pthread_attr_destroy(&attr);
}

void sizes_free(struct sizes *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->stopping, true);
	while (s->queue) {
		struct job *j = s->queue;
		take_locked(s, j);
		end_locked(s, j);
	}
	while (s->nthreads)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Finds the domains that are needed soon, if there is room in the queue. */
static size_t find_next(struct sizes *s, struct names_node *node, struct names_node **next)
{
	pthread_mutex_lock(&s->lock);
	const bool has_room = s->opt.threads && s->nqueued <= AHEAD / 2;
	pthread_mutex_unlock(&s->lock);
	return has_room ? names_unsized(s->bucket->names, node, next, AHEAD / 2) : 0;
}

static int wait_for(struct sizes *s, struct names_node *node, struct names_node *const next[],
		    size_t n, struct err *err)
{
	int rc = 0;
	pthread_mutex_lock(&s->lock);
	struct job *j = find_locked(s, node);
	const bool is_found = !j && names_get_size(node);
	if (!j && !is_found) {
		j = add_locked(s, node, true);
		if (j)
			j->is_alone = n == 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!names_get_size(next[i]) && !find_locked(s, next[i]))
			add_locked(s, next[i], false);
	start_locked(s);
	if (j) {
		j->waiting++;
		if (j->queued && s->nthreads == 0) {
			take_locked(s, j);
			run_locked(s, j);
		}
		while (!j->done)
			pthread_cond_wait(&s->changed, &s->lock);
		rc = j->code;
		if (rc && j->err)
			err_copy(err, j->err);
		else if (rc)
			err_set(err, rc, "out of memory");
		if (--j->waiting == 0)
			free_job(j);
	} else if (!is_found) {
		rc = err_no_memory(err);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int sizes_find(struct sizes *s, struct names_node *node, struct err *err)
{
	if (names_get_size(node))
		return 0;
	auto_free struct names_node **next = malloc(AHEAD / 2 * sizeof(struct names_node *));
	const size_t n = next ? find_next(s, node, next) : 0;
	const int rc = wait_for(s, node, next, n, err);
	for (size_t i = 0; i < n; i++)
		names_node_unref(next[i]);
	names_continue_walk(s->bucket->names, node);
	return rc;
}
