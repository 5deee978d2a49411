/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins reads of a file that begin at the same time: those of one loop of the cache, and those that
 * have waited for the same chunk of a chunk table. Reads with a gap of at most ref_gap() bytes
 * between them become one request of at most MERGED_MAX bytes. The bytes of the gap are dropped. So
 * a request is saved where the gap takes less time than a round trip.
 *
 * A batch belongs to one thread, which adds all reads and then ends it. Nothing waits for a timer,
 * so the requests depend only on the reads.
 *
 * When a chunk is complete, the cache begins the next load. So the end of a request for several
 * reads begins several loads, one after the other. They are joined, too: their batches are parts of
 * one that ends after the last of these reads is done.
 */
#include "references.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "domain_internal.h"

enum { MERGED_MAX = 4 << 20 /* bytes of a request for several reads */ };

/* One request for several reads. */
struct merged {
	struct ref_read read;
	size_t n;
	struct ref_read *members[];
};

/* The batch of the request for several reads that this thread is completing; NULL: none. It is
 * reset before the function that sets it returns, so nothing is shared between engines. */
static _Thread_local struct ref_batch *completing;

struct ref_batch *ref_batch_begin(struct domain *d)
{
	struct ref_batch *b = completing;
	if (!d->has_references)
		return NULL;
	if (b && b->domain == d) {
		b->depth++;
		return b;
	}
	b = calloc(1, sizeof(*b));
	if (b)
		*b = (struct ref_batch){.domain = d, .depth = 1};
	return b;
}

static int by_place(const void *a, const void *b)
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
		rc = err_set(&err, -ENOMEM, "out of memory");
	r->done(r, rc, &part, &err);
}

static void merged_read(struct ref_read *read, int code, struct bytes *body, const struct err *err)
{
	struct merged *m = read->arg;
	struct ref_batch *before = completing, *batch;
	const uint64_t start = m->read.offset;
	completing = NULL;
	completing = batch = ref_batch_begin(ref_file_domain(m->read.file));
	for (size_t i = 0; i < m->n; i++) {
		struct bytes none = {0};
		if (code)
			m->members[i]->done(m->members[i], code, &none, err);
		else
			give_part(m->members[i], start, body);
	}
	completing = before;
	free(m);
	/* The domain may be gone unless a read of the batch keeps it. */
	ref_batch_end(batch);
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
		.done = merged_read,
		.arg = m,
	};
	for (size_t i = 0; i < n; i++)
		m->read.prefetch = m->read.prefetch && members[i]->prefetch;
	ref_read(&m->read);
}

static void submit(struct ref_read **reads, size_t n, uint64_t gap)
{
	size_t first = 0;
	while (first < n) {
		const struct ref_read *f = reads[first];
		uint64_t end = f->offset + f->length;
		size_t next = first + 1;
		for (; next < n && reads[next]->file == f->file; next++) {
			const struct ref_read *r = reads[next];
			const uint64_t to = max_u64(end, r->offset + r->length);
			if ((r->offset > end && r->offset - end > gap) ||
			    to - f->offset > MERGED_MAX)
				break;
			end = to;
		}
		read_merged(reads + first, next - first, end);
		first = next;
	}
}

void ref_batch_end(struct ref_batch *b)
{
	if (!b || --b->depth)
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
	qsort(reads, n, sizeof(*reads), by_place);
	submit(reads, n, gap);
	free(reads);
}
