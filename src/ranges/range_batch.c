/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins reads of an object that begin at the same time: those of one loop of the cache, and those
 * that have waited for the same chunk of a chunk table. A gap between two reads is fetched, too,
 * and its bytes are dropped, if one of these is true:
 *   - it has at most GAP_ALWAYS bytes;
 *   - it has at most range_gap() bytes, so that it takes less time than a round trip, and the gaps
 *     of the request have no more bytes than the reads.
 *
 * A shard has no holes, so a gap in it is often what another request is fetching. There, the gaps
 * of a request have at most GAPS_MAX bytes, or one in GAPS_SHARE of its bytes. A request for
 * several reads has at most MERGED_MAX bytes. It is cancelled when all of its reads are.
 *
 * A batch belongs to one thread, which adds all reads and then ends it. Nothing waits for a timer,
 * so the requests depend only on the reads.
 */
#include <ranges/ranges.h>

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

enum {
	MERGED_MAX = 4 << 20, /* bytes of a request for several reads */
	GAP_ALWAYS = 4 << 10,
	GAPS_MAX = 64 << 10,
	GAPS_SHARE = 64,
};

/* One request for several reads. */
struct merged {
	struct range_read read;
	struct store_range *parts; /* in the same memory, behind the members */
	size_t n;
	struct range_read *members[];
};

struct range_batch *range_batch_begin(struct ranges *all)
{
	return all->joins ? calloc(1, sizeof(struct range_batch)) : NULL;
}

static int by_offset(const void *a, const void *b)
{
	const struct range_read *x = *(struct range_read *const *)a,
				*y = *(struct range_read *const *)b;
	if (x->object != y->object)
		return (uintptr_t)x->object < (uintptr_t)y->object ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void give_part(struct range_read *r, uint64_t start, const struct bytes *body)
{
	struct bytes part auto_bytes = {0};
	struct err err = ERR_INIT;
	const uint64_t at = min_u64(r->offset - start, body->len);
	const uint64_t n = min_u64(r->length, body->len - at);
	if (n < r->length && !r->short_ok)
		range_past_end(range_object_size(r->object), &err);
	else if (n && bytes_append(&part, body->data + at, (size_t)n))
		err_no_memory(&err);
	if (err.code)
		range_explain(r, &err);
	r->done(r, err.code, &part, &err);
}

static void merged_read(struct range_read *read, int code, struct bytes *body,
			const struct err *err)
{
	struct merged *m = read->arg;
	const uint64_t start = m->read.offset;
	for (size_t i = 0; i < m->n; i++) {
		struct bytes none = {0};
		if (code)
			m->members[i]->done(m->members[i], code, &none, err);
		else
			give_part(m->members[i], start, body);
	}
	free(m);
}

static bool all_cancelled(const void *arg)
{
	const struct merged *m = arg;
	for (size_t i = 0; i < m->n; i++)
		if (!is_cancelled(&m->members[i]->cancelled))
			return false;
	return true;
}

/* Stores the parts of the range that the members need. Returns how many they are. */
static size_t make_parts(const struct merged *m)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct range_read *r = m->members[i];
		struct store_range *last = n ? &m->parts[n - 1] : NULL;
		const uint64_t end = r->offset + r->length;
		if (last && r->offset <= last->first + last->length)
			last->length = max_u64(last->length, end - last->first);
		else
			m->parts[n++] =
				(struct store_range){.first = r->offset, .length = r->length};
	}
	return n;
}

/* Reads the n members, which end at `end`, with one request. */
static void read_merged(struct range_read **members, size_t n, uint64_t end)
{
	_Static_assert(alignof(struct store_range) <= alignof(struct range_read *), "one block");
	struct merged *m =
		n > 1 ? malloc(sizeof(*m) + n * (sizeof(*members) + sizeof(*m->parts))) : NULL;
	if (!m) {
		for (size_t i = 0; i < n; i++)
			range_read(members[i]);
		return;
	}
	m->n = n;
	memcpy(m->members, members, n * sizeof(*members));
	m->parts = (struct store_range *)(void *)(m->members + n);
	m->read = (struct range_read){
		.object = members[0]->object,
		.offset = members[0]->offset,
		.length = end - members[0]->offset,
		.short_ok = true,
		.prefetch = true,
		.cancelled = {.fn = all_cancelled, .arg = m},
		.done = merged_read,
		.arg = m,
	};
	m->read.parts = m->parts;
	m->read.n_parts = make_parts(m);
	for (size_t i = 0; i < n; i++)
		m->read.prefetch = m->read.prefetch && members[i]->prefetch;
	range_read(&m->read);
}

/* Returns how many of the n reads, which are sorted, one request fetches, and sets *end to the end
 * of its range. */
static size_t join(struct range_read *const *reads, size_t n, uint64_t most_gap, uint64_t *end)
{
	const struct range_read *first = reads[0];
	uint64_t gaps = 0;
	size_t count = 1;
	*end = first->offset + first->length;
	if (first->from_end)
		return 1;
	for (; count < n && reads[count]->object == first->object; count++) {
		const struct range_read *r = reads[count];
		const uint64_t to = max_u64(*end, r->offset + r->length);
		const uint64_t gap = r->offset > *end ? r->offset - *end : 0;
		const uint64_t size = to - first->offset;
		gaps += gap;
		if (r->from_end || size > MERGED_MAX ||
		    (gap > GAP_ALWAYS && (gap > most_gap || gaps > size - gaps)) ||
		    (first->object->is_own && gaps > max_u64(GAPS_MAX, size / GAPS_SHARE)))
			break;
		*end = to;
	}
	return count;
}

void range_batch_end(struct range_batch *b)
{
	if (!b)
		return;
	struct range_read *r = b->first, **reads = b->n > 1 ? calloc(b->n, sizeof(*reads)) : NULL;
	const uint64_t gap = r ? range_gap(r->object->all) : 0;
	const size_t n = b->n;
	free(b);
	for (size_t i = 0; r; i++) {
		struct range_read *next = r->next;
		r->batch = NULL;
		if (reads)
			reads[i] = r;
		else
			range_read(r);
		r = next;
	}
	if (!reads)
		return;
	qsort(reads, n, sizeof(*reads), by_offset);
	for (size_t first = 0; first < n;) {
		uint64_t end;
		const size_t count = join(reads + first, n - first, gap, &end);
		read_merged(reads + first, count, end);
		first += count;
	}
	free(reads);
}
