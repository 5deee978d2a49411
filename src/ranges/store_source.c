/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ranges/store_source.h.
 *
 * What is in memory is kept in pages. A page has a bit for each of its sectors, which is set if the
 * sector was fetched. Sectors are small, so that a structure between data brings little of the data
 * with it. Pages are in the order in which they were made; the oldest that was not used since the
 * last look is evicted.
 *
 * Announced ranges wait in the order of the announcements, which is nearly the order in which
 * decoders read them.
 */
#include <ranges/store_source.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <store/store.h>
#include <uthash.h>

enum {
	SECTOR = 64,
	PAGE = 64 * SECTOR,
	KEEP = 128 << 20,
	FETCH_MIN = 512,       /* bytes that a read fetches at least, if they are absent */
	DIRECT_MIN = 1 << 20,  /* longer reads are not kept */
	REQUEST_MAX = 4 << 20, /* bytes of one request */
	ROUND_BYTES = 8 << 20, /* announced bytes that one round fetches */
	ROUND_RANGES = 256,    /* announced ranges of one round */
	GAP_MAX = 4096,	       /* bytes between two ranges of one request */
	GAP_PART = 8,	       /* the gaps of a request take at most 1/8 of its other bytes */
	ANNOUNCED_FACTOR = 2,
	ANNOUNCED_MAX = 4 << 20, /* ranges that wait; more are forgotten */
};

struct page {
	UT_hash_handle hh;
	uint64_t number;
	uint64_t present; /* bit i is that of sector i */
	bool used;	  /* since the last look */
	uint8_t data[PAGE];
};

struct range {
	uint64_t first, end;
};

struct store_source {
	struct source source;
	struct store_source_options opt;
	struct page *pages;
	size_t npages, max_pages;
	struct bytes announced; /* of struct range */
	size_t next;		/* of them */
	struct store_source_counts counts;
};

/* ---- pages ---- */

static struct page *find_page(const struct store_source *s, uint64_t number)
{
	struct page *p;
	HASH_FIND(hh, s->pages, &number, sizeof(number), p);
	return p;
}

static bool has_sector(const struct store_source *s, uint64_t sector)
{
	const struct page *p = find_page(s, sector * SECTOR / PAGE);
	return p && p->present >> sector % (PAGE / SECTOR) & 1;
}

static bool has_all(const struct store_source *s, uint64_t first, uint64_t end)
{
	for (uint64_t i = first / SECTOR; i * SECTOR < end; i++)
		if (!has_sector(s, i))
			return false;
	return true;
}

static void copy(struct store_source *s, uint64_t offset, uint8_t *to, size_t n)
{
	while (n) {
		struct page *p = find_page(s, offset / PAGE);
		const size_t from = (size_t)(offset % PAGE);
		const size_t part = (size_t)min_u64(n, PAGE - from);
		memcpy(to, p->data + from, part);
		p->used = true;
		to += part;
		offset += part;
		n -= part;
	}
}

static void evict(struct store_source *s)
{
	struct page *p = s->pages;
	while (p->used) {
		p->used = false;
		HASH_DEL(s->pages, p);
		HASH_ADD(hh, s->pages, number, sizeof(p->number), p);
		p = s->pages;
	}
	HASH_DEL(s->pages, p);
	free(p);
	s->npages--;
}

static struct page *make_page(struct store_source *s, uint64_t number)
{
	struct page *p = find_page(s, number);
	if (p)
		return p;
	while (s->npages >= s->max_pages)
		evict(s);
	p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	p->number = number;
	p->present = 0;
	p->used = true;
	HASH_ADD(hh, s->pages, number, sizeof(p->number), p);
	s->npages++;
	return p;
}

/* Keeps fetched bytes. offset is that of a sector; the last sector may be the end of the object. */
static int keep(struct store_source *s, uint64_t offset, const uint8_t *from, size_t n,
		struct err *err)
{
	while (n) {
		struct page *p = make_page(s, offset / PAGE);
		const size_t at = (size_t)(offset % PAGE);
		const size_t part = (size_t)min_u64(n, PAGE - at);
		if (!p)
			return err_no_memory(err);
		memcpy(p->data + at, from, part);
		for (size_t i = at / SECTOR; i * SECTOR < at + part; i++)
			p->present |= UINT64_C(1) << i;
		from += part;
		offset += part;
		n -= part;
	}
	return 0;
}

