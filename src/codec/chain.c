/* SPDX-License-Identifier: Apache-2.0 */
/* Plans chains, and derives the size of a stored chunk from a chain. hdf5.c plans the filters of
 * files, and array_steps.c the codecs of arrays. */
#include <codec/chain.h>

#include <errno.h>
#include <string.h>

#include <codec/chunk.h>
#include <data/chunk_source.h>

#include "array_steps.h"
#include "bitshuffle.h"
#include "hdf5.h"
#include "recorded.h"

/* Returns the bytes of nelems elements, or CODEC_UNKNOWN if their length is variable or there are
 * too many. */
static uint64_t plain_size(uint64_t elem_size, uint64_t nelems)
{
	uint64_t n;
	if (elem_size == 0 || !mul_u64(elem_size, nelems, &n) || n > SIZE_MAX / 2)
		return CODEC_UNKNOWN;
	return n;
}

static struct codec_step plan_service(const struct codec_chain *c, const struct pipeline *p,
				      enum codec_object_form form,
				      const struct service_filters *served)
{
	const struct recorded r = recorded_of(p);
	struct pipeline object;
	pipeline_of_object(p, &object);
	const struct filter *deflate = object.n > 0 ? &object.f[object.n - 1] : NULL;
	const bool shuffled = deflate ? object.f[0].id == FILTER_SHUFFLE : r.shuffle;
	return (struct codec_step){
		.kind = STEP_SERVICE,
		.largest = c->elem_size == 0 ? CHUNK_BYTES_MAX
			   : r.bitshuffle    ? bitshuffle_bound(c->plain)
					     : c->plain,
		.exact = c->plain,
		.recorded = p->n > 0,
		.compressor = r.compressor,
		.deflate = r.deflate,
		.bitshuffle = r.bitshuffle,
		/* A compressor that pipeline_of_object() does not know may also have been replaced
		 * by zlib. */
		.stream = r.compressor || deflate,
		.shuffled = shuffled && form == OBJECT_SHUFFLED,
		.unknown = r.unknown,
		.served = served,
		.level = deflate ? (int)deflate->params[0] : -1,
	};
}

void codec_plan_object(struct codec_plan *plan, const struct dtype *t, uint64_t nelems,
		       const struct pipeline *p, enum codec_object_form form,
		       const struct service_filters *served)
{
	const uint64_t elem_size = codec_stored_elem_size(t);
	plan->chain = (struct codec_chain){.type = t,
					   .nelems = nelems,
					   .elem_size = elem_size,
					   .plain = plain_size(elem_size, nelems),
					   .n = 2,
					   .steps = plan->steps};
	plan->steps[0] = plan_service(&plan->chain, p, form, served);
	const uint64_t size = plain_size(t->size, nelems);
	plan->steps[1] = (struct codec_step){.kind = STEP_ELEMENTS, .largest = size, .exact = size};
}

void codec_plan_file(struct codec_plan *plan, const struct dtype *t, uint64_t nelems,
		     const struct filter *filters, uint32_t n, bool certain)
{
	const uint64_t plain = plain_size(t->size, nelems);
	hdf5_plan(plan->steps, filters, n, t->size, certain ? codec_hdf5_limit(plain) : plain,
		  certain ? CODEC_UNKNOWN : plain);
	plan->chain = (struct codec_chain){.type = t,
					   .nelems = nelems,
					   .elem_size = t->size,
					   .plain = plain,
					   .certain = certain,
					   .n = n,
					   .steps = plan->steps};
}

int codec_plan_array(struct codec_plan *plan, const struct dtype *t, uint32_t elem_size,
		     uint64_t nelems, const struct codec_array_step *steps, uint32_t n)
{
	const bool too_large = plain_size(t->size, nelems) == CODEC_UNKNOWN;
	plan->chain = (struct codec_chain){.type = t,
					   .nelems = nelems,
					   .elem_size = elem_size,
					   .plain = too_large ? CODEC_UNKNOWN : elem_size * nelems,
					   .n = too_large ? 0 : n,
					   .steps = plan->steps};
	if (n > FILTER_MAX)
		return -EINVAL;
	return too_large ? 0 : array_plan(plan->steps, steps, n, elem_size, t->size, nelems);
}

int codec_plan_bytes(struct codec_plan *plan, uint64_t most, const struct codec_array_step *steps,
		     uint32_t n)
{
	plan->chain = (struct codec_chain){.plain = CODEC_UNKNOWN, .n = n, .steps = plan->steps};
	return n > FILTER_MAX ? -EINVAL : array_plan_bytes(plan->steps, steps, n, most);
}

