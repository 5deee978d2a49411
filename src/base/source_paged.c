/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source with a cache of pages: see base/source_paged.h.
 *
 * Pages are found by a hash table, and evicted with the clock algorithm: the hand skips a page that
 * was used since it last passed. Whole pages of a large read that are not in memory are fetched
 * into the caller's buffer and not kept, because they are data, not metadata.
 *
 * The lock guards the pages. No fetch happens under it, so two threads may fetch the same page; the
 * second one drops its copy.
 */
#include <base/source_paged.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <base/mem.h>
#include <uthash.h>

struct page {
	UT_hash_handle hh;
	uint64_t number;
	bool used; /* since the hand passed */
	uint8_t *data;
};

struct source_paged {
	struct source source;
	source_fetch_fn fetch;
	void *ctx;
	pthread_mutex_t lock;
	bool deferred; /* a fetch has returned -EAGAIN, so no page is evicted */
	uint32_t max, n, hand;
	struct page *pages; /* n of max are in the table */
	struct page *table;
};

static uint64_t page_size(const struct source_paged *p, uint64_t number)
{
	return min_u64(SOURCE_PAGE, p->source.size - number * SOURCE_PAGE);
}

static struct page *find_locked(struct source_paged *p, uint64_t number)
{
	struct page *s;
	HASH_FIND(hh, p->table, &number, sizeof(number), s);
	if (s)
		s->used = true;
	return s;
}

/* Returns a page that is not in the table, or NULL if all are in use and none may be evicted. */
static struct page *free_page_locked(struct source_paged *p)
{
	if (p->n < p->max)
		return &p->pages[p->n++];
	if (p->deferred)
		return NULL;
	while (p->pages[p->hand].used) {
		p->pages[p->hand].used = false;
		p->hand = (p->hand + 1) % p->max;
	}
	struct page *s = &p->pages[p->hand];
	p->hand = (p->hand + 1) % p->max;
	HASH_DEL(p->table, s);
	free(s->data);
	s->data = NULL;
	return s;
}

/* Takes ownership of data. */
static int insert(struct source_paged *p, uint64_t number, uint8_t *data, struct err *err)
{
	int rc = 0;
	pthread_mutex_lock(&p->lock);
	struct page *s = find_locked(p, number);
	if (!s) {
		s = free_page_locked(p);
		if (s) {
			s->number = number;
			s->used = true;
			s->data = data;
			data = NULL;
			HASH_ADD(hh, p->table, number, sizeof(s->number), s);
		} else {
			rc = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&p->lock);
	free(data);
	return rc ? err_set(err, rc, "more than %u pages of the file are needed at once", p->max)
		  : 0;
}

/* Copies n bytes of a page. Returns false if it is not in memory. */
static bool copy(struct source_paged *p, uint64_t number, size_t from, void *buf, size_t n)
{
	pthread_mutex_lock(&p->lock);
	const struct page *s = find_locked(p, number);
	if (s)
		memcpy(buf, s->data + from, n);
	pthread_mutex_unlock(&p->lock);
	return s;
}

static int fetch(struct source_paged *p, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const int rc = p->fetch(p->ctx, offset, buf, n, err);
	if (rc == -EAGAIN) {
		pthread_mutex_lock(&p->lock);
		p->deferred = true;
		pthread_mutex_unlock(&p->lock);
	}
	return rc;
}

static int load(struct source_paged *p, uint64_t number, struct err *err)
{
	const size_t n = (size_t)page_size(p, number);
	uint8_t *data = malloc(n);
	int rc = data ? fetch(p, number * SOURCE_PAGE, data, n, err) : err_no_memory(err);
	if (!rc)
		return insert(p, number, data, err);
	free(data);
	return rc;
}

/* Returns the number of bytes of whole pages from `number` on, at most n, that are not in
 * memory. */
static size_t absent_run(struct source_paged *p, uint64_t number, size_t n)
{
	size_t run = 0;
	pthread_mutex_lock(&p->lock);
	while (n - run >= SOURCE_PAGE && !find_locked(p, number++))
		run += SOURCE_PAGE;
	pthread_mutex_unlock(&p->lock);
	return run;
}

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct source_paged *p = ctx;
	uint8_t *to = buf;
	while (n) {
		const uint64_t number = offset / SOURCE_PAGE;
		const size_t from = (size_t)(offset % SOURCE_PAGE);
		size_t part = (size_t)min_u64(n, SOURCE_PAGE - from);
		if (!copy(p, number, from, to, part)) {
			const size_t run = from ? 0 : absent_run(p, number, n);
			int rc = run ? fetch(p, offset, to, run, err) : load(p, number, err);
			if (rc)
				return rc;
			if (!run)
				continue;
			part = run;
		}
		to += part;
		offset += part;
		n -= part;
	}
	return 0;
}

struct source_paged *source_paged_new(uint64_t size, uint32_t pages, source_fetch_fn fetch_fn,
				      void *ctx)
{
	struct source_paged *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->source = (struct source){.size = size, .read_at = read_at, .ctx = p};
	p->fetch = fetch_fn;
	p->ctx = ctx;
	p->max = (uint32_t)min_u64(pages, div_up_u64(size, SOURCE_PAGE) + 1);
	p->pages = calloc(p->max, sizeof(*p->pages));
	if (!p->pages) {
		free(p);
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void source_paged_free(struct source_paged *p)
{
	if (!p)
		return;
	HASH_CLEAR(hh, p->table);
	for (uint32_t i = 0; i < p->n; i++)
		free(p->pages[i].data);
	free(p->pages);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct source *source_paged_source(struct source_paged *p)
{
	return &p->source;
}

void source_paged_round(const struct source_paged *p, uint64_t *offset, uint64_t *n)
{
	const uint64_t end = *offset + *n, past = end % SOURCE_PAGE;
	const uint64_t more = past ? SOURCE_PAGE - past : 0;
	*offset -= *offset % SOURCE_PAGE;
	*n = end + min_u64(more, p->source.size - end) - *offset;
}

int source_paged_put(struct source_paged *p, uint64_t offset, const void *bytes, uint64_t n,
		     struct err *err)
{
	const uint8_t *from = bytes;
	int rc = 0;
	for (uint64_t done = 0; !rc && done < n; done += SOURCE_PAGE) {
		const uint64_t number = (offset + done) / SOURCE_PAGE;
		const size_t size = (size_t)page_size(p, number);
		uint8_t *data = malloc(size);
		if (!data)
			return err_no_memory(err);
		memcpy(data, from + done, size);
		rc = insert(p, number, data, err);
	}
	return rc;
}

int source_paged_fetch_source(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	return source_read(ctx, offset, buf, n, err);
}