/* ---- which ranges to fetch ---- */

/* Adds the parts of a range that are not in memory. They begin and end with sectors. */
static int add_absent(const struct store_source *s, struct range r, struct bytes *out)
{
	uint64_t sector = r.first / SECTOR;
	while (sector * SECTOR < r.end) {
		struct range part;
		while (sector * SECTOR < r.end && has_sector(s, sector))
			sector++;
		part.first = sector * SECTOR;
		while (sector * SECTOR < r.end && !has_sector(s, sector))
			sector++;
		part.end = min_u64(sector * SECTOR, s->source.size);
		if (part.first < part.end && bytes_append(out, &part, sizeof(part)))
			return -ENOMEM;
	}
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

/* Sorts the ranges and merges neighbours. Returns how many are left. */
static size_t merge(struct range *r, size_t n)
{
	uint64_t gaps = 0; /* bytes in the gaps of the last range */
	size_t out = 0;
	qsort(r, n, sizeof(*r), by_first);
	for (size_t i = 1; i < n; i++) {
		struct range *last = &r[out];
		const uint64_t gap = r[i].first > last->end ? r[i].first - last->end : 0;
		const uint64_t end = max_u64(last->end, r[i].end);
		const uint64_t wanted = end - last->first - gaps - gap;
		const bool small = gap <= GAP_MAX && (gaps + gap) * GAP_PART <= wanted;
		if ((gap == 0 || small) && end - last->first <= REQUEST_MAX) {
			last->end = end;
			gaps += gap;
		} else {
			r[++out] = r[i];
			r[out].first = max_u64(r[out].first, last->end);
			gaps = 0;
		}
	}
	return out + 1;
}

/* Plans to fetch the range that is read, and announced ones. */
static int plan(struct store_source *s, struct range wanted, struct bytes *out)
{
	const struct range *announced = (const void *)s->announced.data;
	const size_t n = s->announced.len / sizeof(*announced);
	uint64_t bytes = 0;
	wanted.end = max_u64(wanted.end, min_u64(wanted.first + FETCH_MIN, s->source.size));
	int rc = add_absent(s, wanted, out);
	for (size_t i = 0; !rc && i < ROUND_RANGES && s->next < n && bytes < ROUND_BYTES;) {
		const size_t before = out->len;
		const struct range *r = &announced[s->next++];
		rc = add_absent(s, *r, out);
		if (out->len > before) {
			bytes += r->end - r->first;
			i++;
		}
	}
	if (s->next == n) {
		s->announced.len = 0;
		s->next = 0;
	}
	return rc;
}

/* ---- requests ---- */

static int check_answer(const struct store_source *s, const struct store_request *req,
			struct err *err)
{
	const struct store_answer *a = &req->answer;
	const char *etag = s->opt.etag;
	int rc = store_failure(a, err);
	if (rc == -ESTALE)
		return err_set(err, rc, "%s has changed while it was read", s->opt.key);
	if (rc)
		return err_wrap(err, rc, "%s", s->opt.key);
	if (store_absence(a))
		return err_set(err, -ESTALE, "%s was deleted while it was read", s->opt.key);
	if (a->meta.size != s->source.size || a->body.len != req->range.length ||
	    (etag && *etag && a->meta.etag[0] && strcmp(etag, a->meta.etag) != 0))
		return err_set(err, -ESTALE, "%s has changed while it was read", s->opt.key);
	return 0;
}

/* Sends a request for each range, and calls fn with each answer. */
static int fetch(struct store_source *s, const struct range *r, size_t n,
		 int (*fn)(struct store_source *s, const struct store_request *req, void *ctx,
			   struct err *err),
		 void *ctx, struct err *err)
{
	struct store_request **reqs = store_requests_new(s->opt.store, n);
	int rc = 0;
	if (!reqs)
		return err_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		store_request_key(reqs[i], s->opt.key);
		reqs[i]->range.first = r[i].first;
		reqs[i]->range.length = r[i].end - r[i].first;
		reqs[i]->cancelled = cancelled_by(s->opt.cancelled);
		if (s->opt.etag && *s->opt.etag)
			reqs[i]->cond.if_match = s->opt.etag;
	}
	store_run_all(s->opt.store, reqs, n);
	s->counts.rounds++;
	s->counts.requests += n;
	for (size_t i = 0; i < n; i++) {
		s->counts.bytes += reqs[i]->answer.body.len;
		if (!rc)
			rc = check_answer(s, reqs[i], err);
		if (!rc)
			rc = fn(s, reqs[i], ctx, err);
	}
	store_requests_free(reqs, n);
	return rc;
}

