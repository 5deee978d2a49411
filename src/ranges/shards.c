/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The indexes of shards. An index is kept in memory as it is stored, because the other chunks of
 * its shard are usually needed soon. All searches in one index wait for one read of it. A shard
 * that is encoded as a whole is decoded, and kept in place of its index. When the indexes of a
 * domain take more than SHARDS_MAX, the least recently used ones are dropped; the last one is kept
 * in any case. Each is charged to the budget; if it does not fit, it is used, but not kept.
 *
 * All reads of an object are of one version (range_object.c): that of the listing, or else that of
 * the read of its index.
 *
 * Threads: the lock of struct ranges guards the table, and the entries until they are complete. A
 * complete entry is constant. See ranges/ranges.h.
 */
/* A failed insertion must not end the process. The handle of the entry then has no table. */
#define HASH_NONFATAL_OOM 1
#include <ranges/shards.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/env.h>
#include <codec/chain.h>

#include <uthash.h>
#include <utlist.h>

enum { SHARDS_MAX = 64 << 20 /* bytes that a domain keeps */ };

/* ---- sources ---- */

struct shard_source {
	atomic_uint refs;
	bool in_memory;
	struct range_object object;
	struct bytes bytes; /* if it is in memory */
	struct budget_charge charge;
	char key[];
};

static struct shard_source *source_new(struct ranges *all, const char *key)
{
	const size_t n = strlen(key) + 1;
	struct shard_source *s = calloc(1, sizeof(*s) + n);
	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	memcpy(s->key, key, n);
	s->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	return s;
}

