/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claimed bytes as a sorted list of disjoint runs. New claims are collected in a batch. A full
 * batch is sorted, compared with the runs, and merged into them; runs that touch become one. Only
 * the claims of a batch have names, so the reason of an overlap names both structures if both are
 * in one batch.
 *
 * Claims of one structure that follow each other (the chunks of a dataset in file order) extend the
 * last claim of the batch, so they need no merge at all.
 *
 * An overlap does not destroy the list: the bytes are claimed once, and other overlaps can still be
 * found.
 */
#include <h5/claims.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/mem.h>
#include <base/search.h>

enum { BATCH = 64 * 1024, FIRST_PENDING = 64 };

struct run {
	uint64_t start, end;
};
_Static_assert(sizeof(struct run) == 16, "the header promises 16 bytes for each run");

struct pending {
	uint64_t start, end;
	const char *what;
};

struct h5_claims {
	struct budget_charge charge;
	struct run *runs; /* ascending, not empty, with a gap between any two */
	size_t nruns, cap_runs;
	struct pending *pending; /* in the order of the calls */
	size_t npending, cap_pending;
};

struct h5_claims *h5_claims_new(struct budget *budget)
{
	struct h5_claims *c = calloc(1, sizeof(*c));
	if (c)
		c->charge = (struct budget_charge){.budget = budget, .use = BUDGET_TREES};
	return c;
}

void h5_claims_free(struct h5_claims *c)
{
	if (!c)
		return;
	free(c->runs);
	free(c->pending);
	budget_set(&c->charge, 0, NULL);
	free(c);
}

/* Gives both lists these capacities, which are not smaller than before. */
static int grow(struct h5_claims *c, size_t runs, size_t pending, struct err *err)
{
	int rc = budget_set(&c->charge, runs * sizeof(*c->runs) + pending * sizeof(*c->pending),
			    err);
	if (rc)
		return rc;
	struct run *more_runs = reallocarray(c->runs, runs ? runs : 1, sizeof(*more_runs));
	if (!more_runs)
		return err_no_memory(err);
	c->runs = more_runs;
	c->cap_runs = runs;
	struct pending *more_pending = reallocarray(c->pending, pending, sizeof(*more_pending));
	if (!more_pending)
		return err_no_memory(err);
	c->pending = more_pending;
	c->cap_pending = pending;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end == y->end ? 0 : x->end < y->end ? -1 : 1;
}

/* Reports that p overlaps another structure at the address `at`. */
static int overlap(const struct pending *p, const char *other, uint64_t at, struct err *err)
{
	return err_set(err, -EIO, "%s at %" PRIu64 " (%" PRIu64 " bytes) overlaps %s at %" PRIu64,
		       p->what, p->start, p->end - p->start, other, at);
}

/* Compares the sorted batch with itself and with the runs from number i on. */
static int find_overlap(const struct h5_claims *c, size_t i, struct err *err)
{
	const struct pending *longest = NULL; /* of those before p, the one that ends last */
	for (size_t k = 0; k < c->npending; k++) {
		const struct pending *p = &c->pending[k];
		if (longest && longest->end > p->start)
			return overlap(p, longest->what, longest->start, err);
		while (i < c->nruns && c->runs[i].end <= p->start)
			i++;
		if (i < c->nruns && c->runs[i].start < p->end)
			return overlap(p, "another structure", max_u64(p->start, c->runs[i].start),
				       err);
		if (!longest || p->end > longest->end)
			longest = p;
	}
	return 0;
}

/* Joins runs that touch, from number i on. */
static void join(struct h5_claims *c, size_t i)
{
	size_t n = i;
	for (; i < c->nruns; i++) {
		struct run r = c->runs[i];
		if (n && c->runs[n - 1].end >= r.start)
			c->runs[n - 1].end = max_u64(c->runs[n - 1].end, r.end);
		else
			c->runs[n++] = r;
	}
	c->nruns = n;
}

/* Merges the batch into the runs, beginning at the end of both, so no second list is needed. */
static void merge(struct h5_claims *c, size_t from)
{
	size_t r = c->nruns, p = c->npending, to = r + p;
	c->nruns = to;
	while (p > 0) {
		const struct pending *last = &c->pending[p - 1];
		if (r > from && c->runs[r - 1].start > last->start) {
			c->runs[--to] = c->runs[--r];
		} else {
			c->runs[--to] = (struct run){last->start, last->end};
			p--;
		}
	}
	c->npending = 0;
	join(c, from);
}

int h5_claims_check(struct h5_claims *c, struct err *err)
{
	if (!c || c->npending == 0)
		return 0;
	int rc = 0;
	/* The list of runs grows by a quarter, because it may be large. */
	if (c->cap_runs - c->nruns < c->npending)
		rc = grow(c, c->nruns + c->nruns / 4 + c->npending, c->cap_pending, err);
	if (rc)
		return rc;
	qsort(c->pending, c->npending, sizeof(*c->pending), by_start);
	/* the first run that ends after the start of the batch */
	size_t from = LOWER_BOUND(i, c->nruns, c->runs[i].end <= c->pending[0].start);
	rc = find_overlap(c, from, err);
	merge(c, from);
	return rc;
}

int h5_claim(struct h5_claims *c, uint64_t addr, uint64_t n, const char *what, struct err *err)
{
	struct pending p = {.start = addr, .what = what};
	if (!c || n == 0)
		return 0;
	if (!add_u64(addr, n, &p.end))
		return err_set(err, -EIO, "%s at %" PRIu64 ": %" PRIu64 " bytes end after 2^64",
			       what, addr, n);
	if (c->npending) {
		struct pending *last = &c->pending[c->npending - 1];
		if (last->end == addr && last->what == what) {
			last->end = p.end;
			return 0;
		}
	}
	if (c->npending == BATCH) {
		int rc = h5_claims_check(c, err);
		if (rc)
			return rc;
	}
	if (c->npending == c->cap_pending) {
		const size_t more = c->cap_pending ? 2 * c->cap_pending : FIRST_PENDING;
		int rc = grow(c, c->cap_runs, more, err);
		if (rc)
			return rc;
	}
	c->pending[c->npending++] = p;
	return 0;
}