static int keep_answer(struct store_source *s, const struct store_request *req, void *ctx,
		       struct err *err)
{
	(void)ctx;
	return keep(s, req->range.first, req->answer.body.data, req->answer.body.len, err);
}

static int load(struct store_source *s, struct range wanted, struct err *err)
{
	auto_bytes struct bytes ranges = {0};
	if (plan(s, wanted, &ranges))
		return err_no_memory(err);
	struct range *r = (void *)ranges.data;
	return fetch(s, r, merge(r, ranges.len / sizeof(*r)), keep_answer, NULL, err);
}

/* ---- long reads ---- */

struct direct {
	uint64_t offset;
	uint8_t *to;
};

static int copy_answer(struct store_source *s, const struct store_request *req, void *ctx,
		       struct err *err)
{
	const struct direct *d = ctx;
	(void)s;
	(void)err;
	memcpy(d->to + (req->range.first - d->offset), req->answer.body.data, req->answer.body.len);
	return 0;
}

/* ---- the source ---- */

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct store_source *s = ctx;
	const struct range wanted = {offset, offset + n};
	int rc = 0;
	if (s->opt.cancelled && atomic_load(s->opt.cancelled))
		return err_set(err, -ECANCELED, "interrupted");
	if (!has_all(s, wanted.first, wanted.end)) {
		if (n >= DIRECT_MIN) {
			struct direct d = {.offset = offset, .to = buf};
			auto_bytes struct bytes ranges = {0};
			for (uint64_t at = offset; at < offset + n; at += REQUEST_MAX) {
				const struct range r = {at, min_u64(at + REQUEST_MAX, offset + n)};
				if (bytes_append(&ranges, &r, sizeof(r)))
					return err_no_memory(err);
			}
			const struct range *r = (const void *)ranges.data;
			return fetch(s, r, ranges.len / sizeof(*r), copy_answer, &d, err);
		}
		rc = load(s, wanted, err);
	}
	if (!rc)
		copy(s, offset, buf, n);
	return rc;
}

/* A damaged file may announce the same bytes again and again, so announcements are ignored after
 * ANNOUNCED_FACTOR times the size of the object was fetched. */
static void advise(void *ctx, uint64_t offset, uint64_t n)
{
	struct store_source *s = ctx;
	const struct range r = {offset, offset + n};
	if (s->counts.bytes / ANNOUNCED_FACTOR > s->source.size)
		return;
	if (n < DIRECT_MIN && s->announced.len / sizeof(r) < ANNOUNCED_MAX)
		bytes_append(&s->announced, &r, sizeof(r)); /* it is only a hint */
}

struct store_source *store_source_new(const struct store_source_options *opt)
{
	struct store_source *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->opt = *opt;
	s->source =
		(struct source){.size = opt->size, .read_at = read_at, .advise = advise, .ctx = s};
	/* The pages of a round and of a read are in memory at the same time. */
	s->max_pages = (size_t)max_u64((opt->keep ? opt->keep : KEEP) / PAGE,
				       4 * (uint64_t)ROUND_BYTES / PAGE);
	return s;
}

void store_source_free(struct store_source *s)
{
	struct page *p, *next;
	if (!s)
		return;
	HASH_ITER (hh, s->pages, p, next) {
		HASH_DEL(s->pages, p);
		free(p);
	}
	bytes_release(&s->announced);
	free(s);
}

struct source *store_source_source(struct store_source *s)
{
	return &s->source;
}

void store_source_counts(const struct store_source *s, struct store_source_counts *out)
{
	*out = s->counts;
}