static struct shard_source *source_ref(struct shard_source *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void shard_source_unref(struct shard_source *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	bytes_release(&s->bytes);
	budget_set(&s->charge, 0, NULL);
	free(s);
}

struct range_object *shard_source_object(struct shard_source *s)
{
	return s->in_memory ? NULL : &s->object;
}

const uint8_t *shard_source_bytes(const struct shard_source *s, uint64_t offset)
{
	return s->bytes.data + offset;
}

const char *shard_source_etag(const struct shard_source *s)
{
	return s->in_memory || !atomic_load(&s->object.pinned) ? "" : s->object.etag;
}

/* ---- the table ---- */

struct shard_key {
	uint64_t dataset, depth, first; /* first: of the chunks in the shard */
};

struct shard_part {
	atomic_uint refs; /* of the table, and of those who use it */
	struct shard_key key;
	struct ranges *all;
	const struct shard *shard;
	bool complete, forgotten;
	struct shard_search *waiting; /* until it is complete */
	struct store_absence absence; /* of the object; zero if it exists */
	/* Where the shard is: a range of a source. The source is that of its own bytes if they are
	 * decoded. */
	struct shard_source *source;
	uint64_t start, size;
	struct bytes index; /* as it is stored */
	struct range_read read;
	struct budget_charge charge;
	uint64_t memory; /* bytes that count */
	struct shard_part *prev, *next;
	UT_hash_handle hh;
};

static void part_unref(struct shard_part *p)
{
	if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	shard_source_unref(p->source);
	bytes_release(&p->index);
	budget_set(&p->charge, 0, NULL);
	free(p);
}

static void remove_locked(struct shard_part *p)
{
	struct ranges *all = p->all;
	HASH_DEL(all->shards, p);
	p->forgotten = true;
	if (p->complete) {
		DL_DELETE(all->oldest_shard, p);
		all->shard_bytes -= p->memory;
	}
}

/* Drops complete parts until the rest has at most `most` bytes, or is the one that was used last: a
 * decoded shard may have more. Returns the list of those to free. */
static struct shard_part *trim_locked(struct ranges *all, uint64_t most)
{
	struct shard_part *dropped = NULL;
	while (all->oldest_shard && all->oldest_shard->next && all->shard_bytes > most) {
		struct shard_part *p = all->oldest_shard;
		remove_locked(p);
		p->next = dropped;
		dropped = p;
	}
	return dropped;
}

static void unref_all(struct shard_part *list)
{
	while (list) {
		struct shard_part *p = list;
		list = p->next;
		part_unref(p);
	}
}

void shards_forget(struct ranges *all)
{
	struct shard_part *p, *next, *dropped = NULL;
	pthread_mutex_lock(&all->lock);
	HASH_ITER (hh, all->shards, p, next) {
		remove_locked(p);
		/* Some of them are still being read. The searches that wait for such a part get
		 * what is read, and later searches read again. */
		p->next = dropped;
		dropped = p;
	}
	pthread_mutex_unlock(&all->lock);
	unref_all(dropped);
}

/* ---- results ---- */

static void find_level(struct shard_search *s, struct range_batch *batch);

static void finish(struct shard_search *s, struct range_batch *batch, const struct err *err)
{
	if (err->code && s->source) {
		shard_source_unref(s->source);
		s->source = NULL;
	}
	s->done(s, err->code, batch, err);
}

/* Takes the entry of the chunk from a part that is complete, and goes on with the nested shard. */
static void take_entry(struct shard_search *s, const struct shard_part *p,
		       struct range_batch *batch)
{
	struct err err = ERR_INIT;
	struct shard_entry e = {.absent = true};
	shard_source_unref(s->source);
	s->source = p->source ? source_ref(p->source) : NULL;
	s->absence = p->absence;
	if (p->source)
		codec_shard_entry(p->shard, p->index.data,
				  shard_inner(p->shard, s->grid, s->number), p->size, &e, &err);
	s->absent = !err.code && e.absent;
	s->offset = p->start + e.offset;
	s->length = e.length;
	s->level = p->shard->nested;
	s->depth++;
	if (err.code || s->absent || !s->level)
		finish(s, batch, &err);
	else
		find_level(s, batch);
}

/* Called when the part has been read or could not be read. The caller's reference is that of the
 * read. */
static void complete(struct shard_part *p, const struct err *err)
{
	struct ranges *all = p->all;
	struct shard_part *dropped = NULL;
	const struct shard_source *source = p->source;
	p->memory = sizeof(*p) + p->index.cap + (source ? source->bytes.cap : 0);
	const bool keep = !err->code && (!source || source->charge.bytes == source->bytes.cap) &&
			  budget_set(&p->charge, sizeof(*p) + p->index.cap, NULL) == 0;
	pthread_mutex_lock(&all->lock);
	struct shard_search *waiting = p->waiting;
	p->waiting = NULL;
	if (!p->forgotten && keep) {
		p->complete = true;
		all->shard_bytes += p->memory;
		DL_APPEND(all->oldest_shard, p);
		dropped = trim_locked(all, SHARDS_MAX);
	} else if (!p->forgotten) {
		remove_locked(p);
		p->next = NULL;
		dropped = p;
	}
	pthread_mutex_unlock(&all->lock);
	unref_all(dropped);
	struct range_batch *batch = range_batch_begin(all);
	while (waiting) {
		struct shard_search *s = waiting;
		waiting = s->next;
		if (err->code)
			finish(s, batch, err);
		else
			take_entry(s, p, batch);
	}
	range_batch_end(batch);
	part_unref(p);
}

/* ---- reading ---- */

/* Returns the most bytes that are read of the shard to find its index. */
static uint64_t most_of(const struct shard *s)
{
	return s->around ? codec_chunk_size(s->around).most : shard_index_size(s);
}

static int too_short(const struct shard_part *p, struct err *err)
{
	return err_set(err, -EIO, "the shard has %" PRIu64 " bytes, its index has %u", p->size,
		       shard_index_size(p->shard));
}

static int too_long(const struct shard_part *p, struct err *err)
{
	return err_set(err, -EIO,
		       "the encoded shard has %" PRIu64 " bytes, at most %" PRIu64 " are expected",
		       p->size, most_of(p->shard));
}

/* Copies the index from n bytes of which it is the beginning or the end. */
static int copy_index(struct shard_part *p, const uint8_t *bytes, uint64_t n, struct err *err)
{
	const uint32_t index = shard_index_size(p->shard);
	if (n < index)
		return too_short(p, err);
	if (bytes_append(&p->index, bytes + (p->shard->at_start ? 0 : n - index), index))
		return err_no_memory(err);
	return codec_shard_index(p->shard, p->index.data, index, err);
}

/* Makes a source of the decoded bytes of the shard, and gets the index from it. */
static int decode(struct shard_part *p, struct bytes *body, struct err *err)
{
	int rc = codec_shard_decode(p->shard, body, err);
	if (rc)
		return rc;
	struct shard_source *s = source_new(p->all, p->source->key);
	if (!s)
		return err_no_memory(err);
	s->in_memory = true;
	s->bytes = *body;
	*body = (struct bytes){0};
	/* It is used now in any case. If it does not fit, it is not kept: see complete(). */
	budget_set(&s->charge, s->bytes.cap, NULL);
	shard_source_unref(p->source);
	p->source = s;
	p->start = 0;
	p->size = s->bytes.len;
	return copy_index(p, s->bytes.data, s->bytes.len, err);
}

static int take_body(struct shard_part *p, struct bytes *body, struct err *err)
{
	const struct shard *s = p->shard;
	if (p->key.depth == 0)
		p->size = range_object_size(&p->source->object);
	if (s->around)
		return body->len < p->size ? too_long(p, err) : decode(p, body, err);
	if (body->len < shard_index_size(s))
		return too_short(p, err);
	p->index = *body;
	*body = (struct bytes){0};
	return codec_shard_index(s, p->index.data, p->index.len, err);
}

static void index_arrived(struct range_read *r, int code, struct bytes *body, const struct err *why)
{
	struct shard_part *p = r->arg;
	struct err err = ERR_INIT;
	if (code)
		err_copy(&err, why);
	else if (r->absence.evidence) {
		p->absence = r->absence;
		shard_source_unref(p->source);
		p->source = NULL;
	} else {
		take_body(p, body, &err);
	}
	complete(p, &err);
}

/* Reads the index of a part, or the whole shard if it is encoded. */
static void load(struct shard_part *p, bool prefetch, struct range_batch *batch)
{
	const struct shard *s = p->shard;
	const uint64_t most = most_of(s), n = min_u64(most, p->size);
	const bool is_whole = p->key.depth == 0, at_end = !s->around && !s->at_start;
	struct err err = ERR_INIT;
	if (!is_whole && s->around && p->size > most)
		too_long(p, &err);
	else if (!is_whole && !s->around && p->size < most)
		too_short(p, &err);
	const uint64_t offset = p->start + (at_end && !is_whole ? p->size - n : 0);
	if (!err.code && p->source->in_memory && s->around) {
		struct bytes body auto_bytes = {0};
		if (bytes_append(&body, p->source->bytes.data + offset, n))
			err_no_memory(&err);
		else
			decode(p, &body, &err);
	} else if (!err.code && p->source->in_memory) {
		copy_index(p, p->source->bytes.data + offset, n, &err);
	} else if (!err.code) {
		p->read = (struct range_read){
			.object = &p->source->object,
			.offset = offset,
			.length = is_whole ? most : n,
			.from_end = is_whole && at_end,
			.short_ok = is_whole,
			.absent_ok = is_whole,
			.prefetch = prefetch,
			.batch = batch,
			.done = index_arrived,
			.arg = p,
		};
		range_read(&p->read);
		return;
	}
	complete(p, &err);
}

/* ---- searches ---- */

/* Sets the source of a part: the object, or that of the shard which the part is in. */
static int set_source(struct shard_part *p, const struct shard_search *s, struct err *err)
{
	p->start = s->offset;
	p->size = s->length;
	p->source = s->source ? source_ref(s->source) : source_new(p->all, s->key);
	if (!p->source)
		return err_no_memory(err);
	if (s->source)
		return 0;
	p->source->object = (struct range_object){.all = p->all,
						  .store = s->store,
						  .key = p->source->key,
						  .name = "shard",
						  .is_own = true,
						  .required_size = UINT64_MAX,
						  .size = UINT64_MAX};
	return range_require(&p->source->object, s->etag, s->size, err);
}

static struct shard_part *add_locked(struct ranges *all, const struct shard_key *key,
				     const struct shard *shard)
{
	struct shard_part *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	atomic_init(&p->refs, 2); /* of the table, and of the read */
	p->key = *key;
	p->all = all;
	p->shard = shard;
	p->charge = (struct budget_charge){.budget = all->env->budget, .use = BUDGET_TREES};
	HASH_ADD(hh, all->shards, key, sizeof(p->key), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static void find_level(struct shard_search *s, struct range_batch *batch)
{
	struct ranges *all = s->ranges;
	const struct shard_key key = {.dataset = s->dataset,
				      .depth = s->depth,
				      .first = shard_first(s->level, s->grid, s->number)};
	struct shard_part *p = NULL;
	struct err err = ERR_INIT;
	bool first = false, hit = false;
	pthread_mutex_lock(&all->lock);
	HASH_FIND(hh, all->shards, &key, sizeof(key), p);
	hit = p && p->complete;
	if (hit) {
		DL_DELETE(all->oldest_shard, p);
		DL_APPEND(all->oldest_shard, p);
		atomic_fetch_add(&p->refs, 1);
	} else if (p || (p = add_locked(all, &key, s->level))) {
		first = !p->waiting;
		s->next = p->waiting;
		p->waiting = s;
	}
	atomic_fetch_add(hit ? &all->shard_hits : &all->shard_misses, 1);
	pthread_mutex_unlock(&all->lock);
	if (hit) {
		take_entry(s, p, batch);
		part_unref(p);
	} else if (!p) {
		err_no_memory(&err);
		finish(s, batch, &err);
	} else if (first && set_source(p, s, &err)) {
		complete(p, &err);
	} else if (first) {
		load(p, s->prefetch, batch);
	}
}

void shard_find(struct shard_search *s)
{
	s->level = s->shard;
	s->depth = 0;
	s->source = NULL;
	s->absence = (struct store_absence){0};
	s->absent = false;
	s->offset = 0;
	s->length = UINT64_MAX;
	find_level(s, s->batch);
}
