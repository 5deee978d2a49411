/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins reads of a file that begin at the same time: those of one loop of the cache, and those that
 * have waited for the same chunk of a chunk table. A gap between two reads is fetched, too, and its
 * bytes are dropped, if one of these is true:
 *   - it has at most GAP_ALWAYS bytes;
 *   - it has at most ref_gap() bytes, so that it takes less time than a round trip, and the gaps of
 *     the request have no more bytes than the reads.
 * A request for several reads has at most MERGED_MAX bytes. It is cancelled when all of its reads
 * are.
 *
 * A batch belongs to one thread, which adds all reads and then ends it. Nothing waits for a timer,
 * so the requests depend only on the reads.
 */
#include <ranges/references.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

enum {
	MERGED_MAX = 4 << 20, /* bytes of a request for several reads */
	GAP_ALWAYS = 4 << 10,
};

/* One request for several reads. */
struct merged {
	struct ref_read read;
	size_t n;
	struct ref_read *members[];
};

struct ref_batch *ref_batch_begin(struct ranges *all)
{
	return all->has_references ? calloc(1, sizeof(struct ref_batch)) : NULL;
}

static int by_offset(const void *a, const void *b)
{
	const struct ref_read *x = *(struct ref_read *const *)a, *y = *(struct ref_read *const *)b;
	if (x->file != y->file)
		return (uintptr_t)x->file < (uintptr_t)y->file ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Gives a read its part of the body. */
static void give_part(struct ref_read *r, uint64_t start, const struct bytes *body)
{
	struct bytes part auto_bytes = {0};
	struct err err = ERR_INIT;
	const uint64_t at = r->offset - start;
	int rc = 0;
	if (at > body->len || r->length > body->len - at)
		rc = err_set(&err, -EIO,
			     "%s, bytes %" PRIu64 "-%" PRIu64
			     ": the range is past the end of the file, which has %" PRIu64 " bytes",
			     ref_file_uri(r->file), r->offset, r->offset + r->length - 1,
			     ref_file_size(r->file));
	else if (bytes_append(&part, body->data + at, (size_t)r->length))
		rc = err_no_memory(&err);
	r->done(r, rc, &part, &err);
}

static void merged_read(struct ref_read *read, int code, struct bytes *body, const struct err *err)
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

/* Reads the n members, which end at `end`, with one request. */
static void read_merged(struct ref_read **members, size_t n, uint64_t end)
{
	struct merged *m = n > 1 ? malloc(sizeof(*m) + n * sizeof(*members)) : NULL;
	if (!m) {
		for (size_t i = 0; i < n; i++)
			ref_read(members[i]);
		return;
	}
	m->n = n;
	memcpy(m->members, members, n * sizeof(*members));
	m->read = (struct ref_read){
		.file = members[0]->file,
		.offset = members[0]->offset,
		.length = end - members[0]->offset,
		.short_ok = true,
		.prefetch = true,
		.cancelled = {.fn = all_cancelled, .arg = m},
		.done = merged_read,
		.arg = m,
	};
	for (size_t i = 0; i < n; i++)
		m->read.prefetch = m->read.prefetch && members[i]->prefetch;
	ref_read(&m->read);
}

/* Returns how many of the n reads, which are sorted, one request fetches, and sets *end to the end
 * of its range. */
static size_t join(struct ref_read *const *reads, size_t n, uint64_t most_gap, uint64_t *end)
{
	const struct ref_read *first = reads[0];
	uint64_t gaps = 0;
	size_t count = 1;
	*end = first->offset + first->length;
	for (; count < n && reads[count]->file == first->file; count++) {
		const struct ref_read *r = reads[count];
		const uint64_t to = max_u64(*end, r->offset + r->length);
		const uint64_t gap = r->offset > *end ? r->offset - *end : 0;
		gaps += gap;
		if ((gap > GAP_ALWAYS && (gap > most_gap || gaps > to - first->offset - gaps)) ||
		    to - first->offset > MERGED_MAX)
			break;
		*end = to;
	}
	return count;
}

static void submit(struct ref_read **reads, size_t n, uint64_t most_gap)
{
	for (size_t first = 0; first < n;) {
		uint64_t end;
		const size_t count = join(reads + first, n - first, most_gap, &end);
		read_merged(reads + first, count, end);
		first += count;
	}
}

void ref_batch_end(struct ref_batch *b)
{
	if (!b)
		return;
	struct ref_read *r = b->first, **reads = b->n > 1 ? calloc(b->n, sizeof(*reads)) : NULL;
	const uint64_t gap = r ? ref_gap(r->file) : 0;
	const size_t n = b->n;
	free(b);
	for (size_t i = 0; r; i++) {
		struct ref_read *next = r->next;
		r->batch = NULL;
		if (reads)
			reads[i] = r;
		else
			ref_read(r);
		r = next;
	}
	if (!reads)
		return;
	qsort(reads, n, sizeof(*reads), by_offset);
	submit(reads, n, gap);
	free(reads);
}