/* Copies `served` to the arena. *ok becomes false if out of memory. */
static const struct service_filters *copy_served(const struct service_filters *served,
						 struct arena *a, bool *ok)
{
	struct service_filters *copy = arena_alloc(a, sizeof(*copy));
	if (copy)
		*copy = *served;
	if (copy && served->refused)
		copy->refused = arena_strndup(a, served->refused, strlen(served->refused));
	*ok = copy && !copy->refused == !served->refused;
	return copy;
}

/* Copies the two arrays of a step. Returns false if the arena is out of memory. */
static bool copy_array_step(struct codec_array_step *s, struct arena *a)
{
	uint64_t *shape = arena_array(a, s->rank, sizeof(*shape));
	uint32_t *order = arena_array(a, s->rank, sizeof(*order));
	if (!shape || !order)
		return false;
	memcpy(shape, s->shape, s->rank * sizeof(*shape));
	memcpy(order, s->order, s->rank * sizeof(*order));
	s->shape = shape;
	s->order = order;
	return true;
}

const struct codec_chain *codec_chain_copy(const struct codec_chain *c, struct arena *a)
{
	struct codec_chain *copy = arena_alloc(a, sizeof(*copy));
	struct codec_step *steps = arena_array(a, c->n ? c->n : 1, sizeof(*steps));
	bool ok = copy && steps;
	if (!ok)
		return NULL;
	memcpy(steps, c->steps, c->n * sizeof(*steps));
	if (codec_chain_served(c))
		steps[0].served = copy_served(steps[0].served, a, &ok);
	for (uint32_t i = 0; i < c->n && ok; i++)
		if (steps[i].kind == STEP_ARRAY && steps[i].array.codec == CODEC_TRANSPOSE &&
		    steps[i].array.rank > 0)
			ok = copy_array_step(&steps[i].array, a);
	*copy = *c;
	copy->steps = steps;
	return ok ? copy : NULL;
}

static bool same_array_step(const struct codec_array_step *a, const struct codec_array_step *b)
{
	bool same = a->codec == b->codec && a->elem_size == b->elem_size &&
		    a->big_endian == b->big_endian && a->rank == b->rank;
	for (uint32_t i = 0; same && a->codec == CODEC_TRANSPOSE && i < a->rank; i++)
		same = a->shape[i] == b->shape[i] && a->order[i] == b->order[i];
	return same;
}

bool codec_chain_equal(const struct codec_chain *a, const struct codec_chain *b)
{
	bool same = a->type == b->type && a->nelems == b->nelems && a->elem_size == b->elem_size &&
		    a->plain == b->plain && a->n == b->n;
	for (uint32_t i = 0; same && i < a->n; i++) {
		const struct codec_step *x = &a->steps[i], *y = &b->steps[i];
		same = x->largest == y->largest && x->exact == y->exact &&
		       same_array_step(&x->array, &y->array);
	}
	return same;
}

const struct service_filters *codec_chain_served(const struct codec_chain *c)
{
	return c && c->n > 0 && c->steps[0].kind == STEP_SERVICE ? c->steps[0].served : NULL;
}

static bool is_filtered(const struct codec_chain *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct codec_step *step = &c->steps[i];
		if (step->kind == STEP_FILTER || (step->kind == STEP_SERVICE && step->recorded) ||
		    (step->kind == STEP_ARRAY && array_is_filter(step)))
			return true;
	}
	return false;
}

struct codec_size codec_chunk_size(const struct codec_chain *c)
{
	enum { MORE = 64 << 10 };
	const uint64_t plain = c->elem_size ? c->plain : CHUNK_BYTES_MAX;
	struct codec_size size = {.is_filtered = is_filtered(c),
				  .exact = CODEC_UNKNOWN,
				  .most = CODEC_UNKNOWN,
				  .plain = plain};
	uint64_t most = plain;
	if (c->n > 0 && c->steps[0].kind == STEP_ARRAY) {
		const struct array_input in = array_input_of(&c->steps[0]);
		size.exact = in.exact;
		most = in.most;
	} else if (!size.is_filtered && !c->certain) {
		size.exact = c->plain;
	}
	/* Compressors copy bytes that they cannot compress, so a stored chunk is hardly larger than
	 * a decoded one. */
	if (most != CODEC_UNKNOWN)
		size.most = most + most / 8 + MORE;
	return size;
}
